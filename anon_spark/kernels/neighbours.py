"""Nearest neighbours of classes, exactly, without looking at all pairs.

CDist(a, b) = |a| · (g(join) - g(a)) + |b| · (g(join) - g(b)), with g the cost of a level vector. Nearest neighbours are
found without looking at pairs: on every lattice node above both, classes with equal codes are in one bucket, and
|a| · (g(node) - g(a)) + |b| · (g(node) - g(b)) is never less than CDist and equals it on the join.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.kernels.classes import EMPTY, HASH_MULTIPLIER, Codes, Ints
from anon_spark.kernels.compiled import compiled
from anon_spark.kernels.distances import Levels, generality, reach
from anon_spark.kernels.spanning import Walk

FAR = np.int64(np.iinfo(np.int64).max)
WORD = 2**62
DISTANCE_PER_LOOK = 0.5  # what a distance costs, in looks of a visit at a class


class Classes(NamedTuple):
    """Classes as arrays: levels and one member's leaves (classes × attributes), rows, identity, sensitive values."""

    level: Codes
    leaf: Codes
    size: Ints
    ident: Ints
    values: Codes

    def take(self, chosen: Ints) -> Classes:
        """Copies of some of them."""
        return Classes(
            self.level[chosen], self.leaf[chosen], self.size[chosen], self.ident[chosen], self.values[chosen]
        )

    def __add__(self, others: Classes) -> Classes:  # type: ignore[override]
        """All of these, then all of those."""
        return Classes(
            np.concatenate([self.level, others.level]),
            np.concatenate([self.leaf, others.leaf]),
            np.concatenate([self.size, others.size]),
            np.concatenate([self.ident, others.ident]),
            np.concatenate([self.values, others.values]),
        )


class Neighbours(NamedTuple):
    """Of each class: the least CDist to another, the first node (by cost, lexicographic) that attains it, and a partner."""

    distance: Ints
    node: Codes
    partner: Codes

    def take(self, chosen: Ints) -> Neighbours:
        return Neighbours(self.distance[chosen], self.node[chosen], self.partner[chosen])

    def forget(self, chosen: Ints) -> None:
        """Make them classes that have not been looked at."""
        self.distance[chosen], self.node[chosen], self.partner[chosen] = nobody(1)


def nobody(count: int) -> Neighbours:
    """Neighbours of classes that have not been looked at."""
    return Neighbours(
        np.full(count, FAR, dtype=np.int64),
        np.full(count, np.iinfo(np.int32).max, dtype=np.int32),
        np.full(count, EMPTY, dtype=np.int32),
    )


class Plan(NamedTuple):
    """The lattice as the search walks it: nodes by (cost, lexicographic), the rank of each, and key factors of codes.

    `factors[word, attribute]` makes one number of the codes on any node; several words where one is too small.
    """

    nodes: Codes
    cost: Ints
    rank: Codes
    strides: Ints
    factors: Ints


def plan(walk: Walk, levels: Levels) -> Plan:
    """Prepare the walk for `search`."""
    shape = levels.heights + 1
    strides = np.append(np.cumprod(shape[:0:-1])[::-1], 1).astype(np.int64)
    rank = np.zeros(int(np.prod(shape)), dtype=np.int32)
    rank[walk.nodes @ strides] = np.arange(walk.cost.size, dtype=np.int32)
    words: list[list[int]] = [[0] * len(shape)]
    width = 1
    for attribute, leaves in enumerate(levels.leaves.tolist()):
        if width * leaves > WORD:
            words.append([0] * len(shape))
            width = 1
        words[-1][attribute] = width
        width *= leaves
    return Plan(walk.nodes, walk.cost, rank, strides, np.array(words, dtype=np.int64))


