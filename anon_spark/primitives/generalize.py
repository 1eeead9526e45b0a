"""Climb a hierarchy: codes of one level to codes of a higher one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX
from anon_spark.engine import beside, small_frame
from anon_spark.kernels.tuples import Ladder
from anon_spark.model.lattice import Node

LOW, HIGH = PREFIX + "low", PREFIX + "high"


def climbed(frame: DataFrame, codes: Sequence[str], ladder: Ladder, low: Node, high: Node) -> DataFrame:
    """The frame with its code columns lifted from the levels of `low` to those of `high`.

    Guarantee: same rows, other columns unchanged. Cost: one broadcast join per attribute that moves; no action.
    """
    for attribute, code in enumerate(codes):
        if low[attribute] == high[attribute]:
            continue
        steps = ladder.climb(attribute, low[attribute], high[attribute])
        lookup = pa.table({LOW: pa.array(np.arange(len(steps)), pa.int32()), HIGH: pa.array(steps, pa.int32())})
        joined = frame.join(beside(small_frame(frame.sparkSession, lookup)), F.col(code) == F.col(LOW))
        frame = joined.withColumn(code, F.col(HIGH)).drop(LOW, HIGH)
    return frame
