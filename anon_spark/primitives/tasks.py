"""Tasks on Arrow tables: one call per group, and conversion of lists of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from anon_spark.columns import PREFIX
from anon_spark.engine import setting
from anon_spark.kernels.classes import Codes, Ints

MOST_TASKS = 1_000
IN_TURN = 4  # tasks for each partition of a shuffle: so that one of many groups holds up no other
COLUMN = PREFIX + "column_"  # + position: name of a column inside a task

Task = Callable[[pa.Table], pa.Table]
BatchTask = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def in_batches(frame: DataFrame, work: BatchTask, schema: T.StructType) -> DataFrame:
    """`mapInArrow` on a frame with a user's columns, renamed by position: Spark takes a dot in a name for a field."""
    names, inner = frame.columns, by_position(schema)

    def renamed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in work(batch.rename_columns(names) for batch in batches):
            yield batch.select(schema.names).rename_columns(inner.names)

    return _positions(frame).mapInArrow(renamed, inner).toDF(*schema.names)


def by_position(schema: T.StructType) -> T.StructType:
    """The schema with the names that `in_batches` and `in_groups` give columns inside tasks."""
    fields = enumerate(schema.fields)
    return T.StructType([T.StructField(f"{COLUMN}{at}", field.dataType, field.nullable) for at, field in fields])


def _positions(frame: DataFrame) -> DataFrame:
    return frame.toDF(*(f"{COLUMN}{at}" for at in range(len(frame.columns))))


def shared_tasks(spark: SparkSession, groups: int) -> int:
    """How many tasks share some groups: a few for each that the session runs at a time, because every task has its price."""
    at_once = setting(spark, "spark.sql.shuffle.partitions", "")
    most = IN_TURN * int(at_once) if at_once.isdigit() else MOST_TASKS
    return max(1, min(groups, most, MOST_TASKS))


def in_groups(
    frame: DataFrame, by: str, work: Task, schema: T.StructType | str, groups: int | None = None, costly: bool = False
) -> DataFrame:
    """One call per group. groups: their approximate number, if known; costly: each takes seconds, and gets a task of its own.

    The number of partitions is explicit: Spark would put small but costly groups into one task. Columns are renamed by
    position: Spark takes a dot in a name for a field. Cost: one shuffle, and a count if the number of groups is not known.
    """
    if groups is None:
        groups = int(frame.select(F.approx_count_distinct(by)).collect()[0][0])
    tasks, names = min(max(groups, 1), MOST_TASKS) if costly else shared_tasks(frame.sparkSession, groups), frame.columns
    if isinstance(schema, str):
        return frame.repartition(tasks, by).groupBy(by).applyInArrow(work, schema)
    inner, expected, key = by_position(schema), schema.names, f"{COLUMN}{names.index(by)}"

    def renamed(table: pa.Table) -> pa.Table:
        return work(table.rename_columns(names)).select(expected).rename_columns(inner.names)

    return _positions(frame).repartition(tasks, key).groupBy(key).applyInArrow(renamed, inner).toDF(*expected)


def as_expected(table: pa.Table, schema: T.StructType) -> pa.Table:
    """The table in the types that Spark accepts: a timestamp comes in the session's time zone and must return in UTC."""
    return table.select(schema.names).cast(to_arrow_schema(schema))


def number_lists(offsets: Ints, values: Codes) -> Any:
    """An Arrow array of lists of numbers."""
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, pa.int32()))


def lists_of(table: pa.Table, name: str) -> tuple[Ints, Codes]:
    """A column of lists of numbers as offsets, which begin with 0, and all numbers."""
    lists: Any = table.column(name).combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], lists.type)
    offsets: Ints = np.asarray(lists.offsets).astype(np.int64)
    return offsets - offsets[0], np.asarray(lists.flatten()).astype(np.int32)
