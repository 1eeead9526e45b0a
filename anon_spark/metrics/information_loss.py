"""Information loss IL of MSTK: per row the sum of its cells' losses, averaged over the published rows.

A category v loses (leaves below v - 1) / leaves of the hierarchy (not less one, as in GLM: the root stays below 1), a
number its interval's share of the domain. A null leaf is one more leaf of a categorical domain; among numbers it loses
nothing and leaves the domain as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anon_spark.metrics.cells import CellLoss, Ints, RowsByNode, published_rows, span_loss
from anon_spark.model.hierarchy import Hierarchy


def cell_loss(hierarchy: Hierarchy) -> CellLoss:
    """IL of a cell at each node."""
    leaves = hierarchy.leaves_below
    return span_loss(hierarchy) or CellLoss(tuple(below - 1 for below in leaves), int(leaves[-1][0]))


def information_loss(hierarchies: Sequence[Hierarchy], rows_by_node: RowsByNode) -> Fraction:
    """IL of a table, between 0 and the number of attributes. Suppressed rows are not in it: they lose elsewhere."""
    lost = sum(cell_loss(hierarchy).of(rows) for hierarchy, rows in zip(hierarchies, rows_by_node, strict=True))
    return Fraction(lost) / published_rows(rows_by_node)


def information_loss_by_level(hierarchy: Hierarchy, rows_by_leaf: Ints) -> list[Fraction]:
    """Mean IL of one attribute's cells when the whole column stands on level 0, 1, …: marginals are enough.

    IL of a full-domain node is the sum of its attributes' values.
    """
    loss = cell_loss(hierarchy)
    rows = int(rows_by_leaf.sum())
    return [loss.at(level, rows_on(hierarchy, level, rows_by_leaf)) / rows for level in range(hierarchy.height + 1)]


def rows_on(hierarchy: Hierarchy, level: int, rows_by_leaf: Ints) -> Ints:
    """Rows of each code of a level."""
    rows = np.zeros(hierarchy.cardinality(level), dtype=np.int64)
    np.add.at(rows, hierarchy.codes[level], rows_by_leaf)
    return rows
