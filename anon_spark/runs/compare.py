"""A comparison of current releases: audited first, then measured alike, from source and published labels alone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from anon_spark.auditing import Verdict
from anon_spark.config import JobSpec, is_uri, relation
from anon_spark.errors import AnonSparkError, ConfigurationError, GuaranteeViolated
from anon_spark.families.quasi_identifiers import QuasiIdentifierPipeline
from anon_spark.families.registry import load_job
from anon_spark.metrics.published import recoded_of
from anon_spark.metrics.recoded import summary
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.report import Check, Compared, Comparison
from anon_spark.risk import CoverRisk, cover_attack
from anon_spark.runs.audit import CurrentRelease
from anon_spark.runs.software import versions

Job = JobSpec | str | os.PathLike[str]


@dataclass(frozen=True)
class Candidate:
    """A current release of a family that generalizes quasi-identifiers, with a name."""

    name: str
    current: CurrentRelease
    steps: QuasiIdentifierPipeline[Any, Any, Any]


def compare(jobs: Sequence[Job], spark: SparkSession, report: str | os.PathLike[str] | None = None) -> Comparison:
    """The releases of some job files (or jobs) side by side; `report` writes the page, with .json and .md beside it.

    Guarantee: fail closed. Jobs of other tables, versions, quasi-identifiers, hierarchies or null policies are refused
    before a row is read (ConfigurationError), and so is a release that fails its audit (GuaranteeViolated). Every measure
    is computed from the source, the published labels and the hierarchies, with the same code for every family.
    Cost: for each release its audit, two small jobs and a simulated attack; writes nothing but the report.
    """
    loaded = [job if isinstance(job, JobSpec) else load_job(Path(job)) for job in jobs]
    if len(loaded) < 2:
        raise ConfigurationError("compare needs at least two job files.")
    if report is not None:
        _refuse_place(os.fspath(report), loaded)
    candidates = _candidates(loaded, spark)
    for first, second in combinations(candidates, 2):
        _refuse_different(first, second)

    source = candidates[0].current.source
    verdicts = [_verified(candidate) for candidate in candidates]
    scopes = {_rows_in_scope(_account(of_release)) for of_release in verdicts}
    if len(scopes) > 1:  # cannot be: same version, hierarchies and policies
        raise AnonSparkError(f"The audits of the releases find different numbers of rows in scope: {sorted(scopes)}.")
    hierarchies = candidates[0].steps.hierarchies_of(source.frame)
    measured = [_measured(*both, hierarchies) for both in zip(candidates, verdicts, strict=True)]
    attack = measured[0][1]
    comparison = Comparison(
        made=datetime.now(UTC),
        input_table=source.table,
        input_version=source.version,
        rows=scopes.pop(),
        quasi_identifiers=list(hierarchies),
        attack={"sampled_rows": attack.rows, "expected": attack.before_expected, "worst": attack.before_worst},
        releases=[compared for compared, _ in measured],
        versions=versions(),
    )
    if report is not None:
        comparison.write(report)
    return comparison


# -- what is refused before a row is read ---------------------------------------------------------------------------


def _candidates(jobs: Sequence[JobSpec], spark: SparkSession) -> list[Candidate]:
    tables = [job.output.table for job in jobs]
    twice = [table for table, times in Counter(tables).items() if times > 1]
    if twice:
        raise ConfigurationError(f"output.table: {', '.join(twice)} is named by several jobs. Give each release once.")
    short = [table.rstrip("/").rpartition("/" if "/" in table else ".")[2] for table in tables]
    names = short if len(set(short)) == len(short) else tables
    return [_candidate(name, CurrentRelease.of(job, spark)) for name, job in zip(names, jobs, strict=True)]


def _candidate(name: str, current: CurrentRelease) -> Candidate:
    job, steps, metadata = current.job, current.steps, current.published.metadata
    if not isinstance(steps, QuasiIdentifierPipeline):
        raise ConfigurationError(f"family {job.family}: only releases with generalized quasi-identifiers can be compared.")
    if not steps.shows_labels:
        raise ConfigurationError(
            f"{job.output.table}: a release with extents cannot be compared: measures of labels do not fit it. Publish labels."
        )
    asked = {"family": job.family, "k": current.steps.guarantee.k, "input_id": current.source.table_id}
    other = [key for key, value in asked.items() if metadata.get(key) != value]
    if other:
        raise ConfigurationError(
            f"{job.output.table}: the current release was made with another {', '.join(other)} than the job says. Run "
            "the job again, or compare the job that made it."
        )
    return Candidate(name, current, steps)


def _refuse_different(first: Candidate, second: Candidate) -> None:
    """Refuse releases with different sources, quasi-identifiers, hierarchies or null policies."""
    refusal = f"{first.name} and {second.name} cannot be compared"
    if _origin(first.current) != _origin(second.current):
        raise ConfigurationError(
            f"{refusal}: they come from different tables, or different versions of one "
            f"({_shown(first.current)}; {_shown(second.current)}). Run both jobs on one version."
        )
    mine, theirs = first.steps.hierarchies, second.steps.hierarchies
    if set(mine) != set(theirs):
        alone = sorted(set(mine) ^ set(theirs))
        raise ConfigurationError(f"{refusal}: columns.quasi_identifiers differ in {', '.join(alone)}.")
    unlike = [name for name in mine if mine[name].to_dict() != theirs[name].to_dict()]
    if unlike:
        raise ConfigurationError(f"{refusal}: they have different hierarchies of {', '.join(unlike)}.")
    if first.current.job.nulls != second.current.job.nulls:
        raise ConfigurationError(f"{refusal}: nulls is value in one job and suppress in the other, so their rows differ.")


def _origin(current: CurrentRelease) -> Any:
    """The identity of a release's source; a format without versions is identified by its place only."""
    source, spec = current.source, current.job.input
    same = (source.table_id, source.version) if source.table_id is not None else (spec.table, spec.format)
    return same, dict(spec.options)


