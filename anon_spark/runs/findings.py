"""Findings of a run and of a plan: what a person should see although every check passed, and what a job's limits refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from anon_spark.auditing import Dependency, RowAccount, Verdict
from anon_spark.auditing.release.dependencies import dependencies_to_be
from anon_spark.config import LimitsSpec
from anon_spark.errors import FindingRefused
from anon_spark.families.contract import Pipeline, Shown, Worth
from anon_spark.model.facts import Facts
from anon_spark.model.findings import LITTLE_LEFT, UNIQUE_COLUMN, UNIQUE_ROWS, Finding, by_level, of_level
from anon_spark.pending import Pending, together
from anon_spark.risk import Uniqueness
from anon_spark.risk.look_up.uniqueness import unique_rows_to_be
from anon_spark.runs.series.increment import Waiting


def dependencies(
    steps: Pipeline[Any, Any, Any], source: DataFrame, rows: int, small: bool = False
) -> Pending[list[Dependency]]:
    """Unchanged columns that determine a quasi-identifier. small: as in `dependencies_to_be`. Cost: as `find_dependencies`."""
    shown = steps.shown
    if not shown.quasi_identifiers:
        return Pending.known([])
    return dependencies_to_be(source, shown.unchanged, list(shown.quasi_identifiers), rows, small)


def unique_published(
    steps: Pipeline[Any, Any, Any], rows: DataFrame, person: str | None
) -> Pending[list[Uniqueness]]:
    """Uniqueness of the rows of a release on what is published of them beside sensitive values, and on each unchanged column.

    rows: the release; where persons have several rows, with the column `person` that tells whose they are.
    Cost: one job, none where nothing is published unchanged.
    """
    shown = steps.shown
    return unique_rows_to_be(rows, _column_sets(shown, [*shown.relational, *shown.kept]), person)


def planned_findings(
    steps: Pipeline[Any, Any, Any], source: DataFrame, rows: int, limits: LimitsSpec | None, small: bool = False
) -> list[Finding]:
    """Findings before a fit: uniqueness of unchanged columns and dependencies, of the rows of the source.

    Rows that are unique on the kept columns alone stay so whatever is generalized. Cost: up to three jobs.
    """
    shown = steps.shown
    counted, depending = together(
        unique_rows_to_be(source, _column_sets(shown, [*shown.kept]), shown.person), dependencies(steps, source, rows, small)
    ).get()
    findings = [*_unique(shown, counted, shown.kept, "at least "), *map(_dependency, depending)]
    return by_level([*findings, *exceeded(findings, limits)])


def run_findings(
    steps: Pipeline[Any, Any, Any],
    facts: Facts,
    account: RowAccount,
    warnings: Sequence[str],
    unique: Sequence[Uniqueness],
    depending: Sequence[Dependency],
    limits: LimitsSpec | None,
) -> list[Finding]:
    """Findings on a staged release that passed every check, the gravest first; an exceeded limit is a stop.

    unique: what `unique_published` counted. Cost: none.
    """
    shown = steps.shown
    published = [*shown.relational, *shown.kept]
    findings = [
        *_unique(shown, unique, published),
        *map(_dependency, depending),
        *_left(steps.worth(facts)),
        *steps.attacks(facts),
        *_homogeneous(steps.homogeneous(facts)),
        *(Finding("look" if text in steps.grave else "note", "family", text) for text in warnings),
        *_left_out(account),
    ]
    # a loss that is only a note is in every report anyway
    shown_notes = [finding for finding in findings if finding.kind != "loss" or finding.level != "note"]
    return by_level([*exceeded(findings, limits), *shown_notes])


def exceeded(findings: Sequence[Finding], limits: LimitsSpec | None) -> list[Finding]:
    """A stop for every limit of the job that a finding exceeds."""
    stops = []
    for name, limit in (() if limits is None else limits):
        measured = [finding for finding in findings if finding.kind == name and finding.share is not None]
        most = max(measured, key=_share, default=None)
        if limit is not None and most is not None and _share(most) > limit:
            stops.append(Finding("stop", f"limits.{name}", f"limits.{name} allows {limit:g}. {most.text}", most.share))
    return stops


def require_within(findings: Sequence[Finding]) -> None:
    """The second gate: refuse a release that exceeds the job's limits."""
    stops = of_level(findings, "stop")
    if stops:
        texts = " ".join(finding.text for finding in stops)
        raise FindingRefused(
            f"The release passed every check but shows more than the job allows, nothing was published. {texts} "
            "Or raise the limit in the job file.",
            findings=[finding.kind for finding in stops],
        )


