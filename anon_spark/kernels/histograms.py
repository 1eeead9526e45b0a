"""Counts of sensitive values by tuple or class, and whether they keep a model: compiled loops.

Floats decide; a class within NEAR of a limit is left to exact arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled
from anon_spark.kernels.classes import Codes, Ints

Floats = NDArray[np.float64]
Answers = NDArray[np.int8]

NEAR = 1e-9
FAILS, HOLDS, UNSURE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Histograms:
    """Rows of each value of one column, by tuple: those of tuple i are from starts[i] to starts[i + 1]."""

    starts: Ints
    values: Codes
    counts: Ints

    @property
    def size(self) -> int:
        return int(self.starts.size - 1)


def histograms_of(places: Ints, values: Ints, rows: Ints, size: int) -> Histograms:
    """From (place of the tuple, value, rows) in any order; equal pairs are added."""
    width = int(values.max(initial=0)) + 1
    pairs, inverse = np.unique(places * width + values, return_inverse=True)
    counts = np.zeros(pairs.size, dtype=np.int64)
    np.add.at(counts, inverse.reshape(-1), rows)
    starts = np.searchsorted(pairs // width, np.arange(size + 1)).astype(np.int64)
    return Histograms(starts, (pairs % width).astype(np.int32), counts)


def by_class(tuples: Histograms, inverse: Codes, classes: int, width: int) -> Histograms:
    """The histograms of classes of tuples. width: how many values the column has."""
    return Histograms(*_added(tuples.starts, tuples.values, tuples.counts, inverse, classes, width))


@compiled
def _added(
    starts: Ints, values: Codes, counts: Ints, inverse: Codes, classes: int, width: int
) -> tuple[Ints, Codes, Ints]:
    first = np.zeros(classes + 1, dtype=np.int64)  # of the tuples of each class, in `order`
    for place in range(inverse.size):
        first[inverse[place] + 1] += 1
    for index in range(classes):
        first[index + 1] += first[index]
    at, order = first[:-1].copy(), np.empty(inverse.size, dtype=np.int64)
    for place in range(inverse.size):
        order[at[inverse[place]]] = place
        at[inverse[place]] += 1
    sums = np.zeros(width, dtype=np.int64)
    found = np.empty(width, dtype=np.int32)
    new_starts = np.zeros(classes + 1, dtype=np.int64)
    new_values, new_counts = np.empty(values.size, dtype=np.int32), np.empty(values.size, dtype=np.int64)
    end = 0
    for index in range(classes):
        several = 0
        for position in range(first[index], first[index + 1]):
            place = order[position]
            for entry in range(starts[place], starts[place + 1]):
                value = values[entry]
                if sums[value] == 0:
                    found[several] = value
                    several += 1
                sums[value] += counts[entry]
        for one in range(several):
            value = found[one]
            new_values[end], new_counts[end] = value, sums[value]
            sums[value] = 0
            end += 1
        new_starts[index + 1] = end
    return new_starts, new_values[:end], new_counts[:end]


@compiled
def sum_of_each(starts: Ints, counts: Ints) -> Ints:
    """Rows of each class."""
    sums = np.zeros(starts.size - 1, dtype=np.int64)
    for index in range(sums.size):
        for entry in range(starts[index], starts[index + 1]):
            sums[index] += counts[entry]
    return sums


@compiled
def judge_distinct(starts: Ints, least: int) -> Answers:
    """Whether classes have so many values."""
    answers = np.empty(starts.size - 1, dtype=np.int8)
    for index in range(answers.size):
        answers[index] = HOLDS if starts[index + 1] - starts[index] >= least else FAILS
    return answers


@compiled
def judge_entropy(starts: Ints, counts: Ints, log_l: float, whole_l: int) -> Answers:
    """Whether the entropy reaches ln l; whole_l: l rounded up, which decides where all counts are equal."""
    answers = np.empty(starts.size - 1, dtype=np.int8)
    for index in range(answers.size):
        total, terms, even = 0, 0.0, True
        for entry in range(starts[index], starts[index + 1]):
            count = counts[entry]
            total += count
            terms += count * np.log(count)
            even = even and count == counts[starts[index]]
        if even:
            answers[index] = HOLDS if starts[index + 1] - starts[index] >= whole_l else FAILS
            continue
        above = np.log(total) - terms / total - log_l
        answers[index] = UNSURE if abs(above) < NEAR else HOLDS if above > 0 else FAILS
    return answers


@compiled
def judge_recursive(starts: Ints, counts: Ints, c: float, least: int) -> Answers:
    """Whether the most frequent value has less than c times the rows of the values from the least-th on."""
    answers = np.empty(starts.size - 1, dtype=np.int8)
    for index in range(answers.size):
        if starts[index + 1] - starts[index] < least:
            answers[index] = FAILS
            continue
        descending = -np.sort(-counts[starts[index] : starts[index + 1]])
        tail = 0
        for position in range(least - 1, descending.size):
            tail += descending[position]
        above = c * tail / descending[0] - 1
        answers[index] = UNSURE if abs(above) < NEAR else HOLDS if above > 0 else FAILS
    return answers


@compiled
def judge_levels(starts: Ints, values: Codes, counts: Ints, shares: Floats, levels: Codes, most: float) -> Answers:
    """Whether the mean over the levels of ½ Σ |p − q| is at most this. levels: code of each value on each level.

    One level, the values themselves, is the equal distance. shares: q of each code, one row per level.
    """
    answers = np.empty(starts.size - 1, dtype=np.int8)
    sums = np.zeros(shares.shape[1], dtype=np.int64)
    for index in range(answers.size):
        total = 0
        for entry in range(starts[index], starts[index + 1]):
            total += counts[entry]
        far = 0.0
        for level in range(levels.shape[0]):
            for entry in range(starts[index], starts[index + 1]):
                sums[levels[level, values[entry]]] += counts[entry]
            absent = 1.0
            for entry in range(starts[index], starts[index + 1]):
                code = levels[level, values[entry]]
                if sums[code] > 0:
                    far += abs(sums[code] / total - shares[level, code])
                    absent -= shares[level, code]
                    sums[code] = 0
            far += absent
        above = far / (2 * levels.shape[0]) - most
        answers[index] = UNSURE if abs(above) < NEAR else FAILS if above > 0 else HOLDS
    return answers


@compiled
def judge_ordered(starts: Ints, values: Codes, counts: Ints, shares: Floats, most: float) -> Answers:
    """Whether the mean of |Σ (p − q)| up to each value but the last is at most this. Values are coded ascending."""
    answers = np.empty(starts.size - 1, dtype=np.int8)
    sums = np.zeros(shares.size, dtype=np.int64)
    limit = most * (shares.size - 1)
    for index in range(answers.size):
        total = 0
        for entry in range(starts[index], starts[index + 1]):
            total += counts[entry]
            sums[values[entry]] = counts[entry]
        if total == 0:
            answers[index] = FAILS
            continue
        far, ahead = 0.0, 0.0
        for value in range(shares.size - 1):
            ahead += sums[value] / total - shares[value]
            far += abs(ahead)
        for entry in range(starts[index], starts[index + 1]):
            sums[values[entry]] = 0
        above = far - limit
        near = NEAR * shares.size
        answers[index] = UNSURE if abs(above) < near else FAILS if above > 0 else HOLDS
    return answers


@compiled
def judge_gain(starts: Ints, values: Codes, counts: Ints, shares: Floats, limits: Floats) -> Answers:
    """Whether p/q − 1 of every value is at most its limit."""
    answers = np.empty(starts.size - 1, dtype=np.int8)
    for index in range(answers.size):
        total = 0
        for entry in range(starts[index], starts[index + 1]):
            total += counts[entry]
        answer = HOLDS
        for entry in range(starts[index], starts[index + 1]):
            value = values[entry]
            gain = counts[entry] / total / shares[value] - 1
            near = NEAR * (1 + abs(limits[value]))
            if gain > limits[value] + near:
                answer = FAILS
                break
            if gain > limits[value] - near:
                answer = UNSURE
        answers[index] = answer
    return answers


@compiled
def judge_ratio(starts: Ints, values: Codes, counts: Ints, shares: Floats, most: float) -> Answers:
    """Whether every value of the table is there and |ln(p/q)| of each is below this."""
    answers = np.empty(starts.size - 1, dtype=np.int8)
    for index in range(answers.size):
        if starts[index + 1] - starts[index] < shares.size:
            answers[index] = FAILS
            continue
        total = 0
        for entry in range(starts[index], starts[index + 1]):
            total += counts[entry]
        answer = HOLDS
        for entry in range(starts[index], starts[index + 1]):
            above = abs(np.log(counts[entry] / total / shares[values[entry]])) - most
            if above > NEAR:
                answer = FAILS
                break
            if above > -NEAR:
                answer = UNSURE
        answers[index] = answer
    return answers
