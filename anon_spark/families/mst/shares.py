"""Shares: tuples spread over tasks in groups that stay together; small groups share a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
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
    frame: DataFrame, shares: int, step: Callable[[pa.Table], pa.Table], schema: StructType | str
) -> DataFrame:
    """One call per SHARE. Cost: one shuffle.

    The number of partitions is explicit: Spark would put small but costly shares into one task.
    """
    return frame.repartition(shares, SHARE).groupBy(SHARE).applyInArrow(step, schema)


def require_room(shared: DataFrame, what: str) -> None:
    """Refuse a share that no task could hold. Cost: one job."""
    largest = shared.groupBy(SHARE).count().agg(F.max("count")).collect()[0][0]
    if largest > SHARE_MAX:
        raise LimitExceeded(
            f"{largest:,} tuples {what}, at most {SHARE_MAX:,} fit one task. Give a hierarchy more values below its root, "
            "or start it at a coarser level.",
            tuples=largest,
        )


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
