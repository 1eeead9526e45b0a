"""The synopsis of many nested records: one trie of all their paths, with the number of records that have each; and RPD.

RPD_a sums over the leaf paths of the synopsis (supports of the path's nodes) / Π depth · |C(label)|, and divides by nodes times
leaves. Distributed, a synopsis is cut by the first two labels of its paths. Nodes of depth 1 then stand in several parts: their
records are counted in a part of their own, in the others they have the count 0 and only hold the depth, and what a path owes to
their support is kept as a factor until all parts are there (`Shares`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import NamedTuple

import numpy as np

from anon_spark.families.tree.kernels.trees import NONE, Trees
from anon_spark.kernels.classes import EMPTY, HASH_MULTIPLIER, Codes, Ints
from anon_spark.kernels.compiled import compiled
from anon_spark.kernels.transactions import longer
from anon_spark.kernels.utility import Floats


class Synopsis(NamedTuple):
    """Nodes in canonical preorder: label, parent (NONE right below the root, which is no node), records that have the path."""

    labels: Codes
    parents: Codes
    counts: Ints


class Shares(NamedTuple):
    """One row for each node of depth 1 (second = NONE) and of depth 2, with all that lies below the latter.

    inverses: Σ over leaf paths of 1 / Π depth · |C|, times which the support of depth 1 enters; a node of depth 1 gives its own,
    which counts only if nothing is below it. totals: the same sum with the supports from depth 2 on.
    supports: of depth 1, else 0.
    """

    first: Codes
    second: Codes
    supports: Ints
    inverses: Floats
    totals: Floats
    nodes: Ints
    leaves: Ints


def synopsis(trees: Trees, weights: Ints) -> Synopsis:
    """Of canonical records, each standing for `weight` records. Cost: one look-up per node, one sort of distinct paths."""
    return in_preorder(*grown(trees, np.repeat(weights, trees.sizes)))


def merged_synopses(parts: Sequence[Synopsis]) -> Synopsis:
    """Of all records together."""
    offsets = np.concatenate([[0], np.cumsum([part.labels.size for part in parts], dtype=np.int64)])
    labels = np.concatenate([np.zeros(0, dtype=np.int32), *(part.labels for part in parts)])
    parents = np.concatenate([np.zeros(0, dtype=np.int32), *(part.parents for part in parts)])
    counts = np.concatenate([np.zeros(0, dtype=np.int64), *(part.counts for part in parts)])
    return in_preorder(*grown(Trees(offsets, labels, parents), counts))


def split(whole: Synopsis, parts: int) -> Iterator[tuple[int, Synopsis]]:
    """The synopsis in up to `parts` numbered parts by the first two labels of its paths.

    Nodes of depth 1 are in all of them, with their counts in the first one only.
    """
    depths = depths_of(whole.parents)
    second = np.where(depths == 2, np.arange(depths.size), 0)
    second = np.maximum.accumulate(second)  # in preorder: the node of depth 2 above
    part_of = (whole.labels[second] + 7 * whole.labels[np.maximum(whole.parents[second], 0)]) % parts
    for part in range(parts):
        inside = (depths == 1) | (part_of == part)
        if part and not (inside & (depths > 1)).any():
            continue
        place = np.cumsum(inside) - 1
        above = whole.parents[inside]
        counts = np.where((depths == 1) & (part > 0), 0, whole.counts)[inside]
        yield part, Synopsis(whole.labels[inside], np.where(above < 0, -1, place[above]).astype(np.int32), counts)


def shares_of(part: Synopsis, factors: Floats | Ints) -> Shares:
    """Of a whole synopsis or of a complete part. factors: |C(u)| by label. The same subtree gives the same bits."""
    return Shares(*summed_shares(part, factors.astype(np.float64, copy=False)))


def rpd_a_of(shares: Sequence[Shares]) -> float:
    """RPD_a from the shares of all complete parts, in any order.

    Guarantee: the same float however the synopsis was cut, as long as no two rows have both labels equal but those of depth 1.
    """
    first, second, supports, inverses, totals, nodes, leaves = map(np.concatenate, zip(*shares, strict=True))
    tops, number = np.unique(first, return_inverse=True)
    support = np.zeros(tops.size, dtype=np.int64)
    np.add.at(support, number, supports)
    below = second != NONE
    is_leaf = np.bincount(number[below], minlength=tops.size) == 0
    top_inverses = np.zeros(tops.size, dtype=np.float64)
    top_inverses[number[~below]] = inverses[~below]
    terms = [support[is_leaf] * top_inverses[is_leaf], support[number[below]] * inverses[below] + totals[below]]
    all_nodes, all_leaves = int(nodes[below].sum()) + tops.size, int(leaves[below].sum()) + int(is_leaf.sum())
    return fsum(np.concatenate(terms).tolist()) / (all_nodes * all_leaves)


def rpd_a(whole: Synopsis, factors: Floats | Ints) -> float:
    """RPD_a of a synopsis that has at least one node. factors: |C(u)| by label."""
    return rpd_a_of([shares_of(whole, factors)])


# --- building ----------------------------------------------------------------------------------------------------------


@compiled
def grown(trees: Trees, counts: Ints) -> tuple[Codes, Codes, Ints]:
    """Labels, parents and counts of all distinct paths, as they appear."""
    room, size = 1 << 10, 0
    labels, parents, summed = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    slots = np.full(2 * room, EMPTY, dtype=np.int32)
    place = np.empty(trees.labels.size, dtype=np.int32)
    for record in range(trees.offsets.size - 1):
        begin = trees.offsets[record]
        for at in range(begin, trees.offsets[record + 1]):
            above = NONE if trees.parents[at] == NONE else int(place[begin + trees.parents[at]])
            label = int(trees.labels[at])
            slot = path_slot(slots, labels, parents, above, label)
            if slots[slot] == EMPTY:
                if size == room:
                    room *= 2
                    labels, parents, summed = longer(labels), longer(parents), longer(summed)
                    slots = np.full(2 * room, EMPTY, dtype=np.int32)
                    for node in range(size):
                        slots[path_slot(slots, labels, parents, parents[node], labels[node])] = node
                    slot = path_slot(slots, labels, parents, above, label)
                labels[size], parents[size], summed[size] = label, above, 0
                slots[slot] = size
                size += 1
            place[at] = slots[slot]
            summed[slots[slot]] += counts[at]
    return labels[:size].astype(np.int32), parents[:size].astype(np.int32), summed[:size].copy()


@compiled
def path_slot(slots: Codes, labels: Ints, parents: Ints, above: int, label: int) -> int:
    """Where a path is or would be."""
    word = np.uint64((above << 32) + label) * HASH_MULTIPLIER
    slot = np.int64(word ^ (word >> np.uint64(32))) & (slots.size - 1)
    while slots[slot] != EMPTY and (labels[slots[slot]] != label or parents[slots[slot]] != above):
        slot = (slot + 1) & (slots.size - 1)
    return int(slot)


def in_preorder(labels: Codes, parents: Codes, counts: Ints) -> Synopsis:
    """The nodes in canonical preorder; parents stood before children."""
    order, above = preorder(np.argsort((parents.astype(np.int64) << 32) + labels), parents)  # no two are equal
    return Synopsis(labels[order], above, counts[order])


@compiled
def preorder(by_parent: Ints, parents: Codes) -> tuple[Ints, Codes]:
    """The order of the nodes, and each one's parent in it. by_parent: the nodes, the children of each side by side."""
    nodes = parents.size
    start = np.zeros(nodes + 2, dtype=np.int64)  # children of p: by_parent[start[p + 1] : start[p + 2]]
    for node in range(nodes):
        start[parents[node] + 2] += 1
    for node in range(nodes + 1):
        start[node + 1] += start[node]
    order, above, place = np.empty(nodes, np.int64), np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    open_nodes, depth, written = np.empty(nodes + 1, dtype=np.int64), 0, 0
    open_nodes[0] = NONE
    following = start.copy()
    while depth >= 0:
        parent = open_nodes[depth]
        if following[parent + 1] == start[parent + 2]:
            depth -= 1
            continue
        node = by_parent[following[parent + 1]]
        following[parent + 1] += 1
        order[written], above[written], place[node] = node, NONE if parent == NONE else place[parent], written
        written += 1
        depth += 1
        open_nodes[depth] = node
    return order, above


