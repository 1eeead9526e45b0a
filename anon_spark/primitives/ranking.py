"""Ranks of a global order, without moving all rows to one task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import LINK, PREFIX
from anon_spark.engine import beside, small_frame
from anon_spark.primitives.rounds import Workspace, collect_small

PLACE = PREFIX + "place"  # where a row stands in its sorted partition
PART, BEFORE = PREFIX + "sorted_part", PREFIX + "before"  # a sorted partition, and how many rows stand before it
MOST_PARTITIONS = 1_000_000  # a sort has spark.sql.shuffle.partitions of them
PARTITION_BITS = 33  # Spark's row numbers: the partition above these bits, the position below


def ranked(frame: DataFrame, by: Sequence[str], workspace: Workspace, rank: str = LINK) -> DataFrame:
    """The rank of each row in the order of some columns, which are dropped. Give an order without ties.

    Cost: one global sort that is stored, one small job: a number per partition reaches the driver.
    """
    ordered = frame.orderBy(*by).withColumn(PLACE, F.monotonically_increasing_id()).drop(*by)
    stored = workspace.store(ordered, "sorted")  # numbered once: a retried task could give other numbers
    part = F.shiftright(PLACE, PARTITION_BITS)
    sizes = collect_small(stored.groupBy(part.alias(PART)).count().orderBy(PART), MOST_PARTITIONS, "Partitions of a sort")
    counts = sizes.column("count").to_numpy()
    before = sizes.select([PART]).append_column(BEFORE, pa.array(np.cumsum(counts) - counts, pa.int64()))
    offsets = small_frame(stored.sparkSession, before)
    joined = stored.withColumn(PART, part).join(beside(offsets), PART)
    place = F.col(PLACE).bitwiseAND(F.lit(2**PARTITION_BITS - 1))
    return joined.withColumn(rank, F.col(BEFORE) + place).drop(PART, BEFORE, PLACE)
