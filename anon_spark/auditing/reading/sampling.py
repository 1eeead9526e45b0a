"""Samples that are chosen by hash of content: always the same rows, whatever the partitions.

A sample then meets the whole other table in chunks: it is sent to every chunk, and each row of the table is in one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.reading.values import content_hash, exact, private
from anon_spark.columns import ROWS

TUPLE = private("known")  # the hash of a sampled tuple
SPREAD = 64  # how many more tuples than needed may pass the hash filter; the smallest hashes of them are kept


def smallest_hashes(frame: DataFrame, by: Sequence[str], most: int, hashed: Column | None = None) -> DataFrame:
    """At most `most` rows: those with the smallest hashes of some columns, and of equal hashes the smallest values.

    hashed: the hash, where it is not the plain xxhash64 of these columns.
    """
    return frame.orderBy(F.xxhash64(*by) if hashed is None else hashed, *by).limit(most)


def sampled_tuples(frame: DataFrame, names: Sequence[str], most: int, rows: int) -> DataFrame:
    """At most `most` distinct tuples, those with the smallest hashes: TUPLE, the values as `tuple_columns`, and ROWS.

    rows: how many the frame has. Guarantee: whole tuples, null is a value. Cost: one scan, one shuffle of about SPREAD times
    as many tuples as are wanted; no action.
    """
    columns = tuple_columns(len(names))
    bits = max(0, math.floor(math.log2(max(1.0, rows / (SPREAD * most)))))
    mask = F.lit((1 << bits) - 1).cast("long")
    known = frame.select(*(exact(frame, name).alias(column) for name, column in zip(names, columns, strict=True)))
    tuples = (
        known.withColumn(TUPLE, content_hash([F.col(column) for column in columns]))
        .where(F.col(TUPLE).bitwiseAND(mask) == 0)
        .groupBy(TUPLE, *columns)
        .agg(F.count(F.lit(1)).alias(ROWS))
    )
    return smallest_hashes(tuples, columns, most, F.col(TUPLE))


def tuple_columns(count: int) -> list[str]:
    """The names of a tuple's values, by position."""
    return [private(str(at)) for at in range(count)]


def every_chunk(chunks: int) -> Column:
    """All chunk numbers, one row each, to send a sample to every chunk."""
    return F.explode(F.sequence(F.lit(0), F.lit(chunks - 1)))


def chunk_of(hashed: Column, chunks: int) -> Column:
    """The number of the chunk that a row is in, by its hash."""
    return F.pmod(hashed, F.lit(chunks)).cast("int")
