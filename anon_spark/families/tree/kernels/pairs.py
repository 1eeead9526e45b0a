"""Support counts of single labels and pairs: a counter for each label, pair and relation, without a list of sets per record."""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled
from anon_spark.families.tree.kernels.keys import Layout
from anon_spark.families.tree.kernels.trees import NONE, Flags, Trees, largest_record
from anon_spark.kernels.classes import Codes, Ints

DENSE_PAIRS = 2**10  # labels whose pairs have a counter each


def tally_of_pairs(
    trees: Trees, weights: Ints, slots: Codes, layout: Layout, focus: Flags, records: Ints
) -> tuple[Ints, Ints]:
    """As `tally` for up to two labels, without negations and secrets: a counter for each label, pair and relation.

    records: all, or with a focus at least those with a slot in it.
    """
    c = layout.c
    both, related = counted_pairs(
        trees,
        np.require(weights, np.int64, ["C", "W"]),
        np.require(slots, np.int32, ["C", "W"]),
        c,
        layout.m,
        np.require(focus, np.bool_, ["C", "W"]),
        records,
    )
    counts = np.zeros(layout.keys, dtype=np.int64)
    counts[0] = 0 if focus.size else int(weights[records].sum())
    if layout.m > 0:
        counts[layout.bases[1] : layout.bases[2 if layout.m > 1 else -1]] = np.diagonal(both)
    if layout.m > 1:
        upper = np.triu_indices(c, 1)  # in the order of the keys
        counts[layout.bases[2] :: 2] = both[upper] + both.T[upper] - related[upper]
        counts[layout.bases[2] + 1 :: 2] = related[upper]
    keys = np.flatnonzero(counts)
    return keys, counts[keys]


@compiled
def counted_pairs(
    trees: Trees, weights: Ints, slots: Codes, c: int, m: int, focus: Flags, records: Ints
) -> tuple[Ints, Ints]:
    """Weight of the records that have two slots, at one of [a, b] and [b, a], or one, at [a, a]; and of those in which one of
    two is above the other, at [a, b] with a < b.

    With a focus, only of those sets that have a slot in it.
    """
    offsets, labels, parents = trees.offsets, trees.labels, trees.parents
    both, related = np.zeros((c, c), dtype=np.int64), np.zeros((c, c), dtype=np.int64)
    seen_in, related_in = np.full(c, NONE, dtype=np.int64), np.full((c, c), NONE, dtype=np.int64)
    held, slot_of = np.empty(c, dtype=np.int64), np.empty(largest_record(trees), dtype=np.int64)
    is_wanted = np.ones(c, dtype=np.bool_)
    for place in range(focus.size):
        is_wanted[place] = focus[place]
    for record in records:
        begin, end, weight = offsets[record], offsets[record + 1], weights[record]
        # 1. the slots of the record, the wanted ones first
        known, wanted = 0, 0
        for at in range(begin, end):
            slot = np.int64(slots[labels[at]])
            slot_of[at - begin] = slot
            if slot != NONE and seen_in[slot] != record:
                seen_in[slot] = record
                held[known] = slot
                if is_wanted[slot]:
                    held[known], held[wanted] = held[wanted], slot
                    wanted += 1
                known += 1
        # 2. pairs
        for one in range(wanted):
            a = held[one]
            both[a, a] += weight
            for other in range(one + 1, known if m > 1 else 0):
                both[a, held[other]] += weight
        # 3. relations
        for at in range(end - begin if m > 1 else 0):
            slot = slot_of[at]
            above = parents[begin + at] if slot != NONE else NONE
            while above != NONE:
                upper = slot_of[above]
                if upper != NONE and upper != slot and (is_wanted[slot] or is_wanted[upper]):
                    a, b = min(slot, upper), max(slot, upper)
                    if related_in[a, b] != record:
                        related_in[a, b] = record
                        related[a, b] += weight
                above = parents[begin + above]
    return both, related
