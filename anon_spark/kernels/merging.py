"""Merging classes that are too small: greedily by the closest pair, or in rounds of mutual nearest neighbours.

CDist(a, b) = |a| · (g(join) - g(a)) + |b| · (g(join) - g(b)), with g the cost of a level vector. Nearest neighbours are
found without looking at pairs: on every lattice node above both, classes with equal codes are in one bucket, and
|a| · (g(node) - g(a)) + |b| · (g(node) - g(b)) is never less than CDist and equals it on the join.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernels.classes import EMPTY, HASH_MULTIPLIER, Codes, Ints
from anon_spark.kernels.compiled import compiled
from anon_spark.kernels.dendrogram import add_values, is_diverse
from anon_spark.kernels.distances import Levels, common_level, generality, join_generality
from anon_spark.kernels.spanning import Walk

FAR = np.int64(np.iinfo(np.int64).max)
WORD = 2**62
BRUTE_PER_NODE = 4  # distances to one class cost about a quarter of a visit of a node with that class

Flags = NDArray[np.bool_]


class Classes(NamedTuple):
    """Classes as arrays: levels and one member's leaves (classes × attributes), rows, identity, sensitive values."""

    level: Codes
    leaf: Codes
    size: Ints
    ident: Ints
    values: Codes

    def take(self, chosen: NDArray[np.intp] | Flags) -> Classes:
        return Classes(*(array[chosen] for array in self))


class Neighbours(NamedTuple):
    """Of each class: the least CDist to another, the first node (by cost, lexicographic) that attains it, and a partner."""

    distance: Ints
    node: Codes
    partner: Codes


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
    open_queries = queries
    start = 0
    while open_queries.size and start < plan.cost.size:
        here = plan.cost[start]
        open_queries, slack, last = still_open(open_queries, classes.size, cost, found.distance, here)
        if not open_queries.size:
            break
        left = int(np.searchsorted(plan.cost, last, side="right")) - start
        if open_queries.size * BRUTE_PER_NODE <= left:
            by_distances(levels, plan.rank, plan.strides, *classes[:3], cost, open_queries, members, *found)
            break
        stop = int(np.searchsorted(plan.cost, here, side="right"))
        low, high = np.searchsorted(member_cost, [here - slack, here + 1])
        for rank in range(start, stop):
            visit(
                levels, plan.nodes[rank], plan.factors, rank, here, slack, *classes[:3], cost, open_queries,
                members[low:high], *found,
            )  # fmt: skip
        start = stop


