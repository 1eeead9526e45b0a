"""The lattice part of a report and its plots: deterministic, readable, and blind to labels and small classes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace

import matplotlib
import pytest

from anon_spark.families.lattice.facts import LatticeFacts, Search
from anon_spark.families.lattice.sections import MOST_ROWS, lattice_sections
from anon_spark.model.facts import (
    CrowdRange,
    Distribution,
    FrontPoint,
    LabelCount,
    LevelReached,
    LookUp,
    LookUpRisk,
    SizeRange,
    UniqueRows,
)
from anon_spark.report import Bars, Picture, Section, Table
from anon_spark.report.plots import front_plot, range_name

AGE = LevelReached("age", level=2, height=3, labels=4, loss=0.3)
CHOSEN = FrontPoint((2, 1), k=12, loss=0.4, suppressed_rows=5, classes=30)
FACTS = LatticeFacts(
    loss="glm",
    required_k=10,
    chosen=CHOSEN,
    front=(
        FrontPoint((3, 1), k=100, loss=0.9, suppressed_rows=0, classes=3),
        CHOSEN,
        FrontPoint((1, 0), k=3, loss=0.1, suppressed_rows=9, classes=80),
    ),
    attributes=(AGE, LevelReached("a$x$<b>&", level=1, height=1, labels=1, loss=1.0)),
    search=Search(
        seconds=0.5, name="exact", loss="glm", nodes=8, evaluated=4, batches=2, tuples=200, rows=1000, budget=10, complete=True
    ),
    class_sizes=(SizeRange(10, 19, 20, 300), SizeRange(20, None, 10, 700)),
    risk=LookUpRisk(UniqueRows(0.04, 0.0), LookUp(100, 0.7, 0.03, 1 / 12, 0.1, 0.02, 0.04, 0.005, -14.0), {"disease": 0.25}),
)


@pytest.fixture(scope="module")
def whole() -> list[Section]:
    return lattice_sections(FACTS)


def tables(sections: list[Section]) -> dict[str, Table]:
    return {f"{part.title}/{item.title}": item for part in sections for item in part.items if isinstance(item, Table)}


def bars(sections: list[Section]) -> dict[str, Bars]:
    return {item.title: item for part in sections for item in part.items if isinstance(item, Bars)}


def front_words(sections: list[Section]) -> Sequence[str]:
    (front,) = (part for part in sections if part.title == "What each k costs")
    return front.items[0].paragraphs  # type: ignore[union-attr]


def pictures(sections: list[Section]) -> list[Picture]:
    return [item for part in sections for item in part.items if isinstance(item, Picture)]


def test_every_part_is_there(whole: list[Section]) -> None:
    sections = whole
    assert [part.title for part in sections] == [
        "How far each attribute was generalized",
        "What an attacker gains",
        "What each k costs",
        "Sizes of the published classes",
        "Search",
    ]
    assert [picture.title for picture in pictures(sections)] == ["Loss against k"]
    assert list(bars(sections)) == [
        "Detail lost", "Chance to pick the right row", "Unique rows", "Rows in classes with one sensitive value",
        "Classes by size", "Rows by size of their class",
    ]  # fmt: skip
    assert bars(sections)["Detail lost"].series == {"lost": [pytest.approx((0.3 * 1000 - 5) / 995), 1.0]}
    assert bars(sections)["Classes by size"].series == {"classes": [20, 10]}


def test_columns_and_crowds_are_shown_where_they_were_counted() -> None:
    counted = Distribution("age", "quasi-identifier", 1000, 995, (LabelCount("a", 500, 495), LabelCount("b", 500, 500)))
    crowds = (CrowdRange(1, 1, 0.04, 0.0), CrowdRange(2, 9, 0.5, 0.0), CrowdRange(10, None, 0.46, 1.0))
    sections = lattice_sections(replace(FACTS, distributions=(counted,), crowds=crowds))
    assert sections[1].title == "Every column before and after"
    assert bars(sections)["age (quasi-identifier)"].series == {"source": [0.5, 0.5], "release": [495 / 995, 500 / 995]}
    assert bars(sections)["Crowds before and after"].series["source"] == [0.04, 0.5, 0.46]


def test_chosen_node_is_marked_in_words_and_row(whole: list[Section]) -> None:
    front = tables(whole)["What each k costs/Points of the front"]
    assert [row[0] for row in front.rows] == ["", "◆ chosen", "below k"]
    assert list(front.marked) == [1]
    assert [row[1] for row in front.rows] == [100, 12, 3]


def test_chosen_node_off_the_front_is_added() -> None:
    chosen = FrontPoint((3, 0), k=20, loss=0.95, suppressed_rows=0, classes=4)
    front = tables(lattice_sections(replace(FACTS, chosen=chosen)))["What each k costs/Points of the front"]
    assert [(row[0], row[1]) for row in front.rows] == [("", 100), ("◆ chosen", 20), ("", 12), ("below k", 3)]


@pytest.mark.parametrize("chosen", [0, 250, 998])
def test_long_front_is_cut_to_sixty_rows_with_ends_and_chosen(chosen: int) -> None:
    front = tuple(FrontPoint((i,), k=i + 10, loss=i / 1000, suppressed_rows=0, classes=1) for i in range(1000))
    sections = lattice_sections(replace(FACTS, front=front, chosen=front[chosen]))
    table = tables(sections)["What each k costs/Points of the front"]
    ks = [row[1] for row in table.rows]
    assert len(ks) == MOST_ROWS == len(set(ks))
    assert {10, 1009, chosen + 10} <= set(ks)
    assert "60 of 1000" in table.note


def test_class_below_k_is_refused() -> None:
    small = (SizeRange(9, 19, 1, 9), *FACTS.class_sizes)
    with pytest.raises(ValueError, match="1 ranges start below k = 10"):
        lattice_sections(replace(FACTS, class_sizes=small))


def test_chosen_below_k_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be chosen"):
        lattice_sections(replace(FACTS, chosen=replace(CHOSEN, k=9)))


def test_heuristic_search_says_so() -> None:
    sections = lattice_sections(replace(FACTS, search=replace(FACTS.search, complete=False)))
    assert any("heuristic" in line for line in front_words(sections))
    assert ("Share evaluated", "50 %") in tables(sections)["Search/How the search went"].rows


@pytest.mark.parametrize(
    ("least", "says"), [(CHOSEN.loss, "this is the optimum"), (CHOSEN.loss * 0.75, "within 25.0% of the optimum")]
)
def test_a_search_for_one_k_states_its_gap(least: float, says: str) -> None:
    search = replace(FACTS.search, complete=False, least_loss=least)
    sections = lattice_sections(replace(FACTS, front=(CHOSEN,), search=search))
    words = front_words(sections)
    assert says in words[-1]
    assert not any("heuristic" in line for line in words)
    assert ("Front", "one k only") in tables(sections)["Search/How the search went"].rows


def test_risk_is_drawn_before_and_after_and_says_its_units(whole: list[Section]) -> None:
    found = bars(whole)
    assert found["Unique rows"].names == ["source", "release"] and found["Unique rows"].series == {"rows": [0.04, 0.0]}
    chance = found["Chance to pick the right row"]
    assert chance.series == {"chance": [0.7, 0.03, 1 / 12]} and chance.limit == (0.1, "promised at most")
    assert list(chance.intervals) == [None, (0.02, 0.04), None]
    assert found["Rows in classes with one sensitive value"].names == ["disease"]
    rows = tables(whole)["What an attacker gains/All numbers of the look-up attack"].rows
    assert ("the same for the least protected row", 1 / 12, "chance, 0 to 1", "less") in rows
    assert all(row[2] and row[3] for row in rows)


def test_plots_are_deterministic_and_leave_no_state(whole: list[Section]) -> None:
    before = dict(matplotlib.rcParams)
    first = pictures(whole)
    assert [one.svg for one in pictures(lattice_sections(FACTS))] == [one.svg for one in first]
    assert dict(matplotlib.rcParams) == before
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert [one.svg for one in pictures(lattice_sections(FACTS))] == [one.svg for one in first]


def test_plots_are_xml_with_text_and_own_ids(whole: list[Section]) -> None:
    svgs = [picture.svg for picture in pictures(whole)]
    for svg in svgs:
        ET.fromstring(svg)
        assert "<text" in svg and "<style" not in svg and "<metadata" not in svg
        assert "var(--asr-ink" in svg
    ids = [found for svg in svgs for found in re.findall(r' id="([^"]+)"', svg)]
    assert len(ids) == len(set(ids))
    for svg in svgs:
        assert set(re.findall(r'href="#([^"]+)"|url\(#', svg)) - {""} <= set(re.findall(r' id="([^"]+)"', svg))


def test_front_plot_has_a_tooltip_for_each_point() -> None:
    titles = re.findall(r"<title>(.*?)</title>", front_plot(FACTS.front, 1, 10, "GLM"))
    assert sorted(titles) == [
        "chosen: node (2, 1), k = 12, loss 0.4, 5 rows suppressed",
        "node (1, 0), k = 3, loss 0.1, 9 rows suppressed",
        "node (3, 1), k = 100, loss 0.9, 0 rows suppressed",
    ]


@pytest.mark.parametrize(("k", "loss"), [(1, 0.0), (2, 0.01), (30162, 1.0), (10**7, 4e11)])
def test_front_plot_of_one_point_at_the_edge(k: int, loss: float) -> None:
    ET.fromstring(front_plot([FrontPoint((0,), k, loss, 0, 1)], 0, 2, "loss"))


def test_front_plot_of_many_points_stays_small() -> None:
    points = [FrontPoint((i,), i + 2, float(10 ** (i / 500)), 0, 1) for i in range(2000)]
    svg = front_plot(points, 1500, 10, "DM")
    assert svg.count("<title>") == 1
    assert len(svg) < 600_000


def test_ranges_have_names() -> None:
    assert [range_name(*one) for one in ((2, 2), (2, 1000), (5, None))] == [
        "2", "2 – 1,000", "5 and more",
    ]  # fmt: skip
