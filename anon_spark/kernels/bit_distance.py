"""BTD: how far the item sets of two clusters are apart, the farthest pair counting (R-5).

BTD(a, b) = (|a ⊕ b| + 1) / (|a ∧ b| + 1) · |a ∨ b| falls as more items are common. So two sizes bound a pair from above; of
sets that stand by falling size a few pairs decide, and a pair without a common item at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernels.bitmaps import WORD_BITS, Words, ones
from anon_spark.kernels.classes import HASH_MULTIPLIER, Codes, Ints
from anon_spark.kernels.compiled import compiled
from anon_spark.kernels.relation import Floats

Distances = NDArray[np.float32]


class ItemLists(NamedTuple):
    """Cluster c has the sets clusters[c] … clusters[c + 1] - 1, set s the items[sets[s] : sets[s + 1]], ascending.

    Items are any numbers. A set that several records of a cluster have stands there once.
    """

    clusters: Ints
    sets: Ints
    items: Codes | Ints


class Sorted(NamedTuple):
    """The sets of each cluster by falling size: the frequent items as one bit each, the others listed, with 64 bits in
    which two lists with a common item meet. And the items that all sets of a cluster have."""

    clusters: Ints
    size: Ints
    frequent: Words
    marks: Words
    sets: Ints
    items: Ints
    core_offsets: Ints
    core: Ints


def diameters(lists: ItemLists) -> Floats:
    """BTD of each cluster: the farthest of its own pairs, 0 for a single set."""
    return _diameters(_sorted(lists, _frequent(lists.items)))


def union_distances(lists_a: ItemLists, diameters_a: Floats, lists_b: ItemLists, diameters_b: Floats) -> Distances:
    """BTD of the union of each cluster of a with each of b, both diameters included.

    Guarantee: the exact maximum, rounded once. Cost: a few pairs of sets for each pair of clusters; all of them at worst.
    """
    frequent = _frequent(np.concatenate([lists_a.items, lists_b.items]))
    return _across(_sorted(lists_a, frequent), diameters_a, _sorted(lists_b, frequent), diameters_b)


def distances_within(lists: ItemLists) -> Distances:
    """BTD of the union of every two clusters, each pair looked at once; on the diagonal their own."""
    by_size = _sorted(lists, _frequent(lists.items))
    return _within(by_size, _diameters(by_size))


def _frequent(items: Codes | Ints) -> Ints:
    """The items that most sets have, as many as a word has bits, ascending."""
    found, counts = np.unique(items, return_counts=True)
    most: Ints = np.sort(found[np.argsort(-counts, kind="stable")[:WORD_BITS]]).astype(np.int64)
    return most


def _sorted(lists: ItemLists, frequent: Ints) -> Sorted:
    """Cost: one sort of the sets, a few passes over the items."""
    size = np.diff(lists.sets)
    cluster = np.repeat(np.arange(lists.clusters.size - 1), np.diff(lists.clusters))
    order = np.lexsort((-size, cluster))
    size = size[order]
    offsets = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - lists.sets[:-1][order], size)
    items, clusters = lists.items[places].astype(np.int64), lists.clusters.astype(np.int64)
    bit = np.searchsorted(frequent, items)
    is_rare = frequent[np.minimum(bit, frequent.size - 1)] != items if frequent.size else np.ones(items.size, dtype=np.bool_)
    bits, rare = np.zeros(size.size, dtype=np.uint64), items[is_rare]
    _mark(offsets, np.where(is_rare, -1, bit), bits)
    rare_offsets = np.concatenate([[0], np.cumsum(is_rare)])[offsets].astype(np.int64)
    marks = np.zeros(size.size, dtype=np.uint64)
    _mark(rare_offsets, ((rare.astype(np.uint64) * HASH_MULTIPLIER) >> np.uint64(58)).astype(np.int64), marks)
    return Sorted(clusters, size.astype(np.int64), bits, marks, rare_offsets, rare, *_cores(clusters, offsets, items))


@compiled
def _mark(sets: Ints, bits: Ints, words: Words) -> None:
    """Set the bits of each set; -1 is none."""
    for number in range(words.size):
        for at in range(sets[number], sets[number + 1]):
            if bits[at] >= 0:
                words[number] |= np.uint64(1) << np.uint64(bits[at])


@compiled
def _cores(clusters: Ints, sets: Ints, items: Ints) -> tuple[Ints, Ints]:
    """The items common to all sets of each cluster: those of its last, smallest set that the others have too."""
    offsets = np.zeros(clusters.size, dtype=np.int64)
    core = np.empty(items.size, dtype=np.int64)
    kept = 0
    for number in range(clusters.size - 1):
        if clusters[number] < clusters[number + 1]:
            smallest = clusters[number + 1] - 1
            begin = kept
            for at in range(sets[smallest], sets[smallest + 1]):
                core[kept] = items[at]
                kept += 1
            for other in range(clusters[number], smallest):
                end, at, place = begin, sets[other], begin
                while at < sets[other + 1] and place < kept:
                    if items[at] == core[place]:
                        core[end] = core[place]
                        end, at, place = end + 1, at + 1, place + 1
                    elif items[at] < core[place]:
                        at += 1
                    else:
                        place += 1
                kept = end
        offsets[number + 1] = kept
    return offsets, core[:kept]


@compiled
def _common(items: Ints, one: int, end: int, others: Ints, other: int, last: int) -> int:
    """How many numbers two ascending lists share."""
    same = 0
    while one < end and other < last:
        if items[one] == others[other]:
            same += 1
            one += 1
            other += 1
        elif items[one] < others[other]:
            one += 1
        else:
            other += 1
    return same


@compiled
def _farthest(
    first: int, last: int, size: Ints, frequent: Words, marks: Words, sets: Ints, items: Ints,
    other_first: int, other_last: int, other_size: Ints, other_frequent: Words, other_marks: Words, other_sets: Ints,
    other_items: Ints, shared: int, known: float,
) -> float:  # fmt: skip
    """The greatest BTD of a set of one cluster with a set of another, or `known` if that is greater.

    shared: how many items every such pair has in common at least. Plain arrays: to pass a tuple of them costs more than
    what is done here.
    """
    for one in range(first, last):
        for other in range(other_first, other_last):
            total = size[one] + other_size[other]
            if (total - 2 * shared + 1) * (total - shared) <= known * (shared + 1):
                if other == other_first:
                    return known  # all that follow are smaller
                break
            same = ones(frequent[one] & other_frequent[other])
            if (total - 2 * same + 1) * (total - same) <= known * (same + 1):
                continue
            if marks[one] & other_marks[other]:
                same += _common(items, sets[one], sets[one + 1], other_items, other_sets[other], other_sets[other + 1])
            known = max(known, (total - 2 * same + 1) * (total - same) / (same + 1))
    return known


@compiled
def _diameters(lists: Sorted) -> Floats:
    clusters, size, frequent, marks = lists.clusters, lists.size, lists.frequent, lists.marks
    sets, items = lists.sets, lists.items
    found = np.zeros(clusters.size - 1)
    for number in range(found.size):
        last = clusters[number + 1]
        shared = lists.core_offsets[number + 1] - lists.core_offsets[number]
        for one in range(clusters[number], last - 1):  # with those after it
            found[number] = _farthest(
                one, one + 1, size, frequent, marks, sets, items,
                one + 1, last, size, frequent, marks, sets, items, shared, found[number],
            )  # fmt: skip
    return found


@compiled
def _across(lists: Sorted, diameters: Floats, others: Sorted, other_diameters: Floats) -> Distances:
    found = np.empty((diameters.size, other_diameters.size), dtype=np.float32)
    for one in range(diameters.size):
        _row(lists, one, diameters[one], others, other_diameters, 0, found[one])
    return found


@compiled
def _within(lists: Sorted, diameters: Floats) -> Distances:
    found = np.empty((diameters.size, diameters.size), dtype=np.float32)
    for one in range(diameters.size):
        found[one, one] = diameters[one]
        _row(lists, one, diameters[one], lists, diameters, one + 1, found[one])
        for other in range(one + 1, diameters.size):
            found[other, one] = found[one, other]
    return found


@compiled
def _row(
    lists: Sorted, one: int, diameter: float, others: Sorted, other_diameters: Floats, begin: int, found: Distances
) -> None:
    """The union of one cluster with each other from `begin` on."""
    size, frequent, marks, sets, items = lists.size, lists.frequent, lists.marks, lists.sets, lists.items
    first, last = lists.clusters[one], lists.clusters[one + 1]
    core, core_end = lists.core_offsets[one], lists.core_offsets[one + 1]
    clusters, cores, other_size, other_sets = others.clusters, others.core_offsets, others.size, others.sets
    other_frequent, other_marks, other_items = others.frequent, others.marks, others.items
    for other in range(begin, other_diameters.size):
        shared = 0
        if core < core_end and cores[other] < cores[other + 1]:
            shared = _common(lists.core, core, core_end, others.core, cores[other], cores[other + 1])
        found[other] = _farthest(
            first, last, size, frequent, marks, sets, items,
            clusters[other], clusters[other + 1], other_size, other_frequent, other_marks, other_sets, other_items,
            shared, max(diameter, other_diameters[other]),
        )  # fmt: skip
