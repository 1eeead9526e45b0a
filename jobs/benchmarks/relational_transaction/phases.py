"""The phases of the family in one process, on arrays: CLUSTER, repair, BTD pass, merge loop, generalization of items.

The same kernels and loops as in a run, without Spark, so that clusters are made once for many settings. Seconds are those
of the processor: other work on the machine is not in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anon_spark.families.relational_transaction.clusters import taken_apart
from anon_spark.families.relational_transaction.items import (
    Baskets,
    Catalogue,
    Generalized,
    UnionLosses,
    catalogue_of,
    generalized,
)
from anon_spark.families.relational_transaction.kernels.bit_distance import ItemLists, distances_within
from anon_spark.families.relational_transaction.kernels.clustering import blocks_of, cluster_block
from anon_spark.families.relational_transaction.kernels.relation import node_levels
from anon_spark.families.relational_transaction.merging import Merges, Summary, equal_tuples, rmerge, table_ncp, tmerge
from anon_spark.families.relational_transaction.refinement import refined
from anon_spark.families.relational_transaction.repair import repaired
from anon_spark.families.relational_transaction.settings import Settings
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.transactions import distinct_rows, taken_rows
from anon_spark.model.hierarchy import Hierarchy
from jobs.benchmarks.relational_transaction.records import ITEMS, Table

SECRETS = "items_sensitive"


@dataclass(frozen=True)
class Clustered:
    """A table after CLUSTER and repair: the cluster of each record, and of each distinct item set of a cluster."""

    table: Table
    summary: Summary
    cluster: Ints  # of each record, an index into the summary
    sets: Baskets  # distinct in a cluster, by cluster; `times`: records
    set_cluster: Ints
    record_set: Ints  # of each record, a row of the sets
    first_ncp: float  # before the repair
    seconds: float

    @property
    def ncp(self) -> float:
        return table_ncp(self.summary, self.table.relation)

    @property
    def lists(self) -> ItemLists:
        bounds = np.searchsorted(self.set_cluster, np.arange(self.summary.ids.size + 1))
        return ItemLists(bounds.astype(np.int64), self.sets.offsets, self.sets.codes)

    @property
    def catalogue(self) -> Catalogue:
        return catalogue_of(self.table.universe, self.table.secrets, None)

    def losses(self, settings: Settings) -> UnionLosses:
        return UnionLosses(self.sets, self.set_cluster, settings, self.catalogue)


class Seconds(NamedTuple):
    """Of the merge phase."""

    distances: float
    loop: float
    items: float

    @property
    def total(self) -> float:
        return sum(self)


@dataclass(frozen=True)
class Released:
    """What came out: the cluster of each set, the generalized items of each cluster, losses and sizes."""

    ncp: float
    ul: float
    clusters: int
    largest: int
    merges: Merges = field(repr=False)
    seconds: Seconds
    target: Ints = field(repr=False)  # of each first cluster
    parts: dict[int, tuple[Ints, Generalized]] = field(repr=False)  # by target: rows of the sets, and their items


# --- clusters --------------------------------------------------------------------------------------------------------------


def clustered(table: Table, k: int, key: str, block: int | None = None, l: int | None = None) -> Clustered:  # noqa: E741
    """CLUSTER over all records at once, or in blocks of at most `block`; equal tuples united; repaired."""
    started = process_time()
    found = clustered_as(table, first_clusters(table, k, key, block), k, l)
    return replace(found, seconds=process_time() - started)


def clustered_as(table: Table, smallest: Ints, k: int, l: int | None = None) -> Clustered:  # noqa: E741
    """The clusters that records name by their smallest member; equal tuples united; repaired."""
    started = process_time()
    summary, index = summary_of(table, smallest)
    first_ncp = table_ncp(summary, table.relation)
    summary, index = _united(summary, index, equal_tuples(summary, table.relation))
    summary, index = _united(summary, index, repaired(summary, table.relation, k, l))
    seconds = process_time() - started
    sets, set_cluster, record_set = distinct_sets(table, index)
    return Clustered(table, summary, index, sets, set_cluster, record_set, first_ncp, seconds)


def _united(summary: Summary, index: Ints, target: Ints) -> tuple[Summary, Ints]:
    return summary.united(target), np.searchsorted(np.unique(target), target)[index]


def first_clusters(table: Table, k: int, key: str, block: int | None) -> Ints:
    """The smallest member of each record's cluster."""
    blocks = np.zeros(table.records, dtype=np.int64)
    if block is not None:
        blocks = taken_apart(blocks_of(table.relation, table.values, block, 2 * k), block)
    smallest = np.empty(table.records, dtype=np.int64)
    for number in range(int(blocks.max()) + 1):
        inside = np.flatnonzero(blocks == number)
        smallest[inside] = inside[cluster_block(table.relation, table.values[inside], k, key, number)]
    return smallest


