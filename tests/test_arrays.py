"""Numbers once and among others, as sets have them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.arrays import each_once, is_among

NUMBERS = st.lists(st.sampled_from([-(2**63), -7, -1, 0, 1, 1, 5, 2**40, 2**63 - 1]))


@given(NUMBERS, NUMBERS)
def test_numbers_are_those_of_a_set(values: list[int], known: list[int]) -> None:
    given_values, given_known = np.array(values, dtype=np.int64), np.array(known, dtype=np.int64)
    assert each_once(given_values).tolist() == sorted(set(values))
    assert is_among(given_values, given_known).tolist() == [value in known for value in values]
    assert given_values.tolist() == values and given_known.tolist() == known


def test_all_numbers_of_a_table_count() -> None:
    assert each_once(np.array([[3, 1], [1, 2]])).tolist() == [1, 2, 3]
