"""Grouping of coded tuples into equivalence classes, and the sums of a grouping: compiled loops on arrays.

A table of tuples is a code matrix (one row per attribute) with counts. A grouping maps every tuple to a class by
looking each code up in an offset table of its attribute; the sum of the looked-up numbers is the class key.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernels.compiled import compiled

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
def class_totals(persons: Ints, rows: Ints, majority: Ints, k: int) -> Ints:
    """Suppressed rows, retained classes, Σ rows² retained and in all, Σ majority retained and in all."""
    totals = np.zeros(6, dtype=np.int64)
    for index in range(rows.size):
        square = rows[index] * rows[index]
        totals[3] += square
        totals[5] += majority[index]
        if persons[index] < k:
            totals[0] += rows[index]
        else:
            totals[1] += 1
            totals[2] += square
            totals[4] += majority[index]
    return totals


@compiled
def suppressed_weights(
    codes: Codes, representatives: Codes, persons: Ints, rows: Ints, k: int, weights: Ints, starts: Ints
) -> Ints:
    """Per attribute, the loss weight (indexed like `steps`) of the rows that are suppressed at k."""
    sums = np.zeros(codes.shape[0], dtype=np.int64)
    for index in range(rows.size):
        if persons[index] < k:
            tuple_ = representatives[index]
            for attribute in range(codes.shape[0]):
                sums[attribute] += rows[index] * weights[starts[attribute] + codes[attribute, tuple_]]
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
