"""The slide negative binomial model of class sizes (Chen and Keller-McNulty, Estimation of identification disclosure risk in
microdata, 1998).

Every class of the population has one record, and as many more as a negative binomial draw (α, β) gives. A record is in the
sample with chance π. With r = β / (1 − (1 − π)(1 − β)) the sample has, of K classes of the population, on average
    K π r^α (1 + α (1 − π)(1 − r) / π)                          classes of one record, and
    K r^α α (1 − r) [2 (1 − r (1 − π)) − (1 − α)(1 − π)(1 − r)] / 2     of two.
K is taken from the sample by Shlosser's estimator as Haas and Stokes modified it; α and r solve both equations for what the
sample has. The population then has K β^α classes of one record.
"""

from __future__ import annotations

import math

import numpy as np

from anon_spark.assessment.population.special import Reals

ROUNDS = 100
CLOSE = 1e-9  # of both equations, relative
STARTS = tuple((alpha, ratio) for alpha in (0.05, 0.3, 1.0, 3.0, 15.0) for ratio in (0.05, 0.3, 0.7, 0.95))


def slide_uniques(sizes: Reals, classes: Reals, fraction: float) -> float | None:
    """Classes of one record in the population that a fraction was drawn from; None where the equations have no solution.

    Of several solutions the one whose population has nearest to as many records as it should.
    """
    single, double = (float(classes[sizes == size].sum()) for size in (1, 2))
    if single == 0:
        return 0.0
    if double == 0 or not 0 < fraction < 1:
        return None
    count = classes_of_population(sizes, classes, fraction)
    if not math.isfinite(count) or count <= 0:
        return None
    population, best = float(sizes @ classes) / fraction, (math.inf, None)
    for start in STARTS:
        solution = _solved(start, single / count, double / count, fraction)
        if solution is not None:
            alpha, ratio = solution
            beta = ratio * fraction / (1 - ratio * (1 - fraction))
            off = abs(math.log(count * (1 + alpha * (1 - beta) / beta) / population))
            best = min(best, (off, count * beta**alpha), key=lambda pair: pair[0])
    return best[1]


def classes_of_population(sizes: Reals, classes: Reals, fraction: float) -> float:
    """Shlosser's estimate of the number of classes of the population, modified (Haas and Stokes, 1998)."""
    single, rest = float(classes[sizes == 1].sum()), 1 - fraction
    unseen = float(classes @ rest**sizes)
    once = float(classes @ (sizes * fraction * rest ** (sizes - 1)))
    twice = float(classes @ (sizes * fraction**2 * (1 - fraction**2) ** (sizes - 1)))
    both = float(classes @ ((1 - fraction**2) ** sizes - rest**sizes))  # (1 − π)^i ((1 + π)^i − 1)
    if once == 0 or both == 0:
        return float(classes.sum())
    return float(classes.sum() + single * (twice / both) * (unseen / once) ** 2)


def _solved(start: tuple[float, float], single: float, double: float, fraction: float) -> tuple[float, float] | None:
    """α and r from one start, by Newton's method with halved steps on ln α and the logit of r; None if it gets nowhere."""
    place = np.array([math.log(start[0]), math.log(start[1] / (1 - start[1]))])
    target = np.log([single, double])
    off = _logs(place, fraction) - target
    for _ in range(ROUNDS):
        if np.abs(off).max() < CLOSE:
            return math.exp(place[0]), 1 / (1 + math.exp(-place[1]))
        step = np.linalg.lstsq(_derivatives(place, fraction), off, rcond=None)[0]
        step *= min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        for _ in range(30):
            tried = _logs(place - step, fraction) - target
            if np.isfinite(tried).all() and np.abs(tried).max() < np.abs(off).max():
                break
            step = step / 2
        else:
            return None
        place, off = place - step, tried
        if np.abs(place).max() > 40:
            return None
    return None


def _logs(place: Reals, fraction: float) -> Reals:
    """Logarithms of the expected classes of one and of two records, per class of the population."""
    alpha, ratio, rest = math.exp(min(place[0], 50.0)), 1 / (1 + math.exp(-place[1])), 1 - fraction
    other = 1 / (1 + math.exp(place[1]))  # 1 − r, to the last digit
    power = alpha * math.log(ratio)
    once = math.log(fraction) + power + math.log1p(alpha * rest * other / fraction)
    inner = 2 * (1 - ratio * rest) - (1 - alpha) * rest * other
    twice = power + math.log(alpha) + math.log(other) + math.log(inner / 2) if inner > 0 else math.nan
    return np.array([once, twice])


def _derivatives(place: Reals, fraction: float) -> Reals:
    step = 1e-6
    columns = [
        (_logs(place + shift, fraction) - _logs(place - shift, fraction)) / (2 * step) for shift in np.eye(2) * step
    ]
    return np.array(columns).T
