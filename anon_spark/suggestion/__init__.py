"""Suggestions for a table that nobody has described yet: roles of the columns, hierarchies, a family, a job.

A suggestion is a start for a person, no decision: it sees names and values, not what others know of the people in the table.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from anon_spark.assessment import Assessment, assess
from anon_spark.errors import ConfigurationError, did_you_mean
from anon_spark.families.arguments import spark_frame
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.suggestion.families import SUPPRESSION, SuggestedFamily, suggested_family
from anon_spark.suggestion.hierarchies import SuggestedHierarchy, suggested_hierarchy
from anon_spark.suggestion.job_file import FOLDER, file_names, job_text
from anon_spark.suggestion.outlook import Expected, expected
from anon_spark.suggestion.page import SuggestionPage
from anon_spark.suggestion.profile import TableProfile, profile
from anon_spark.suggestion.roles import Role, Suggested, roles, with_roles

__all__ = ["Suggestion", "suggest"]

JOB, PAGE = "job.yaml", "profile.html"


@dataclass(frozen=True, repr=False)
class Suggestion:
    """What `suggest` found: a role with a reason for every column, hierarchies, a family, and a look at risk and loss.

    Private: profile, page and level tables contain values of the table.
    """

    profile: TableProfile
    columns: Sequence[Suggested]
    hierarchies: Mapping[str, SuggestedHierarchy]
    family: SuggestedFamily
    risk: Assessment | None = None
    outlook: Sequence[Expected] = ()

    @property
    def quasi_identifiers(self) -> dict[str, Hierarchy | Rule]:
        """The suggested hierarchies, as an anonymizer takes them."""
        names = [entry.name for entry in self.columns if entry.role == "quasi_identifier"]
        return {name: self.hierarchies[name].build() for name in names}

    def named(self, role: Role) -> list[str]:
        """The columns with a role."""
        return [entry.name for entry in self.columns if entry.role == role]

    def job_text(self, table: str = "warehouse.people", **source: Any) -> str:
        """The job file as text. table, and other keys of `input`, such as format: where the table is."""
        return job_text(self.columns, self.hierarchies, self.family, {"table": table, **source})

    def save(self, folder: str | Path, table: str, **source: Any) -> Path:
        """Write job.yaml, the level tables and profile.html into a folder; returns the job file.

        table and source as in `job_text`; a relative path is relative to the job file. A folder that has one already is refused.
        """
        target = Path(folder)
        job = target / JOB
        if job.exists():
            raise ConfigurationError(f"{job} is there already, and may have been edited. Choose another folder, or remove it.")
        files = file_names(self.hierarchies)
        try:
            target.mkdir(mode=0o700, parents=True, exist_ok=True)  # profile and level tables hold values of the table
            if files:
                (target / FOLDER).mkdir(exist_ok=True)
            for column, name in files.items():
                (target / FOLDER / name).write_text(_csv(self.hierarchies[column].rows or ()), encoding="utf-8")
            (target / PAGE).write_text(self.to_html(), encoding="utf-8")
            job.write_text(self.job_text(table, **source), encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"{target} cannot be written ({error.strerror}). Choose another folder.") from error
        return job

    def __repr__(self) -> str:
        """Names and numbers only, no value of the table."""
        quasi = ", ".join(self.named("quasi_identifier")) or "none"
        return (
            f"Suggestion({self.profile.rows:,} rows, {len(self.columns)} columns, family {self.family.name}, "
            f"quasi-identifiers: {quasi})"
        )

    def to_html(self) -> str:
        """The page of the profile. It contains values of the table."""
        return self._page.to_html()

    def _repr_html_(self) -> str:
        return self._page._repr_html_()

    @property
    def _page(self) -> SuggestionPage:
        return SuggestionPage(self.profile, self.columns, self.hierarchies, self.family, self.risk, self.outlook)


def suggest(
    df: DataFrame,
    *,
    quasi: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
    keep: Sequence[str] = (),
    identifiers: Sequence[str] = (),
    person: str | None = None,
    family: str | None = None,
    k: int | None = None,
    look_ahead: bool = True,
    profiled: TableProfile | None = None,
) -> Suggestion:
    """Roles, hierarchies and a job for a table. What you name has the role that you say; of the rest, roles are suggested.

    quasi: exactly these are quasi-identifiers. look_ahead: also measure who can be singled out, and what would be lost at k = 5,
    10 and 50; profiled: the profile of the table, if it is known.
    Guarantee: no column that is unique in more than 1 % of the rows is suggested to be published unchanged.
    Cost: two reads of the table; with look_ahead one assessment and one fit of the family lattice.
    """
    df = spark_frame(df)
    table = profiled or profile(df)
    wanted = _wanted(table, quasi, sensitive, keep, identifiers, person)
    suggested = with_roles(roles(table), wanted)
    if quasi is not None:
        suggested = [
            replace(entry, role="left_out", reason="not named among the quasi-identifiers")
            if entry.role == "quasi_identifier" and entry.name not in wanted else entry
            for entry in suggested
        ]  # fmt: skip
    suggested, hierarchies = _with_hierarchies(suggested, set(wanted))
    chosen = suggested_family(table, suggested, hierarchies, family, k)
    suggested = [_unnamed(entry, chosen) for entry in suggested]
    found = Suggestion(table, suggested, hierarchies, chosen)
    if not look_ahead or not found.quasi_identifiers:
        return found
    names, who = list(found.quasi_identifiers), next(iter(found.named("person")), None)
    risk = assess(df, names, [name for name in found.named("sensitive") if _can_be_assessed(found, name)], who, name="The table")
    return replace(found, risk=risk, outlook=expected(df, found.quasi_identifiers, who, SUPPRESSION))


def _wanted(
    table: TableProfile,
    quasi: Sequence[str] | None,
    sensitive: Sequence[str],
    keep: Sequence[str],
    identifiers: Sequence[str],
    person: str | None,
) -> dict[str, Role]:
    named: dict[str, Role] = {}
    asked: Sequence[tuple[Role, Sequence[str]]] = (
        ("quasi_identifier", quasi or ()), ("sensitive", sensitive), ("keep", keep), ("identifier", identifiers),
        ("person", () if person is None else (person,)),
    )  # fmt: skip
    known = [column.name for column in table.columns]
    for role, columns in asked:
        if isinstance(columns, str):
            raise ConfigurationError(f"{role}: give a list of columns, such as ['age', 'sex'].")
        for name in columns:
            if name not in known:
                hint = did_you_mean(name, known)
                raise ConfigurationError(f"Columns not found: {name}.{hint} The table has: {', '.join(known)}.")
            if name in named:
                raise ConfigurationError(f"Column {name} has two roles: name it once.")
            named[name] = role
    return named


def _with_hierarchies(
    suggested: Sequence[Suggested], wanted: set[str]
) -> tuple[list[Suggested], dict[str, SuggestedHierarchy]]:
    """A hierarchy for every quasi-identifier and nested field; without one in sight it is left out, or gets value and *."""
    hierarchies: dict[str, SuggestedHierarchy] = {}
    kept = []
    for entry in suggested:
        if entry.role in ("quasi_identifier", "nested"):
            hierarchy = suggested_hierarchy(entry.column)
            if hierarchy is None and entry.name in wanted:
                hierarchy = SuggestedHierarchy({"top": True}, "each value as it is, or *")
            if hierarchy is None:
                reason = f"{entry.reason}, but its {entry.column.distinct:,} values need groups that only you can make"
                entry = replace(entry, role="left_out", reason=reason)
            else:
                hierarchies[entry.name] = hierarchy
        kept.append(entry)
    return kept, hierarchies


def _unnamed(entry: Suggested, family: SuggestedFamily) -> Suggested:
    """Columns that the chosen family does not name are left out."""
    if entry.role == "left_out" or entry.name in family.columns:
        return entry
    return replace(entry, role="left_out", reason=f"the family {family.name} publishes no such column ({entry.reason})")


def _can_be_assessed(found: Suggestion, name: str) -> bool:
    return found.profile.of(name).leaf.is_column


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = StringIO(newline="")
    csv.writer(text, delimiter=";", lineterminator="\n").writerows(rows)
    return text.getvalue()
