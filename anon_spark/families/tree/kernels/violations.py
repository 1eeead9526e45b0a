"""Violations, from the counts of label sets: knowledge that too few records share.

The support of a set V with relations E is the sum of the counts of V over all masks that contain E.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.families.tree.kernels.keys import Entries, Layout, decoded, unrank
from anon_spark.families.tree.kernels.trees import NONE, Flags
from anon_spark.kernels.arrays import write
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.transactions import longer

Relation = tuple[int, int]
Position = tuple[int, tuple[int, ...], int, tuple[Relation, ...]]
"""Where (V, E) stands in the order of the sequential search: size, V, number of relations, E."""


class Violations(NamedTuple):
    """All violations that a tally shows.

    value_violations: sets of 1 … m slots that some records have, but fewer than k. diversity_violations: sets, also the empty
    one, with a sensitive value in more than 1/l of their records. relations: by (|V|, |E|), |E| ≥ 1, with violations of
    either kind: the least supported relation of each violating E, as (ancestor, descendant), distinct and sorted.
    structure_violations: how many (V, E) these are.
    """

    value_violations: int
    diversity_violations: int
    relations: dict[tuple[int, int], list[Relation]]
    structure_violations: dict[tuple[int, int], int]


class Violation(NamedTuple):
    """One violating (V, E) and the relation of E with the least support."""

    slots: tuple[int, ...]
    relations: tuple[Relation, ...]
    least: Relation

    @property
    def position(self) -> Position:
        return len(self.slots), self.slots, len(self.relations), self.relations


def relation_supports(layout: Layout, keys: Ints, counts: Ints) -> Ints:
    """Symmetric [c, c]: the records in which two slots are related, from all sets of two."""
    supports = np.zeros((layout.c, layout.c), dtype=np.int64)
    if layout.m >= 2:
        low, high = np.searchsorted(keys, layout.bases[2:4] * (layout.secrets + 1))
        _, slots, masks, secrets = layout.sets_of(keys[low:high])
        related = (masks == 1) & (secrets == 0)
        first, second = slots[related, :2].T
        supports[first, second] = supports[second, first] = counts[low:high][related]
    return supports


def all_violations(
    layout: Layout,
    keys: Ints,
    counts: Ints,
    k: int,
    l: int,  # noqa: E741 - the l of l-diversity
    n: int,
    supports: Ints,
    ranks: Codes,
) -> Violations:
    """All violations with 0 … n relations, from a tally (of all records, with all sets of the labels asked about).

    l = 0: no sensitive value is looked at. supports: as `relation_supports` gives, empty: taken from the tally. ranks: of each
    slot's node type; the lower one is the ancestor. Cost: one pass; per set with a count below k (with l: every set) the masks
    that occur times the relation sets inside them.
    """
    supports = supports if supports.size else relation_supports(layout, keys, counts)
    entries = decoded(layout, keys)
    shape_starts = starts_of_shapes(layout.m, n)
    values, diversity, times, least = scanned(layout, entries, counts, k, l, n, supports, ranks, shape_starts)
    relations, structure = dict[tuple[int, int], list[Relation]](), dict[tuple[int, int], int]()
    for size in range(2, layout.m + 1):
        for place, number in enumerate(range(shape_starts[size], shape_starts[size + 1])):
            if times[number]:
                structure[size, place + 1] = int(times[number])
                relations[size, place + 1] = [(a, b) for a, b in np.argwhere(least[number]).tolist()]
    return Violations(values, diversity, relations, structure)


def rare_sets(layout: Layout, keys: Ints, counts: Ints, k: int, most: int) -> tuple[Ints, Ints, Ints]:
    """Sets that some records have, but fewer than k: at most so many rows of slots, by size and slots, then NONE.

    Also, by slot: in how many of all these sets it is, and how many records have it. Cost: one pass.
    """
    return listed(layout, decoded(layout, keys), counts, k, most)


@compiled
def listed(layout: Layout, entries: Entries, counts: Ints, k: int, most: int) -> tuple[Ints, Ints, Ints]:
    times, supports = np.zeros(layout.c, dtype=np.int64), np.zeros(layout.c, dtype=np.int64)
    sets, found = np.full((64, layout.m), NONE, dtype=np.int64), 0
    members = np.empty(layout.m, dtype=np.int64)
    at = 0
    while at < counts.size:
        end, size, support = end_of_set(entries, at), entries.sizes[at], 0
        for place in range(at, end):
            if entries.secrets[place] == 0:
                support += counts[place]
        if size == 1:
            unrank(layout, size, entries.ranks[at], members)
            supports[members[0]] = support
        if size > 0 and support < k:
            unrank(layout, size, entries.ranks[at], members)
            for place in range(size):
                times[members[place]] += 1
            if found < most:
                if found == sets.shape[0]:
                    sets = np.concatenate((sets, np.full(sets.shape, NONE, dtype=np.int64)))
                write(members[:size], sets[found])
                found += 1
        at = end
    return sets[:found], times, supports


def first_violation(
    layout: Layout,
    keys: Ints,
    counts: Ints,
    k: int,
    l: int,  # noqa: E741
    n: int,
    supports: Ints,
    ranks: Codes,
    position: Position | None = None,
) -> Violation | None:
    """The first violating (V, E) with 1 … n relations, at or after a position; arguments as for `all_violations`."""
    supports = supports if supports.size else relation_supports(layout, keys, counts)
    entries = decoded(layout, keys)
    at = 0
    while True:
        at, end, masks = next_violating(entries, counts, at, k, l, n, layout.secrets)
        if at == keys.size:
            return None
        slots = np.empty(int(entries.sizes[at]), dtype=np.int64)
        unrank(layout, slots.size, int(entries.ranks[at]), slots)
        members = tuple(slots.tolist())
        of_set = [Violation(members, relations, (0, 0)) for relations in map(_relations(members, ranks), masks.tolist())]
        of_set = [violation for violation in of_set if position is None or violation.position >= position]
        if of_set:
            first = min(of_set, key=lambda violation: violation.position)
            return first._replace(least=min(first.relations, key=lambda pair: (supports[pair], pair)))
        at = end


def _relations(members: tuple[int, ...], ranks: Codes) -> Callable[[int], tuple[Relation, ...]]:
    """What a mask says about these slots, as (ancestor, descendant), sorted."""
    pairs = [(i, j) for j in range(len(members)) for i in range(j)]
    oriented = [sorted((members[i], members[j]), key=lambda slot: int(ranks[slot])) for i, j in pairs]

    def named(mask: int) -> tuple[Relation, ...]:
        return tuple(sorted((upper, lower) for bit, (upper, lower) in enumerate(oriented) if mask >> bit & 1))

    return named


def starts_of_shapes(m: int, n: int) -> Ints:
    """By |V|: where its shapes (|V|, 1), (|V|, 2), … of (V, E) begin when all are numbered."""
    return np.array([sum(min(n, comb(smaller, 2)) for smaller in range(size)) for size in range(m + 2)], dtype=np.int64)


@compiled
def scanned(
    layout: Layout,
    entries: Entries,
    counts: Ints,
    k: int,
    diversity: int,
    n: int,
    supports: Ints,
    ranks: Codes,
    shape_starts: Ints,
) -> tuple[int, int, Ints, Flags]:
    """Violations without relations of both kinds; by shape of (V, E) how many, and which relations are the least of one."""
    values, skewed = 0, 0
    times = np.zeros(shape_starts[-1], dtype=np.int64)
    least = np.zeros((shape_starts[-1], layout.c, layout.c), dtype=np.bool_)
    sums, members = np.zeros(layout.secrets + 1, dtype=np.int64), np.empty(layout.m, dtype=np.int64)
    at = 0
    while at < counts.size:
        end, size = end_of_set(entries, at), entries.sizes[at]
        support, is_skewed = matched(entries, counts, at, end, 0, diversity, sums)
        values += size > 0 and support < k
        skewed += is_skewed
        violating = violating_masks(entries, counts, at, end, k, diversity, n, sums)
        if violating.size > 0:
            unrank(layout, size, entries.ranks[at], members)
        for place in range(violating.size):
            number, lowest, upper, lower = 0, np.int64(0), np.int64(NONE), np.int64(NONE)
            for j in range(1, size):
                for i in range(j):
                    if (violating[place] >> (j * (j - 1) // 2 + i)) & 1:
                        number += 1
                        a, b = members[i], members[j]
                        if ranks[a] > ranks[b]:
                            a, b = b, a
                        pair_support = supports[a, b]
                        if (
                            number == 1
                            or pair_support < lowest
                            or (pair_support == lowest and (a < upper or (a == upper and b < lower)))
                        ):
                            lowest, upper, lower = pair_support, a, b
            times[shape_starts[size] + number - 1] += 1
            least[shape_starts[size] + number - 1, upper, lower] = True
        at = end
    return values, skewed, times, least


@compiled
def next_violating(
    entries: Entries, counts: Ints, at: int, k: int, diversity: int, n: int, secrets: int
) -> tuple[int, int, Ints]:
    """From an entry on, the first set with violating relations: its entries and their masks; the end if there is none."""
    sums = np.zeros(secrets + 1, dtype=np.int64)
    while at < counts.size:
        end = end_of_set(entries, at)
        violating = violating_masks(entries, counts, at, end, k, diversity, n, sums)
        if violating.size > 0:
            return at, end, violating
        at = end
    return counts.size, counts.size, np.empty(0, dtype=np.int64)


@inner
def end_of_set(entries: Entries, at: int) -> int:
    """Where the entries of the same V end."""
    end = at + 1
    while end < entries.ranks.size and entries.ranks[end] == entries.ranks[at] and entries.sizes[end] == entries.sizes[at]:
        end += 1
    return int(end)


@inner
def matched(
    entries: Entries, counts: Ints, begin: int, end: int, wanted: int, diversity: int, sums: Ints
) -> tuple[int, bool]:
    """Records of a set with all wanted relations, and whether a secret is in too many of them. sums: zeros, and again."""
    support = np.int64(0)
    for at in range(begin, end):
        if entries.masks[at] & wanted == wanted:
            if entries.secrets[at] == 0:
                support += counts[at]
            else:
                sums[entries.secrets[at]] += counts[at]
    skewed = False
    for at in range(begin, end):
        secret = entries.secrets[at]
        skewed |= secret > 0 and sums[secret] * diversity > support
        sums[secret] = 0
    return int(support), bool(skewed)


@inner
def violating_masks(
    entries: Entries, counts: Ints, begin: int, end: int, k: int, diversity: int, n: int, sums: Ints
) -> Ints:
    """The sets E of 1 … n relations that violate, as masks, by number of relations.

    Fewer than k records have E only if fewer than k have a mask that contains it, so other masks give no E.
    """
    candidates = np.int64(0)
    for at in range(begin, end):
        if entries.secrets[at] == 0 and (diversity > 0 or counts[at] < k):
            candidates |= entries.masks[at]
    if candidates == 0 or n == 0:
        return np.empty(0, dtype=np.int64)
    bits, width = np.empty(64, dtype=np.int64), 0
    while candidates >> width > 0:
        width += 1
    relations = 0
    for bit in range(width):
        if (candidates >> bit) & 1:
            bits[relations] = np.int64(1) << bit
            relations += 1
    violating, count = np.empty(8, dtype=np.int64), 0
    chosen, masks = np.empty(n + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    for size in range(1, min(n, relations) + 1):
        depth, chosen[0] = 0, -1
        while depth >= 0:
            chosen[depth] += 1
            if chosen[depth] > relations - size + depth:
                depth -= 1
                continue
            masks[depth + 1] = masks[depth] | bits[chosen[depth]]
            if depth < size - 1:
                depth += 1
                chosen[depth] = chosen[depth - 1]
                continue
            support, skewed = matched(entries, counts, begin, end, masks[size], diversity, sums)
            if support > 0 and (support < k or skewed):
                if count == violating.size:
                    violating = longer(violating)
                violating[count] = masks[size]
                count += 1
    return violating[:count]
