"""Ranks of a global order, without moving all rows to one task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import LINK, PREFIX
from anon_spark.engine import beside, gathered, small_frame
from anon_spark.primitives.rounds import Workspace, collect_small

PLACE = PREFIX + "place"  # where a row stands in its sorted partition
PART, BEFORE = PREFIX + "sorted_part", PREFIX + "before"  # a sorted partition, and how many rows stand before it
MOST_PARTITIONS = 1_000_000  # a sort has spark.sql.shuffle.partitions of them
BUCKET_BITS = 12  # leading bits of a hash: a bucket is in one partition, so there are at most 4,096 of these
FIRST_PLACE = PREFIX + "first_place"
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


def ranked_by_hash(frame: DataFrame, hashed: str, then: str, workspace: Workspace) -> DataFrame:
    """LINK, the rank of each row in the order of a 64-bit hash and of another one; both are dropped.

    Hashes are spread evenly, so rows are dealt out by their leading bits: a global sort would first compute all rows once more
    to find the borders of its partitions. Cost: one shuffle that is stored, one small job: a number per bucket reaches the
    driver.
    """
    bucketed = frame.withColumn(PART, F.shiftright(hashed, 64 - BUCKET_BITS))
    dealt = gathered(bucketed, True) if workspace.small else bucketed.repartition(PART)
    ordered = dealt.sortWithinPartitions(hashed, then).withColumn(PLACE, F.monotonically_increasing_id()).drop(hashed, then)
    stored = workspace.store(ordered, "sorted")  # numbered once: a retried task could give other numbers
    counted = stored.groupBy(PART).agg(F.count(F.lit(1)).alias("count"), F.min(PLACE).alias(FIRST_PLACE)).orderBy(PART)
    sizes = collect_small(counted, 2**BUCKET_BITS, "Buckets of a sort")
    counts, first = (sizes.column(name).to_numpy() for name in ("count", FIRST_PLACE))
    before = sizes.select([PART]).append_column(BEFORE, pa.array(np.cumsum(counts) - counts - first, pa.int64()))
    joined = stored.join(beside(small_frame(stored.sparkSession, before)), PART)
    return joined.withColumn(LINK, F.col(BEFORE) + F.col(PLACE)).drop(PART, BEFORE, PLACE)