def search(
    classes: Classes, levels: Levels, plan: Plan, queries: Ints, members: Ints, found: Neighbours
) -> None:
    """Improve `found` of the queries by partners among the members; exact for what was known before.

    Cost: per visited node one pass over the members that can still matter; the last queries by distances.
    """
    cost = generality(levels, classes.level)
    members = members[np.argsort(cost[members], kind="stable")]
    member_cost = cost[members]
    open_queries, start, spent = queries, 0, 0
    while start < plan.cost.size:
        here = plan.cost[start]
        open_queries, slack = still_open(open_queries, classes.size, cost, found.distance, here)
        if not open_queries.size:
            break
        # whoever rents until the rent has reached the price, and then buys, never pays more than twice the least
        if spent >= open_queries.size * members.size * DISTANCE_PER_LOOK:
            by_distances(levels, plan.rank, plan.strides, *classes[:3], cost, open_queries, members, *found)
            break
        stop = int(np.searchsorted(plan.cost, here, side="right"))
        low, high = np.searchsorted(member_cost, [here - slack, here + 1])
        for rank in range(start, stop):
            visit(
                levels, plan.nodes[rank], plan.factors, rank, here, slack, *classes[:3], cost, open_queries,
                members[low:high], *found,
            )  # fmt: skip
        spent += (stop - start) * int(high - low + open_queries.size)
        start = stop