@compiled
def still_open(queries: Ints, size: Ints, cost: Ints, distance: Ints, here: int) -> tuple[Ints, int, int]:
    """Queries that a node of this cost can still improve, how much a partner may cost, and where the last one ends."""
    kept = np.empty_like(queries)
    count, slack, last = 0, np.int64(-1), np.int64(0)
    for position in range(queries.size):
        query = queries[position]
        own = size[query] * (here - cost[query])
        if own > distance[query]:
            continue
        kept[count] = query
        count += 1
        if distance[query] == FAR:
            slack, last = FAR // 2, FAR // 2
        else:
            slack = max(slack, distance[query] - max(own, 0))
            last = max(last, cost[query] + distance[query] // size[query])
    return kept[:count], slack, last


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
    key = np.empty(words, dtype=np.int64)
    for position in range(count):
        member = eligible[position]
        slot = bucket_key(levels, node, factors, leaf, member, key, shift)
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
        slot = bucket_key(levels, node, factors, leaf, query, key, shift)
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
def bucket_key(
    levels: Levels, node: Codes, factors: Ints, leaf: Codes, member: int, key: Ints, shift: np.uint64
) -> int:
    """Write the codes of a class on a node as numbers into `key`; the slot where its bucket is looked for first."""
    mixed = np.uint64(0)
    for word in range(key.size):
        total = np.int64(0)
        for attribute in range(node.size):
            at = levels.starts[attribute] + node[attribute] * levels.leaves[attribute] + leaf[member, attribute]
            total += factors[word, attribute] * levels.codes[at]
        key[word] = total
        mixed = (mixed ^ np.uint64(total)) * HASH_MULTIPLIER
    return np.int64(mixed >> shift)


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
    """Compare each query with each member."""
    for position in range(queries.size):
        query = queries[position]
        for at in range(members.size):
            if members[at] != query:
                compare(
                    levels, ranks, strides, level, leaf, size, cost, query, members[at], distance, at_node, partner
                )


@compiled
def compare(
    levels: Levels,
    ranks: Codes,
    strides: Ints,
    level: Codes,
    leaf: Codes,
    size: Ints,
    cost: Ints,
    query: int,
    member: int,
    distance: Ints,
    at_node: Codes,
    partner: Codes,
) -> None:
    """Take the member as the query's neighbour if it is nearer, or as near on an earlier node."""
    joined, index = np.int64(0), np.int64(0)
    for attribute in range(level.shape[1]):
        lowest = max(level[query, attribute], level[member, attribute])
        found = common_level(levels, attribute, leaf[query, attribute], leaf[member, attribute], lowest)
        joined += levels.units[attribute] * found
        index += strides[attribute] * found
    price = size[query] * (joined - cost[query]) + size[member] * (joined - cost[member])
    if price < distance[query] or (price == distance[query] and ranks[index] < at_node[query]):
        distance[query], at_node[query], partner[query] = price, ranks[index], member


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
    for position in range(queries.size):
        query = queries[position]
        for at in (place[query] - 1, place[query] + 1):
            if 0 <= at < order.size:
                compare(levels, ranks, strides, level, leaf, size, cost, query, order[at], distance, at_node, partner)


def mutual_pairs(classes: Classes, levels: Levels, plan: Plan, found: Neighbours) -> tuple[Ints, Ints]:
    """The pairs of one round: in each bucket, by (price, rows, identity), neighbours that are each other's nearest."""
    cost = generality(levels, classes.level)
    price = classes.size * (plan.cost[found.node] - cost)
    keys = bucket_keys(levels, plan.nodes, plan.factors, classes.leaf, found.node)
    order = np.lexsort((classes.ident, classes.size, price, *keys.T, found.node))
    return pair_up(order, price, found.distance, found.node, keys)


@compiled
def bucket_keys(levels: Levels, nodes: Codes, factors: Ints, leaf: Codes, at_node: Codes) -> Ints:
    """The key of each class's own bucket."""
    keys = np.empty((leaf.shape[0], factors.shape[0]), dtype=np.int64)
    for member in range(leaf.shape[0]):
        bucket_key(levels, nodes[at_node[member]], factors, leaf, member, keys[member], np.uint64(32))
    return keys


@compiled
def pair_up(order: Ints, price: Ints, distance: Ints, at_node: Codes, keys: Ints) -> tuple[Ints, Ints]:
    """Scan the buckets; a class that was paired is skipped."""
    left, right = np.empty(order.size // 2, dtype=np.int64), np.empty(order.size // 2, dtype=np.int64)
    pairs, position = 0, 0
    while position + 1 < order.size:
        one, other = order[position], order[position + 1]
        together = price[one] + price[other]
        if (
            at_node[one] == at_node[other]
            and together == distance[one]
            and together == distance[other]
            and same_key(keys[one], keys[other])
        ):
            left[pairs], right[pairs] = one, other
            pairs += 1
            position += 1
        position += 1
    return left[:pairs], right[:pairs]


@compiled
def merge_pairs(
    levels: Levels, level: Codes, leaf: Codes, size: Ints, ident: Ints, values: Codes, left: Ints, right: Ints
) -> None:
    """Make the left class of each pair the closest common generalization of both."""
    for pair in range(left.size):
        merge_into(levels, level, leaf, size, ident, values, left[pair], right[pair])


@compiled
def merge_into(
    levels: Levels, level: Codes, leaf: Codes, size: Ints, ident: Ints, values: Codes, one: int, other: int
) -> None:
    for attribute in range(level.shape[1]):
        lowest = max(level[one, attribute], level[other, attribute])
        level[one, attribute] = common_level(
            levels, attribute, leaf[one, attribute], leaf[other, attribute], lowest
        )
    size[one] += size[other]
    ident[one] = min(ident[one], ident[other])
    for column in range(values.shape[1]):
        add_values(values[one, column], values[other, column])


@compiled
def large_enough(size: Ints, values: Codes, k: int) -> Flags:
    """Which classes have k rows and enough distinct sensitive values."""
    found = np.empty(size.size, dtype=np.bool_)
    for position in range(size.size):
        found[position] = size[position] >= k and is_diverse(values[position])
    return found


@compiled
def nearest_class(
    levels: Levels, level: Codes, leaf: Codes, size: Ints, ident: Ints, cost: Ints, query: int, members: Ints
) -> int:
    """The member with the least (CDist, rows, identity) to the query."""
    best, best_price = members[0], FAR
    for position in range(members.size):
        member = members[position]
        joined = join_generality(levels, level, leaf, query, member)
        price = size[query] * (joined - cost[query]) + size[member] * (joined - cost[member])
        if price < best_price or (
            price == best_price
            and (size[member] < size[best] or (size[member] == size[best] and ident[member] < ident[best]))
        ):
            best, best_price = member, price
    return best


@compiled
def greedy(
    levels: Levels, level: Codes, leaf: Codes, size: Ints, ident: Ints, values: Codes, cost: Ints, k: int
) -> tuple[Codes, int]:
    """Merge the closest pair, by (CDist, rows together, identities), until fewer than two small classes are left.

    The arrays are changed in place. Returns the class each one was merged into (itself if none) and the one that is
    left over, or -1. Cost: quadratic in the number of classes, with a cache of nearest neighbours.
    """
    count = size.size
    owner = np.arange(count).astype(np.int32)
    live = np.arange(count)
    rank = np.full((count, 4), FAR, dtype=np.int64)  # CDist, rows together, smaller and larger identity
    nearest = np.full(count, EMPTY, dtype=np.int32)
    for position in range(count):
        for at in range(position):
            price = pair_price(levels, level, leaf, size, cost, position, at)
            offer(price, size, ident, position, at, rank, nearest)
            offer(price, size, ident, at, position, rank, nearest)
    while count >= 2:
        at = 0
        for position in range(1, count):
            if comes_before(rank[live[position]], rank[live[at]]):
                at = position
        one = live[at]
        other = nearest[one]
        merge_into(levels, level, leaf, size, ident, values, one, other)
        cost[one] = 0
        for attribute in range(level.shape[1]):
            cost[one] += levels.units[attribute] * level[one, attribute]
        owner[other] = one
        finished = size[one] >= k and is_diverse(values[one])
        kept = 0
        for position in range(count):
            if live[position] != other and not (finished and live[position] == one):
                live[kept] = live[position]
                kept += 1
        count = kept
        rank[one] = FAR
        nearest[one] = EMPTY
        for position in range(count):
            member = live[position]
            if member != one and (nearest[member] == one or nearest[member] == other):
                rank[member] = FAR
                nearest[member] = EMPTY
                for again in range(count):
                    if live[again] != member:
                        price = pair_price(levels, level, leaf, size, cost, member, live[again])
                        offer(price, size, ident, member, live[again], rank, nearest)
        if not finished:
            for position in range(count):
                if live[position] != one:
                    price = pair_price(levels, level, leaf, size, cost, one, live[position])
                    offer(price, size, ident, one, live[position], rank, nearest)
                    offer(price, size, ident, live[position], one, rank, nearest)
    return owner, live[0] if count == 1 else -1


@compiled
def comes_before(one: Ints, other: Ints) -> bool:
    for position in range(one.size):
        if one[position] != other[position]:
            return one[position] < other[position]
    return False


@compiled
def pair_price(levels: Levels, level: Codes, leaf: Codes, size: Ints, cost: Ints, one: int, other: int) -> int:
    """CDist of two classes."""
    joined = join_generality(levels, level, leaf, one, other)
    return size[one] * (joined - cost[one]) + size[other] * (joined - cost[other])


@compiled
def offer(price: int, size: Ints, ident: Ints, one: int, other: int, rank: Ints, nearest: Codes) -> None:
    """Make `other` the nearest of `one` if the pair comes before the one known."""
    known = rank[one]
    if price > known[0]:
        return
    rows = size[one] + size[other]
    low, high = min(ident[one], ident[other]), max(ident[one], ident[other])
    if price == known[0]:
        if rows > known[1]:
            return
        if rows == known[1] and (low > known[2] or (low == known[2] and high >= known[3])):
            return
    known[0], known[1], known[2], known[3] = price, rows, low, high
    nearest[one] = other
