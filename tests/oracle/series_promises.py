"""Brute force for one increment of a series: what each family publishes of its rows, and what an attacker finds in it.

Written from the definitions alone: it shares nothing with the package. `views` are the published rows that fit what somebody may
know of a person whose row of the input is given; a promise is kept if each of them has rows of k people, or none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

Row = Mapping[str, Any]
Paths = Mapping[str, Callable[[Any], Sequence[str]]]  # of each column: the labels of a value, from itself to the top
Label = tuple[str, str]  # of a tree: its class and its value


def paths_of(table: Sequence[Sequence[str]]) -> Callable[[Any], Sequence[str]]:
    """The labels of a value from a level table."""
    return {row[0]: row for row in table}.__getitem__


def intervals(low: int, high: int, widths: Sequence[int]) -> Callable[[Any], Sequence[str]]:
    """The labels of a whole number: itself, its interval of each width, everything."""

    def path(value: Any) -> Sequence[str]:
        starts = [(low + (value - low) // width * width, width) for width in widths]
        return [str(value), *(f"[{start}, {min(start + width - 1, high)}]" for start, width in starts), "*"]

    return path


class Promise(Protocol):
    """What a family promises of one increment."""

    @property
    def k(self) -> int: ...

    def in_scope(self, row: Row) -> bool:
        """Whether a row may be in a release at all: one with a null may not."""

    def publishable(self, rows: Sequence[Row], person: str) -> list[Row] | None:
        """Those rows in scope that a release of them holds; None: no release of them keeps the promise."""

    def views(self, known: Row, release: Sequence[Row]) -> Iterator[list[Row]]: ...


@dataclass(frozen=True)
class FullDomain:
    """lattice: every value of a column on the same level; classes of k people; the others are left out."""

    k: int
    levels: Mapping[str, int]
    paths: Paths

    def in_scope(self, row: Row) -> bool:
        return all(row[name] is not None for name in self.paths)

    def publishable(self, rows: Sequence[Row], person: str) -> list[Row] | None:
        classes = defaultdict(list)
        for row in rows:
            classes[tuple(path(row[name])[self.levels[name]] for name, path in self.paths.items())].append(row)
        large = [members for members in classes.values() if len({row[person] for row in members}) >= self.k]
        return [row for members in large for row in members] or None

    def views(self, known: Row, release: Sequence[Row]) -> Iterator[list[Row]]:
        yield _covering(known, release, self.paths)


@dataclass(frozen=True)
class LocalRecoding:
    """mst: labels of any level, classes of k people with a row each, l different values in each; nobody is left out."""

    k: int
    paths: Paths
    least: Mapping[str, int]  # of a sensitive column: how many values a class needs

    def in_scope(self, row: Row) -> bool:
        return all(row[name] is not None for name in self.paths)

    def publishable(self, rows: Sequence[Row], person: str) -> list[Row] | None:
        enough = all(len({row[name] for row in rows}) >= least for name, least in self.least.items())
        return list(rows) if len(rows) >= self.k and enough else None

    def views(self, known: Row, release: Sequence[Row]) -> Iterator[list[Row]]:
        yield _covering(known, release, self.paths)


@dataclass(frozen=True)
class Transactions:
    """relational_transaction: k rows for all relational values and up to m items."""

    k: int
    m: int
    paths: Paths
    ranges: Sequence[str]
    items: str

    def in_scope(self, row: Row) -> bool:
        return all(row[name] is not None for name in (*self.paths, *self.ranges, self.items))

    def publishable(self, rows: Sequence[Row], person: str) -> list[Row] | None:
        """No item is left out, so fewer than k rows with items cannot be told from each other by one."""
        filled = sum(bool(row[self.items]) for row in rows)
        return list(rows) if len(rows) >= self.k and (filled == 0 or filled >= self.k) else None

    def views(self, known: Row, release: Sequence[Row]) -> Iterator[list[Row]]:
        near = [
            row
            for row in _covering(known, release, self.paths)
            if all(row[name]["lo"] <= known[name] <= row[name]["hi"] for name in self.ranges)
        ]
        for size in range(self.m + 1):
            for items in combinations(sorted(set(known[self.items])), size):
                yield [row for row in near if all(any(item in group for group in row[self.items]) for item in items)]


@dataclass(frozen=True)
class Sets:
    """set_valued: whoever knows the whole list of a person finds k rows."""

    k: int
    items: str

    def in_scope(self, row: Row) -> bool:
        return row[self.items] is not None

    def publishable(self, rows: Sequence[Row], person: str) -> list[Row] | None:
        return list(rows) if len(rows) >= self.k else None

    def views(self, known: Row, release: Sequence[Row]) -> Iterator[list[Row]]:
        own = set(known[self.items])
        wrong = [(own ^ set(row["base"]), row) for row in release]
        yield [row for items, row in wrong if items <= set(row["uncertain"]) and len(items) <= row["max_errors"]]


@dataclass(frozen=True)
class Trees:
    """tree, of records with one value on top and some below it: k records for up to m labels and one relation between them.

    A value is shown as the lowest label above it that is shown anywhere in the increment.
    """

    k: int
    m: int
    paths: Paths  # of the class on top, then of the one below it
    values: Callable[[Row], Mapping[str, Collection[Any]]]

    def in_scope(self, row: Row) -> bool:
        return all(value is not None for of in self.values(row).values() for value in of)

    def publishable(self, rows: Sequence[Row], person: str) -> list[Row] | None:
        return list(rows) if len(rows) >= self.k else None

    def views(self, known: Row, release: Sequence[Row]) -> Iterator[list[Row]]:
        shown = [_labels(row["paths"]) for row in release]
        everywhere = set().union(*(labels for labels, _ in shown))
        top, below = (
            {_image(name, path(value), everywhere) for value in self.values(known)[name]} for name, path in self.paths.items()
        )
        for size in range(1, self.m + 1):
            for labels in combinations(sorted(top | below), size):
                fitting = [at for at, (there, _) in enumerate(shown) if there.issuperset(labels)]
                yield [release[at] for at in fitting]
                for above, under in [*combinations(labels, 2), *combinations(labels[::-1], 2)]:
                    if above in top and under in below:
                        yield [release[at] for at in fitting if (above, under) in shown[at][1]]


def _labels(paths: Sequence[Sequence[Row]]) -> tuple[set[Label], set[tuple[Label, Label]]]:
    """The labels of a record, and the pairs of which one is above the other."""
    told: list[list[Label]] = [[(step["class"], step["value"]) for step in path] for path in paths]
    return {label for path in told for label in path}, {pair for path in told for pair in combinations(path, 2)}


def _image(name: str, path: Sequence[str], shown: Collection[Label]) -> Label:
    ladder = [(name, label) for label in (*path[:-1], name)] + [label for label in shown if label[1] == "*"]
    return next(label for label in ladder if label in shown)


def _covering(known: Row, release: Sequence[Row], paths: Paths) -> list[Row]:
    """The published rows whose labels all stand for what is known."""
    return [row for row in release if all(row[name] in path(known[name]) for name, path in paths.items())]
