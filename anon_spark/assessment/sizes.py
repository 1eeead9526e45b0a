"""Sizes of classes, and what they say of somebody who looks a person up: prosecutor and marketer risk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from anon_spark.kernels.classes import Ints

THRESHOLDS = (0.05, 0.1, 0.2)
RANGES = ((1, 1), (2, 2), (3, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, 999), (1_000, None))


@dataclass(frozen=True, eq=False)
class Sizes:
    """How many classes have each size, and how many rows are in them; sizes ascending.

    A size counts rows, or the persons behind them. With wildcards classes overlap: then `classes` are distinct tuples.
    """

    sizes: Ints
    classes: Ints
    rows: Ints

    @classmethod
    def of(cls, sizes: Ints, rows: Ints) -> Sizes:
        """From the size and the rows of each class."""
        distinct, place, classes = np.unique(sizes, return_inverse=True, return_counts=True)
        sums = np.zeros(distinct.size, dtype=np.int64)
        np.add.at(sums, place.reshape(-1), rows)
        return cls(distinct.astype(np.int64), classes.astype(np.int64), sums)

    @property
    def total_rows(self) -> int:
        return int(self.rows.sum())

    @property
    def total_classes(self) -> int:
        return int(self.classes.sum())


@dataclass(frozen=True)
class LookUpFacts:
    """Chances of somebody who knows all quasi-identifiers of a person in the table, 1 / f for a class of f people.

    highest: of the least protected record; average: over all records (prosecutor); marketer: the expected share of records found
    by whoever matches everybody, which is the same number; above: by threshold, the share of rows with a higher chance;
    unique_rows: in classes of one; crowds: rows by size of their class, in RANGES.
    """

    rows: int
    classes: int
    smallest_class: int
    unique_rows: int
    unique_share: float
    highest: float
    average: float
    marketer: float
    above: Mapping[float, float]
    crowds: tuple[int, ...]


def look_up(sizes: Sizes) -> LookUpFacts:
    """The facts of a table's classes."""
    rows = sizes.total_rows
    chances = 1 / sizes.sizes
    above = {threshold: float(sizes.rows[_riskier(sizes, threshold)].sum() / rows) for threshold in THRESHOLDS}
    crowds = [
        int(sizes.rows[(sizes.sizes >= least) & (sizes.sizes <= (most or sizes.sizes.max()))].sum()) for least, most in RANGES
    ]
    average, unique = float(sizes.rows @ chances / rows), int(sizes.rows[sizes.sizes == 1].sum())
    return LookUpFacts(
        rows=rows,
        classes=sizes.total_classes,
        smallest_class=int(sizes.sizes.min()),
        unique_rows=unique,
        unique_share=unique / rows,
        highest=float(chances.max()),
        average=average,
        marketer=average,
        above=above,
        crowds=tuple(crowds),
    )


def _riskier(sizes: Sizes, threshold: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """1 / f > threshold, in whole numbers: a class of 20 is not above 0.05."""
    return np.asarray(sizes.sizes < round(1 / threshold))
