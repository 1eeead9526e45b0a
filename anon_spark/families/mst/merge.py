"""Merging classes below k: exactly greedy for few, in rounds of mutual nearest neighbours for many (decision M-9)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.errors import DataError
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.distances import Levels, generality
from anon_spark.kernels.merging import greedy, large_enough, merge_into, merge_pairs, mutual_pairs, nearest_class
from anon_spark.kernels.neighbours import Classes, Neighbours, Plan, bound_by_order, nobody, plan, search
from anon_spark.kernels.spanning import walk


class Merged(NamedTuple):
    """What became of the small classes: the classes they form, the number of the one each is in, and a leftover."""

    classes: Classes
    number: Codes
    leftover: int | None  # the number of a class that is still too small
    rounds: int | None


def merge_greedy(small: Classes, levels: Levels, k: int) -> Merged:
    """Always the closest pair of all. Cost: quadratic in the number of classes."""
    work = small.take(np.arange(small.size.size))
    owner, left = greedy(levels, *work, generality(levels, work.level), k)
    root = followed(owner)
    heads, number = np.unique(root, return_inverse=True)
    leftover = int(np.searchsorted(heads, left)) if left >= 0 else None
    return Merged(work.take(heads.astype(np.int64)), number.astype(np.int32), leftover, None)


def merge_in_rounds(small: Classes, levels: Levels, k: int, remember: bool = True) -> Merged:
    """Per round all pairs that are each other's nearest; classes that are large enough leave.

    remember: keep the neighbours of classes whose neighbour is still there, and compare them with new classes only; the
    result is the same. Cost: per round, visited nodes × classes that can matter there.
    """
    work, owner = small.take(np.arange(small.size.size)), np.arange(small.size.size, dtype=np.int32)
    nodes = plan(walk(tuple(levels.heights.tolist()), levels.units), levels)
    active = np.arange(owner.size)
    known = nobody(owner.size)
    new = active
    rounds = 0
    while active.size >= 2:
        rounds += 1
        update_neighbours(work, levels, nodes, active, new, known)
        left, right = mutual_pairs(work.take(active), levels, nodes, known.take(active))
        left, right = active[left], active[right]
        merge_pairs(levels, *work, left, right)
        owner[right] = left
        gone = np.zeros(owner.size, dtype=bool)
        gone[left] = gone[right] = True
        done = left[large_enough(work.size[left], work.values[left], k)]
        new = np.setdiff1d(left, done)
        active = np.concatenate([active[~gone[active]], new])
        known.forget(active[gone[active] | gone[known.partner[active]]] if remember else active)
    root = followed(owner)
    heads, number = np.unique(root, return_inverse=True)
    leftover = int(np.searchsorted(heads, active[0])) if active.size else None
    return Merged(work.take(heads.astype(np.int64)), number.astype(np.int32), leftover, rounds)


def update_neighbours(
    work: Classes, levels: Levels, nodes: Plan, active: Ints, new: Ints, known: Neighbours
) -> None:
    """Exact neighbours of all active classes, given those that are still known."""
    unknown = active[known.partner[active] < 0]
    others = active[known.partner[active] >= 0]
    bound_by_order(work, levels, nodes, active, unknown, known)
    search(work, levels, nodes, unknown, active, known)
    if others.size and new.size:
        search(work, levels, nodes, others, new, known)


def take_leftover(kept: Classes, merged: Merged, levels: Levels) -> tuple[Classes, Codes]:
    """All classes, a leftover joined to the closest one, and the number of each kept and each small class among them."""
    count = kept.size.size
    classes = kept + merged.classes
    number = np.concatenate([np.arange(count, dtype=np.int32), merged.number + np.int32(count)])
    if merged.leftover is None:
        return classes, number
    last = merged.leftover + count
    others = np.delete(np.arange(classes.size.size), last)
    if not others.size:
        raise DataError("The whole table is one class that is too small. Lower k or l.", classes=0)
    home = nearest_class(levels, *classes[:4], generality(levels, classes.level), last, others)
    merge_into(levels, *classes, home, last)
    number[number == last] = home
    number[number > last] -= 1
    return classes.take(others), number


def followed(owner: Codes) -> Codes:
    """The last owner of each class."""
    while True:
        above = owner[owner]
        if np.array_equal(above, owner):
            return owner
        owner = above
