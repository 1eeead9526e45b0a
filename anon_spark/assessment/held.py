"""Distinct tuples that the driver holds as arrays: everything is counted from them without another job."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anon_spark.arrays import each_once
from anon_spark.assessment.column_sets import Counted, largest_set
from anon_spark.assessment.reading import NAMELESS, OWNER, hash_columns
from anon_spark.assessment.sizes import Sizes
from anon_spark.columns import PERSONS, ROWS
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.column_sets import Entries, least_of_each, split_classes, tallied, walk

MOST_MATCHES = 2**27  # tuples × patterns of nulls that are compared


@dataclass(frozen=True, eq=False)
class HeldTuples:
    """Hashes of the distinct tuples, one row per column, with what `Entries` says of each."""

    hashes: Ints
    rows: Ints
    persons: Ints
    owners: Ints
    nameless: int

    @classmethod
    def of(cls, table: pa.Table, columns: int) -> HeldTuples:
        """From the rows of `entries_frame`; without persons its hashes and ROWS are enough."""
        numbers = {name: np.asarray(table.column(name).to_numpy()).astype(np.int64) for name in table.column_names}
        rows = numbers[ROWS]
        persons, owners = numbers.get(PERSONS, rows), numbers.get(OWNER, np.zeros_like(rows))
        order = np.argsort(owners, kind="stable")
        hashes = np.array([numbers[name][order] for name in hash_columns(columns)]).reshape(columns, -1)
        nameless = int(numbers[NAMELESS].sum()) if NAMELESS in numbers else 0
        return cls(hashes, rows[order], persons[order], dense(owners[order]), nameless)

    @property
    def people(self) -> int:
        return int(self.persons[self.owners == 0].sum()) + each_once(self.owners[self.owners != 0]).size

    @property
    def null_rows(self) -> int:
        return int(self.rows[(self.hashes == 0).any(axis=0)].sum())

    def sizes(self) -> Sizes:
        """Sizes of the classes on all columns."""
        entries, _ = self._entries()
        members = np.arange(self.rows.size, dtype=np.int32)
        inverse, count = np.zeros(members.size, dtype=np.int32), 1
        for column in range(entries.columns):
            inverse, count = split_classes(members, inverse, count, entries.codes[column], entries.cards[column])
        _, rows, persons = tallied(members, inverse, count, entries.rows, entries.persons, entries.owners)
        return Sizes.of(persons, rows)

    def column_sets(self) -> Counted:
        """Every set of columns. Cost: tuples × sets, compiled, on the driver."""
        entries, order = self._entries()
        sets, marks, masks = {}, [], []
        for counts in walk(entries, largest_set(entries.columns)):
            mask = moved(counts.mask, order)
            sets[mask] = (counts.classes, counts.unique_rows, counts.squares)
            marks.append(counts.least)
            masks.append(np.full(counts.least.size, mask, dtype=np.int64))
        return Counted(sets, *digested(np.concatenate(marks), np.concatenate(masks), entries.columns))

    def with_wildcards(self) -> Sizes | None:
        """Sizes if a null agreed with every value: of a tuple, the rows of all tuples that agree with it.

        None where there are too many patterns of nulls to compare. Cost: patterns² passes over their tuples.
        """
        patterns = np.zeros(self.rows.size, dtype=np.int64)
        for at, hashes in enumerate(self.hashes):
            patterns |= (hashes == 0).astype(np.int64) << at
        groups = {int(pattern): np.flatnonzero(patterns == pattern) for pattern in np.unique(patterns)}
        if 2 * len(groups) * self.rows.size > MOST_MATCHES:
            return None
        agreeing = np.zeros(self.rows.size, dtype=np.int64)
        for mine, members in groups.items():
            for theirs, others in groups.items():
                keys = self._keys(members, ~(mine | theirs)), self._keys(others, ~(mine | theirs))
                distinct, place = np.unique(keys[1], return_inverse=True)
                sums = np.zeros(distinct.size + 1, dtype=np.int64)
                np.add.at(sums, place.reshape(-1), self.rows[others])
                found = np.searchsorted(distinct, keys[0])
                there = (np.append(distinct, 0)[found] == keys[0]) & (found < distinct.size)
                agreeing[members] += np.where(there, sums[found], 0)
        return Sizes.of(agreeing, self.rows)

    def _keys(self, members: NDArray[np.intp], columns: int) -> Ints:
        keys = np.zeros(members.size, dtype=np.int64)
        for at, hashes in enumerate(self.hashes):
            if columns >> at & 1:
                keys ^= hashes[members]
        return keys

    def _entries(self) -> tuple[Entries, list[int]]:
        """The tuples for the kernel, columns with fewest values first, and where these columns are in the question."""
        codes = [dense(hashes, first=0) for hashes in self.hashes]
        cards = [int(column.max(initial=0)) + 1 for column in codes]
        order = sorted(range(len(codes)), key=lambda at: (cards[at], at))
        matrix = np.array([codes[at] for at in order], dtype=np.int32).reshape(len(codes), -1)
        return Entries(matrix, tuple(cards[at] for at in order), self.rows, self.persons, self.owners), order


def dense(hashes: Ints, first: int = 1) -> Ints:
    """Hashes as small numbers from `first` on; with first = 1 the hash 0 is 0."""
    distinct, place = np.unique(hashes, return_inverse=True)
    numbers = np.arange(distinct.size, dtype=np.int64) + first
    if first and distinct.size:
        numbers = np.where(distinct == 0, 0, numbers)
    return np.asarray(numbers[place.reshape(-1)])


def moved(mask: int, order: list[int]) -> int:
    """A mask of ordered columns as a mask of the question's columns."""
    return sum(1 << order[at] for at in range(len(order)) if mask >> at & 1)


def digested(
    records: Ints, masks: Ints, columns: int
) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """How many records have how many least sets, how many columns their smallest has, and how many each column is in."""
    order = np.argsort(records, kind="stable")
    _, starts = np.unique(records[order], return_index=True)
    numbers, smallest, touched = least_of_each(np.append(starts, records.size).astype(np.int64), masks[order])
    by_column = {at: int((touched >> at & 1).sum()) for at in range(columns)}
    return dict(Counter(numbers.tolist())), dict(Counter(smallest.tolist())), by_column
