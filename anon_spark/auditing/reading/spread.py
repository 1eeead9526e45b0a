"""The spread of a sensitive column in classes of rows, measured: counts are integers, and so is every measure that can be.

A class of n rows has c_s rows with the value s; p_s = c_s / n. The whole table has N rows, Q_s of them with s; q_s = Q_s / N.
Values are numbers 0 … m − 1, in ascending order of the values where that matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Exact = npt.NDArray[Any]  # int64 where that is wide enough, else Python's integers

UNKNOWN = -1  # in place of the number of a value: no row of the whole table has it

_CELLS = 1 << 20  # of a dense part
_WIDE = 1 << 62


@dataclass(frozen=True)
class Whole:
    """The spread in the whole table: counts[s] = Q_s."""

    counts: Ints

    @cached_property
    def rows(self) -> int:
        return int(self.counts.sum())

    @property
    def values(self) -> int:
        """m: how many distinct values there are."""
        return int(self.counts.size)


@dataclass(frozen=True)
class Histograms:
    """The spread in some classes: class i has the entries offsets[i] to offsets[i + 1], a value and its rows each.

    Every class has an entry. Entries of a class are ascending by value, each value once; UNKNOWN is one value.
    """

    offsets: Ints
    values: Ints
    counts: Ints

    @classmethod
    def of(cls, offsets: Ints, values: Ints, counts: Ints) -> Histograms:
        """From entries in any order, values perhaps several times; UNKNOWN values of a class become one: no doubt in favour."""
        size, width = offsets.size - 1, int(values.max(initial=0)) + 2
        places = np.repeat(np.arange(size), np.diff(offsets)) * width + values - UNKNOWN
        order = np.argsort(places, kind="stable")
        merged, first = np.unique(places[order], return_index=True)
        sums = np.add.reduceat(counts[order], first) if first.size else counts
        return cls(np.searchsorted(merged, np.arange(size + 1) * width), merged % width + UNKNOWN, sums)

    @cached_property
    def rows(self) -> Ints:
        """n of each class."""
        return self.sums(self.counts)

    @cached_property
    def owners(self) -> Ints:
        """The class of each entry."""
        return np.repeat(np.arange(self.size), np.diff(self.offsets))

    @property
    def size(self) -> int:
        """How many classes there are."""
        return int(self.offsets.size) - 1

    @cached_property
    def foreign(self) -> npt.NDArray[np.bool_]:
        """Whether a class has a value that no row of the whole table has."""
        return np.asarray(np.minimum.reduceat(self.values, self.offsets[:-1]) == UNKNOWN)

    def sums(self, entries: Exact) -> Exact:
        """A sum over the entries of each class."""
        sums: Exact = np.add.reduceat(entries, self.offsets[:-1])
        return sums

    def parts(self, width: int) -> Iterator[Histograms]:
        """The same classes, in parts that are small also as a table with so many columns."""
        step = max(1, _CELLS // max(1, width))
        for start in range(0, self.size, step):
            offsets = self.offsets[start : start + step + 1]
            entries = slice(int(offsets[0]), int(offsets[-1]))
            yield Histograms(offsets - offsets[0], self.values[entries], self.counts[entries])

    def table(self, columns: Ints, width: int, kind: type) -> Exact:
        """Rows by class and column. columns: of each entry."""
        table: Exact = np.zeros((self.size, width), dtype=kind)
        np.add.at(table, (self.owners, columns), self.counts.astype(kind))
        return table


# -- diversity --------------------------------------------------------------------------------------------------------


def distinct(classes: Histograms) -> Ints:
    """How many values each class has."""
    return np.diff(classes.offsets)


def entropy(classes: Histograms) -> Floats:
    """exp(−Σ p ln p) of each class: as many equally frequent values are as uncertain."""
    shares = classes.counts / classes.rows[classes.owners]
    return np.asarray(np.exp(-classes.sums(shares * np.log(shares))))


def recursive(classes: Histograms, l: int) -> tuple[Ints, Ints]:  # noqa: E741 - the papers' name
    """Counts descending r_1 ≥ r_2 ≥ …: r_1 and r_l + r_{l+1} + … of each class; the latter is 0 with fewer than l values."""
    descending = classes.counts[np.lexsort((-classes.counts, classes.owners))]
    rank = np.arange(descending.size) - classes.offsets[:-1][classes.owners]
    return descending[classes.offsets[:-1]], classes.sums(np.where(rank >= l - 1, descending, 0))


# -- distance from the whole table: numerator and denominator of each class, which has no foreign values -------------------


def equal_distance(classes: Histograms, whole: Whole) -> tuple[Exact, Exact]:
    """½ Σ |p − q|, which is the sum of p − q over values with p > q."""
    kind = _wide_enough(classes, whole, 1)
    rows: Exact = classes.rows.astype(kind)
    there: Exact = whole.counts.astype(kind)
    gains = classes.counts.astype(kind) * whole.rows - there[classes.values] * rows[classes.owners]
    return classes.sums(np.maximum(gains, 0)), rows * whole.rows


def ordered_distance(classes: Histograms, whole: Whole) -> tuple[Exact, Exact]:
    """The mean of |Σ_{j≤i} (p_j − q_j)| over i < m; 0 if there is one value."""
    steps = whole.values - 1
    kind = _wide_enough(classes, whole, steps + 1)
    rows: Exact = classes.rows.astype(kind)
    if not steps:
        return np.zeros(classes.size, dtype=kind), rows * whole.rows
    so_far = np.cumsum(classes.table(classes.values, whole.values, kind), axis=1)[:, :-1]
    apart = so_far * whole.rows - np.cumsum(whole.counts.astype(kind))[:-1] * rows[:, None]
    return np.abs(apart).sum(axis=1), rows * whole.rows * steps


def level_distance(classes: Histograms, whole: Whole, levels: Ints) -> tuple[Exact, Exact]:
    """Earth mover's distance, if two values are as far apart as the lowest level that joins them is high, over the height.

    levels[i, s]: what stands for s on level i, for all levels below the top. All leaves are equally deep, so the steps of a
    tree have the length 1/(2H) each, and the distance is the sum over all steps of what must pass: the mean over the levels of
    the equal distance there.
    """
    height = len(levels)
    kind = _wide_enough(classes, whole, height + 1)
    rows: Exact = classes.rows.astype(kind)
    total: Exact = np.zeros(classes.size, dtype=kind)
    for labels in levels:
        width = int(labels.max(initial=0)) + 1
        there: Exact = np.zeros(width, dtype=kind)
        np.add.at(there, labels, whole.counts.astype(kind))
        gains = classes.table(labels[classes.values], width, kind) * whole.rows - there * rows[:, None]
        total = total + np.maximum(gains, 0).sum(axis=1)
    return total, rows * whole.rows * max(1, height)


def likeness(classes: Histograms, whole: Whole) -> Floats:
    """p / q of each entry; infinite for UNKNOWN."""
    ratios = np.full(classes.values.size, np.inf)
    known = classes.values != UNKNOWN
    rows = classes.rows[classes.owners[known]]
    ratios[known] = classes.counts[known] / whole.counts[classes.values[known]] * (whole.rows / rows)
    return ratios


def _wide_enough(classes: Histograms, whole: Whole, times: int) -> type:
    return np.int64 if int(classes.rows.max(initial=0)) * whole.rows * times < _WIDE else object
