"""Grouping of coded tuples into equivalence classes, and the sums of a grouping: compiled loops on arrays.

A table of tuples is a code matrix (one row per attribute) with counts. A grouping maps every tuple to a class by
looking each code up in an offset table of its attribute; the sum of the looked-up numbers is the class key.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

EMPTY = -1
KEY_BLOCK = 4096
HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@compiled
def class_keys(codes: Codes, attributes: Ints, steps: Ints, starts: Ints) -> Ints:
    """The key of each tuple: the sum over the attributes of steps[starts[attribute] + code]."""
    tuples = codes.shape[1]
    keys = np.zeros(tuples, dtype=np.int64)
    for first in range(0, tuples, KEY_BLOCK):  # a block of keys stays in the nearest cache for all attributes
        last = min(first + KEY_BLOCK, tuples)
        for index in range(attributes.size):
            attribute = attributes[index]
            start = starts[attribute]
            for position in range(first, last):
                keys[position] += steps[start + codes[attribute, position]]
    return keys


@compiled
def group_dense(keys: Ints, key_count: int) -> tuple[Codes, Codes]:
    """Class of each tuple and a representative tuple of each class, for keys below a small key_count."""
    classes = np.full(key_count, EMPTY, dtype=np.int32)
    inverse = np.empty(keys.size, dtype=np.int32)
    representatives = np.empty(min(keys.size, key_count), dtype=np.int32)
    class_count = 0
    for position in range(keys.size):
        key = keys[position]
        known = classes[key]
        if known == EMPTY:
            known = class_count
            classes[key] = class_count
            representatives[class_count] = position
            class_count += 1
        inverse[position] = known
    return inverse, representatives[:class_count]


@compiled
def group_hashed(keys: Ints) -> tuple[Codes, Codes]:
    """The same for keys of any size, by open addressing with linear probing (load at most one half)."""
    bits = 4
    while (1 << bits) < 2 * keys.size:
        bits += 1
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    slots = np.full(1 << bits, EMPTY, dtype=np.int32)
    inverse = np.empty(keys.size, dtype=np.int32)
    representatives = np.empty(keys.size, dtype=np.int32)
    class_count = 0
    for position in range(keys.size):
        key = keys[position]
        slot = np.int64((np.uint64(key) * HASH_MULTIPLIER) >> shift)
        while True:
            known = slots[slot]
            if known == EMPTY:
                slots[slot] = class_count
                representatives[class_count] = position
                inverse[position] = class_count
                class_count += 1
                break
            if keys[representatives[known]] == key:
                inverse[position] = known
                break
            slot = (slot + 1) & mask
    return inverse, representatives[:class_count]


@compiled
def sum_by_class(values: Ints, inverse: Codes, classes: int) -> Ints:
    """Sum of a count per class."""
    sums = np.zeros(classes, dtype=np.int64)
    for position in range(values.size):
        sums[inverse[position]] += values[position]
    return sums


@compiled
def add_person_sets(persons: Ints, inverse: Codes, offsets: Ints, members: Codes, multiplicity: Ints) -> None:
    """Add persons with several tuples: each counts once in every class that holds one of its tuples."""
    last_set = np.full(persons.size, EMPTY, dtype=np.int64)
    for index in range(multiplicity.size):
        for position in range(offsets[index], offsets[index + 1]):
            known = inverse[members[position]]
            if last_set[known] != index:
                last_set[known] = index
                persons[known] += multiplicity[index]


@compiled
def largest_k(persons: Ints, rows: Ints, budget: int) -> int:
    """min{ i : rows in classes of at most i persons exceed the budget }: classes below it are suppressed.

    Every class of more than `budget` persons has more than `budget` rows, so sizes up to the budget decide, else
    the smallest size above it. The budget must be below the number of rows.
    """
    smallest_above = np.int64(np.iinfo(np.int64).max)
    if budget <= 4 * persons.size + 1024:
        rows_of_size = np.zeros(budget + 1, dtype=np.int64)
        for index in range(persons.size):
            size = persons[index]
            if size <= budget:
                rows_of_size[size] += rows[index]
            elif size < smallest_above:
                smallest_above = size
        covered = np.int64(0)
        for size in range(budget + 1):
            covered += rows_of_size[size]
            if covered > budget:
                return size
        return int(smallest_above)
    order = np.argsort(persons)
    covered = np.int64(0)
    for position in range(order.size):
        covered += rows[order[position]]
        if covered > budget:
            return int(persons[order[position]])
    return int(smallest_above)


@compiled
def curve(persons: Ints, rows: Ints, majority: Ints, budget: int) -> tuple[Ints, Ints]:
    """What a node gives at each k that the budget allows: one row per k at which something changes, ascending.

    Columns: k, suppressed rows, retained classes, Σ rows² retained and in all, Σ majority retained and in all. Between two of
    them nothing changes, so each is the largest k for its suppression. Also returns the suppressed classes, smallest first:
    those of row i are the first ones, as many as all classes less the retained ones.
    """
    largest = largest_k(persons, rows, budget)
    small = np.flatnonzero(persons < largest)
    small = small[np.argsort(persons[small], kind="mergesort")]
    steps = 1
    for at in range(small.size):
        steps += at == 0 or persons[small[at]] != persons[small[at - 1]]
    totals = np.zeros((steps, 7), dtype=np.int64)
    totals[:, 4], totals[:, 6] = (rows * rows).sum(), majority.sum()
    suppressed, classes, squares, most, step = 0, rows.size, totals[0, 4], totals[0, 6], 0
    for at in range(small.size + 1):
        last = at == small.size
        if last or at == 0 or persons[small[at]] != persons[small[at - 1]]:
            totals[step, 0] = largest if last else persons[small[at]]
            totals[step, 1], totals[step, 2], totals[step, 3], totals[step, 5] = suppressed, classes, squares, most
            step += 1
        if not last:
            one = small[at]
            suppressed += rows[one]
            classes -= 1
            squares -= rows[one] * rows[one]
            most -= majority[one]
    return totals, small


@compiled
def bounding_curve(persons: Ints, rows: Ints, majority: Ints, removed: Ints, budget: int) -> tuple[Ints, Ints]:
    """As `curve`, where `removed` rows of each class are suppressed at every k: what no node below can undercut.

    Below, these rows are in classes that are no larger, so each costs at least what it would cost in this one. k is 0 where
    they exceed the budget.
    """
    gone, left = removed.sum(), rows - removed
    fewer = np.maximum(removed - (rows - majority), 0)  # of the most frequent class value
    totals = np.zeros((1, 7), dtype=np.int64)
    totals[0, 2], totals[0, 4], totals[0, 6] = rows.size, (rows * rows).sum(), majority.sum()
    totals[0, 3], totals[0, 5] = totals[0, 4], totals[0, 6]
    if gone > budget:
        return totals, np.zeros(0, dtype=np.int64)
    order = np.argsort(persons, kind="mergesort")
    largest, covered = persons[order[-1]], gone
    for one in order:  # what is left of a class may have fewer rows than it has persons, so `largest_k` does not know
        covered += left[one]
        if covered > budget:
            largest = persons[one]
            break
    small = order[persons[order] < largest]
    steps = 1
    for at in range(small.size):
        steps += at == 0 or persons[small[at]] != persons[small[at - 1]]
    found = np.zeros((steps, 7), dtype=np.int64)
    found[:, 4], found[:, 6] = totals[0, 4], totals[0, 6]
    suppressed, classes, step = gone, rows.size, 0
    squares, most = totals[0, 4] - (removed * rows).sum(), totals[0, 6] - fewer.sum()
    for at in range(small.size + 1):
        last = at == small.size
        if last or at == 0 or persons[small[at]] != persons[small[at - 1]]:
            found[step, 0] = largest if last else persons[small[at]]
            found[step, 1], found[step, 2], found[step, 3], found[step, 5] = suppressed, classes, squares, most
            step += 1
        if not last:
            one = small[at]
            suppressed += left[one]
            classes -= 1
            squares -= left[one] * rows[one]
            most -= majority[one] - fewer[one]
    return found[1 if steps > 1 and found[0, 0] == 0 else 0 :], small


@compiled
def suppressed_weights(
    codes: Codes, representatives: Codes, rows: Ints, suppressed: Ints, counts: Ints, weights: Ints, starts: Ints
) -> Ints:
    """Per attribute, the loss weight (indexed like `steps`) of the first counts[i] suppressed classes, one row per i."""
    sums = np.zeros((counts.size, codes.shape[0]), dtype=np.int64)
    total, done = np.zeros(codes.shape[0], dtype=np.int64), 0
    for step in range(counts.size):
        while done < counts[step]:
            one = suppressed[done]
            for attribute in range(codes.shape[0]):
                total[attribute] += rows[one] * weights[starts[attribute] + codes[attribute, representatives[one]]]
            done += 1
        sums[step] = total
    return sums


@compiled
def majority_by_class(class_counts: Ints, inverse: Codes, classes: int) -> tuple[Ints, Ints]:
    """Counts per class and class value summed over tuples, and the largest of each class."""
    values = class_counts.shape[1]
    summed = np.zeros((classes, values), dtype=np.int64)
    for position in range(inverse.size):
        for value in range(values):
            summed[inverse[position], value] += class_counts[position, value]
    largest = np.zeros(classes, dtype=np.int64)
    for index in range(classes):
        for value in range(values):
            largest[index] = max(largest[index], summed[index, value])
    return summed, largest
