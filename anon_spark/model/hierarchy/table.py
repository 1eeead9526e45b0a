"""The level table: the numbers and labels of a hierarchy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from anon_spark.model.hierarchy.values import BinGrid

Kind = Literal["text", "number", "date", "bins"]
Codes = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LevelTable:
    """Codes, labels and integer weights of every leaf on every level. Arrays are read-only."""

    kind: Kind
    keys: tuple[str, ...]
    codes: Codes
    labels: tuple[tuple[str | None, ...], ...]
    leaves_below: tuple[Counts, ...]
    weights: tuple[Counts, ...]
    weight_total: int
    bounds: tuple[tuple[Floats, Floats], ...] | None = None
    bins: BinGrid | None = None
    has_null: bool = False

    def __post_init__(self) -> None:
        arrays: list[npt.NDArray[Any]] = [self.codes, *self.leaves_below, *self.weights]
        for low, high in self.bounds or ():
            arrays += [low, high]
        for array in arrays:
            array.setflags(write=False)

    @property
    def height(self) -> int:
        """H: how many levels lie above the leaves."""
        return int(self.codes.shape[0]) - 1

    @property
    def leaf_count(self) -> int:
        """Number of leaves, the null leaf included."""
        return int(self.codes.shape[1])

    def cardinality(self, level: int) -> int:
        """How many labels a level has, null included."""
        return len(self.labels[level])
