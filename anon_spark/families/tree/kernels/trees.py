"""Nested records as arrays: a record is a set of label paths, closed under prefixes, so a trie of labels.

In canonical form a record's nodes stand in preorder and siblings are distinct and ascend by label; equal records then have
equal arrays. Everything that recodes records moves or renames nodes first and merges equal siblings at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anon_spark.compiled import compiled, inner
from anon_spark.kernels.classes import HASH_MULTIPLIER, Codes, Ints

Flags = NDArray[np.bool_]
Path = tuple[int, ...]

NONE = -1
NO_LABEL = -2
ROOT = 0  # of a record while it is merged: its nodes are 1, 2, …


class Trees(NamedTuple):
    """Records 0 … n-1: the nodes of record r are labels[offsets[r] : offsets[r + 1]], parents before children.

    parents: the place of a node's parent inside the record, NONE right below the record's root, which is no node.
    """

    offsets: Ints
    labels: Codes
    parents: Codes

    @classmethod
    def of(cls, offsets: ArrayLike, labels: ArrayLike, parents: ArrayLike) -> Trees:
        """From arrays of any kind: as the loops were compiled for, writable and side by side."""
        return cls(
            np.require(offsets, np.int64, ["C", "W"]),
            np.require(labels, np.int32, ["C", "W"]),
            np.require(parents, np.int32, ["C", "W"]),
        )

    @property
    def records(self) -> int:
        return int(self.offsets.size) - 1

    @property
    def sizes(self) -> Ints:
        """How many nodes each record has."""
        return np.diff(self.offsets)


# --- records in and out ------------------------------------------------------------------------------------------------


def trees_of(records: Sequence[Iterable[Path]]) -> Trees:
    """Records from their paths, in any order, prefixes given or not; canonical. Plain Python: for few records."""
    offsets, labels, parents = [0], list[int](), list[int]()
    for paths in records:
        closed = sorted({path[:end] for path in paths for end in range(1, len(path) + 1)})  # sorted paths are a preorder
        place = {path: at for at, path in enumerate(closed)}
        labels += [path[-1] for path in closed]
        parents += [place.get(path[:-1], NONE) for path in closed]
        offsets.append(len(labels))
    return Trees.of(offsets, np.array(labels, dtype=np.int32), np.array(parents, dtype=np.int32))


def paths_of(trees: Trees, record: int) -> list[Path]:
    """The paths from the record's root to its leaves, sorted; none for an empty record."""
    nodes = slice(trees.offsets[record], trees.offsets[record + 1])
    paths = list[Path]()
    inner = set[int]()
    for label, parent in zip(trees.labels[nodes].tolist(), trees.parents[nodes].tolist(), strict=True):
        paths.append((*(paths[parent] if parent != NONE else ()), label))
        inner.add(parent)
    return sorted({path for at, path in enumerate(paths) if at not in inner})


@compiled
def leaf_paths(trees: Trees) -> tuple[Ints, Ints, Codes]:
    """All paths from roots to leaves, in preorder: where each record's paths begin, where each path's labels, and these."""
    nodes, records = trees.labels.size, trees.offsets.size - 1
    depth = np.empty(nodes, dtype=np.int64)
    is_leaf = np.ones(nodes, dtype=np.bool_)
    of_record = np.zeros(records + 1, dtype=np.int64)
    length = 0
    for record in range(records):
        begin = trees.offsets[record]
        for at in range(begin, trees.offsets[record + 1]):
            depth[at] = 1
            if trees.parents[at] != NONE:
                depth[at] += depth[begin + trees.parents[at]]
                is_leaf[begin + trees.parents[at]] = False
        of_record[record + 1] = of_record[record]
        for at in range(begin, trees.offsets[record + 1]):
            if is_leaf[at]:
                of_record[record + 1] += 1
                length += depth[at]
    of_path, labels = np.zeros(of_record[-1] + 1, dtype=np.int64), np.empty(length, dtype=np.int32)
    path = 0
    for record in range(records):
        begin = trees.offsets[record]
        for at in range(begin, trees.offsets[record + 1]):
            if is_leaf[at]:
                of_path[path + 1] = of_path[path] + depth[at]
                node = at - begin
                for place in range(of_path[path + 1] - 1, of_path[path] - 1, -1):
                    labels[place] = trees.labels[begin + node]
                    node = np.int64(trees.parents[begin + node])
                path += 1
    return of_record, of_path, labels


def packed(trees: Trees) -> bytes:
    """All records as one value that can travel."""
    parts = [np.array([trees.records], dtype="<i8"), trees.offsets.astype("<i8", copy=False)]
    parts += [trees.labels.astype("<i4", copy=False), trees.parents.astype("<i4", copy=False)]
    return b"".join(part.tobytes() for part in parts)


