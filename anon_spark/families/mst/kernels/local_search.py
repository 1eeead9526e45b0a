"""Local search on a partition: tuples move and classes dissolve while the general loss falls (decision M-12).

No step leaves a class below k rows, below l sensitive values, or one that fails a model. Ties go to the smaller number.
"""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.families.mst.kernels.counts import has_models
from anon_spark.families.mst.kernels.distances import Levels
from anon_spark.families.mst.kernels.keeping import diverse_without, keeps_models
from anon_spark.families.mst.kernels.losses import (
    LARGE,
    Changing,
    Tuples,
    ascending,
    closest,
    members_of,
    put_in,
    take_out,
    weight_with_tuple,
    weight_without,
)
from anon_spark.kernels.classes import EMPTY, Ints

DISSOLVED_BELOW = 3  # rows of a class that may dissolve, in multiples of `unit`
MOST_ROWS = 20  # of a class that takes in tuples, in multiples of `unit`


@compiled
def improve(levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, k: int, passes: int) -> None:
    """Dissolve and move until nothing changes, at most `passes` times."""
    for _ in range(passes):
        size = unit(tuples, classes, k)
        changed = dissolve_classes(levels, weights, tuples, classes, k, size)
        changed |= move_tuples(levels, weights, tuples, classes, k, size)
        if not changed:
            return


@inner
def unit(tuples: Tuples, classes: Changing, k: int) -> int:
    """What sizes of classes are measured in: k, or the mean size where models make classes larger."""
    if not has_models(tuples.counts):
        return k
    return max(k, int(classes.size.sum() // max(1, (classes.size > 0).sum())))


@inner
def move_tuples(levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, k: int, size: int) -> bool:
    """Move each tuple to the class where the loss falls most, if its own class can do without it. Whether any moved."""
    moved = False
    for member in range(tuples.rows.size):
        own = classes.class_of[member]
        left = classes.size[own] - tuples.rows[member]
        if left < k or classes.weight[own] == 0:
            continue
        before = classes.size[own] * classes.weight[own]
        gain = before - left * weight_without(levels, weights, tuples, classes, own, member)
        if gain <= 0 or not keeps_models(tuples, classes, own, member, EMPTY):
            continue
        into, _ = place_for(levels, weights, tuples, classes, member, own, gain, MOST_ROWS * size, k)
        if into != EMPTY and diverse_without(tuples, classes, own, member):
            take_out(levels, weights, tuples, classes, member)
            put_in(levels, weights, tuples, classes, member, into)
            moved = True
    return moved


@inner
def dissolve_classes(levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, k: int, size: int) -> bool:
    """Dissolve classes of fewer than three times `size` rows, greatest loss first, where the loss falls. Whether any was."""
    changed = False
    for number in ascending(-(classes.size * classes.weight)):
        loss = classes.size[number] * classes.weight[number]
        if loss > 0 and classes.size[number] < DISSOLVED_BELOW * size:
            changed |= dissolve(levels, weights, tuples, classes, number, loss, MOST_ROWS * size, k)
    return changed


@inner
def dissolve(
    levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, number: int, most: int, most_rows: int, k: int
) -> bool:
    """Let every tuple of a class join the one that grows least, if all together grow by less than `most`, each to `most_rows`."""
    members = members_of(classes, number)
    count, done, growth = members.size, 0, 0
    into = np.empty(count, dtype=np.int32)
    level = np.empty((count, classes.level.shape[1]), dtype=np.int32)  # of the class joined, before
    weight = np.empty(count, dtype=np.int64)
    while done < count:
        other, grown = place_for(levels, weights, tuples, classes, members[done], number, most - growth, most_rows, k)
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


@inner
def place_for(
    levels: Levels,
    weights: Ints,
    tuples: Tuples,
    classes: Changing,
    member: int,
    but: int,
    least: int,
    most_rows: int,
    k: int,
) -> tuple[int, int]:
    """As `closest`, of the classes that keep the models with the tuple, or have fewer than k rows: they are repaired anyway."""
    best, growth = closest(levels, weights, tuples, classes, member, but, least, most_rows)
    nobody = EMPTY
    if best == EMPTY or classes.size[best] < k or keeps_models(tuples, classes, best, nobody, member):
        return best, growth
    rows, best = tuples.rows[member], EMPTY
    for number in range(classes.used[0]):
        size, weight = classes.size[number], classes.weight[number]
        if number == but or size == 0 or size + rows > most_rows or rows * weight >= least:
            continue
        level, leaf = classes.level[number], classes.leaf[number]
        grown = weight_with_tuple(levels, weights, level, leaf, weight, tuples.leaf[member], LARGE)
        growth = (size + rows) * grown - size * weight
        if growth < least and (size < k or keeps_models(tuples, classes, number, nobody, member)):
            best, least = number, growth
    return best, least
