"""How large the crowd of a record is in the population, given how large it is in the sample.

A record of the population is in the sample with chance π. A class with f records in the sample has F in the population, drawn
like the trials that f successes take (Benedetti and Franconi, 1998; μ-Argus and sdcMicro estimate the same). Then
E[1 / F] = ∫₀¹ π y^(f−1) / (π + (1 − π) y) dy, and E[1 / F | f + 1] = π / (1 − π) · (1 / f − E[1 / F | f]).
"""

from __future__ import annotations

import math

import numpy as np

from anon_spark.assessment.population.special import Reals

EXACT = 10_000  # largest f by the recurrence; above, the first terms of the series are exact to eight digits
BEYOND = 200  # steps after which the start of a stable recurrence is forgotten


def expected_chance(sizes: Reals, fraction: float) -> Reals:
    """E[1 / F] for classes of these sizes in a sample of this fraction; 1 / f where the sample is everybody."""
    if fraction >= 1:
        return np.asarray(1 / sizes)
    largest = int(min(sizes.max(initial=1), EXACT))
    chances = _series(sizes, fraction)
    small = sizes <= largest
    chances[small] = _recurrence(largest, fraction)[sizes[small].astype(np.int64) - 1]
    return chances


def _series(sizes: Reals, fraction: float) -> Reals:
    rest = 1 - fraction
    return np.asarray(fraction / (sizes - rest) * (1 - fraction * rest / (sizes - rest) ** 2))


def _recurrence(largest: int, fraction: float) -> Reals:
    """The chances for f = 1 … largest, in the direction in which an error shrinks."""
    ratio = fraction / (1 - fraction)
    if ratio <= 1:
        chances = [-ratio * math.log(fraction)]
        for size in range(1, largest):
            chances.append(ratio * (1 / size - chances[-1]))
        return np.array(chances)
    last = largest + BEYOND
    chances = [float(_series(np.array([float(last)]), fraction)[0])]
    for size in range(last - 1, 0, -1):
        chances.append(1 / size - chances[-1] / ratio)
    return np.array(chances[::-1][:largest])
