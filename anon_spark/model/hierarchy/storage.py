"""Hierarchies as JSON: an exact round trip, checked again when read."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy.checks import check_nested
from anon_spark.model.hierarchy.table import Floats, LevelTable
from anon_spark.model.hierarchy.values import BinGrid

FORMAT = 1
KINDS = ("text", "number", "date", "bins")


def to_dict(table: LevelTable, rule: dict[str, Any] | None) -> dict[str, Any]:
    """A level table and its rule as plain JSON values."""
    levels = []
    for level, names in enumerate(table.labels):
        entry: dict[str, Any] = {
            "labels": list(names),
            "codes": table.codes[level].tolist(),
            "leaves": table.leaves_below[level].tolist(),
            "weights": table.weights[level].tolist(),
        }
        if table.bounds is not None:
            entry["bounds"] = [[None if np.isnan(x) else x for x in side.tolist()] for side in table.bounds[level]]
        levels.append(entry)
    grid = table.bins
    return {
        "anon_spark_hierarchy": FORMAT,
        "kind": table.kind,
        "has_null": table.has_null,
        "weight_total": table.weight_total,
        "keys": list(table.keys),
        "levels": levels,
        "bins": None if grid is None else [str(grid.start), str(grid.stop), str(grid.width), grid.count],
        "rule": rule,
    }


def from_dict(content: dict[str, Any]) -> tuple[LevelTable, dict[str, Any] | None]:
    """The inverse of `to_dict`: table and rule; invalid content raises HierarchyError."""
    version = content.get("anon_spark_hierarchy") if isinstance(content, dict) else None
    if version != FORMAT:
        raise HierarchyError(f"Not a saved hierarchy of format {FORMAT}. Build it again from its source.")
    try:
        table = _read(content)
        rule = None if content["rule"] is None else dict(content["rule"])
        sound = _is_sound(table)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, InvalidOperation) as fault:
        raise HierarchyError("The saved hierarchy is damaged. Build it again from its source.") from fault
    if not sound:
        raise HierarchyError("The saved hierarchy does not fit together. Build it again from its source.")
    check_nested(table.codes, range(1, table.leaf_count + 1))
    return table, rule


def save(content: dict[str, Any], path: Path) -> None:
    """Write as one JSON file."""
    try:
        path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as fault:
        raise HierarchyError(f"Cannot write the hierarchy {path}: {fault.strerror}.") from fault


def load(path: Path) -> Any:
    """Read what `save` wrote."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise HierarchyError(f"Cannot read the hierarchy {path}: {fault.strerror}.") from fault
    except ValueError as fault:
        raise HierarchyError(f"The hierarchy {path} is no JSON. Build it again from its source.") from fault


def _read(content: dict[str, Any]) -> LevelTable:
    levels = content["levels"]
    grid = content["bins"]
    bounds: list[tuple[Floats, Floats]] = []
    for level in levels:
        if "bounds" in level:
            low, high = (np.array([np.nan if x is None else x for x in side], np.float64) for side in level["bounds"])
            bounds.append((low, high))
    return LevelTable(
        kind=content["kind"],
        keys=tuple(content["keys"]),
        codes=np.array([level["codes"] for level in levels], dtype=np.int32),
        labels=tuple(tuple(level["labels"]) for level in levels),
        leaves_below=tuple(np.array(level["leaves"], dtype=np.int64) for level in levels),
        weights=tuple(np.array(level["weights"], dtype=np.int64) for level in levels),
        weight_total=int(content["weight_total"]),
        bounds=tuple(bounds) if bounds else None,
        bins=None if grid is None else BinGrid(Decimal(grid[0]), Decimal(grid[1]), Decimal(grid[2]), int(grid[3])),
        has_null=bool(content["has_null"]),
    )


def _is_sound(table: LevelTable) -> bool:
    """Whether shapes agree, every code has a label, the top is one label, and null is directly below the root."""
    sizes = [len(names) for names in table.labels]
    per_level = [table.leaves_below, table.weights]
    per_level += [tuple(side) for side in zip(*table.bounds, strict=True)] if table.bounds else []
    nulls = [[code for code, name in enumerate(names) if name is None] for names in table.labels[:-1]]
    return (
        table.kind in KINDS
        and (table.bins is not None) == (table.kind == "bins")
        and table.codes.ndim == 2
        and table.height >= 1
        and len(table.labels[-1]) == 1
        and table.labels[-1][0] is not None
        and len(table.keys) == table.leaf_count - table.has_null
        and len(set(table.keys)) == len(table.keys)
        and np.array_equal(table.codes[0], np.arange(table.leaf_count))
        and all(np.array_equal(np.unique(row), np.arange(n)) for row, n in zip(table.codes, sizes, strict=True))
        and all([len(array) for array in arrays] == sizes for arrays in per_level)
        and nulls == [[size - 1] if table.has_null else [] for size in sizes[:-1]]
        and table.weight_total == int(table.weights[-1][0])
    )
