"""What decides a release: the guarantee, the bound on the loss, and how clusters are formed and merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Bound = Literal["rum", "tum"]
Merge = Literal["r", "t", "rt"]
Distance = Literal["btd", "ul"]
Method = Literal["bound", "rfirst", "tfirst"]
ItemMethod = Literal["sets", "aa", "lra", "vpa"]
Cost = Literal["occ", "ul"]

BLOCK_RECORDS = 5_000
DELTA = 0.65
GRAY_BLOCK = 1_000


@dataclass(frozen=True)
class Settings:
    """(k, k^m), or with l (k, l^m), and everything that decides which of the releases that keep it is found."""

    k: int
    m: int = 2
    l: int | None = None  # noqa: E741 - the literature's name
    bound: Bound = "rum"
    delta: float = DELTA
    merge: Merge = "r"
    distance: Distance = "btd"
    method: Method = "bound"
    item_method: ItemMethod = "sets"
    cost: Cost = "occ"
    exhaustive_seeds: bool = False
    block: int = BLOCK_RECORDS
    gray_block: int | None = None

    @property
    def block_records(self) -> int:
        """How many records are clustered together at most."""
        return max(self.block, 4 * self.k)

    @property
    def gray_records(self) -> int:
        """How many records stand in a block of the Gray order."""
        return self.gray_block if self.gray_block is not None else max(GRAY_BLOCK, 4 * self.k)

    @property
    def by_items(self) -> bool:
        """Whether clusters are ordered by their transactions, too."""
        return self.merge != "r"
