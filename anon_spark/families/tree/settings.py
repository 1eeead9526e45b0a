"""Options of a fit of the family `tree`, and their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from anon_spark.model.tree.forest import LevelCount

Search = Literal["gcs", "beam", "acs", "ocs"]
Mode = Literal["batch", "sequential"]
Cost = Literal["rpd_a", "rpd", "ncp"]
Cuts = Literal["partial", "full"]

SEARCH: Search = "beam"
"""How cuts are searched where a job does not say."""
WIDTH = 8
"""Of 15 settings measured, with 400 cuts each, 2 lost more than with GCS; with width 4 these were 4."""
MAX_LABELS = 64


@dataclass(frozen=True)
class Settings:
    """The guarantee, and how a cut that keeps it is searched."""

    k: int
    m: int = 3
    n: int = 2
    l: int | None = None  # noqa: E741 - the literature's name
    search: Search = SEARCH
    g: int = 2
    width: int = WIDTH
    queue_limit: int | None = None
    max_cuts: int | None = None
    max_seconds: float | None = None
    mode: Mode = "batch"
    cost: Cost = "rpd_a"
    level_count: LevelCount = "class"
    close_unseen: bool = True
    cuts: Cuts = "partial"
    max_labels: int = MAX_LABELS

    @property
    def without_disassociation(self) -> bool:
        """OCS: a cut that needs any is no solution."""
        return self.search == "ocs"

    @property
    def relations(self) -> int:
        """n, at most the number of pairs of m values."""
        return min(self.n, self.m * (self.m - 1) // 2)
