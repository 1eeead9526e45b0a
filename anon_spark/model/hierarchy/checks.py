"""Checks that a table of labels is a hierarchy, and their messages.

Messages give counts and line numbers, never a label, because the labels of level 0 are values of records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from anon_spark.errors import HierarchyError


def shortened(numbers: Iterable[int], most: int = 5) -> str:
    """'3, 7, 9' or '3, 7, 9, 12, 15 and 20 more', for messages that say where."""
    ordered = sorted(set(numbers))
    shown = ", ".join(str(number) for number in ordered[:most])
    return shown if len(ordered) <= most else f"{shown} and {len(ordered) - most} more"


def check_nested(codes: npt.NDArray[np.int32], lines: Sequence[int]) -> None:
    """Refuse a table in which equal labels on one level have different labels on the next.

    codes: [level, leaf]; lines: where each leaf was listed. Cost: one pass over the table.
    """
    faults = []
    where: list[int] = []
    for level in range(codes.shape[0] - 1):
        below, above = codes[level], codes[level + 1]
        parent = np.zeros(int(below.max()) + 1, dtype=np.int32)
        parent[below[::-1]] = above[::-1]  # the first row that lists a label decides, later ones are compared
        wrong = np.flatnonzero(parent[below] != above)
        if wrong.size:
            labels = np.unique(below[wrong]).size
            faults.append(f"{labels} label{'s' if labels > 1 else ''} of level {level} with several parents")
            where += [lines[int(leaf)] for leaf in wrong]
    if faults:
        raise HierarchyError(
            f"Levels are not nested: {', '.join(faults)} (line {shortened(where)}). "
            "Give each label one parent, or different names to labels that mean different things.",
            conflicts=len(set(where)),
        )


def ambiguous_labels(
    codes: npt.NDArray[np.int32], labels: Sequence[Sequence[str | None]]
) -> list[tuple[int, int, int]]:
    """(level a, level b, how many labels stand for different sets of leaves there), levels ascending.

    Needs nested levels: then two nodes have the same leaves iff one is above the other and both have equally many.
    """
    sizes = [np.bincount(codes[level], minlength=len(names)) for level, names in enumerate(labels)]
    leaf_in = []  # one leaf of each node
    for level, names in enumerate(labels):
        first = np.zeros(len(names), dtype=np.int64)
        first[codes[level][::-1]] = np.arange(codes.shape[1])[::-1]
        leaf_in.append(first)
    seen: dict[str, list[tuple[int, int]]] = {}
    counts: dict[tuple[int, int], int] = {}
    for level, names in enumerate(labels):
        for code, name in enumerate(names):
            if name is None:
                continue
            earlier = seen.setdefault(name, [])
            for low, low_code in earlier:
                above = codes[level, leaf_in[low][low_code]] == code
                if not (above and sizes[low][low_code] == sizes[level][code]):
                    counts[low, level] = counts.get((low, level), 0) + 1
            earlier.append((level, code))
    return [(low, high, count) for (low, high), count in sorted(counts.items())]
