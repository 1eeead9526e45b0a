"""The page of a suggestion: what the table holds, what each column is suggested for, and the risk. Private: it shows values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anon_spark.assessment import Assessment
from anon_spark.model.findings import Finding
from anon_spark.report.formats import percent
from anon_spark.report.items import Check, Section, Table, Text
from anon_spark.report.page import Notice, Step, sections_dict
from anon_spark.report.rendered import Rendered
from anon_spark.suggestion.families import SuggestedFamily
from anon_spark.suggestion.hierarchies import SuggestedHierarchy
from anon_spark.suggestion.outlook import Expected
from anon_spark.suggestion.profile import ColumnProfile, TableProfile
from anon_spark.suggestion.roles import Role, Suggested

ROLES: Mapping[Role, str] = {
    "person": "person", "identifier": "identifier, never published", "quasi_identifier": "quasi-identifier",
    "sensitive": "sensitive, unchanged", "keep": "kept unchanged", "left_out": "not published", "items": "list of items",
    "nested": "nested value",
}  # fmt: skip
SHOWN = 3  # frequent values of a column
LONG = 24  # characters of a value that is shown


@dataclass(frozen=True)
class SuggestionPage(Rendered):
    """A suggestion as the renderers show it."""

    profile: TableProfile
    columns: Sequence[Suggested]
    hierarchies: Mapping[str, SuggestedHierarchy]
    family: SuggestedFamily
    risk: Assessment | None = None
    outlook: Sequence[Expected] = ()
    over: str = "anon-spark · a first look"
    promise: str = "What the suggested job would guarantee"
    covers: Sequence[str] = ()
    warnings: Sequence[str] = ()
    accounting: Mapping[str, int] = field(default_factory=dict)
    checked: str = ""
    checks: Sequence[Check] = ()
    about: str = "The table"
    in_words: Sequence[str] = ()
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.profile.rows:,} rows, {len(self.columns)} columns"

    @property
    def guarantee(self) -> str:
        return self.family.promise[:1].upper() + self.family.promise[1:]

    @property
    def not_covered(self) -> Sequence[str]:
        return (
            "A suggestion sees names and values. It does not know who knows what of your people: check every role.",
            "What is published unchanged (sensitive, kept) is not generalized; whoever knows it may find a row by it.",
        )

    @property
    def findings(self) -> Sequence[Finding]:
        found = []
        if self.risk is not None:
            found += [finding for finding in self.risk.findings if finding.level != "stop"]
        unsure = [entry.name for entry in self.columns if entry.confidence == "low"]
        if unsure:
            found.append(Finding("look", "unsure", f"We are not sure of {', '.join(unsure)}: look at these first."))
        return found

    @property
    def sections(self) -> Sequence[Section]:
        return [self._roles(), self._values(), *self._expected(), *(() if self.risk is None else self.risk.sections)]

    def steps(self) -> list[Step]:
        """None: a look is not timed."""
        return []

    def notices(self) -> list[Notice]:
        private = "This page shows values of the table. Keep it as private as the table itself."
        return [Notice("caution", "!", "Private: for the people who may see the table", private)]

    def particulars(self) -> list[tuple[str, str]]:
        return [("Rows", f"{self.profile.rows:,}"), ("Family", f"{self.family.name}: {self.family.why}")]

    def to_dict(self) -> dict[str, Any]:
        return {"rows": self.profile.rows, "family": self.family.name, "sections": sections_dict(self.sections)}

    def _roles(self) -> Section:
        rows = []
        for entry in self.columns:
            published = entry.role in ("quasi_identifier", "nested")
            hierarchy = self.hierarchies[entry.name].why if published and entry.name in self.hierarchies else ""
            rows.append([entry.name, _kind(entry.column), ROLES[entry.role], entry.confidence, entry.reason, hierarchy])
        unsure = [place for place, entry in enumerate(self.columns) if entry.confidence == "low"]
        table = Table("", ["column", "type", "suggested role", "confidence", "because", "hierarchy"], rows, marked=unsure)
        return Section("What each column is for", [table])

    def _values(self) -> Section:
        rows = [_described(entry.column) for entry in self.columns]
        alone = "rows with a value of their own"
        head = ["column", "type", "distinct values", "nulls", alone, "from – to", "most frequent", "notes"]
        return Section("What each column holds", [Table("", head, rows)])

    def _expected(self) -> list[Section]:
        if not self.outlook:
            return []
        names = list(self.outlook[0].levels)
        head = ["k", "loss, 0 to 1 (less is better)", "rows left out", *names]
        rows = [
            [entry.k, round(entry.loss, 3), entry.left_out, *(_level(*entry.levels[name]) for name in names)]
            for entry in self.outlook
        ]
        text = Text("", [
            "What a release with one level of detail per column (family lattice) would lose. Families that generalize each class "
            "by itself lose less. Levels: 0 is the value itself, the last is *."
        ])  # fmt: skip
        return [Section("What a release would look like", [text, Table("", head, rows)])]


def _level(level: int, height: int) -> str:
    return "lost" if level == height else "as it is" if level == 0 else f"level {level} of {height}"


def _described(column: ColumnProfile) -> list[Any]:
    ends = ""
    if column.is_number and column.least is not None:
        ends = f"{_number(column.least)} – {_number(column.greatest)}"
    elif column.is_day and column.first_day is not None:
        ends = f"{column.first_day} – {column.last_day}"
    frequent = ", ".join(f"{_short(value)} ({rows:,})" for value, rows in column.frequent(SHOWN))
    return [
        column.name, _kind(column), column.distinct, percent(column.null_share), percent(column.unique_share), ends, frequent,
        "; ".join(notes(column)),
    ]  # fmt: skip


def _kind(column: ColumnProfile) -> str:
    kind = column.leaf.kind.simpleString()
    return f"array<{kind}>" if column.leaf.arrays else kind


def notes(column: ColumnProfile) -> list[str]:
    """What a person should know of the values, without any of them."""
    found = []
    if column.spaced:
        found.append(f"spaces before or behind the value in {column.spaced:,} rows")
    if column.case_variants:
        found.append(f"{column.case_variants:,} values differ from another one in case or spaces only")
    if column.is_text and column.is_number:
        found.append("numbers stored as text")
    if column.is_mixed:
        found.append(f"numbers and words mixed: {column.filled - column.number:,} rows have words")
    if column.is_text and column.is_day:
        found.append("dates stored as text")
    if column.leading_zero and not column.is_postal:
        found.append("numbers with leading zeros: codes, no numbers")
    if column.null_lists:
        found.append(f"{column.null_lists:,} rows without a list")
    return found


def _number(number: float | None) -> str:
    return "" if number is None else f"{number:.0f}" if number == int(number) else f"{number:.6g}"


def _short(value: str) -> str:
    return value if len(value) <= LONG else value[: LONG - 1] + "…"
