"""Conversion of tuples and classes between frames and arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import LEAF, LEVEL, PREFIX
from anon_spark.families.mst.kernels.neighbours import Classes
from anon_spark.kernels.classes import Codes
from anon_spark.kernels.histograms import Histograms

TID = PREFIX + "tid"  # the rank of a tuple in lexicographic order, or a number that sorts like it
HEAD = PREFIX + "head"  # the least TID of the tuple's part after the cut
IDENT = PREFIX + "ident"  # the least TID of a class
SIZE = PREFIX + "size"
VALUES = PREFIX + "values_"  # + position: up to l distinct values of a sensitive column, as hashes
HASHES = 2**20  # of values
COUNTS = PREFIX + "counts"  # list of (CODE, COUNT): the rows of each value, of all columns with models numbered through
CODE, COUNT = "code", "count"
LABEL = PREFIX + "label_"  # + position: a published label of a class
SHARE, KEY = PREFIX + "share", PREFIX + "share_key"
TRIES = 32  # keys per share: one of them falls into its partition


def leaf_columns(count: int) -> list[str]:
    return [f"{LEAF}{position}" for position in range(count)]


def level_columns(count: int) -> list[str]:
    return [f"{LEVEL}{position}" for position in range(count)]


@dataclass(frozen=True)
class ClassColumns:
    """The columns of a frame of classes: IDENT, SIZE, leaf and level of each attribute."""

    attributes: int

    @property
    def names(self) -> list[str]:
        return [
            IDENT,
            SIZE,
            *leaf_columns(self.attributes),
            *level_columns(self.attributes),
        ]

    @property
    def schema(self) -> str:
        kinds = ["long"] * 2 + ["int"] * (2 * self.attributes)
        return ", ".join(f"`{name}` {kind}" for name, kind in zip(self.names, kinds, strict=True))

    def arrays_of(self, classes: Classes) -> list[Any]:
        """Arrow arrays in the order of `names`."""
        return [
            pa.array(classes.ident, pa.int64()),
            pa.array(classes.size, pa.int64()),
            *(pa.array(classes.leaf[:, position], pa.int32()) for position in range(self.attributes)),
            *(pa.array(classes.level[:, position], pa.int32()) for position in range(self.attributes)),
        ]

    def classes_of(self, table: pa.Table) -> Classes:
        """The inverse of `arrays_of`."""

        def columns(names: Sequence[str]) -> Codes:
            return np.array([table.column(name).to_numpy() for name in names], dtype=np.int32).T.copy()

        return Classes(
            columns(level_columns(self.attributes)),
            columns(leaf_columns(self.attributes)),
            table.column(SIZE).to_numpy().astype(np.int64),
            table.column(IDENT).to_numpy().astype(np.int64),
        )


def whole(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    """All batches of a task as one table; None without batches."""
    received = list(batches)
    return pa.Table.from_batches(received) if received else None


def values_of(table: pa.Table, least: Sequence[int]) -> Codes:
    """Lists of hashes (VALUES) as an array rows × columns × most, -1 where a list is shorter. least: by column.

    A column that needs fewer values than another has some in every row that are no hashes, so that the room left is its own.
    """
    most = max(least, default=0)
    values = np.full((table.num_rows, len(least), most), -1, dtype=np.int32)
    for column, needed in enumerate(least):
        lists: Any = table.column(f"{VALUES}{column}").combine_chunks()
        offsets = lists.offsets.to_numpy()
        length = np.diff(offsets)
        row = np.repeat(np.arange(table.num_rows), length)
        place = np.arange(offsets[0], offsets[-1]) - np.repeat(offsets[:-1], length)
        values[:, column, : most - needed] = HASHES + np.arange(most - needed)
        values[row, column, most - needed + place] = lists.values.to_numpy()[offsets[0] : offsets[-1]]
    return values


def histograms_in(table: pa.Table) -> Histograms:
    """The rows of each value (COUNTS), by row of the table."""
    lists: Any = table.column(COUNTS).combine_chunks()
    starts = np.concatenate([[0], np.cumsum(lists.value_lengths().to_numpy())]).astype(np.int64)
    entries = lists.flatten()
    return Histograms(starts, entries.field(CODE).to_numpy(), entries.field(COUNT).to_numpy())


def share_keys(spark: SparkSession, shares: int) -> list[int]:
    """A number for each share that Spark puts into a partition of its own. Cost: one small job."""
    tried = spark.range(TRIES * shares)
    one_each = tried.groupBy(F.pmod(F.hash("id"), F.lit(shares)).alias(SHARE)).agg(F.min("id").alias("id"))
    return [row["id"] for row in one_each.orderBy(SHARE).collect()]  # as many as shares


def in_every_share(frame: DataFrame, keys: Sequence[int]) -> DataFrame:
    """Every row once for each of these keys (`share_keys`), with the number of the share; one share per partition.

    Cost: one shuffle of the frame times the shares.
    """
    shares = F.array(*(F.struct(F.lit(at).alias(SHARE), F.lit(key).cast("long").alias(KEY)) for at, key in enumerate(keys)))
    copies = frame.withColumn(KEY, F.explode(shares))
    return copies.repartition(len(keys), F.col(KEY)[KEY]).withColumn(SHARE, F.col(KEY)[SHARE]).drop(KEY)
