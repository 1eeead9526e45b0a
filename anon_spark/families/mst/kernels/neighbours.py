"""Exact nearest neighbours of classes, without comparing all pairs.

CDist(a, b) = |a| · (g(join) - g(a)) + |b| · (g(join) - g(b)), with g the cost of a level vector. The classes are in a
tree of boxes: leaves are numbered so that every value of every level is a run of numbers, and a box is one run per
attribute. A leaf outside a run is at least as far from its members as from the nearer end. This bounds the CDist of a box
to any class from below, so most boxes are never opened.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.families.mst.kernels.distances import Levels, common_level, generality, reach
from anon_spark.families.mst.kernels.spanning import Walk
from anon_spark.kernels.arrays import write
from anon_spark.kernels.classes import Codes, Ints

FAR = np.int64(np.iinfo(np.int64).max)
WORD = 2**62
BOX = 8  # members of a box that is not divided


class Classes(NamedTuple):
    """Classes as arrays: levels and one member's leaves (classes × attributes), rows, identity."""

    level: Codes
    leaf: Codes
    size: Ints
    ident: Ints

    def take(self, chosen: Ints) -> Classes:
        """Copies of the chosen classes."""
        return Classes(self.level[chosen], self.leaf[chosen], self.size[chosen], self.ident[chosen])

    def __add__(self, others: Classes) -> Classes:  # type: ignore[override]
        """These classes, followed by the others."""
        return Classes(
            np.concatenate([self.level, others.level]),
            np.concatenate([self.leaf, others.leaf]),
            np.concatenate([self.size, others.size]),
            np.concatenate([self.ident, others.ident]),
        )


class Neighbours(NamedTuple):
    """Per class the least CDist to another class, and the first node (by cost, lexicographic) that attains it."""

    distance: Ints
    node: Codes


class Plan(NamedTuple):
    """The lattice for merging: nodes by (cost, lexicographic), the rank of each, and key factors of codes.

    `factors[word, attribute]` combines the codes on any node into one number; several words if one is too small.
    """

    nodes: Codes
    cost: Ints
    rank: Codes
    strides: Ints
    factors: Ints


def plan(walk: Walk, levels: Levels) -> Plan:
    """Prepare the walk for merging."""
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


class Boxes(NamedTuple):
    """A binary tree: node 0 holds all members; node n holds members[first[n] : last[n]] and is divided into the nodes
    child[n] and child[n] + 1, or not at all (-1).

    Of the members of a node: the runs of their leaves, their least levels, their least rows and their greatest g.
    """

    members: Ints
    first: Ints
    last: Ints
    child: Ints
    low: Codes
    high: Codes
    level: Codes
    size: Ints
    cost: Ints


def neighbours(classes: Classes, levels: Levels, plan: Plan, queries: Ints) -> Neighbours:
    """The neighbours of some of the classes among all of them (at least two). The leaves are numbered by runs (`in_runs`).

    Cost: classes × log to make the boxes; then per query the boxes that may hold a nearer class.
    """
    cost = generality(levels, classes.level)
    boxes = divide(levels, *classes[:3], cost)
    return Neighbours(*nearest(levels, plan.rank, plan.strides, boxes, *classes[:3], cost, queries))


@compiled
def divide(levels: Levels, level: Codes, leaf: Codes, size: Ints, cost: Ints) -> Boxes:
    """Halve the classes recursively: on the attribute with the largest spread, between two distant values."""
    attributes, room = level.shape[1], 2 * size.size
    members = np.arange(size.size)
    first, last = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
    child = np.full(room, -1, dtype=np.int64)
    low, high = np.zeros((room, attributes), dtype=np.int32), np.zeros((room, attributes), dtype=np.int32)
    least_level = np.zeros((room, attributes), dtype=np.int32)
    least_size, greatest_cost = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
    counts = np.zeros(levels.leaves.max(), dtype=np.int64)
    moved = np.empty_like(members)
    last[0] = members.size
    made, at = 1, 0
    while at < made:
        inside = members[first[at] : last[at]]
        head = inside[0]
        low[at], high[at], least_level[at] = leaf[head], leaf[head], level[head]
        least_size[at], greatest_cost[at] = size[head], cost[head]
        for member in inside:
            least_size[at] = min(least_size[at], size[member])
            greatest_cost[at] = max(greatest_cost[at], cost[member])
            for attribute in range(attributes):
                low[at, attribute] = min(low[at, attribute], leaf[member, attribute])
                high[at, attribute] = max(high[at, attribute], leaf[member, attribute])
                least_level[at, attribute] = min(least_level[at, attribute], level[member, attribute])
        widest, spread = -1, np.int64(0)
        if inside.size > BOX:
            for attribute in range(attributes):
                apart = common_level(levels, attribute, low[at, attribute], high[at, attribute], 0)
                if apart * levels.units[attribute] > spread:
                    widest, spread = attribute, apart * levels.units[attribute]
        if widest >= 0:
            border = border_of(levels, widest, leaf, inside, low[at, widest], high[at, widest], counts)
            left, right = 0, 0
            for member in inside:
                if leaf[member, widest] < border:
                    inside[left] = member
                    left += 1
                else:
                    moved[right] = member
                    right += 1
            write(moved[:right], inside[left:])
            child[at] = made
            first[made], last[made] = first[at], first[at] + left
            first[made + 1], last[made + 1] = first[at] + left, last[at]
            made += 2
        at += 1
    return Boxes(
        members, first[:made], last[:made], child[:made], low[:made], high[:made], least_level[:made],
        least_size[:made], greatest_cost[:made],
    )  # fmt: skip


