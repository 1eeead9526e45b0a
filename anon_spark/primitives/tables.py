"""Checks of a table that every family makes before it reads a row."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import PERSONS, ROWS, is_reserved, quoted
from anon_spark.errors import ConfigurationError, DataError, did_you_mean

SHOWN = 30  # columns in a message


def require_columns(df: DataFrame, names: Sequence[str]) -> None:
    """Refuse columns that the table does not have, or that have reserved names."""
    missing = [name for name in names if name not in df.columns]
    if missing:
        hints = "".join(did_you_mean(name, df.columns) for name in missing)
        raise ConfigurationError(f"Columns not found: {', '.join(missing)}.{hints} {columns_there(df)}", missing=missing)
    reserved = [name for name in names if is_reserved(name)]
    if reserved:
        raise ConfigurationError(f"Reserved column names: {', '.join(reserved)}. Rename them.", reserved=reserved)


def columns_there(df: DataFrame) -> str:
    """The columns of a table in a sentence; of many only the first, because a message should be readable."""
    names = df.columns
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"The table has: {', '.join(names[:SHOWN])}{more}."


def refuse_several_rows(df: DataFrame, person: str) -> None:
    """Raise unless every person has one row, because k rows of one person protect nobody. Cost: one shuffle of the persons."""
    who = F.col(quoted(person))
    counted = df.groupBy(who.alias(PERSONS)).agg(F.count(F.lit(1)).alias(ROWS))
    faulty = counted.agg(F.count_if(F.col(PERSONS).isNull() | (F.col(ROWS) > 1))).collect()[0][0]
    if faulty:
        raise DataError(
            f"columns.person {person}: {faulty:,} persons have several rows, or rows have no person. Combine each person's "
            "rows into one; of the families, lattice alone counts persons.",
            persons=int(faulty),
        )