def _shown(current: CurrentRelease) -> str:
    source = current.source
    return source.table if source.version is None else f"{source.table} at version {source.version}"


def _refuse_place(report: str, jobs: Sequence[JobSpec]) -> None:
    """Refuse a page that cannot be written, would lie in a table, or would replace the report of a run."""
    if is_uri(report):
        raise ConfigurationError("--report: a report is a file on the driver. Give a path without scheme.")
    page = Path(report).absolute()
    folder = next(parent for parent in page.parents if parent.exists())
    if page.is_dir() or page.suffix != ".html" or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigurationError(f"--report: {report} cannot be written. Give a path that ends in .html.")
    for job in jobs:
        for key, place in _places(job):
            overlap = relation(str(page), place)
            if overlap is not None:
                raise ConfigurationError(f"--report: {overlap} {key} of a job. Choose a place apart from it.")


def _places(job: JobSpec) -> Iterator[tuple[str, str]]:
    yield "input.table", job.input.table
    yield "output.table", job.output.table
    yield "output.runs", job.output.runs
    if job.output.report is not None:
        yield "output.report", job.output.report
    if job.work is not None:
        yield "work", job.work


# -- what is measured -----------------------------------------------------------------------------------------------


def _verified(candidate: Candidate) -> list[Verdict]:
    """The verdicts of the release's audit, all passed."""
    verdicts = candidate.current.verify()
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if failed:
        raise GuaranteeViolated(
            f"{candidate.current.job.output.table} does not pass its audit, nothing is compared. "
            + " ".join(str(verdict) for verdict in failed),
            checks=[verdict.name for verdict in failed],
        )
    return verdicts


def _account(verdicts: Sequence[Verdict]) -> Mapping[str, int]:
    return next(verdict.facts for verdict in verdicts if verdict.name == "row accounting")


def _rows_in_scope(account: Mapping[str, int]) -> int:
    return account["source"] - account["dropped_nulls"] - account["dropped_unseen"]


def _measured(
    candidate: Candidate, verdicts: Sequence[Verdict], hierarchies: Mapping[str, Hierarchy]
) -> tuple[Compared, CoverRisk]:
    current, guarantee = candidate.current, candidate.current.steps.guarantee
    account, k = _account(verdicts), guarantee.k
    classes = next(
        verdict.facts for verdict in verdicts if verdict.name == f"{k}-anonymity" and verdict.facts["unit"] == "rows"
    )
    release = candidate.steps.as_labels(current.source.frame, current.release, current.published.metadata)
    recoded = recoded_of(release, hierarchies, _rows_in_scope(account))
    if (recoded.classes, recoded.suppressed) != (classes["classes"], account["suppressed"]):
        raise AnonSparkError(f"{candidate.name}: the measures count other classes or rows than its audit.")
    attack = cover_attack(current.source.frame, release, hierarchies, rows=account["source"])
    losses = summary(recoded, k)
    measures = {
        "published_rows": account["published"],
        "suppressed_rows": account["suppressed"],
        "classes": recoded.classes,
        "smallest_class": classes["smallest"],
        **{name: losses[name] for name in ("glm", "il", "ncp", "dm", "cavg")},
        "attack_expected": attack.after_expected,
        "attack_worst": attack.after_worst,
        "attack_class_expected": attack.class_expected,
        "attack_class_worst": attack.class_worst,
    }
    metadata = current.published.metadata
    compared = Compared(
        name=candidate.name,
        family=current.job.family,
        table=current.job.output.table,
        version=current.published.version,
        run_id=str(metadata.get("run_id")),
        guarantee=str(guarantee),
        k=k,
        for_release=bool(metadata.get("for_release")),
        checks=[Check(v.name, v.passed, v.violations, v.detail) for v in verdicts],
        measures=measures,
    )
    return compared, attack
