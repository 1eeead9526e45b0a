"""The shortest hierarchy: the value itself, then '*'."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy.coding import ROOT, categorical, encode
from anon_spark.model.hierarchy.table import LevelTable


@dataclass(frozen=True)
class Top:
    """Two levels for any values: level 0 the values, level 1 '*'. A value loses nothing, '*' loses everything."""

    @property
    def complete(self) -> bool:
        """Levels and losses are the same for all values."""
        return True

    def fitted(self, values: Iterable[str]) -> Self:
        """Nothing to complete."""
        return self

    def table(self, values: Iterable[str]) -> LevelTable:
        """One leaf per distinct value, sorted; with a single value '*' still loses everything."""
        keys = sorted({value for value in values if value is not None})
        if not keys:
            raise HierarchyError("top: the column has no values. Leave it out of the quasi-identifiers.", values=0)
        codes, labels = encode([keys, [ROOT] * len(keys)])
        below = [np.ones(len(keys), dtype=np.int64), np.array([max(len(keys), 2)], dtype=np.int64)]
        return categorical("text", keys, codes, labels, leaves_below=below)

    def to_dict(self) -> dict[str, Any]:
        """The rule as plain JSON values."""
        return {"rule": "top"}
