"""Values as 64-bit hashes: everything that follows needs equality only, and no value leaves Spark.

Guarantee of all counts: exact up to collisions of these hashes; among ten million tuples one collision has a chance of about
one in a million.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, FloatType, StructType

from anon_spark.assessment.question import Question
from anon_spark.auditing.reading.values import exact, hashable
from anon_spark.columns import PERSONS, PREFIX, ROWS

OWNER = PREFIX + "owner"      # hash of a person who has several tuples; 0 in all other entries
WHO = PREFIX + "who"
NAMELESS = PREFIX + "nameless"  # rows without a person


def hash_columns(columns: int) -> list[str]:
    """Names of the hashes of the quasi-identifiers, by position."""
    return [f"{PREFIX}h{position}" for position in range(columns)]


def value_hash(df: DataFrame, name: str, place: int) -> Column:
    """A value as a hash that also covers the place of its column; null is 0. NaN equals NaN, and 0.0 equals -0.0."""
    parts = _parts(df, name)
    return F.when(F.isnull(exact(df, name)), F.lit(0).cast("bigint")).otherwise(F.xxhash64(F.lit(place), *parts))


def tuple_hash(df: DataFrame, names: Sequence[str]) -> Column:
    """All values of a row in one hash, in which a null counts; rows that agree in `value_hash` of every column agree here."""
    return F.xxhash64(*(part for name in names for part in (F.isnull(exact(df, name)), *_parts(df, name))))


def _parts(df: DataFrame, name: str) -> list[Column]:
    kind, value = df.schema[name].dataType, exact(df, name)
    if isinstance(kind, (ArrayType, StructType)):
        return hashable(df, name)
    return [value + F.lit(0.0) if isinstance(kind, (FloatType, DoubleType)) else value]


def entries_frame(df: DataFrame, question: Question) -> DataFrame:
    """Distinct tuples as hashes, with ROWS, PERSONS, OWNER and NAMELESS rows; a person with several tuples has an entry in each.

    Without a person column every row is a person. Cost: one shuffle of the table, with persons two more of its distinct pairs;
    no action.
    """
    names = hash_columns(len(question.quasi))
    hashes = [value_hash(df, column, at).alias(name) for at, (column, name) in enumerate(zip(question.quasi, names, strict=True))]
    none = F.lit(0).cast("bigint")
    if question.person is None:
        counted = df.select(*hashes).groupBy(*names).agg(F.count(F.lit(1)).alias(ROWS))
        return counted.withColumn(PERSONS, F.col(ROWS)).withColumn(OWNER, none).withColumn(NAMELESS, none)
    who = value_hash(df, question.person, len(names)).alias(WHO)
    pairs = df.select(*hashes, who).groupBy(*names, WHO).agg(F.count(F.lit(1)).alias(ROWS))
    tuples = F.count(F.lit(1)).over(Window.partitionBy(WHO))
    owned = pairs.withColumn(OWNER, F.when(tuples > 1, F.col(WHO)).otherwise(none))
    return owned.groupBy(*names, OWNER).agg(
        F.sum(ROWS).alias(ROWS),
        F.count(F.lit(1)).alias(PERSONS),
        F.coalesce(F.sum(F.when(F.col(WHO) == 0, F.col(ROWS))), none).alias(NAMELESS),
    ).select(*names, ROWS, PERSONS, OWNER, NAMELESS)


def null_pattern(names: list[str]) -> Column:
    """A bit for each column that is null."""
    bits = (F.when(F.col(name) == 0, F.lit(1 << at)).otherwise(F.lit(0)).cast("bigint") for at, name in enumerate(names))
    return reduce(add, bits)
