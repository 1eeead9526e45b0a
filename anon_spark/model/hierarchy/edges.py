"""Child–parent pairs as a level table."""

from __future__ import annotations

from collections.abc import Iterable

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy.checks import shortened
from anon_spark.model.hierarchy.coding import ROOT
from anon_spark.model.hierarchy.levels import Line, tabulate
from anon_spark.model.hierarchy.table import LevelTable


def from_edges(pairs: Iterable[Line]) -> LevelTable:
    """The level table of numbered pairs (child, parent).

    Leaves are the names without children, in order of appearance. '*' lies above several roots; a single one is the
    root, whatever its name. Identical pairs count once. Refused, with counts and line numbers: an empty name, a name
    above itself, two parents, a cycle, a parent above '*'.
    """
    parent_of, line_of = _parents(pairs)
    parents = set(parent_of.values())
    _refuse_cycles(parent_of, line_of)
    paths = []
    for child in parent_of:
        if child in parents:
            continue
        path = [child]
        while (above := parent_of.get(path[-1])) is not None:
            path.append(above)
        paths.append((line_of[child], tuple(path)))
    several = len({path[-1] for _, path in paths}) > 1
    return tabulate([(line, (*path, ROOT) if several and path[-1] != ROOT else path) for line, path in paths])


def _parents(pairs: Iterable[Line]) -> tuple[dict[str, str], dict[str, int]]:
    """The parent of each child, and the line that names it."""
    parent_of: dict[str, str] = {}
    line_of: dict[str, int] = {}
    broken, loops, above_root, second = [], [], [], []
    for line, pair in pairs:
        names = ["" if name is None else str(name) for name in pair]
        if not any(name.strip() for name in names):
            continue
        if len(names) != 2 or not all(name.strip() for name in names):
            broken.append(line)
            continue
        child, parent = names
        if child == parent:
            loops.append(line)
        elif child == ROOT:
            above_root.append(line)
        elif parent_of.setdefault(child, parent) != parent:
            second.append(line)
        else:
            line_of.setdefault(child, line)
    faults = [
        f"{len(lines)} {what} (line {shortened(lines)})"
        for lines, what in (
            (broken, "rows that are not child and parent"),
            (loops, "names that are their own parent"),
            (above_root, "parents above '*'"),
            (second, "second parents of a name"),
        )
        if lines
    ]
    if faults:
        raise HierarchyError(
            f"The pairs are no hierarchy: {'; '.join(faults)}. Give each name one parent.",
            conflicts=len(broken) + len(loops) + len(above_root) + len(second),
        )
    if not parent_of:
        raise HierarchyError("The hierarchy has no pairs: give one row per name, child and parent.", rows=0)
    return parent_of, line_of


def _refuse_cycles(parent_of: dict[str, str], line_of: dict[str, int]) -> None:
    """Follow the parents of every name once; a name met again on the same walk closes a cycle."""
    settled: set[str] = set()
    lines: list[int] = []
    cycles = 0
    for name in parent_of:
        walk: dict[str, int] = {}
        here: str | None = name
        while here is not None and here not in settled and here not in walk:
            walk[here] = len(walk)
            here = parent_of.get(here)
        if here is not None and here in walk:
            cycles += 1
            lines += [line_of[member] for member, step in walk.items() if step >= walk[here]]
        settled.update(walk)
    if cycles:
        raise HierarchyError(
            f"{cycles} cycle{'s' if cycles > 1 else ''} of {len(lines)} names (line {shortened(lines)}). "
            "Remove the pair that leads back down.",
            cycles=cycles,
        )
