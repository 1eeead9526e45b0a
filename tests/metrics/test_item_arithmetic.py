"""The arithmetic of UL and ARE on arrays, against brute force in fractions (no Spark)."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anon_spark.metrics.relative_error import _chances, _covering, _item_chances, _Spread
from anon_spark.metrics.utility_loss import _log2_ul_dom
from anon_spark.model.hierarchy import Hierarchy
from tests.oracle import rt_oracle as oracle

ROWS = [  # published items of five rows; the second has none
    [["a"], ["b", "c"], ["d", "e", "f"]],
    [],
    [["a", "f"]],
    [["a", "b", "c", "d", "e", "f", "g"]],
    [["g"], ["f"]],
]


@pytest.mark.parametrize(
    ("times", "domain"),
    [({2: 3, 1: 50}, 4), ({1: 2, 3: 1, 70: 5}, 70), ({900: 1, 901: 7, 2: 10**6}, 5000), ({2: 1}, 3000)],
)
def test_log2_ul_dom_of_any_size(times: dict[int, int], domain: int) -> None:
    rows = [[tuple(map(str, range(size)))] * min(number, 20) for size, number in times.items()]
    counts = {size: min(number, 20) for size, number in times.items()}
    assert _log2_ul_dom(counts, len(rows), domain) == pytest.approx(oracle.log2_ul_dom(rows, domain), rel=1e-13)


def test_log2_ul_dom_of_nothing_generalized() -> None:
    assert _log2_ul_dom({1: 5}, 5, 3) is None and _log2_ul_dom({}, 5, 3) is None


@pytest.mark.parametrize("start", [0, 1, 2])
def test_chances_of_items(start: int) -> None:
    """Also of a batch that begins inside another."""
    known = ["a", "c", "f", "z", "d"]
    lists: Any = pa.array([[["z", "y"]]] * start + ROWS, pa.list_(pa.list_(pa.string()))).slice(start)
    covering, size = _covering(lists, known)
    for count in range(4):
        for asked in combinations(range(len(known)), count):
            items = covering[list(asked)]
            matching = np.flatnonzero((items >= 0).all(axis=0))
            found = _item_chances(items[:, matching], size)
            for mode, chances in zip(("sets", "uniform"), found, strict=True):
                shares = dict(zip(matching.tolist(), chances.tolist(), strict=True))
                for at, row in enumerate(ROWS):
                    groups = [tuple(group) for group in row]
                    expected = oracle.item_probability(groups, [known[item] for item in asked], mode)
                    assert shares.get(at, 0.0) == pytest.approx(float(expected), rel=1e-15)


def test_a_large_item_is_one_half_likely() -> None:
    covering, size = np.array([[0], [0]], dtype=np.int32), np.array([2000])
    sets, uniform = _item_chances(covering, size)
    assert sets[0] == 0.25 and uniform[0] == pytest.approx(1 / 2000**2)
    assert oracle.item_probability([tuple(map(str, range(64)))], ["1", "2"]) == Fraction(2**62, 2**64 - 1)


def test_distinct_values_in_ranges() -> None:
    """Ends lie among the values, gaps between them may be empty."""
    draw = Random(3)
    values = sorted({draw.randrange(200) / 4 for _ in range(60)})
    ranges = [tuple(sorted(draw.sample(values, 2))) for _ in range(12)] + [(values[7], values[7])]
    ends = np.unique(np.array(ranges))
    bucket = np.searchsorted(ends, values, "left") + np.searchsorted(ends, values, "right")
    spread = _Spread(ends, np.cumsum(np.bincount(bucket, minlength=2 * len(ends) + 1)))
    low, high = np.array(ranges).T
    expected = [sum(lo <= value <= hi for value in values) for lo, hi in ranges]
    assert spread.within(low, high).tolist() == expected and len(set(expected)) > 5


def test_chances_of_labels() -> None:
    tree = Hierarchy.from_levels([("a", "ab", "*"), ("b", "ab", "*"), ("c", "c", "*")])
    assert _chances(tree, "a", False) == {"a": 1.0, "ab": 0.5, "*": 1 / 3}
    assert _chances(tree, "c", False) == {"c": 1.0, "*": 1 / 3}  # padding: a label once
    assert _chances(tree.with_null(), None, False) == {None: 1.0, "*": 0.25}
    assert _chances(tree, None, False) == {} and _chances(tree, "x", False) == {}
    numbers = Hierarchy.intervals(0, 3, [2])
    assert _chances(numbers, 2, False)[numbers.labels[0][2]] == 1.0
    assert sorted(_chances(numbers, 2, False).values()) == [0.25, 0.5, 1.0]
    assert _chances(numbers, "2.0", True) == _chances(numbers, 2, False)
    bins = Hierarchy.intervals(0, 4, [1, 2], exact=False)
    assert sorted(_chances(bins, 3, False).values()) == [0.25, 0.5, 1.0] and _chances(bins, -1, False) == {}
