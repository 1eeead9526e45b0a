"""Moves of first clusters between merged ones, as compiled code (R-15)."""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled, inlined, inner
from anon_spark.families.relational_transaction.kernels.relation import (
    SCALE,
    Floats,
    Relation,
    own_penalties,
)
from anon_spark.kernels.classes import Ints

PASSES = 20
WORK = 4_000_000_000  # values compared in all passes of one call, about ten seconds


@compiled
def moved(relation: Relation, lo: Floats, hi: Floats, sizes: Ints, cluster: Ints, most: int, work: int) -> int:
    """Move first clusters, given by lo, hi and sizes, to the merged cluster that lowers Σ records · NCP most; returns how many.

    cluster: the merged cluster of each, 0 to the last, is changed. They are looked at in their order, again and again until none
    moves. One that is alone stays; a merged cluster gets no more than `most` records. work: values that may be compared.
    Guarantee: Σ records · NCP falls with every move, roundings included.
    """
    count, width = lo.shape
    clusters = int(cluster.max()) + 1
    low, high = np.full((clusters, width), np.inf), np.full((clusters, width), -np.inf)
    # how many members have the least and the greatest value: without one of several the range stays
    at_low, at_high = np.zeros((clusters, width), dtype=np.int64), np.zeros((clusters, width), dtype=np.int64)
    records, members = np.zeros(clusters, dtype=np.int64), np.zeros(clusters, dtype=np.int64)
    head, after, before = np.full(clusters, -1), np.full(count, -1), np.full(count, -1)  # lists of members
    for one in range(count):
        of = cluster[one]
        _widen(low[of], high[of], at_low[of], at_high[of], lo[one], hi[one])
        records[of] += sizes[one]
        members[of] += 1
        after[one], head[of] = head[of], one
        if after[one] >= 0:
            before[after[one]] = one
    scale = min(SCALE, 2.0**61 / max(1, records.sum()))  # records times price is a whole number of 64 bits
    price = _rounded(own_penalties(relation, low, high), scale)
    rest_low, rest_high = np.empty((1, width)), np.empty((1, width))
    rest_at_low, rest_at_high = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
    moves = 0
    for _ in range(PASSES):
        started = moves
        for one in range(count):
            of, size = cluster[one], sizes[one]
            if members[of] == 1:
                continue
            # 1. what its cluster gains without it
            left, alone = price[of], False
            for at in range(width):
                rest_at_low[at] = at_low[of, at] - (lo[one, at] == low[of, at])
                rest_at_high[at] = at_high[of, at] - (hi[one, at] == high[of, at])
                alone = alone or rest_at_low[at] == 0 or rest_at_high[at] == 0
            rest_low[0], rest_high[0] = low[of], high[of]
            if alone:
                rest_low[:], rest_high[:] = np.inf, -np.inf
                member = head[of]
                while member >= 0:
                    if member != one:
                        _widen(rest_low[0], rest_high[0], rest_at_low, rest_at_high, lo[member], hi[member])
                    member = after[member]
                left = _rounded(own_penalties(relation, rest_low, rest_high), scale)[0]
                work -= members[of] * width
            gained = records[of] * price[of] - (records[of] - size) * left
            # 2. the cluster that pays least for it
            into, least, joined = _cheapest(relation, low, high, records, price, lo[one], hi[one], size, of, most, gained, scale)
            work -= clusters * width
            if into >= 0 and gained - least > 2 * (records[of] + records[into] + size):  # more than roundings
                if after[one] >= 0:
                    before[after[one]] = before[one]
                if before[one] >= 0:
                    after[before[one]] = after[one]
                else:
                    head[of] = after[one]
                after[one], before[one] = head[into], -1
                before[head[into]] = one
                head[into], cluster[one] = one, into
                low[of], high[of], price[of] = rest_low[0], rest_high[0], left
                at_low[of], at_high[of] = rest_at_low, rest_at_high
                _widen(low[into], high[into], at_low[into], at_high[into], lo[one], hi[one])
                price[into] = joined
                records[of] -= size
                records[into] += size
                members[of] -= 1
                members[into] += 1
                moves += 1
            if work < 0:
                return moves
        if moves == started:
            break
    return moves


@inlined
def _cheapest(
    relation: Relation,
    low: Floats,
    high: Floats,
    records: Ints,
    price: Ints,
    lo: Floats,
    hi: Floats,
    size: int,
    of: int,
    most: int,
    gained: int,
    scale: float,
) -> tuple[int, int, int]:
    """The cluster that pays least for a member, the first of several; what it pays, and its price then. -1: all pay too much."""
    is_number, weights, spans, leaves = relation.is_number, relation.weight, relation.span, relation.leaves
    starts, first, share = relation.starts, relation.first, relation.share
    into, least, least_joined = -1, gained, 0
    for other in range(records.size):
        if other == of or records[other] + size > most:
            continue
        lost, joined, paid = 0.0, 0, least
        for attribute in range(lo.size):
            left, right = min(low[other, attribute], lo[attribute]), max(high[other, attribute], hi[attribute])
            if is_number[attribute]:
                if spans[attribute] > 0:
                    lost += weights[attribute] * ((right - left) / spans[attribute])
            else:
                at = starts[attribute]
                while first[at + np.int64(left)] != first[at + np.int64(right)]:
                    at += leaves[attribute]
                lost += weights[attribute] * share[at + np.int64(left)]
            joined = int(np.rint(scale * lost))
            paid = (records[other] + size) * joined - records[other] * price[other]
            if paid >= least:  # the other attributes only add to it
                break
        if paid < least:
            into, least, least_joined = other, paid, joined
    return into, least, least_joined


@inner
def _widen(low: Floats, high: Floats, at_low: Ints, at_high: Ints, lo: Floats, hi: Floats) -> None:
    """Widen a range by another, and count whose ends are at its ends; all of it is changed in place."""
    for at in range(lo.size):
        if lo[at] < low[at]:
            low[at], at_low[at] = lo[at], 0
        if hi[at] > high[at]:
            high[at], at_high[at] = hi[at], 0
        at_low[at] += lo[at] == low[at]
        at_high[at] += hi[at] == high[at]


@inner
def _rounded(ncp: Floats, scale: float) -> Ints:
    """Whole multiples of 1 / scale, so that sums are exact."""
    return np.rint(scale * ncp).astype(np.int64)
