"""Support counts of single labels and pairs: a counter for each label, pair and relation, without a list of sets per record."""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled
from anon_spark.families.tree.kernels.keys import Layout
from anon_spark.families.tree.kernels.trees import NONE, Flags, Trees
from anon_spark.kernels.classes import Codes, Ints

DENSE_PAIRS = 2**10  # labels whose pairs have a counter each


def tally_of_pairs(trees: Trees, weights: Ints, slots: Codes, layout: Layout, focus: Flags) -> tuple[Ints, Ints]:
    """As `tally` for up to two labels, without negations and secrets: a counter for each label, pair and relation."""
    c = layout.c
    records, both, related = counted_pairs(
        trees,
        np.require(weights, np.int64, ["C", "W"]),
        np.require(slots, np.int32, ["C", "W"]),
        c,
        layout.m,
        np.require(focus, np.bool_, ["C", "W"]),
    )
    counts = np.zeros(layout.keys, dtype=np.int64)
    counts[0] = 0 if focus.size else records
    if layout.m > 0:
        counts[layout.bases[1] : layout.bases[2 if layout.m > 1 else -1]] = np.diagonal(both)
    if layout.m > 1:
        upper = np.triu_indices(c, 1)  # in the order of the keys
        counts[layout.bases[2] :: 2] = both[upper] - related[upper]
        counts[layout.bases[2] + 1 :: 2] = related[upper]
    keys = np.flatnonzero(counts)
    return keys, counts[keys]


@compiled
def counted_pairs(trees: Trees, weights: Ints, slots: Codes, c: int, m: int, focus: Flags) -> tuple[int, Ints, Ints]:
    """Weight of all records; of those with a < b at [a, b], one slot at [a, a]; of those in which one of them is above the other.

    With a focus, only of those sets that have a slot in it.
    """
    offsets, labels, parents = trees.offsets, trees.labels, trees.parents
    both, related = np.zeros((c, c), dtype=np.int64), np.zeros((c, c), dtype=np.int64)
    seen_in, related_in = np.full(c, NONE, dtype=np.int64), np.full((c, c), NONE, dtype=np.int64)
    held, is_wanted = np.empty(c, dtype=np.int64), np.ones(c, dtype=np.bool_)
    for slot in range(focus.size):
        is_wanted[slot] = focus[slot]
    total = 0
    for record in range(offsets.size - 1):
        begin, end, weight = offsets[record], offsets[record + 1], weights[record]
        total += int(weight)
        # 1. the slots of the record
        known, found = 0, False
        for at in range(begin, end):
            slot = slots[labels[at]]
            if slot != NONE and seen_in[slot] != record:
                seen_in[slot] = record
                held[known] = slot
                known += 1
                found |= is_wanted[slot]
        if not found:
            continue
        # 2. pairs
        for one in range(known):
            a = held[one]
            if is_wanted[a]:
                both[a, a] += weight
            if m > 1:
                for other in range(one + 1, known):
                    b = held[other]
                    if is_wanted[a] or is_wanted[b]:
                        both[min(a, b), max(a, b)] += weight
        # 3. relations
        for at in range(begin, end if m > 1 else begin):
            slot = slots[labels[at]]
            above = parents[at] if slot != NONE else NONE
            while above != NONE:
                upper = slots[labels[begin + above]]
                if upper != NONE and upper != slot and (is_wanted[slot] or is_wanted[upper]):
                    a, b = min(slot, upper), max(slot, upper)
                    if related_in[a, b] != record:
                        related_in[a, b] = record
                        related[a, b] += weight
                above = parents[begin + above]
    return total, both, related
