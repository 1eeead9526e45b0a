"""Refinement of a partition: neighbourhoods of classes are partitioned anew, with local search in between (decision M-13)."""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.families.mst.kernels.counts import has_models
from anon_spark.families.mst.kernels.distances import Levels
from anon_spark.families.mst.kernels.local_search import improve, unit
from anon_spark.families.mst.kernels.losses import (
    LARGE,
    Changing,
    Tuples,
    ascending,
    classes_from,
    members_of,
    settle,
    taken,
    total_loss,
    weight_with,
)
from anon_spark.families.mst.kernels.repair import join_failing, repair
from anon_spark.families.mst.kernels.top_down import FILLED, LOOSE, top_down
from anon_spark.kernels.classes import EMPTY, Codes, Ints

PASSES = 6
NEIGHBOURS = 5
POOL = 24  # most rows of a neighbourhood, in multiples of `unit`
POOL_TUPLES = 2_000  # most tuples of a neighbourhood: what it costs grows with their square
MOST_JOINED = 5_000  # classes that are compared with each other


def refined(
    levels: Levels, weights: Ints, tuples: Tuples, class_of: Codes, count: int, k: int, sweeps: int, visits: int
) -> Codes:
    """The class of each tuple after the classes 0 to count - 1, of k rows each, are made diverse and then refined.

    Without sweeps they are only made diverse. Guarantee: every class has k rows and l values and keeps the models, if all tuples
    together do. Cost: a pass of the local search compares each tuple with each class; a sweep partitions so many neighbourhoods
    that each class with a loss is in `visits` of them, or is the first of one.
    """
    room = max(count, min(tuples.rows.size, int(tuples.rows.sum()) // k))
    classes = classes_from(levels, weights, tuples, class_of, count, room)
    if has_models(tuples.counts):
        classes = made_to_keep(levels, weights, tuples, classes, k, sweeps)
    else:
        repair(levels, weights, tuples, classes, k)
    for sweep in range(sweeps):
        if sweep > 0 and sweep % 2 == 0:  # after the first two sweeps it costs less and finds more than before them
            improve(levels, weights, tuples, classes, k, 1)
        repartition(levels, weights, tuples, classes, k, LOOSE if sweep % 2 == 0 else FILLED, visits)
    return classes.class_of


def made_to_keep(
    levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, k: int, sweeps: int
) -> Changing:
    """Classes that keep the models: those given, joined (decision M-14) or repaired, or one of two partitions from the top.

    The one of least loss. Without sweeps they are only joined; more than MOST_JOINED are partitioned from the top.
    """
    count, room = int(classes.used[0]), classes.size.size
    starts = [top_down(levels, weights, tuples, k, FILLED)] if sweeps > 0 or count > MOST_JOINED else []
    if count <= MOST_JOINED:
        joined = classes_from(levels, weights, tuples, classes.class_of, count, count)
        join_failing(levels, weights, tuples, joined, k)
        starts.append(joined)
        if sweeps > 0:
            repair(levels, weights, tuples, classes, k)
            starts += [classes, top_down(levels, weights, tuples, k, LOOSE)]
    numbers, class_of = np.unique(min(starts, key=total_loss).class_of, return_inverse=True)  # without the empty ones
    return classes_from(levels, weights, tuples, class_of.astype(np.int32), int(numbers.size), room)


@compiled
def repartition(
    levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, k: int, way: int, visits: int
) -> None:
    """Partition neighbourhoods of classes anew, greatest loss first, where the loss falls.

    A class that was in `visits` neighbourhoods already has none of its own: most of what it could gain was tried.
    """
    visited, size = np.zeros(classes.size.size, dtype=np.int64), unit(tuples, classes, k)
    for number in ascending(-(classes.size * classes.weight)):
        if classes.size[number] * classes.weight[number] > 0 and visited[number] < visits:
            pool = neighbourhood(levels, weights, classes, number, POOL * size)
            for member in pool:
                visited[member] += 1
            if pool.size > 0:
                anew(levels, weights, tuples, classes, pool, k, way)


@inner
def neighbourhood(levels: Levels, weights: Ints, classes: Changing, number: int, most_rows: int) -> Codes:
    """A class and those near to it: whose loss grows least if joined, up to so many rows, and POOL_TUPLES tuples.

    Empty if the class has more tuples by itself.
    """
    near, growths = np.full(NEIGHBOURS, EMPTY, dtype=np.int32), np.full(NEIGHBOURS, LARGE, dtype=np.int64)
    size, weight = classes.size[number], classes.weight[number]
    for other in range(classes.used[0]):
        rows, own = classes.size[other], classes.size[other] * classes.weight[other]
        if other == number or rows == 0 or size + rows > most_rows:
            continue
        if (size + rows) * max(weight, classes.weight[other]) - size * weight - own >= growths[-1]:
            continue
        joined = weight_with(
            levels, weights, classes.level[number], classes.leaf[number], classes.level[other], classes.leaf[other]
        )
        growth = (size + rows) * joined - size * weight - own
        if growth < growths[-1]:
            place = NEIGHBOURS - 1
            while place > 0 and growths[place - 1] > growth:
                growths[place], near[place] = growths[place - 1], near[place - 1]
                place -= 1
            growths[place], near[place] = growth, other
    pool, count, rows, tuples = np.empty(NEIGHBOURS + 1, dtype=np.int32), 1, size, members_of(classes, number).size
    pool[0] = number
    if tuples > POOL_TUPLES:
        return pool[:0]
    for close in near:
        if close != EMPTY and rows + classes.size[close] <= most_rows:
            more = members_of(classes, int(close)).size
            if tuples + more <= POOL_TUPLES:
                pool[count] = close
                count += 1
                rows += classes.size[close]
                tuples += more
    return pool[:count]


@inner
def anew(levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, pool: Codes, k: int, way: int) -> None:
    """Partition the tuples of some classes anew, if the loss falls; free numbers are given first."""
    before, members = 0, np.empty(0, dtype=np.int32)
    for number in pool:
        before += classes.size[number] * classes.weight[number]
        members = np.append(members, members_of(classes, number))
    members.sort()
    inner = taken(tuples, members)
    better = top_down(levels, weights, inner, k, way)
    improve(levels, weights, inner, better, k, PASSES)
    if total_loss(better) >= before:
        return
    for number in pool:
        classes.head[number] = EMPTY
        classes.size[number] = classes.weight[number] = 0
    free = 0
    for other in range(better.size.size):
        if better.size[other] == 0:
            continue
        while free < classes.used[0] and classes.size[free] > 0:
            free += 1
        classes.used[0] = max(classes.used[0], free + 1)
        for member in members_of(better, other):
            whole = members[member]
            classes.class_of[whole] = free
            classes.next_of[whole] = classes.head[free]
            classes.head[free] = whole
        settle(levels, weights, tuples, classes, free)
