"""What a group of item sets gives away: whether its records follow from what it publishes, against brute force."""

from __future__ import annotations

from itertools import combinations_with_replacement, compress, product

import pytest

from anon_spark.risk.item_sets.group_solutions import is_unique


def solutions(size: int, absent: int, present: int, errors: int) -> int:
    """How many multisets of records, as sets of items that differ from the base, publish exactly this."""
    items = range(absent + present)
    every = [frozenset(compress(items, bits)) for bits in product((0, 1), repeat=len(items))]
    found = 0
    for records in combinations_with_replacement(every, size):
        times = [sum(item in record for record in records) for item in items]
        # an item outside the base is in at most half of the records, one inside it is in more than half
        fits = all(0 < 2 * number <= size if item < absent else 0 < 2 * number < size for item, number in enumerate(times))
        found += fits and max(map(len, records)) == errors
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_one_possibility_is_told_from_several(size: int) -> None:
    told = {True: 0, False: 0}
    for absent, present in product(range(5), repeat=2):
        if absent + present > (4 if size < 6 else 3):
            continue  # brute force
        for errors in range(absent + present + 2):
            number = solutions(size, absent, present, errors)
            assert is_unique(size, absent, present, errors) == (number == 1)
            told[number == 1] += 1
    assert min(told.values()) > 0


@pytest.mark.parametrize(
    ("group", "unique"),
    [
        ((20, 0, 0, 0), True),  # all alike
        ((20, 20, 0, 1), True),  # each differs in an item of its own
        ((20, 19, 0, 1), False),  # who differs in none, or twice the same?
        ((20, 300, 20, 16), False),  # full: but who has which?
        ((3, 40, 0, 40), True),  # one has all of them
        ((3, 40, 0, 39), False),
        ((1000, 5, 5, 3), False),
    ],
    ids=str,
)
def test_large_groups(group: tuple[int, int, int, int], unique: bool) -> None:
    assert is_unique(*group) == unique
