"""Display of a hierarchy: an indented tree as text, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np

from anon_spark.model.hierarchy.table import LevelTable

NULL = "(null)"


def tree_text(table: LevelTable, max_lines: int = 60) -> str:
    """Root first, children indented below their parent, each with the number of listed leaves below it.

    If the tree does not fit, the lowest levels are left out, then children beyond the limit; both are noted. A label
    that only repeats for the same leaves (padding) is shown once.
    """
    lowest = _lowest_level(table, max_lines)
    lines = [f"* ({_leaves(table.leaf_count)})", *_below(table, table.height, 0, "", lowest)]
    if len(lines) > max_lines:
        hidden = len(lines) - max_lines
        lines = [*lines[:max_lines], f"… {hidden:,} more"]
    if lowest:
        lines.append(f"(levels 0 to {lowest - 1} not shown)" if lowest > 1 else "(level 0 not shown)")
    return "\n".join(lines)


def tree_html(table: LevelTable) -> str:
    """A table of the levels and the tree, escaped, without outside resources."""
    cells = "".join(
        f"<tr><td>{level}</td><td>{table.cardinality(level):,}</td><td>{int(table.leaves_below[level].max()):,}</td></tr>"
        for level in range(table.height + 1)
    )
    head = "<tr><th>level</th><th>labels</th><th>most leaves in one</th></tr>"
    return f"<div><table>{head}{cells}</table><pre>{escape(tree_text(table))}</pre></div>"


def _leaves(count: int) -> str:
    return "1 leaf" if count == 1 else f"{count:,} leaves"


def _lowest_level(table: LevelTable, max_lines: int) -> int:
    """The lowest level that can be shown with all levels above it; at least the one below the root."""
    lines, lowest = 1, table.height
    while lowest > 0:
        lines += table.cardinality(lowest - 1)
        if lines > max_lines and lowest < table.height:
            break
        lowest -= 1
    return lowest


def _below(table: LevelTable, level: int, code: int, indent: str, lowest: int) -> Iterator[str]:
    """Lines of the children of one node, down to the lowest level shown."""
    if level <= lowest:
        return
    inside = np.flatnonzero(table.codes[level] == code)
    children, sizes = np.unique(table.codes[level - 1][inside], return_counts=True)
    for position, (child, size) in enumerate(zip(children.tolist(), sizes.tolist(), strict=True)):
        last = position == len(children) - 1
        name = table.labels[level - 1][child]
        below = level - 1
        while below > lowest and size == len(_same(table, below, child, name)):
            child = int(table.codes[below - 1][_same(table, below, child, name)[0]])
            below -= 1
        count = f" ({_leaves(size)})" if below > 0 else ""
        yield f"{indent}{'└─ ' if last else '├─ '}{NULL if name is None else name}{count}"
        yield from _below(table, below, child, indent + ("   " if last else "│  "), lowest)


def _same(table: LevelTable, level: int, code: int, name: str | None) -> list[int]:
    """Leaves of a node if all have the same label one level below, else empty."""
    leaves = np.flatnonzero(table.codes[level] == code)
    lower = np.unique(table.codes[level - 1][leaves])
    if len(lower) == 1 and table.labels[level - 1][int(lower[0])] == name:
        return [int(leaf) for leaf in leaves]
    return []