def unpacked(data: bytes) -> Trees:
    """The records again, in arrays of their own."""
    records = int(np.frombuffer(data, "<i8", 1)[0])
    offsets = np.frombuffer(data, "<i8", records + 1, 8)
    nodes, start = int(offsets[-1]), 8 * (records + 2)
    return Trees.of(
        offsets, np.frombuffer(data, "<i4", nodes, start), np.frombuffer(data, "<i4", nodes, start + 4 * nodes)
    )


# --- choosing records --------------------------------------------------------------------------------------------------


def taken(trees: Trees, order: Ints) -> Trees:
    """The records of these numbers, in this order."""
    sizes = trees.sizes[order]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - trees.offsets[:-1][order], sizes)
    return Trees(offsets, trees.labels[places], trees.parents[places])


def concatenated(parts: Sequence[Trees]) -> Trees:
    """The records of all parts, in their order."""
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(part.sizes for part in parts)])
    return Trees(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([np.zeros(0, dtype=np.int32), *(part.labels for part in parts)]),
        np.concatenate([np.zeros(0, dtype=np.int32), *(part.parents for part in parts)]),
    )


@inner
def largest_record(trees: Trees) -> int:
    """How many nodes the largest record has."""
    most = np.int64(0)
    for record in range(trees.offsets.size - 1):
        most = max(most, trees.offsets[record + 1] - trees.offsets[record])
    return int(most)


class Holders(NamedTuple):
    """The records that hold a label, ascending, each once: records[offsets[label] : offsets[label + 1]]."""

    offsets: Ints
    records: Codes


@compiled
def holders_of(trees: Trees, labels: int) -> Holders:
    """Of each of so many labels. Cost: two passes; 4 bytes per node, as the labels themselves."""
    offsets, seen_in = np.zeros(labels + 1, dtype=np.int64), np.full(labels, NONE, dtype=np.int64)
    for record in range(trees.offsets.size - 1):
        for at in range(trees.offsets[record], trees.offsets[record + 1]):
            label = trees.labels[at]
            if seen_in[label] != record:
                seen_in[label] = record
                offsets[label + 1] += 1
    for label in range(labels):
        offsets[label + 1] += offsets[label]
    following, records = offsets[:-1].copy(), np.empty(offsets[-1], dtype=np.int32)
    seen_in[:] = NONE
    for record in range(trees.offsets.size - 1):
        for at in range(trees.offsets[record], trees.offsets[record + 1]):
            label = trees.labels[at]
            if seen_in[label] != record:
                seen_in[label] = record
                records[following[label]] = record
                following[label] += 1
    return Holders(offsets, records)


@compiled
def holding(holders: Holders, is_wanted: Flags, records: int) -> Ints:
    """The records that hold a label that is wanted (by label), ascending. records: how many there are."""
    is_holding, count = np.zeros(records, dtype=np.bool_), 0
    for label in range(is_wanted.size):
        if is_wanted[label]:
            for at in range(holders.offsets[label], holders.offsets[label + 1]):
                is_holding[holders.records[at]] = True
    for record in range(records):
        count += is_holding[record]
    found, count = np.empty(count, dtype=np.int64), 0
    for record in range(records):
        if is_holding[record]:
            found[count] = record
            count += 1
    return found


def distinct(trees: Trees, weights: Ints) -> tuple[Trees, Ints]:
    """Equal canonical records as one, in the order of their first, with the sum of their weights. Exact."""
    row, chosen = distinct_records(trees)
    summed = np.zeros(chosen.size, dtype=np.int64)
    np.add.at(summed, row, weights)
    return taken(trees, chosen), summed


@compiled
def distinct_records(trees: Trees) -> tuple[Ints, Ints]:
    """The row of each record, rows numbered as they appear, and the first record of each row."""
    records = trees.offsets.size - 1
    bits = 4
    while (1 << bits) < 2 * records:
        bits += 1
    shift = np.uint64(64 - bits)
    slots = np.full(1 << bits, NONE, dtype=np.int64)
    row, chosen, hashes = np.empty(records, np.int64), np.empty(records, np.int64), np.empty(records, np.uint64)
    count = 0
    for record in range(records):
        word = np.uint64(trees.offsets[record + 1] - trees.offsets[record])
        for at in range(trees.offsets[record], trees.offsets[record + 1]):
            node = (np.int64(trees.labels[at]) << 32) + np.int64(trees.parents[at])
            word = (word ^ (word >> np.uint64(31)) ^ np.uint64(node)) * HASH_MULTIPLIER
        word = (word ^ (word >> np.uint64(31))) * HASH_MULTIPLIER
        slot = np.int64(word >> shift)
        while slots[slot] != NONE:
            if hashes[slots[slot]] == word and same_record(trees, record, chosen[slots[slot]]):
                break
            slot = (slot + 1) & (slots.size - 1)
        if slots[slot] == NONE:
            slots[slot], chosen[count], hashes[count] = count, record, word
            count += 1
        row[record] = slots[slot]
    return row, chosen[:count].copy()


