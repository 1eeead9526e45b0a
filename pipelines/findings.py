"""Findings of a run and of a plan: what a person should see although every check passed, and what a job's limits refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame

from anon_spark.audit import Dependency, RowAccount, Verdict, find_dependencies
from anon_spark.config import LimitsSpec
from anon_spark.errors import FindingRefused
from anon_spark.model.findings import LITTLE_LEFT, UNIQUE_COLUMN, UNIQUE_ROWS, Finding, by_level, of_level
from anon_spark.risk import Uniqueness, unique_rows


@dataclass(frozen=True)
class Shown:
    """What a release of a family shows, by what may be known of it.

    quasi_identifiers: columns of the source that are generalized and can be compared with unchanged ones; relational: published
    columns that are neither sensitive nor unchanged, items and paths aside; kept, sensitive: columns that are published
    unchanged; person: the source's column of persons, where one may have several rows.
    """

    quasi_identifiers: tuple[str, ...] = ()
    relational: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    person: str | None = None

    @property
    def unchanged(self) -> list[str]:
        return [*self.sensitive, *self.kept]

    @property
    def single(self) -> list[tuple[str, str]]:
        """(column, what it is) of every unchanged column."""
        return [*((name, "kept") for name in self.kept), *((name, "sensitive") for name in self.sensitive)]


@dataclass(frozen=True)
class Worth:
    """What is left to learn from a release.

    loss: by the family's measure, from 0 to 1, and what that is; lost: columns of which nothing is left; everything: whether
    that is all there were; poor: kinds of counts whose error is above that of saying nothing.
    """

    loss: float | None
    measure: str
    lost: tuple[str, ...] = ()
    everything: bool = False
    poor: tuple[str, ...] = ()


class Described(Protocol):
    """What findings ask of a family's pipeline."""

    @property
    def shown(self) -> Shown: ...
    @property
    def grave(self) -> frozenset[str]:
        """Texts of the recoding's warnings that are looks; the others are notes."""

    def worth(self, facts: Mapping[str, Any]) -> Worth: ...
    def attacks(self, facts: Mapping[str, Any]) -> list[Finding]: ...


def dependencies(steps: Described, source: DataFrame, rows: int | None) -> list[Dependency]:
    """Unchanged columns that give a quasi-identifier back. Cost: as `find_dependencies`."""
    shown = steps.shown
    return find_dependencies(source, shown.unchanged, list(shown.quasi_identifiers), rows) if shown.quasi_identifiers else []


def planned_findings(steps: Described, source: DataFrame, rows: int, limits: LimitsSpec | None) -> list[Finding]:
    """What can be known before a fit: uniqueness of unchanged columns and dependencies, of the rows of the source.

    Rows that are unique on the kept columns alone stay so whatever is generalized. Cost: up to three jobs.
    """
    shown = steps.shown
    counted = unique_rows(source, _column_sets(shown, [*shown.kept]), shown.person)
    found = [*_unique(shown, counted, shown.kept, "at least "), *map(_dependency, dependencies(steps, source, rows))]
    return by_level([*found, *exceeded(found, limits)])


def run_findings(
    steps: Described,
    rows: DataFrame,
    person: str | None,
    facts: Mapping[str, Any],
    account: RowAccount,
    warnings: Sequence[str],
    depending: Sequence[Dependency],
    limits: LimitsSpec | None,
) -> list[Finding]:
    """What was found in a staged release that passed every check, the gravest first; a limit that is exceeded is a stop.

    rows: the release; where persons have several rows, with the column `person` that tells whose they are.
    Cost: one job, none where nothing is published unchanged.
    """
    shown = steps.shown
    published = [*shown.relational, *shown.kept]
    found = [
        *_unique(shown, unique_rows(rows, _column_sets(shown, published), person), published),
        *map(_dependency, depending),
        *_left(steps.worth(facts)),
        *steps.attacks(facts),
        *_homogeneous(facts),
        *(Finding("look" if text in steps.grave else "note", "family", text) for text in warnings),
        *_left_out(account),
    ]
    shown_notes = [one for one in found if one.kind != "loss" or one.level != "note"]  # reports tell every loss anyway
    return by_level([*exceeded(found, limits), *shown_notes])


def exceeded(found: Sequence[Finding], limits: LimitsSpec | None) -> list[Finding]:
    """A stop for every limit of the job that a finding exceeds."""
    stops = []
    for name, limit in (() if limits is None else limits):
        most = max((one for one in found if one.kind == name and one.share is not None), key=_share, default=None)
        if limit is not None and most is not None and _share(most) > limit:
            stops.append(Finding("stop", f"limits.{name}", f"limits.{name} allows {limit:g}. {most.text}", most.share))
    return stops


def require_within(found: Sequence[Finding]) -> None:
    """The second gate: what the job's limits do not allow is not published."""
    stops = of_level(found, "stop")
    if stops:
        told = " ".join(finding.text for finding in stops)
        raise FindingRefused(
            f"The release passed every check but shows more than the job allows, nothing was published. {told} "
            "Or raise the limit in the job file.",
            findings=[finding.kind for finding in stops],
        )


def failed_checks(verdicts: Sequence[Verdict]) -> list[Finding]:
    """A stop for every check that a release failed."""
    return [Finding("stop", "check", f"{one.name}: {one.detail}") for one in verdicts if not one.passed]


def drawn_before(texts: Sequence[str]) -> list[Finding]:
    return [Finding("look", "drawn_before", text) for text in texts]


def of_input(texts: Sequence[str]) -> list[Finding]:
    return [Finding("note", "input", text) for text in texts]


def recognised(metadata: Mapping[str, Any]) -> list[Finding]:
    """Of a release that was published before: the run that made it counted its looks in the commit."""
    looks, run = metadata.get("look"), metadata.get("run_id")
    if looks == 0:
        return []
    seen = "did not look for findings" if looks is None else f"had {looks} findings to look at"
    text = f"Run {run}, which published this release, {seen}: see its report, or its row in the run log."
    return [Finding("look", "earlier_run", text)]


def _share(finding: Finding) -> float:
    return 0.0 if finding.share is None else finding.share


def _column_sets(shown: Shown, together: Sequence[str]) -> list[list[str]]:
    """What uniqueness is counted on: all at once, where something is kept (k covers the others), then each unchanged one."""
    return [*([list(together)] if shown.kept else []), *([name] for name, _ in shown.single)]


def _unique(
    shown: Shown, counted: Sequence[Uniqueness], together: Sequence[str], at_least: str = ""
) -> Iterator[Finding]:
    one = "one person's alone" if shown.person else "in no other row"
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
                f"Column {name}, which is {role}, has a value that is {one} in {column.share:.1%} of the rows: whoever knows it "
                "finds the row, whatever was generalized. Round it, or leave it out."
            )
            yield Finding("look", "column_unique", text, column.share)


def _dependency(found: Dependency) -> Finding:
    return Finding("look", "dependency", str(found))


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


def _homogeneous(facts: Mapping[str, Any]) -> Iterator[Finding]:
    shares = (facts.get("risk") or {}).get("sensitive_value_shared_by_whole_class") or {}
    for name, share in shares.items():
        if share:
            text = (
                f"{share:.1%} of the rows are in classes with one value of {name}: it is known without finding the row. "
                "Raise k, or use family mst with privacy.l."
            )
            yield Finding("note", "homogeneous", text, share)


def _left_out(account: RowAccount) -> Iterator[Finding]:
    missing = account.source - account.published
    if missing > 0:
        share = missing / account.source
        yield Finding("note", "left_out", f"{missing:,} of {account.source:,} rows ({share:.1%}) are not in the release.", share)
