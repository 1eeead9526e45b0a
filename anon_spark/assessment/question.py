"""What is asked of a table: its columns by role and the size of its population, checked before a row is read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from anon_spark.auditing.reading.values import not_comparable
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.primitives.tables import require_columns

MOST_COLUMNS = 60  # a set of columns is a mask of one long


@dataclass(frozen=True)
class Question:
    """The columns an attacker may know, sensitive ones, that of persons, and the population: its size, or the fraction drawn."""

    quasi: tuple[str, ...]
    sensitive: tuple[str, ...] = ()
    person: str | None = None
    population: float | None = None

    def fraction(self, records: int) -> float | None:
        """The sampling fraction of a table with so many people; None without a population. Raises where it has fewer people."""
        if self.population is None or self.population <= 1:
            return self.population
        if self.population < records:
            raise DataError(
                f"population: {self.population:,.0f} people are fewer than the {records:,} of the table. Give the number of "
                "people that the table was drawn from.",
                records=records,
            )
        return records / self.population


def question_of(
    df: DataFrame, quasi: Sequence[str], sensitive: Sequence[str], person: str | None, population: float | None
) -> Question:
    """The question, if it fits the table. Raises ConfigurationError. Cost: none, reads the schema."""
    if not isinstance(df, DataFrame):
        raise ConfigurationError(
            f"df: a Spark DataFrame is needed, not {type(df).__name__}. Use spark.createDataFrame(…) or spark.read."
        )
    for name, names in (("quasi", quasi), ("sensitive", sensitive)):
        if isinstance(names, str) or not all(isinstance(column, str) for column in names):
            raise ConfigurationError(f"{name}: give a list of columns, such as ['age', 'sex'].")
    if not quasi:
        raise ConfigurationError("quasi: name at least one column that somebody may know of a person, such as age or zip.")
    if len(quasi) > MOST_COLUMNS:
        raise ConfigurationError(f"quasi: {len(quasi)} columns, at most {MOST_COLUMNS} can be looked at. Leave some out.")
    _refuse_two_roles(quasi, sensitive, person)
    named = [*quasi, *sensitive, *([person] if person is not None else [])]
    require_columns(df, named)
    for name in named:
        if df.columns.count(name) > 1:
            raise ConfigurationError(f"Column {name}: the table has several columns of this name. Rename all but one.")
        if not_comparable(df.schema[name].dataType):
            raise ConfigurationError(f"Column {name}: a map or variant has no equality. Turn it into an array or a text.")
    return Question(tuple(quasi), tuple(sensitive), person, _population(population))


def _refuse_two_roles(quasi: Sequence[str], sensitive: Sequence[str], person: str | None) -> None:
    for role, names in (("quasi", quasi), ("sensitive", sensitive)):
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            raise ConfigurationError(f"{role}: {', '.join(twice)} is named twice. Name each column once.")
    both = [name for name in sensitive if name in quasi]
    if both:
        raise ConfigurationError(
            f"sensitive: {', '.join(both)} is in quasi already. A column is known to an attacker, or it is what nobody should "
            "learn."
        )
    if person is not None and person in (*quasi, *sensitive):
        raise ConfigurationError(f"person: {person} is in quasi or sensitive already. It tells persons apart, nothing else.")


def _population(population: float | None) -> float | None:
    if population is None:
        return None
    if isinstance(population, bool) or not isinstance(population, int | float):
        raise ConfigurationError("population: give the fraction that the table is, such as 0.1, or a number of people.")
    if not math.isfinite(population) or population <= 0:
        raise ConfigurationError("population: must be above 0: a fraction up to 1, or a number of people.")
    if population > 1 and population != int(population):
        raise ConfigurationError("population: a number of people is whole; a fraction is at most 1.")
    return float(population)
