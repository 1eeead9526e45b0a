"""Settings of a fit: the guarantee, the bound on the loss, and how clusters are formed and merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Bound = Literal["relational", "items"]
"""What delta bounds: NCP of the relational values (the paper's Rum), UL of the items (Tum)."""
Merge = Literal["relational", "items", "both"]
"""What partners of a cluster are ordered by (R, T, RT)."""
Distance = Literal["bits", "utility_loss"]
"""How items of clusters are compared (BTD, UL)."""
Method = Literal["bound", "rfirst", "tfirst"]
CutMethod = Literal["apriori", "local", "vertical"]
"""How a cut of an item hierarchy is found (AA, LRA, VPA)."""
ItemMethod = Literal["sets", CutMethod]
Cost = Literal["rarest", "occurrences", "utility_loss"]
"""What sets of items are joined by: the fewest occurrences, the least growth of size · occurrences, the least UL."""

Refine = Literal["moves", "none"]
"""Whether first clusters move between the merged ones."""

BLOCK_RECORDS = 5_000
DELTA = 0.65
"""The bound where a job does not say."""
GRAY_BLOCK = 1_000


@dataclass(frozen=True)
class Settings:
    """The guarantee (k, k^m), or with l (k, l^m), and the options that select one of the releases that keep it."""

    k: int
    m: int = 2
    l: int | None = None  # noqa: E741 - the literature's name
    bound: Bound = "relational"
    delta: float = DELTA
    merge: Merge = "relational"
    distance: Distance = "bits"
    method: Method = "bound"
    item_method: ItemMethod = "sets"
    cost: Cost = "rarest"
    refine: Refine = "moves"
    exhaustive_seeds: bool = False
    block: int = BLOCK_RECORDS
    gray_block: int | None = None

    @property
    def block_records(self) -> int:
        """The largest number of records clustered together."""
        return max(self.block, 4 * self.k)

    @property
    def gray_records(self) -> int:
        """Records per block of the Gray order."""
        return self.gray_block if self.gray_block is not None else max(GRAY_BLOCK, 4 * self.k)

    @property
    def moves(self) -> bool:
        """Whether first clusters move: where merging looks at relational values alone."""
        return self.refine == "moves" and self.method == "bound" and self.bound == "relational" and not self.by_items

    @property
    def by_items(self) -> bool:
        """Whether merging also orders clusters by their transactions."""
        return self.merge != "relational"
