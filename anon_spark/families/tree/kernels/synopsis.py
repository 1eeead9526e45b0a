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

from anon_spark.compiled import compiled, inlined, inner, innermost
from anon_spark.families.tree.kernels.trees import NONE, Flags, Trees, largest_record
from anon_spark.kernels.classes import EMPTY, HASH_MULTIPLIER, Codes, Ints
from anon_spark.kernels.utility import Floats

# of paths while they are found: their rows, to which slots lead by hash; SEEN is the record that had one last
LABEL, PARENT, COUNT, SEEN = range(4)
GONE = -3


class Synopsis(NamedTuple):
    """Nodes, parents before children: label, parent (NONE right below the root, which is no node), records that have the path."""

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
    return grown(trees, weights, by_node=False)


def updated_synopsis(before: Synopsis, trees: Trees, image: Codes, is_changed: Flags, records: Ints) -> Synopsis:
    """Of all records, with their labels replaced by their images: the same as `synopsis` of these.

    before: of the same records, recoded otherwise. is_changed: by image, which stand for other values than before, or did.
    records: those with such a label. A path without one is in the same records as before; those with one are counted anew.
    Cost: a look-up for each path before, and for each node of these records at or below a changed label and above them.
    """
    return regrown(before, trees, np.require(image, np.int32, ["C", "W"]), is_changed, records)


def merged_synopses(parts: Sequence[Synopsis]) -> Synopsis:
    """Of all records together."""
    offsets = np.concatenate([[0], np.cumsum([part.labels.size for part in parts], dtype=np.int64)])
    labels = np.concatenate([np.zeros(0, dtype=np.int32), *(part.labels for part in parts)])
    parents = np.concatenate([np.zeros(0, dtype=np.int32), *(part.parents for part in parts)])
    counts = np.concatenate([np.zeros(0, dtype=np.int64), *(part.counts for part in parts)])
    return grown(Trees(offsets, labels, parents), counts, by_node=True)


def split(whole: Synopsis, parts: int) -> Iterator[tuple[int, Synopsis]]:
    """The synopsis in up to `parts` numbered parts by the first two labels of its paths.

    Nodes of depth 1 are in all of them, with their counts in the first one only.
    """
    starts, labels, parents, counts = parted(whole, parts)
    tops = int((whole.parents == NONE).sum())
    for part in range(parts):
        begin, end = starts[part], starts[part + 1]
        if part == 0 or end - begin > tops:
            yield part, Synopsis(labels[begin:end], parents[begin:end], counts[begin:end])


@compiled
def parted(whole: Synopsis, parts: int) -> tuple[Ints, Codes, Codes, Ints]:
    """Where each part begins, and the nodes of all parts; each part begins with the nodes of depth 1. Cost: two passes."""
    old_labels, old_parents, old_counts = whole.labels, whole.parents, whole.counts
    nodes = old_labels.size
    # 1. the place of each node of depth 1, the part of each other one
    place, part_of, sizes, tops = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.zeros(parts, np.int64), 0
    for node in range(nodes):
        above = old_parents[node]
        if above == NONE:
            part_of[node], place[node] = NONE, tops
            tops += 1
            continue
        is_second = part_of[above] == NONE
        part_of[node] = (old_labels[node] + 7 * old_labels[above]) % parts if is_second else part_of[above]
        sizes[part_of[node]] += 1
    starts = np.zeros(parts + 1, dtype=np.int64)
    for part in range(parts):
        starts[part + 1] = starts[part] + sizes[part] + tops
    # 2. the nodes of each part
    length, following = starts[parts], starts[:parts] + tops
    labels, parents, counts = np.empty(length, np.int32), np.empty(length, np.int32), np.empty(length, np.int64)
    for node in range(nodes):
        above, label = old_parents[node], old_labels[node]
        if above == NONE:
            for part in range(parts):
                at = starts[part] + place[node]
                labels[at], parents[at], counts[at] = label, NONE, old_counts[node] if part == 0 else 0
            continue
        part = part_of[node]
        at = following[part]
        labels[at], parents[at], counts[at], place[node] = label, place[above], old_counts[node], at - starts[part]
        following[part] = at + 1
    return starts, labels, parents, counts