def summary_of(table: Table, smallest: Ints) -> tuple[Summary, Ints]:
    """The clusters by their smallest members, and the place of each record's cluster among them."""
    ids, index = np.unique(smallest, return_inverse=True)
    order = np.argsort(index, kind="stable")
    starts = np.searchsorted(index[order], np.arange(ids.size))
    baskets = table.baskets
    filled = np.diff(baskets.offsets) > 0
    sensitive = np.zeros((2, ids.size, len(table.secrets)), dtype=np.int64)
    owner = np.repeat(np.arange(table.records), np.diff(baskets.secret_offsets))
    for which, counted in enumerate((np.ones(owner.size, dtype=np.int64), filled[owner].astype(np.int64))):
        np.add.at(sensitive[which], (index[owner], baskets.secrets), counted)
    values = table.values[order]
    summary = Summary(
        ids,
        np.bincount(index, minlength=ids.size).astype(np.int64),
        np.bincount(index, filled, ids.size).astype(np.int64),
        np.minimum.reduceat(values, starts, axis=0),
        np.maximum.reduceat(values, starts, axis=0),
        sensitive[0],
        sensitive[1],
    )
    return summary, index


def distinct_sets(table: Table, cluster: Ints) -> tuple[Baskets, Ints, Ints]:
    """The distinct item sets of each cluster, by cluster, the cluster of each, and which of them each record has."""
    baskets = table.baskets
    row, chosen = distinct_rows(baskets.offsets, baskets.codes, baskets.secret_offsets, baskets.secrets)
    keys, record_set, times = np.unique(cluster * chosen.size + row, return_inverse=True, return_counts=True)
    return baskets.taken(chosen[keys % chosen.size])._replace(times=times), keys // chosen.size, record_set


# --- merging ---------------------------------------------------------------------------------------------------------------


def released(start: Clustered, settings: Settings) -> Released:
    """RMERGE under the bound on NCP, and the items of what is left; raises where the first clusters are beyond it."""
    begun = process_time()
    by_loss = settings.by_items and settings.distance == "utility_loss"
    distances = distances_within(start.lists) if settings.by_items and not by_loss else None
    measured = process_time()
    losses = start.losses(settings).means if by_loss else None
    merges = rmerge(
        start.summary,
        start.table.relation,
        settings.delta,
        settings.merge,
        distances,
        losses,
        settings.exhaustive_seeds,
    )
    target, relation = merges.target, start.table.relation
    if settings.moves:
        target = refined(start.summary, relation, settings.delta, target, settings.exhaustive_seeds)
    looped = process_time()
    parts = generalized_parts(start, target, settings)
    seconds = Seconds(measured - begun, looped - measured, process_time() - looped)
    return _released(start, merges, target, table_ncp(start.summary.united(target), relation), seconds, parts)


def merge_path(start: Clustered, settings: Settings) -> Merges:
    """TMERGE until one cluster is left, with UL after every merge: what RMERGE does for δ = 1, too."""
    distances = distances_within(start.lists) if settings.by_items else None
    return tmerge(
        start.summary, start.table.relation, None, settings.merge, distances, None, start.losses(settings).total
    )


