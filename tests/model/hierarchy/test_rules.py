"""Masks and dates, with the values known or not."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy import DateRule, Hierarchy, MaskRule, Rule


def test_mask_keeps_the_left_side() -> None:
    codes = Hierarchy.mask(["13053", "13051", "1305", "13051"])
    assert list(codes.rows()) == [
        ("1305", "1305*", "130**", "13***", "1****", "*"),
        ("13051", "1305*", "130**", "13***", "1****", "*"),
        ("13053", "1305*", "130**", "13***", "1****", "*"),
    ]
    assert codes.height == 5
    assert [int(weights[0]) for weights in codes.weights] == [0, 9, 99, 999, 9999, 99999]
    assert codes.weight_total == 99999
    assert [int(leaves[0]) for leaves in codes.leaves_below] == [1, 10, 100, 1000, 10**4, 10**5]
    assert codes.rule == MaskRule("left", 5, 10)


def test_mask_keeps_the_right_side_and_fills_short_values() -> None:
    codes = Hierarchy.mask(["123", "45"], keep="right", alphabet=2)
    assert list(codes.rows()) == [("123", "*23", "**3", "*"), ("45", "*45", "**5", "*")]
    assert next(Hierarchy.mask(["45", "1"], keep="left", length=3).rows()) == ("1", "1 *", "1**", "*")
    assert codes.weight_total == 7


def test_mask_rule_fixes_its_length_with_the_first_values() -> None:
    rule = Hierarchy.mask()
    assert isinstance(rule, MaskRule)
    first = rule.build(["123", "1"])
    assert first.rule is not None
    later = first.rule.build(["9", "12345"])
    assert later.height == 3
    assert later.leaf_of("12345") is None  # longer than the rule knows
    assert later.weight_total == first.weight_total


def test_mask_meets_numbers_and_nulls() -> None:
    codes = Hierarchy.mask(["13051", "13053"]).with_null()
    assert codes.leaf_of(13051) == codes.leaf_of(13051.0) == codes.leaf_of("13051") == 0
    assert codes.leaf_of("13051.0") is None
    assert (codes.leaf_of(None), codes.weight_total) == (2, 10**5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keep": "middle"}, "left or right"),
        ({"alphabet": 1}, "at least 2"),
        ({"length": 0}, "at least 1"),
        ({"length": "5"}, "whole numbers"),
        ({"length": 19}, "smaller length"),
        ({"values": ["x" * 40]}, "smaller length"),
        ({"values": []}, "none of 0 values"),
        ({"values": ["123"], "length": 2}, "none of 1 values"),
    ],
)
def test_refused_masks(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        Hierarchy.mask(**arguments)


def test_dates_with_a_domain() -> None:
    born = Hierarchy.dates(["month", "quarter", "year", "decade", "century"], "1999-12-30", date(2000, 4, 1))
    assert (born.kind, born.height, born.leaf_count) == ("date", 6, 94)
    rows = list(born.rows())
    assert rows[0] == ("1999-12-30", "1999-12", "1999-Q4", "1999", "1990s", "1900-1999", "*")
    assert rows[-1] == ("2000-04-01", "2000-04", "2000-Q2", "2000", "2000s", "2000-2099", "*")
    assert born.weights[3].tolist() == [1, 91]
    assert born.weight_total == 93
    assert born.ambiguous_labels() == []


def test_weeks_follow_iso() -> None:
    days = Hierarchy.dates(["week"], "2020-12-28", "2021-01-10")
    assert days.labels[1] == ("2020-W53", "2021-W01")
    assert days.leaves_below[1].tolist() == [7, 7]


@pytest.mark.parametrize(
    ("unit", "start", "stop"),
    [
        ("week", "2020-02-24", "2021-11-14"),
        ("month", "2020-02-01", "2021-11-30"),
        ("quarter", "2020-01-01", "2021-12-31"),
        ("year", "2020-01-01", "2021-12-31"),
        ("decade", "2020-01-01", "2029-12-31"),
        ("century", "2000-01-01", "2099-12-31"),
    ],
)
def test_open_domain_becomes_whole_units(unit: str, start: str, stop: str) -> None:
    days = Hierarchy.dates([unit]).build(["2021-11-13", "2020-02-27 23:59:59", "no date"])
    assert days.rule == DateRule((unit,), start, stop)
    assert (days.keys[0], days.keys[-1]) == (start, stop)
    assert days.rule is not None
    assert days.rule.build([]) == days


def test_ends_of_the_calendar() -> None:
    early = Hierarchy.dates(["century"]).build(["0001-05-01"])
    assert (early.keys[0], early.keys[-1], early.labels[1]) == ("0001-01-01", "0099-12-31", ("0000-0099",))
    assert Hierarchy.dates(["year"]).build(["9999-05-01"]).keys[-1] == "9999-12-31"
    assert Hierarchy.dates(["week"]).build(["9999-12-31"]).keys[-1] == "9999-12-31"


def test_days_find_their_leaf_however_typed() -> None:
    days = Hierarchy.dates(["month"], "2020-01-01", "2020-12-31")
    values = [date(2020, 1, 3), datetime(2020, 1, 3, 23, 59), datetime(2020, 1, 3, 1, tzinfo=UTC), "2020-01-03"]
    assert {days.leaf_of(value) for value in [*values, "2020-01-03T10:00:00Z", "2020-01-03 10:00:00.5"]} == {2}
    unseen = ["2020-1-3", "20200103", "2020-02-30", "2019-12-31", "2020-01-03x", 20200103, None, ""]
    assert {days.leaf_of(value) for value in unseen} == {None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"units": []}, "at least one unit"),
        ({"units": ["week", "month"]}, "stand alone"),
        ({"units": ["year", "month"]}, "coarser"),
        ({"units": ["month", "month"]}, "coarser"),
        ({"units": ["mnth"]}, "Did you mean: month"),
        ({"units": ["day", "month"]}, "unknown unit"),
        ({"units": ["month"], "start": "2020-01-01"}, "both start and stop"),
        ({"units": ["month"], "start": "2020-01-01", "stop": "2019-01-01"}, "not before start"),
        ({"units": ["month"], "start": "tomorrow", "stop": "2019-01-01"}, "must be dates"),
        ({"units": ["month"], "start": "0001-01-01", "stop": "9999-01-01"}, "more than 1,000,000"),
    ],
)
def test_refused_dates(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        Hierarchy.dates(**arguments)
    with pytest.raises(HierarchyError, match="no value is a date"):
        Hierarchy.dates(["month"]).build(["soon"])


@pytest.mark.parametrize("rule", [MaskRule(), MaskRule("right", 5, 36), DateRule(("month",)),
                                  DateRule(("year", "decade"), "2020-01-01", "2020-02-01")])  # fmt: skip
def test_rules_survive_storage(rule: Rule) -> None:
    assert Rule.from_dict(rule.to_dict()) == rule


@pytest.mark.parametrize("content", [{}, {"rule": "soundex"}, {"rule": "mask", "size": 3}, {"rule": "date"}])
def test_damaged_rules_are_refused(content: dict[str, Any]) -> None:
    with pytest.raises(HierarchyError):
        Rule.from_dict(content)
