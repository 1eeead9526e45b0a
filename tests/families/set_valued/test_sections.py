"""The set_valued part of a report and its plots: honest about items, blind to their names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from anon_spark.families.set_valued.facts import (
    CountExample,
    FitTimes,
    FrequentItem,
    Measures,
    QueryErrors,
    Rebuilt,
    SetValuedFacts,
    SetValuedRisk,
    UncertainItems,
)
from anon_spark.families.set_valued.sections import set_valued_sections
from anon_spark.model.estimate import Estimate
from anon_spark.model.facts import CrowdRange
from anon_spark.report import Bars, Section, Table, Text
from anon_spark.report.formats import plain
from anon_spark.risk.item_sets.known_link import KnownLinkRisk
from anon_spark.risk.item_sets.relink_facts import KnownLink, LinkAttack

FIT, SIMULATION = Estimate(0.207, 0.0034, 0.2), Estimate(0.198, 0.0034, 0.2)
RISK = SetValuedRisk(
    link_attack=LinkAttack.of(500, 256, FIT, SIMULATION, 0.26),
    known_link=KnownLink.of([KnownLinkRisk("none", 0, 0, None)]),
    reconstruction=Rebuilt(
        records_looked_at=6000,
        records_known_in_all_items_by_who_knows_the_order=0.4,
        items_known_by_who_knows_the_order=0.9,
        records_known_in_all_items_from_the_rows_alone=0.11,
        rows_whose_most_similar_row_is_a_neighbour=0.3,
        more_may_be_known=False,
    ),
)
FACTS = SetValuedFacts(
    required_k=5,
    k=5,
    l=None,
    order="window",
    graph="ring",
    truth=None,
    records=6000,
    universe=870,
    statistics=FitTimes(seconds=3.5, seconds_sort=0.5, seconds_blocks=0.2),
    measures=Measures(er=0.61, empty=0, blocks=2, steps=90000, edges=30000, uncertain=21.5, max_errors=9.25),
    orders={"gray_tsp": 1, "window": 1},
    uncertain_items=(UncertainItems(0, 0, 10), UncertainItems(16, 31, 5990)),
    queries=QueryErrors(100, 1, 5, 0.0123, 0.0456, 0.1, 0.2),
    example=CountExample(estimate=332.5, lower=46, upper=766, base=157),
    definition_only=False,
    risk=RISK,
)


def facts_of(**changes: Any) -> SetValuedFacts:
    return replace(FACTS, **changes)


@pytest.fixture(scope="module")
def whole() -> list[Section]:
    return set_valued_sections(FACTS)


def tables(sections: list[Section]) -> dict[str, Table]:
    return {f"{part.title}/{item.title}": item for part in sections for item in part.items if isinstance(item, Table)}


def texts(sections: list[Section]) -> str:
    """Paragraphs, and notes of tables."""
    items = [item for part in sections for item in part.items]
    lines = [item.paragraphs if isinstance(item, Text) else [item.note] for item in items if isinstance(item, Text | Table)]
    return " ".join(line for paragraphs in lines for line in paragraphs)


def test_every_part_is_there(whole: list[Section]) -> None:
    assert [part.title for part in whole] == [
        "What was lost", "What counts are worth", "What an attacker gains", "Order and graph",
    ]  # fmt: skip
    uncertain, errors, found = (item for part in whole for item in part.items if isinstance(item, Bars))
    assert (uncertain.title, uncertain.names, uncertain.series["rows"]) == (
        "Rows by their uncertain items", ["0", "16 – 31"], [10, 5990],
    )  # fmt: skip
    assert errors.title == "Mean error of a count (QE)" and errors.series["on the release"] == [0.0123, 0.0456]
    assert found.title == "Records found by a link attack" and found.series["rate"] == [0.207, 0.198]
    assert found.limit == (0.2, "promised at most") and found.intervals[0] == FIT.interval


def test_items_are_shown_as_certain_and_possible() -> None:
    item = FrequentItem("bread", records=900, certain=300, possible=1200)
    crowds = (CrowdRange(1, 1, 0.9, 0.0), CrowdRange(2, 4, 0.1, 0.0), CrowdRange(5, None, 0.0, 1.0))
    sections = set_valued_sections(facts_of(frequent_items=(item,), crowds=crowds))
    shown = {item.title: item for part in sections for item in part.items if isinstance(item, Bars)}
    assert shown["The most frequent items"].series == {
        "source": [0.15], "release, certainly": [0.05], "release, possibly": [0.2],
    }  # fmt: skip
    assert shown["Crowds before and after"].names == ["1 (found)", "2 – 4", "5 and more"]


def test_numbers_stand_where_they_belong(whole: list[Section]) -> None:
    found = tables(whole)
    assert [row[1] for row in found["What was lost/"].rows] == [0.61, 21.5, 9.25, 0]
    bounds = found["What counts are worth/Example: how many rows have some frequent item"]
    assert [tuple(row) for row in bounds.rows] == [
        ("certainly", 46), ("estimated", 332.5), ("possibly", 766), ("by the base items alone", 157),
    ]  # fmt: skip
    assert [row[1] for row in found["Order and graph/Order of the records"].rows] == [1, 1]
    order = {row[0]: row[1] for row in found["Order and graph/How the rows were made"].rows}
    assert (order["Blocks"], order["Pairs of a record and a row it may be"], order["Time of sorting"]) == (2, 30000, "0.50 s")
    assert "Equal sensitive values kept apart by" not in order


def test_it_says_that_items_are_not_protected(whole: list[Section]) -> None:
    assert "Items are not protected." in texts(whole)
    assert "never against the published one" in texts(whole)
    rebuilt = tables(whole)["What an attacker gains/Reconstruction of item sets"]
    assert [row[1] for row in rebuilt.rows] == [6000, "40 %", "90 %", "11 %", "30 %", False]
    assert rebuilt.rows[3][0] == "records known in all items, from the rows alone"


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


def test_parts_without_facts_are_left_out() -> None:
    """Counts of no items, and a known link beside which no pair was tried."""
    some = set_valued_sections(facts_of(queries=None, example=None))
    assert [part.title for part in some] == ["What was lost", "What an attacker gains", "Order and graph"]
    assert "One known link" not in texts(some)
    bare = tables(set_valued_sections(facts_of(example=None)))
    assert "What counts are worth/Example: how many rows have some frequent item" not in bare
    known = KnownLink.of([KnownLinkRisk("none", 9, 3, FIT), KnownLinkRisk("other", 9, 3, SIMULATION)])
    told = set_valued_sections(facts_of(risk=replace(RISK, known_link=known)))
    (known_links,) = (item for title, item in tables(told).items() if "known link" in title)
    assert [row[1] for row in known_links.rows] == [0.207, 0.198]
    assert "lifts the rate" not in texts(told)


def test_rates_are_shown_with_what_they_are_judged_by(whole: list[Section]) -> None:
    attack = tables(whole)["What an attacker gains/Link attack"]
    assert [tuple(row[:3]) for row in attack.rows] == [
        ("nearest row that fits", 0.207, 0.0034), ("most frequent in own draws", 0.198, 0.0034),
    ]  # fmt: skip
    assert attack.note == "500 records, 256 fresh draws."
    assert "Nearest row that fits: 0.2070 (95 % interval 0.2003 to 0.2137" in texts(whole)
    assert "not above the promise); promised at most 0.2000." in texts(whole)


def test_the_json_of_a_run_keeps_its_names() -> None:
    told = plain(FACTS)
    assert list(told) == [
        "required_k", "k", "l", "order", "graph", "truth", "records", "universe", "statistics", "measures", "orders",
        "uncertain_items", "queries", "example", "definition_only", "risk", "frequent_items", "distributions", "crowds",
    ]  # fmt: skip
    assert told["uncertain_items"][1] == {"from": 16, "to": 31, "rows": 5990}
    assert told["statistics"] == {"seconds": 3.5, "seconds_sort": 0.5, "seconds_blocks": 0.2}
    assert list(told["risk"]) == ["link_attack", "known_link", "reconstruction"]
    assert told["risk"]["link_attack"]["standard_error_by_simulation"] == 0.0034


def test_a_summary_tells_what_is_worth_and_what_is_found() -> None:
    assert FACTS.summary() == [
        "Error rate 0.6100: wrong items of a row per item of its record.",
        "Rows with the most frequent item: 46 to 766, estimated 332.5.",
        "A simulated link attack finds 0.2070 of the rows, promised at most 0.2000.",
        "The items are not protected: 40.0% of the records can be worked out by who knows the order of rows.",
    ]
    assert len(facts_of(example=None, measures=replace(FACTS.measures, er=None)).summary()) == 2
    undecided = replace(FACTS.risk, reconstruction=replace(FACTS.risk.reconstruction, more_may_be_known=True))
    *_, last = replace(FACTS, graph="groups", risk=undecided).summary()
    assert last == "The items are not protected: 40.0% or more of the records can be worked out from the rows alone."