@inner
def border_of(levels: Levels, attribute: int, leaf: Codes, inside: Ints, low: int, high: int, counts: Ints) -> int:
    """The first leaf of the right part: the border between most general values that is nearest to the middle."""
    counts[low : high + 1] = 0
    for member in inside:
        counts[leaf[member, attribute]] += 1
    # neighbouring leaves have different most general values if they differ one level below the top
    below = common_level(levels, attribute, low, high, 0) - 1
    codes = levels.codes[levels.starts[attribute] + below * levels.leaves[attribute] :]
    border, imbalance, passed = high, FAR, 0
    for place in range(low + 1, high + 1):
        passed += counts[place - 1]
        if codes[place] != codes[place - 1] and abs(2 * passed - inside.size) < imbalance:
            border, imbalance = place, abs(2 * passed - inside.size)
    return border


@compiled
def nearest(
    levels: Levels,
    ranks: Codes,
    strides: Ints,
    boxes: Boxes,
    level: Codes,
    leaf: Codes,
    size: Ints,
    cost: Ints,
    queries: Ints,
) -> tuple[Ints, Codes]:
    """The nearest class of each query. Boxes that may hold a nearer member, or one as near on an earlier node, are opened.

    A box whose bound equals the known CDist can hold an equally near member only on the join that gave the bound: any other
    join is more general and costs more.
    """
    distance, at_node = np.empty(queries.size, dtype=np.int64), np.empty(queries.size, dtype=np.int32)
    stack = np.empty(256, dtype=np.int64)
    bounds, bound_ranks = np.empty(256, dtype=np.int64), np.empty(256, dtype=np.int32)
    for position in range(queries.size):
        query = queries[position]
        levels_to = reach(levels, level[query], leaf[query])
        own_level, own_size, own_cost = level[query], size[query], cost[query]
        best, best_rank = FAR, np.int32(0)
        stack[0], bounds[0], bound_ranks[0], depth = 0, 0, 0, 1
        while depth > 0:
            depth -= 1
            box = stack[depth]
            if bounds[depth] > best or (bounds[depth] == best and bound_ranks[depth] >= best_rank):
                continue
            if boxes.child[box] < 0:
                for at in range(boxes.first[box], boxes.last[box]):
                    member = boxes.members[at]
                    if member == query:
                        continue
                    joined, index = np.int64(0), np.int64(0)
                    for attribute in range(own_level.size):
                        climbed = levels_to[levels.offsets[attribute] + leaf[member, attribute]]
                        climbed = max(climbed, level[member, attribute])
                        joined += levels.units[attribute] * climbed
                        index += strides[attribute] * climbed
                    price = own_size * (joined - own_cost) + size[member] * (joined - cost[member])
                    if price < best or (price == best and ranks[index] < best_rank):
                        best, best_rank = price, ranks[index]
                continue
            if depth + 2 > stack.size:
                stack, bounds = np.concatenate((stack, stack)), np.concatenate((bounds, bounds))
                bound_ranks = np.concatenate((bound_ranks, bound_ranks))
            for side in range(2):
                part = boxes.child[box] + side
                joined, index = np.int64(0), np.int64(0)
                for attribute in range(own_level.size):
                    low, high = boxes.low[part, attribute], boxes.high[part, attribute]
                    climbed = own_level[attribute]
                    if leaf[query, attribute] < low:
                        climbed = levels_to[levels.offsets[attribute] + low]
                    elif leaf[query, attribute] > high:
                        climbed = levels_to[levels.offsets[attribute] + high]
                    climbed = max(climbed, boxes.level[part, attribute])
                    joined += levels.units[attribute] * climbed
                    index += strides[attribute] * climbed
                least = own_size * (joined - own_cost) + boxes.size[part] * max(joined - boxes.cost[part], 0)
                stack[depth + side], bounds[depth + side], bound_ranks[depth + side] = part, least, ranks[index]
            if bounds[depth] < bounds[depth + 1]:  # the nearer box is opened first
                stack[depth], stack[depth + 1] = stack[depth + 1], stack[depth]
                bounds[depth], bounds[depth + 1] = bounds[depth + 1], bounds[depth]
                bound_ranks[depth], bound_ranks[depth + 1] = bound_ranks[depth + 1], bound_ranks[depth]
            depth += 2
        distance[position], at_node[position] = best, best_rank
    return distance, at_node
