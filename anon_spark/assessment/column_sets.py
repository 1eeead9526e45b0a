"""Which columns single people out: every set of columns, and the least sets that make a record unique."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

MOST_SETS = 2**12
FEW_COLUMNS = 3  # of a set, where there are more sets than that
SHARES = (0.01, 0.05, 0.2)
SHOWN = 10  # sets of one size


@dataclass(frozen=True)
class ColumnSet:
    """A set of columns: classes, the share of rows whose values lead to one person, distinctness and separation.

    distinctness: classes / rows. separation: the share of pairs of rows that differ in at least one of the columns.
    """

    columns: tuple[str, ...]
    classes: int
    unique_rows: int
    unique_share: float
    distinctness: float
    separation: float


@dataclass(frozen=True)
class SmallestSets:
    """The sets of fewest columns that single out more than a share of the people: how many there are, and the strongest."""

    share: float
    columns: int | None  # of each of these sets; None if no set does
    number: int
    strongest: tuple[ColumnSet, ...]


@dataclass(frozen=True)
class LeastSets:
    """Minimal sample uniques (SUDA): sets of columns that make a record unique while no smaller part of them does.

    uniques: tuples of values that lead to one person; special: those that are unique on fewer than all columns already;
    by_number: uniques by how many such sets they have; by_size: by the columns of their smallest; by_column: how many uniques
    have the column in one of these sets.
    """

    uniques: int
    special: int
    by_number: Mapping[int, int]
    by_size: Mapping[int, int]
    by_column: Mapping[str, int]


@dataclass(frozen=True)
class ColumnSets:
    """All sets that were counted, in the order of the number of columns and of the table; complete: whether these are all."""

    sets: tuple[ColumnSet, ...]
    complete: bool
    least: LeastSets

    def of(self, columns: Iterable[str]) -> ColumnSet:
        """The set of exactly these columns."""
        wanted = set(columns)
        return next(one for one in self.sets if set(one.columns) == wanted)

    def strongest(self) -> list[ColumnSet]:
        """The set that singles out most rows, for each number of columns."""
        return [max(group, key=strength) for _, group in groupby(self.sets, key=lambda one: len(one.columns))]

    def smallest(self) -> list[SmallestSets]:
        """For each of SHARES, the sets of fewest columns that single out more."""
        found = []
        for share in SHARES:
            above = [one for one in self.sets if one.unique_share > share]
            fewest = min((len(one.columns) for one in above), default=None)
            smallest = sorted((one for one in above if len(one.columns) == fewest), key=strength, reverse=True)
            found.append(SmallestSets(share, fewest, len(smallest), tuple(smallest[:SHOWN])))
        return found


@dataclass(frozen=True)
class Counted:
    """Counts by mask of columns (classes, unique rows, Σ rows²), and of uniques by their least sets; masks as in the question."""

    sets: Mapping[int, tuple[int, int, int]]
    by_number: Mapping[int, int]
    by_size: Mapping[int, int]
    by_column: Mapping[int, int]


def strength(one: ColumnSet) -> tuple[float, float, float]:
    """What orders sets: the share singled out, then separation, then distinctness."""
    return one.unique_share, one.separation, one.distinctness


def largest_set(columns: int) -> int:
    """How many columns a counted set has at most: all, or FEW_COLUMNS where there are too many sets."""
    return columns if 2**columns <= MOST_SETS else FEW_COLUMNS


def column_sets(counted: Counted, names: Sequence[str], rows: int) -> ColumnSets:
    """The facts of counted sets."""
    pairs = rows * (rows - 1)
    sets = []
    for mask in sorted(counted.sets, key=lambda mask: (mask.bit_count(), [at for at in range(len(names)) if mask >> at & 1])):
        classes, unique, squares = counted.sets[mask]
        columns = tuple(name for at, name in enumerate(names) if mask >> at & 1)
        separation = 1 - (squares - rows) / pairs if pairs else 0.0
        sets.append(ColumnSet(columns, classes, unique, unique / rows, classes / rows, separation))
    uniques = sum(counted.by_number.values())
    special = sum(number for size, number in counted.by_size.items() if size < len(names))
    by_column = {name: counted.by_column.get(at, 0) for at, name in enumerate(names)}
    least = LeastSets(uniques, special, dict(sorted(counted.by_number.items())), dict(sorted(counted.by_size.items())), by_column)
    return ColumnSets(tuple(sets), largest_set(len(names)) == len(names), least)