@inner
def same_record(trees: Trees, record: int, other: int) -> bool:
    begin, start = trees.offsets[record], trees.offsets[other]
    if trees.offsets[record + 1] - begin != trees.offsets[other + 1] - start:
        return False
    for place in range(trees.offsets[record + 1] - begin):
        if trees.labels[begin + place] != trees.labels[start + place]:
            return False
        if trees.parents[begin + place] != trees.parents[start + place]:
            return False
    return True


# --- recoding ----------------------------------------------------------------------------------------------------------


def canonical(trees: Trees) -> Trees:
    """The same sets of paths in canonical form; siblings may repeat in any order.

    Cost: per node at most the number of its distinct siblings, one step where these ascend.
    """
    return merged_siblings(trees)


def renamed(trees: Trees, image: Codes) -> Trees:
    """Every label replaced by its image; equal siblings are left. Raises ValueError for a label without image."""
    labels, least = images_of(trees.labels, np.require(image, np.int32, ["C", "W"]))
    if least < 0:
        raise ValueError("a label lies above the cut")
    return Trees(trees.offsets, labels, trees.parents)


@compiled
def images_of(labels: Codes, image: Codes) -> tuple[Codes, int]:
    """The image of each label, and the least one, or 0. Cost: a third of what an index of arrays costs."""
    images, least = np.empty(labels.size, dtype=np.int32), np.int32(0)
    for at in range(labels.size):
        images[at] = image[labels[at]]
        least = min(least, images[at])
    return images, int(least)


def projected(trees: Trees, image: Codes, top: int) -> Trees:
    """Every label replaced by its image, equal siblings merged with all below them.

    The cut {*} (`top` is its own image) leaves the path `*` in every record, and below it nodes whose image is not `*`, with
    what lay between them taken out. Raises ValueError for a label without image.
    """
    images = renamed(trees, image)
    return merged_siblings(starred(images, top) if image[top] == top else images)


def disassociated(trees: Trees, pairs: Codes) -> Trees:
    """dis(a, b) for each row (a, b) of pairs, one after the other, on every canonical record.

    On every path with a above b, b loses what is below it to its parent and becomes a leaf beside a. Never more nodes.
    Cost: per record one look at each pair; its nodes once for each pair of which it has both labels.
    """
    return disassociated_uses(trees, pairs, np.zeros(trees.records, dtype=np.int64))[0]


def disassociated_uses(trees: Trees, pairs: Codes, weights: Ints) -> tuple[Trees, Ints]:
    """The same, and for each pair the weight of the records that had its relation when its turn came."""
    if not trees.labels.size or not pairs.size:
        return trees, np.zeros(pairs.shape[0], dtype=np.int64)
    width = 1 + max(int(trees.labels.max()), int(pairs.max()))
    return disassociated_records(trees, np.require(pairs, np.int32, ["C", "W"]), weights, width)


class Merging(NamedTuple):
    """One record while its nodes are merged: labels, parents, the first child, next sibling and last touched child of each."""

    labels: Codes
    parents: Codes
    first: Codes
    following: Codes
    touched: Codes
    place: Codes  # of a node before merging: what it became; after that, of a merged node: where it was written


@compiled
def empty_merging(trees: Trees) -> Merging:
    """Room for the largest record."""
    room = largest_record(trees) + 1
    return Merging(
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
    )


@inner
def merge_record(labels: Codes, parents: Codes, work: Merging, into_labels: Codes, into_parents: Codes) -> int:
    """Write one record in canonical form; how many nodes it has."""
    merged, first, following, touched, place = work.labels, work.first, work.following, work.touched, work.place
    merged[ROOT], first[ROOT], touched[ROOT] = NO_LABEL, ROOT, ROOT
    count = 0
    for at in range(labels.size):
        label = labels[at]
        above = ROOT if parents[at] == NONE else place[parents[at]]
        before, child = np.int32(ROOT), touched[above]
        if child == ROOT or merged[child] > label:
            child = first[above]
        while child != ROOT and merged[child] < label:
            before, child = child, following[child]
        if child == ROOT or merged[child] != label:
            count += 1
            merged[count], work.parents[count], first[count], touched[count] = label, above, ROOT, ROOT
            following[count] = child
            if before == ROOT:
                first[above] = count
            else:
                following[before] = count
            child = np.int32(count)
        touched[above] = child
        place[at] = child
    node, written = np.int32(first[ROOT]), 0
    while node != ROOT:
        above = work.parents[node]
        into_labels[written], into_parents[written] = merged[node], NONE if above == ROOT else place[above]
        place[node] = written
        written += 1
        if first[node] != ROOT:
            node = first[node]
            continue
        while node != ROOT and following[node] == ROOT:
            node = work.parents[node]
        if node != ROOT:
            node = following[node]
    return written


