"""Masked texts: 13051 → 1305* → 130** → … → '*'."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from anon_spark.errors import HierarchyError, did_you_mean
from anon_spark.model.hierarchy.coding import ROOT, categorical, encode
from anon_spark.model.hierarchy.table import LevelTable

_INT64 = 2**63 - 1


@dataclass(frozen=True)
class Mask:
    """Level l replaces l symbols by '*'; `keep` names the side that stays. The height is the length.

    The domain is every text of `length` symbols over an alphabet of that size (10: digits), whatever values occur; give
    the real size for letters, else losses are those of digits.
    """

    keep: str = "left"
    length: int | None = None
    alphabet: int = 10

    def __post_init__(self) -> None:
        if self.keep not in ("left", "right"):
            raise HierarchyError(f"mask: keep must be left or right.{did_you_mean(str(self.keep), ('left', 'right'))}")
        if not isinstance(self.alphabet, int) or not isinstance(self.length, int | None):
            raise HierarchyError("mask: alphabet and length must be whole numbers.")
        if self.alphabet < 2 or (self.length is not None and self.length < 1):
            raise HierarchyError("mask: alphabet must be at least 2 and length at least 1.")
        # room for a null leaf, and for weights as int64
        if self.length is not None and self.alphabet**self.length >= _INT64:
            raise HierarchyError(
                f"mask: {self.length} symbols over an alphabet of {self.alphabet} are more values than 64 bits count. "
                "Give a smaller length or alphabet."
            )

    @property
    def complete(self) -> bool:
        """Whether the length is fixed."""
        return self.length is not None

    def fitted(self, values: Iterable[str]) -> Self:
        """The mask with a length: that of the longest value if none was given."""
        longest = max((len(value) for value in values if value is not None), default=0)
        return replace(self, length=longest) if self.length is None and longest else self

    def table(self, values: Iterable[str]) -> LevelTable:
        """One leaf per distinct value of at most `length` symbols, sorted.

        A short value is filled with spaces on the masked side, so '1234' and '12345' meet at '1234*'; a value longer than
        `length` is left out. Weights come from the mask (alphabet ** masked symbols), not from the values.
        """
        length = self.length or 0
        distinct = sorted({value for value in values if value is not None})
        kept = [value for value in distinct if len(value) <= length]
        if not kept or not length:
            raise HierarchyError(
                f"mask: none of {len(distinct)} values fits in {length} symbols. Give the length of the column's values.",
                values=len(distinct),
            )
        columns: list[list[str]] = [kept]
        for masked in range(1, length):
            if self.keep == "left":
                columns.append([value.ljust(length)[: length - masked] + ROOT * masked for value in kept])
            else:
                columns.append([ROOT * masked + value.rjust(length)[masked:] for value in kept])
        columns.append([ROOT] * len(kept))
        codes, labels = encode(columns)
        below = [np.full(len(names), self.alphabet**masked, dtype=np.int64) for masked, names in enumerate(labels)]
        return categorical("text", kept, codes, labels, leaves_below=below)

    def to_dict(self) -> dict[str, Any]:
        """The mask as plain JSON values."""
        return {"rule": "mask", "keep": self.keep, "length": self.length, "alphabet": self.alphabet}
