"""Orders by the cost of windows: in a ring every k neighbouring records are published as one row.

W = Σ over windows of Σ over items of min(c, k - c), with c the records of the window that have the item: the bits that
a release flips. For k above 2 distances between neighbours alone do not determine W.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled, inner, innermost
from anon_spark.kernels.bitmaps import Bytes, Sets, columns_of, in_common, in_common_within, size_of
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
    near = np.zeros(count, dtype=np.int64)  # S: weighted distance to the last k - 1; far for records that are placed
    plain = np.zeros(count, dtype=np.int64)  # R: the same, unweighted
    rows = np.zeros((max(k - 1, 1), count), dtype=np.int64)  # distances to the last k - 1, by rank modulo k - 1
    sizes, shared = (sets.offsets[1:] - sets.offsets[:-1])[order], np.empty(count, dtype=np.int64)
    columns = columns_of(sets.bits[order])
    best = 0
    for rank in range(count):
        row, size = rows[rank % rows.shape[0]], sizes[best]
        ring[rank], near[best] = order[best], FAR // 2
        in_common(sets, order[best], columns, 0, shared)
        least = FAR
        for at in range(count):  # without branches: the processor takes several records at a time
            distance = sizes[at] + size - 2 * shared[at]
            near[at] += (k - 1) * distance - plain[at]
            plain[at] += distance - row[at]
            row[at] = distance
            least = min(least, near[at])
        best = 0
        while near[best] > least:
            best += 1
    return ring


class Windows(NamedTuple):
    """Per rank e of a ring: the window of the k - 1 records up to e, and the cost of the window of k records up to e.

    Of the shorter window: its cost F, the items that cost less with one more record (`less`: 2c ≥ k), and those that do
    not cost more (`rest`: 2(c + 1) > k), both as columns of bitmaps: [byte, rank].
    """

    short: Ints
    less: Bytes
    rest: Bytes
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
    width = sets.bits.shape[1] * 64
    windows = Windows(
        np.zeros(count, dtype=np.int64),
        np.zeros((width // 8, count), dtype=np.uint8),
        np.zeros((width // 8, count), dtype=np.uint8),
        np.zeros(count, dtype=np.int64),
    )
    counts = np.zeros(width, dtype=np.int32)
    refresh(sets, ring, k, windows, 0, count, counts)
    place = np.empty(count, dtype=np.int64)
    for rank in range(count):
        place[ring[rank]] = rank
    total = windows.cost.sum()
    room = room_for(k, span)
    for _ in range(MAX_SWEEPS):
        saved = np.int64(0)
        for record in ring.copy():
            change, gap = best_move(sets, ring, k, span, windows, place[record], counts, room)
            if change < 0:
                move(ring, windows, place, place[record], gap, k)
                refresh_moved(sets, ring, k, windows, place[record], gap, counts)
                saved -= change
        total -= saved
        if saved < LEAST_GAIN * (total + saved):
            break
    return ring


@innermost
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
        windows.less[:, rank] = 0
        windows.rest[:, rank] = 0
        for back in range(k - 1):
            record = ring[(rank - back) % count]
            for at in range(sets.offsets[record], sets.offsets[record + 1]):
                item = sets.items[at]
                bit = np.uint8(1 << (item & 7))
                if 2 * counts[item] >= k:
                    windows.less[item >> 3, rank] |= bit
                if 2 * (counts[item] + 1) > k:
                    windows.rest[item >> 3, rank] |= bit
    for back in range(k - 1):
        shift_counts(sets, ring[(first + number - 1 - back) % count], counts, -1, k)


@innermost
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


class Room(NamedTuple):
    """Memory of `best_move`, for all records of a ring."""

    joined: Ints
    same: Ints
    cost: Ints
    short: Ints
    few: Bytes


@inner
def room_for(k: int, span: int) -> Room:
    most = 2 * (span + k)
    numbers = np.empty((4, most), dtype=np.int64)
    return Room(numbers[0], numbers[1], numbers[2], numbers[3], np.empty(most, dtype=np.uint8))


@innermost
def best_move(
    sets: Sets, ring: Ints, k: int, span: int, windows: Windows, rank: int, counts: Codes, room: Room
) -> tuple[int, int]:
    """The least change of W by moving the record of a rank, and the gap (as steps ahead of the rank) it would go to.

    Only gaps whose windows do not overlap those of the rank, so that the changes add up. Ties: the first gap ahead.
    """
    count, record = ring.size, ring[rank]
    size = size_of(sets, record)
    gain = -without(sets, ring, k, rank, counts)
    for ahead in range(k):
        gain += windows.cost[(rank + ahead) % count]
    # gaps as ranks from this one on: ahead, then behind
    first = (k - 1, max(count - span, k - 1, span + 1) - count)
    last = (min(span, count - k), -k)
    begin = min(first)
    # change(gap) = cost at the gap + Σ (joined - cost) over gap … gap + k - 1
    number = max(last) - begin + k
    joined, same, cost, short = room.joined[:number], room.same[:number], room.cost[:number], room.short[:number]
    in_common_within(sets, record, windows.rest, rank + begin, room.few[:number], joined)
    in_common_within(sets, record, windows.less, rank + begin, room.few[:number], same)
    round_from(windows.cost, rank + begin, cost)
    round_from(windows.short, rank + begin, short)
    for step in range(joined.size):
        joined[step] = short[step] + size - joined[step] - same[step] - cost[step]
    for ahead in range(k):
        for step in range(joined.size - k + 1):
            cost[step] += joined[step + ahead]
    best, gap = np.int64(0), -1
    for side in range(2):
        changes, least = cost[first[side] - begin : max(first[side], last[side] + 1) - begin], FAR
        for step in range(changes.size):
            least = min(least, changes[step])
        if least - gain < best:
            best, step = least - gain, 0
            while changes[step] > least:
                step += 1
            gap = (first[side] + step) % count
    return int(best), int(gap)


@innermost
def round_from(values: Ints, first: int, found: Ints) -> None:
    """Values from one on, round the ring; fills `found`."""
    at = first % values.size
    for place in range(found.size):
        found[place] = values[at]
        at = at + 1 if at + 1 < values.size else 0


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
    for byte in range(windows.less.shape[0]):
        pulled(windows.less[byte], rank, steps, ahead)
        pulled(windows.rest[byte], rank, steps, ahead)
    landed = (rank + steps) % count if ahead else (rank - steps) % count
    ring[landed] = record
    place[record] = landed


@innermost
def pulled(values: Bytes, rank: int, steps: int, ahead: bool) -> None:
    """Let the values of the next `steps` ranks of a ring, ahead or behind, each take the place of the one before it."""
    to, count = rank, values.size
    first = rank if ahead else rank - steps
    if first >= 0 and first + steps < count:  # the processor moves many values at a time
        part = values[first : first + steps + 1]
        if ahead:
            for at in range(steps):
                part[at] = part[at + 1]
        else:
            for at in range(steps):
                part[steps - at] = part[steps - at - 1]
        return
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
