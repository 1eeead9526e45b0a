"""How many rows of a class that fails a model must at least go, whatever nodes below do with it: compiled loops.

Classes that keep a model keep it together. So if a class fails, what a node below publishes of its rows is a part that keeps the
model, or nothing. Here is, for each model, a size that no such part exceeds. Rounding only makes it larger, and so the number of
rows that must go smaller.
"""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.histograms import NEAR, Answers, Floats

HOLDS = 1


@compiled
def removed_evenly(starts: Ints, counts: Ints, answers: Answers, c: float, least: int, log_l: float) -> Ints:
    """For entropy l (c = 0) and recursive (c, l): the most frequent values lose rows, down to the highest cap that holds.

    No other way to remove as many rows leaves more even counts.
    """
    removed = np.zeros(answers.size, dtype=np.int64)
    for index in range(answers.size):
        if answers[index] == HOLDS:
            continue
        own = counts[starts[index] : starts[index + 1]]
        total, most = own.sum(), own.max() if own.size else 0
        low, high = 0, most  # the highest cap that holds is at least low (0: none does), and below high
        while high - low > 1:
            cap = (low + high) // 2
            if _holds_capped(own, cap, c, least, log_l):
                low = cap
            else:
                high = cap
        if low == 0:
            removed[index] = total
            continue
        left = 0
        for count in own:
            left += min(count, low + 1)
        removed[index] = total - left + 1
    return removed


@inner
def _holds_capped(own: Ints, cap: int, c: float, least: int, log_l: float) -> bool:
    capped = np.minimum(own, cap)
    if c > 0:
        descending = -np.sort(-capped)
        tail = 0
        for position in range(least - 1, descending.size):
            tail += descending[position]
        return bool(descending[0] < c * tail * (1 + NEAR) + NEAR)
    total, terms = 0, 0.0
    for count in capped:
        total += count
        terms += count * np.log(count)
    return bool(np.log(total) - terms / total - log_l > -NEAR)


@compiled
def removed_for_levels(
    starts: Ints, values: Codes, counts: Ints, answers: Answers, shares: Floats, levels: Codes, most: float
) -> Ints:
    """For the distance on levels: a part of n rows has at most count / n of a value, so it lacks at least q − count / n of it."""
    removed = np.zeros(answers.size, dtype=np.int64)
    sums = np.zeros(shares.shape[1], dtype=np.int64)
    for index in range(answers.size):
        if answers[index] == HOLDS:
            continue
        first, last = starts[index], starts[index + 1]
        total = counts[first:last].sum()
        low, high = 0, total  # the most rows that a part may have are at least low, and below high
        while high - low > 1:
            size = (low + high) // 2
            lacking = 0.0
            for level in range(levels.shape[0]):
                for entry in range(first, last):
                    sums[levels[level, values[entry]]] += counts[entry]
                lacking += 1.0
                for entry in range(first, last):
                    code = levels[level, values[entry]]
                    if sums[code] > 0:
                        lacking -= min(shares[level, code], sums[code] / size)
                        sums[code] = 0
            if lacking / levels.shape[0] <= most + NEAR:
                low = size
            else:
                high = size
        removed[index] = total - low
    return removed


@compiled
def removed_in_order(
    starts: Ints, values: Codes, counts: Ints, answers: Answers, shares: Floats, most: float
) -> Ints:
    """For the ordered distance: a part has at most so many rows up to a value, and at most so many above it."""
    removed = np.zeros(answers.size, dtype=np.int64)
    sums = np.zeros(shares.size, dtype=np.int64)
    limit = (most + NEAR) * (shares.size - 1)
    for index in range(answers.size):
        if answers[index] == HOLDS:
            continue
        total = 0
        for entry in range(starts[index], starts[index + 1]):
            sums[values[entry]] = counts[entry]
            total += counts[entry]
        low, high = 0, total
        while high - low > 1:
            size = (low + high) // 2
            far, up_to, share = 0.0, 0, 0.0
            for value in range(shares.size - 1):
                up_to += sums[value]
                share += shares[value]
                far += max(0.0, share - up_to / size) + max(0.0, 1 - share - (total - up_to) / size)
            if far <= limit:
                low = size
            else:
                high = size
        for entry in range(starts[index], starts[index + 1]):
            sums[values[entry]] = 0
        removed[index] = total - low
    return removed


@compiled
def removed_for_gain(
    starts: Ints, values: Codes, counts: Ints, answers: Answers, greatest: Floats, least: Floats
) -> Ints:
    """For shares between two limits of each value: a part of n rows has at most greatest · n of a value, and at least least · n.

    least is 0 for β-likeness, where a value may be missing.
    """
    removed = np.zeros(answers.size, dtype=np.int64)
    for index in range(answers.size):
        if answers[index] == HOLDS:
            continue
        first, last = starts[index], starts[index + 1]
        total = counts[first:last].sum()
        if least[0] > 0 and last - first < least.size:
            removed[index] = total
            continue
        low, high = 0, total
        while high - low > 1:
            size = (low + high) // 2
            room, there = 0.0, True
            for entry in range(first, last):
                value = values[entry]
                room += min(float(counts[entry]), greatest[value] * size)
                there = there and counts[entry] >= least[value] * size * (1 - NEAR)
            if there and room >= size * (1 - NEAR):
                low = size
            else:
                high = size
        removed[index] = total - low
    return removed
