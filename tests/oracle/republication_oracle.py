"""Two releases of one table put together, by brute force: an attacker who compares everybody with everybody.

Written from the definitions alone and slow on purpose; it shares nothing with the package. A row is (person, values, sensitive
values), a published row (labels, sensitive values). What covers what is a function of the caller's: values → labels.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Values = tuple[Any, ...]
Row = tuple[Hashable, Values, Values]  # person (None: nobody knows), quasi-identifiers, sensitive values
Shown = tuple[Values, Values]  # labels, sensitive values
Class = frozenset[Values]  # label tuples


@dataclass(frozen=True)
class Release:
    """The rows behind a release, what was published of them, and which labels are true of values."""

    rows: Sequence[Row]
    shown: Sequence[Shown]
    covers: Callable[[Values, Values], bool]  # labels, values


@dataclass(frozen=True)
class Numbers:
    """What both releases tell together. least: None of nobody; one_value: people by position of the sensitive column."""

    compared: int
    hidden: int
    least: int | None
    below: int
    one_value: tuple[int, ...]
    newcomers: int
    newcomers_hidden: int
    newcomers_least: int | None
    newcomers_below: int


def on_levels(paths: Sequence[Mapping[Any, Sequence[Any]]], levels: Sequence[int]) -> Callable[[Values, Values], bool]:
    """Full domain: the one label tuple of the levels covers. paths: by value, its label on every level."""

    def covers(labels: Values, values: Values) -> bool:
        if any(value not in of for of, value in zip(paths, values, strict=True)):
            return False
        return labels == tuple(of[value][level] for of, value, level in zip(paths, values, levels, strict=True))

    return covers


def on_any_level(paths: Sequence[Mapping[Any, Sequence[Any]]]) -> Callable[[Values, Values], bool]:
    """Local recoding: labels cover if each of them is the value's on some level."""

    def covers(labels: Values, values: Values) -> bool:
        return all(value in of and label in of[value] for of, value, label in zip(paths, values, labels, strict=True))

    return covers


def by_person(older: Release, newer: Release, k: int, columns: int) -> Numbers:
    """The people are those that the rows name. A person with several rows has the classes of all of them."""
    people = [_rows_of_people(release.rows) for release in (older, newer)]
    both = [(people[0][who], people[1][who]) for who in people[0] if who in people[1]]
    only_new = [rows for who, rows in people[1].items() if who not in people[0]]
    return _numbers(older, newer, both, only_new, k, columns)


def by_content(older: Release, newer: Release, k: int, columns: int) -> Numbers:
    """Nobody is named: a row of the new table is that of an equal row of the old one, as long as there are any."""
    left = Counter((values, sensitive) for _, values, sensitive in older.rows)
    both, only_new = [], []
    for _, values, sensitive in newer.rows:
        if left[values, sensitive]:
            left[values, sensitive] -= 1
            both.append(([values], [values]))
        else:
            only_new.append([values])
    return _numbers(older, newer, both, only_new, k, columns)


def _rows_of_people(rows: Sequence[Row]) -> dict[Hashable, list[Values]]:
    people: dict[Hashable, list[Values]] = defaultdict(list)
    for who, values, _ in rows:
        if who is not None:
            people[who].append(values)
    return people


def _numbers(
    older: Release,
    newer: Release,
    both: Sequence[tuple[Sequence[Values], Sequence[Values]]],
    only_new: Sequence[Sequence[Values]],
    k: int,
    columns: int,
) -> Numbers:
    pairs = [(_class(older, old), _class(newer, new)) for old, new in both]
    seen = [pair for pair in pairs if pair[0] and pair[1]]
    candidates = [sum(other == pair for other in seen) for pair in seen]
    arrived = [found for found in (_class(newer, rows) for rows in only_new) if found]
    alike = [sum(other == found for other in arrived) for found in arrived]
    one = tuple(
        sum(len(_values(older, old, column) & _values(newer, new, column)) == 1 for old, new in seen) for column in range(columns)
    )
    return Numbers(
        compared=len(seen),
        hidden=len(pairs) - len(seen),
        least=min(candidates, default=None),
        below=sum(size < k for size in candidates),
        one_value=one,
        newcomers=len(arrived),
        newcomers_hidden=len(only_new) - len(arrived),
        newcomers_least=min(alike, default=None),
        newcomers_below=sum(size < k for size in alike),
    )


def _class(release: Release, rows: Sequence[Values]) -> Class:
    """The published label tuples that cover one of these rows."""
    return frozenset(labels for labels, _ in release.shown if any(release.covers(labels, values) for values in rows))


def _values(release: Release, found: Class, column: int) -> set[Any]:
    """The values of a sensitive column that the published rows of a class show."""
    return {sensitive[column] for labels, sensitive in release.shown if labels in found}
