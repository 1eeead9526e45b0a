"""BTD between all clusters of a table in one distributed pass: one task for every two parts of the clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import CLUSTER, PREFIX
from anon_spark.engine import beside, small_frame
from anon_spark.families.relational_transaction.kernels.bit_distance import (
    Distances,
    diameters,
    distances_within,
    union_distances,
)
from anon_spark.families.relational_transaction.records import CODES
from anon_spark.families.relational_transaction.summaries import TARGET, lists_by_cluster
from anon_spark.kernels.classes import Ints
from anon_spark.primitives.rounds import Workspace, collect_small
from anon_spark.primitives.tasks import in_groups

INDEX, PAIR = PREFIX + "index", PREFIX + "pair"
PART_CLUSTERS = 500


def driver_distances(merged: DataFrame, sets: DataFrame, ids: Ints, workspace: Workspace) -> Distances:
    """BTD of the union of every two clusters, by their position in `ids`.

    merged: CLUSTER and its TARGET; sets: CLUSTER and its item sets. Cost: item sets travel once for each part of
    PART_CLUSTERS clusters; half a matrix of four bytes a pair reaches the driver: 50 MB for 5,000 clusters.
    """
    spark = merged.sparkSession
    place = small_frame(spark, pa.table({TARGET: pa.array(ids), INDEX: pa.array(range(ids.size), pa.int64())}))
    owned = sets.select(CLUSTER, CODES).join(merged.select(CLUSTER, TARGET), CLUSTER).join(beside(place), TARGET)
    owned = workspace.store(owned.select(INDEX, CODES).distinct(), "sets-by-cluster")
    parts = -(-ids.size // PART_CLUSTERS)
    part = F.expr(f"{INDEX} div {PART_CLUSTERS}")
    other = F.explode(F.sequence(F.lit(0), F.lit(parts - 1)))
    paired = owned.withColumn("other", other).withColumn("part", part)
    paired = paired.withColumn(PAIR, F.least("part", "other") * parts + F.greatest("part", "other"))

    def work(table: pa.Table) -> pa.Table:
        pair = int(table.column(PAIR)[0].as_py())
        first, second = pair // parts, pair % parts
        index = np.asarray(table.column(INDEX), dtype=np.int64)
        if first == second:
            return _rows(first, second, distances_within(_lists(table, index, first, ids.size)))
        lists, others = (_lists(table, index, at, ids.size) for at in (first, second))
        return _rows(first, second, union_distances(lists, diameters(lists), others, diameters(others)))

    blocks = in_groups(paired.select(INDEX, CODES, PAIR), PAIR, work, "first long, second long, distances binary")
    matrix = np.zeros((ids.size, ids.size), dtype=np.float32)
    for row in collect_small(blocks, parts * parts, "Distances of clusters").to_pylist():
        ends = ("first", "second")
        here, there = (slice(row[name] * PART_CLUSTERS, (row[name] + 1) * PART_CLUSTERS) for name in ends)
        block = np.frombuffer(row["distances"], dtype="<f4").reshape(matrix[here, there].shape)
        matrix[here, there], matrix[there, here] = block, block.T
    return matrix


def _lists(table: pa.Table, index: Ints, part: int, clusters: int) -> Any:
    mine = index // PART_CLUSTERS == part
    first = part * PART_CLUSTERS
    return lists_by_cluster(table.filter(pa.array(mine)), index[mine] - first, min(PART_CLUSTERS, clusters - first))


def _rows(first: int, second: int, distances: Distances) -> pa.Table:
    return pa.table({"first": [first], "second": [second], "distances": [distances.astype("<f4").tobytes()]})
