"""Measures of attribute disclosure of classes, from the counts of sensitive values in each.

A class of n rows has c_s rows with value s; p_s = c_s / n, and q_s is the share of s in the whole table.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled, inner
from anon_spark.kernels.classes import Ints

Reals = NDArray[np.float64]

MEASURES = ("values", "entropy_l", "c_2", "c_3", "t_equal", "t_ordered", "beta", "delta")


def prefixes(shares: Reals) -> Reals:
    """Q_i = q_1 + … + q_i of the values in ascending order, and Q_1 + … + Q_i, each with a 0 before it."""
    running = np.concatenate([[0.0], np.cumsum(shares)])
    return np.stack([running, np.concatenate([[0.0], np.cumsum(running[1:])])])


@compiled
def class_measures(starts: Ints, codes: Ints, counts: Ints, shares: Reals, sums: Reals) -> Reals:
    """MEASURES of each class, one row per class.

    starts: where each class begins in codes and counts, and the end; codes: of its values, ascending in every class; shares: q_s
    by code (empty: unknown, then the last four are nan); sums: `prefixes` of the shares.
    values: how many; entropy_l: exp(−Σ p ln p); c_2, c_3: r_1 / (r_l + r_{l+1} + …) for descending counts, infinite with fewer
    than l values; t_equal: ½ Σ |p − q|; t_ordered: the mean of |P_i − Q_i| over all but the last value; beta: the greatest
    (p − q) / q, or 0; delta: the greatest |ln(p / q)| over values of the class.
    """
    classes = starts.size - 1
    found = np.empty((classes, 8), dtype=np.float64)
    for one in range(classes):
        first, last = starts[one], starts[one + 1]
        ordered = np.sort(counts[first:last])[::-1]
        total = ordered.sum()
        log_sum = 0.0
        for count in ordered:
            log_sum += count * math.log(count)
        found[one, 0] = ordered.size
        found[one, 1] = math.exp(math.log(total) - log_sum / total)
        for l in range(2, 4):  # noqa: E741 - the papers' name
            tail = ordered[l - 1 :].sum()
            found[one, l] = ordered[0] / tail if tail > 0 else math.inf
        if shares.size == 0:
            found[one, 4:] = math.nan
            continue
        equal, beta, delta = 0.0, 0.0, 0.0
        for at in range(first, last):
            p, q = counts[at] / total, shares[codes[at]]
            if p > q:
                equal += p - q
                beta = max(beta, (p - q) / q)
            delta = max(delta, abs(math.log(p / q)))
        found[one, 4] = equal
        found[one, 5] = _ordered(codes[first:last], counts[first:last], total, sums)
        found[one, 6] = beta
        found[one, 7] = delta
    return found


@inner
def _ordered(codes: Ints, counts: Ints, total: int, sums: Reals) -> float:
    """The mean of |P_i − Q_i|: P_i is constant between two values of the class, so only its own values cost time."""
    values = sums.shape[1] - 1
    if values < 2:
        return 0.0
    distance, below = 0.0, 0
    for at in range(codes.size + 1):
        # P_i = below / total for the values before the next one of the class, the last value of the table left out
        low = codes[at - 1] if at > 0 else 0
        high = min(codes[at] if at < codes.size else values - 1, values - 1)
        if high > low:
            share = below / total
            cross = low + 1 + np.searchsorted(sums[0, low + 1 : high + 1], share)  # the first Q_i ≥ P
            distance += share * (cross - 1 - low) - (sums[1, cross - 1] - sums[1, low])
            distance += sums[1, high] - sums[1, cross - 1] - share * (high - cross + 1)
        if at < codes.size:
            below += counts[at]
    return float(max(0.0, distance) / (values - 1))