def stopped(start: Clustered, settings: Settings, path: Merges) -> Released | None:
    """The release of TMERGE: the path up to the first step with UL within δ; None if there is none."""
    within = np.flatnonzero(path.losses <= settings.delta)
    if not within.size:
        return None
    step = int(within[0])
    target = path.after(step)
    begun = process_time()
    parts = generalized_parts(start, target, settings)
    return _released(start, path, target, float(path.ncps[step]), Seconds(0.0, 0.0, process_time() - begun), parts)


def generalized_parts(start: Clustered, target: Ints, settings: Settings) -> dict[int, tuple[Ints, Generalized]]:
    """The items of every cluster."""
    of_set = target[start.set_cluster]
    order = np.argsort(of_set, kind="stable")
    heads, firsts = np.unique(of_set[order], return_index=True)
    catalogue = start.catalogue
    return {
        int(head): (rows, generalized(start.sets.taken(rows), settings, catalogue))
        for head, rows in zip(heads, np.split(order, firsts[1:]), strict=True)
    }


def _released(
    start: Clustered,
    merges: Merges,
    target: Ints,
    ncp: float,
    seconds: Seconds,
    parts: dict[int, tuple[Ints, Generalized]],
) -> Released:
    lost = sum(float(found.losses @ start.sets.times[rows]) for rows, found in parts.values())
    sizes = start.summary.united(target).sizes
    return Released(ncp, lost / start.table.records, int(sizes.size), int(sizes.max()), merges, seconds, target, parts)


# --- releases as frames ------------------------------------------------------------------------------------------------------


def release_frame(spark: SparkSession, start: Clustered, found: Released) -> DataFrame:
    """The release as it would be published, for measures that read one; rows in the order of the records."""
    table, united = start.table, start.summary.united(found.target)
    place = np.searchsorted(np.unique(found.target), found.target)[start.cluster]
    levels = node_levels(table.relation, united.lo, united.hi)
    columns: dict[str, Any] = {}
    for at, (name, given) in enumerate(table.attributes.items()):
        if isinstance(given, Hierarchy):
            leaves = table.leaf_at(at)[united.lo[:, at].astype(np.int64)]
            shown = [
                given.labels[level][given.codes[level, leaf]] for level, leaf in zip(levels[:, at], leaves, strict=True)
            ]
            columns[name] = pa.array(shown, pa.string()).take(pa.array(place, pa.int64()))
        else:
            ends = [pa.array(end[place, at].astype(np.int64)) for end in (united.lo, united.hi)]
            columns[name] = pa.StructArray.from_arrays(ends, names=["lo", "hi"])
    columns[ITEMS] = _nested(start, found)
    if table.secrets:
        own = [[table.secrets[code] for code in codes] for codes in _split(table.baskets)]
        columns[SECRETS] = pa.array(own, pa.list_(pa.string()))
    return spark.createDataFrame(pa.table(columns))


def _split(baskets: Baskets) -> list[Any]:
    return np.split(baskets.secrets, baskets.secret_offsets[1:-1])


def _nested(start: Clustered, found: Released) -> Any:
    """Lists of lists of item names, one per record."""
    labels, sizes, bounds, members, rows = [], [], [np.zeros(1, dtype=np.int64)], [], []
    known = 0
    for own_rows, part in found.parts.values():
        labels.append(part.labels.astype(np.int64) + known)
        sizes.append(np.diff(part.offsets))
        bounds.append(np.diff(part.bounds))
        members.append(part.members)
        rows.append(own_rows)
        known += part.bounds.size - 1
    back = np.argsort(np.concatenate(rows))[start.record_set]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    own_offsets, own_labels = taken_rows(offsets, np.concatenate(labels).astype(np.int32), back)
    names = pa.array(start.catalogue.names, pa.string())
    inner = pa.ListArray.from_arrays(
        pa.array(np.cumsum(np.concatenate(bounds)), pa.int32()),
        names.take(pa.array(np.concatenate(members), pa.int64())),
    )
    return pa.ListArray.from_arrays(pa.array(own_offsets, pa.int32()), inner.take(pa.array(own_labels, pa.int32())))
