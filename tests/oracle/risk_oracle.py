"""Risk of a table by brute force, written from the definitions: rows are tuples of plain values, None is a value."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

Row = Sequence[Any]
Set = tuple[int, ...]  # of columns


@dataclass(frozen=True)
class Look:
    """Prosecutor and marketer risk."""

    classes: int
    smallest: int
    unique_rows: int
    highest: Fraction
    average: Fraction
    above: dict[float, Fraction]


def crowds(rows: Sequence[Row], persons: Sequence[Any], columns: Sequence[int]) -> list[int]:
    """Of each row, how many persons have its values."""
    people: dict[tuple[Any, ...], set[Any]] = defaultdict(set)
    for row, person in zip(rows, persons, strict=True):
        people[_key(row, columns)].add(person)
    return [len(people[_key(row, columns)]) for row in rows]


def look(sizes: Sequence[int], classes: int) -> Look:
    """What follows from the crowd of each row."""
    total = len(sizes)
    return Look(
        classes,
        min(sizes),
        sum(size == 1 for size in sizes),
        Fraction(1, min(sizes)),
        sum((Fraction(1, size) for size in sizes), Fraction(0)) / total,
        {limit: Fraction(sum(Fraction(1, size) > Fraction(str(limit)) for size in sizes), total) for limit in (0.05, 0.1, 0.2)},
    )


def classes(rows: Sequence[Row], columns: Sequence[int]) -> int:
    return len({_key(row, columns) for row in rows})


def separation(rows: Sequence[Row], columns: Sequence[int]) -> Fraction:
    """The share of pairs of rows that differ."""
    pairs = list(combinations(range(len(rows)), 2))
    return Fraction(sum(_key(rows[one], columns) != _key(rows[two], columns) for one, two in pairs), len(pairs))


def subsets(columns: int, most: int) -> list[Set]:
    return [chosen for size in range(1, most + 1) for chosen in combinations(range(columns), size)]


def least_sets(rows: Sequence[Row], persons: Sequence[Any], columns: int, most: int) -> dict[tuple[Any, ...], list[Set]]:
    """By combination of all values that leads to one person: its least sets among those of at most so many columns."""
    unique_on = {chosen: crowds(rows, persons, chosen) for chosen in subsets(columns, most)}
    alone = crowds(rows, persons, range(columns))
    found: dict[tuple[Any, ...], list[Set]] = {}
    for at, row in enumerate(rows):
        if alone[at] == 1:
            sets = [set(chosen) for chosen, sizes in unique_on.items() if sizes[at] == 1]
            found[tuple(row)] = [tuple(sorted(one)) for one in sets if not any(other < one for other in sets)]
    return found


def agreeing(rows: Sequence[Row]) -> list[int]:
    """Of each row, how many rows agree with it if None agrees with every value."""
    return [sum(all(a is None or b is None or a == b for a, b in zip(row, other, strict=True)) for other in rows) for row in rows]


def disclosed(groups: Sequence[Any], values: Sequence[Any], order: Sequence[Any]) -> dict[Any, dict[str, float]]:
    """The models of attribute disclosure of each class; order: the values of the table, ascending."""
    total = Counter(values)
    q = {value: total[value] / len(values) for value in order}
    found = {}
    for group in dict.fromkeys(groups):
        counts = Counter(value for value, of in zip(values, groups, strict=True) if of == group)
        size = sum(counts.values())
        p = {value: counts[value] / size for value in order}
        ranked = sorted(counts.values(), reverse=True)
        found[group] = {
            "l": len(counts),
            "entropy": math.exp(-sum(share * math.log(share) for share in p.values() if share)),
            "c_2": ranked[0] / sum(ranked[1:]) if ranked[1:] else math.inf,
            "c_3": ranked[0] / sum(ranked[2:]) if ranked[2:] else math.inf,
            "t": sum(abs(p[value] - q[value]) for value in order) / 2,
            "ordered": _ordered(p, q, order),
            "beta": max([(p[value] - q[value]) / q[value] for value in order if p[value] > q[value]], default=0.0),
            "delta": max(abs(math.log(p[value] / q[value])) for value in counts),
            "lacks": any(not counts[value] for value in order),
            "rows": size,
        }
    return found


def _ordered(p: dict[Any, float], q: dict[Any, float], order: Sequence[Any]) -> float:
    if len(order) < 2:
        return 0.0
    gaps = [sum(p[value] - q[value] for value in order[: at + 1]) for at in range(len(order) - 1)]
    return sum(map(abs, gaps)) / (len(order) - 1)


def _key(row: Row, columns: Iterable[int]) -> tuple[Any, ...]:
    return tuple(row[at] for at in columns)
