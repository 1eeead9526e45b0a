"""The general loss of classes that change, in exact integers.

The loss of a class is its rows × the weights of its nodes. The weight of a node is (leaves below it - 1) / (leaves - 1) in
fixed point, so that every comparison is one of integers (decision M-11).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.families.mst.kernels.counts import UNCOUNTED, Counts, counts_taken
from anon_spark.families.mst.kernels.distances import Levels, common_level
from anon_spark.kernels.classes import EMPTY, Codes, Ints

WEIGHT_BITS = 32
LARGE = 2**62  # above every loss, with room to add one


class Tuples(NamedTuple):
    """Distinct tuples: leaves of each attribute, how many rows each stands for, up to l sensitive values per column.

    counts: rows of each value, where columns have models.
    """

    leaf: Codes
    rows: Ints
    values: Codes
    counts: Counts = UNCOUNTED


@compiled
def taken(tuples: Tuples, members: Codes) -> Tuples:
    """Some of the tuples, in the order given."""
    counts = counts_taken(tuples.counts, members)
    return Tuples(tuples.leaf[members], tuples.rows[members], tuples.values[members], counts)


class Changing(NamedTuple):
    """Classes as chains of tuples, each with the levels on which its members agree, one member's leaves, rows and weight.

    A class without rows is empty: its number is free. used: one above the greatest number given so far.
    """

    class_of: Codes
    next_of: Codes
    head: Codes
    level: Codes
    leaf: Codes
    size: Ints
    weight: Ints
    used: Ints


def node_weights(levels: Levels, rows: int) -> Ints:
    """The weight of each node, in the layout of `levels.codes`, for a table of so many rows.

    Fewer than 32 bits after the point where sums over the whole table would not fit into 64.
    """
    bits = _bits(levels, rows)
    weights = np.zeros(levels.codes.size, dtype=np.int64)
    for start, width, height in zip(levels.starts.tolist(), levels.leaves.tolist(), levels.heights.tolist(), strict=True):
        for at in range(start, start + width * (height + 1), width):
            codes = levels.codes[at : at + width]
            below = np.bincount(codes)[codes] - 1
            if width > 1:
                weights[at : at + width] = (below * 2**bits + (width - 1) // 2) // (width - 1)
    return weights


def full_weight(levels: Levels, rows: int) -> int:
    """The weight of a row that is left out: 1 for each attribute, in the fixed point of `node_weights`."""
    return int(levels.heights.size) << _bits(levels, rows)


def _bits(levels: Levels, rows: int) -> int:
    return min(WEIGHT_BITS, 62 - (rows * levels.heights.size).bit_length())


@compiled
def classes_from(levels: Levels, weights: Ints, tuples: Tuples, class_of: Codes, count: int, room: int) -> Changing:
    """The classes 0 to count - 1, with room for more."""
    attributes = tuples.leaf.shape[1]
    classes = Changing(
        class_of.copy(),
        np.full(class_of.size, EMPTY, dtype=np.int32),
        np.full(room, EMPTY, dtype=np.int32),
        np.zeros((room, attributes), dtype=np.int32),
        np.zeros((room, attributes), dtype=np.int32),
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.array([count]),
    )
    for member in range(class_of.size - 1, -1, -1):
        number = class_of[member]
        classes.next_of[member] = classes.head[number]
        classes.head[number] = member
    for number in range(count):
        settle(levels, weights, tuples, classes, number)
    return classes


@inner
def settle(levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, number: int) -> None:
    """Derive rows, levels and weight of a class from its members."""
    classes.size[number] = 0
    head = classes.head[number]
    if head == EMPTY:
        classes.weight[number] = 0
        return
    for attribute in range(tuples.leaf.shape[1]):
        classes.leaf[number, attribute] = tuples.leaf[head, attribute]
        classes.level[number, attribute] = 0
    member = head
    while member != EMPTY:
        classes.size[number] += tuples.rows[member]
        climb(levels, classes.level[number], classes.leaf[number], tuples.leaf[member])
        member = classes.next_of[member]
    classes.weight[number] = weight_at(levels, weights, classes.level[number], classes.leaf[number])


@compiled
def climb(levels: Levels, level: Codes, leaf: Codes, other: Codes) -> None:
    """Raise the levels of a class until it covers another tuple."""
    for attribute in range(leaf.size):
        level[attribute] = common_level(levels, attribute, leaf[attribute], other[attribute], level[attribute])


@inner
def weight_at(levels: Levels, weights: Ints, level: Codes, leaf: Codes) -> int:
    """The weights of a class's nodes together."""
    total = 0
    for attribute in range(leaf.size):
        total += weights[levels.starts[attribute] + level[attribute] * levels.leaves[attribute] + leaf[attribute]]
    return total


