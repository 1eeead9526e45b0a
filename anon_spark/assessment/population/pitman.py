"""Pitman's model of class sizes (Hoshino, Applying Pitman's sampling formula to microdata disclosure risk assessment, 2001).

Records come one by one; with u classes among n records, the next one opens a new class with chance (θ + uα) / (θ + n), and
joins a class of size j with chance (j − α) / (θ + n). A sample of a population follows the same model with the same θ and α:
these are fitted to the sample, and the population is what they expect of N records. 0 < α < 1: sizes have a long tail, and
classes never end. α = −κ < 0: there are m = θ / κ classes in all, and κ says how evenly records are spread over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from anon_spark.assessment.population.special import Reals, digamma, digamma_of, log_gamma_ratio

STEPS = 120  # of a bisection, at most: it ends when floats do
TAILED = [*np.geomspace(1e-5, 0.05, 12).tolist(), *np.linspace(0.1, 0.95, 18).tolist(), 0.98, 0.99, 0.999, 0.9999]
EVEN = np.geomspace(1e-3, 1e4, 29).tolist()  # beyond the last, classes are as good as equally likely

Slope = Callable[[float], float]


def pitman_uniques(sizes: Reals, classes: Reals, population: float) -> float | None:
    """Expected classes of one record in a population of so many; None where the likelihood has no maximum.

    sizes, classes: how many classes of the sample have each size. The expectation is exact; Hoshino's paper gives its limit for
    a large population, which is far off where θ is as large as the population.
    """
    records, total = float(sizes @ classes), float(classes.sum())
    if total < 2 or total >= records * (1 - 1e-12):
        return None  # all alike, or no two alike: nothing tells θ from α
    fitted = next(_fits(sizes, classes, records, total), None)
    if fitted is None:
        return None
    theta, alpha = fitted
    # a record is alone if each of the others opened or joined another class: Π (θ + α + i − 1) / (θ + i) for 0 < i < N
    alone = log_gamma_ratio(theta + alpha, population - 1) - log_gamma_ratio(theta + 1, population - 1)
    uniques = population * math.exp(alone)
    return uniques if math.isfinite(uniques) and 0 <= uniques <= population else None


def _fits(sizes: Reals, classes: Reals, records: float, total: float) -> Iterator[tuple[float, float]]:
    """θ and α of greatest likelihood: where its slope in α (or κ), at the best θ of each, falls through 0."""
    larger, of_larger = sizes[sizes > 1], classes[sizes > 1]

    def tailed(alpha: float) -> float:
        theta = _theta(alpha, records, total)
        opened = (digamma(theta / alpha + total) - digamma(theta / alpha + 1)) / alpha  # Σ 1 / (θ + iα)
        joined = float(of_larger @ (digamma_of(larger - alpha) - digamma(1 - alpha)))
        return ((total - 1) - theta * opened) / alpha - joined

    def even(kappa: float) -> float:
        most = _most(kappa, records, total)
        joined = float(of_larger @ (digamma_of(larger + kappa) - digamma(1 + kappa)))
        return (total - 1) / kappa - most * (digamma(most * kappa + records) - digamma(most * kappa + 1)) + joined

    alpha = _falls(tailed, TAILED)
    if alpha is not None:
        yield _theta(alpha, records, total), alpha
    kappa = _falls(even, EVEN)
    if kappa is None and even(EVEN[-1]) > 0:
        kappa = EVEN[-1]
    if kappa is not None and math.isfinite(most := _most(kappa, records, total)):
        yield most * kappa, -kappa


def _theta(alpha: float, records: float, total: float) -> float:
    """θ of greatest likelihood for one α; nan where there is none. θ > −α."""

    def slope(apart: float) -> float:
        theta = math.exp(apart) - alpha
        opened = (digamma(theta / alpha + total) - digamma(theta / alpha + 1)) / alpha
        return opened - (digamma(theta + records) - digamma(theta + 1))

    apart = _zero(slope, math.log(1e-9), math.log(records) + 20)
    return math.exp(apart) - alpha


def _most(kappa: float, records: float, total: float) -> float:
    """The number of classes in all of greatest likelihood for one κ; nan where there is none."""

    def slope(more: float) -> float:
        most = total - 1 + math.exp(more)
        return digamma(most) - digamma(math.exp(more)) - kappa * (digamma(most * kappa + records) - digamma(most * kappa + 1))

    return total - 1 + math.exp(_zero(slope, math.log(1e-6), math.log(records) + 20))


def _falls(slope: Slope, scanned: list[float]) -> float | None:
    """The first place at which a slope falls from above 0 to below; None if there is none between the scanned ones."""
    before = math.nan
    for at, place in enumerate(scanned):
        now = slope(place)
        if before > 0 >= now:
            return _zero(slope, scanned[at - 1], place)
        before = now
    return None


def _zero(slope: Slope, low: float, high: float) -> float:
    """Where a falling slope is 0, by bisection; nan if it does not fall through 0 between both ends."""
    if not (slope(low) > 0 >= slope(high)):
        return math.nan
    for _ in range(STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return low
