"""The kernels of assessments against brute force: sets of columns, least sets, measures of classes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from anon_spark.kernels.column_sets import Entries, branch, least_of_each, walk
from anon_spark.kernels.disclosure import MEASURES, class_measures, prefixes
from tests.oracle import risk_oracle as oracle

pytestmark = pytest.mark.compiles


def drawn(seed: int) -> tuple[Entries, list[tuple[int, ...]], list[int]]:
    """Entries of a random table of four columns, and its rows with their persons; half of the persons have several tuples."""
    draw = random.Random(seed)
    cards = (2, 3, 4, 6)
    rows, persons = [], []
    for person in range(30):
        for _ in range(draw.choice([1, 1, 2, 3])):
            rows.append(tuple(draw.randrange(card) for card in cards))
            persons.append(person)
    tuples = {person: {row for row, who in zip(rows, persons, strict=True) if who == person} for person in persons}
    entries: dict[tuple[tuple[int, ...], int], list[int]] = {}
    people: dict[tuple[tuple[int, ...], int], set[int]] = {}
    for row, person in zip(rows, persons, strict=True):
        owner = person + 1 if len(tuples[person]) > 1 else 0
        entries.setdefault((row, owner), [0])[0] += 1
        people.setdefault((row, owner), set()).add(person)
    keys = sorted(entries, key=lambda key: key[1])
    made = Entries(
        np.array([row for row, _ in keys], dtype=np.int32).T.copy(),
        cards,
        np.array([entries[key][0] for key in keys], dtype=np.int64),
        np.array([len(people[key]) for key in keys], dtype=np.int64),
        np.array([owner for _, owner in keys], dtype=np.int64),
    )
    return made, rows, persons


@pytest.mark.parametrize("seed", range(5))
def test_walk_counts_every_set(seed: int) -> None:
    entries, rows, persons = drawn(seed)

    counted = list(walk(entries, 4))

    assert [one.mask for one in counted] == list(range(1, 16))
    least: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for one in counted:
        columns = [at for at in range(4) if one.mask >> at & 1]
        sizes = oracle.crowds(rows, persons, columns)
        assert (one.classes, one.unique_rows) == (oracle.classes(rows, columns), sum(size == 1 for size in sizes))
        pairs = len(rows) * (len(rows) - 1)
        assert 1 - (one.squares - len(rows)) / pairs == pytest.approx(float(oracle.separation(rows, columns)))
        for entry in one.least.tolist():
            least.setdefault(tuple(entries.codes[:, entry].tolist()), []).append(tuple(columns))
    expected = oracle.least_sets(rows, persons, 4, 4)
    assert {values: sorted(sets) for values, sets in least.items()} == {values: sorted(sets) for values, sets in expected.items()}


def test_branches_are_parts_of_the_walk() -> None:
    entries, _, _ = drawn(9)
    whole = {one.mask: (one.classes, one.unique_rows, one.squares) for one in walk(entries, 4)}

    parts = {one.mask: (one.classes, one.unique_rows, one.squares) for top in range(4) for one in branch(entries, top, 4)}

    assert parts == whole


def test_sets_of_few_columns_only() -> None:
    entries, _, _ = drawn(2)

    assert [one.mask for one in walk(entries, 2)] == [mask for mask in range(1, 16) if mask.bit_count() <= 2]


def test_least_of_each_list() -> None:
    masks = np.array([0b011, 0b111, 0b100, 0b110, 0b010], dtype=np.int64)

    numbers, smallest, columns = least_of_each(np.array([0, 2, 4, 4, 5]), masks)

    assert (numbers.tolist(), smallest.tolist(), columns.tolist()) == ([1, 1, 0, 1], [2, 1, 0, 1], [0b011, 0b100, 0, 0b010])


@pytest.mark.parametrize("seed", range(20))
def test_measures_of_classes(seed: int) -> None:
    draw = random.Random(seed)
    values = [draw.randrange(draw.choice([1, 3, 7])) for _ in range(40)]
    groups = [draw.randrange(4) for _ in values]
    order = sorted(set(values))
    expected = oracle.disclosed(groups, values, order)
    starts, codes, counts = [0], [], []
    for group in expected:
        for code, value in enumerate(order):
            count = sum(of == group and one == value for of, one in zip(groups, values, strict=True))
            if count:
                codes.append(code)
                counts.append(count)
        starts.append(len(codes))
    shares = np.array([values.count(value) / len(values) for value in order])

    found = class_measures(np.array(starts), np.array(codes), np.array(counts), shares, prefixes(shares))

    names = ("l", "entropy", "c_2", "c_3", "t", "ordered", "beta", "delta")
    assert len(names) == len(MEASURES)
    for row, group in zip(found, expected, strict=True):
        assert row.tolist() == pytest.approx([expected[group][name] for name in names], abs=1e-12)
