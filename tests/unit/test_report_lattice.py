"""The lattice part of a report and its plots: deterministic, readable, and blind to labels and small classes."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ET
from typing import Any

import matplotlib
import pytest

from anon_spark.report import Picture, Section, Table, lattice_sections
from anon_spark.report.lattice import MOST_ROWS
from anon_spark.report.plots import bucket_name, class_size_plot, front_plot, levels_plot, loss_plot

FACTS: dict[str, Any] = {
    "loss": "glm",
    "required_k": 10,
    "chosen": {"node": [2, 1], "k": 12, "loss": 0.4, "suppressed_rows": 5, "classes": 30},
    "front": [
        {"node": [3, 1], "k": 100, "loss": 0.9, "suppressed_rows": 0, "classes": 3},
        {"node": [2, 1], "k": 12, "loss": 0.4, "suppressed_rows": 5, "classes": 30},
        {"node": [1, 0], "k": 3, "loss": 0.1, "suppressed_rows": 9, "classes": 80},
    ],
    "attributes": [
        {"name": "age", "level": 2, "height": 3, "labels": 4, "loss": 0.3},
        {"name": "a$x$<b>&", "level": 1, "height": 1, "labels": 1, "loss": 1.0},
    ],
    "search": {
        "name": "exact", "nodes": 8, "evaluated": 4, "batches": 2, "seconds": 0.5, "tuples": 200, "complete": True,
    },
    "class_sizes": [
        {"from": 10, "to": 19, "classes": 20, "rows": 300},
        {"from": 20, "to": None, "classes": 10, "rows": 700},
    ],
    "risk": {"highest": 1 / 12, "unique_before": 40, "journalist": {"mean": 0.01, "by_attack": {"age_known": 0.2}}},
}  # fmt: skip


def facts_of(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(FACTS), **changes}


@pytest.fixture(scope="module")
def whole() -> list[Section]:
    return lattice_sections(FACTS)


def tables(sections: list[Section]) -> dict[str, Table]:
    return {f"{part.title}/{item.title}": item for part in sections for item in part.items if isinstance(item, Table)}


def pictures(sections: list[Section]) -> list[Picture]:
    return [item for part in sections for item in part.items if isinstance(item, Picture)]


def test_every_part_is_there(whole: list[Section]) -> None:
    sections = whole
    assert [part.title for part in sections] == [
        "What each k costs",
        "How far each attribute was generalized",
        "Sizes of the published classes",
        "What an attacker gains",
        "Search",
    ]
    assert len(pictures(sections)) == 4
    assert all(picture.alt for picture in pictures(sections))


def test_chosen_node_is_marked_in_words_and_row(whole: list[Section]) -> None:
    front = tables(whole)["What each k costs/Points of the front"]
    assert [row[0] for row in front.rows] == ["", "◆ chosen", "below k"]
    assert list(front.marked) == [1]
    assert [row[1] for row in front.rows] == [100, 12, 3]


def test_chosen_node_off_the_front_is_added() -> None:
    chosen = {"node": [3, 0], "k": 20, "loss": 0.95, "suppressed_rows": 0, "classes": 4}
    front = tables(lattice_sections(facts_of(chosen=chosen)))["What each k costs/Points of the front"]
    assert [(row[0], row[1]) for row in front.rows] == [("", 100), ("◆ chosen", 20), ("", 12), ("below k", 3)]


@pytest.mark.parametrize("chosen", [0, 250, 998])
def test_long_front_is_cut_to_sixty_rows_with_ends_and_chosen(chosen: int) -> None:
    front = [{"node": [i], "k": i + 10, "loss": i / 1000, "suppressed_rows": 0, "classes": 1} for i in range(1000)]
    sections = lattice_sections({"loss": "glm", "required_k": 10, "front": front, "chosen": front[chosen]})
    table = tables(sections)["What each k costs/Points of the front"]
    ks = [row[1] for row in table.rows]
    assert len(ks) == MOST_ROWS == len(set(ks))
    assert {10, 1009, chosen + 10} <= set(ks)
    assert "60 of 1000" in table.note


def test_class_below_k_is_refused() -> None:
    small = [{"from": 9, "to": 19, "classes": 1, "rows": 9}, *FACTS["class_sizes"]]
    with pytest.raises(ValueError, match="1 ranges start below k = 10"):
        lattice_sections(facts_of(class_sizes=small))


def test_chosen_below_k_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be chosen"):
        lattice_sections(facts_of(chosen={**FACTS["chosen"], "k": 9}))


def test_labels_are_counts_and_risk_is_numbers() -> None:
    leaky = [{**FACTS["attributes"][0], "labels": ["HIV", "flu"]}]
    with pytest.raises(ValueError, match=r"attributes\.age\.labels") as refused:
        lattice_sections(facts_of(attributes=leaky))
    assert "HIV" not in str(refused.value)
    with pytest.raises(ValueError, match="risk: Worst, value") as refused:
        lattice_sections(facts_of(risk={"worst": {"value": "HIV"}}))
    assert "HIV" not in str(refused.value)


def test_parts_without_facts_are_left_out() -> None:
    assert lattice_sections({"loss": "dm", "required_k": 2}) == []
    words = lattice_sections({"loss": "dm", "required_k": 1000, "chosen": None, "front": FACTS["front"]})
    assert len(words) == 1
    assert "No node was chosen." in words[0].items[0].paragraphs  # type: ignore[union-attr]


def test_heuristic_search_says_so() -> None:
    sections = lattice_sections(facts_of(search={**FACTS["search"], "complete": False}))
    assert any("heuristic" in line for line in sections[0].items[0].paragraphs)  # type: ignore[union-attr]
    assert ("Share evaluated", "50.0%") in tables(sections)["Search/"].rows


def test_risk_is_flattened(whole: list[Section]) -> None:
    found = tables(whole)
    assert list(found["What an attacker gains/"].rows) == [("Highest", 1 / 12), ("Unique before", 40)]
    assert list(found["What an attacker gains/Journalist"].rows) == [("Mean", 0.01), ("By attack, age known", 0.2)]


def test_plots_are_deterministic_and_leave_no_state(whole: list[Section]) -> None:
    before = dict(matplotlib.rcParams)
    first = pictures(whole)
    assert [one.svg for one in pictures(lattice_sections(facts_of()))] == [one.svg for one in first]
    assert dict(matplotlib.rcParams) == before
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert [one.svg for one in pictures(lattice_sections(facts_of()))] == [one.svg for one in first]


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
    assert "a$x$&lt;b&gt;&amp;" in svgs[1]  # neither mathematics nor markup


def test_front_plot_has_a_tooltip_for_each_point() -> None:
    points = [{**point, "suppressed": point["suppressed_rows"]} for point in FACTS["front"]]
    titles = re.findall(r"<title>(.*?)</title>", front_plot(points, 1, 10, "GLM"))
    assert sorted(titles) == [
        "chosen: node (2, 1), k = 12, loss 0.4, 5 rows suppressed",
        "node (1, 0), k = 3, loss 0.1, 9 rows suppressed",
        "node (3, 1), k = 100, loss 0.9, 0 rows suppressed",
    ]


@pytest.mark.parametrize(("k", "loss"), [(1, 0.0), (2, 0.01), (30162, 1.0), (10**7, 4e11)])
def test_front_plot_of_one_point_at_the_edge(k: int, loss: float) -> None:
    ET.fromstring(front_plot([{"node": [0], "k": k, "loss": loss}], 0, 2, "loss"))


def test_front_plot_of_many_points_stays_small() -> None:
    points = [{"node": [i], "k": i + 2, "loss": float(10 ** (i / 500)), "suppressed": 0} for i in range(2000)]
    svg = front_plot(points, 1500, 10, "DM")
    assert svg.count("<title>") == 1
    assert len(svg) < 600_000


def test_small_plots_do_not_break() -> None:
    ET.fromstring(class_size_plot([{"from": 2, "to": 2, "classes": 0, "rows": 0}]))
    ET.fromstring(levels_plot([{"name": "漢字" * 30, "level": 0, "height": 1}]))
    ET.fromstring(loss_plot([{"name": "x", "loss": 0}]))
    assert [bucket_name(one) for one in ({"from": 2, "to": 2}, {"from": 2, "to": 1000}, {"from": 5})] == [
        "2", "2 – 1,000", "5 and more",
    ]  # fmt: skip