@inner
def weight_with(levels: Levels, weights: Ints, level: Codes, leaf: Codes, other_level: Codes, other_leaf: Codes) -> int:
    """The weight of the closest common generalization of two classes."""
    total = 0
    for attribute in range(leaf.size):
        higher = max(level[attribute], other_level[attribute])
        up = common_level(levels, attribute, leaf[attribute], other_leaf[attribute], higher)
        total += weights[levels.starts[attribute] + up * levels.leaves[attribute] + leaf[attribute]]
    return total


@inner
def weight_with_tuple(
    levels: Levels, weights: Ints, level: Codes, leaf: Codes, weight: int, other: Codes, limit: int
) -> int:
    """The weight of a class of this weight with one tuple more; any number from `limit` on, if it is not below."""
    total = weight
    for attribute in range(leaf.size):
        up = common_level(levels, attribute, leaf[attribute], other[attribute], level[attribute])
        if up == level[attribute]:
            continue
        at, width = levels.starts[attribute] + leaf[attribute], levels.leaves[attribute]
        total += weights[at + up * width] - weights[at + level[attribute] * width]
        if total >= limit:
            return int(total)  # a break here makes the compiled search four times slower
    return int(total)


@compiled
def weight_without(levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, number: int, without: int) -> int:
    """The weight of a class without one of its tuples, of which it has others."""
    head = classes.head[number]
    if head == without:
        head = classes.next_of[head]
    total = 0
    for attribute in range(tuples.leaf.shape[1]):
        width, top = levels.leaves[attribute], classes.level[number, attribute]
        leaf = tuples.leaf[head, attribute]
        level, member = 0, classes.next_of[head]
        while member != EMPTY and level < top:
            if member != without:
                level = common_level(levels, attribute, leaf, tuples.leaf[member, attribute], level)
            member = classes.next_of[member]
        total += weights[levels.starts[attribute] + level * width + leaf]
    return total


@compiled
def closest(
    levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, member: int, but: int, least: int, most_rows: int
) -> tuple[int, int]:
    """The class, other than `but`, whose loss grows least with a tuple, and by how much; EMPTY unless by less than `least`.

    A class has at most `most_rows` rows with it.
    """
    rows, leaf = tuples.rows[member], tuples.leaf[member]
    best = EMPTY
    for number in range(classes.used[0]):
        size, weight = classes.size[number], classes.weight[number]
        if number == but or size == 0 or size + rows > most_rows or rows * weight >= least:
            continue
        limit = (least + size * weight + size + rows - 1) // (size + rows)
        grown = weight_with_tuple(levels, weights, classes.level[number], classes.leaf[number], weight, leaf, limit)
        if grown < limit:
            best, least = number, (size + rows) * grown - size * weight
    return best, least


@inner
def take_out(levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, member: int) -> None:
    """Remove a tuple from its class."""
    number = classes.class_of[member]
    if classes.head[number] == member:
        classes.head[number] = classes.next_of[member]
    else:
        before = classes.head[number]
        while classes.next_of[before] != member:
            before = classes.next_of[before]
        classes.next_of[before] = classes.next_of[member]
    settle(levels, weights, tuples, classes, number)


@inner
def put_in(levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, member: int, number: int) -> None:
    """Add a tuple to a class that is not empty."""
    classes.class_of[member] = number
    classes.next_of[member] = classes.head[number]
    classes.head[number] = member
    classes.size[number] += tuples.rows[member]
    climb(levels, classes.level[number], classes.leaf[number], tuples.leaf[member])
    classes.weight[number] = weight_at(levels, weights, classes.level[number], classes.leaf[number])


@inner
def members_of(classes: Changing, number: int) -> Codes:
    """The tuples of a class, in the order of its chain."""
    count, member = 0, classes.head[number]
    while member != EMPTY:
        count += 1
        member = classes.next_of[member]
    members, member = np.empty(count, dtype=np.int32), classes.head[number]
    for place in range(count):
        members[place] = member
        member = classes.next_of[member]
    return members


@inner
def ascending(numbers: Ints) -> Ints:
    """The places of the numbers by size, equal ones in their order. One function, so that sorting is compiled once."""
    return np.argsort(numbers, kind="mergesort")


@compiled
def total_loss(classes: Changing) -> int:
    """The loss of all classes."""
    return int((classes.size * classes.weight).sum())
