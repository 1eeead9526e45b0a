"""Segments of bounded size of an order, cut where consecutive records differ least."""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled
from anon_spark.kernels.classes import Codes, Ints

UNREACHED = np.int64(np.iinfo(np.int64).max)


def segment_starts(steps: Ints, least: int, most: int) -> Ints:
    """Where segments of `least` to `most` records begin, so that the steps across borders add up to the least sum.

    steps[i] is the distance of record i to record i + 1. Where no number of such segments makes up the records, `least`
    is lowered just as far as needed. Ties: the smallest border. Cost: linear.
    """
    records = steps.size + 1
    if records <= most:
        return np.zeros(1, dtype=np.int64)
    segments = -(-records // most)
    if segments * least > records:
        least = records // segments
    return np.flatnonzero(cheapest_borders(steps, least, most))


@compiled
def cheapest_borders(steps: Ints, least: int, most: int) -> Ints:
    """1 for each record that begins a segment. C(i): least sum of steps across borders of the first i records."""
    records = steps.size + 1
    cost = np.full(records + 1, UNREACHED, dtype=np.int64)
    back = np.zeros(records + 1, dtype=np.int64)
    through = np.empty(records + 1, dtype=np.int64)  # C(j) + the step that a border after j crosses
    window = np.empty(records + 1, dtype=np.int64)  # candidates j by ascending `through`, a sliding minimum
    head, tail = 0, 0
    cost[0] = 0
    for i in range(least, records + 1):
        enters = i - least
        if cost[enters] != UNREACHED:
            through[enters] = cost[enters] + (steps[enters - 1] if 0 < enters < records else 0)
            while tail > head and through[window[tail - 1]] > through[enters]:
                tail -= 1
            window[tail] = enters
            tail += 1
        while tail > head and window[head] < i - most:
            head += 1
        if tail > head:
            cost[i], back[i] = through[window[head]], window[head]
    begins = np.zeros(records, dtype=np.int64)
    at = records
    while at > 0:
        at = back[at]
        begins[at] = 1
    return begins


@compiled
def steps_between(offsets: Ints, items: Codes) -> Ints:
    """In how many items each record differs from the next; items of a record are ascending."""
    steps = np.empty(max(offsets.size - 2, 0), dtype=np.int64)
    for record in range(steps.size):
        at, other = offsets[record], offsets[record + 1]
        end, last = offsets[record + 1], offsets[record + 2]
        same = 0
        while at < end and other < last:
            if items[at] == items[other]:
                same += 1
                at += 1
                other += 1
            elif items[at] < items[other]:
                at += 1
            else:
                other += 1
        steps[record] = last - offsets[record] - 2 * same
    return steps


def block_starts(starts: Ints, records: int, least: int) -> Ints:
    """Where blocks of whole segments begin: closed when they have `least` records and at least half as many remain."""
    begins = [0]
    for start in starts[1:].tolist():
        if start - begins[-1] >= least and 2 * (records - start) >= least:
            begins.append(start)
    return np.array(begins, dtype=np.int64)


def eligible_starts(starts: Ints, labels: Ints, spacing: int) -> Ints | None:
    """Starts of blocks, merged with the next one (the last with the one before) until no label is too frequent.

    A label may be on one record of every `spacing`. None if that does not even hold for all records together.
    """
    borders = [*starts.tolist(), labels.size]

    def is_eligible(first: int, last: int) -> bool:
        _, counts = np.unique(labels[first:last], return_counts=True)
        return int(counts.max()) * spacing <= last - first

    at = 0
    while at + 1 < len(borders):
        if is_eligible(borders[at], borders[at + 1]):
            at += 1
        elif len(borders) == 2:
            return None
        elif at + 2 < len(borders):
            del borders[at + 1]
        else:
            del borders[at]
            at -= 1
    return np.array(borders[:-1], dtype=np.int64)
