"""Hierarchical distances between coded tuples and between classes of them, in exact integers.

One level of attribute j costs `units[j]` = lcm(heights) / height of j, so that climbing any whole hierarchy costs the
same. A class is one leaf of each attribute (any member's) and the level at which all its members agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled, inner
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.tuples import Ladder


class Levels(NamedTuple):
    """All hierarchies end to end: codes[starts[j] + level · leaves[j] + leaf] is the code of a leaf on a level."""

    codes: Codes
    starts: Ints
    leaves: Ints
    offsets: Ints  # where an attribute's leaves start in tables of one entry per leaf of any attribute
    heights: Ints
    units: Ints
    common: NDArray[np.uint8]  # common[pairs[j] + leaf · leaves[j] + other]: the level on which two leaves meet
    pairs: Ints  # -1 for an attribute of so many leaves that their pairs are not listed


COMMON_LEAVES = 1_000  # pairs of leaves are listed up to here: a look-up instead of a climb


def levels_of(ladder: Ladder) -> Levels:
    """The ladder as arrays for compiled loops."""
    heights = np.array([codes.shape[0] - 1 for codes in ladder.codes], dtype=np.int64)
    sizes = np.array([codes.size for codes in ladder.codes], dtype=np.int64)
    leaves = np.array([codes.shape[1] for codes in ladder.codes], dtype=np.int64)
    return Levels(
        np.concatenate([codes.ravel() for codes in ladder.codes]).astype(np.int32),
        np.cumsum(sizes) - sizes,
        leaves,
        np.cumsum(leaves) - leaves,
        heights,
        units_of(heights.tolist()),
        *_common(ladder.codes),
    )


def _common(tables: Sequence[Codes]) -> tuple[NDArray[np.uint8], Ints]:
    """`common` and `pairs` of Levels, from the codes of each attribute (levels × leaves)."""
    found, pairs = [np.zeros(0, dtype=np.uint8)], []
    for codes in tables:
        listed = codes.shape[1] <= COMMON_LEAVES and codes.shape[0] <= np.iinfo(np.uint8).max
        pairs.append(sum(part.size for part in found) if listed else -1)
        if listed:
            apart = (row[:, None] != row for row in codes)
            found.append(sum(apart, np.zeros((codes.shape[1],) * 2, dtype=np.uint8)).ravel())
    return np.concatenate(found), np.array(pairs, dtype=np.int64)


class Runs(NamedTuple):
    """Hierarchies with renumbered leaves, so that every value of every level is a run of numbers.

    place[offset + leaf] is the new number of a leaf, leaf[offset + place] the old one.
    """

    levels: Levels
    place: Codes
    leaf: Codes


def in_runs(levels: Levels) -> Runs:
    """Number the leaves by their values from the top of the hierarchy down."""
    codes = levels.codes.copy()
    place = np.empty(int(levels.leaves.sum()), dtype=np.int32)
    leaf = np.empty_like(place)
    tables = []
    for start, width, offset, height in zip(levels.starts, levels.leaves, levels.offsets, levels.heights, strict=True):
        table = codes[start : start + width * (height + 1)].reshape(height + 1, width)
        order = np.lexsort(table)  # the last row, the top, is the first key
        table[:] = table[:, order]
        leaf[offset : offset + width] = order
        place[offset + order] = np.arange(width)
        tables.append(table)
    common, pairs = _common(tables)
    return Runs(levels._replace(codes=codes, common=common, pairs=pairs), place, leaf)


def units_of(heights: Sequence[int]) -> Ints:
    """What one level of each attribute costs: a whole hierarchy costs lcm(heights)."""
    whole = lcm(*heights)
    return np.array([whole // height for height in heights], dtype=np.int64)


@compiled
def common_level(levels: Levels, attribute: int, leaf: int, other: int, lowest: int) -> int:
    """The smallest level from `lowest` on, on which two leaves have the same code."""
    width = levels.leaves[attribute]
    if levels.pairs[attribute] >= 0:
        return max(lowest, int(levels.common[levels.pairs[attribute] + leaf * width + other]))
    at = levels.starts[attribute] + lowest * width
    level = lowest
    while levels.codes[at + leaf] != levels.codes[at + other]:
        level += 1
        at += width
    return level


@inner
def reach(levels: Levels, level: Codes, leaf: Codes) -> Codes:
    """Per leaf of any attribute: the level to which a class must climb to cover it.

    With this table distances to all other classes are look-ups: the join with a class on level l of a leaf has level
    max(reach, l).
    """
    reached = np.empty(levels.leaves.sum(), dtype=np.int32)
    for attribute in range(level.size):
        offset = levels.offsets[attribute]
        for other in range(levels.leaves[attribute]):
            reached[offset + other] = common_level(levels, attribute, leaf[attribute], other, level[attribute])
    return reached


@compiled
def generality(levels: Levels, level: Codes) -> Ints:
    """g: the cost of climbing to the levels of each class."""
    total = np.zeros(level.shape[0], dtype=np.int64)
    for position in range(level.shape[0]):
        for attribute in range(level.shape[1]):
            total[position] += levels.units[attribute] * level[position, attribute]
    return total


@compiled
def generalized(levels: Levels, codes: Codes, order: Codes, first: Ints, last: Ints) -> tuple[Codes, Codes, Ints]:
    """Per class order[first : last]: the smallest levels on which all members agree, one member's leaves, the least member."""
    count, attributes = first.size, codes.shape[0]
    level = np.zeros((count, attributes), dtype=np.int32)
    leaf = np.empty((count, attributes), dtype=np.int32)
    least = np.empty(count, dtype=np.int64)
    for number in range(count):
        head = order[first[number]]
        least[number] = head
        for attribute in range(attributes):
            leaf[number, attribute] = codes[attribute, head]
        for position in range(first[number] + 1, last[number]):
            member = order[position]
            least[number] = min(least[number], member)
            for attribute in range(attributes):
                level[number, attribute] = common_level(
                    levels, attribute, codes[attribute, head], codes[attribute, member], level[number, attribute]
                )
    return level, leaf, least
