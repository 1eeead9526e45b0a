"""Level tables with one row per value, `value;g1;…;*`, from ARX files or tables."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy.checks import shortened
from anon_spark.model.hierarchy.coding import ROOT, categorical, encode
from anon_spark.model.hierarchy.table import LevelTable

Line = tuple[int, Sequence[str | None]]
Path_ = tuple[str, ...]  # value, g1, …; the root left out


def from_levels(rows: Iterable[Line]) -> LevelTable:
    """The table of numbered rows.

    Identical rows count once. The root is the label that all rows end with, '*' if it is a run of asterisks; a root '*' is
    added where they end with different ones. Ragged rows are padded. Refused, with counts and line numbers: an empty
    table, an empty label, a value with two paths, a label with two parents, '*' at the end of some rows only.
    """
    filled = [(line, row) for line, row in rows if any(_text(label) for label in row)]
    if not filled:
        raise HierarchyError("The hierarchy has no rows: give one row per value, value;g1;…;*.", rows=0)
    trimmed = [(line, _without_trailing_gaps(row)) for line, row in filled]
    gaps = [line for line, row in trimmed if not all(row)]
    if gaps:
        raise HierarchyError(
            f"{len(gaps)} row{'s' if len(gaps) > 1 else ''} with an empty label between others (line "
            f"{shortened(gaps)}). Fill the gap: repeat the label below it, or leave the column out.",
            gaps=len(gaps),
        )
    return tabulate(trimmed)


def tabulate(rows: Sequence[tuple[int, Path_]]) -> LevelTable:
    """The table of numbered rows without gaps (value first): deduplicated, padded, checked, with one root."""
    paths, root = _without_root(rows)
    first: dict[str, tuple[int, Path_]] = {}
    conflicts: list[int] = []
    values = set()
    for line, path in paths:
        known = first.setdefault(path[0], (line, path))
        if known[1] != path:
            conflicts.append(line)
            values.add(path[0])
    if conflicts:
        raise HierarchyError(
            f"{len(values)} value{'s' if len(values) > 1 else ''} listed again with different parents (line "
            f"{shortened(conflicts)}). Keep one row per value.",
            conflicts=len(values),
        )
    lines = [line for line, _ in first.values()]
    padded = pad([path for _, path in first.values()])
    columns = [*zip(*padded, strict=True), (root,) * len(padded)]
    codes, labels = encode(columns, lines)
    return categorical("text", list(first), codes, labels)


def pad(paths: Sequence[Path_]) -> Sequence[Path_]:
    """Paths of equal length, by repeating labels.

    The level of a node is the length of its longest path down to a leaf; each leaf repeats its label up to the next node
    of its path. So a short branch repeats its top label up to the root, and a short leaf in a deep branch repeats itself.
    The longest rows stay unchanged, and a label that meant one set of leaves still means only that set.
    """
    longest = max(len(path) for path in paths)
    if all(len(path) == longest for path in paths):
        return paths
    level_of: dict[Path_, int] = {}  # node, named by its path to the root → its level
    for path in paths:
        for step in range(1, len(path)):
            node = path[step:]
            level_of[node] = max(level_of.get(node, 0), step)
    # a node must stay above its descendants, which other rows may have raised: fix levels from the deepest upwards
    for node in sorted(level_of, key=len, reverse=True):
        above = node[1:]
        if above:
            level_of[above] = max(level_of[above], level_of[node] + 1)
    padded = []
    for path in paths:
        starts = [0, *(level_of[path[step:]] for step in range(1, len(path))), longest]
        padded.append(tuple(label for step, label in enumerate(path) for _ in range(starts[step], starts[step + 1])))
    return padded


def read_csv(path: Path, sep: str, header: bool) -> Iterator[Line]:
    """Numbered rows of a CSV file (UTF-8, quotes as usual, blank lines skipped)."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=sep)
            rows: list[Line] = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error, TypeError) as fault:
        reason = getattr(fault, "strerror", None) or type(fault).__name__
        raise HierarchyError(
            f"Cannot read the hierarchy {path}: {reason}. Check the path, the encoding (UTF-8) and sep."
        ) from fault
    rows = [row for row in rows if any(row[1])][1 if header else 0 :]
    if rows and all(len(row) == 1 for _, row in rows):
        others = [mark for mark in ",;|\t" if mark != sep and all(mark in str(row[0]) for _, row in rows)]
        if others:
            raise HierarchyError(
                f"The hierarchy {path} has one column when split at {sep!r}, but {others[0]!r} in every row. "
                f"Say sep: {others[0]!r}."
            )
    yield from rows


def _text(label: str | None) -> str:
    return "" if label is None or not str(label).strip() else str(label)


def _without_trailing_gaps(row: Sequence[str | None]) -> Path_:
    labels = [_text(label) for label in row]
    while not labels[-1]:
        labels.pop()
    return tuple(labels)


def _without_root(rows: Sequence[tuple[int, Path_]]) -> tuple[Sequence[tuple[int, Path_]], str]:
    """The rows without the label that all of them end with, and that label; all of the rows and '*' where there is none."""
    tops = {row[-1] if len(row) > 1 else "" for _, row in rows}
    if len(tops) == 1 and tops != {""}:
        (top,) = tops
        return [(line, row[:-1]) for line, row in rows], top if top.strip(ROOT) else ROOT
    if ROOT in tops:
        without = [line for line, row in rows if len(row) == 1 or row[-1] != ROOT]
        raise HierarchyError(
            f"{len(without)} of {len(rows)} rows do not end with '*' (line {shortened(without)}), the others do. "
            "End every row with '*', or none.",
            gaps=len(without),
        )
    return rows, ROOT
