"""Losses of single cells summed over a recoded table in integers, shared by the cell-wise measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from anon_spark.model.hierarchy import Hierarchy

Ints = NDArray[np.int64]
RowsByNode = Sequence[Sequence[Ints]]  # per attribute, per level: how many published rows show each code

MOST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class CellLoss:
    """Loss of a cell at each node of one hierarchy: `numerators[level][code]` over `denominator`.

    A denominator of 0 is a domain of one value, which loses nothing.
    """

    numerators: tuple[Ints, ...]
    denominator: int

    def of(self, rows_by_level: Sequence[Ints]) -> Fraction:
        """Loss of a whole column, one summand per cell."""
        if self.denominator == 0:
            return Fraction(0)
        lost = sum(exact_dot(rows, loss) for rows, loss in zip(rows_by_level, self.numerators, strict=True))
        return Fraction(lost, self.denominator)

    def at(self, level: int, rows: Ints) -> Fraction:
        """Loss of a column that is recoded to one level as a whole; rows: how many show each code of it."""
        return Fraction(exact_dot(rows, self.numerators[level]), self.denominator) if self.denominator else Fraction(0)


def span_loss(hierarchy: Hierarchy) -> CellLoss | None:
    """(hi - lo) / (domain hi - domain lo) for numbers, None for categories.

    The hierarchy keeps hi - lo as integers. A null is no number: it loses nothing and the domain stays as it is.
    """
    return None if hierarchy.bounds is None else CellLoss(hierarchy.weights, hierarchy.weight_total)


def published_rows(rows_by_node: RowsByNode) -> int:
    """Rows behind the counts; every attribute has the same."""
    return sum(int(rows.sum()) for rows in rows_by_node[0])


def exact_dot(vector: Ints, other: Ints) -> int:
    """Σ vector · other of non-negative integers, exact also beyond 64 bits."""
    if vector.size == 0:
        return 0
    if int(vector.sum()) * int(other.max()) <= MOST:
        return int(np.dot(vector, other))
    return sum(int(left) * int(right) for left, right in zip(vector, other, strict=True) if left)
