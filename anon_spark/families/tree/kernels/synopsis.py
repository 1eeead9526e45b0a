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

from anon_spark.compiled import compiled, inner
from anon_spark.families.tree.kernels.trees import NONE, Flags, Trees
from anon_spark.kernels.classes import EMPTY, HASH_MULTIPLIER, Codes, Ints
from anon_spark.kernels.utility import Floats

# of paths while they are found: their rows, to which slots lead by hash; SEEN is the record that had one last
LABEL, PARENT, COUNT, SEEN = range(4)
GONE = -3


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
    """Of records, each standing for `weight` records; equal siblings may stand in one. Cost: one look-up per node, one sort of
    distinct paths.
    """
    return in_preorder(*grown(trees, np.repeat(weights, trees.sizes)))


def updated_synopsis(before: Synopsis, trees: Trees, is_changed: Flags) -> Synopsis:
    """Of records that were recoded otherwise before: the same as `synopsis` of them.

    before: of these records as they were. is_changed: by label, which stand for other values than before, or did. A path without
    such a label is in the same records as before; those with one are counted anew. Cost: a look at every node, a look-up for
    those at or below a changed label and above them, one sort of distinct paths.
    """
    return in_preorder(*regrown(before, trees, is_changed))


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
    """Labels, parents and counts of all distinct paths, as they appear; a path counts once in a record."""
    offsets, labels, parents = trees.offsets, trees.labels, trees.parents
    rows, slots, size = empty_paths(1 << 10)
    place = np.empty(labels.size, dtype=np.int64)
    for record in range(offsets.size - 1):
        begin = offsets[record]
        for at in range(begin, offsets[record + 1]):
            above = NONE if parents[at] == NONE else place[begin + parents[at]]
            if size == rows.shape[0]:
                rows, slots = roomier(rows)
            node = path_number(rows, slots, size, above, labels[at])
            size += node == size
            place[at] = node
            if rows[node, SEEN] != record:
                rows[node, SEEN] = record
                rows[node, COUNT] += counts[at]
    return columns_of_paths(rows, size)


@compiled
def regrown(before: Synopsis, trees: Trees, is_changed: Flags) -> tuple[Codes, Codes, Ints]:
    """As `grown` for records that each stand for one, from what the synopsis was."""
    offsets, labels, parents = trees.offsets, trees.labels, trees.parents
    old_labels, old_parents, old_counts = before.labels, before.parents, before.counts
    # 1. the paths that are counted as before
    rows, slots, size = empty_paths(max(1 << 10, old_labels.size))
    moved = np.empty(old_labels.size, dtype=np.int64)
    for old in range(old_labels.size):
        above = NONE if old_parents[old] == NONE else moved[old_parents[old]]
        moved[old] = GONE
        if above != GONE and not is_changed[old_labels[old]]:
            moved[old] = path_number(rows, slots, size, above, old_labels[old])
            rows[moved[old], COUNT] = old_counts[old]
            size += 1
    # 2. those with a changed label
    place, is_below = np.empty(labels.size, dtype=np.int64), np.zeros(labels.size, dtype=np.bool_)
    is_needed = np.zeros(labels.size, dtype=np.bool_)
    for record in range(offsets.size - 1):
        begin, end, found = offsets[record], offsets[record + 1], False
        for at in range(begin, end):
            is_below[at] = is_changed[labels[at]] or (parents[at] != NONE and is_below[begin + parents[at]])
            is_needed[at] = is_below[at]
            found |= is_below[at]
        if not found:
            continue
        for at in range(end - 1, begin - 1, -1):
            if is_needed[at] and parents[at] != NONE:
                is_needed[begin + parents[at]] = True
        for at in range(begin, end):
            if not is_needed[at]:
                continue
            above = NONE if parents[at] == NONE else place[begin + parents[at]]
            if size == rows.shape[0]:
                rows, slots = roomier(rows)
            node = path_number(rows, slots, size, above, labels[at])
            size += node == size
            place[at] = node
            if is_below[at] and rows[node, SEEN] != record:
                rows[node, SEEN] = record
                rows[node, COUNT] += 1
    return columns_of_paths(rows, size)


@inner
def empty_paths(room: int) -> tuple[Ints, Codes, int]:
    """No path yet, room for so many."""
    slots = 1 << 11
    while slots < 2 * room:
        slots *= 2
    return np.empty((room, 4), dtype=np.int64), np.full(slots, EMPTY, dtype=np.int32), 0


@inner
def path_number(rows: Ints, slots: Codes, size: int, above: int, label: int) -> int:
    """The number of a path; `size`, if it is new, and then it has a row."""
    word = np.uint64((above << 32) + label) * HASH_MULTIPLIER
    slot = np.int64(word ^ (word >> np.uint64(32))) & (slots.size - 1)
    while slots[slot] != EMPTY:
        node = slots[slot]
        if rows[node, LABEL] == label and rows[node, PARENT] == above:
            return int(node)
        slot = (slot + 1) & (slots.size - 1)
    slots[slot] = size
    rows[size, LABEL], rows[size, PARENT], rows[size, COUNT], rows[size, SEEN] = label, above, 0, NONE
    return size


@inner
def roomier(rows: Ints) -> tuple[Ints, Codes]:
    """The same paths with twice the room."""
    more, slots, _ = empty_paths(2 * rows.shape[0])
    for node in range(rows.shape[0]):
        path_number(more, slots, node, rows[node, PARENT], rows[node, LABEL])
        more[node] = rows[node]
    return more, slots


@inner
def columns_of_paths(rows: Ints, size: int) -> tuple[Codes, Codes, Ints]:
    return rows[:size, LABEL].astype(np.int32), rows[:size, PARENT].astype(np.int32), rows[:size, COUNT].copy()


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
