"""Masked texts: 13051 → 1305* → 130** → … → '*'."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy.coding import ROOT, categorical, encode
from anon_spark.model.hierarchy.hierarchy import Hierarchy
from anon_spark.model.hierarchy.rules import MaskRule


def build_mask(rule: MaskRule, values: Sequence[str]) -> Hierarchy:
    """The level table of distinct values under a rule of fixed length.

    A short value is filled with spaces on the masked side, so '1234' and '12345' meet at '1234*'; a value longer than
    `length` is left out. Weights come from the rule (alphabet ** masked symbols), not from the values.
    """
    length = rule.length or 0
    kept = [value for value in values if len(value) <= length]
    if not kept or not length:
        raise HierarchyError(
            f"mask: none of {len(values)} values fits in {length} symbols. Give the length of the column's values.",
            values=len(values),
        )
    columns: list[list[str]] = [kept]
    for masked in range(1, length):
        if rule.keep == "left":
            columns.append([value.ljust(length)[: length - masked] + ROOT * masked for value in kept])
        else:
            columns.append([ROOT * masked + value.rjust(length)[masked:] for value in kept])
    columns.append([ROOT] * len(kept))
    codes, labels = encode(columns)
    below = [np.full(len(names), rule.alphabet**masked, dtype=np.int64) for masked, names in enumerate(labels)]
    return categorical("text", kept, codes, labels, leaves_below=below, rule=rule)
