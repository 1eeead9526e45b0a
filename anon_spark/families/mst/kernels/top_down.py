"""A partition from the top: sets of tuples are cut in two again and again, then repaired (part of decision M-13).

Two ways that find different partitions. LOOSE: every set of more than k rows is cut, and classes that came out too small are
repaired at the end. FILLED: only sets of 2k rows are cut, and a side below k borrows from the other at once; where columns have
models, only into sides that keep them.
"""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.families.mst.kernels.counts import has_models
from anon_spark.families.mst.kernels.distances import Levels, common_level
from anon_spark.families.mst.kernels.keeping import keeps_within
from anon_spark.families.mst.kernels.losses import (
    LARGE,
    Changing,
    Tuples,
    ascending,
    classes_from,
    climb,
    taken,
    weight_at,
    weight_with_tuple,
)
from anon_spark.families.mst.kernels.repair import repair
from anon_spark.kernels.classes import EMPTY, Codes, Ints

LOOSE, FILLED = 0, 1


@compiled
def top_down(levels: Levels, weights: Ints, tuples: Tuples, k: int, way: int) -> Changing:
    """Partition tuples that together have k rows and l values, and keep the models."""
    count = tuples.rows.size
    class_of, order = np.zeros(count, dtype=np.int32), np.arange(count).astype(np.int32)
    begin, end = np.zeros(count + 1, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)  # the sets that are not cut yet
    end[0], left, found = count, 1, 0
    while left:
        left -= 1
        first, last = begin[left], end[left]
        members = order[first:last].copy()
        side = cut(levels, weights, taken(tuples, members), k, way)
        middle = first + by_side(members, side, order[first:last])
        if middle == last:
            for member in members:
                class_of[member] = found
            found += 1
            continue
        begin[left], end[left] = middle, last
        begin[left + 1], end[left + 1] = first, middle
        left += 2
    classes = classes_from(levels, weights, tuples, class_of, found, found)
    repair(levels, weights, tuples, classes, k)
    return classes


@inner
def by_side(members: Codes, side: Codes, into: Codes) -> int:
    """Write the members of side 0, then those of side 1; returns how many the first are."""
    place = first = 0
    for which in range(2):
        for at in range(members.size):
            if side[at] == which:
                into[place] = members[at]
                place += 1
        if which == 0:
            first = place
    return first


@inner
def cut(levels: Levels, weights: Ints, tuples: Tuples, k: int, way: int) -> Codes:
    """The side, 0 or 1, of each tuple; all on side 0 if the set is not cut."""
    rows = tuples.rows.sum()
    whole = np.zeros(tuples.rows.size, dtype=np.int32)
    if rows < 2 * k and (way == FILLED or rows <= k):
        return whole
    side = around_seeds(levels, weights, tuples)
    if side.max() == 0 or rows < 2 * k:
        return side
    return best_cut(levels, weights, tuples, side, k, way)


@inner
def around_seeds(levels: Levels, weights: Ints, tuples: Tuples) -> Codes:
    """Two tuples far apart, each other tuple on the side that grows less; all on side 0 if all tuples are equal.

    Those that are much nearer to one of both come first.
    """
    count = tuples.rows.size
    side = np.zeros(count, dtype=np.int32)
    one, other, apart = seeds_of(levels, weights, tuples)
    if one == other:
        return side
    level = np.zeros((2, tuples.leaf.shape[1]), dtype=np.int32)
    first_weight = second_weight = 0
    first_size, second_size = tuples.rows[one], tuples.rows[other]
    side[other] = 1
    for place in ascending(-np.abs(apart)):
        if place in (one, other):
            continue
        leaf = tuples.leaf[place]
        first_grown = weight_with_tuple(levels, weights, level[0], tuples.leaf[one], first_weight, leaf, LARGE)
        second_grown = weight_with_tuple(levels, weights, level[1], tuples.leaf[other], second_weight, leaf, LARGE)
        first_growth, second_growth = first_grown - first_weight, second_grown - second_weight
        into = 0 if first_growth < second_growth else 1
        if first_growth == second_growth:
            into = 0 if apart[place] < 0 or (apart[place] == 0 and first_size <= second_size) else 1
        side[place] = into
        if into == 0:
            first_size += tuples.rows[place]
            first_weight = first_grown
            climb(levels, level[0], tuples.leaf[one], leaf)
        else:
            second_size += tuples.rows[place]
            second_weight = second_grown
            climb(levels, level[1], tuples.leaf[other], leaf)
    return side


@inner
def seeds_of(levels: Levels, weights: Ints, tuples: Tuples) -> tuple[int, int, Ints]:
    """Two tuples far apart, the same one twice if all are equal; and how much farther each is from the first than the second."""
    before = int(distances_from(levels, weights, tuples, 0).argmax())
    from_one = distances_from(levels, weights, tuples, before)
    other = int(from_one.argmax())
    from_other = distances_from(levels, weights, tuples, other)
    one = int(from_other.argmax())
    if one != before:
        from_one = distances_from(levels, weights, tuples, one)
    return one, other, from_one - from_other


