"""Spaced rings: any g cyclically consecutive records have g different labels.

With g = 2l - 1 every matching of the l-ring gives each record l labels; with g = l only the l shifts do.
"""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.set_valued.kernels.graphs import Graph
from anon_spark.families.set_valued.kernels.windows import FAR, Windows, refresh
from anon_spark.kernels.arrays import write
from anon_spark.kernels.bitmaps import Sets, columns_of, in_common, size_of
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.randomness import uniform

SPACED, SHIFT = 2, 1  # the factor in g = factor · (l - 1) + 1
OTHER_STARTS = 5
NEVER = -1


def eligible(labels: Codes, g: int) -> bool:
    """Whether every label occurs at most floor(n / g) times, which a spaced ring needs."""
    return labels.size >= g and int(np.bincount(labels).max(initial=0)) <= labels.size // g


def largest_l(label_counts: Ints, n: int, factor: int) -> int:
    """The largest l for which n records with these label counts are eligible; 1 if no larger l is, 0 without labels."""
    most = int(label_counts.max(initial=0))
    return (n // most - 1) // factor + 1 if most else 0


def spaced_ring_of(
    sets: Sets,
    order: Ints,
    labels: Codes,
    l: int,  # noqa: E741
    g: int,
    key: str,
    block: int,
) -> Ints | None:
    """A spaced ring from a secret random start, with up to five more starts if stuck; None if all are stuck."""
    if not eligible(labels, g):
        return None
    left = order.tolist()
    for place in uniform(key, "start of spacing", block, order.size - np.arange(min(order.size, 1 + OTHER_STARTS))):
        ring = spaced_ring(sets, order, labels, l, g, left.pop(int(place)))
        if ring is not None:
            return ring
    return None


def spaced_ring(sets: Sets, order: Ints, labels: Codes, l: int, g: int, start: int) -> Ints | None:  # noqa: E741
    """A spaced ring from `start`: the next record is the nearest to the last l - 1 among the labels that may (or must) follow.

    If no label may follow, the longest prefix that is a spaced ring is kept and the rest inserted where it costs least;
    None if some record fits nowhere. Ties: as in `order`. Cost: records² distances; l rows of them in memory.
    """
    if not eligible(labels, g):
        return None
    placed, count = nearest_spaced(sets, order, labels, l, g, start)
    if count == order.size:
        return placed
    kept = placed[: spaced_prefix(placed[:count], labels, g)]
    ring, count = inserted(sets, kept, left_over(kept, order, labels), labels, l, g)
    return ring if count == order.size else None


def left_over(kept: Ints, order: Ints, labels: Codes) -> Ints:
    """The records of `order` that are not kept, by label: labels with most records left first, then as in `order`."""
    left = order[~np.isin(order, kept)]
    _, first, inverse, count = np.unique(labels[left], return_index=True, return_inverse=True, return_counts=True)
    return left[np.lexsort((np.arange(left.size), first[inverse], -count[inverse]))]


@compiled
def nearest_spaced(
    sets: Sets,
    order: Ints,
    labels: Codes,
    l: int,  # noqa: E741
    g: int,
    start: int,
) -> tuple[Ints, int]:
    """The nearest-neighbour order of windows under the label rules, and the number of records it could place.

    A label may come at rank t if its last record is g ranks back and its first one g ranks ahead, round the ring. It must come
    if as many of its records are left as fit; among several such labels those with most records left.
    """
    count = order.size
    ring = np.empty(count, dtype=np.int64)
    placed = np.zeros(count, dtype=np.bool_)
    near = np.zeros(count, dtype=np.int64)  # weighted distance to the last l - 1
    plain = np.zeros(count, dtype=np.int64)  # the same, unweighted
    rows = np.zeros((max(l - 1, 1), count), dtype=np.int64)  # distances to the last l - 1, by rank modulo l - 1
    sizes = sets.offsets[1:] - sets.offsets[:-1]
    same, columns = np.empty(count, dtype=np.int64), columns_of(sets.bits)
    remaining = np.bincount(labels)
    first, last = np.full(remaining.size, NEVER, dtype=np.int64), np.full(remaining.size, NEVER, dtype=np.int64)
    best = np.int64(start)
    for rank in range(count):
        newest, label = best, labels[best]
        ring[rank], placed[newest] = newest, True
        remaining[label] -= 1
        last[label] = rank
        if first[label] == NEVER:
            first[label] = rank
        offered = labels_to_follow(remaining, first, last, rank + 1, count, g)
        row = rows[rank % rows.shape[0]]
        in_common(sets, int(newest), columns, 0, same)
        best = np.int64(NEVER)
        for record in order:
            if placed[record]:
                continue
            if l > 1:
                distance = sizes[record] + sizes[newest] - 2 * same[record]
                near[record] += (l - 1) * distance - plain[record]
                plain[record] += distance - row[record]
                row[record] = distance
            if offered[labels[record]] == 1 and (best == NEVER or near[record] < near[best]):
                best = record
        if best == NEVER:
            return ring, rank + 1
    return ring, count


@inner
def labels_to_follow(remaining: Ints, first: Ints, last: Ints, rank: int, count: int, g: int) -> Ints:
    """1 for each label that may be placed at a rank: the most urgent labels if there are any, else all allowed ones."""
    offered = np.zeros(remaining.size, dtype=np.int64)
    most = np.int64(0)
    for label in range(remaining.size):
        if remaining[label] == 0:
            continue
        if last[label] == NEVER or (rank - last[label] >= g and count - rank + first[label] >= g):
            offered[label] = 1
            if remaining[label] * g >= count - rank:
                most = max(most, remaining[label])
    if most > 0:
        for label in range(remaining.size):
            # as many records left as the most urgent label
            offered[label] = 1 if offered[label] == 1 and remaining[label] == most else 0
    return offered


@compiled
def spaced_prefix(placed: Ints, labels: Codes, g: int) -> int:
    """Length of the longest prefix that is a ring with equal labels g apart; without closing the ring all are."""
    first = np.full(labels.max() + 1, NEVER, dtype=np.int64)
    for rank in range(placed.size - 1, -1, -1):
        first[labels[placed[rank]]] = rank
    for count in range(placed.size, 0, -1):
        fits = True
        for rank in range(max(count - g + 1, 0), count):  # earlier ranks are at least g before the end
            ahead = first[labels[placed[rank]]]
            if ahead < rank and count - rank + ahead < g:
                fits = False
                break
        if fits:
            return count
    return 0


@compiled
def inserted(sets: Sets, kept: Ints, rest: Ints, labels: Codes, l: int, g: int) -> tuple[Ints, int]:  # noqa: E741
    """Insert each record of `rest` into the cheapest gap g away from its label; returns the ring and its size.

    The cost of a gap is the change of W for windows of l records; ties: the first gap. Stops at a record without a gap.
    Cost: rest × records bitmap comparisons.
    """
    total, width = kept.size + rest.size, sets.bits.shape[1] * 64
    ring = np.empty(total, dtype=np.int64)
    write(kept, ring)
    short, cost = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    less, more = np.empty((width // 8, total), dtype=np.uint8), np.empty((width // 8, total), dtype=np.uint8)
    counts = np.zeros(width, dtype=np.int32)
    size = kept.size
    refresh(sets, ring[:size], l, Windows(short[:size], less[:, :size], more[:, :size], cost[:size]), 0, size, counts)
    for record in rest:
        windows = Windows(short[:size], less[:, :size], more[:, :size], cost[:size])
        gap = cheapest_gap(sets, ring[:size], record, labels, l, g, windows)
        if gap < 0:
            return ring, size
        for rank in range(size, gap + 1, -1):
            ring[rank], short[rank], cost[rank] = ring[rank - 1], short[rank - 1], cost[rank - 1]
        for byte in range(less.shape[0]):
            for rank in range(size, gap + 1, -1):
                less[byte, rank], more[byte, rank] = less[byte, rank - 1], more[byte, rank - 1]
        ring[gap + 1] = record
        size += 1
        windows = Windows(short[:size], less[:, :size], more[:, :size], cost[:size])
        refresh(sets, ring[:size], l, windows, gap + 1, l, counts)
    return ring, size


@inner
def cheapest_gap(
    sets: Sets,
    ring: Ints,
    record: int,
    labels: Codes,
    l: int,  # noqa: E741
    g: int,
    windows: Windows,
) -> int:
    """The rank behind which a record changes W least, with no record of its label within g; -1 if there is none."""
    count, size = ring.size, size_of(sets, record)
    barred = np.zeros(count, dtype=np.bool_)
    for rank in range(count):
        if labels[ring[rank]] == labels[record]:
            for step in range(1 - g, g - 1):
                barred[(rank + step) % count] = True
    joined = np.empty(count, dtype=np.int64)  # cost of the l - 1 records up to a rank together with this one
    spare, saved = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    in_common(sets, record, windows.rest, 0, spare)
    in_common(sets, record, windows.less, 0, saved)
    for rank in range(count):
        joined[rank] = windows.short[rank] + size - spare[rank] - saved[rank]
    # change(gap) = Σ joined over gap … gap + l - 1, less Σ cost over gap + 1 … gap + l - 1: a running sum
    change = np.int64(0)
    for ahead in range(l):
        change += joined[ahead % count] - (windows.cost[ahead % count] if ahead > 0 else 0)
    least, best = FAR, -1
    for gap in range(count):
        if not barred[gap] and change < least:
            least, best = change, gap
        following = (gap + l) % count
        change += joined[following] - joined[gap] + windows.cost[(gap + 1) % count] - windows.cost[following]
    return int(best)


def stride_order(labels: Codes, l: int) -> Ints:  # noqa: E741
    """Order of the records by label: floor(n / l) ranks ahead the label always differs."""
    if not eligible(labels, l):
        raise GuaranteeUnreachable(
            f"Some label occurs in more than one of {l} records. Lower l.", l=l, records=labels.size
        )
    return np.argsort(labels, kind="stable")


def stride_graph(records: int, l: int) -> Graph:  # noqa: E741
    """Graph of a stride order: original i to slots i + c · floor(n / l). Valid for every eligible input; ignores similarity.

    Its rounds are `shift_rounds`: only those l assignments keep the labels apart.
    """
    slots = (np.arange(records)[:, None] + np.arange(l)[None, :] * (records // l)) % records
    return Graph(np.arange(records + 1) * l, slots.ravel().astype(np.int32), np.zeros(records, dtype=np.int32))
