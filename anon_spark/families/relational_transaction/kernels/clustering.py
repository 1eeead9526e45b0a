"""Clusters of k relational records: first blocks of similar records, then in each block random seeds with their nearest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled, inner
from anon_spark.errors import DataError
from anon_spark.families.relational_transaction.kernels.relation import (
    SCALE,
    Floats,
    Relation,
    own_penalties,
    penalties,
)
from anon_spark.kernels.arrays import write
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.randomness import uniform

CLUSTER = "cluster"  # purpose of the secret draws
TAKEN = -1.0  # below every penalty


@compiled
def blocks_of(relation: Relation, values: Floats, most: int, least: int) -> Ints:
    """The block of each record: halved while larger than `most`, by the cut after which the halves lose least (R-10).

    Numbers are cut between two values, categories between two children of the lowest node that covers the block, both
    as near to the middle of the records as can be (ties: the lower). A block that has no cut with `least` records on
    both sides stays. Ties of attributes: the first. Blocks are numbered from the lower to the upper side of every cut.
    Cost: records × attributes² × log(records / most).
    """
    count = values.shape[0]
    number = np.empty(count, dtype=np.int64)
    members, moved = np.arange(count), np.empty(count, dtype=np.int64)
    room = count // max(least, 1) + 2
    firsts, lasts = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    firsts[0], lasts[0] = 0, count
    pending, blocks = 1, 0
    while pending > 0:
        pending -= 1
        first, last = firsts[pending], lasts[pending]
        inside = members[first:last]
        cut, side = -1, np.zeros(0, dtype=np.bool_)
        if last - first > most:
            cut, side = _best_cut(relation, values, inside, max(least, 1))
        if cut < 0:
            for member in inside:
                number[member] = blocks
            blocks += 1
            continue
        left, right = first, first + cut
        for at in range(inside.size):
            if side[at]:
                moved[left] = inside[at]
                left += 1
            else:
                moved[right] = inside[at]
                right += 1
        write(moved[first:last], members[first:last])
        firsts[pending], lasts[pending] = first + cut, last
        firsts[pending + 1], lasts[pending + 1] = first, first + cut
        pending += 2
    return number


@inner
def _best_cut(relation: Relation, values: Floats, inside: Ints, least: int) -> tuple[int, NDArray[np.bool_]]:
    """Size and members of the lower side of the best cut; size -1 if there is no cut."""
    size, attributes = inside.size, values.shape[1]
    best, cost, chosen = -1, np.inf, np.zeros(size, dtype=np.bool_)
    key = np.empty(size)
    lo, hi = np.empty((2, attributes)), np.empty((2, attributes))
    for attribute in range(attributes):
        # 1. the units to separate: values, or children of the lowest common node
        for at in range(size):
            key[at] = values[inside[at], attribute]
        low, high = key.min(), key.max()
        if low == high:
            continue
        if not relation.is_number[attribute]:
            width, child, above = relation.leaves[attribute], np.int64(0), relation.starts[attribute]
            while relation.first[above + np.int64(low)] != relation.first[above + np.int64(high)]:
                child, above = above, above + width
            for at in range(size):
                key[at] = relation.first[child + np.int64(key[at])]
        # 2. the border nearest to the middle
        middle = np.partition(key, size // 2)[size // 2]
        below, upto = 0, 0
        for at in range(size):
            below += key[at] < middle
            upto += key[at] <= middle
        is_lower = abs(2 * below - size) <= abs(2 * upto - size)
        lower = below if is_lower else upto
        if min(lower, size - lower) < least:
            continue
        # 3. the loss of the halves
        lo[:], hi[:] = np.inf, -np.inf
        for at in range(size):
            half = 0 if key[at] < middle or (key[at] == middle and not is_lower) else 1
            for other in range(attributes):
                value = values[inside[at], other]
                lo[half, other] = min(lo[half, other], value)
                hi[half, other] = max(hi[half, other], value)
        lost = own_penalties(relation, lo, hi)
        price = np.rint(SCALE * ((lower * lost[0] + (size - lower) * lost[1]) / size))
        if price < cost:
            best, cost = lower, price
            for at in range(size):
                chosen[at] = key[at] < middle or (key[at] == middle and not is_lower)
    return best, chosen


def cluster_block(relation: Relation, values: Floats, k: int, key: str, block: int) -> Ints:
    """CLUSTER on the records of one block in the order of their rid: the smallest member of each record's cluster.

    A random record and its k - 1 nearest (ties: the smaller) form a cluster, until fewer than k are left; each of these joins
    the cluster that loses least with it (ties: the smallest member). Guarantee: every cluster has k records or more.
    Cost: records² / 2k × attributes.
    """
    count = values.shape[0]
    if count < k:
        raise DataError(f"{count} records are fewer than k = {k}. Lower k, or give more rows.", records=count, k=k)
    draws = uniform(key, CLUSTER, block, np.arange(count, k - 1, -k))
    return clusters(relation, values, k, draws)


@compiled
def clusters(relation: Relation, values: Floats, k: int, draws: Ints) -> Ints:
    """CLUSTER with given draws: seed i is the draws[i]-th of the records that are left."""
    count, attributes = values.shape
    left = np.arange(count)
    numbers = np.empty((attributes, count))  # of the records that are left, side by side
    leaves, places = np.empty((attributes, count)), np.empty((attributes, count), dtype=np.int32)  # of categories: in `leaves`
    known = np.zeros(attributes, dtype=np.int64)
    for attribute in range(attributes):
        if relation.is_number[attribute]:
            write(values[:, attribute], numbers[attribute])
        else:
            distinct = np.unique(values[:, attribute])
            known[attribute] = distinct.size
            write(distinct, leaves[attribute])
            write(np.searchsorted(distinct, values[:, attribute]), places[attribute])
    number = np.empty(count, dtype=np.int64)
    head = np.empty(draws.size, dtype=np.int64)
    lo, hi = np.empty((draws.size, attributes)), np.empty((draws.size, attributes))
    cost, lost, least = np.empty(count), np.empty(count), np.empty(k)
    chosen = np.empty(k, dtype=np.int64)
    remaining = count
    for cluster in range(draws.size):
        # 1. the seed's penalties with all
        seed = draws[cluster]
        cost[:remaining] = 0.0
        for attribute in range(attributes):
            weight, span = relation.weight[attribute], relation.span[attribute]
            if not relation.is_number[attribute]:
                places_left = places[attribute]
                _shares_from(relation, attribute, leaves[attribute, : known[attribute]], int(places_left[seed]), lost)
                for at in range(remaining):
                    cost[at] += weight * lost[np.uint32(places_left[at])]
            elif span > 0:
                numbers_left = numbers[attribute]
                seed_value = numbers_left[seed]
                for at in range(remaining):
                    cost[at] += weight * (abs(numbers_left[at] - seed_value) / span)
        for at in range(remaining):
            cost[at] = np.rint(SCALE * cost[at])
        cost[seed] = TAKEN
        # 2. the k smallest
        _smallest(cost, remaining, least)
        farthest, ties = least[k - 1], k
        for place in range(k):
            ties -= least[place] < farthest
        found = 0
        for at in range(remaining):
            if cost[at] < farthest or (cost[at] == farthest and ties > 0):
                ties -= cost[at] == farthest
                chosen[found] = at
                found += 1
        lo[cluster], hi[cluster], head[cluster] = np.inf, -np.inf, count
        for place in range(k):
            record = left[chosen[place]]
            number[record] = cluster
            head[cluster] = min(head[cluster], record)
            for attribute in range(attributes):
                lo[cluster, attribute] = min(lo[cluster, attribute], values[record, attribute])
                hi[cluster, attribute] = max(hi[cluster, attribute], values[record, attribute])
        _take_away(chosen, left, remaining)
        for attribute in range(attributes):
            if relation.is_number[attribute]:
                _take_away(chosen, numbers[attribute], remaining)
            else:
                _take_away(chosen, places[attribute], remaining)
        remaining -= k
    # 3. fewer than k are left
    for record in left[:remaining]:
        with_it = np.rint(SCALE * penalties(relation, lo, hi, values[record], values[record]))
        home = 0
        for other in range(1, draws.size):
            if with_it[other] < with_it[home] or (with_it[other] == with_it[home] and head[other] < head[home]):
                home = other
        number[record] = home
        head[home] = min(head[home], record)
        lo[home], hi[home] = np.minimum(lo[home], values[record]), np.maximum(hi[home], values[record])
    return head[number]


@inner
def _smallest(cost: Floats, count: int, least: Floats) -> None:
    """The smallest of the first costs, ascending, as many as `least` has room for. After the first few, one seldom comes in."""
    most = least.size - 1
    least[:] = np.inf
    for at in range(count):
        if cost[at] < least[most]:
            place = most
            while place > 0 and least[place - 1] > cost[at]:
                least[place] = least[place - 1]
                place -= 1
            least[place] = cost[at]


@inner
def _take_away(chosen: Ints, row: NDArray[np.number], count: int) -> None:
    """Close the gaps that chosen entries, ascending, leave among the first `count` of a row."""
    for gone in range(chosen.size):
        end = chosen[gone + 1] if gone + 1 < chosen.size else count
        for at in range(chosen[gone] + 1, end):
            row[at - gone - 1] = row[at]


@inner
def _shares_from(relation: Relation, attribute: int, leaves: Floats, seed_place: int, lost: Floats) -> None:
    """Loss of the union of one leaf with each other leaf: outwards from its place the level only rises."""
    width, first, share = relation.leaves[attribute], relation.first, relation.share
    seed = np.int64(leaves[seed_place])
    for step in (1, -1):
        at, place = relation.starts[attribute], seed_place
        while 0 <= place < leaves.size:
            while first[at + np.int64(leaves[place])] != first[at + seed]:
                at += width
            lost[place] = share[at + seed]
            place += step
