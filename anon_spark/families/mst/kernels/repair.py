"""Repair of classes that are too small, not diverse enough, or fail a model (parts of decisions M-13 and M-14)."""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.families.mst.kernels.counts import Counts, add_rows, count_in, has_models
from anon_spark.families.mst.kernels.distances import Levels
from anon_spark.families.mst.kernels.diversity import add_values, is_diverse
from anon_spark.families.mst.kernels.keeping import (
    adds_value,
    diverse_without,
    gathered_values,
    is_class,
    keeps_models,
    lack_together,
    taken_lack,
)
from anon_spark.families.mst.kernels.local_search import MOST_ROWS, dissolve
from anon_spark.families.mst.kernels.losses import (
    LARGE,
    Changing,
    Tuples,
    ascending,
    climb,
    members_of,
    put_in,
    settle,
    take_out,
    weight_with,
    weight_with_tuple,
    weight_without,
)
from anon_spark.kernels.arrays import write
from anon_spark.kernels.classes import EMPTY, Codes, Ints
from anon_spark.kernels.histograms import Floats

MOST_LENT = 3  # rows that a class takes because of a model, in multiples of k


@compiled
def repair(levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, k: int) -> None:
    """Make all classes large and diverse enough, smallest first: one borrows tuples or dissolves, whichever costs less.

    Classes that fail a model are joined at the end.
    """
    for number in ascending(classes.size):
        if classes.size[number] == 0 or is_class(tuples, classes, number, k):
            continue
        cost, lent = borrowed(levels, weights, tuples, classes, number, k)
        loss = classes.size[number] * classes.weight[number]
        if dissolve(levels, weights, tuples, classes, number, min(LARGE, loss + cost), MOST_ROWS * k, k):
            continue
        if cost == LARGE:
            dissolve(levels, weights, tuples, classes, number, LARGE, LARGE, k)
        else:
            for member in lent:
                take_out(levels, weights, tuples, classes, member)
                put_in(levels, weights, tuples, classes, member, number)
    if has_models(tuples.counts):
        join_failing(levels, weights, tuples, classes, k)


@inner
def borrowed(
    levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, number: int, k: int
) -> tuple[int, Codes]:
    """What it costs that a class takes tuples, each where the loss grows least, until it is large and diverse enough.

    With models, each where the loss grows least for what is made good of the lack. A class lends once. Nothing is changed.
    Returns the growth and the tuples lent; LARGE if it cannot be.
    """
    lent, lenders, cost = np.zeros(0, dtype=np.int32), np.zeros(classes.size.size, dtype=np.bool_), 0
    level, leaf = classes.level[number].copy(), classes.leaf[number]
    size, weight = classes.size[number], classes.weight[number]
    gathered, counted = gathered_values(tuples, classes, number), rows_of_values(tuples, classes, number)
    missing = lack_above(tuples.counts, counted, EMPTY)
    kinds = tuples.counts.kind.max() + 1 if has_models(tuples.counts) else 0
    while size < k or not is_diverse(gathered) or missing > 0:
        best, least, best_weight, best_growth = EMPTY, LARGE, 0, 0
        parts = np.full(kinds, np.nan)  # of the lack, that a tuple of each kind makes good
        if missing > 0 and size - classes.size[number] > MOST_LENT * k:
            return LARGE, lent
        for member in range(tuples.rows.size):
            own, rows = classes.class_of[member], tuples.rows[member]
            if own == number or classes.size[own] - rows < k or lenders[own]:
                continue
            if size >= k and missing == 0 and not adds_value(gathered, tuples.values[member]):
                continue
            part = 1.0
            if missing > 0:
                kind = tuples.counts.kind[member]
                if np.isnan(parts[kind]):
                    parts[kind] = 1 - lack_above(tuples.counts, counted, member) / missing
                part = parts[kind]
                if part <= 0:
                    continue
            grown = weight_with_tuple(levels, weights, level, leaf, weight, tuples.leaf[member], LARGE)
            growth = (size + rows) * grown - size * weight - classes.size[own] * classes.weight[own]
            if price_of(growth, part) >= least:  # no class has a loss below 0
                continue
            growth += (classes.size[own] - rows) * weight_without(levels, weights, tuples, classes, own, member)
            price = price_of(growth, part)
            if price < least and lends(tuples, classes, own, member):
                best, least, best_weight, best_growth = member, price, grown, growth
        if best == EMPTY:
            return LARGE, lent
        cost += best_growth
        lent = np.append(lent, np.int32(best))
        lenders[classes.class_of[best]] = True
        size, weight = size + tuples.rows[best], best_weight
        climb(levels, level, leaf, tuples.leaf[best])
        for column in range(gathered.shape[0]):
            add_values(gathered[column], tuples.values[best, column])
        missing = lack_above(tuples.counts, counted, best)
        add_rows(tuples.counts, best, counted)
    return cost, lent


