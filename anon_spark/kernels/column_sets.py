"""Classes on every set of columns, from distinct tuples: counts of each set, and the least sets on which a tuple is unique.

Sets are walked in the order of their masks, where every subset of a set comes before it. A set's classes are those of the set
without its lowest column, each split by that column. A class of one entry can be split no further: it is counted once for all
sets below and left out of the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled
from anon_spark.kernels.classes import EMPTY, HASH_MULTIPLIER, Codes, Ints

Words = NDArray[np.uint64]

WORD = 64
DENSE = 2**16  # keys for which a table is always small enough


@dataclass(frozen=True)
class Entries:
    """Distinct tuples of a table, a person with several tuples once for each of them.

    codes: of each column (one row per column); rows: of the table; persons: people with this tuple only, or 1 for a person who
    has others, whose number `owners` then tells (else 0). Entries are ordered by owner.
    """

    codes: Codes
    cards: tuple[int, ...]
    rows: Ints
    persons: Ints
    owners: Ints

    @property
    def columns(self) -> int:
        return len(self.cards)


@dataclass(frozen=True)
class SetCounts:
    """A set of columns: its classes, those with one person and their rows, Σ rows², and entries for which it is a least set."""

    mask: int
    classes: int
    unique_classes: int
    unique_rows: int
    squares: int
    least: Ints


@dataclass
class Flags:
    """By set, a bit for each tracked entry that is unique on it; kept for sets that have a superset of allowed size."""

    tracked: Ints
    most: int
    words: dict[int, Words] = field(default_factory=dict)

    def covered(self, mask: int) -> Words:
        """Entries that are unique on the set without one of its columns, as far as that set was walked."""
        total = np.zeros(-(-self.tracked.size // WORD), dtype=np.uint64)
        rest = mask
        while rest:
            column = rest & -rest
            rest ^= column
            known = self.words.get(mask ^ column)
            if known is not None:
                total |= known
        return total

    def keep(self, mask: int, words: Words) -> None:
        if mask.bit_count() < self.most:
            self.words[mask] = words


@dataclass(frozen=True)
class _State:
    """Classes with several entries: their entries and classes; and counts of those with one, which stay."""

    members: Codes
    classes: Codes
    count: int
    done: Ints


def walk(entries: Entries, most: int) -> Iterator[SetCounts]:
    """All sets of 1 … most columns, with the entries for which each is a least set that makes them unique.

    Cost: at most entries × sets; memory: a bit per set and entry that is unique on all columns.
    """
    flags = Flags(unique_entries(entries), most)
    for top in range(entries.columns):
        yield from branch(entries, top, most, flags)


def branch(entries: Entries, top: int, most: int, flags: Flags | None = None) -> Iterator[SetCounts]:
    """The sets whose highest column is `top`. Without flags of other sets, least sets are those among these sets alone."""
    if flags is None:
        flags = Flags(unique_entries(entries), most)
    places = np.full(entries.rows.size, EMPTY, dtype=np.int32)
    places[flags.tracked] = np.arange(flags.tracked.size, dtype=np.int32)
    members = np.arange(entries.rows.size, dtype=np.int32)
    everything = _State(members, np.zeros_like(members), 1, np.zeros(4, dtype=np.int64))
    yield from _walked(entries, everything, 0, top, top + 1, most, flags, places)


def _walked(
    entries: Entries, above: _State, mask: int, lowest: int, highest: int, most: int, flags: Flags, places: Codes
) -> Iterator[SetCounts]:
    """The set `mask` with each column from lowest up to highest, and below it with each column lower than that one."""
    for column in range(lowest, highest):
        wider = mask | 1 << column
        state, counts = _split(entries, above, wider, column, flags, places)
        yield counts
        if wider.bit_count() < most:
            yield from _walked(entries, state, wider, 0, column, most, flags, places)


def _split(
    entries: Entries, above: _State, mask: int, column: int, flags: Flags, places: Codes
) -> tuple[_State, SetCounts]:
    words = np.zeros(-(-flags.tracked.size // WORD), dtype=np.uint64)
    members, classes, open_classes = above.members, above.classes, 0
    done = above.done.copy()
    open_counts = np.zeros(4, dtype=np.int64)
    if members.size:
        inverse, count = split_classes(members, classes, above.count, entries.codes[column], entries.cards[column])
        sizes, rows, persons = tallied(members, inverse, count, entries.rows, entries.persons, entries.owners)
        mark_unique(members, inverse, persons, places, words)
        members, classes, open_classes = several_entries(members, inverse, sizes)
        add_counts(sizes, rows, persons, done, open_counts)
    covered = flags.covered(mask)
    fresh = words & ~covered
    flags.keep(mask, words | covered)
    at = np.flatnonzero(np.unpackbits(fresh.view(np.uint8), bitorder="little"))
    all_classes, unique_classes, unique_rows, squares = (done + open_counts).tolist()
    state = _State(members, classes, open_classes, done)
    return state, SetCounts(mask, all_classes, unique_classes, unique_rows, squares, flags.tracked[at])


def unique_entries(entries: Entries) -> Ints:
    """Entries that are unique on all columns."""
    members = np.arange(entries.rows.size, dtype=np.int32)
    inverse, count = np.zeros(members.size, dtype=np.int32), 1
    for column in range(entries.columns):
        inverse, count = split_classes(members, inverse, count, entries.codes[column], entries.cards[column])
    _, _, persons = tallied(members, inverse, count, entries.rows, entries.persons, entries.owners)
    return np.flatnonzero(persons[inverse] == 1)


# -- compiled loops -------------------------------------------------------------------------------------------------


@compiled
def split_classes(members: Codes, classes: Codes, count: int, codes: Codes, card: int) -> tuple[Codes, int]:
    """Classes of the members, each split by a column."""
    inverse = np.empty(members.size, dtype=np.int32)
    found = 0
    span = count * card
    if span <= DENSE or span <= 2 * members.size:
        table = np.full(span, EMPTY, dtype=np.int32)
        for at in range(members.size):
            key = np.int64(classes[at]) * card + codes[members[at]]
            known = table[key]
            if known == EMPTY:
                known = np.int32(found)
                table[key] = known
                found += 1
            inverse[at] = known
        return inverse, found
    bits = 4
    while (1 << bits) < 2 * members.size:
        bits += 1
    slot_mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    slots = np.full(1 << bits, EMPTY, dtype=np.int32)
    keys = np.empty(members.size, dtype=np.int64)
    for at in range(members.size):
        key = np.int64(classes[at]) * card + codes[members[at]]
        slot = np.int64((np.uint64(key) * HASH_MULTIPLIER) >> shift)
        while True:
            known = slots[slot]
            if known == EMPTY:
                known = np.int32(found)
                slots[slot] = known
                keys[found] = key
                found += 1
                break
            if keys[known] == key:
                break
            slot = (slot + 1) & slot_mask
        inverse[at] = known
    return inverse, found


@compiled
def tallied(members: Codes, inverse: Codes, count: int, rows: Ints, persons: Ints, owners: Ints) -> tuple[Codes, Ints, Ints]:
    """Entries, rows and persons of each class; a person with several entries in a class counts once there."""
    sizes = np.zeros(count, dtype=np.int32)
    row_sums = np.zeros(count, dtype=np.int64)
    person_sums = np.zeros(count, dtype=np.int64)
    last = np.zeros(count if owners.size and owners[-1] > 0 else 0, dtype=np.int64)
    for at in range(members.size):
        entry, one = members[at], inverse[at]
        sizes[one] += 1
        row_sums[one] += rows[entry]
        owner = owners[entry]
        if owner == 0:
            person_sums[one] += persons[entry]
        elif last[one] != owner:  # entries are ordered by owner
            last[one] = owner
            person_sums[one] += 1
    return sizes, row_sums, person_sums


@compiled
def mark_unique(members: Codes, inverse: Codes, persons: Ints, places: Codes, words: Words) -> None:
    """Set the bit of each tracked member whose class has one person."""
    for at in range(members.size):
        place = places[members[at]]
        if place != EMPTY and persons[inverse[at]] == 1:
            words[place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@compiled
def several_entries(members: Codes, inverse: Codes, sizes: Codes) -> tuple[Codes, Codes, int]:
    """The members of classes with several entries, these classes numbered anew, and how many there are."""
    number = np.empty(sizes.size, dtype=np.int32)
    count = 0
    for one in range(sizes.size):
        if sizes[one] > 1:
            number[one] = count
            count += 1
    kept = 0
    for at in range(members.size):
        kept += sizes[inverse[at]] > 1
    left, classes = np.empty(kept, dtype=np.int32), np.empty(kept, dtype=np.int32)
    kept = 0
    for at in range(members.size):
        if sizes[inverse[at]] > 1:
            left[kept], classes[kept] = members[at], number[inverse[at]]
            kept += 1
    return left, classes, count


@compiled
def add_counts(sizes: Codes, rows: Ints, persons: Ints, done: Ints, left: Ints) -> None:
    """Classes, unique ones, their rows and Σ rows²: of classes with one entry added to `done`, of the others to `left`."""
    for one in range(sizes.size):
        total = done if sizes[one] == 1 else left
        total[0] += 1
        if persons[one] == 1:
            total[1] += 1
            total[2] += rows[one]
        total[3] += rows[one] * rows[one]


@compiled
def least_of_each(offsets: Ints, masks: Ints) -> tuple[Codes, Codes, Ints]:
    """Of each list of sets those without a proper subset in it: how many, the columns of the smallest, and all their columns."""
    lists = offsets.size - 1
    numbers, smallest = np.zeros(lists, dtype=np.int32), np.zeros(lists, dtype=np.int32)
    columns = np.zeros(lists, dtype=np.int64)
    for one in range(lists):
        for at in range(offsets[one], offsets[one + 1]):
            least = True
            for other in range(offsets[one], offsets[one + 1]):
                if masks[other] != masks[at] and (masks[other] & masks[at]) == masks[other]:
                    least = False
                    break
            if least:
                size, rest = 0, masks[at]
                while rest:
                    rest &= rest - 1
                    size += 1
                if numbers[one] == 0 or size < smallest[one]:
                    smallest[one] = size
                numbers[one] += 1
                columns[one] |= masks[at]
    return numbers, smallest, columns
