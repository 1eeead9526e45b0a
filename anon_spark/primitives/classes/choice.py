"""The way of counting a frequency table: over arrays sent with tasks, or by distributed aggregation."""

from __future__ import annotations

from pyspark.sql import functions as F

from anon_spark.columns import TUPLES
from anon_spark.kernels.models import Conditions
from anon_spark.primitives.classes.arrays import TRAVEL_BYTES, ladder_of, load_table, travel_bytes
from anon_spark.primitives.classes.counting import ArrayCounting, Counting
from anon_spark.primitives.classes.distributed import DistributedCounting
from anon_spark.primitives.classes.frequencies import Frequencies
from anon_spark.primitives.rounds import Workspace


def counting(
    frequencies: Frequencies,
    budget: int,
    workspace: Workspace,
    travel_limit: int = TRAVEL_BYTES,
    conditions: Conditions | None = None,
) -> Counting:
    """The way of counting that fits the size of the frequency table; results are the same.

    conditions: what classes must keep besides their size; default: the models of the sensitive columns.
    """
    ladder = ladder_of(frequencies.hierarchies)
    conditions = Conditions(frequencies.sensitive) if conditions is None else conditions  # each column in its place
    if frequencies.held is not None:
        return ArrayCounting(workspace.spark, frequencies.held.table, ladder, budget, conditions)
    files = frequencies.files
    base = (0,) * len(frequencies.hierarchies)
    members, entries = 0, 0
    if files.sets is not None:
        members = int(files.sets.agg(F.coalesce(F.sum(F.size(TUPLES)), F.lit(0))).first()[0])  # type: ignore[index]
    if files.values is not None:
        entries = files.values.count()
    if travel_bytes(frequencies.tuples, ladder, base, frequencies.class_values, members, entries) <= travel_limit:
        table = load_table(files, ladder, base, frequencies.class_values, len(frequencies.sensitive))
        return ArrayCounting(workspace.spark, table, ladder, budget, conditions)
    return DistributedCounting(frequencies, ladder, budget, workspace, travel_limit, conditions)
