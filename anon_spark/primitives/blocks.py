"""Numbered blocks of neighbouring records."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.engine import beside, small_frame
from anon_spark.primitives.rounds import collect_small

MOST_BLOCKS = 10_000_000


def numbers_in(frame: DataFrame, block: str) -> list[int]:
    """The numbers of all blocks, ascending. Cost: one job; at most MOST_BLOCKS reach the driver."""
    table = collect_small(frame.select(block).distinct(), MOST_BLOCKS, "Blocks")
    return sorted(map(int, table.column(0).to_numpy()))


def joined_blocks(frame: DataFrame, block: str, numbers: Sequence[int], failed: set[int]) -> DataFrame:
    """Join each failed block with the next one (the last with the one before). Repeating this ends: blocks get fewer."""
    return renumbered(frame, block, numbers, merged_with(numbers, failed))


def renumbered(frame: DataFrame, block: str, numbers: Sequence[int], targets: Sequence[int]) -> DataFrame:
    """The frame with new block numbers. Cost: a broadcast join; no action."""
    table = pa.table({block: pa.array(numbers, pa.int64()), "target": pa.array(targets, pa.int64())})
    joined = frame.join(beside(small_frame(frame.sparkSession, table)), block)
    return joined.withColumn(block, F.col("target")).select(*frame.columns)


def merged_with(numbers: Sequence[int], failed: set[int]) -> list[int]:
    """The block that each block joins: a failed block absorbs the next one, whether that failed or not."""
    targets: list[int] = []
    takes_in = False
    for number in numbers:
        targets.append(targets[-1] if takes_in else number)
        takes_in = not takes_in and number in failed
    if takes_in:  # the last one failed and has no next
        targets[-1] = targets[-2]
    return targets
