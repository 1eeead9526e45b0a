"""What a group of item sets gives away: whether its records follow from what it publishes, against brute force."""

from __future__ import annotations

from itertools import combinations_with_replacement, compress, product

import pytest

from anon_spark.risk.item_sets import group_solutions
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


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_one_possibility_is_told_from_several(size: int) -> None:
    told = {True: 0, False: 0}
    for absent, present in ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2)):
        for errors in range(absent + present + 1):
            if size > 3 and absent + present > 2:
                continue  # brute force
            number = solutions(size, absent, present, errors)
            if number:  # else no group publishes this
                assert is_unique(size, absent, present, errors) == (number == 1)
                told[number == 1] += 1
    assert min(told.values()) > 0


def test_what_takes_too_long_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_solutions, "MOST_STEPS", 3)
    is_unique.cache_clear()
    assert is_unique(7, 9, 8, 11) is None
    is_unique.cache_clear()
