"""Discernibility DM: every row costs the size of its class, a suppressed row the size of the table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anon_spark.errors import LimitExceeded
from anon_spark.model.node_stats import NodeStats

MOST_ROWS = 3_000_000_000  # the square of more rows does not fit the counters


@dataclass(frozen=True)
class Discernibility:
    """Σ|E|² + rows · suppressed, shown over rows² (1 = one single class)."""

    rows: int
    name: str = "dm"

    def __post_init__(self) -> None:
        if self.rows > MOST_ROWS:
            raise LimitExceeded(
                f"loss dm counts up to {MOST_ROWS:,} rows, the table has {self.rows:,}. Use loss: glm.", rows=self.rows
            )

    @property
    def denominator(self) -> int:
        return self.rows * self.rows

    def numerator(self, stats: NodeStats) -> int:
        return discernibility(stats.squares, self.rows, stats.suppressed)

    def floor(self, stats: NodeStats) -> int:
        return stats.all_squares

    def floors(self, nodes: NDArray[np.int32]) -> None:
        return None

    def floors_by_level(self) -> None:
        return None


def discernibility(squares: int, rows: int, suppressed: int) -> int:
    """Σ|E|² of the published classes, and all rows of the input for each suppressed one."""
    return squares + rows * suppressed