@inner
def price_of(growth: int, part: float) -> int:
    """The growth for the whole of a lack, of which a part costs so much."""
    return int(min(LARGE / 1.0, growth / part)) if growth > 0 and part < 1 else growth


@inner
def lends(tuples: Tuples, classes: Changing, own: int, member: int) -> bool:
    """Whether a class can do without one of its tuples."""
    return diverse_without(tuples, classes, own, member) and keeps_models(tuples, classes, own, member, EMPTY)


@inner
def rows_of_values(tuples: Tuples, classes: Changing, number: int) -> Ints:
    """Rows of each sensitive value in a class, in the numbering of `room`."""
    counted, member = np.zeros_like(tuples.counts.room), classes.head[number]
    while member != EMPTY:
        add_rows(tuples.counts, member, counted)
        member = classes.next_of[member]
    return counted


@inner
def lack_above(counts: Counts, counted: Ints, more: int) -> float:
    """What so many rows of each value, with those of one tuple more unless EMPTY, lack of the models; 0 if nothing."""
    write(counted, counts.room)
    if more != EMPTY:
        count_in(counts, more)
    return taken_lack(counts)


# --- joining ----------------------------------------------------------------------------------------------------------------


@compiled
def join_failing(levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, k: int) -> None:
    """Let every class that fails join another one, smallest first, until all hold or one is left (decision M-14).

    Guarantee: if all tuples together hold, every class does. Cost: a class that fails is compared with every other.
    """
    missing = np.zeros(classes.used[0])
    for number in range(missing.size):
        if classes.size[number] > 0:
            missing[number] = lack_together(tuples, classes, number, number, k)
    while True:
        failing = smallest_failing(classes, missing)
        if failing == EMPTY:
            return
        other = partner(levels, weights, tuples, classes, failing, missing[failing], k)
        if other == EMPTY:
            return
        for member in members_of(classes, failing):
            classes.class_of[member] = other
            classes.next_of[member] = classes.head[other]
            classes.head[other] = member
        classes.head[failing] = EMPTY
        classes.size[failing] = classes.weight[failing] = 0
        settle(levels, weights, tuples, classes, other)
        missing[failing], missing[other] = 0, lack_together(tuples, classes, other, other, k)


@inner
def smallest_failing(classes: Changing, missing: Floats) -> int:
    """The smallest class that lacks something; EMPTY if none does."""
    smallest, least = EMPTY, LARGE
    for number in range(missing.size):
        if missing[number] > 0 and classes.size[number] < least:
            smallest, least = number, classes.size[number]
    return smallest


@inner
def partner(
    levels: Levels, weights: Ints, tuples: Tuples, classes: Changing, number: int, missing: float, k: int
) -> int:
    """The class that a failing one joins: the least growth of the loss for what it lacks, EMPTY if there is no other.

    A join that makes good a part of the lack counts with its growth over that part: so the whole of it costs, if the next joins
    are like it. Where no join helps, the one that leaves least lacking, then the one that grows least.
    """
    best, least = EMPTY, np.inf
    fallback, fallback_lack, fallback_growth = EMPTY, np.inf, LARGE
    size, loss = classes.size[number], classes.size[number] * classes.weight[number]
    for other in range(classes.used[0]):
        rows = classes.size[other]
        if other == number or rows == 0:
            continue
        joined = weight_with(
            levels, weights, classes.level[number], classes.leaf[number], classes.level[other], classes.leaf[other]
        )
        growth = (size + rows) * joined - loss - rows * classes.weight[other]
        if growth >= least:
            continue
        left = lack_together(tuples, classes, number, other, k)
        if left < missing and growth / (1 - left / missing) < least:
            best, least = other, growth / (1 - left / missing)
        if (left, growth) < (fallback_lack, fallback_growth):
            fallback, fallback_lack, fallback_growth = other, left, growth
    return best if best != EMPTY else fallback
