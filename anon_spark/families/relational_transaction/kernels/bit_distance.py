"""BTD: the distance between the item sets of two clusters, taken over their farthest pair (R-5).

BTD(a, b) = (|a ⊕ b| + 1) / (|a ∧ b| + 1) · |a ∨ b| falls as more items are common, so the sizes of two sets bound their
distance from above. With sets sorted by falling size a few pairs decide; a pair without a common item decides at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled, inner
from anon_spark.families.relational_transaction.kernels.relation import Floats
from anon_spark.kernels.bitmaps import WORD_BITS, Words, ones
from anon_spark.kernels.classes import HASH_MULTIPLIER, Codes, Ints

Distances = NDArray[np.float32]


class ItemLists(NamedTuple):
    """Cluster c has the sets clusters[c] … clusters[c + 1] - 1, set s the items[sets[s] : sets[s + 1]], ascending.

    Items are any numbers. A set that several records of a cluster have is listed once.
    """

    clusters: Ints
    sets: Ints
    items: Codes | Ints


class Sorted(NamedTuple):
    """The sets of each cluster by falling size. Frequent items are one bit each; the others are listed, with a 64-bit mark in
    which two lists with a common item share a bit. Also the items that all sets of a cluster have."""

    clusters: Ints
    size: Ints
    frequent: Words
    marks: Words
    sets: Ints
    items: Ints
    core_offsets: Ints
    core: Ints


def diameters(lists: ItemLists) -> Floats:
    """BTD of each cluster: the maximum over pairs of its sets, 0 for a single set."""
    return _diameters(_sorted(lists, _frequent(lists.items)))


def union_distances(lists_a: ItemLists, diameters_a: Floats, lists_b: ItemLists, diameters_b: Floats) -> Distances:
    """BTD of the union of each cluster of a with each of b, both diameters included.

    Guarantee: the exact maximum, rounded once. Cost: a few pairs of sets for each pair of clusters; all of them at worst.
    """
    frequent = _frequent(np.concatenate([lists_a.items, lists_b.items]))
    return _across(_sorted(lists_a, frequent), diameters_a, _sorted(lists_b, frequent), diameters_b)


def distances_within(lists: ItemLists) -> Distances:
    """BTD of the union of every two clusters, each pair computed once; the diagonal has the clusters' own BTD."""
    by_size = _sorted(lists, _frequent(lists.items))
    return _within(by_size, _diameters(by_size))


def _frequent(items: Codes | Ints) -> Ints:
    """The items that most sets have, as many as a word has bits, ascending."""
    distinct, counts = np.unique(items, return_counts=True)
    most: Ints = np.sort(distinct[np.argsort(-counts, kind="stable")[:WORD_BITS]]).astype(np.int64)
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


@inner
def _common(items: Ints, place: int, end: int, others: Ints, other_place: int, last: int) -> int:
    """How many numbers two ascending lists share."""
    same = 0
    while place < end and other_place < last:
        if items[place] == others[other_place]:
            same += 1
            place += 1
            other_place += 1
        elif items[place] < others[other_place]:
            place += 1
        else:
            other_place += 1
    return same


@inner
def _farthest(
    first: int, last: int, size: Ints, frequent: Words, marks: Words, sets: Ints, items: Ints,
    other_first: int, other_last: int, other_size: Ints, other_frequent: Words, other_marks: Words, other_sets: Ints,
    other_items: Ints, shared: int, known: float,
) -> float:  # fmt: skip
    """The greatest BTD of a set of one cluster with a set of another, or `known` if that is greater.

    shared: how many items every such pair has in common at least. Plain arrays, because passing a tuple
    of them costs more than the loop.
    """
    for at in range(first, last):
        for other in range(other_first, other_last):
            total = size[at] + other_size[other]
            if (total - 2 * shared + 1) * (total - shared) <= known * (shared + 1):
                if other == other_first:
                    return known  # all later sets are smaller
                break
            same = ones(frequent[at] & other_frequent[other])
            if (total - 2 * same + 1) * (total - same) <= known * (same + 1):
                continue
            if marks[at] & other_marks[other]:
                same += _common(items, sets[at], sets[at + 1], other_items, other_sets[other], other_sets[other + 1])
            known = max(known, (total - 2 * same + 1) * (total - same) / (same + 1))
    return known


@compiled
def _diameters(lists: Sorted) -> Floats:
    clusters, size, frequent, marks = lists.clusters, lists.size, lists.frequent, lists.marks
    sets, items = lists.sets, lists.items
    farthest = np.zeros(clusters.size - 1)
    for number in range(farthest.size):
        last = clusters[number + 1]
        shared = lists.core_offsets[number + 1] - lists.core_offsets[number]
        for at in range(clusters[number], last - 1):  # with those after it
            farthest[number] = _farthest(
                at, at + 1, size, frequent, marks, sets, items,
                at + 1, last, size, frequent, marks, sets, items, shared, farthest[number],
            )  # fmt: skip
    return farthest


@compiled
def _across(lists: Sorted, diameters: Floats, others: Sorted, other_diameters: Floats) -> Distances:
    distances = np.empty((diameters.size, other_diameters.size), dtype=np.float32)
    for cluster in range(diameters.size):
        _row(lists, cluster, diameters[cluster], others, other_diameters, 0, distances[cluster])
    return distances


@compiled
def _within(lists: Sorted, diameters: Floats) -> Distances:
    distances = np.empty((diameters.size, diameters.size), dtype=np.float32)
    for cluster in range(diameters.size):
        distances[cluster, cluster] = diameters[cluster]
        _row(lists, cluster, diameters[cluster], lists, diameters, cluster + 1, distances[cluster])
        for other in range(cluster + 1, diameters.size):
            distances[other, cluster] = distances[cluster, other]
    return distances


@inner
def _row(
    lists: Sorted,
    cluster: int,
    diameter: float,
    others: Sorted,
    other_diameters: Floats,
    begin: int,
    distances: Distances,
) -> None:
    """The union of one cluster with each other from `begin` on."""
    size, frequent, marks, sets, items = lists.size, lists.frequent, lists.marks, lists.sets, lists.items
    first, last = lists.clusters[cluster], lists.clusters[cluster + 1]
    core, core_end = lists.core_offsets[cluster], lists.core_offsets[cluster + 1]
    clusters, cores, other_size, other_sets = others.clusters, others.core_offsets, others.size, others.sets
    other_frequent, other_marks, other_items = others.frequent, others.marks, others.items
    for other in range(begin, other_diameters.size):
        shared = 0
        if core < core_end and cores[other] < cores[other + 1]:
            shared = _common(lists.core, core, core_end, others.core, cores[other], cores[other + 1])
        distances[other] = _farthest(
            first, last, size, frequent, marks, sets, items,
            clusters[other], clusters[other + 1], other_size, other_frequent, other_marks, other_sets, other_items,
            shared, max(diameter, other_diameters[other]),
        )  # fmt: skip
