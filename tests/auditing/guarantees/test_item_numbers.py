"""Generalized items as numbers and the order of rows, against plain Python."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anon_spark.auditing.guarantees.item_numbers import (
    NOBODY,
    distinct_items,
    groups_in,
    hashing,
    numbers_of,
    sets_of,
    sound_rows,
)

pytestmark = pytest.mark.compiles

Row = list[list[str | None] | None] | None
KIND = pa.list_(pa.list_(pa.string()))
NAMES = st.sampled_from(["a", "b", "B", "é", "ab", "", None])
ROWS = st.lists(st.none() | st.lists(st.none() | st.lists(NAMES, max_size=3), max_size=3), max_size=6)
# well formed rows are rare among random ones
SOUND = st.lists(st.permutations(["B", "a", "ab", "b", "é"]).map(lambda names: sorted([sorted(names[:2]), sorted(names[2:])])))


def is_sound(row: Row) -> bool:
    """Without nulls and empty items, all sorted byte by byte, no name twice."""
    if row is None or any(not item or None in item for item in row):
        return False
    items = [[str(name).encode() for name in item or []] for item in row]
    names = [name for item in items for name in item]
    return items == sorted(items) and all(item == sorted(item) for item in items) and len(set(names)) == len(names)


@given(st.one_of(ROWS, SOUND))
@example([[["a", "b"]], [["b"], ["a"]], [["a"], ["a"]], [["b", "a"]], [["a", "a"]], [["a", "é"], ["b", "é"]]])
def test_rows_are_well_formed_by_definition(rows: list[Row]) -> None:
    groups, _ = groups_in(pa.array(rows, KIND), hashing(0))
    assert [sound or not row for sound, row in zip(sound_rows(groups).tolist(), rows, strict=True)] == [
        is_sound(row) or not row for row in rows
    ]


@given(st.one_of(ROWS, SOUND), st.integers(0, 3))
def test_equal_items_have_equal_numbers_and_others_not(rows: list[Row], seed: int) -> None:
    lists = pa.array([[], *rows, [["x"]]], KIND).slice(1, len(rows))  # as a batch that is a part of another
    groups, hashes = groups_in(lists, hashing(seed))
    numbers = numbers_of(groups, hashes)
    items = [item for row in rows for item in row or []]
    known = {tuple(item): number for item, number in zip(items, numbers.tolist(), strict=True) if item is not None}
    assert all(known[tuple(item)] == number for item, number in zip(items, numbers.tolist(), strict=True) if item is not None)
    assert len(set(known.values())) == len(known)
    found = [items[place] for place in distinct_items(groups, numbers)]
    assert sorted(map(repr, found)) == sorted(map(repr, map(list, known)))
    offsets, sets = sets_of(groups, numbers)
    for at, row in enumerate(rows):
        if row is not None and None not in row:
            told = sorted({known[tuple(item)] for item in row if item is not None})
            assert sets[offsets[at] : offsets[at + 1]].tolist() == told


def test_items_of_one_number_are_all_told() -> None:
    lists = pa.array([[["a"], ["b", "c"]], [["b"], None], [["a"]]], KIND)
    groups, hashes = groups_in(lists, lambda names: np.zeros(len(names), dtype=np.uint64))
    numbers = numbers_of(groups, hashes)
    assert numbers[0] == numbers[2] != numbers[1]
    items = [["a"], ["b", "c"], ["b"], None, ["a"]]
    assert sorted(map(repr, (items[place] for place in distinct_items(groups, numbers)))) == ["['a']", "['b', 'c']", "['b']"]
    assert groups.names.min() > NOBODY


def test_another_seed_gives_other_numbers() -> None:
    lists = pa.array([[["a"], ["b"]]], KIND)
    one, other = (numbers_of(*groups_in(lists, hashing(seed))) for seed in (0, 1))
    assert not set(one.tolist()) & set(other.tolist())
