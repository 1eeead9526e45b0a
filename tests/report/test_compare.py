"""The report of a comparison: one table, one picture, and nothing that a release hides or an audit refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from anon_spark.report import Bars, Check, Compared, Comparison, Table
from anon_spark.report.compare import DRAWN, MEASURES

PASSED = [Check("5-anonymity", True, 0, "all 9 classes"), Check("coverage", True, 0, "enough")]
HOSTILE = "<script>alert('x')</script>"


def compared(name: str, factor: float = 1.0, **changes: Any) -> Compared:
    measures = {key: (at + 5) * factor for at, key in enumerate(MEASURES)}
    base = Compared(
        name=name,
        family="mst",
        table=f"warehouse.{name}",
        version=3,
        run_id=f"run-of-{name}",
        guarantee=f"5-anonymity of {name}",
        k=5,
        for_release=True,
        checks=PASSED,
        measures=measures,
    )
    return replace(base, **changes)


def comparison(*releases: Compared) -> Comparison:
    return Comparison(
        made=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        input_table="warehouse.people",
        input_version=12,
        rows=30162,
        quasi_identifiers=["age", "zip"],
        attack={"sampled_rows": 1000, "expected": 0.75, "worst": 1.0},
        releases=releases or [compared("full", family="lattice"), compared("local", 1.5)],
        versions={"anon-spark": "0.1.0"},
    )


def test_every_measure_of_every_release_is_in_one_table() -> None:
    found = comparison()
    (table,) = (item for item in found.sections[0].items if isinstance(item, Table))
    assert table.columns == ("measure", "full", "local", "better is")
    assert [row[0] for row in table.rows] == [words for words, _ in MEASURES.values()]
    assert [row[1:3] for row in table.rows] == [(at + 5, (at + 5) * 1.5) for at in range(len(MEASURES))]
    frame = found.table
    assert list(frame.index) == ["full", "local"] and list(frame.columns) == ["family", "k", *MEASURES]
    assert frame["glm"].to_list() == [9, 13.5]


def test_page_markdown_and_json_say_the_same(tmp_path: Path) -> None:
    found = comparison()
    page = found.write(tmp_path / "new" / "both.html")
    assert sorted(path.name for path in page.parent.iterdir()) == ["both.html", "both.json", "both.md"]
    html, text, said = page.read_text(), page.with_suffix(".md").read_text(), json.loads(found.to_json())
    assert said == json.loads(page.with_suffix(".json").read_text()) and html == found.to_html()
    assert [release["measures"]["dm"] for release in said["releases"]] == [12, 18]
    for told in ("VERIFIED", "30,162", "warehouse.people @ version 12", "run-of-local", "Checks of the current releases"):
        assert told in html and told in text
    assert "| full: coverage | passed | 0 | enough |" in text and "Hand out one" in text
    assert html.count('class="asr-bars"') == found._repr_html_().count('class="asr-bars"') == len(DRAWN)
    assert "<html" not in found._repr_html_() and not re.search(r"<script|<link|@import|url\((?!#)", html)
    assert "different k" not in html and "not for release" not in html


def test_what_a_reader_must_know_is_said() -> None:
    other = comparison(compared("full", k=4), compared(HOSTILE, for_release=False))
    assert "The releases have different k" in other.to_html() and "The releases have different k" in other.to_markdown()
    assert "test key: not for release: &lt;script&gt;" in other.to_html()
    assert "<script" not in other.to_html().lower() and not re.search(r"(?<!\\)<script", other.to_markdown())


def test_every_measure_has_bars_that_say_what_is_better() -> None:
    panels = {item.title: item for item in comparison().sections[0].items if isinstance(item, Bars)}
    assert list(panels) == list(DRAWN.values())
    assert panels["DM"].names == ["full", "local"] and panels["DM"].series == {"value": [12, 18]}
    assert all(panel.unit.endswith("; less is better") for panel in panels.values())


@pytest.mark.parametrize(
    ("releases", "message"),
    [
        ([compared("one")], "at least two"),
        ([compared("one"), compared("one")], "different names"),
        ([compared("one"), compared("two", checks=[*PASSED, Check("columns", False, 1)])], "two: 1 of 3 checks failed"),
        ([compared("one"), compared("two", checks=[])], "two: 0 of 0 checks failed"),
        ([compared("one"), compared("two", k=9)], "two: a class below k = 9"),
        ([compared("one"), compared("two", measures={"glm": 1})], "two: other measures than"),
        ([compared("one"), compared("two", measures=dict.fromkeys(MEASURES, "HIV"))], "a number is needed"),
    ],
)
def test_what_is_refused(releases: list[Compared], message: str) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        comparison(*releases)
    assert "HIV" not in str(refused.value)
