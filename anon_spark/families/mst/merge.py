"""Merging classes below k: exactly greedy for few, in rounds of mutual nearest neighbours for many (decision M-9)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.mst.kernels.distances import Levels, generality, in_runs
from anon_spark.families.mst.kernels.merging import (
    greedy,
    merge_into,
    merge_pairs,
    mutual_pairs,
    nearest_class,
)
from anon_spark.families.mst.kernels.neighbours import Classes, neighbours, plan
from anon_spark.families.mst.kernels.spanning import walk
from anon_spark.kernels.classes import Codes, Ints

WHOLE_TABLE_TOO_SMALL = "The whole table is one class that is too small. Lower k or l."


class Merged(NamedTuple):
    """The merged small classes: the new classes, the new class of each small one, and a leftover."""

    classes: Classes
    number: Codes
    leftover: int | None  # the number of a class that is still too small
    rounds: int | None


def merge_greedy(small: Classes, levels: Levels, k: int) -> Merged:
    """Greedy merging: always the closest pair. Cost: quadratic in the number of classes."""
    work = small.take(np.arange(small.size.size))
    owner, left = greedy(levels, *work, generality(levels, work.level), k)
    root = followed(owner)
    heads, number = np.unique(root, return_inverse=True)
    leftover = int(np.searchsorted(heads, left)) if left >= 0 else None
    return Merged(work.take(heads.astype(np.int64)), number.astype(np.int32), leftover, None)


def merge_in_rounds(small: Classes, levels: Levels, k: int) -> Merged:
    """Merging in rounds: each merges all mutual nearest neighbours; classes that are large enough leave.

    Cost: per round one search for the neighbours of all classes that are left.
    """
    levels, place, leaf = in_runs(levels)
    work = small.take(np.arange(small.size.size))._replace(leaf=place[levels.offsets + small.leaf])
    owner = np.arange(small.size.size, dtype=np.int32)
    nodes = plan(walk(tuple(levels.heights.tolist()), levels.units), levels)
    active = np.arange(owner.size)
    rounds = 0
    while active.size >= 2:
        rounds += 1
        current = work.take(active)
        near = neighbours(current, levels, nodes, np.arange(active.size))
        left, right = (active[part] for part in mutual_pairs(current, levels, nodes, near))
        merge_pairs(levels, *work, left, right)
        owner[right] = left
        stays = np.ones(owner.size, dtype=bool)
        stays[right] = stays[left[work.size[left] >= k]] = False
        active = active[stays[active]]
    heads, number = np.unique(followed(owner), return_inverse=True)
    leftover = int(np.searchsorted(heads, active[0])) if active.size else None
    classes = work.take(heads.astype(np.int64))
    original = leaf[levels.offsets + classes.leaf]
    return Merged(classes._replace(leaf=original), number.astype(np.int32), leftover, rounds)


def take_leftover(kept: Classes, merged: Merged, levels: Levels) -> tuple[Classes, Codes]:
    """All classes with a leftover joined to the closest, and the class of each kept and each small class among them."""
    count = kept.size.size
    classes = kept + merged.classes
    number = np.concatenate([np.arange(count, dtype=np.int32), merged.number + np.int32(count)])
    if merged.leftover is None:
        return classes, number
    last = merged.leftover + count
    others = np.delete(np.arange(classes.size.size), last)
    if not others.size:
        raise GuaranteeUnreachable(WHOLE_TABLE_TOO_SMALL, classes=0)
    home = nearest_class(levels, *classes[:4], generality(levels, classes.level), last, others)
    merge_into(levels, *classes, home, last)
    number[number == last] = home
    number[number > last] -= 1
    return classes.take(others), number


def ended_in(ident: Ints, into: Ints) -> Codes:
    """The place of the class that each class ended in. ident: ascending; into: the class that each one went into, or itself.

    Raises ValueError where a class went into one that is not there.
    """
    owner = np.searchsorted(ident, into).astype(np.int32)
    if (owner >= ident.size).any() or (ident[owner] != into).any():
        raise ValueError("a class went into one that is not there")
    return followed(owner)


def followed(owner: Codes) -> Codes:
    """The last owner of each class."""
    while True:
        above = owner[owner]
        if np.array_equal(above, owner):
            return owner
        owner = above
