"""Merging in rounds in the plain form: every round searches the nearest neighbour of every class anew.

Compiled and with look-up tables like the package's own kernels, so that a comparison is one of algorithms. Shares no
code with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled
from anon_spark.errors import LimitExceeded
from anon_spark.families.mst.kernels.distances import Levels
from anon_spark.families.mst.kernels.neighbours import Classes
from anon_spark.kernels.classes import Codes, Ints

FAR = np.int64(np.iinfo(np.int64).max)
NOBODY = -1
WORD = 2**62
HASH = np.uint64(0x9E3779B97F4A7C15)
TAIL_PER_NODE = 8  # so many unfinished classes per node of the next cost are compared with all others


class PlainMerged(NamedTuple):
    """The class that each small class ends in, numbered by first member; levels and rows of each; the rounds."""

    number: Ints
    level: Codes
    size: Ints
    rounds: int


class Lattice(NamedTuple):
    """All nodes above the bottom by (cost, lexicographic), and what a level counts in the rank of a node."""

    nodes: Codes
    cost: Ints
    rank: Codes
    strides: Ints


def merge_in_plain_rounds(small: Classes, levels: Levels, k: int, tail: int = TAIL_PER_NODE) -> PlainMerged:
    """Decision M-9 as it stands: per round the exact nearest neighbour of every class, then all mutual pairs.

    Cost: per round, lattice nodes up to the last unfinished class × all classes. Sensitive values are not looked at.
    """
    level, leaf, size, ident = small.level.copy(), small.leaf, small.size.copy(), small.ident.copy()
    owner = np.arange(size.size)
    lattice, factors = lattice_by_cost(levels), key_factors(levels)
    active, rounds = owner.copy(), 0
    while active.size >= 2:
        rounds += 1
        here = (level[active], leaf[active], size[active], level[active] @ levels.units)
        distance, at_node = nearest(levels, lattice, factors, *here, tail)
        price = here[2] * (lattice.cost[at_node] - here[3])
        keys = own_keys(levels, lattice.nodes, factors, leaf[active], at_node)
        order = np.lexsort((ident[active], here[2], price, keys, at_node))
        pairs = active[mutual(order, price, distance, at_node, keys)]
        join(levels, level, leaf, size, ident, pairs)
        owner[pairs[:, 1]] = pairs[:, 0]
        active = active[(owner[active] == active) & (size[active] < k)]
    while not np.array_equal(owner, owner[owner]):
        owner = owner[owner]
    heads, number = numbered(owner)
    return PlainMerged(number, level[owner[heads]], size[owner[heads]], rounds)


def numbered(owner: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """The first member of each class, and classes numbered in that order."""
    _, first, inverse = np.unique(owner, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return first[order], place[inverse]


def lattice_by_cost(levels: Levels) -> Lattice:
    """The nodes in the order in which they are visited."""
    shape = levels.heights + 1
    nodes = np.indices(tuple(shape.tolist())).reshape(shape.size, -1).T.astype(np.int32)
    cost = nodes @ levels.units
    order = np.argsort(cost, kind="stable")[1:]
    strides = np.append(np.cumprod(shape[:0:-1])[::-1], 1).astype(np.int64)
    rank = np.zeros(cost.size, dtype=np.int32)
    rank[order] = np.arange(order.size, dtype=np.int32)
    return Lattice(nodes[order], cost[order], rank, strides)


def key_factors(levels: Levels) -> Ints:
    """What makes one number of the codes on a node."""
    leaves = levels.leaves.tolist()
    factors = [1]
    for count in leaves:
        factors.append(factors[-1] * count)
    if factors[-1] > WORD:
        raise LimitExceeded("The plain form packs the codes of a class into one number, and these do not fit.")
    return np.array(factors[:-1], dtype=np.int64)


@compiled
def nearest(
    levels: Levels, lattice: Lattice, factors: Ints, level: Codes, leaf: Codes, size: Ints, cost: Ints, tail: int
) -> tuple[Ints, Codes]:
    """Of each class the least CDist to another, and the first node that attains it."""
    count = size.size
    distance = np.full(count, FAR, dtype=np.int64)
    at_node = np.full(count, NOBODY, dtype=np.int32)
    unfinished, remaining = np.arange(count), count
    bits = 4
    while (1 << bits) < 2 * count:
        bits += 1
    slots = np.empty(1 << bits, dtype=np.int32)
    keys, best, second = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    best_class, bucket_of = np.empty(count, np.int32), np.empty(count, np.int32)
    start = 0
    while start < lattice.cost.size:
        here, stop = lattice.cost[start], start
        while stop < lattice.cost.size and lattice.cost[stop] == here:
            stop += 1
        still = 0
        for position in range(remaining):
            member = unfinished[position]
            if size[member] * (here - cost[member]) <= distance[member]:
                unfinished[still] = member
                still += 1
        remaining = still
        if remaining <= tail * (stop - start):
            compare_all(levels, lattice, level, leaf, size, cost, unfinished[:remaining], distance, at_node)
            break
        for rank in range(start, stop):
            steps = leaf_steps(levels, lattice.nodes[rank], factors)
            fill(
                levels, lattice.nodes[rank], here, steps, np.uint64(64 - bits), level, leaf, size, cost,
                slots, keys, best, second, best_class, bucket_of,
            )  # fmt: skip
            for position in range(remaining):
                member = unfinished[position]
                bucket = bucket_of[member]
                if bucket == NOBODY:
                    continue
                other = second[bucket] if best_class[bucket] == member else best[bucket]
                if other == FAR:
                    continue
                together = size[member] * (here - cost[member]) + other
                if together < distance[member]:
                    distance[member], at_node[member] = together, rank
        start = stop
    return distance, at_node


@compiled
def leaf_steps(levels: Levels, node: Codes, factors: Ints) -> Ints:
    """What each leaf adds to a key on the node."""
    steps = np.empty(levels.leaves.sum(), dtype=np.int64)
    for attribute in range(node.size):
        first = levels.starts[attribute] + node[attribute] * levels.leaves[attribute]
        for leaf in range(levels.leaves[attribute]):
            steps[levels.offsets[attribute] + leaf] = factors[attribute] * levels.codes[first + leaf]
    return steps


@compiled
def fill(
    levels: Levels,
    node: Codes,
    here: int,
    steps: Ints,
    shift: np.uint64,
    level: Codes,
    leaf: Codes,
    size: Ints,
    cost: Ints,
    slots: Codes,
    keys: Ints,
    best: Ints,
    second: Ints,
    best_class: Codes,
    bucket_of: Codes,
) -> None:
    """All classes below the node into buckets of equal codes, with the two smallest prices of each."""
    slots[:] = NOBODY
    buckets, mask = 0, slots.size - 1
    for member in range(size.size):
        bucket_of[member] = NOBODY
        key, below = np.int64(0), True
        for attribute in range(node.size):
            if level[member, attribute] > node[attribute]:
                below = False
                break
            key += steps[levels.offsets[attribute] + leaf[member, attribute]]
        if not below:
            continue
        price = size[member] * (here - cost[member])
        slot = np.int64((np.uint64(key) * HASH) >> shift)
        while slots[slot] != NOBODY and keys[slots[slot]] != key:
            slot = (slot + 1) & mask
        bucket = slots[slot]
        if bucket == NOBODY:
            slots[slot], bucket_of[member] = buckets, buckets
            keys[buckets], best[buckets], best_class[buckets], second[buckets] = key, price, member, FAR
            buckets += 1
            continue
        bucket_of[member] = bucket
        if price < best[bucket]:
            second[bucket], best[bucket], best_class[bucket] = best[bucket], price, member
        elif price < second[bucket]:
            second[bucket] = price


@compiled
def compare_all(
    levels: Levels,
    lattice: Lattice,
    level: Codes,
    leaf: Codes,
    size: Ints,
    cost: Ints,
    queries: Ints,
    distance: Ints,
    at_node: Codes,
) -> None:
    """Each query with every other class."""
    climbs = np.empty(levels.leaves.sum(), dtype=np.int64)
    for position in range(queries.size):
        query = queries[position]
        for attribute in range(level.shape[1]):
            for other in range(levels.leaves[attribute]):
                climbs[levels.offsets[attribute] + other] = agreement(
                    levels, attribute, leaf[query, attribute], other, level[query, attribute]
                )
        for member in range(size.size):
            if member == query:
                continue
            joined, index = np.int64(0), np.int64(0)
            for attribute in range(level.shape[1]):
                climbed = max(climbs[levels.offsets[attribute] + leaf[member, attribute]], level[member, attribute])
                joined += levels.units[attribute] * climbed
                index += lattice.strides[attribute] * climbed
            price = size[query] * (joined - cost[query]) + size[member] * (joined - cost[member])
            rank = lattice.rank[index]
            if price < distance[query] or (price == distance[query] and rank < at_node[query]):
                distance[query], at_node[query] = price, rank


@compiled
def agreement(levels: Levels, attribute: int, one: int, other: int, lowest: int) -> int:
    """The smallest level from `lowest` on, on which two leaves have one code."""
    level, leaves = lowest, levels.leaves[attribute]
    first = levels.starts[attribute]
    while levels.codes[first + level * leaves + one] != levels.codes[first + level * leaves + other]:
        level += 1
    return level


@compiled
def own_keys(levels: Levels, nodes: Codes, factors: Ints, leaf: Codes, at_node: Codes) -> Ints:
    """The key of each class on the node where its neighbour is."""
    keys = np.zeros(at_node.size, dtype=np.int64)
    for member in range(at_node.size):
        for attribute in range(factors.size):
            first = levels.starts[attribute] + nodes[at_node[member], attribute] * levels.leaves[attribute]
            keys[member] += factors[attribute] * levels.codes[first + leaf[member, attribute]]
    return keys


@compiled
def mutual(order: Ints, price: Ints, distance: Ints, at_node: Codes, keys: Ints) -> Ints:
    """Neighbours in the order of a bucket that are each other's nearest; who is paired is skipped."""
    pairs = np.empty((order.size // 2, 2), dtype=np.int64)
    count, position = 0, 0
    while position + 1 < order.size:
        one, other = order[position], order[position + 1]
        together = price[one] + price[other]
        same = at_node[one] == at_node[other] and keys[one] == keys[other]
        if same and together == distance[one] and together == distance[other]:
            pairs[count, 0], pairs[count, 1] = one, other
            count += 1
            position += 1
        position += 1
    return pairs[:count]


@compiled
def join(levels: Levels, level: Codes, leaf: Codes, size: Ints, ident: Ints, pairs: Ints) -> None:
    """Make the first of each pair the closest common generalization of both."""
    for pair in range(pairs.shape[0]):
        one, other = pairs[pair]
        for attribute in range(level.shape[1]):
            lowest = max(level[one, attribute], level[other, attribute])
            level[one, attribute] = agreement(levels, attribute, leaf[one, attribute], leaf[other, attribute], lowest)
        size[one] += size[other]
        ident[one] = min(ident[one], ident[other])
