"""Shares: tuples spread over tasks in groups that stay together; small groups share a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructField, StructType

from anon_spark.errors import LimitExceeded
from anon_spark.families.mst.frames import SHARE
from anon_spark.kernels.classes import Codes

SHARE_TUPLES = 250_000  # tuples intended for one call
SHARE_MAX = 8_000_000  # most tuples of a task, at about 140 bytes each, if one group is that large


def shares_of(tuples: int) -> int:
    """The number of shares for this many tuples."""
    return 1 + tuples // SHARE_TUPLES


def in_shares(
    frame: DataFrame, shares: int, step: Callable[[pa.Table], pa.Table], schema: StructType | str, what: str
) -> DataFrame:
    """One call per SHARE. A share that no task could hold is refused, where it is read. what: its tuples have in common.

    Cost: one shuffle. The number of partitions is explicit: Spark would put small but costly shares into one task.
    """
    most = SHARE_MAX

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_shares(batches, most, what):
            yield from step(table).to_batches(max_chunksize=100_000)

    return frame.repartition(shares, SHARE).sortWithinPartitions(SHARE).mapInArrow(work, schema)


def whole_shares(batches: Iterable[pa.RecordBatch], most: int, what: str) -> Iterator[pa.Table]:
    """The tuples of each share, from batches that are sorted by it. Raises LimitExceeded for more than `most` of one."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        share = batch.column(SHARE).to_numpy()
        for start, stop in pairwise([0, *(np.flatnonzero(np.diff(share)) + 1).tolist(), batch.num_rows]):
            if waiting and waiting[0].column(SHARE)[0].as_py() != share[start]:
                yield pa.Table.from_batches(waiting)
                waiting = []
            waiting.append(batch.slice(start, stop - start))
            if sum(piece.num_rows for piece in waiting) > most:
                raise LimitExceeded(
                    f"More than {most:,} tuples {what}, and no more fit one task. Give a hierarchy more values below its "
                    "root, or start it at a coarser level."
                )
    if waiting:
        yield pa.Table.from_batches(waiting)


def schema_with(frame: DataFrame, new: Mapping[str, DataType]) -> StructType:
    return StructType([*frame.schema.fields, *(StructField(name, kind) for name, kind in new.items())])


def with_arrays(data: Any, new: Mapping[str, Any]) -> Any:
    """A record batch or table with more columns."""
    return type(data).from_arrays([*data.columns, *map(pa.array, new.values())], names=[*data.schema.names, *new])


def array_of(data: pa.RecordBatch | pa.Table, name: str) -> Any:
    """A column as an array that may be written to."""
    return np.array(np.asarray(data.column(name)))


def code_matrix(data: pa.RecordBatch | pa.Table, codes: Sequence[str]) -> Codes:
    return np.array([data.column(code) for code in codes], dtype=np.int32)