def shares_of(part: Synopsis, factors: Floats | Ints) -> Shares:
    """Of a whole synopsis or of a complete part. factors: |C(u)| by label. The same subtree gives the same bits."""
    return Shares(*summed_shares(in_preorder(part), factors.astype(np.float64, copy=False)))


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
def grown(trees: Trees, counts: Ints, by_node: bool) -> Synopsis:
    """All distinct paths, as they appear; a path counts once in a record.

    counts: of each node, or of each record.
    """
    rows, slots, size = empty_paths(1 << 10)
    place, record = np.empty(largest_record(trees), dtype=np.int64), 0
    while record < trees.offsets.size - 1:
        rows, slots = with_room(rows, slots, size, place.size)
        record, size = grow(trees, counts, by_node, record, rows, slots, size, place)
    return columns_of_paths(rows, size)


@innermost
def grow(
    trees: Trees, counts: Ints, by_node: bool, record: int, rows: Ints, slots: Codes, size: int, place: Ints
) -> tuple[int, int]:
    """Add the paths of records from one on, as long as there is room; the first that is left, and how many paths there are."""
    offsets, labels, parents = trees.offsets, trees.labels, trees.parents
    while record < offsets.size - 1 and size + place.size <= rows.shape[0]:
        begin = offsets[record]
        for at in range(begin, offsets[record + 1]):
            above = NONE if parents[at] == NONE else place[parents[at]]
            node = path_number(rows, slots, size, above, labels[at])
            size += node == size
            place[at - begin] = node
            if rows[node, SEEN] != record:
                rows[node, SEEN] = record
                rows[node, COUNT] += counts[at if by_node else record]
        record += 1
    return record, size


