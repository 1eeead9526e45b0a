"""A population beside the table: its rows counted by tuple, for k-map and δ-presence."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import POPULATION, ROWS, quoted
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.kernels.tuples import TupleTable


def with_population(keyed: DataFrame, population: DataFrame, names: Sequence[str]) -> DataFrame:
    """The rows of both tables, marked by ROWS and POPULATION; columns that the population lacks are null. No action."""
    other = [name for name in names if keyed.schema[name].dataType != population.schema[name].dataType]
    if other:
        raise ConfigurationError(
            f"population.columns: {', '.join(other)} of the population cannot be compared with the table's: one is a number, the "
            "other is none. Give both one type."
        )
    mine = keyed.select("*", F.lit(1).cast("bigint").alias(ROWS), F.lit(0).cast("bigint").alias(POPULATION))
    rows = population.select(*map(quoted, names), F.lit(0).cast("bigint").alias(ROWS), F.lit(1).cast("bigint").alias(POPULATION))
    return mine.unionByName(rows, allowMissingColumns=True)


def refuse_missing(table: TupleTable) -> None:
    """Refuse combinations of the table that the population lacks, where there is one."""
    if table.population is not None:
        missing = (table.population == 0) & (table.rows > 0)
        _refuse(int(missing.sum()), int(table.rows[missing].sum()))


def refuse_missing_in(frame: DataFrame, codes: Sequence[str]) -> None:
    """As `refuse_missing`, of tuples in files. Cost: one job."""
    tuples = frame.groupBy(*codes).agg(F.sum(ROWS).alias(ROWS), F.sum(POPULATION).alias(POPULATION))
    missing = tuples.where((F.col(POPULATION) == 0) & (F.col(ROWS) > 0))
    found = missing.agg(F.count(F.lit(1)), F.coalesce(F.sum(ROWS), F.lit(0))).first()
    assert found is not None
    _refuse(int(found[0]), int(found[1]))


def _refuse(combinations: int, rows: int) -> None:
    if combinations:
        raise DataError(
            f"population: {combinations:,} combinations of quasi-identifiers ({rows:,} rows of the table) are not in the "
            "population. Everybody in the table must be in it: give the whole population, or leave those rows out.",
            combinations=combinations, rows=rows,
        )  # fmt: skip


def kept_in_population(map_k: int | None, presence: tuple[Fraction, Fraction] | None) -> Column:
    """Whether a class with ROWS and POPULATION has map_k rows there, and a share of it between the two ends."""
    rows, population = (F.col(name).cast("decimal(20,0)") for name in (ROWS, POPULATION))
    kept = F.lit(True) if map_k is None else F.col(POPULATION) >= map_k
    if presence is not None:
        (low, low_of), (high, high_of) = (tuple(map(_decimal, end.as_integer_ratio())) for end in presence)
        kept = kept & (rows * low_of >= population * low) & (rows * high_of <= population * high)
    return kept


def _decimal(number: int) -> Column:
    return F.lit(number).cast("decimal(18,0)")
