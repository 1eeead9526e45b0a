"""Merging classes that are too small: greedily by the closest pair, or in rounds of mutual nearest neighbours."""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.families.mst.kernels.distances import Levels, common_level, generality, reach
from anon_spark.families.mst.kernels.neighbours import FAR, Classes, Neighbours, Plan
from anon_spark.kernels.classes import EMPTY, Codes, Ints


def mutual_pairs(classes: Classes, levels: Levels, plan: Plan, near: Neighbours) -> tuple[Ints, Ints]:
    """The pairs of one round: mutual nearest neighbours, adjacent in their bucket by (price, rows, identity)."""
    cost = generality(levels, classes.level)
    price = classes.size * (plan.cost[near.node] - cost)
    keys = bucket_keys(levels, plan.nodes, plan.factors, classes.leaf, near.node)
    order = np.lexsort((classes.ident, classes.size, price, *keys.T, near.node))
    return pair_up(order, price, near.distance, near.node, keys)


@compiled
def bucket_keys(levels: Levels, nodes: Codes, factors: Ints, leaf: Codes, at_node: Codes) -> Ints:
    """The key of each class's own bucket."""
    keys = np.zeros((leaf.shape[0], factors.shape[0]), dtype=np.int64)
    for member in range(leaf.shape[0]):
        node = nodes[at_node[member]]
        for attribute in range(node.size):
            at = levels.starts[attribute] + node[attribute] * levels.leaves[attribute] + leaf[member, attribute]
            for word in range(factors.shape[0]):
                keys[member, word] += factors[word, attribute] * levels.codes[at]
    return keys


