"""Whole numbers in closed intervals, continuous ranges in half-open bins."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy import Hierarchy


def test_adult_age_levels() -> None:
    age = Hierarchy.intervals(17, 90, [3, 6, 12, 24, 48])
    assert (age.height, age.leaf_count, age.kind) == (6, 74, "number")
    assert [age.cardinality(level) for level in range(7)] == [74, 25, 13, 7, 4, 2, 1]
    assert age.labels[1][0] == "[17, 19]"
    assert age.labels[1][-1] == "[89, 90]"
    assert age.labels[5] == ("[17, 64]", "[65, 90]")
    assert age.weights[0].tolist() == [0] * 74
    assert age.weights[5].tolist() == [47, 25]
    assert age.weight_total == 73 == int(age.weights[6][0])
    assert age.leaves_below[5].tolist() == [48, 26]
    assert age.bounds is not None
    assert [side.tolist() for side in age.bounds[5]] == [[17.0, 65.0], [64.0, 90.0]]
    assert age.ambiguous_labels() == []


def test_negative_bounds_read_well() -> None:
    frost = Hierarchy.intervals(-15, 6, [5])
    assert frost.labels[1] == ("[-15, -11]", "[-10, -6]", "[-5, -1]", "[0, 4]", "[5, 6]")
    assert frost.leaf_of(-15) == 0
    assert frost.leaf_of("-15.0") == 0


def test_no_widths_and_single_numbers() -> None:
    assert Hierarchy.intervals(1, 3, []).height == 1
    one = Hierarchy.intervals(5, 5, [2])
    assert (one.weight_total, one.labels[1]) == (0, ("[5, 5]",))
    assert Hierarchy.intervals(0, 2, [3]).weight_total == 2


def test_edges_of_intervals() -> None:
    grid = Hierarchy.intervals(15, 100, [5], exact=False)
    assert grid.labels[0][grid.leaf_of(20) or 0] == "[20, 25)"
    assert grid.labels[0][-1] == "[95, 100]"
    assert grid.leaf_of(100) == grid.leaf_of(95) == 16
    assert grid.leaf_of(100.001) is None
    assert grid.leaf_of(14.999) is None
    assert grid.leaf_of("19.99999999999999999999") == 0
    assert grid.dictionary(numeric=True) == []


@pytest.mark.parametrize("tenths", range(11))
def test_decimals_are_exact(tenths: int) -> None:
    grid = Hierarchy.intervals(0, 1, [0.1, 0.5], exact=False)
    assert grid.leaf_of(tenths / 10) == min(tenths, 9)
    assert grid.leaf_of(Decimal(tenths) / 10) == min(tenths, 9)
    assert grid.leaf_of(np.float32(tenths / 10)) == min(tenths, 9)
    assert grid.labels[1] == ("[0, 0.5)", "[0.5, 1]")


def test_bins_weigh_their_clipped_width() -> None:
    grid = Hierarchy.intervals("0.5", "2.25", ["0.5", "1"], exact=False)
    assert grid.labels[0] == ("[0.5, 1)", "[1, 1.5)", "[1.5, 2)", "[2, 2.25]")
    assert [weights.tolist() for weights in grid.weights] == [[2, 2, 2, 1], [4, 3], [7]]
    assert grid.weight_total == 7
    assert grid.bins is not None
    assert (grid.bins.start, grid.bins.width, grid.bins.count) == (Decimal("0.5"), Decimal("0.5"), 4)


def test_null_leaf_keeps_numeric_totals() -> None:
    age = Hierarchy.intervals(0, 9, [5]).with_null()
    assert (age.leaf_count, age.weight_total) == (11, 9)
    assert age.leaf_of(None) == 10
    assert age.labels[1] == ("[0, 4]", "[5, 9]", None)
    assert age.weights[1].tolist() == [4, 4, 0]
    assert age.codes[:, 10].tolist() == [10, 2, 0]
    assert age.bounds is not None
    assert np.isnan(age.bounds[1][0][2])
    assert age.with_null() is age


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"widths": [5, 8]}, "overlap"),
        ({"widths": [10, 5]}, "overlap"),
        ({"widths": [5, 5]}, "overlap"),
        ({"widths": [0]}, "positive"),
        ({"widths": [-5]}, "positive"),
        ({"widths": [1, 5]}, "width of 1"),
        ({"widths": [2.5]}, "whole numbers"),
        ({"widths": ["wide"]}, "plain numbers"),
        ({"widths": [True]}, "plain numbers"),
        ({"start": 10, "stop": 0, "widths": [5]}, "below 'from'"),
        ({"start": 0, "stop": 10**6, "widths": [5]}, "1,000,001 leaves"),
        ({"start": 0, "stop": 1, "widths": ["1e-7"], "exact": False}, "10,000,000 leaves"),
        ({"widths": [], "exact": False}, "at least one width"),
        ({"start": 3, "stop": 3, "widths": [5], "exact": False}, "above 'from'"),
        ({"start": 0, "stop": "1e19", "widths": ["1e18"], "exact": False}, "too many digits"),
        ({"start": float("nan"), "widths": [5]}, "plain numbers"),
    ],
)
def test_refused_intervals(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        Hierarchy.intervals(**{"start": 0, "stop": 100, **arguments})
