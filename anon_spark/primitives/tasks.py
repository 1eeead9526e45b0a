"""Arrow tables in tasks: one call per group, and lists of numbers in and out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from anon_spark.kernels.classes import Codes, Ints

MOST_TASKS = 1_000

Task = Callable[[pa.Table], pa.Table]
BatchTask = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def in_groups(
    frame: DataFrame, by: str, work: Task, schema: T.StructType | str, groups: int | None = None
) -> DataFrame:
    """One call per group. groups: how many there are, about, where that is known. Cost: one shuffle, and a count if not.

    The number of partitions is stated: Spark would put laborious groups into one task because they are small.
    """
    if groups is None:
        groups = int(frame.select(F.approx_count_distinct(by)).collect()[0][0])
    return frame.repartition(min(max(groups, 1), MOST_TASKS), by).groupBy(by).applyInArrow(work, schema)


def as_expected(table: pa.Table, schema: T.StructType) -> pa.Table:
    """In the types that Spark takes back: a timestamp comes in the session's time zone and must return in UTC."""
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
