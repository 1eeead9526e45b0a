"""Hierarchies as JSON: an exact round trip, checked again when read."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy.checks import check_nested
from anon_spark.model.hierarchy.coding import ROOT
from anon_spark.model.hierarchy.hierarchy import Floats, Hierarchy
from anon_spark.model.hierarchy.rules import Rule
from anon_spark.model.hierarchy.values import BinGrid

FORMAT = 1
KINDS = ("text", "number", "date", "bins")


def to_dict(hierarchy: Hierarchy) -> dict[str, Any]:
    """Plain JSON values; the keys are stored apart from the labels of level 0 only where they differ."""
    levels = []
    for level, names in enumerate(hierarchy.labels):
        entry: dict[str, Any] = {
            "labels": list(names),
            "codes": hierarchy.codes[level].tolist(),
            "leaves": hierarchy.leaves_below[level].tolist(),
            "weights": hierarchy.weights[level].tolist(),
        }
        if hierarchy.bounds is not None:
            entry["bounds"] = [[None if np.isnan(x) else x for x in side.tolist()] for side in hierarchy.bounds[level]]
        levels.append(entry)
    grid = hierarchy.bins
    return {
        "anon_spark_hierarchy": FORMAT,
        "kind": hierarchy.kind,
        "has_null": hierarchy.has_null,
        "weight_total": hierarchy.weight_total,
        "keys": list(hierarchy.keys),
        "levels": levels,
        "bins": None if grid is None else [str(grid.start), str(grid.stop), str(grid.width), grid.count],
        "rule": None if hierarchy.rule is None else hierarchy.rule.to_dict(),
    }


def from_dict(content: dict[str, Any]) -> Hierarchy:
    """The hierarchy behind `to_dict`; anything else, or a table that is no hierarchy, raises HierarchyError."""
    version = content.get("anon_spark_hierarchy") if isinstance(content, dict) else None
    if version != FORMAT:
        raise HierarchyError(f"Not a saved hierarchy of format {FORMAT}. Build it again from its source.")
    try:
        hierarchy = _read(content)
        sound = _is_sound(hierarchy)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, InvalidOperation) as fault:
        raise HierarchyError("The saved hierarchy is damaged. Build it again from its source.") from fault
    if not sound:
        raise HierarchyError("The saved hierarchy does not fit together. Build it again from its source.")
    check_nested(hierarchy.codes, range(1, hierarchy.leaf_count + 1))
    return hierarchy


def save(hierarchy: Hierarchy, path: Path) -> None:
    """Write as one JSON file."""
    try:
        path.write_text(json.dumps(to_dict(hierarchy), ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as fault:
        raise HierarchyError(f"Cannot write the hierarchy {path}: {fault.strerror}.") from fault


def load(path: Path) -> Hierarchy:
    """Read what `save` wrote."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise HierarchyError(f"Cannot read the hierarchy {path}: {fault.strerror}.") from fault
    except ValueError as fault:
        raise HierarchyError(f"The hierarchy {path} is no JSON. Build it again from its source.") from fault
    return from_dict(content)


def _read(content: dict[str, Any]) -> Hierarchy:
    levels = content["levels"]
    grid = content["bins"]
    bounds: list[tuple[Floats, Floats]] = []
    for level in levels:
        if "bounds" in level:
            low, high = (np.array([np.nan if x is None else x for x in side], np.float64) for side in level["bounds"])
            bounds.append((low, high))
    return Hierarchy(
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
        rule=None if content["rule"] is None else Rule.from_dict(content["rule"]),
    )


def _is_sound(hierarchy: Hierarchy) -> bool:
    """Shapes agree, every code has a label, the top is '*', null is where it belongs."""
    sizes = [len(names) for names in hierarchy.labels]
    per_level = [hierarchy.leaves_below, hierarchy.weights]
    per_level += [tuple(side) for side in zip(*hierarchy.bounds, strict=True)] if hierarchy.bounds else []
    nulls = [[code for code, name in enumerate(names) if name is None] for names in hierarchy.labels[:-1]]
    return (
        hierarchy.kind in KINDS
        and (hierarchy.bins is not None) == (hierarchy.kind == "bins")
        and hierarchy.codes.ndim == 2
        and hierarchy.height >= 1
        and hierarchy.labels[-1] == (ROOT,)
        and len(hierarchy.keys) == hierarchy.leaf_count - hierarchy.has_null
        and len(set(hierarchy.keys)) == len(hierarchy.keys)
        and np.array_equal(hierarchy.codes[0], np.arange(hierarchy.leaf_count))
        and all(np.array_equal(np.unique(row), np.arange(n)) for row, n in zip(hierarchy.codes, sizes, strict=True))
        and all([len(array) for array in arrays] == sizes for arrays in per_level)
        and nulls == [[size - 1] if hierarchy.has_null else [] for size in sizes[:-1]]
        and hierarchy.weight_total == int(hierarchy.weights[-1][0])
    )
