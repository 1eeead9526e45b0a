"""Assessments as values that show themselves: JSON, Markdown, one HTML page, and in notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from anon_spark.assessment.facts import RiskFacts
from anon_spark.assessment.population.estimates import NOT_COVERED
from anon_spark.assessment.sections import sections_of
from anon_spark.model.findings import UNIQUE_ROWS, Finding
from anon_spark.report.formats import listed, percent, plain, show
from anon_spark.report.items import Check, Section
from anon_spark.report.page import Notice, Step, sections_dict, steps_of
from anon_spark.report.rendered import Rendered

FORMAT = 1  # of the JSON; raised when a key changes its meaning or goes
HOMOGENEOUS = 0.01  # share of rows in classes with one sensitive value, above which it is to be looked at
LIMITS = (
    "Only the columns that were named are looked at. Whoever knows another column of the table as well finds smaller crowds.",
    "Values are compared as they are written. An attacker who knows a value roughly, or a false one, is not measured; nor is "
    "what a release still tells that replaces values by made-up ones.",
    "These are measurements, no promise: another table of the same people may be put together with this one.",
)


class RiskPage(Rendered, ABC):
    """What the renderers show of one assessment or of two."""

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, RiskFacts]:
        """The numbers, by name of the table."""

    @property
    @abstractmethod
    def title(self) -> str: ...

    @property
    @abstractmethod
    def timings(self) -> Mapping[str, float]: ...

    @abstractmethod
    def to_dict(self) -> dict[str, Any]: ...

    @abstractmethod
    def particulars(self) -> list[tuple[str, str]]: ...

    @property
    def over(self) -> str:
        return "anon-spark · risk"

    @property
    def in_words(self) -> Sequence[str]:
        return ()

    def steps(self) -> list[Step]:
        """The timings, and what they are together."""
        return steps_of(self.timings)

    @property
    def promise(self) -> str:
        return ""

    @property
    def guarantee(self) -> str:
        return ""

    @property
    def covers(self) -> Sequence[str]:
        return ()

    @property
    def not_covered(self) -> Sequence[str]:
        estimated = any(facts.population is not None for facts in self.tables.values())
        return (*LIMITS, *(NOT_COVERED if estimated else ()))

    @property
    def warnings(self) -> Sequence[str]:
        """What could not be measured, and why."""
        several = len(self.tables) > 1
        return [f"{name}: {text}" if several else text for name, facts in self.tables.items() for text in facts.left_out]

    @property
    def findings(self) -> Sequence[Finding]:
        """What a person should look at in the last table: the one that might be handed out."""
        return findings_of(list(self.tables.values())[-1])

    @property
    def accounting(self) -> Mapping[str, int]:
        return {}

    @property
    def checked(self) -> str:
        return ""

    @property
    def checks(self) -> Sequence[Check]:
        return ()

    @property
    def sections(self) -> Sequence[Section]:
        return sections_of(self.tables)

    @property
    def about(self) -> str:
        return "The measurement"

    def notices(self) -> list[Notice]:
        """The risk in one sentence."""
        facts = list(self.tables.values())[-1]
        caution = any(finding.level == "look" for finding in self.findings)
        headline = f"{percent(facts.look_up.unique_share)} of the rows are unique"
        return [Notice("caution" if caution else "neutral", "!" if caution else "○", headline, facts.sentence())]


@dataclass(frozen=True, kw_only=True)
class Assessment(RiskPage):
    """The measured risk of one table; `facts` has every number."""

    name: str
    facts: RiskFacts
    made: datetime
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)

    @property
    def tables(self) -> Mapping[str, RiskFacts]:
        return {self.name: self.facts}

    @property
    def title(self) -> str:
        return f"Risk of {self.name}"

    @property
    def timings(self) -> Mapping[str, float]:
        return self.seconds

    def to_dict(self) -> dict[str, Any]:
        """Everything but the drawings, as JSON types."""
        fields = {"format": FORMAT, "table": self.name, "made": plain(self.made), "seconds": plain(self.seconds)}
        return {**fields, "facts": plain(self.facts), "sections": sections_dict(self.sections)}

    def particulars(self) -> list[tuple[str, str]]:
        return [("Table", self.name), *_columns(self.facts), ("Measured", show(self.made))]

    def beside(self, release: Assessment) -> BeforeAndAfter:
        """This table and a release of it, side by side."""
        return BeforeAndAfter(before=self, after=release)


@dataclass(frozen=True, kw_only=True)
class BeforeAndAfter(RiskPage):
    """The measured risk of a table and of a release of it, on the same columns."""

    before: Assessment
    after: Assessment

    @property
    def tables(self) -> Mapping[str, RiskFacts]:
        return {"before": self.before.facts, "after": self.after.facts}

    @property
    def title(self) -> str:
        return f"Risk of {self.before.name}, and of {self.after.name} made from it"

    @property
    def timings(self) -> Mapping[str, float]:
        both = (("before", self.before), ("after", self.after))
        return {f"{name}: {step}": seconds for name, one in both for step, seconds in one.seconds.items()}

    def to_dict(self) -> dict[str, Any]:
        """Everything but the drawings, as JSON types."""
        both = {name: {**one.to_dict(), "sections": []} for name, one in (("before", self.before), ("after", self.after))}
        return {"format": FORMAT, **both, "sections": sections_dict(self.sections)}

    def particulars(self) -> list[tuple[str, str]]:
        named = [("Before", self.before.name), ("After", self.after.name)]
        return [*named, *_columns(self.after.facts), ("Measured", show(self.after.made))]


def findings_of(facts: RiskFacts) -> list[Finding]:
    """Observations about a table: unique rows, classes that give a value away, nulls, estimates that cannot be relied on."""
    found = []
    if facts.look_up.unique_share > UNIQUE_ROWS:
        share = facts.look_up.unique_share
        text = f"{percent(share)} of the rows are unique on {listed(facts.quasi)}: whoever knows these values finds the person."
        found.append(Finding("look", "unique", text, share))
    for one in facts.disclosure:
        if one.one_value_share > HOMOGENEOUS:
            text = f"{percent(one.one_value_share)} of the rows are in classes with one value of {one.column}."
            found.append(Finding("look", "homogeneous", text, one.one_value_share))
    population = facts.population
    if population is not None and not population.uniques.holds:
        text = (
            "The estimate of uniques of the population cannot be relied on: it failed the trial on the table itself, or the "
            "table is too small."
        )
        found.append(Finding("note", "estimate", text))
    return found


def _columns(facts: RiskFacts) -> list[tuple[str, str]]:
    rows = [
        ("Quasi-identifiers", ", ".join(facts.quasi)),
        ("Sensitive columns", ", ".join(facts.sensitive)),
        ("Person", facts.person or ""),
    ]
    return [(name, text) for name, text in rows if text]
