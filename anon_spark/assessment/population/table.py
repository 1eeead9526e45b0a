"""Journalist risk against a table of the whole population: crowds there are counted, nothing is estimated."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.assessment.question import Question
from anon_spark.assessment.reading import tuple_hash
from anon_spark.columns import PREFIX, ROWS
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.primitives.tables import require_columns

KEY, THERE = PREFIX + "key", PREFIX + "there"


@dataclass(frozen=True)
class CountedPopulation:
    """Crowds of the table's rows in the population.

    size: rows of the population; unique: how many of them are alone there; unique_rows: rows of the table that are.
    """

    size: int
    highest_chance: float
    average_chance: float
    unique: int
    unique_rows: int


def counted_population(df: DataFrame, population: DataFrame, question: Question) -> CountedPopulation:
    """The chances of the table's rows among the rows of the population that have the same quasi-identifiers.

    Raises ConfigurationError where the population lacks a column or has it with another type, DataError where it lacks a
    combination of the table. Cost: one job, a shuffle of both tables aggregated to their distinct tuples.
    """
    require_columns(population, question.quasi)
    for name in question.quasi:
        kind, other = df.schema[name].dataType, population.schema[name].dataType
        if kind != other:
            raise ConfigurationError(
                f"population: column {name} is {other.simpleString()} there and {kind.simpleString()} in the table. Cast one."
            )
    rows, people = (
        frame.select(tuple_hash(frame, question.quasi).alias(KEY)).groupBy(KEY).agg(F.count(F.lit(1)).alias(name))
        for frame, name in ((df, ROWS), (population, THERE))
    )
    here, there, none = F.coalesce(ROWS, F.lit(0)), F.coalesce(THERE, F.lit(0)), F.lit(0).cast("bigint")
    found = (
        people.join(rows, KEY, "full")
        .agg(
            F.coalesce(F.sum(there), none).alias("size"),
            F.sum(here).alias("rows"),
            F.coalesce(F.sum(F.when(there == 0, here)), none).alias("missing"),
            F.min(F.when((here > 0) & (there > 0), there)).alias("fewest"),
            F.sum(F.when(there > 0, here / there)).alias("chances"),
            F.coalesce(F.sum(F.when(there == 1, F.lit(1))), none).alias("unique"),
            F.coalesce(F.sum(F.when(there == 1, here)), none).alias("unique_rows"),
        )
        .toArrow()
        .to_pylist()[0]
    )
    if found["missing"]:
        raise DataError(
            f"population: {found['missing']:,} of {found['rows']:,} rows have quasi-identifiers that nobody there has. Everybody "
            "in the table must be in the population, with values written in the same way.",
            rows=found["missing"],
        )
    average = float(found["chances"]) / int(found["rows"])
    return CountedPopulation(found["size"], 1 / found["fewest"], average, found["unique"], found["unique_rows"])
