"""k-member clustering (Byun, Kamra, Bertino and Li, DASFAA 2007): classes of k rows are built one after the other.

A class starts with the row farthest from the start of the class before. It takes the rows with which its loss grows least.
Rows that are left join the class whose loss grows least. The distance of two rows is the weight of their common nodes.

Departure: the first class starts with the row farthest from row 0, not from a random one.
"""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled
from anon_spark.families.mst.kernels.distances import Levels, reach
from anon_spark.families.mst.kernels.losses import LARGE, climb, node_weights, weight_at, weight_with_tuple
from anon_spark.kernels.classes import EMPTY, Codes, Ints
from jobs.baselines.scoring import check_rows


def k_member(levels: Levels, leaf: Codes, k: int) -> Codes:
    """The class of each row. Cost: quadratic in the rows."""
    check_rows(leaf, k)
    count, weights = len(leaf) // k, node_weights(levels, len(leaf))
    class_of = np.full(len(leaf), EMPTY, dtype=np.int32)
    level = np.zeros((count, leaf.shape[1]), dtype=np.int32)  # the levels on which the rows of a class agree
    starts, sizes = np.zeros(count, dtype=np.int64), np.full(count, k)
    free, start = np.arange(len(leaf)), 0
    for number in range(count):
        start = farthest(levels, weights, leaf, free, start)
        starts[number] = start
        fill(levels, weights, leaf, free, class_of, level[number], start, number, k)
        free = free[class_of[free] == EMPTY]
    for row in free.tolist():
        number = least_grown(levels, weights, leaf, level, starts, sizes, row)
        class_of[row] = number
        sizes[number] += 1
        climb(levels, level[number], leaf[starts[number]], leaf[row])
    return class_of


@compiled
def farthest(levels: Levels, weights: Ints, leaf: Codes, free: Ints, start: int) -> int:
    """The free row farthest from a row, the first of equally far ones."""
    table = weights_with(levels, weights, np.zeros_like(leaf[start]), leaf[start])
    best, most = EMPTY, -1
    for row in free:
        distance = 0
        for attribute in range(leaf.shape[1]):
            distance += table[levels.offsets[attribute] + leaf[row, attribute]]
        if distance > most:
            best, most = row, distance
    return best


@compiled
def fill(
    levels: Levels, weights: Ints, leaf: Codes, free: Ints, class_of: Codes, level: Codes, start: int, number: int, k: int
) -> None:
    """Build one class: its start and k - 1 more free rows. Sets the class of these rows and its levels."""
    class_of[start] = number
    for _ in range(k - 1):
        table = weights_with(levels, weights, level, leaf[start])
        weight = weight_at(levels, weights, level, leaf[start])
        best, least = EMPTY, LARGE
        for row in free:
            if class_of[row] != EMPTY:
                continue
            grown = 0
            for attribute in range(leaf.shape[1]):
                grown += table[levels.offsets[attribute] + leaf[row, attribute]]
            if grown < least:
                best, least = row, grown
                if grown == weight:  # the class covers this row already
                    break
        class_of[best] = number
        climb(levels, level, leaf[start], leaf[best])


@compiled
def weights_with(levels: Levels, weights: Ints, level: Codes, leaf: Codes) -> Ints:
    """Per leaf of any attribute: the weight of the node that covers a class and this leaf."""
    reached = reach(levels, level, leaf)
    table = np.empty(reached.size, dtype=np.int64)
    for attribute in range(leaf.size):
        offset, width = levels.offsets[attribute], levels.leaves[attribute]
        at = levels.starts[attribute] + leaf[attribute]
        for other in range(offset, offset + width):
            table[other] = weights[at + reached[other] * width]
    return table


@compiled
def least_grown(
    levels: Levels, weights: Ints, leaf: Codes, level: Codes, starts: Ints, sizes: Ints, row: int
) -> int:
    """The class whose loss grows least with a row."""
    best, least = EMPTY, LARGE
    for number in range(starts.size):
        start = leaf[starts[number]]
        weight = weight_at(levels, weights, level[number], start)
        grown = weight_with_tuple(levels, weights, level[number], start, weight, leaf[row], LARGE)
        growth = (sizes[number] + 1) * grown - sizes[number] * weight
        if growth < least:
            best, least = number, growth
    return best