@compiled
def starred(trees: Trees, top: int) -> Trees:
    """Every record below one new node `top`, without its own nodes of that label; siblings may repeat."""
    records = trees.offsets.size - 1
    offsets = np.zeros(records + 1, dtype=np.int64)
    labels, parents = np.empty(trees.labels.size + records, np.int32), np.empty(trees.labels.size + records, np.int32)
    place = np.empty(trees.labels.size, dtype=np.int32)
    for record in range(records):
        begin, start = trees.offsets[record], offsets[record]
        labels[start], parents[start] = top, NONE
        written = 1
        for at in range(begin, trees.offsets[record + 1]):
            above = np.int32(0) if trees.parents[at] == NONE else place[begin + trees.parents[at]]
            if trees.labels[at] == top:
                place[at] = above
                continue
            labels[start + written], parents[start + written], place[at] = trees.labels[at], above, written
            written += 1
        offsets[record + 1] = start + written
    return Trees(offsets, labels[: offsets[-1]].copy(), parents[: offsets[-1]].copy())


@compiled
def merged_siblings(trees: Trees) -> Trees:
    work = empty_merging(trees)
    offsets = np.zeros(trees.offsets.size, dtype=np.int64)
    labels, parents = np.empty(trees.labels.size, dtype=np.int32), np.empty(trees.labels.size, dtype=np.int32)
    for record in range(trees.offsets.size - 1):
        begin, end, written = trees.offsets[record], trees.offsets[record + 1], offsets[record]
        offsets[record + 1] = written + merge_record(
            trees.labels[begin:end], trees.parents[begin:end], work, labels[written:], parents[written:]
        )
    return Trees(offsets, labels[: offsets[-1]].copy(), parents[: offsets[-1]].copy())


@compiled
def disassociated_records(trees: Trees, pairs: Codes, weights: Ints, width: int) -> tuple[Trees, Ints]:
    """As `disassociated_uses`. Equal siblings are merged once, after the last pair: every pair acts on each path by itself."""
    work = empty_merging(trees)
    offsets = np.zeros(trees.offsets.size, dtype=np.int64)
    labels, parents = np.empty(trees.labels.size, dtype=np.int32), np.empty(trees.labels.size, dtype=np.int32)
    seen_in, uses = np.full(width, NONE, dtype=np.int64), np.zeros(pairs.shape[0], dtype=np.int64)
    above, left = np.empty(work.labels.size, dtype=np.int32), np.empty(work.labels.size, dtype=np.int32)
    for record in range(trees.offsets.size - 1):
        begin, end, written = trees.offsets[record], trees.offsets[record + 1], offsets[record]
        old_labels = trees.labels[begin:end]
        for at in range(old_labels.size):
            seen_in[old_labels[at]] = record
            above[at] = trees.parents[begin + at]
        changed = False
        for pair in range(pairs.shape[0]):
            upper, lower = pairs[pair, 0], pairs[pair, 1]
            both = seen_in[upper] == record and seen_in[lower] == record
            if both and disassociate(old_labels, above, left, upper, lower):
                changed = True
                uses[pair] += weights[record]
        if changed:
            offsets[record + 1] = written + merge_record(
                old_labels, above[: old_labels.size], work, labels[written:], parents[written:]
            )
        else:
            for at in range(old_labels.size):
                labels[written + at], parents[written + at] = old_labels[at], above[at]
            offsets[record + 1] = written + old_labels.size
    return Trees(offsets, labels[: offsets[-1]].copy(), parents[: offsets[-1]].copy()), uses


@inner
def disassociate(labels: Codes, parents: Codes, left: Codes, upper: int, lower: int) -> bool:
    """Move every node `lower` that is below an `upper` beside that one; whether there was one. left: room, one per node.

    Below a moved node nothing of the same node type stands, so parents change once in one walk, parents before children.
    """
    changed = False
    for at in range(labels.size):
        left[at] = NO_LABEL  # the parent a moved node left
        if parents[at] != NONE and left[parents[at]] != NO_LABEL:
            parents[at] = left[parents[at]]
        if labels[at] == lower:
            node = parents[at]
            while node != NONE and labels[node] != upper:
                node = parents[node]
            if node != NONE:
                left[at], parents[at] = parents[at], parents[node]
                changed = True
    return changed