@compiled
def regrown(
    before: Synopsis, trees: Trees, image: Codes, is_changed: Flags, records: Ints
) -> Synopsis:
    """As `grown` for records that each stand for one, with the images of their labels, from what the synopsis was."""
    rows, slots, size = empty_paths(max(1 << 10, before.labels.size + before.labels.size // 4))
    size = keep(before, is_changed, rows, slots, np.empty(before.labels.size, dtype=np.int64))
    room = largest_record(trees)
    place, is_below, is_needed = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.bool_), np.empty(room, dtype=np.bool_)
    done = 0
    while done < records.size:
        rows, slots = with_room(rows, slots, size, room)
        done, size = regrow(trees, image, is_changed, records, done, rows, slots, size, place, is_below, is_needed)
    return columns_of_paths(rows, size)


@innermost
def keep(before: Synopsis, is_changed: Flags, rows: Ints, slots: Codes, moved: Ints) -> int:
    """Write the paths without a changed label, with their counts; how many. moved: room, one per path."""
    labels, parents, counts, size = before.labels, before.parents, before.counts, 0
    for old in range(labels.size):
        above = NONE if parents[old] == NONE else moved[parents[old]]
        moved[old] = GONE
        if above != GONE and not is_changed[labels[old]]:
            moved[old] = path_number(rows, slots, size, above, labels[old])
            rows[moved[old], COUNT] = counts[old]
            size += 1
    return size


@innermost
def regrow(
    trees: Trees,
    image: Codes,
    is_changed: Flags,
    records: Ints,
    done: int,
    rows: Ints,
    slots: Codes,
    size: int,
    place: Ints,
    is_below: Flags,
    is_needed: Flags,
) -> tuple[int, int]:
    """Add the paths with a changed label, as long as there is room; how many records are done, and how many paths there are.

    is_below: room, one per node: at or below a changed label. is_needed: or above such a node.
    """
    offsets, labels, parents = trees.offsets, trees.labels, trees.parents
    while done < records.size and size + place.size <= rows.shape[0]:
        record = records[done]
        begin, nodes = offsets[record], offsets[record + 1] - offsets[record]
        for at in range(nodes):
            above = parents[begin + at]
            is_below[at] = is_changed[image[labels[begin + at]]] or (above != NONE and is_below[above])
            is_needed[at] = is_below[at]
        for at in range(nodes - 1, -1, -1):
            above = parents[begin + at]
            if is_needed[at] and above != NONE:
                is_needed[above] = True
        for at in range(nodes):
            if is_needed[at]:
                above, label = parents[begin + at], image[labels[begin + at]]
                node = path_number(rows, slots, size, NONE if above == NONE else place[above], label)
                size += node == size
                place[at] = node
                if is_below[at] and rows[node, SEEN] != record:
                    rows[node, SEEN] = record
                    rows[node, COUNT] += 1
        done += 1
    return done, size


@inner
def empty_paths(room: int) -> tuple[Ints, Codes, int]:
    """No path yet, room for so many."""
    slots = 1 << 11
    while slots < 2 * room:
        slots *= 2
    return np.empty((room, 4), dtype=np.int64), np.full(slots, EMPTY, dtype=np.int32), 0


@inlined
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
def with_room(rows: Ints, slots: Codes, size: int, more: int) -> tuple[Ints, Codes]:
    """The same paths, with room for so many more."""
    if size + more <= rows.shape[0]:
        return rows, slots
    wider, places, _ = empty_paths(size + more + rows.shape[0])
    for node in range(size):
        path_number(wider, places, node, rows[node, PARENT], rows[node, LABEL])
        wider[node] = rows[node]
    return wider, places


@inner
def columns_of_paths(rows: Ints, size: int) -> Synopsis:
    return Synopsis(rows[:size, LABEL].astype(np.int32), rows[:size, PARENT].astype(np.int32), rows[:size, COUNT].copy())


@compiled
def in_preorder(whole: Synopsis) -> Synopsis:
    """The nodes in canonical preorder."""
    labels, parents, counts = whole.labels, whole.parents, whole.counts
    nodes = parents.size
    by_parent = grouped(parents, grouped(labels, np.arange(nodes)))
    start = np.zeros(nodes + 2, dtype=np.int64)  # children of p: by_parent[start[p + 1] : start[p + 2]]
    for node in range(nodes):
        start[parents[node] + 2] += 1
    for node in range(nodes + 1):
        start[node + 1] += start[node]
    into_labels, above, into_counts = np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int64)
    place, written = np.empty(nodes, np.int32), 0
    open_nodes, depth = np.empty(nodes + 1, dtype=np.int64), 0
    open_nodes[0] = NONE
    following = start.copy()
    while depth >= 0:
        parent = open_nodes[depth]
        if following[parent + 1] == start[parent + 2]:
            depth -= 1
            continue
        node = by_parent[following[parent + 1]]
        following[parent + 1] += 1
        into_labels[written], into_counts[written] = labels[node], counts[node]
        above[written], place[node] = NONE if parent == NONE else place[parent], written
        written += 1
        depth += 1
        open_nodes[depth] = node
    return Synopsis(into_labels, above, into_counts)


@inner
def grouped(keys: Codes, order: Ints) -> Ints:
    """The same numbers by their keys, NONE or more; where these are equal, in their order. Cost: one pass over both."""
    most = np.int64(NONE)
    for key in keys:
        most = max(most, np.int64(key))
    following = np.zeros(most + 3, dtype=np.int64)
    for key in keys:
        following[key + 2] += 1
    for key in range(most + 2):
        following[key + 1] += following[key]
    by_key = np.empty(order.size, dtype=np.int64)
    for number in order:
        by_key[following[keys[number] + 1]] = number
        following[keys[number] + 1] += 1
    return by_key


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
