"""Disjoint groups of k to 2k - 1 neighbours of an order, each published as one, with the fewest flipped bits."""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled
from anon_spark.kernels.bitmaps import Sets
from anon_spark.kernels.classes import Codes, Ints

UNREACHED = np.int64(np.iinfo(np.int64).max)
NO_LABEL = -1


def best_groups(sets: Sets, order: Ints, k: int, labels: Codes | Ints | None = None) -> Ints | None:
    """Sizes of consecutive groups of k to 2k - 1 records of an order.

    labels: one number per record, -1 for a record that has none; inside a group labels are then pairwise distinct.
    None: too few records, or equal labels too close together.
    Guarantee: Σ over groups Σ over items min(c, s - c) is minimal, where c of the s records have the item.
    Ties: the earliest last border, then the one before. Cost: 4k times all items; no memory beyond the order.
    """
    if order.size < k:
        return None
    if labels is None:
        labels = np.full(order.size, NO_LABEL, dtype=np.int64)
    known = labels != NO_LABEL
    numbers = np.full(labels.size, NO_LABEL, dtype=np.int32)
    distinct, numbers[known] = np.unique(labels[known], return_inverse=True)
    back = cheapest_cuts(sets, order, k, numbers, distinct.size)
    if back[order.size] < 0:
        return None
    sizes, end = list[int](), order.size
    while end > 0:
        sizes.append(int(end - back[end]))
        end = back[end]
    return np.array(sizes[::-1], dtype=np.int64)


@compiled
def cheapest_cuts(sets: Sets, order: Ints, k: int, labels: Codes, distinct: int) -> Ints:
    """The start of the last group of the first i records, -1 if they cannot be cut. C(i): their least cost."""
    count = order.size
    cost = np.full(count + 1, UNREACHED, dtype=np.int64)
    back = np.full(count + 1, -1, dtype=np.int64)
    cost[0] = 0
    counts = np.zeros(sets.bits.shape[1] * 64, dtype=np.int32)
    having = np.zeros(2 * k + 1, dtype=np.int64)  # how many items c records of the group have
    met = np.full(distinct, -1, dtype=np.int64)  # the last end whose group had the label
    for end in range(k, count + 1):
        if count - end < k and end < count:
            continue  # the remaining records could not form a group
        having[:] = 0
        total, over = np.int64(0), np.int64(0)  # over: items that more than half of the group have
        begin = end
        while begin > 0 and end - begin < 2 * k - 1:
            record = order[begin - 1]
            label = labels[record]
            if label >= 0:
                if met[label] == end:
                    break
                met[label] = end
            begin -= 1
            size = end - begin
            # 1. one more record, none of these items: an item of the majority costs one more
            total += over
            if size % 2 == 0:
                over -= having[size // 2]
            # 2. the items of that record
            for at in range(sets.offsets[record], sets.offsets[record + 1]):
                item = sets.items[at]
                before = counts[item]
                counts[item] = before + 1
                having[before] -= 1
                having[before + 1] += 1
                total += min(before + 1, size - before - 1) - min(before, size - before)
                if 2 * before <= size < 2 * (before + 1):
                    over += 1
            if size >= k and cost[begin] != UNREACHED and cost[begin] + total <= cost[end]:
                cost[end], back[end] = cost[begin] + total, begin
        for position in range(begin, end):
            for at in range(sets.offsets[order[position]], sets.offsets[order[position] + 1]):
                counts[sets.items[at]] = 0
    return back