# --- RPD ---------------------------------------------------------------------------------------------------------------


@compiled
def depths_of(parents: Codes) -> Ints:
    """1 for nodes right below the root."""
    depths = np.empty(parents.size, dtype=np.int64)
    for node in range(parents.size):
        depths[node] = 1 if parents[node] == NONE else depths[parents[node]] + 1
    return depths


@compiled
def summed_shares(part: Synopsis, factors: Floats) -> tuple[Codes, Codes, Ints, Floats, Floats, Ints, Ints]:
    nodes, depths = part.labels.size, depths_of(part.parents)
    rows = 0
    for node in range(nodes):
        rows += depths[node] <= 2
    first, second = np.empty(rows, np.int32), np.full(rows, NONE, dtype=np.int32)
    supports, inverses, totals = np.zeros(rows, np.int64), np.zeros(rows, np.float64), np.zeros(rows, np.float64)
    own_nodes, leaves = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    product, below = np.empty(nodes, np.float64), np.empty(nodes, np.int64)  # below: supports from depth 2 on
    row, top = -1, np.int32(NONE)
    for node in range(nodes):
        above, label = part.parents[node], part.labels[node]
        product[node] = (1.0 if above == NONE else product[above]) * depths[node] * factors[label]
        below[node] = 0 if above == NONE else below[above] + part.counts[node]
        if depths[node] <= 2:
            row += 1
            top = label if depths[node] == 1 else top
            first[row] = top
            if depths[node] == 1:
                supports[row] = part.counts[node]
            else:
                second[row] = label
        own_nodes[row] += 1
        if node + 1 == nodes or part.parents[node + 1] != node:  # in preorder a first child follows its parent
            inverses[row] += 1.0 / product[node]
            totals[row] += below[node] / product[node]
            leaves[row] += 1
    return first, second, supports, inverses, totals, own_nodes, leaves


def record_rpd(trees: Trees, factors: Floats | Ints) -> Floats:
    """RPD of each canonical record: the mean over its leaf paths of 1 / Π depth · |C(label)|; 1 for a record without nodes."""
    return means_of_paths(trees, factors.astype(np.float64, copy=False))


@compiled
def means_of_paths(trees: Trees, factors: Floats) -> Floats:
    means = np.ones(trees.offsets.size - 1, dtype=np.float64)
    nodes = trees.labels.size
    product, depth = np.empty(nodes, dtype=np.float64), np.empty(nodes, dtype=np.int64)
    for record in range(means.size):
        begin, end = trees.offsets[record], trees.offsets[record + 1]
        total, leaves = 0.0, 0
        for at in range(begin, end):
            parent = trees.parents[at]
            depth[at] = 1 if parent == NONE else depth[begin + parent] + 1
            above = 1.0 if parent == NONE else product[begin + parent]
            product[at] = above * depth[at] * factors[trees.labels[at]]
            if at + 1 == end or trees.parents[at + 1] != at - begin:
                total += 1.0 / product[at]
                leaves += 1
        if leaves > 0:
            means[record] = total / leaves
    return means