def failed_checks(verdicts: Sequence[Verdict]) -> list[Finding]:
    """A stop for every check that a release failed."""
    return [Finding("stop", "check", f"{verdict.name}: {verdict.detail}") for verdict in verdicts if not verdict.passed]


def drawn_before(texts: Sequence[str]) -> list[Finding]:
    return [Finding("look", "drawn_before", text) for text in texts]


def of_waiting(waiting: Waiting) -> list[Finding]:
    """A note where there are enough people, but no release of them alone keeps the promise."""
    if not waiting.by_family:
        return []
    text = f"{waiting.facts.new:,} people wait, because no release of them alone keeps the promise. {waiting}"
    return [Finding("note", "waiting", text)]


def of_input(texts: Sequence[str]) -> list[Finding]:
    return [Finding("note", "input", text) for text in texts]


def recognised(metadata: Mapping[str, Any]) -> list[Finding]:
    """Findings on a recognised release: how many `look` findings its run had, as its commit says."""
    looks, run = metadata.get("look"), metadata.get("run_id")
    if looks == 0:
        return []
    looked = "did not look for findings" if looks is None else f"had {looks} findings to look at"
    text = f"Run {run}, which published this release, {looked}: see its report, or its row in the run log."
    return [Finding("look", "earlier_run", text)]


def _share(finding: Finding) -> float:
    return 0.0 if finding.share is None else finding.share


def _column_sets(shown: Shown, together: Sequence[str]) -> list[list[str]]:
    """Column sets for uniqueness: all columns, where something is kept (else k covers them), then each unchanged one."""
    return [*([list(together)] if shown.kept else []), *([name] for name, _ in shown.single)]


def _unique(
    shown: Shown, counted: Sequence[Uniqueness], together: Sequence[str], at_least: str = ""
) -> Iterator[Finding]:
    rarity = "one person's alone" if shown.person else "in no other row"
    alone = dict(zip(shown.single, counted[-len(shown.single) :] if shown.single else (), strict=True))
    if shown.kept:
        share = counted[0].share
        worst = max(shown.kept, key=lambda name: alone[name, "kept"].share)
        text = (
            f"{at_least}{share:.1%} of the rows are unique on the published columns that are not sensitive "
            f"({', '.join(together)}): whoever knows these values of a person finds the row. Round or leave out what is kept, "
            f"or make it a quasi-identifier; {worst} singles out most."
        )
        if share:
            yield Finding("look" if share > UNIQUE_ROWS else "note", "unique", text[:1].upper() + text[1:], share)
    for (name, role), column in alone.items():
        if column.share > UNIQUE_COLUMN:
            text = (
                f"Column {name}, which is {role}, has a value that is {rarity} in {column.share:.1%} of the rows: whoever knows "
                "it finds the row, whatever was generalized. Round it, or leave it out."
            )
            yield Finding("look", "column_unique", text, column.share)


def _dependency(dependency: Dependency) -> Finding:
    return Finding("look", "dependency", str(dependency))


def _left(worth: Worth) -> Iterator[Finding]:
    if worth.everything:
        yield Finding(
            "look", "nothing_left", "Every quasi-identifier is on its top level: nothing is left to learn from them. Lower k, "
            "allow more suppression, or name fewer quasi-identifiers.",
        )  # fmt: skip
    elif worth.lost:
        yield Finding("note", "lost_columns", f"Nothing is left of {', '.join(worth.lost)}: on the top level in every row.")
    if worth.loss is not None:
        text = f"{worth.measure} is {worth.loss:.4f}"
        more = ": hardly anything is left to learn. Lower k, or give finer hierarchies." if worth.loss > LITTLE_LEFT else "."
        yield Finding("look" if worth.loss > LITTLE_LEFT else "note", "loss", f"{text[:1].upper()}{text[1:]}{more}", worth.loss)
    if worth.poor:
        text = f"Counts are further off than saying nothing would be: {', '.join(worth.poor)}. Do not count so on the release."
        yield Finding("look", "poor_counts", text)


def _homogeneous(shares: Mapping[str, float]) -> Iterator[Finding]:
    for name, share in shares.items():
        if share:
            text = (
                f"{share:.1%} of the rows are in classes with one value of {name}: it is known without finding the row. "
                "Raise k, or ask for privacy.l where the family has it."
            )
            yield Finding("note", "homogeneous", text, share)


def _left_out(account: RowAccount) -> Iterator[Finding]:
    missing = account.source - account.published
    if missing > 0:
        share = missing / account.source
        yield Finding("note", "left_out", f"{missing:,} of {account.source:,} rows ({share:.1%}) are not in the release.", share)
