"""A comparison of releases that stand: audited first, then measured alike, from source and published labels alone."""

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

from anon_spark.audit import Verdict
from anon_spark.config import JobSpec, is_uri, load_job, relation
from anon_spark.errors import AnonSparkError, ConfigurationError, GuaranteeViolated
from anon_spark.metrics.published import recoded_of
from anon_spark.metrics.recoded import summary
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.report import Check, Compared, Comparison
from anon_spark.risk import CoverRisk, cover_attack
from pipelines.audit import Standing
from pipelines.relational import RelationalPipeline
from pipelines.software import versions

Job = JobSpec | str | os.PathLike[str]


@dataclass(frozen=True)
class Candidate:
    """A release that stands, of a family that generalizes quasi-identifiers, and what to call it."""

    name: str
    standing: Standing
    steps: RelationalPipeline


def compare(jobs: Sequence[Job], spark: SparkSession, report: str | os.PathLike[str] | None = None) -> Comparison:
    """The releases of some job files (or jobs) side by side; `report` writes the page, with .json and .md beside it.

    Guarantee: fail closed. Jobs of other tables, versions, quasi-identifiers, hierarchies or null policies are refused
    before a row is read (ConfigurationError); a release that does not pass its audit is (GuaranteeViolated). Every measure
    is computed from the source, the published labels and the hierarchies, with the same code for every family.
    Cost: for each release its audit, two small jobs and a simulated attack; writes nothing but the report.
    """
    loaded = [job if isinstance(job, JobSpec) else load_job(Path(job)) for job in jobs]
    if len(loaded) < 2:
        raise ConfigurationError("compare needs at least two job files.")
    if report is not None:
        _refuse_place(os.fspath(report), loaded)
    candidates = _candidates(loaded, spark)
    for one, other in combinations(candidates, 2):
        _refuse_different(one, other)

    source = candidates[0].standing.source
    verdicts = [_verified(candidate) for candidate in candidates]
    scopes = {_rows_in_scope(_account(found)) for found in verdicts}
    if len(scopes) > 1:  # cannot be: same version, hierarchies and policies
        raise AnonSparkError(f"The audits of the releases find different numbers of rows in scope: {sorted(scopes)}.")
    hierarchies = candidates[0].steps.hierarchies_of(source.frame)
    measured = [_measured(*both, hierarchies) for both in zip(candidates, verdicts, strict=True)]
    attack = measured[0][1]
    found = Comparison(
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
        found.write(report)
    return found


# -- what is refused before a row is read ---------------------------------------------------------------------------


def _candidates(jobs: Sequence[JobSpec], spark: SparkSession) -> list[Candidate]:
    tables = [job.output.table for job in jobs]
    twice = [table for table, times in Counter(tables).items() if times > 1]
    if twice:
        raise ConfigurationError(f"output.table: {', '.join(twice)} is named by several jobs. Give each release once.")
    short = [table.rstrip("/").rpartition("/" if "/" in table else ".")[2] for table in tables]
    names = short if len(set(short)) == len(short) else tables
    return [_candidate(name, Standing.of(job, spark)) for name, job in zip(names, jobs, strict=True)]


def _candidate(name: str, standing: Standing) -> Candidate:
    job, steps, said = standing.job, standing.steps, standing.published.metadata
    if not isinstance(steps, RelationalPipeline):
        raise ConfigurationError(f"family {job.family}: only releases with generalized quasi-identifiers can be compared.")
    asked = {"family": job.family, "k": standing.steps.guarantee.k, "input_id": standing.source.table_id}
    other = [key for key, value in asked.items() if said.get(key) != value]
    if other:
        raise ConfigurationError(
            f"{job.output.table}: the release that stands was made with another {', '.join(other)} than the job says. Run "
            "the job again, or compare the job that made it."
        )
    return Candidate(name, standing, steps)


def _refuse_different(one: Candidate, other: Candidate) -> None:
    """Numbers of different tables, or in different hierarchies, say nothing about each other."""
    told = f"{one.name} and {other.name} cannot be compared"
    if _origin(one.standing) != _origin(other.standing):
        raise ConfigurationError(
            f"{told}: they come from different tables, or different versions of one "
            f"({_shown(one.standing)}; {_shown(other.standing)}). Run both jobs on one version."
        )
    mine, theirs = one.steps.hierarchies, other.steps.hierarchies
    if set(mine) != set(theirs):
        alone = sorted(set(mine) ^ set(theirs))
        raise ConfigurationError(f"{told}: columns.quasi_identifiers differ in {', '.join(alone)}.")
    unlike = [name for name in mine if mine[name].to_dict() != theirs[name].to_dict()]
    if unlike:
        raise ConfigurationError(f"{told}: they have different hierarchies of {', '.join(unlike)}.")
    if one.standing.job.nulls != other.standing.job.nulls:
        raise ConfigurationError(f"{told}: nulls is value in one job and suppress in the other, so their rows differ.")


def _origin(standing: Standing) -> Any:
    """What tells whether two releases have the same source; a format without versions is known by its place only."""
    source, spec = standing.source, standing.job.input
    same = (source.table_id, source.version) if source.table_id is not None else (spec.table, spec.format)
    return same, dict(spec.options)


def _shown(standing: Standing) -> str:
    source = standing.source
    return source.table if source.version is None else f"{source.table} at version {source.version}"


def _refuse_place(report: str, jobs: Sequence[JobSpec]) -> None:
    """A page that cannot be written, or that would lie in a table or replace a report of a run."""
    if is_uri(report):
        raise ConfigurationError("--report: a report is a file on the driver. Give a path without scheme.")
    page = Path(report).absolute()
    folder = next(parent for parent in page.parents if parent.exists())
    if page.is_dir() or page.suffix != ".html" or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigurationError(f"--report: {report} cannot be written. Give a path that ends in .html.")
    for job in jobs:
        for key, place in _places(job):
            found = relation(str(page), place)
            if found is not None:
                raise ConfigurationError(f"--report: {found} {key} of a job. Choose a place apart from it.")


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
    verdicts = candidate.standing.verify()
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if failed:
        raise GuaranteeViolated(
            f"{candidate.standing.job.output.table} does not pass its audit, nothing is compared. "
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
    standing, guarantee = candidate.standing, candidate.standing.steps.guarantee
    account, k = _account(verdicts), guarantee.k
    classes = next(found.facts for found in verdicts if found.name == f"{k}-anonymity" and found.facts["unit"] == "rows")
    recoded = recoded_of(standing.release, hierarchies, _rows_in_scope(account))
    if (recoded.classes, recoded.suppressed) != (classes["classes"], account["suppressed"]):
        raise AnonSparkError(f"{candidate.name}: the measures count other classes or rows than its audit.")
    attack = cover_attack(standing.source.frame, standing.release, hierarchies, rows=account["source"])
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
    said = standing.published.metadata
    compared = Compared(
        name=candidate.name,
        family=standing.job.family,
        table=standing.job.output.table,
        version=standing.published.version,
        run_id=str(said.get("run_id")),
        guarantee=str(guarantee),
        k=k,
        for_release=bool(said.get("for_release")),
        checks=[Check(v.name, v.passed, v.violations, v.detail) for v in verdicts],
        measures=measures,
    )
    return compared, attack