@compiled
def still_open(queries: Ints, size: Ints, cost: Ints, distance: Ints, here: int) -> tuple[Ints, int]:
    """Queries that a node of this cost can still improve, and how much a partner may cost there."""
    kept = np.empty_like(queries)
    count, slack = 0, np.int64(-1)
    for position in range(queries.size):
        query = queries[position]
        own = size[query] * (here - cost[query])
        if own > distance[query]:
            continue
        kept[count] = query
        count += 1
        slack = max(slack, min(distance[query], FAR // 2) - max(own, 0))
    return kept[:count], int(slack)


@compiled
def is_below(level: Codes, member: int, node: Codes) -> bool:
    """Whether a class has nothing more general than the node."""
    for attribute in range(node.size):
        if level[member, attribute] > node[attribute]:
            return False
    return True


@compiled
def visit(
    levels: Levels,
    node: Codes,
    factors: Ints,
    rank: int,
    here: int,
    slack: int,
    level: Codes,
    leaf: Codes,
    size: Ints,
    cost: Ints,
    queries: Ints,
    members: Ints,
    distance: Ints,
    at_node: Codes,
    partner: Codes,
) -> None:
    """Put the members on one node into buckets of equal codes; each query looks up the cheapest other one in its own."""
    words = factors.shape[0]
    wanted = 0
    for position in range(queries.size):
        wanted += is_below(level, queries[position], node)
    if wanted == 0:
        return
    eligible = np.empty(members.size, dtype=np.int64)
    count = 0
    for position in range(members.size):
        member = members[position]
        if size[member] * (here - cost[member]) <= slack and is_below(level, member, node):
            eligible[count] = member
            count += 1
    bits = 4
    while (1 << bits) < 2 * count:
        bits += 1
    mask, shift = (1 << bits) - 1, np.uint64(64 - bits)
    slots = np.full(1 << bits, EMPTY, dtype=np.int32)
    keys = np.empty((count, words), dtype=np.int64)
    best, second = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    best_member, second_member = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
    buckets = 0
    steps = key_steps(levels, node, factors)
    key = np.empty(words, dtype=np.int64)
    for position in range(count):
        member = eligible[position]
        slot = bucket_key(steps, levels.offsets, leaf, member, key, shift)
        price = size[member] * (here - cost[member])
        while True:
            bucket = slots[slot]
            if bucket == EMPTY:
                slots[slot] = buckets
                keys[buckets] = key
                best[buckets], best_member[buckets] = price, member
                second[buckets], second_member[buckets] = FAR, EMPTY
                buckets += 1
                break
            if same_key(keys[bucket], key):
                if price < best[bucket]:
                    second[bucket], second_member[bucket] = best[bucket], best_member[bucket]
                    best[bucket], best_member[bucket] = price, member
                elif price < second[bucket]:
                    second[bucket], second_member[bucket] = price, member
                break
            slot = (slot + 1) & mask
    for position in range(queries.size):
        query = queries[position]
        own = size[query] * (here - cost[query])
        if own > distance[query] or not is_below(level, query, node):
            continue
        slot = bucket_key(steps, levels.offsets, leaf, query, key, shift)
        while slots[slot] != EMPTY and not same_key(keys[slots[slot]], key):
            slot = (slot + 1) & mask
        bucket = slots[slot]
        if bucket == EMPTY:
            continue
        price, other = best[bucket], best_member[bucket]
        if other == query:
            price, other = second[bucket], second_member[bucket]
        if other == EMPTY:
            continue
        if own + price < distance[query] or (own + price == distance[query] and rank < at_node[query]):
            distance[query], at_node[query], partner[query] = own + price, rank, other


@compiled
def key_steps(levels: Levels, node: Codes, factors: Ints) -> Ints:
    """What each leaf adds to each word of a key on this node."""
    steps = np.empty((factors.shape[0], levels.leaves.sum()), dtype=np.int64)
    for attribute in range(node.size):
        first = levels.starts[attribute] + node[attribute] * levels.leaves[attribute]
        for leaf in range(levels.leaves[attribute]):
            for word in range(factors.shape[0]):
                steps[word, levels.offsets[attribute] + leaf] = factors[word, attribute] * levels.codes[first + leaf]
    return steps


@compiled
def bucket_key(steps: Ints, offsets: Ints, leaf: Codes, member: int, key: Ints, shift: np.uint64) -> int:
    """Write the codes of a class as numbers into `key`; the slot where its bucket is looked for first."""
    mixed = np.uint64(0)
    for word in range(key.size):
        total = np.int64(0)
        for attribute in range(offsets.size):
            total += steps[word, offsets[attribute] + leaf[member, attribute]]
        key[word] = total
        mixed = (mixed ^ np.uint64(total)) * HASH_MULTIPLIER
    return int(np.int64(mixed >> shift))


@compiled
def same_key(one: Ints, other: Ints) -> bool:
    for word in range(one.size):
        if one[word] != other[word]:
            return False
    return True


@compiled
def by_distances(
    levels: Levels,
    ranks: Codes,
    strides: Ints,
    level: Codes,
    leaf: Codes,
    size: Ints,
    cost: Ints,
    queries: Ints,
    members: Ints,
    distance: Ints,
    at_node: Codes,
    partner: Codes,
) -> None:
    """Compare each query with each member: nearer wins, or as near on an earlier node."""
    attributes = level.shape[1]
    for position in range(queries.size):
        query = queries[position]
        levels_to = reach(levels, level[query], leaf[query])
        own, best = size[query], distance[query]
        for at in range(members.size):
            member = members[at]
            if member == query:
                continue
            # the price if the join were no more general than the query: it grows with every level climbed
            rows = own + size[member]
            price = size[member] * (cost[query] - cost[member])
            index = np.int64(0)
            for attribute in range(attributes):
                climbed = levels_to[levels.offsets[attribute] + leaf[member, attribute]]
                climbed = max(climbed, level[member, attribute])
                price += rows * levels.units[attribute] * (climbed - level[query, attribute])
                if price > best:
                    break
                index += strides[attribute] * climbed
            else:
                if price < best or ranks[index] < at_node[query]:
                    best = price
                    at_node[query], partner[query] = ranks[index], member
        distance[query] = best


def bound_by_order(
    classes: Classes, levels: Levels, plan: Plan, active: Ints, queries: Ints, found: Neighbours
) -> None:
    """Any neighbour bounds the search: compare each query with the classes before and after it in order of identity."""
    order = active[np.argsort(classes.ident[active], kind="stable")]
    place = np.empty(classes.size.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    cost = generality(levels, classes.level)
    compare_neighbours(levels, plan.rank, plan.strides, *classes[:3], cost, queries, order, place, *found)


@compiled
def compare_neighbours(
    levels: Levels,
    ranks: Codes,
    strides: Ints,
    level: Codes,
    leaf: Codes,
    size: Ints,
    cost: Ints,
    queries: Ints,
    order: Ints,
    place: Ints,
    distance: Ints,
    at_node: Codes,
    partner: Codes,
) -> None:
    """Compare each query with the two beside it."""
    for position in range(queries.size):
        query = queries[position]
        beside = order[max(place[query] - 1, 0) : place[query] + 2]
        by_distances(
            levels, ranks, strides, level, leaf, size, cost, queries[position : position + 1], beside,
            distance, at_node, partner,
        )  # fmt: skip
