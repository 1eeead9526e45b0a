"""The set_valued part of a report and its plots: honest about items, blind to their names."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from anon_spark.report import Picture, Section, Table, Text, set_valued_sections
from anon_spark.report.plots import rates_plot, sizes_plot

FACTS: dict[str, Any] = {
    "required_k": 5,
    "k": 5,
    "l": None,
    "order": "window",
    "graph": "ring",
    "truth": None,
    "records": 6000,
    "universe": 870,
    "definition_only": False,
    "statistics": {"seconds": 3.5, "seconds_sort": 0.5, "seconds_blocks": 0.2},
    "measures": {
        "er": 0.61, "empty": 0, "blocks": 2, "steps": 90000, "edges": 30000, "uncertain": 21.5,
        "max_errors": 9.25,
    },
    "orders": {"gray_tsp": 1, "window": 1},
    "uncertain_items": [{"from": 0, "to": 0, "rows": 10}, {"from": 16, "to": 31, "rows": 5990}],
    "queries": {"number": 100, "size_present": 1, "size_absent": 5, "present": 0.0123, "absent": 0.0456},
    "example": {"estimate": 332.5, "lower": 46, "upper": 766, "base": 157},
    "risk": {
        "link_attack": {"fresh_draws": 256, "rate_by_fit": 0.207, "rate_by_simulation": 0.198, "promised_at_most": 0.2},
        "reconstruction": {"records_known_in_all_items_from_the_rows_alone": 0.11, "more_may_be_known": False},
    },
}  # fmt: skip


def facts_of(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(FACTS), **changes}


@pytest.fixture(scope="module")
def whole() -> list[Section]:
    return set_valued_sections(FACTS)


def tables(sections: list[Section]) -> dict[str, Table]:
    return {f"{part.title}/{item.title}": item for part in sections for item in part.items if isinstance(item, Table)}


def texts(sections: list[Section]) -> str:
    return " ".join(line for part in sections for item in part.items if isinstance(item, Text) for line in item.paragraphs)


def test_every_part_is_there(whole: list[Section]) -> None:
    assert [part.title for part in whole] == [
        "What was lost", "What counts are worth", "What an attacker gains", "Order and graph",
    ]  # fmt: skip
    shown = [item for part in whole for item in part.items if isinstance(item, Picture)]
    assert [picture.title for picture in shown] == [
        "Rows by their uncertain items", "Mean error of a count (QE)", "Share of records found",
    ]  # fmt: skip
    assert "16 – 31: 5,990 rows" in shown[0].alt
    assert "(type I): 0.0123" in shown[1].alt and "none of 5 items (type II): 0.0456" in shown[1].alt
    assert "0.207" in shown[2].alt and "0.198" in shown[2].alt and "promised at most: 0.2" in shown[2].alt


def test_numbers_stand_where_they_belong(whole: list[Section]) -> None:
    found = tables(whole)
    assert [row[1] for row in found["What was lost/"].rows] == [0.61, 21.5, 9.25, 0]
    bounds = found["What counts are worth/Example: how many rows have some frequent item"]
    assert [tuple(row) for row in bounds.rows] == [
        ("certainly", 46), ("estimated", 332.5), ("possibly", 766), ("by the base items alone", 157),
    ]  # fmt: skip
    assert [row[1] for row in found["Order and graph/Order of the records"].rows] == [1, 1]
    order = {row[0]: row[1] for row in found["Order and graph/"].rows}
    assert (order["Blocks"], order["Pairs of a record and a row it may be"], order["Time of sorting"]) == (2, 30000, "0.50 s")
    assert "Equal sensitive values kept apart by" not in order


def test_it_says_that_items_are_not_protected(whole: list[Section]) -> None:
    assert "Items are not protected." in texts(whole)
    assert "never against the published one" in texts(whole)
    rebuilt = tables(whole)["What an attacker gains/Reconstruction of item sets"]
    assert [row[1] for row in rebuilt.rows] == [0.11, False]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"required_k": 2, "k": 2}, "with k = 2 a ring has only two possible assignments"),
        ({"required_k": 2, "k": None, "l": 2, "truth": "spaced"}, "with l = 2 a ring has only two possible assignments"),
        ({"required_k": 4, "k": None, "l": 4, "truth": "shift"}, "only l possible assignments"),
    ],
)
def test_weak_settings_are_labelled_first(changes: dict[str, Any], words: str) -> None:
    sections = set_valued_sections(facts_of(definition_only=True, **changes))
    assert sections[0].title == "Definition only" and words in texts(sections[:1])


@pytest.mark.parametrize(
    "planted",
    [
        {"example": {"estimate": 1.0, "item": "HIV test"}},
        {"queries": {**FACTS["queries"], "worst": ["HIV test"]}},
        {"risk": {"link_attack": {"rate_by_fit": "HIV test"}}},
        {"measures": {"er": 0.1, "item": "HIV test"}},
    ],
)
def test_an_item_is_refused(planted: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a number is needed") as caught:
        set_valued_sections(facts_of(**planted))
    assert "HIV" not in str(caught.value)


def test_parts_without_facts_are_left_out() -> None:
    assert set_valued_sections({"required_k": 5}) == []
    some = set_valued_sections(facts_of(risk={}, queries=None, example=None, uncertain_items=[]))
    assert [part.title for part in some] == ["What was lost", "Order and graph"]
    link = {"link_attack": FACTS["risk"]["link_attack"]}
    assert "Items are not protected" not in texts(set_valued_sections(facts_of(risk=link)))


def test_the_promise_is_a_line_of_its_own() -> None:
    rates = {"nearest": 0.21, "promised at most": 0.2}
    with_line, without = rates_plot(rates, 0.2), rates_plot(rates)
    assert with_line.startswith("<svg") and with_line == rates_plot(rates, 0.2)
    assert len(re.findall("stroke-dasharray", with_line)) == len(re.findall("stroke-dasharray", without)) + 1
    assert rates_plot({"nothing": 0.0}).startswith("<svg")


def test_sizes_are_bars_with_their_numbers() -> None:
    drawn = sizes_plot(FACTS["uncertain_items"], "rows", "uncertain items of a row")
    assert drawn == sizes_plot(FACTS["uncertain_items"], "rows", "uncertain items of a row")
    assert all(text in drawn for text in ("5,990", "16 – 31", "uncertain items of a row"))
