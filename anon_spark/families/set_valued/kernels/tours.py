"""Short paths through the records of a segment between its fixed ends."""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled, inner, innermost
from anon_spark.kernels.arrays import write
from anon_spark.kernels.bitmaps import Sets, columns_of, in_common, size_of
from anon_spark.kernels.classes import Codes, Ints

MAX_SWEEPS = 50
LONGEST_CHAIN = 3
FAR = 2**62  # farther than any path


@compiled
def tours(sets: Sets, order: Ints, starts: Ints) -> Ints:
    """Each segment of an order (given by where they start) as a short path from its first to its last record.

    Guarantee: deterministic; no segment's path gets longer. Cost: segment² distances, then sweeps.
    """
    toured = order.copy()
    for number in range(starts.size):
        last = starts[number + 1] if number + 1 < starts.size else order.size
        segment = order[starts[number] : last]
        if segment.size >= 4:
            toured[starts[number] : last] = segment[shorter_path(distances(sets, segment))]
    return toured


@inner
def distances(sets: Sets, records: Ints) -> Codes:
    """All Hamming distances between some records."""
    distance = np.zeros((records.size, records.size), dtype=np.int32)
    columns, shared = columns_of(sets.bits[records]), np.empty(records.size, dtype=np.int64)
    for place in range(records.size):
        in_common(sets, records[place], columns, 0, shared)
        for other in range(records.size):
            both = size_of(sets, records[place]) + size_of(sets, records[other])
            distance[place, other] = both - 2 * shared[other]
    return distance


@inner
def path_length(distance: Codes, path: Ints) -> int:
    total = np.int64(0)
    for position in range(path.size - 1):
        total += distance[path[position], path[position + 1]]
    return int(total)


@inner
def shorter_path(distance: Codes) -> Ints:
    """Path from the first to the last record: nearest neighbours, improved; the original order unless the path is shorter."""
    unchanged = np.arange(distance.shape[0])
    path = nearest_path(distance)
    for _ in range(MAX_SWEEPS):
        if not (reverse_parts(distance, path) | move_chains(distance, path)):
            break
    return path if path_length(distance, path) < path_length(distance, unchanged) else unchanged


@inner
def nearest_path(distance: Codes) -> Ints:
    """Nearest-neighbour path; the last record stays at the end."""
    count = distance.shape[0]
    path = np.empty(count, dtype=np.int64)
    used = np.zeros(count, dtype=np.bool_)
    path[0], path[count - 1] = 0, count - 1
    used[0] = used[count - 1] = True
    for position in range(1, count - 1):
        here, best = path[position - 1], -1
        for other in range(count):
            if not used[other] and (best < 0 or distance[here, other] < distance[here, best]):
                best = other
        path[position] = best
        used[best] = True
    return path


@inner
def reverse_parts(distance: Codes, path: Ints) -> bool:
    """2-opt: reverse inner parts whenever that shortens the path. True if one was reversed."""
    improved = False
    for first in range(1, path.size - 2):
        for last in range(first + 1, path.size - 1):
            before, after = path[first - 1], path[last + 1]
            old = distance[before, path[first]] + distance[path[last], after]
            if distance[before, path[last]] + distance[path[first], after] < old:
                write(path[first : last + 1][::-1].copy(), path[first:])
                improved = True
    return improved


@inner
def move_chains(distance: Codes, path: Ints) -> bool:
    """Or-opt: move chains of up to three records, either way round, to where they lengthen the path least."""
    improved = False
    hops, to_head, to_tail = np.empty_like(path), np.empty_like(path), np.empty_like(path)
    hop_lengths(distance, path, hops)
    for length in range(1, LONGEST_CHAIN + 1):
        for first in range(1, path.size - length):
            last = first + length - 1
            if last >= path.size - 1:
                break
            before, after = path[first - 1], path[last + 1]
            head, tail = path[first], path[last]
            gain = hops[first - 1] + hops[last] - distance[before, after]
            for place in range(path.size):
                to_head[place], to_tail[place] = distance[head, path[place]], distance[tail, path[place]]
            least, target, turned = gain, -1, False
            for begin, end in ((0, first - 1), (last + 1, path.size - 1)):  # between a gap and the next place
                lengthened = least_lengthened(to_head, to_tail, hops, begin, end)
                if lengthened < least:
                    least, target = lengthened, begin
                    while lengthened_by(to_head, to_tail, hops, target) > least:
                        target += 1
                    turned = to_head[target] + to_tail[target + 1] - hops[target] > least
            if target < 0:
                continue
            chain = path[first : last + 1].copy()
            if turned:
                chain = chain[::-1].copy()
            if target > last:
                write(path[last + 1 : target + 1].copy(), path[first:])
                write(chain, path[target - length + 1 :])
            else:
                write(path[target + 1 : first].copy(), path[target + 1 + length :])
                write(chain, path[target + 1 :])
            hop_lengths(distance, path, hops)
            improved = True
    return improved


@innermost
def hop_lengths(distance: Codes, path: Ints, hops: Ints) -> None:
    """The distance of each record of a path to the next."""
    for place in range(path.size - 1):
        hops[place] = distance[path[place], path[place + 1]]


@innermost
def least_lengthened(to_head: Ints, to_tail: Ints, hops: Ints, begin: int, end: int) -> int:
    """By how much a path gets longer, at least, with a chain in one of some gaps, either way round."""
    least = FAR
    heads, tails, opened = to_head[begin : end + 1], to_tail[begin : end + 1], hops[begin:end]
    for gap in range(opened.size):  # without branches: the processor takes several gaps at a time
        least = min(least, lengthened_by(heads, tails, opened, gap))
    return least


@innermost
def lengthened_by(to_head: Ints, to_tail: Ints, hops: Ints, gap: int) -> int:
    there = min(to_head[gap] + to_tail[gap + 1], to_tail[gap] + to_head[gap + 1])
    return int(there - hops[gap])
