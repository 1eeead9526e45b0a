"""Classification metric CM: the share of rows whose class value is not their class's majority, or that are suppressed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anon_spark.model.node_stats import NodeStats


@dataclass(frozen=True)
class ClassificationError:
    """(suppressed + Σ(|E| − majority of E)) / rows."""

    rows: int
    name: str = "cm"

    @property
    def denominator(self) -> int:
        return self.rows

    def numerator(self, stats: NodeStats) -> int:
        return self.rows - stats.majority

    def floor(self, stats: NodeStats) -> int:
        return self.rows - stats.all_majority

    def floors(self, nodes: NDArray[np.int32]) -> None:
        return None

    def floors_by_level(self) -> None:
        return None
