"""Normalized certainty penalty NCP: the share of its domain that a generalized cell covers, averaged over all cells.

A category that covers several leaves costs leaves below / leaves of the hierarchy, a number its interval's share of the
domain; what covers one value costs nothing. A null leaf is one more leaf of a categorical domain; among numbers it
costs nothing and leaves the domain as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anon_spark.metrics.cells import CellLoss, RowsByNode, published_rows, span_loss
from anon_spark.model.hierarchy import Hierarchy


def cell_penalty(hierarchy: Hierarchy) -> CellLoss:
    """NCP of a cell at each node."""
    leaves = hierarchy.leaves_below
    covered = tuple(np.where(below > 1, below, 0) for below in leaves)
    return span_loss(hierarchy) or CellLoss(covered, int(leaves[-1][0]))


def certainty_penalty(hierarchies: Sequence[Hierarchy], rows_by_node: RowsByNode) -> Fraction:
    """NCP of a table with equal weights of the attributes, in [0, 1]. Suppressed rows are not in it."""
    lost = sum(cell_penalty(hierarchy).of(rows) for hierarchy, rows in zip(hierarchies, rows_by_node, strict=True))
    return Fraction(lost) / (len(hierarchies) * published_rows(rows_by_node))
