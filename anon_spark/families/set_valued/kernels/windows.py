"""Orders by the cost of windows: in a ring every k neighbouring records are published as one row.

W = Σ over windows of Σ over items of min(c, k - c), with c the records of the window that have the item: the bits that
a release flips. For k above 2 distances between neighbours alone do not determine W.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.kernels.bitmaps import Sets, Words, columns_of, in_common, size_of
from anon_spark.kernels.classes import Codes, Ints

SPAN = 325
MAX_SWEEPS = 20
LEAST_GAIN = 0.005
FAR = np.int64(np.iinfo(np.int64).max)


@compiled
def window_neighbours(sets: Sets, order: Ints, k: int) -> Ints:
    """Greedy order: start with the first record, append the one nearest to the last k - 1; later ones weigh more.

    Ties: as in `order`. Cost: records² distances; k rows of them in memory.
    """
    count = order.size
    ring = np.empty(count, dtype=np.int64)
    placed = np.zeros(count, dtype=np.bool_)
    near = np.zeros(count, dtype=np.int64)  # S: weighted distance to the last k - 1
    plain = np.zeros(count, dtype=np.int64)  # R: the same, unweighted
    rows = np.zeros((max(k - 1, 1), count), dtype=np.int64)  # distances to the last k - 1, by rank modulo k - 1
    sizes, shared = np.diff(sets.offsets), np.empty(sets.bits.shape[0], dtype=np.int64)
    columns = columns_of(sets.bits)
    best = 0
    for rank in range(count):
        record, row = order[best], rank % rows.shape[0]
        ring[rank], placed[best] = record, True
        in_common(sets, record, columns, 0, shared)
        best = -1
        for at in range(count):
            if placed[at]:
                continue
            distance = sizes[order[at]] + sizes[record] - 2 * shared[order[at]]
            near[at] += (k - 1) * distance - plain[at]
            plain[at] += distance - rows[row, at]
            rows[row, at] = distance
            if best < 0 or near[at] < near[best]:
                best = at
    return ring


class Windows(NamedTuple):
    """Per rank e of a ring: the window of the k - 1 records up to e, and the cost of the window of k records up to e.

    Of the shorter window: its cost F, the items that cost less with one more record (`less`: 2c ≥ k), and those that do
    not cost more (`rest`: 2(c + 1) > k), both as columns of bitmaps: [word, rank].
    """

    short: Ints
    less: Words
    rest: Words
    cost: Ints


@compiled
def improved_ring(sets: Sets, order: Ints, k: int, span: int) -> Ints:
    """A ring improved by moving single records, at most `span` ranks, to the gap that saves most, until a sweep saves little.

    Guarantee: deterministic; W never increases. Cost: per sweep records × 2 span bitmap comparisons.
    """
    ring = order.copy()
    count = ring.size
    if k < 2 or count < 2 * k:
        return ring
    words = sets.bits.shape[1]
    windows = Windows(
        np.zeros(count, dtype=np.int64),
        np.zeros((words, count), dtype=np.uint64),
        np.zeros((words, count), dtype=np.uint64),
        np.zeros(count, dtype=np.int64),
    )
    counts = np.zeros(words * 64, dtype=np.int32)
    refresh(sets, ring, k, windows, 0, count, counts)
    place = np.empty(count, dtype=np.int64)
    for rank in range(count):
        place[ring[rank]] = rank
    total = windows.cost.sum()
    for _ in range(MAX_SWEEPS):
        saved = np.int64(0)
        for record in ring.copy():
            change, gap = best_move(sets, ring, k, span, windows, place[record], counts)
            if change < 0:
                move(ring, windows, place, place[record], gap, k)
                refresh_moved(sets, ring, k, windows, place[record], gap, counts)
                saved -= change
        total -= saved
        if saved < LEAST_GAIN * (total + saved):
            break
    return ring


@inner
def shift_counts(sets: Sets, record: int, counts: Codes, times: int, k: int) -> int:
    """Add or remove a record; returns the change of Σ min(c, k - c) over all items."""
    change = np.int64(0)
    for at in range(sets.offsets[record], sets.offsets[record + 1]):
        item = sets.items[at]
        before = counts[item]
        counts[item] = before + times
        change += min(before + times, k - before - times) - min(before, k - before)
    return int(change)


@compiled
def refresh(sets: Sets, ring: Ints, k: int, windows: Windows, first: int, number: int, counts: Codes) -> None:
    """Compute the windows of `number` ranks from `first` on; `counts` is all zero before and after."""
    count = ring.size
    total = np.int64(0)
    for back in range(1, k):  # the short window up to first - 1
        total += shift_counts(sets, ring[(first - back) % count], counts, 1, k)
    for step in range(number):
        rank = (first + step) % count
        total += shift_counts(sets, ring[rank], counts, 1, k)
        windows.cost[rank] = total
        total += shift_counts(sets, ring[(rank - k + 1) % count], counts, -1, k)
        windows.short[rank] = total
        windows.less[:, rank] = np.uint64(0)
        windows.rest[:, rank] = np.uint64(0)
        for back in range(k - 1):
            record = ring[(rank - back) % count]
            for at in range(sets.offsets[record], sets.offsets[record + 1]):
                item = sets.items[at]
                bit = np.uint64(1) << np.uint64(item & 63)
                if 2 * counts[item] >= k:
                    windows.less[item >> 6, rank] |= bit
                if 2 * (counts[item] + 1) > k:
                    windows.rest[item >> 6, rank] |= bit
    for back in range(k - 1):
        shift_counts(sets, ring[(first + number - 1 - back) % count], counts, -1, k)


@inner
def without(sets: Sets, ring: Ints, k: int, rank: int, counts: Codes) -> int:
    """Cost of the k - 1 windows across a rank after its record is removed."""
    count = ring.size
    total, summed = np.int64(0), np.int64(0)
    for back in range(1, k):
        total += shift_counts(sets, ring[(rank - back) % count], counts, 1, k)
    for ahead in range(1, k):
        total += shift_counts(sets, ring[(rank + ahead) % count], counts, 1, k)
        summed += total
        total += shift_counts(sets, ring[(rank - k + ahead) % count], counts, -1, k)
    for ahead in range(1, k):
        shift_counts(sets, ring[(rank + ahead) % count], counts, -1, k)
    return int(summed)


@compiled
def best_move(
    sets: Sets, ring: Ints, k: int, span: int, windows: Windows, rank: int, counts: Codes
) -> tuple[int, int]:
    """The least change of W by moving the record of a rank, and the gap (as steps ahead of the rank) it would go to.

    Only gaps whose windows do not overlap those of the rank, so that the changes add up. Ties: the first gap ahead.
    """
    count, record = ring.size, ring[rank]
    size = size_of(sets, record)
    gain = -without(sets, ring, k, rank, counts)
    for ahead in range(k):
        gain += windows.cost[(rank + ahead) % count]
    best, gap = np.int64(0), -1
    for side in range(2):
        first, last = (k - 1, min(span, count - k)) if side == 0 else (max(count - span, k - 1, span + 1), count - k)
        if first > last:
            continue
        # ins(gap) = Σ G over gap … gap + k - 1, less Σ cost over gap + 1 … gap + k - 1: two running sums
        joined, same = np.empty(last - first + k, dtype=np.int64), np.empty(last - first + k, dtype=np.int64)
        in_common(sets, record, windows.rest, rank + first, joined)
        in_common(sets, record, windows.less, rank + first, same)
        for step in range(joined.size):
            joined[step] = windows.short[(rank + first + step) % count] + size - joined[step] - same[step]
        inserted = np.int64(0)
        for step in range(k - 1):
            inserted += joined[step] - windows.cost[(rank + first + step) % count]
        inserted += windows.cost[(rank + first) % count]  # the first of each k windows is not included yet
        for here in range(first, last + 1):
            step = here - first
            inserted += joined[step + k - 1] - windows.cost[(rank + here + k - 1) % count]
            if inserted - gain < best:
                best, gap = inserted - gain, here
            inserted += windows.cost[(rank + here + 1) % count] - joined[step]
    return int(best), int(gap)


@compiled
def move(ring: Ints, windows: Windows, place: Ints, rank: int, gap: int, k: int) -> None:
    """Move the record of a rank behind the record `gap` ranks ahead, shifting the shorter side of the ring."""
    count, record = ring.size, ring[rank]
    ahead = gap <= count - 1 - gap
    steps = gap if ahead else count - 1 - gap
    for step in range(steps):
        to = (rank + step) % count if ahead else (rank - step) % count
        source = (to + 1) % count if ahead else (to - 1) % count
        ring[to] = ring[source]
        place[ring[to]] = to
        windows.short[to], windows.cost[to] = windows.short[source], windows.cost[source]
    for word in range(windows.less.shape[0]):
        pulled(windows.less[word], rank, steps, ahead)
        pulled(windows.rest[word], rank, steps, ahead)
    landed = (rank + steps) % count if ahead else (rank - steps) % count
    ring[landed] = record
    place[record] = landed


@inner
def pulled(values: Words, rank: int, steps: int, ahead: bool) -> None:
    """Let the values of the next `steps` ranks of a ring, ahead or behind, each take the place of the one before it."""
    to, count = rank, values.size
    for _ in range(steps):
        source = to + 1 if ahead else to - 1
        source = 0 if source == count else count - 1 if source < 0 else source
        values[to] = values[source]
        to = source


@compiled
def refresh_moved(sets: Sets, ring: Ints, k: int, windows: Windows, landed: int, gap: int, counts: Codes) -> None:
    """Recompute the windows that a move changed: those over its old and its new place."""
    count = ring.size
    ahead = gap <= count - 1 - gap
    left = (landed - gap) % count if ahead else (landed + count - 1 - gap) % count
    refresh(sets, ring, k, windows, left, k, counts)
    refresh(sets, ring, k, windows, landed, k, counts)
