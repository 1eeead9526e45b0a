"""From columns of labels to a level table: integer codes per level in order of first appearance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from anon_spark.model.hierarchy.checks import check_nested
from anon_spark.model.hierarchy.table import Codes, Counts, Kind, LevelTable

ROOT = "*"
Table = TypeVar("Table", bound=LevelTable)


def encode(columns: Iterable[Sequence[str]], lines: Sequence[int] | None = None) -> tuple[Codes, list[list[str]]]:
    """Codes [level, leaf] and the labels they stand for; within one level a label is one code.

    Guarantee: nested, or HierarchyError with the lines (default: the numbers of the rows, from 1).
    """
    codes, labels = [], []
    for column in columns:
        known: dict[str, int] = {}
        codes.append(np.array([known.setdefault(label, len(known)) for label in column], dtype=np.int32))
        labels.append(list(known))
    table = np.stack(codes)
    check_nested(table, range(1, table.shape[1] + 1) if lines is None else lines)
    return table, labels


def categorical(
    kind: Kind,
    keys: Sequence[str],
    codes: Codes,
    labels: Sequence[Sequence[str]],
    leaves_below: Sequence[Counts] | None = None,
) -> LevelTable:
    """A level table whose loss counts leaves: (leaves below - 1) / (leaves of the domain - 1).

    leaves_below: the domain's, when the table lists only a part of it (masks); default: the leaves of the table.
    """
    if leaves_below is None:
        leaves_below = [
            np.bincount(codes[level], minlength=len(names)).astype(np.int64) for level, names in enumerate(labels)
        ]
    weights = tuple(count - 1 for count in leaves_below)
    return LevelTable(
        kind=kind,
        keys=tuple(keys),
        codes=codes,
        labels=tuple(tuple(names) for names in labels),
        leaves_below=tuple(leaves_below),
        weights=weights,
        weight_total=int(weights[-1][0]),
    )


def add_null(table: Table) -> Table:
    """A null leaf directly below the root: the last code on every level below it, label None.

    A categorical domain grows by one leaf; numeric weights keep their total, and null itself loses nothing.
    """
    top = table.height
    column = np.array([[table.cardinality(level)] for level in range(top)] + [[0]], dtype=np.int32)
    one, zero, nan = np.ones(1, np.int64), np.zeros(1, np.int64), np.array([np.nan])
    below = [*(np.append(counts, one) for counts in table.leaves_below[:top]), table.leaves_below[top] + 1]
    root_weight = below[top] - 1 if table.bounds is None else table.weights[top]
    bounds = None
    if table.bounds is not None:
        lower = ((np.append(low, nan), np.append(high, nan)) for low, high in table.bounds[:top])
        bounds = (*lower, table.bounds[top])
    return replace(
        table,
        codes=np.concatenate([table.codes, column], axis=1),
        labels=(*((*names, None) for names in table.labels[:top]), table.labels[top]),
        leaves_below=tuple(below),
        weights=(*(np.append(weights, zero) for weights in table.weights[:top]), root_weight),
        weight_total=int(root_weight[0]),
        bounds=bounds,
        has_null=True,
    )
