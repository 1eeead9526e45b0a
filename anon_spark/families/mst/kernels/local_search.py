"""Local search on a partition: tuples move and classes dissolve while the general loss falls (decision M-12).

No step leaves a class below k rows or below l sensitive values. Ties go to the smaller number.
"""

from __future__ import annotations

import numpy as np

from anon_spark.families.mst.kernels.distances import Levels
from anon_spark.families.mst.kernels.diversity import add_values, is_diverse
from anon_spark.families.mst.kernels.losses import (
    Changing,
    Tuples,
    ascending,
    closest,
    members_of,
    put_in,
    take_out,
    weight_without,
)
from anon_spark.kernels.classes import EMPTY, Codes, Ints
from anon_spark.kernels.compiled import compiled

DISSOLVED_BELOW = 3  # rows of a class that may dissolve, in multiples of k
MOST_ROWS = 20  # of a class that takes in tuples, in multiples of k


@compiled
def improve(levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, k: int, passes: int) -> None:
    """Dissolve and move until nothing changes, at most `passes` times."""
    for _ in range(passes):
        changed = dissolve_classes(levels, weights, tuples, classes, k)
        changed |= move_tuples(levels, weights, tuples, classes, k)
        if not changed:
            return


@compiled
def move_tuples(levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, k: int) -> bool:
    """Move each tuple to the class where the loss falls most, if its own class can do without it. Whether any moved."""
    moved = False
    for member in range(tuples.rows.size):
        own = classes.class_of[member]
        left = classes.size[own] - tuples.rows[member]
        if left < k or classes.weight[own] == 0:
            continue
        before = classes.size[own] * classes.weight[own]
        gain = before - left * weight_without(levels, weights, tuples, classes, own, member)
        if gain <= 0:
            continue
        into, _ = closest(levels, weights, tuples, classes, member, own, gain, MOST_ROWS * k)
        if into != EMPTY and diverse_without(tuples, classes, own, member):
            take_out(levels, weights, tuples, classes, member)
            put_in(levels, weights, tuples, classes, member, into)
            moved = True
    return moved


@compiled
def dissolve_classes(levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, k: int) -> bool:
    """Dissolve classes of fewer than 3k rows, greatest loss first, where the loss falls. Whether any was."""
    changed = False
    for number in ascending(-(classes.size * classes.weight)):
        loss = classes.size[number] * classes.weight[number]
        if loss > 0 and classes.size[number] < DISSOLVED_BELOW * k:
            changed |= dissolve(levels, weights, tuples, classes, number, loss, MOST_ROWS * k)
    return changed


@compiled
def dissolve(
    levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, number: int, most: int, most_rows: int
) -> bool:
    """Let every tuple of a class join the one that grows least, if all together grow by less than `most`, each to `most_rows`."""
    members = members_of(classes, number)
    count, done, growth = members.size, 0, 0
    into = np.empty(count, dtype=np.int32)
    level = np.empty((count, classes.level.shape[1]), dtype=np.int32)  # of the class joined, before
    weight = np.empty(count, dtype=np.int64)
    while done < count:
        other, grown = closest(levels, weights, tuples, classes, members[done], number, most - growth, most_rows)
        if other == EMPTY:
            break
        growth += grown
        into[done], level[done], weight[done] = other, classes.level[other], classes.weight[other]
        put_in(levels, weights, tuples, classes, members[done], other)
        done += 1
    if done == count:
        classes.head[number] = EMPTY
        classes.size[number] = classes.weight[number] = 0
        return True
    for place in range(done - 1, -1, -1):  # everything as it was
        other, member = into[place], members[place]
        classes.head[other] = classes.next_of[member]
        classes.size[other] -= tuples.rows[member]
        classes.level[other], classes.weight[other] = level[place], weight[place]
    for place in range(count):
        classes.class_of[members[place]] = number
        classes.next_of[members[place]] = members[place + 1] if place + 1 < count else EMPTY
    return False


# --- sensitive values -------------------------------------------------------------------------------------------------------


@compiled
def is_class(tuples: Tuples, classes: Changing, number: int, k: int) -> bool:
    """Whether a class has k rows, and l values in every sensitive column."""
    return classes.size[number] >= k and diverse_without(tuples, classes, number, EMPTY)


@compiled
def diverse_without(tuples: Tuples, classes: Changing, number: int, without: int) -> bool:
    """Whether a class keeps l values in every sensitive column without one of its tuples."""
    if tuples.values.shape[1] == 0:
        return True
    gathered = np.full((tuples.values.shape[1], tuples.values.shape[2]), -1, dtype=np.int32)
    member = classes.head[number]
    while member != EMPTY:
        if member != without:
            for column in range(gathered.shape[0]):
                add_values(gathered[column], tuples.values[member, column])
            if is_diverse(gathered):
                return True
        member = classes.next_of[member]
    return False


@compiled
def gathered_values(tuples: Tuples, classes: Changing, number: int) -> Codes:
    """Up to l values of a class in each sensitive column."""
    gathered = np.full((tuples.values.shape[1], tuples.values.shape[2]), -1, dtype=np.int32)
    member = classes.head[number]
    while member != EMPTY:
        for column in range(gathered.shape[0]):
            add_values(gathered[column], tuples.values[member, column])
        member = classes.next_of[member]
    return gathered


@compiled
def adds_value(gathered: Codes, values: Codes) -> bool:
    """Whether a tuple has a sensitive value that is lacking, in a column with fewer than l."""
    for column in range(gathered.shape[0]):
        both = gathered[column].copy()
        if both[-1] < 0:
            add_values(both, values[column])
            if (both >= 0).sum() > (gathered[column] >= 0).sum():
                return True
    return False
