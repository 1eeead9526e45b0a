"""Mondrian (LeFevre, DeWitt and Ramakrishnan, ICDE 2006): sets of rows are cut at the median of one attribute.

The attribute with the widest range is cut; a range counts as a share of the attribute's domain. Values are ordered as the
leaves of the hierarchy, so the values below a node are neighbours.

Departures: a strict cut may also lie just before the median, if the sides are more equal then. A relaxed cut divides equal
values only where a side would have fewer than k rows. Halves of the same size, as in the paper, lose far more on attributes
of few values, because they spread such a value over many sets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon_spark.families.mst.kernels.distances import Levels, in_runs
from anon_spark.kernels.classes import Codes, Ints
from jobs.baselines.scoring import check_rows


def strict_mondrian(levels: Levels, leaf: Codes, k: int) -> Codes:
    """The class of each row. Rows with equal values of the attribute that is cut stay on one side."""
    return _mondrian(levels, leaf, k, strict=True)


def relaxed_mondrian(levels: Levels, leaf: Codes, k: int) -> Codes:
    """The class of each row. Rows with equal values may go to both sides."""
    return _mondrian(levels, leaf, k, strict=False)


def _mondrian(levels: Levels, leaf: Codes, k: int, strict: bool) -> Codes:
    check_rows(leaf, k)
    values = in_runs(levels).place[leaf + levels.offsets]  # the position of each value in the order of its hierarchy
    class_of = np.empty(len(leaf), dtype=np.int32)
    uncut, classes = [np.arange(len(leaf))], 0
    while uncut:
        members = uncut.pop()
        first = _cut(values[members], levels.leaves, k, strict)
        if first is None:
            class_of[members] = classes
            classes += 1
        else:
            uncut += [members[~first], members[first]]
    return class_of


def _cut(values: Codes, leaves: Ints, k: int, strict: bool) -> NDArray[np.bool_] | None:
    """Which rows go to the first side; None if no attribute has a cut with k rows on both sides."""
    if len(values) < 2 * k:
        return None
    ranges = np.ptp(values, axis=0) / np.maximum(leaves - 1, 1)
    for attribute in np.argsort(-ranges, kind="stable"):  # the first of equally wide ones
        if ranges[attribute] == 0:
            return None
        order = np.argsort(values[:, attribute], kind="stable")
        size = _rows_before_cut(values[order, attribute])
        if not strict:
            size = min(max(size, k), order.size - k)
        if k <= size <= order.size - k:
            first = np.zeros(order.size, dtype=np.bool_)
            first[order[:size]] = True
            return first
    return None


def _rows_before_cut(ordered: Codes) -> int:
    """How many of the ordered values lie before the cut: before or after the median, whichever makes the sides more equal."""
    half = ordered.size // 2
    before, after = np.searchsorted(ordered, ordered[half], "left"), np.searchsorted(ordered, ordered[half], "right")
    return int(before if half - before < after - half else after)
