"""One number, one leaf; storage and display."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy import Hierarchy, canonical_number

AGES = [["33", "young", "*"], ["66", "old", "*"], ["unknown", "old", "*"]]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("33", "33"), ("33.00", "33"), ("33.", "33"), ("+33", "33"), ("3.3e1", "33"), ("3.3E+01", "33"), (" 33 ", "33"),
        ("0033", "33"), ("330e-1", "33"), ("-0", "0"), ("-0.00", "0"), ("0e999", "0"), (".5", "0.5"), ("-.50", "-0.5"),
        ("100", "100"), ("1E3", "1000"), ("1e-3", "0.001"), ("0.10", "0.1"), ("123456789012345678901234567890.10",
        "123456789012345678901234567890.1"), ("nan", None), ("inf", None), ("abc", None), ("", None), (".", None),
        ("e5", None), ("1e", None), ("1e999999", None), ("1_000", None), ("٣", None), ("1.2.3", None), ("0x10", None),
    ],
)  # fmt: skip
def test_canonical_number(text: str, number: str | None) -> None:
    assert canonical_number(text) == number


@pytest.mark.parametrize("value", [33, 33.0, Decimal("33.00"), np.int64(33), np.float32(33), np.float64(33)])
def test_numbers_meet_the_same_leaf(value: object) -> None:
    assert Hierarchy.from_levels(AGES).leaf_of(value) == 0
    assert Hierarchy.intervals(30, 40, [5]).leaf_of(value) == 3
    assert Hierarchy.intervals(30, 40, [5], exact=False).leaf_of(value) == 0


def test_texts_meet_by_spelling_or_by_number() -> None:
    ages = Hierarchy.from_levels(AGES)
    assert [ages.leaf_of(text) for text in ("33", "33.00", "unknown", "Unknown")] == [0, None, 2, None]
    assert Hierarchy.intervals(30, 40, [5]).leaf_of("33.00") == 3


UNSEEN: list[object] = [33.5, float("nan"), float("inf"), None, True, np.bool_(True), "x", b"33", [33], 29, 41]


@pytest.mark.parametrize("value", UNSEEN)
def test_everything_else_is_unseen(value: object) -> None:
    assert Hierarchy.intervals(30, 40, [5]).leaf_of(value) is None
    assert Hierarchy.from_levels(AGES).leaf_of(value) is None
    if value != 33.5:
        assert Hierarchy.intervals(30, 40, [5], exact=False).leaf_of(value) is None


def test_truth_values_and_days_are_texts() -> None:
    flags = Hierarchy.from_levels([["true", "*"], ["false", "*"], ["1", "*"], ["2020-01-02", "*"]])
    assert [flags.leaf_of(value) for value in (True, False, 1, np.bool_(False))] == [0, 1, 2, 1]
    assert flags.leaf_of(date(2020, 1, 2)) == 3
    stamps = Hierarchy.from_levels([["2020-01-02 03:04:05", "*"], ["2020-01-02 03:04:05.25", "*"]])
    assert stamps.leaf_of(datetime(2020, 1, 2, 3, 4, 5)) == 0
    assert stamps.leaf_of(datetime(2020, 1, 2, 3, 4, 5, 250000)) == 1


def test_null_is_a_leaf_only_when_asked_for() -> None:
    ages = Hierarchy.from_levels(AGES)
    assert ages.leaf_of(None) is None
    nullable = ages.with_null()
    assert nullable.leaf_of(None) == 3
    assert nullable.leaf_of("None") is None
    assert nullable.weight_total == ages.weight_total + 1 == int(nullable.weights[2][0])
    assert nullable.leaves_below[1].tolist() == [1, 2, 1]
    assert nullable.labels == (("33", "66", "unknown", None), ("young", "old", None), ("*",))
    assert nullable.keys == ages.keys
    assert nullable.dictionary(numeric=False) == [("33", 0), ("66", 1), ("unknown", 2)]


def test_dictionary_of_numbers() -> None:
    ages = Hierarchy.from_levels([["33.0", "a", "*"], ["x", "a", "*"], ["033", "a", "*"]])
    assert ages.dictionary(numeric=True) == [("33", 0)]
    assert ages.dictionary(numeric=False) == [("33.0", 0), ("x", 1), ("033", 2)]
    assert ages.leaf_of(33) == 0
    torn = Hierarchy.from_levels([["33.0", "a", "*"], ["033", "b", "*"]])
    assert torn.leaf_of("033") == 1
    with pytest.raises(HierarchyError, match=r"1 values spell a number .*no. 2"):
        torn.dictionary(numeric=True)


ALL = [
    Hierarchy.from_levels(AGES),
    Hierarchy.from_levels(AGES).with_null(),
    Hierarchy.intervals(-3, 7, [2, 4]).with_null(),
    Hierarchy.intervals("0.1", "0.75", ["0.1", "0.3"], exact=False).with_null(),
    Hierarchy.mask(["123", "9é"], keep="right"),
    Hierarchy.dates(["month", "year"], "2020-01-01", "2020-03-01"),
]


@pytest.mark.parametrize("hierarchy", ALL, ids=lambda hierarchy: hierarchy.kind)
def test_storage_is_exact(hierarchy: Hierarchy, tmp_path: Path) -> None:
    hierarchy.save(tmp_path / "h.json")
    again = Hierarchy.load(tmp_path / "h.json")
    assert again == hierarchy
    assert hash(again) == hash(hierarchy)
    assert again.rule == hierarchy.rule
    assert again.bins == hierarchy.bins
    assert again.codes.dtype == np.int32
    assert [array.dtype for array in again.weights] == [np.dtype(np.int64)] * (again.height + 1)
    for low, high in again.bounds or ():
        assert low.dtype == high.dtype == np.float64


@pytest.mark.parametrize(
    "damage",
    [
        {"anon_spark_hierarchy": 2}, {"kind": "colour"}, {"keys": ["33", "66"]}, {"keys": ["33", "33", "66"]},
        {"levels": []}, {"weight_total": 5}, {"has_null": True}, {"weight_total": None}, {"rule": {"rule": "x"}},
        {"bins": ["0", "1", "x", 3]},
    ],
)  # fmt: skip
def test_damaged_storage_is_refused(damage: dict[str, Any], tmp_path: Path) -> None:
    content = {**Hierarchy.from_levels(AGES).to_dict(), **damage}
    (tmp_path / "h.json").write_text(json.dumps(content))
    with pytest.raises(HierarchyError):
        Hierarchy.load(tmp_path / "h.json")


def test_storage_that_is_no_hierarchy(tmp_path: Path) -> None:
    content = Hierarchy.from_levels([["a", "x", "p", "*"], ["b", "x", "p", "*"], ["c", "y", "q", "*"]]).to_dict()
    content["levels"][2]["codes"] = [0, 1, 1]
    with pytest.raises(HierarchyError, match="not nested"):
        Hierarchy.from_dict(content)
    (tmp_path / "h.json").write_text("{")
    with pytest.raises(HierarchyError, match="no JSON"):
        Hierarchy.load(tmp_path / "h.json")
    with pytest.raises(HierarchyError, match="Cannot read"):
        Hierarchy.load(tmp_path / "none.json")
    with pytest.raises(HierarchyError, match="Cannot write"):
        ALL[0].save(tmp_path / "no folder" / "h.json")


def test_tree_shows_counts_and_padding_once() -> None:
    tree = Hierarchy.from_levels([["Private", "*"], ["Local", "gov", "*"], ["State", "gov", "*"]]).with_null().tree()
    assert tree.splitlines() == [
        "* (4 leaves)", "├─ Private", "├─ gov (2 leaves)", "│  ├─ Local", "│  └─ State", "└─ (null)",
    ]  # fmt: skip


def test_tree_is_cut() -> None:
    age = Hierarchy.intervals(0, 999, [10, 100])
    assert age.tree(max_lines=30).splitlines()[-1] == "(levels 0 to 1 not shown)"
    assert len(age.tree(max_lines=30).splitlines()) == 12
    wide = Hierarchy.from_levels([[str(number), "*"] for number in range(100)]).tree(max_lines=10).splitlines()
    assert (len(wide), wide[-1]) == (11, "… 91 more")


def test_html_is_escaped() -> None:
    page = Hierarchy.from_levels([["<script>", "*"]])._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "height=1" in repr(Hierarchy.from_levels([["<script>", "*"]]))
