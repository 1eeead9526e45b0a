"""The numbers of an assessment."""

from __future__ import annotations

from dataclasses import dataclass

from anon_spark.assessment.column_sets import ColumnSets
from anon_spark.assessment.disclosure import Disclosure
from anon_spark.assessment.population import PopulationFacts
from anon_spark.assessment.population.table import CountedPopulation
from anon_spark.assessment.sizes import LookUpFacts
from anon_spark.report.formats import listed, percent


@dataclass(frozen=True)
class RiskFacts:
    """What a table tells an attacker who knows the quasi-identifiers of a person. Counts and shares only, no value.

    people: rows, or distinct persons where a column of them is named; look_up: by class on all quasi-identifiers, null being a
    value; null_rows: with a null among them; wildcards: the same look-up if a null agreed with every value, None where no row has
    one or it was left out; population: None if its size was not given; counted_population: None if no table of it was given;
    column_sets: None if they were not asked for; disclosure: one for each sensitive column; left_out: what could not be
    measured, and why.
    """

    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    person: str | None
    people: int
    look_up: LookUpFacts
    null_rows: int
    wildcards: LookUpFacts | None
    population: PopulationFacts | None
    counted_population: CountedPopulation | None
    column_sets: ColumnSets | None
    disclosure: tuple[Disclosure, ...]
    left_out: tuple[str, ...]

    @property
    def unit(self) -> str:
        """What a class counts."""
        return "rows" if self.person is None else "persons"

    def sentence(self) -> str:
        """The risk in one sentence."""
        known = listed(self.quasi)
        alone, least = self.look_up.unique_share, self.look_up.smallest_class
        if not alone:
            return f"Whoever knows {known} of a person finds at least {least:,} {self.unit}."
        return f"Whoever knows {known} of a person finds one person only in {percent(alone)} of the rows."
