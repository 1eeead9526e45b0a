"""CAHD: groups of p records with p labels, one after the other along an order, each of near records."""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled
from anon_spark.kernels.bitmaps import Sets, Words, flips, hamming, size_of, width_of
from anon_spark.kernels.classes import Codes, Ints


@compiled
def cahd_groups(sets: Sets, order: Ints, labels: Codes, p: int, alpha: int) -> Codes:
    """The group of each record, numbered as found; the records left over at the end form the last one.

    labels: numbers 0, 1, …, each of at most n/p records. Guarantee: all groups but the last have p records with p labels,
    the last one no label more often than in one of p records. Ties: the nearer rank, then the one before.
    Cost: records × candidates; a label that occurs nowhere near is looked for up to the end of the order.
    """
    count = order.size
    before, after = np.arange(-1, count - 1), np.arange(1, count + 1)  # the free ranks, as a linked list
    group = np.full(count, -1, dtype=np.int32)
    often = np.zeros(labels.max() + 1, dtype=np.int64)
    for record in range(count):
        often[labels[record]] += 1
    most = often.max()
    sharing = np.zeros(most + 1, dtype=np.int64)  # how many labels occur so often among the free records
    for label in range(often.size):
        sharing[often[label]] += 1
    met = np.full(often.size, -1, dtype=np.int64)  # the last rank that met the label
    near = np.empty(2 * alpha * p, dtype=np.int64)
    far = np.empty(2 * alpha * p, dtype=np.int64)
    chosen = np.empty(p, dtype=np.int64)
    groups, free = 0, count
    for rank in range(count):
        record = order[rank]
        if group[record] >= 0:
            continue
        # 1. candidates: the nearest free record of each label, at most alpha * p on either side
        met[labels[record]] = rank
        found, unmet = 0, often.size - sharing[0] - 1
        for side in range(2):
            accepted, at = 0, before[rank] if side == 0 else after[rank]
            while 0 <= at < count and accepted < alpha * p and unmet > 0:
                label = labels[order[at]]
                if met[label] != rank:
                    met[label] = rank
                    near[found], far[found] = at, hamming(sets, order[at], record)
                    found, accepted, unmet = found + 1, accepted + 1, unmet - 1
                at = before[at] if side == 0 else after[at]
        if found < p - 1:
            continue
        # 2. the most similar of them
        chosen[0] = rank
        for member in range(1, p):
            best = -1
            for at in range(found):
                if far[at] >= 0 and (best < 0 or _closer(far, near, rank, at, best)):
                    best = at
            chosen[member], far[best] = near[best], -1
        # 3. accepted, unless a label would be left too often
        for member in range(p):
            _less_often(often, sharing, labels[order[chosen[member]]], 1)
        while most > 0 and sharing[most] == 0:
            most -= 1
        if most * p > free - p:
            for member in range(p):
                _less_often(often, sharing, labels[order[chosen[member]]], -1)
            continue  # `most` has not fallen: before, it was at most free / p
        for member in range(p):
            at = chosen[member]
            group[order[at]] = groups
            if before[at] >= 0:
                after[before[at]] = after[at]
            if after[at] < count:
                before[after[at]] = before[at]
        groups, free = groups + 1, free - p
    for record in range(count):
        if group[record] < 0:
            group[record] = groups
    return group


@compiled
def _closer(far: Ints, near: Ints, rank: int, one: int, other: int) -> bool:
    if far[one] != far[other]:
        return bool(far[one] < far[other])
    ranks, others = abs(near[one] - rank), abs(near[other] - rank)
    return bool(ranks < others or (ranks == others and near[one] < near[other]))


@compiled
def _less_often(often: Ints, sharing: Ints, label: int, times: int) -> None:
    sharing[often[label]] -= 1
    often[label] -= times
    sharing[often[label]] += 1


@compiled
def group_bases(sets: Sets, group: Codes) -> Words:
    """Per group the items that more than half of its records have. Cost: all items, twice."""
    words, groups = sets.bits.shape[1], group.max() + 1
    bases = np.zeros((groups, words), dtype=np.uint64)
    counts = np.zeros(words * 64, dtype=np.int32)
    members = np.argsort(group, kind="mergesort")
    first = 0
    while first < members.size:
        last = first
        while last < members.size and group[members[last]] == group[members[first]]:
            record = members[last]
            for at in range(sets.offsets[record], sets.offsets[record + 1]):
                counts[sets.items[at]] += 1
            last += 1
        for record in members[first:last]:
            for at in range(sets.offsets[record], sets.offsets[record + 1]):
                item = sets.items[at]
                if 2 * counts[item] > last - first:
                    bases[group[record], item >> 6] |= np.uint64(1) << np.uint64(item & 63)
                counts[item] = 0
        first = last
    return bases


@compiled
def group_errors(sets: Sets, group: Codes, bases: Words) -> tuple[float, int]:
    """ER as a sum: over the records that have items, their flipped bits by their items; and how many these are."""
    total, counted = 0.0, 0
    widths = np.empty(bases.shape[0], dtype=np.int64)
    for number in range(widths.size):
        widths[number] = width_of(bases[number])
    for record in range(group.size):
        own = size_of(sets, record)
        if own > 0:
            total += flips(sets, record, bases[group[record]], widths[group[record]]) / own
            counted += 1
    return total, counted
