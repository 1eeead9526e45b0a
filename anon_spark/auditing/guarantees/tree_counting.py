"""Support counts of nested records: of sets of labels, and of relations among them.

A record is its labels, as ascending numbers, and the pairs of them that are related, as places: the pair of the labels at
places i < j of the record is j (j - 1) / 2 + i. Inside a set of labels pairs are bits of a mask, by the same rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, islice
from math import comb
from typing import NamedTuple

import numpy as np

from anon_spark.arrays import each_once
from anon_spark.auditing.reading.item_sets import Ints, Lists

CELLS_AT_ONCE = 1 << 20  # sets of labels times records in one step
LONG = 62  # bits of a number that is shifted safely
CHOICES_KEPT = 1 << 16  # places of sets that are made once, not anew for every slice


class Signatures(NamedTuple):
    """Distinct records: labels ascending, related pairs, sensitive values (all as numbers), and how many are alike."""

    labels: Lists
    pairs: Lists
    secrets: Lists
    times: Ints


class Counts(NamedTuple):
    """Numbers of records with a set of labels, related in just this way, and one sensitive value (0: any).

    keys: the set, packed; mask: its related pairs; secret: the number of the value, from 1. Sorted, no two alike.
    """

    keys: tuple[Ints, ...]
    mask: Ints
    secret: Ints
    rows: Ints


class Known(NamedTuple):
    """All K of some sets of labels: support, and the records among them with their most frequent sensitive value."""

    keys: tuple[Ints, ...]
    relations: Ints
    support: Ints
    most: Ints


@dataclass(frozen=True)
class Packing:
    """A packing of sets of at most m labels into few numbers: each label, from 1, takes `bits`; 0 is none."""

    labels: int
    secrets: int
    m: int

    @property
    def bits(self) -> int:
        return max(1, self.labels.bit_length())

    @property
    def in_one(self) -> int:
        """Labels of one number."""
        return max(1, LONG // self.bits)

    @property
    def columns(self) -> int:
        return -(-self.m // self.in_one)

    @property
    def widths(self) -> list[int]:
        """Bits of each column of a key, of a mask and of a sensitive value."""
        keys = [self.bits * min(self.in_one, self.m - at * self.in_one) for at in range(self.columns)]
        return [*keys, max(1, pair_number(self.m)), self.secrets.bit_length() + 1]

    def digits(self, keys: Sequence[Ints]) -> Ints:
        """[set, place]: the labels of sets, from 1, and 0 where there is none."""
        lowest = (1 << self.bits) - 1
        places = [(keys[at // self.in_one] >> (self.bits * (at % self.in_one))) & lowest for at in range(self.m)]
        return np.stack(places, axis=1)


def pair_number(size: int) -> int:
    return size * (size - 1) // 2


# -- records --------------------------------------------------------------------------------------------------------


def counted(signatures: Signatures, packing: Packing) -> Iterator[Counts]:
    """The sets of at most m labels that records have, the empty one included: partial sums, in bounded slices.

    Cost: time and output are the sum over records of their sets of labels, times one more than their sensitive values;
    a slice has at most about CELLS_AT_ONCE of these, however many labels a record has.
    """
    record, secret = _with_secrets(signatures.secrets)
    sizes = np.diff(signatures.labels[0])
    for size in each_once(sizes).tolist():
        has_size = sizes[record] == size
        step = max(1, CELLS_AT_ONCE // max(1, size * size))
        chosen, values = record[has_size], secret[has_size]
        for start in range(0, chosen.size, step):
            yield from _of_size(signatures, packing, size, chosen[start : start + step], values[start : start + step])


def _with_secrets(secrets: Lists) -> tuple[Ints, Ints]:
    """Every record by itself (0), and once for each of its sensitive values (from 1)."""
    offsets, numbers = secrets
    records = np.arange(offsets.size - 1)
    record = np.concatenate([records, np.repeat(records, np.diff(offsets))])
    return record, np.concatenate([np.zeros(records.size, dtype=np.int64), numbers + 1])


def _of_size(signatures: Signatures, packing: Packing, size: int, record: Ints, secret: Ints) -> Iterator[Counts]:
    """Records with the same number of labels, side by side: [place of a label, record]."""
    starts = signatures.labels[0][record]
    labels = signatures.labels[1][starts + np.arange(size)[:, None]] + 1
    is_related = np.zeros((pair_number(size), record.size), dtype=np.int64)
    first, after = signatures.pairs[0][record], np.diff(signatures.pairs[0])[record]
    column = np.repeat(np.arange(record.size), after)
    place = np.arange(column.size) - np.repeat(np.cumsum(after) - after, after) + np.repeat(first, after)
    is_related[signatures.pairs[1][place], column] = 1
    times = signatures.times[record]
    for number in range(min(size, packing.m) + 1):
        for sets in _combinations(size, number, max(1, CELLS_AT_ONCE // record.size)):
            shape = (len(sets), record.size)
            keys = [np.zeros(shape, dtype=np.int64) for _ in range(packing.columns)]
            for at in range(number):
                keys[at // packing.in_one] |= labels[sets[:, at]] << (packing.bits * (at % packing.in_one))
            mask = np.zeros(shape, dtype=np.int64)
            for bit, (lower, upper) in enumerate((low, up) for up in range(number) for low in range(up)):
                mask |= is_related[sets[:, upper] * (sets[:, upper] - 1) // 2 + sets[:, lower]] << bit
            columns = [*keys, mask, np.broadcast_to(secret, shape)]
            yield summed([part.ravel() for part in columns], packing.widths, np.broadcast_to(times, shape).ravel())


def _combinations(size: int, number: int, at_once: int) -> Iterator[Ints]:
    """All ascending choices of `number` places out of `size`, a slice of rows at a time."""
    if comb(size, number) <= CHOICES_KEPT:
        whole = _all_combinations(size, number)
        yield from (whole[start : start + at_once] for start in range(0, len(whole), at_once))
        return
    choices = combinations(range(size), number)
    while part := list(islice(choices, min(at_once, CHOICES_KEPT))):
        yield np.array(part, dtype=np.int64)


@lru_cache(maxsize=64)
def _all_combinations(size: int, number: int) -> Ints:
    return np.array(list(combinations(range(size), number)), dtype=np.int64).reshape(comb(size, number), number)


def summed(columns: Sequence[Ints], widths: Sequence[int], rows: Ints) -> Counts:
    """Add up rows whose columns are equal. widths: bits of the columns; the last two are the mask and the sensitive value."""
    key = packed(columns, widths)
    order = np.argsort(key)
    key = key[order]
    starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if key.size else np.zeros(0, dtype=np.int64)
    kept = order[starts]
    total = np.add.reduceat(rows[order], starts) if key.size else rows
    return Counts(tuple(column[kept] for column in columns[:-2]), columns[-2][kept], columns[-1][kept], total)


def packed(columns: Sequence[Ints], widths: Sequence[int]) -> Ints:
    """One number per row, in the order of the rows: equal where all columns are. widths: bits of the columns."""
    key, used = columns[0], widths[0]
    for column, width in zip(columns[1:], widths[1:], strict=True):
        if used + width > LONG:
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
            used = int(key.size).bit_length()
        key, used = (key << width) | column, used + width
    return key


def merged(parts: Sequence[Counts], packing: Packing) -> Counts:
    """The sum of several Counts."""
    keys = [np.concatenate([part.keys[at] for part in parts]) for at in range(packing.columns)]
    rest = [np.concatenate(column) for column in zip(*((part.mask, part.secret, part.rows) for part in parts), strict=True)]
    return summed([*keys, *rest[:2]], packing.widths, rest[2])


# -- knowledge ------------------------------------------------------------------------------------------------------


def known(counts: Counts, packing: Packing, n: int) -> Known:
    """Every K with at most n relations: sup(V, E) is the sum over all masks that hold E.

    counts: all of their sets of labels. Cost: rows times the subsets of at most n of a mask's pairs, which is what occurs.
    """
    masks, which = np.unique(counts.mask, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    borders = np.searchsorted(which.reshape(-1)[order], np.arange(masks.size + 1))
    row, relations = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for at, mask in enumerate(masks.tolist()):
        members, inside = order[borders[at] : borders[at + 1]], _subsets(mask, n)
        row.append(np.repeat(members, inside.size))
        relations.append(np.tile(inside, members.size))
    place = np.concatenate(row)
    columns = [*(key[place] for key in counts.keys), np.concatenate(relations), counts.secret[place]]
    sums = summed(columns, packing.widths, counts.rows[place])
    if not sums.rows.size:
        return Known(sums.keys, sums.mask, sums.rows, sums.rows)
    starts = np.flatnonzero(sums.secret == 0)  # each K begins with all of its records
    most = np.maximum.reduceat(np.where(sums.secret > 0, sums.rows, 0), starts)
    return Known(tuple(key[starts] for key in sums.keys), sums.mask[starts], sums.rows[starts], most)


@lru_cache(maxsize=4096)
def _subsets(mask: int, n: int) -> Ints:
    bits = [1 << at for at in range(mask.bit_length()) if mask >> at & 1]
    chosen = chain.from_iterable(combinations(bits, number) for number in range(min(n, len(bits)) + 1))
    return np.array([sum(subset) for subset in chosen], dtype=np.int64)


def ones(numbers: Ints) -> Ints:
    """The number of set bits of each number."""
    counts = np.zeros(numbers.size, dtype=np.int64)
    for bit in range(int(numbers.max()).bit_length() if numbers.size else 0):
        counts += (numbers >> bit) & 1
    return counts
