"""Summaries: one row per cluster, with the sums that merging needs and the cluster it was merged into (TARGET)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from anon_spark.columns import BLOCK, CLUSTER, PREFIX, ROWS
from anon_spark.engine import not_broadcast
from anon_spark.families.relational_transaction.kernels.bit_distance import ItemLists
from anon_spark.families.relational_transaction.kernels.relation import published
from anon_spark.families.relational_transaction.merging import Summary
from anon_spark.families.relational_transaction.records import CODES, SECRETS, Attributes, Records
from anon_spark.kernels.classes import Ints
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tasks import BatchTask, lists_of

TARGET = PREFIX + "target"
FILLED = PREFIX + "filled"  # records with an item that is not sensitive
HELD = PREFIX + "held"  # sensitive items of its records, with their number and that of the filled ones
LO, HI = PREFIX + "lo_", PREFIX + "hi_"  # + position: least and greatest value
SHOWN = PREFIX + "shown_"  # + position: the published value of a cluster


def summarized(clustered: DataFrame, records: Records, workspace: Workspace) -> DataFrame:
    """The clusters; those with identical generalized tuples share one TARGET.

    Cost: one shuffle of the records to clusters (two with sensitive items), one of the clusters.
    """
    columns = records.attributes.columns
    summed = clustered.groupBy(CLUSTER).agg(
        F.min(BLOCK).alias(BLOCK),
        F.count(F.lit(1)).alias(ROWS),
        F.count_if(F.size(CODES) > 0).alias(FILLED),
        *(F.min(name).alias(f"{LO}{at}") for at, name in enumerate(columns)),
        *(F.max(name).alias(f"{HI}{at}") for at, name in enumerate(columns)),
    )
    none = F.array().cast("array<struct<secret:int,rows:bigint,filled:bigint>>")
    if records.secrets:
        summed = summed.join(not_broadcast(_held(clustered)), CLUSTER, "left")
    summed = summed.withColumn(HELD, F.coalesce(HELD, none) if records.secrets else none)
    shown = [f"{SHOWN}{at}" for at in range(2 * len(columns))]
    schema = ", ".join([f"{name} {kind}" for name, kind in summed.dtypes] + [f"{name} double" for name in shown])
    alike = Window.partitionBy(*shown)
    tuples = summed.mapInArrow(_shown(records.attributes, shown), schema)
    return workspace.store(tuples.withColumn(TARGET, F.min(CLUSTER).over(alike)).drop(*shown), "summaries")


def item_sets(clustered: DataFrame, workspace: Workspace) -> DataFrame:
    """The distinct item sets of each cluster, with numbers of records. Cost: one shuffle."""
    return workspace.store(clustered.groupBy(CLUSTER, CODES, SECRETS).agg(F.count(F.lit(1)).alias(ROWS)), "item-sets")


def summary_in(table: pa.Table, attributes: int, secrets: int) -> tuple[Summary, Ints]:
    """The current clusters of a task, and the index of each row's cluster."""
    targets, rows, filled = (_ints(table, name) for name in (TARGET, ROWS, FILLED))
    ids, index = np.unique(targets, return_inverse=True)
    order = np.argsort(index, kind="stable")
    starts = np.searchsorted(index[order], np.arange(ids.size))
    lo, hi = (
        np.column_stack([np.asarray(table.column(f"{name}{at}"), dtype=np.float64) for at in range(attributes)])
        for name in (LO, HI)
    )
    held: Any = table.column(HELD).combine_chunks()
    if isinstance(held, pa.ChunkedArray):
        held = pa.concat_arrays(held.chunks)
    sensitive = np.zeros((2, ids.size, secrets), dtype=np.int64)
    if secrets and len(held.flatten()):
        owner = index[np.repeat(np.arange(index.size), np.diff(np.asarray(held.offsets)))]
        secret, count, among_filled = (np.asarray(part, dtype=np.int64) for part in held.flatten().flatten())
        np.add.at(sensitive[0], (owner, secret), count)
        np.add.at(sensitive[1], (owner, secret), among_filled)
    summary = Summary(
        ids,
        np.bincount(index, rows, ids.size).astype(np.int64),
        np.bincount(index, filled, ids.size).astype(np.int64),
        np.minimum.reduceat(lo[order], starts, axis=0),
        np.maximum.reduceat(hi[order], starts, axis=0),
        sensitive[0],
        sensitive[1],
    )
    return summary, index


def with_targets(table: pa.Table, targets: Ints | None) -> pa.Table:
    """The rows of a task with new targets; None makes all targets null."""
    column = pa.nulls(table.num_rows, pa.int64()) if targets is None else pa.array(targets, pa.int64())
    return table.set_column(table.column_names.index(TARGET), TARGET, column)


def lists_by_cluster(sets: pa.Table, cluster_of: Ints, clusters: int) -> ItemLists:
    """The item sets of the rows, grouped by cluster; a set may occur twice in a cluster."""
    offsets, codes = lists_of(sets, CODES)
    order = np.argsort(cluster_of, kind="stable")
    sizes = np.diff(offsets)[order]
    bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    places = np.repeat(offsets[:-1][order] - bounds[:-1], sizes) + np.arange(bounds[-1])
    return ItemLists(np.searchsorted(cluster_of[order], np.arange(clusters + 1)).astype(np.int64), bounds, codes[places])


def _held(clustered: DataFrame) -> DataFrame:
    pairs = clustered.select(CLUSTER, F.explode(SECRETS).alias("secret"), (F.size(CODES) > 0).alias("full"))
    counted = pairs.groupBy(CLUSTER, "secret").agg(F.count(F.lit(1)).alias("rows"), F.count_if("full").alias("filled"))
    return counted.groupBy(CLUSTER).agg(F.collect_list(F.struct("secret", "rows", "filled")).alias(HELD))


def _shown(attributes: Attributes, names: list[str]) -> BatchTask:
    count = len(attributes.names)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            lo, hi = (
                np.column_stack([np.asarray(batch.column(f"{name}{at}"), dtype=np.float64) for at in range(count)])
                for name in (LO, HI)
            )
            shown = published(attributes.relation, lo, hi)
            arrays = [*batch.columns, *(pa.array(np.ascontiguousarray(shown[:, at])) for at in range(2 * count))]
            yield pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *names])

    return work


def _ints(table: pa.Table, name: str) -> Ints:
    return np.asarray(table.column(name), dtype=np.int64)
