"""One-pass k-means for k-anonymity, OKA (Lin and Wei, PAIS 2008).

Every row joins one of n / k clusters. Then each cluster keeps the k rows nearest to its start. The others go to clusters
that lack rows and, when none does, to any cluster. A row always joins the cluster whose loss grows least.

Departures: the starts are every k-th row in the order of the values, not random rows. The centre of a cluster is its start,
because values of hierarchies have no mean. Rows that were removed are placed nearest first, not in random order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled
from anon_spark.families.mst.kernels.distances import Levels, common_level, in_runs
from anon_spark.families.mst.kernels.losses import LARGE, climb, node_weights, weight_at, weight_with_tuple
from anon_spark.kernels.classes import EMPTY, Codes, Ints
from jobs.baselines.scoring import check_rows


class Clusters(NamedTuple):
    """Per cluster: the leaves of its start, the levels on which its rows agree, rows, weight."""

    start: Codes
    level: Codes
    size: Ints
    weight: Ints


def oka(levels: Levels, leaf: Codes, k: int) -> Codes:
    """The class of each row. Cost: rows × clusters."""
    check_rows(leaf, k)
    count, weights = len(leaf) // k, node_weights(levels, len(leaf))
    class_of = np.full(len(leaf), EMPTY, dtype=np.int32)

    # 1. one pass: each row joins a cluster
    values = in_runs(levels).place[leaf + levels.offsets]
    order = np.lexsort(values.T[::-1])  # the first attribute is the first key
    starts = order[: count * k : k]
    class_of[starts] = np.arange(count)
    others = order[class_of[order] == EMPTY]
    place(levels, weights, leaf, empty_clusters(leaf[starts]), np.append(starts, others), class_of, 0)

    # 2. each cluster keeps its k nearest rows; the others are placed again
    distance = distances(levels, weights, leaf, leaf[starts[class_of]])
    distance[starts] = -1  # a start stays in its cluster, even among equal rows
    by_cluster = np.lexsort((distance, class_of))
    firsts = np.searchsorted(class_of[by_cluster], np.arange(count))
    rank = np.arange(len(leaf)) - firsts[class_of[by_cluster]]  # of a row within its cluster
    kept, removed = by_cluster[rank < k], by_cluster[rank >= k]
    removed = removed[np.lexsort((removed, distance[removed]))]
    class_of[removed] = EMPTY
    place(levels, weights, leaf, empty_clusters(leaf[starts]), np.append(kept, removed), class_of, k)
    return class_of


def empty_clusters(start: Codes) -> Clusters:
    """One cluster without rows for each start."""
    count = len(start)
    return Clusters(start, np.zeros_like(start), np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64))


@compiled
def place(
    levels: Levels, weights: Ints, leaf: Codes, clusters: Clusters, order: Ints, class_of: Codes, k: int
) -> None:
    """Add the rows to their clusters. Those without one choose it, among the clusters of fewer than k rows if there are any."""
    lacking = k * clusters.size.size  # rows that clusters need
    for row in order:
        if class_of[row] == EMPTY:
            most = k - 1 if lacking > 0 else LARGE
            class_of[row] = least_grown(levels, weights, clusters, leaf[row], most)
        number = class_of[row]
        climb(levels, clusters.level[number], clusters.start[number], leaf[row])
        clusters.size[number] += 1
        clusters.weight[number] = weight_at(levels, weights, clusters.level[number], clusters.start[number])
        lacking -= 1


@compiled
def least_grown(levels: Levels, weights: Ints, clusters: Clusters, row: Codes, most: int) -> int:
    """The cluster of at most `most` rows whose loss grows least with a row."""
    best, least = EMPTY, LARGE
    for number in range(clusters.size.size):
        size, weight = clusters.size[number], clusters.weight[number]
        if size > most or weight >= least:  # the loss grows by at least the weight
            continue
        limit = (least + size * weight) // (size + 1) + 1
        grown = weight_with_tuple(levels, weights, clusters.level[number], clusters.start[number], weight, row, limit)
        growth = (size + 1) * grown - size * weight
        if growth < least:
            best, least = number, growth
    return best


@compiled
def distances(levels: Levels, weights: Ints, leaf: Codes, other: Codes) -> Ints:
    """The distance of each row from another one: the weight of their common nodes."""
    distance = np.zeros(leaf.shape[0], dtype=np.int64)
    for row in range(leaf.shape[0]):
        for attribute in range(leaf.shape[1]):
            level = common_level(levels, attribute, leaf[row, attribute], other[row, attribute], 0)
            node = levels.starts[attribute] + level * levels.leaves[attribute] + leaf[row, attribute]
            distance[row] += weights[node]
    return distance
