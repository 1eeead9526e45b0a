"""Generalized items as 64-bit numbers, and whether the lists of a row are well formed: read in Arrow, by batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from anon_spark.auditing.reading.item_sets import Ints, Lists, Marks, Words, offsets_of
from anon_spark.compiled import compiled, inner

Hashing = Callable[[Any], Words]


class Groups(NamedTuple):
    """Lists of generalized items. Row r has the items rows[r] … rows[r + 1] - 1, and item i the names[items[i] : items[i + 1]].

    A name is its place in the order of names, NOBODY for a null; missing: whether an item is null.
    """

    rows: Ints
    items: Ints
    names: Ints
    missing: Marks


NOBODY = -1
MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)


def hashing(seed: int) -> Hashing:
    """64-bit hashes of names, others for each seed; callers check that no two generalized items have the same number."""
    return partial(_hashes, seed)


def _hashes(seed: int, names: Any) -> Words:
    texts = np.array(names.to_pylist(), dtype=object)
    return np.asarray(pd.util.hash_array(texts, hash_key=f"{seed:016d}", categorize=False), dtype=np.uint64)


def groups_in(lists: Any, hashes: Hashing) -> tuple[Groups, Words]:
    """The generalized items of an Arrow array of lists of lists, and the hash of each name."""
    inner = pc.list_flatten(lists)
    encoded = pc.list_flatten(inner).cast(pa.string()).dictionary_encode()
    names, order = encoded.dictionary, pc.sort_indices(encoded.dictionary)  # byte by byte
    place = np.empty(len(names), dtype=np.int64)
    place[np.asarray(order)] = np.arange(len(names))
    codes = np.asarray(encoded.indices.fill_null(NOBODY), dtype=np.int64)
    known = codes >= 0
    codes[known] = place[codes[known]]
    return Groups(_offsets(lists), _offsets(inner), codes, np.asarray(inner.is_null())), hashes(names.take(order))


def _offsets(lists: Any) -> Ints:
    return offsets_of(np.asarray(pc.list_value_length(lists).fill_null(0), dtype=np.int64))


def numbers_of(groups: Groups, hashes: Words) -> Ints:
    """A number for each generalized item, from the hashes of its names in their order."""
    return item_numbers(groups, hashes)


def sets_of(groups: Groups, numbers: Ints) -> Lists:
    """The numbers of each row, ascending and each once."""
    return number_sets(groups.rows, numbers)


def sound_rows(groups: Groups) -> Marks:
    """Whether the items of a row are well formed: none is null, empty or holds a null; they are sorted and so are their names,
    and no name is there twice."""
    return in_order(groups, int(groups.names.max(initial=NOBODY)) + 1)


def distinct_items(groups: Groups, numbers: Ints) -> Ints:
    """Where every generalized item is found, at least once each; null is none."""
    return first_places(groups, numbers, np.argsort(numbers, kind="stable"))


@compiled
def item_numbers(groups: Groups, hashes: Words) -> Ints:
    numbers = np.empty(groups.items.size - 1, dtype=np.int64)
    for item in range(numbers.size):
        word = np.uint64(groups.items[item + 1] - groups.items[item])
        for at in range(groups.items[item], groups.items[item + 1]):
            name = groups.names[at]
            hashed = hashes[name] if name >= 0 else MULTIPLIER
            word = (word ^ (word >> np.uint64(29)) ^ hashed) * MULTIPLIER
        numbers[item] = np.int64(word ^ (word >> np.uint64(32)))
    return numbers


@compiled
def number_sets(rows: Ints, numbers: Ints) -> Lists:
    offsets, kept = np.zeros(rows.size, dtype=np.int64), np.empty(numbers.size, dtype=np.int64)
    end = 0
    for row in range(rows.size - 1):
        begin = end
        for number in np.sort(numbers[rows[row] : rows[row + 1]]):
            if end == begin or kept[end - 1] != number:
                kept[end] = number
                end += 1
        offsets[row + 1] = end
    return offsets, kept[:end].copy()


@compiled
def in_order(groups: Groups, names: int) -> Marks:
    sound = np.ones(groups.rows.size - 1, dtype=np.bool_)
    last_row = np.full(names, -1, dtype=np.int64)
    for row in range(sound.size):
        first_before = -1
        for item in range(groups.rows[row], groups.rows[row + 1]):
            begin, end = groups.items[item], groups.items[item + 1]
            if groups.missing[item] or begin == end or groups.names[begin] <= first_before:
                sound[row] = False
                break
            first_before, before = groups.names[begin], -1
            for at in range(begin, end):
                name = groups.names[at]
                if name <= before or last_row[name] == row:
                    sound[row] = False
                    break
                before, last_row[name] = name, row
    return sound


@compiled
def first_places(groups: Groups, numbers: Ints, order: Ints) -> Ints:
    kept, count = np.empty(order.size, dtype=np.int64), 0
    first = -1  # where the first item with this number is
    for item in order:
        if groups.missing[item]:
            continue
        if first < 0 or numbers[item] != numbers[first] or not are_alike(groups, item, first):
            kept[count] = item
            count += 1
        if first < 0 or numbers[item] != numbers[first]:
            first = item
    return kept[:count].copy()


@inner
def are_alike(groups: Groups, item: int, other: int) -> bool:
    """Whether two items have the same names."""
    start, size = groups.items[item], groups.items[item + 1] - groups.items[item]
    if groups.items[other + 1] - groups.items[other] != size:
        return False
    alike = True
    for step in range(size):
        alike &= groups.names[start + step] == groups.names[groups.items[other] + step]
    return alike
