"""Level tables made from the values of a column: by common beginnings, by order, by frequency. A person edits them afterwards.

A label may be published. So no label contains a whole value that its group hides: groups are named by a few first letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy.coding import ROOT
from anon_spark.model.hierarchy.values import canonical_number

Rows = list[tuple[str, ...]]
RARE = ("(rare)", "(uncommon)", "(less common)")
"""Labels of the values that are too rare on each level; each level needs its own, because its group is larger."""
MORE = "…"


def prefix_rows(values: Iterable[str], lengths: Sequence[int]) -> Rows:
    """value; its first `lengths[0]` characters; fewer on each level; *. A value that is shorter stands for itself."""
    _require_steps("lengths", [-length for length in lengths], divisible=False)
    return [
        (value, *(value if len(value) <= length else value[:length] + MORE for length in lengths), ROOT)
        for value in _distinct(values)
    ]


def order_rows(values: Iterable[str], sizes: Sequence[int]) -> Rows:
    """value; groups of `sizes[0]` neighbours in the order of their letters; larger groups on each level; *.

    sizes: each a multiple of the one before. Numbers are refused: `intervals` orders them.
    """
    _require_steps("sizes", sizes, divisible=True)
    ordered = _distinct(values)
    if all(canonical_number(value) is not None for value in ordered):
        raise HierarchyError("by_order: all values are numbers, which letters do not order. Use intervals.")
    columns: list[list[str]] = [ordered]
    for size in sizes:
        groups = [ordered[start : start + size] for start in range(0, len(ordered), size)]
        columns.append([name for group, name in zip(groups, _names(groups), strict=True) for _ in group])
    return [(*row, ROOT) for row in zip(*columns, strict=True)]


def frequency_rows(counts: Mapping[str, int], least: Sequence[int]) -> Rows:
    """value; itself if at least `least[0]` rows have it, else (rare); more rows are asked for on each level; *."""
    _require_steps("least", least, divisible=False)
    if len(least) > len(RARE):
        raise HierarchyError(f"by_frequency: at most {len(RARE)} levels. Leave some of the thresholds out.")
    return [
        (value, *(value if rows >= enough else rare for enough, rare in zip(least, RARE, strict=False)), ROOT)
        for value, rows in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    ]


def _distinct(values: Iterable[str]) -> list[str]:
    distinct = sorted(set(values))
    if not distinct:
        raise HierarchyError("There are no values to build a hierarchy from.", values=0)
    return distinct


def _names(groups: Sequence[Sequence[str]]) -> list[str]:
    """A name for each group of neighbours: the letters with which it begins and ends, just as many as tell it from the next."""
    if len(groups) == 1:
        return [ROOT]
    starts = ["", *(_apart(before[-1], after[0]) for before, after in pairwise(groups))]
    stops = [*(_apart(after[0], before[-1]) for before, after in pairwise(groups)), ""]
    return [f"{start}{MORE}–{stop}{MORE}" for start, stop in zip(starts, stops, strict=True)]


def _apart(other: str, value: str) -> str:
    """The shortest beginning of a value that the other does not begin with."""
    length = next((at for at in range(1, len(value) + 1) if not other.startswith(value[:at])), len(value))
    return value[:length]


def _require_steps(name: str, steps: Sequence[int], divisible: bool) -> None:
    """Refuse steps that do not grow from level to level, or (divisible) of which one is no multiple of the one before."""
    whole = all(isinstance(step, int) and not isinstance(step, bool) for step in steps)
    if not steps or not whole or any(above <= below for below, above in pairwise(steps)):
        raise HierarchyError(f"{name}: give whole numbers, one per level, from the finest level to the coarsest.")
    if (steps[-1] > -1) if name == "lengths" else (steps[0] < 1):
        raise HierarchyError(f"{name}: give whole numbers of at least 1.")
    if divisible and any(above % below for below, above in pairwise(steps)):
        raise HierarchyError(f"{name}: each must be a multiple of the one before, else groups overlap.")
