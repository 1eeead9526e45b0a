"""All small itemsets of one class of rows, with their supports and their most frequent sensitive items.

A class is its distinct rows with multiplicity, the *entries*; items and sensitive items are numbers 0, 1, …
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.auditing.reading.item_sets import Ints, Lists, Marks
from anon_spark.compiled import compiled, inner


class Entries(NamedTuple):
    """The distinct rows of a class: items ascending and each once, sensitive items each once, how many rows are alike."""

    items: Lists
    sensitive: Lists
    times: Ints


class Walk(NamedTuple):
    """The result of a walk over the itemsets.

    tested: itemsets that could violate, the empty one included; small: those with fewer than k rows; frequent: those with
    a sensitive item in more than 1/l of their rows; violations: those with either fault; highest: the largest share of a
    sensitive item among the rows with an itemset, as (rows with it, rows); sets: violating ones, as many as were asked for,
    a row each: how many rows have it, the rows of its most frequent sensitive item, its items, then -1.
    """

    tested: int
    small: int
    frequent: int
    violations: int
    highest: tuple[int, int]
    sets: Ints


def walk(entries: Entries, k: int, l: int | None, m: int, room: int = 0) -> Walk:  # noqa: E741 - the papers' name
    """Test every itemset of at most m items, the empty one included, that some entry has.

    Guarantee: exact. An itemset is left out only where every group of rows with equal items that has it has k rows or more
    and no sensitive item in more than 1/l of them: then that holds of their union, too. room: how many violating
    itemsets to give back.
    Cost: time is the sum over entries of their itemsets of at most m items; memory m times the items of all entries.
    """
    groups = _groups(entries) if l is not None else np.arange(entries.times.size)
    diversity = 0 if l is None else l
    doubtful, shares = judged(entries, groups, k, diversity)
    totals, sets = walked(entries, doubtful, shares, k, diversity, m, room)
    tested, small, frequent, violations, most, of = (int(number) for number in totals)
    return Walk(tested, small, frequent, violations, (most, of), sets)


def _groups(entries: Entries) -> Ints:
    """Per entry a number; entries with the same items have the same."""
    offsets, numbers = entries.items
    known: dict[bytes, int] = {}
    borders = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    groups = [known.setdefault(numbers[start:stop].tobytes(), len(known)) for start, stop in borders]
    return np.array(groups, dtype=np.int64)


@compiled
def judged(entries: Entries, groups: Ints, k: int, l: int) -> tuple[Marks, Ints]:  # noqa: E741
    """Per entry: whether its group could make an itemset violate; and the group's largest share, as (rows with, rows).

    l = 0: no share matters.
    """
    number = groups.max() + 1 if groups.size else 0
    rows = np.zeros(number, dtype=np.int64)
    for entry in range(groups.size):
        rows[groups[entry]] += entries.times[entry]
    most = np.zeros(number, dtype=np.int64)
    if l > 0:
        order = np.argsort(groups, kind="mergesort")
        count = np.zeros(_width(entries.sensitive), dtype=np.int64)
        begin = 0
        while begin < order.size:
            group = groups[order[begin]]
            end = begin
            while end < order.size and groups[order[end]] == group:
                end += 1
            most[group] = _most_frequent(order[begin:end], entries, count)
            begin = end
    doubtful = np.zeros(groups.size, dtype=np.bool_)
    shares = np.zeros((groups.size, 2), dtype=np.int64)
    for entry in range(groups.size):
        group = groups[entry]
        doubtful[entry] = rows[group] < k or most[group] * l > rows[group]
        shares[entry, 0], shares[entry, 1] = most[group], rows[group]
    return doubtful, shares


@inner
def _width(lists: Lists) -> int:
    return int(lists[1].max() + 1 if lists[1].size else 0)


@inner
def _most_frequent(members: Ints, entries: Entries, count: Ints) -> int:
    """Rows of some entries with the sensitive item that most of them have; `count` is all zero, before and after."""
    offsets, numbers = entries.sensitive
    most = np.int64(0)
    for entry in members:
        for at in range(offsets[entry], offsets[entry + 1]):
            count[numbers[at]] += entries.times[entry]
            most = max(most, count[numbers[at]])
    for entry in members:
        for at in range(offsets[entry], offsets[entry + 1]):
            count[numbers[at]] = 0
    return int(most)


@inner
def _longest_tail(items: Lists, owner: Ints) -> int:
    """Over all items: how many places come after it in the entries that have it."""
    offsets, numbers = items
    after = np.zeros(_width(items) + 1, dtype=np.int64)
    for place in range(numbers.size):
        after[numbers[place]] += offsets[owner[place] + 1] - place - 1
    return int(after.max())


@compiled
def walked(
    entries: Entries, doubtful: Marks, shares: Ints, k: int, l: int, m: int, room: int  # noqa: E741
) -> tuple[Ints, Ints]:
    """Depth first: an itemset is the places of its last item, and grows by the items that come after these in their entries.

    All itemsets that grow from one are sorted into buckets at once, so each place is looked at twice per itemset before it.
    """
    (offsets, numbers), times = entries.items, entries.times
    owner = np.empty(numbers.size, dtype=np.int64)
    for entry in range(times.size):
        owner[offsets[entry] : offsets[entry + 1]] = entry
    depth, width = max(1, min(m, int(np.diff(offsets).max()))), _width(entries.items)
    tail = _longest_tail(entries.items, owner)
    places = np.empty(numbers.size + (depth - 1) * tail, dtype=np.int64)  # the buckets of all levels
    first, size = np.zeros((depth, width), dtype=np.int64), np.zeros((depth, width), dtype=np.int64)
    grown, grown_number = np.empty((depth, width), dtype=np.int64), np.zeros(depth, dtype=np.int64)
    cursor, chosen = np.zeros(depth, dtype=np.int64), np.full(depth, -1, dtype=np.int64)
    count = np.zeros(_width(entries.sensitive), dtype=np.int64)
    sets = np.full((room, depth + 2), -1, dtype=np.int64)
    members = np.arange(times.size)

    # the empty itemset
    rows, most = times.sum(), np.int64(_most_frequent(members, entries, count))
    tested, small, frequent = np.int64(1), np.int64(rows < k), np.int64(most * l > rows)
    violations = np.int64(rows < k or most * l > rows)
    best_most, best_rows = most, max(rows, np.int64(1))
    if violations and room:
        sets[0, 0], sets[0, 1] = rows, most

    # level 0: one bucket per item
    for place in range(numbers.size):
        size[0, numbers[place]] += 1
    start = np.int64(0)
    for item in range(width):
        if size[0, item]:
            grown[0, grown_number[0]] = item
            grown_number[0] += 1
        first[0, item], start = start, start + size[0, item]
    filled = first[0].copy()
    for place in range(numbers.size):
        places[filled[numbers[place]]] = place
        filled[numbers[place]] += 1

    level = np.int64(0)
    while level >= 0:
        if cursor[level] == grown_number[level]:
            level -= 1
            continue
        item = grown[level, cursor[level]]
        cursor[level] += 1
        bucket = places[first[level, item] : first[level, item] + size[level, item]]
        chosen[level] = item
        rows, could, promising = np.int64(0), False, False
        for place in bucket:
            entry = owner[place]
            rows += times[entry]
            could = could or doubtful[entry]
            promising = promising or shares[entry, 0] * best_rows > best_most * shares[entry, 1]
        if not (could or (l > 0 and promising)):  # nor could any itemset that grows from this one
            continue
        most = np.int64(_most_frequent(owner[bucket], entries, count)) if l > 0 else np.int64(0)
        if most * best_rows > best_most * rows:
            best_most, best_rows = most, rows
        if could:
            tested += 1
            if rows < k or most * l > rows:
                if violations < room:
                    sets[violations, 0], sets[violations, 1] = rows, most
                    for place in range(level + 1):
                        sets[violations, 2 + place] = chosen[place]
                violations += 1
                small += rows < k
                frequent += most * l > rows
        if level + 1 == depth:
            continue
        # the next level: buckets of what comes after this item
        above, level = level, level + 1
        for at in range(grown_number[level]):
            size[level, grown[level, at]] = 0
        grown_number[level] = cursor[level] = 0
        for place in bucket:
            for after in range(place + 1, offsets[owner[place] + 1]):
                if size[level, numbers[after]] == 0:
                    grown[level, grown_number[level]] = numbers[after]
                    grown_number[level] += 1
                size[level, numbers[after]] += 1
        start = numbers.size + above * tail
        for at in range(grown_number[level]):
            item = grown[level, at]
            first[level, item] = filled[item] = start
            start += size[level, item]
        for place in bucket:
            for after in range(place + 1, offsets[owner[place] + 1]):
                places[filled[numbers[after]]] = after
                filled[numbers[after]] += 1
    return np.array([tested, small, frequent, violations, best_most, best_rows]), sets
