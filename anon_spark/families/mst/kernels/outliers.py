"""Tuples that a class would lose less without, although each row left out costs the most possible (decision M-15)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled, inner
from anon_spark.families.mst.kernels.distances import Levels
from anon_spark.families.mst.kernels.keeping import keeps_within
from anon_spark.families.mst.kernels.losses import Changing, Tuples, climb, members_of, weight_at
from anon_spark.kernels.classes import Codes, Ints

STAYS = 0  # the step of a tuple that no step leaves out


@compiled
def outliers(
    levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, k: int, price: int
) -> tuple[Codes, NDArray[np.float64]]:
    """The step in which each tuple would be left out of its class (1, 2, …; STAYS), and what it gains per row left out.

    A step lowers one attribute by one level: it leaves out what is not below the child with the most rows. price: what a row
    costs that is left out. Guarantee: after any number of steps the class has k rows and l values, and keeps the models; every
    step lowers the loss; no step gains more per row than the one before it.
    Cost: a class × its attributes squared, for each step.
    """
    step_of, gains = np.zeros(tuples.rows.size, dtype=np.int32), np.zeros(tuples.rows.size)
    for number in range(classes.used[0]):
        members, most = members_of(classes, number), np.inf
        inside, step = np.ones(members.size, dtype=np.bool_), 0
        while members.size > 1:
            gain, kept = best_step(levels, weights, tuples, members, inside, k, price)
            if gain <= 0:
                break
            most, step = min(most, gain), step + 1
            for place in range(members.size):
                if inside[place] and not kept[place]:
                    step_of[members[place]], gains[members[place]] = step, most
            inside = kept
    return step_of, gains


@inner
def best_step(
    levels: Levels, weights: Ints, tuples: Tuples, members: Codes, inside: NDArray[np.bool_], k: int, price: int
) -> tuple[float, NDArray[np.bool_]]:
    """The step of greatest gain per row left out (0: none), and the members that it keeps, out of those `inside`."""
    size, level, leaf = class_within(levels, tuples, members, inside)
    loss = size * weight_at(levels, weights, level, leaf)
    best, kept = 0.0, inside
    for attribute in range(leaf.size):
        if level[attribute] == 0:
            continue
        rest = inside & below_largest(levels, tuples, members, inside, attribute, level[attribute] - 1)
        left, new_level, new_leaf = class_within(levels, tuples, members, rest)
        if left < k or not keeps_within(tuples, members, rest):
            continue
        gain = loss - left * weight_at(levels, weights, new_level, new_leaf) - (size - left) * price
        if gain > best * (size - left):
            best, kept = gain / (size - left), rest
    return best, kept


@inner
def class_within(
    levels: Levels, tuples: Tuples, members: Codes, inside: NDArray[np.bool_]
) -> tuple[int, Codes, Codes]:
    """Rows, levels and one member's leaves of a class of some of the members."""
    first = members[np.argmax(inside)]
    size, level, leaf = 0, np.zeros(tuples.leaf.shape[1], dtype=np.int32), tuples.leaf[first]
    for place in range(members.size):
        if inside[place]:
            size += tuples.rows[members[place]]
            climb(levels, level, leaf, tuples.leaf[members[place]])
    return size, level, leaf


@inner
def below_largest(
    levels: Levels, tuples: Tuples, members: Codes, inside: NDArray[np.bool_], attribute: int, level: int
) -> NDArray[np.bool_]:
    """Which members have the value of this level that most rows inside have; of equals, the first in code order."""
    start = levels.starts[attribute] + level * levels.leaves[attribute]
    codes = np.empty(members.size, dtype=np.int32)
    rows = np.zeros(levels.leaves[attribute], dtype=np.int64)
    for place in range(members.size):
        codes[place] = levels.codes[start + tuples.leaf[members[place], attribute]]
        if inside[place]:
            rows[codes[place]] += tuples.rows[members[place]]
    largest: NDArray[np.bool_] = codes == np.argmax(rows)
    return largest
