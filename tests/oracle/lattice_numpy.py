"""All nodes of a lattice at the size of Adult: the same rules as the brute force, over distinct tuples as NumPy codes.

Kept apart from the package as the brute force is, and checked against it; losses are exact fractions here as well.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.oracle.lattice_oracle import Leaf, Node, cell_loss, lattice_nodes

ADULT_COLUMNS = (0, 1, 3, 5, 8, 9, 13, 14)  # age, workclass, education, marital, race, sex, country, salary

NodeValues = dict[Node, tuple[int, Fraction]]


def read_adult(path: Path) -> list[tuple[str, ...]]:
    """The complete rows of adult.data.gz, reduced to the eight quasi-identifiers of the regression."""
    with gzip.open(path, "rt") as lines:
        split = [[value.strip() for value in line.split(",")] for line in lines if "," in line]
    return [tuple(row[at] for at in ADULT_COLUMNS) for row in split if "?" not in row]


def all_nodes(
    rows: Sequence[tuple[Leaf, ...]],
    level_tables: Sequence[Mapping[Any, Sequence[Any]]],
    eta: int,
    class_column: Sequence[Hashable] | None = None,
) -> dict[str, NodeValues]:
    """(k, loss) of every node for "glm" and "dm" and, given a class column of at most two values, "cm"."""
    counted = Counter(zip(rows, class_column if class_column is not None else [None] * len(rows), strict=True))
    count = np.array(list(counted.values()))
    one_class = next(iter(counted))[1]
    in_class = count * np.array([label == one_class for _, label in counted])
    codes, costs, scale = _coded([row for row, _ in counted], level_tables)
    result: dict[str, NodeValues] = {"glm": {}, "dm": {}, "cm": {}}
    for node in lattice_nodes([len(levels) - 1 for levels in codes]):
        class_of, cost = _recoded(node, codes, costs)
        size = np.bincount(class_of, count).astype(np.int64)
        cumulated = np.bincount(size, size).astype(np.int64).cumsum()
        k = int(np.searchsorted(cumulated, eta, side="right"))  # the first i with cumulated[i] > eta
        suppressed, kept = int(cumulated[k - 1]), size >= k
        cells = int((cost * count)[kept[class_of]].sum()) + suppressed * len(node) * scale
        result["glm"][node] = k, Fraction(cells, len(rows) * len(node) * scale)
        result["dm"][node] = k, Fraction(int((size[kept] ** 2).sum()) + len(rows) * suppressed)
        if class_column is not None:
            part = np.bincount(class_of, in_class).astype(np.int64)
            minority = int(np.minimum(part, size - part)[kept].sum())
            result["cm"][node] = k, Fraction(suppressed + minority, len(rows))
    return result


def least_losses(
    rows: Sequence[tuple[Leaf, ...]],
    level_tables: Sequence[Mapping[Any, Sequence[Any]]],
    budgets: Sequence[int],
    ks: Sequence[int],
) -> dict[tuple[int, int], Fraction]:
    """(budget, k) → the least GLM of all nodes at that very k, of those that suppress at most `budget` rows for it."""
    counted = Counter(rows)
    count = np.array(list(counted.values()))
    codes, costs, scale = _coded(list(counted), level_tables)
    cells_of_row, top = len(level_tables) * scale, max(ks)
    least = {(budget, k): len(rows) * cells_of_row for budget in budgets for k in ks}
    for node in lattice_nodes([len(levels) - 1 for levels in codes]):
        class_of, cost = _recoded(node, codes, costs)
        size = np.bincount(class_of, count).astype(np.int64)
        at_size = np.minimum(size, top)  # what lies above all k is always published
        gone = np.concatenate([[0], np.bincount(at_size, size, top + 1).astype(np.int64).cumsum()])
        cells = np.zeros(top + 2, np.int64)
        np.add.at(cells, at_size[class_of] + 1, cost * count)
        cells = cells.cumsum()
        for k in ks:
            loss = int(cells[-1] - cells[k] + gone[k] * cells_of_row)
            for budget in budgets:
                if gone[k] <= budget:
                    least[budget, k] = min(least[budget, k], loss)
    return {found: Fraction(loss, len(rows) * cells_of_row) for found, loss in least.items()}


def _coded(
    tuples: Sequence[tuple[Leaf, ...]], level_tables: Sequence[Mapping[Any, Sequence[Any]]]
) -> tuple[list[list[NDArray[np.int64]]], list[list[NDArray[np.int64]]], int]:
    """Per attribute and level the codes and the losses of the tuples; losses are integers over the last value."""
    leaves = [[row[at] for row in tuples] for at in range(len(level_tables))]
    codes = [_codes(table, values) for table, values in zip(level_tables, leaves, strict=True)]
    losses = [_losses(table) for table in level_tables]
    scale = lcm(*(loss.denominator for levels in losses for level in levels for loss in level.values()))
    costs = [
        [np.array([int(level[value] * scale) for value in values]) for level in levels]
        for levels, values in zip(losses, leaves, strict=True)
    ]
    return codes, costs, scale


def _recoded(
    node: Node, codes: Sequence[Sequence[NDArray[np.int64]]], costs: Sequence[Sequence[NDArray[np.int64]]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The class and the loss of each tuple on the node."""
    key = np.zeros(len(codes[0][0]), np.int64)
    cost = np.zeros(len(codes[0][0]), np.int64)
    for at, level in enumerate(node):
        key = key * (int(codes[at][level].max()) + 1) + codes[at][level]
        cost += costs[at][level]
    return np.unique(key, return_inverse=True)[1], cost


def _codes(table: Mapping[Any, Sequence[Any]], values: Sequence[Leaf]) -> list[NDArray[np.int64]]:
    """Per level the codes of the labels of `values`."""
    columns = []
    for level in range(len(next(iter(table.values())))):
        code = {label: at for at, label in enumerate(dict.fromkeys(labels[level] for labels in table.values()))}
        columns.append(np.array([code[table[value][level]] for value in values], np.int64))
    return columns


def _losses(table: Mapping[Any, Sequence[Any]]) -> list[dict[Leaf, Fraction]]:
    return [{leaf: cell_loss(table, leaf, level) for leaf in table} for level in range(len(next(iter(table.values()))))]