@compiled
def pair_up(order: Ints, price: Ints, distance: Ints, at_node: Codes, keys: Ints) -> tuple[Ints, Ints]:
    """The pairs found by scanning the buckets; a paired class is skipped."""
    left, right = np.empty(order.size // 2, dtype=np.int64), np.empty(order.size // 2, dtype=np.int64)
    pairs, position = 0, 0
    while position + 1 < order.size:
        first, second = order[position], order[position + 1]
        together = price[first] + price[second]
        if (
            at_node[first] == at_node[second]
            and together == distance[first]
            and together == distance[second]
            and same_key(keys[first], keys[second])
        ):
            left[pairs], right[pairs] = first, second
            pairs += 1
            position += 1
        position += 1
    return left[:pairs], right[:pairs]


@inner
def same_key(key: Ints, other: Ints) -> bool:
    for word in range(key.size):
        if key[word] != other[word]:
            return False
    return True


@compiled
def merge_pairs(
    levels: Levels, level: Codes, leaf: Codes, size: Ints, ident: Ints, left: Ints, right: Ints
) -> None:
    """Make the left class of each pair the closest common generalization of both."""
    for pair in range(left.size):
        merge_into(levels, level, leaf, size, ident, left[pair], right[pair])


@compiled
def merge_into(
    levels: Levels, level: Codes, leaf: Codes, size: Ints, ident: Ints, into: int, other: int
) -> None:
    for attribute in range(level.shape[1]):
        lowest = max(level[into, attribute], level[other, attribute])
        level[into, attribute] = common_level(
            levels, attribute, leaf[into, attribute], leaf[other, attribute], lowest
        )
    size[into] += size[other]
    ident[into] = min(ident[into], ident[other])


@compiled
def prices(
    levels: Levels, level: Codes, leaf: Codes, size: Ints, cost: Ints, query: int, members: Ints, price: Ints
) -> None:
    """CDist of the query to each member."""
    levels_to = reach(levels, level[query], leaf[query])
    for position in range(members.size):
        member = members[position]
        joined = np.int64(0)
        for attribute in range(level.shape[1]):
            climbed = levels_to[levels.offsets[attribute] + leaf[member, attribute]]
            joined += levels.units[attribute] * max(climbed, level[member, attribute])
        price[position] = size[query] * (joined - cost[query]) + size[member] * (joined - cost[member])


@compiled
def nearest_class(
    levels: Levels, level: Codes, leaf: Codes, size: Ints, ident: Ints, cost: Ints, query: int, members: Ints
) -> int:
    """The member with the least (CDist, rows, identity) to the query."""
    price = np.empty(members.size, dtype=np.int64)
    prices(levels, level, leaf, size, cost, query, members, price)
    best = 0
    for position in range(1, members.size):
        candidate, other = members[position], members[best]
        if price[position] < price[best] or (
            price[position] == price[best]
            and (size[candidate] < size[other] or (size[candidate] == size[other] and ident[candidate] < ident[other]))
        ):
            best = position
    return int(members[best])


@compiled
def greedy(
    levels: Levels, level: Codes, leaf: Codes, size: Ints, ident: Ints, cost: Ints, k: int
) -> tuple[Codes, int]:
    """Merge the closest pair, by (CDist, rows together, identities), until fewer than two small classes are left.

    The arrays are changed in place. Returns the class each one was merged into (itself if none) and the leftover
    class, or -1. Cost: quadratic in the number of classes, with a cache of nearest neighbours.
    """
    count = size.size
    owner = np.arange(count).astype(np.int32)
    live = np.arange(count)
    rank = np.full((count, 4), FAR, dtype=np.int64)  # CDist, rows together, smaller and larger identity
    nearest = np.full(count, EMPTY, dtype=np.int32)
    price = np.empty(count, dtype=np.int64)
    for position in range(count):
        prices(levels, level, leaf, size, cost, position, live[:position], price)
        for at in range(position):
            offer(price[at], size, ident, position, at, rank, nearest)
            offer(price[at], size, ident, at, position, rank, nearest)
    stale = np.zeros(count, dtype=np.bool_)  # the neighbour is gone: the rank is a lower bound until it is recomputed
    while count >= 2:
        at = 0
        for position in range(1, count):
            if comes_before(rank, live[position], live[at]):
                at = position
        into = live[at]
        if stale[into]:
            stale[into] = False
            rank[into] = FAR
            prices(levels, level, leaf, size, cost, into, live[:count], price)
            for position in range(count):
                if live[position] != into:
                    offer(price[position], size, ident, into, live[position], rank, nearest)
            continue
        other = nearest[into]
        merge_into(levels, level, leaf, size, ident, into, other)
        cost[into] = 0
        for attribute in range(level.shape[1]):
            cost[into] += levels.units[attribute] * level[into, attribute]
        owner[other] = into
        finished = size[into] >= k
        kept = 0
        for position in range(count):
            member = live[position]
            if member == other or (finished and member == into):
                continue
            stale[member] = stale[member] or nearest[member] == into or nearest[member] == other
            live[kept] = member
            kept += 1
        count = kept
        if finished:
            continue
        stale[into] = False
        rank[into] = FAR
        prices(levels, level, leaf, size, cost, into, live[:count], price)
        for position in range(count):
            member = live[position]
            if member != into:
                offer(price[position], size, ident, into, member, rank, nearest)
                if offer(price[position], size, ident, member, into, rank, nearest):
                    stale[member] = False
    return owner, live[0] if count == 1 else -1


@inner
def comes_before(rank: Ints, number: int, other: int) -> bool:
    """Whether the best pair of one class comes before that of another."""
    for position in range(rank.shape[1]):
        if rank[number, position] != rank[other, position]:
            return bool(rank[number, position] < rank[other, position])
    return False


@inner
def offer(price: int, size: Ints, ident: Ints, query: int, other: int, rank: Ints, nearest: Codes) -> bool:
    """Make `other` the nearest of `query` if the pair comes before the known one."""
    if price > rank[query, 0]:
        return False
    rows = size[query] + size[other]
    low, high = min(ident[query], ident[other]), max(ident[query], ident[other])
    if price == rank[query, 0]:
        if rows > rank[query, 1]:
            return False
        if rows == rank[query, 1] and (low > rank[query, 2] or (low == rank[query, 2] and high >= rank[query, 3])):
            return False
    rank[query, 0], rank[query, 1], rank[query, 2], rank[query, 3] = price, rows, low, high
    nearest[query] = other
    return True