@inner
def distances_from(levels: Levels, weights: Ints, tuples: Tuples, start: int) -> Ints:
    """The distance of every tuple from one of them: the weight of both together."""
    distances = np.zeros(tuples.rows.size, dtype=np.int64)
    for attribute in range(tuples.leaf.shape[1]):
        width, leaf = levels.leaves[attribute], tuples.leaf[start, attribute]
        for place in range(distances.size):
            up = common_level(levels, attribute, leaf, tuples.leaf[place, attribute], 0)
            distances[place] += weights[levels.starts[attribute] + up * width + leaf]
    return distances


@inner
def best_cut(levels: Levels, weights: Ints, tuples: Tuples, side: Codes, k: int, way: int) -> Codes:
    """The given cut, or one value of one attribute against the others: the least loss with k rows on both sides.

    The given cut if there is none with k rows; FILLED, with models: no cut if none keeps them on both sides.
    """
    strict = way == FILLED and has_models(tuples.counts)
    if way == FILLED:
        fill(levels, weights, tuples, side, k)
    best, least = side, loss_of_sides(levels, weights, tuples, side, k)
    if strict and not (least < LARGE and sides_keep(tuples, side)):
        best, least = np.zeros_like(side), LARGE
    total, least_rows = tuples.rows.sum(), (k + 1) // 2 if way == FILLED else k
    level = np.zeros(tuples.leaf.shape[1], dtype=np.int32)
    for place in range(side.size):
        climb(levels, level, tuples.leaf[0], tuples.leaf[place])
    for attribute in range(level.size):
        if level[attribute] == 0:
            continue
        codes, rows = values_below(levels, tuples, attribute, level[attribute])
        for code in range(rows.size):
            if rows[code] < least_rows or total - rows[code] < least_rows:
                continue
            trial = (codes != code).astype(np.int32)
            if way == FILLED:
                fill(levels, weights, tuples, trial, k)
            loss = loss_of_sides(levels, weights, tuples, trial, k)
            if loss < least and (not strict or sides_keep(tuples, trial)):
                best, least = trial, loss
    return best


@inner
def sides_keep(tuples: Tuples, side: Codes) -> bool:
    """Whether both sides have l values in every sensitive column, and keep the models."""
    places = np.arange(side.size).astype(np.int32)
    return keeps_within(tuples, places, side == 0) and keeps_within(tuples, places, side == 1)


@inner
def values_below(levels: Levels, tuples: Tuples, attribute: int, level: int) -> tuple[Codes, Ints]:
    """The value of each tuple one level below this one, and the rows of each value."""
    start = levels.starts[attribute] + (level - 1) * levels.leaves[attribute]
    codes = levels.codes[start : start + levels.leaves[attribute]][tuples.leaf[:, attribute]]
    rows = np.zeros(codes.max() + 1, dtype=np.int64)
    for place in range(codes.size):
        rows[codes[place]] += tuples.rows[place]
    return codes, rows


@inner
def loss_of_sides(levels: Levels, weights: Ints, tuples: Tuples, side: Codes, k: int) -> int:
    """The loss of both sides as classes; LARGE if one has fewer than k rows."""
    total = 0
    for which in range(2):
        level, leaf, rows = covered(levels, tuples, side, which)
        if rows < k:
            return LARGE
        total += rows * weight_at(levels, weights, level, leaf)
    return total


@inner
def covered(levels: Levels, tuples: Tuples, side: Codes, which: int) -> tuple[Codes, Codes, int]:
    """Levels, one member's leaves and rows of one side."""
    level, head, rows = np.zeros(tuples.leaf.shape[1], dtype=np.int32), EMPTY, 0
    for place in range(side.size):
        if side[place] == which:
            if head == EMPTY:
                head = place
            rows += tuples.rows[place]
            climb(levels, level, tuples.leaf[head], tuples.leaf[place])
    return level, tuples.leaf[head], rows


@inner
def fill(levels: Levels, weights: Ints, tuples: Tuples, side: Codes, k: int) -> None:
    """Let a side below k rows take tuples of the other one, each where it grows least; the other keeps k."""
    size = np.zeros(2, dtype=np.int64)
    for place in range(side.size):
        size[side[place]] += tuples.rows[place]
    small = 0 if size[0] < size[1] else 1
    if size[small] >= k:
        return
    level, leaf, _ = covered(levels, tuples, side, small)
    weight = weight_at(levels, weights, level, leaf)
    while size[small] < k:
        best, least, into = EMPTY, LARGE, weight
        for place in range(side.size):
            rows = tuples.rows[place]
            if side[place] == small or size[1 - small] - rows < k:
                continue
            grown = weight_with_tuple(levels, weights, level, leaf, weight, tuples.leaf[place], LARGE)
            if grown == weight and size[small] < k:  # it is covered already: nothing is cheaper
                side[place] = small
                size[small] += rows
                size[1 - small] -= rows
                best, least = EMPTY, -1
                continue
            growth = (size[small] + rows) * grown - size[small] * weight
            if growth < least:
                best, least, into = place, growth, grown
        if least == LARGE:
            return
        if best != EMPTY:
            side[best] = small
            size[small] += tuples.rows[best]
            size[1 - small] -= tuples.rows[best]
            climb(levels, level, leaf, tuples.leaf[best])
            weight = into
