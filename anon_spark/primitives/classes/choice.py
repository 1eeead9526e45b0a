"""The way of counting a frequency table: over arrays sent with tasks, or by distributed aggregation."""

from __future__ import annotations

from pyspark.sql import functions as F

from anon_spark.columns import TUPLES
from anon_spark.primitives.classes.arrays import TRAVEL_BYTES, ladder_of, load_table, travel_bytes
from anon_spark.primitives.classes.counting import ArrayCounting, Counting
from anon_spark.primitives.classes.distributed import DistributedCounting
from anon_spark.primitives.classes.frequencies import Frequencies
from anon_spark.primitives.rounds import Workspace


def counting(frequencies: Frequencies, budget: int, workspace: Workspace, travel_limit: int = TRAVEL_BYTES) -> Counting:
    """The way of counting that fits the size of the frequency table; results are the same."""
    ladder = ladder_of(frequencies.hierarchies)
    if frequencies.held is not None:
        return ArrayCounting(workspace.spark, frequencies.held.table, ladder, budget)
    frame, sets = frequencies.files.frame, frequencies.files.sets
    base = (0,) * len(frequencies.hierarchies)
    members = 0
    if sets is not None:
        members = int(sets.agg(F.coalesce(F.sum(F.size(TUPLES)), F.lit(0))).first()[0])  # type: ignore[index]
    if travel_bytes(frequencies.tuples, ladder, base, frequencies.class_values, members) <= travel_limit:
        table = load_table(frame, sets, ladder, base, frequencies.class_values)
        return ArrayCounting(workspace.spark, table, ladder, budget)
    return DistributedCounting(frequencies, ladder, budget, workspace, travel_limit)
