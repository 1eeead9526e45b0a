"""Top-down local recoding (Xu, Wang, Pei, Wang, Shi and Fu, KDD 2006): sets of rows are cut in two, small ones are repaired.

A set of more than k rows is cut around two seeds far apart; every other row joins the side whose loss grows less. Then a
class of fewer than k rows borrows rows from one larger class or joins another class, whichever costs less.

Departures: the first seed is not random, and rows are not assigned in random order. Rows with the clearest choice come first.
The loss of a side counts all its rows, not only its nodes. Equal rows are not cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled
from anon_spark.families.mst.kernels.distances import Levels, common_level
from anon_spark.families.mst.kernels.losses import (
    LARGE,
    Changing,
    Tuples,
    classes_from,
    climb,
    members_of,
    node_weights,
    put_in,
    take_out,
    weight_at,
    weight_with,
    weight_with_tuple,
)
from anon_spark.kernels.classes import EMPTY, Codes, Ints
from jobs.baselines.scoring import check_rows

ROUNDS = 3  # searches for a farther seed


def top_down(levels: Levels, leaf: Codes, k: int) -> Codes:
    """The class of each row; some numbers are not used. Cost: the repair compares each small class with all classes."""
    check_rows(leaf, k)
    weights = node_weights(levels, len(leaf))
    class_of, count = np.zeros(len(leaf), dtype=np.int32), 0
    uncut = [np.arange(len(leaf))]
    while uncut:
        members = uncut.pop()
        second = cut(levels, weights, leaf[members]) if members.size > k else np.zeros(members.size, dtype=np.bool_)
        if second.any():
            uncut += [members[second], members[~second]]
        else:
            class_of[members] = count
            count += 1
    rows = Tuples(leaf, np.ones(len(leaf), dtype=np.int64), np.empty((len(leaf), 0, 0), dtype=np.int32))
    classes = classes_from(levels, weights, rows, class_of, count, count)
    repair(levels, weights, rows, classes, np.argsort(classes.size, kind="stable"), k)
    return classes.class_of


def cut(levels: Levels, weights: Ints, leaf: Codes) -> NDArray[np.bool_]:
    """Which rows join the second of two seeds; none if all rows are equal."""
    first, second = 0, 0
    distance = before = distances_from(levels, weights, leaf, 0)
    for _ in range(ROUNDS):
        first, second = second, int(distance.argmax())
        before, distance = distance, distances_from(levels, weights, leaf, second)
    if distance[first] == 0:
        return np.zeros(len(leaf), dtype=np.bool_)
    order = np.argsort(-np.abs(distance - before), kind="stable")
    return around_seeds(levels, weights, leaf, np.array([first, second]), order)


@compiled
def distances_from(levels: Levels, weights: Ints, leaf: Codes, start: int) -> Ints:
    """The distance of every row from one of them: the weight of their common nodes."""
    distance = np.zeros(leaf.shape[0], dtype=np.int64)
    for attribute in range(leaf.shape[1]):
        width, value = levels.leaves[attribute], leaf[start, attribute]
        for row in range(distance.size):
            level = common_level(levels, attribute, value, leaf[row, attribute], 0)
            distance[row] += weights[levels.starts[attribute] + level * width + value]
    return distance


@compiled
def around_seeds(levels: Levels, weights: Ints, leaf: Codes, seeds: Ints, order: Ints) -> NDArray[np.bool_]:
    """Assign the rows in their order to the side whose loss grows less: True for the second side."""
    second = np.zeros(leaf.shape[0], dtype=np.bool_)
    second[seeds[1]] = True
    level = np.zeros((2, leaf.shape[1]), dtype=np.int32)
    size, weight = np.ones(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    grown, growth = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    for row in order:
        if row in (seeds[0], seeds[1]):
            continue
        for side in range(2):
            seed = leaf[seeds[side]]
            grown[side] = weight_with_tuple(levels, weights, level[side], seed, weight[side], leaf[row], LARGE)
            growth[side] = (size[side] + 1) * grown[side] - size[side] * weight[side]
        to = 1 if growth[1] < growth[0] else 0
        second[row] = to == 1
        size[to] += 1
        weight[to] = grown[to]
        climb(levels, level[to], leaf[seeds[to]], leaf[row])
    return second


# --- repair -----------------------------------------------------------------------------------------------------------


@compiled
def repair(levels: Levels, weights: Ints, rows: Tuples, classes: Changing, order: Ints, k: int) -> None:
    """Let every class of fewer than k rows borrow rows or join another class."""
    for number in order:
        missing = k - classes.size[number]
        if missing <= 0 or missing == k:
            continue
        nearest, least = nearest_class(levels, weights, classes, number)
        moved, to = members_of(classes, number), nearest
        for lender in range(classes.size.size):
            if classes.size[lender] >= k + missing:
                cost, lent = loan(levels, weights, rows, classes, number, lender, missing, least)
                if cost < least:
                    moved, to, least = lent, number, cost
        for row in moved:
            take_out(levels, weights, rows, classes, row)
            put_in(levels, weights, rows, classes, row, to)


@compiled
def nearest_class(levels: Levels, weights: Ints, classes: Changing, number: int) -> tuple[int, int]:
    """The class with which a class can be merged at the least growth of the loss, and this growth."""
    size, weight = classes.size[number], classes.weight[number]
    best, least = EMPTY, LARGE
    for other in range(classes.size.size):
        other_size, other_weight = classes.size[other], classes.weight[other]
        if other == number or other_size == 0:
            continue
        if max(size * (other_weight - weight), other_size * (weight - other_weight)) >= least:  # the least possible growth
            continue
        level, leaf = classes.level[other], classes.leaf[other]
        merged = weight_with(levels, weights, classes.level[number], classes.leaf[number], level, leaf)
        growth = (size + other_size) * merged - size * weight - other_size * other_weight
        if growth < least:
            best, least = other, growth
    return best, least


@compiled
def loan(
    levels: Levels, weights: Ints, rows: Tuples, classes: Changing, number: int, lender: int, missing: int, limit: int
) -> tuple[int, Codes]:
    """The growth of the loss if a class borrows its missing rows from the lender, and these rows.

    Each is the row with which the class grows least. The growth is LARGE if it is certainly not below the limit.
    """
    members, lent = members_of(classes, lender), np.zeros(missing, dtype=np.int32)
    level, leaf = classes.level[number].copy(), classes.leaf[number]
    size, weight = classes.size[number], classes.weight[number]
    before = size * weight + classes.size[lender] * classes.weight[lender]
    for at in range(missing):  # members[:at] are lent
        best, least = EMPTY, LARGE
        for place in range(at, members.size):
            grown = weight_with_tuple(levels, weights, level, leaf, weight, rows.leaf[members[place]], least)
            if grown < least:
                best, least = place, grown
        lent[at] = members[best]
        members[at], members[best] = members[best], members[at]
        size, weight = size + 1, least
        if size * weight - before >= limit:
            return LARGE, lent
        climb(levels, level, leaf, rows.leaf[lent[at]])
    level[:] = 0
    leaf = rows.leaf[members[missing]]
    for member in members[missing:]:
        climb(levels, level, leaf, rows.leaf[member])
    kept = (members.size - missing) * weight_at(levels, weights, level, leaf)
    return size * weight + kept - before, lent
