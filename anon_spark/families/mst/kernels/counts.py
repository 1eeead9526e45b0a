"""Rows of each sensitive value of some tuples, and what they lack of the models that a class must keep: compiled loops.

Floats decide. What is within NEAR of a limit counts as failing, which is safe; equal counts are decided exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.histograms import NEAR, Floats

ENTROPY, RECURSIVE, CLOSE, ORDERED, BOUNDED = range(5)
KIND, FIRST, LAST, WHOLE = range(4)  # columns of `asked`


class Counts(NamedTuple):
    """Rows of each sensitive value, by tuple, and the models of the columns.

    Values of all columns are numbered through; where a model looks at the levels of a column, their values follow. Those of
    tuple i are from starts[i] to starts[i + 1] in entries: value and rows. asked: a row for each model: its kind, the first of
    its values and the one after the last, its whole number (l, or levels). numbers: two rows for each model: its limit, then for
    each value the share in the table, or the least that is allowed; and the greatest. room: rows of each value, to count in;
    zeros between two uses. kind: of each tuple, the same for tuples with the same entries.
    """

    starts: Ints
    entries: Ints
    asked: Ints
    numbers: Floats
    room: Ints
    kind: Codes


UNCOUNTED = Counts(
    np.zeros(1, dtype=np.int64),
    np.zeros((0, 2), dtype=np.int64),
    np.zeros((0, 4), dtype=np.int64),
    np.zeros((0, 0)),
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.int32),
)  # no column has a model


@compiled
def has_models(counts: Counts) -> bool:
    """Whether classes must keep a model."""
    return bool(counts.asked.shape[0] > 0)


@compiled
def counts_taken(counts: Counts, members: Codes) -> Counts:
    """The counts of some tuples, in the order given."""
    if counts.asked.shape[0] == 0:
        return counts
    starts = np.zeros(members.size + 1, dtype=np.int64)
    for place in range(members.size):
        starts[place + 1] = starts[place] + counts.starts[members[place] + 1] - counts.starts[members[place]]
    entries = np.empty((starts[-1], 2), dtype=np.int64)
    for place in range(members.size):
        before = counts.starts[members[place]] - starts[place]
        for entry in range(starts[place], starts[place + 1]):
            entries[entry, 0], entries[entry, 1] = counts.entries[before + entry, 0], counts.entries[before + entry, 1]
    return Counts(starts, entries, counts.asked, counts.numbers, counts.room, counts.kind[members])


@compiled
def count_in(counts: Counts, place: int) -> None:
    """Add a tuple to those that are counted in the room, if there are models."""
    add_rows(counts, place, counts.room)


@inner
def add_rows(counts: Counts, place: int, counted: Ints) -> None:
    """Add the rows of a tuple's values to those counted, if there are models."""
    if counts.asked.shape[0] > 0:
        for entry in range(counts.starts[place], counts.starts[place + 1]):
            counted[counts.entries[entry, 0]] += counts.entries[entry, 1]


@compiled
def lack(counts: Counts) -> float:
    """How far what is counted in the room is from keeping the models: 0 if it keeps all, about 1 for each that is far from it."""
    missing = 0.0
    for model in range(counts.asked.shape[0]):
        rows = counts.room[counts.asked[model, FIRST] : counts.asked[model, LAST]]
        whole, numbers = counts.asked[model, WHOLE], counts.numbers[2 * model : 2 * model + 2]
        if counts.asked[model, KIND] == ENTROPY:
            missing += lack_of_entropy(rows, whole, numbers[0, 0])
        elif counts.asked[model, KIND] == RECURSIVE:
            missing += lack_of_tail(rows, whole, numbers[0, 0])
        elif counts.asked[model, KIND] == BOUNDED:
            missing += outside(rows, numbers)
        else:
            missing += too_far(rows, whole, numbers[0], counts.asked[model, KIND] == ORDERED)
    return missing


@inner
def lack_of_entropy(rows: Ints, least: int, limit: float) -> float:
    """The share of ln l (`limit`) that the entropy lacks. Where all counts are equal, their number decides."""
    total, terms, several, most = 0, 0.0, 0, 0
    for count in rows:
        if count > 0:
            total, several, most = total + count, several + 1, max(most, count)
            terms += count * np.log(count)
    even = most * several == total
    above = np.log(max(1, total)) - terms / max(1, total) - limit
    if (even and several >= least) or (not even and above >= NEAR):
        return 0.0
    return float(max(NEAR, -above / limit))


@inner
def lack_of_tail(rows: Ints, least: int, c: float) -> float:
    """1 - c × rows of the l-th and all rarer values over those of the most frequent one."""
    most, total = np.zeros(least - 1, dtype=np.int64), 0  # most: the greatest counts, descending
    for count in rows:
        total, at = total + count, least - 2
        if count > most[at]:
            while at > 0 and most[at - 1] < count:
                most[at] = most[at - 1]
                at -= 1
            most[at] = count
    above = c * (total - most.sum()) / max(1, most[0]) - 1
    return 0.0 if above >= NEAR else max(NEAR, -above)


@inner
def too_far(rows: Ints, levels: int, numbers: Floats, ordered: bool) -> float:
    """By how much a distance from the table is above its limit. numbers: the limit, then the share of each value.

    Equal and hierarchical: ½ Σ |p - q|, the mean over so many levels; ordered: the mean of |Σ (p - q)| up to each value but the
    last.
    """
    total = max(1, rows.sum() // levels)
    far, ahead = 0.0, 0.0
    for value in range(rows.size):
        apart = rows[value] / total - numbers[value + 1]
        ahead += apart
        far += abs(ahead) if ordered else abs(apart)
    above = far / (max(1, rows.size - 1) if ordered else 2 * levels) - numbers[0]
    return 0.0 if above <= -NEAR or rows.size == 1 else max(NEAR, above)


@inner
def outside(rows: Ints, numbers: Floats) -> float:
    """The part of the values whose share is not between the two that are allowed, and by what shares they are outside."""
    total, missing = max(1, rows.sum()), 0.0
    for value in range(rows.size):
        share, least, most = rows[value] / total, numbers[0, value + 1], numbers[1, value + 1]
        if share <= least * (1 + NEAR) or share >= most * (1 - NEAR):
            missing += 1 / rows.size + max(share - most, least - share, 0.0)
    return missing
