"""Distinct sensitive values of classes: up to l of each column, -1 where there are fewer."""

from __future__ import annotations

from anon_spark.compiled import inner
from anon_spark.kernels.classes import Codes


@inner
def add_values(target: Codes, more: Codes) -> None:
    """Add values that are not in `target` yet, up to its room."""
    for position in range(more.size):
        value = more[position]
        if value < 0:
            return
        for at in range(target.size):
            if target[at] == value:
                break
            if target[at] < 0:
                target[at] = value
                break


@inner
def is_diverse(values: Codes) -> bool:
    """Whether every sensitive column has l distinct values, that is, no room left."""
    for column in range(values.shape[0]):
        if values.shape[1] > 0 and values[column, values.shape[1] - 1] < 0:
            return False
    return True
