"""Digamma and ratios of gamma functions, for likelihoods."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

_LARGE = 10.0  # from here on the asymptotic series is exact to rounding
_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 5 / 660)  # of 1 / x², 1 / x⁴, …


def digamma(value: float) -> float:
    """ψ(x) for x > 0, by the recurrence ψ(x) = ψ(x + 1) − 1 / x up to where the asymptotic series is exact."""
    below = 0.0
    while value < _LARGE:
        below += 1 / value
        value += 1
    return math.log(value) - 0.5 / value - float(_series(1 / value**2)) - below


def digamma_of(values: Reals) -> Reals:
    """ψ of each of some numbers, all above 0."""
    shifted, below = values.copy(), np.zeros_like(values)
    while (small := shifted < _LARGE).any():
        below[small] += 1 / shifted[small]
        shifted[small] += 1
    return np.asarray(np.log(shifted) - 0.5 / shifted - _series(1 / shifted**2) - below)


def _series(square: Any) -> Any:
    total = 0.0
    for factor in reversed(_SERIES):
        total = (total + factor) * square
    return total


def log_gamma_ratio(start: float, step: float) -> float:
    """ln Γ(start + step) − ln Γ(start), without the loss of digits that two large logarithms have in their difference."""
    if start < 1e6 or start + step < 1e6:
        return math.lgamma(start + step) - math.lgamma(start)
    end = start + step
    return (end - 0.5) * math.log1p(step / start) + step * math.log(start) - step + (1 / end - 1 / start) / 12
