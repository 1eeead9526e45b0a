"""The report of a run: what it must always say, and what it must never contain."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anon_spark.errors import ConfigurationError
from anon_spark.model.facts import Facts
from anon_spark.report import Check, Picture, RunReport, Section, Table, Text
from anon_spark.report.formats import plain, seconds, show, wording
from anon_spark.report.markdown import table

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SVG = '<svg viewBox="0 0 1 1"><path d="M 0 0"/></svg>'
ITEMS = (Text("", ["words"]), Picture("Plot", SVG, "a plot"), Table("T", ("a", "b"), [("x", 1)]))
HOSTILE = "<script>alert('x')</script>"


@dataclass(frozen=True)
class Numbers(Facts):
    """Facts of every kind of number."""

    k: Any
    loss: Any
    bad: float
    node: tuple[int, ...]


def report_of(**changes: Any) -> RunReport:
    base = RunReport(
        run_id="run-1",
        family="lattice",
        status="published",
        started=STARTED,
        finished=STARTED + timedelta(seconds=75),
        config_hash="ab" * 32,
        input_table="warehouse.people",
        input_version=12,
        output_table="warehouse.release",
        output_version=3,
        versions={"spark": "4.1.4"},
        for_release=True,
        guarantee="At least 10 rows look alike.",
        covers=["Nobody is singled out by age and zip."],
        not_covered=["The disease, when a whole class shares it."],
        checks=[Check("k-anonymity", True, 0, "40 classes")],
        accounting={"rows_in": 30162, "rows_suppressed": 162},
        warnings=["weight determines age"],
        timings={"search": 1.5, "audit": 0.5},
        sections=[Section("Part", ITEMS)],
        facts=Numbers(k=np.int64(10), loss=np.float64(0.5), bad=float("nan"), node=(1, 2)),
    )
    return replace(base, **changes)


@pytest.mark.parametrize("render", [RunReport.to_html, RunReport._repr_html_])
def test_html_needs_nothing_from_elsewhere(render: Any) -> None:
    html = render(report_of())
    assert not re.search(r"""(src|href)\s*=\s*["']?\s*(https?:)?//""", html)
    assert not re.search(r"<script|<link|@import|<iframe", html)
    assert not re.search(r"url\((?!#)", html)


def test_page_is_a_document_and_the_notebook_gets_a_scoped_fragment() -> None:
    report = report_of()
    assert report.to_html().lstrip().startswith("<!DOCTYPE html>")
    fragment = report._repr_html_()
    assert "<html" not in fragment and "<body" not in fragment
    sheet = re.sub(r"@media[^{]*\{", "", fragment.split("<style>")[1].split("</style>")[0])
    selectors = [one for rule in re.findall(r"([^{}]+)\{", sheet) for one in rule.split(",")]
    assert selectors and all(one.strip().startswith(".asr") for one in selectors)


def test_styles_of_jupyter_do_not_reach_the_fragment() -> None:
    """JupyterLab aligns cells to the right by a rule of two classes, colours every second row, and floats description lists."""
    sheet = report_of()._repr_html_().split("<style>")[1].split("</style>")[0]
    assert ".asr .asr-inner td:not(.asr-num) { text-align: left; }" in sheet
    assert ".asr .asr-inner tbody tr:nth-child(n), .asr .asr-inner tbody tr:hover { background: none; }" in sheet
    assert ".asr .asr-counts dt, .asr .asr-counts dd { float: none; width: auto; }" in sheet


def test_what_is_not_covered_stands_before_the_details() -> None:
    html = report_of().to_html()
    assert html.index("What it does not cover") < html.index("Checks of the staged release") < html.index("The run")


@pytest.mark.parametrize(
    ("status", "headline"),
    [
        ("published", "PUBLISHED"),
        ("already_published", "ALREADY PUBLISHED"),
        ("failed", "NOT PUBLISHED"),
        ("planned", "NOT PUBLISHED: plan only"),
    ],
)
def test_banner_names_the_outcome(status: Any, headline: str) -> None:
    report = report_of(status=status, output_version=None if status == "failed" else 3)
    assert f'<p class="asr-headline">{headline}</p>' in report.to_html()
    assert f"> **{headline}**" in report.to_markdown()


def test_test_key_is_said_aloud_everywhere() -> None:
    report = report_of(for_release=False)
    assert "test key: not for release" in report.to_html()
    assert "test key: not for release" in report._repr_html_()
    assert "test key: not for release" in report.to_markdown()
    assert json.loads(report.to_json())["for_release"] is False
    assert "test key" not in report_of().to_html()


def test_failed_check_is_not_told_by_colour_alone_and_never_published() -> None:
    checks = [Check("k-anonymity", False, 3, "3 classes")]
    assert "✗ FAILED" in report_of(status="failed", checks=checks).to_html()
    with pytest.raises(ValueError, match="1 checks failed"):
        report_of(checks=checks)


def test_a_run_that_failed_after_its_commit_does_not_say_that_nothing_was_published() -> None:
    failed, unconfirmed = report_of(status="failed", output_version=None), report_of(status="failed", output_version=4)
    assert failed.notices()[0].headline == "NOT PUBLISHED" and failed.verdict == "Nothing was published."
    assert unconfirmed.notices()[0].headline == "COMMITTED, NOT CONFIRMED" and unconfirmed.notices()[0].tone == "bad"
    assert unconfirmed.verdict.startswith("Committed, but not compared with what was audited")


def test_unknown_status_is_refused() -> None:
    with pytest.raises(ValueError, match="status"):
        report_of(status="done")


def test_text_is_escaped() -> None:
    items = (Text(HOSTILE, [HOSTILE]), Picture(HOSTILE, SVG, HOSTILE), Table(HOSTILE, (HOSTILE,), [(HOSTILE,)]))
    report = report_of(
        input_table=HOSTILE,
        guarantee=HOSTILE,
        not_covered=[HOSTILE],
        warnings=[HOSTILE],
        message=HOSTILE,
        checks=[Check(HOSTILE, True, 0, HOSTILE)],
        accounting={HOSTILE: 1},
        sections=[Section(HOSTILE, items)],
    )
    assert "<script" not in report.to_html().lower()
    assert "<script" not in report._repr_html_().lower()
    assert not re.search(r"(?<!\\)<script", report.to_markdown())


def test_json_round_trip_has_every_key_and_no_drawing() -> None:
    report = report_of()
    loaded = json.loads(report.to_json())
    assert loaded == report.to_dict()
    assert set(loaded) == {"format", "verdict", *RunReport.__dataclass_fields__}
    assert loaded["facts"] == {"k": 10, "loss": 0.5, "bad": None, "node": [1, 2]}
    assert loaded["started"] == "2026-01-02T03:04:05+00:00"
    assert loaded["sections"][0]["items"][1] == {"kind": "picture", "title": "Plot", "alt": "a plot"}
    assert "<svg" not in report.to_json()


def test_accessible_tables_and_pictures() -> None:
    html = report_of().to_html()
    assert 'role="img" aria-label="a plot"' in html
    assert html.count("<table") == html.count("<thead") > 2
    assert '<th scope="col">a</th>' in html and '<th scope="row">x</th>' in html
    assert '<html lang="en">' in html and 'name="viewport"' in html
    assert "prefers-color-scheme: dark" in html


def test_markdown_tables() -> None:
    drawn = table(("name", "n"), [("a|b", 1234), ("c\nd", None)])
    assert drawn.splitlines() == ["| name | n |", "| --- | ---: |", "| a\\|b | 1,234 |", "| c d | – |"]
    text = report_of().to_markdown()
    assert "| k-anonymity | passed | 0 | 40 classes |" in text
    assert "| Rows in | 30,162 |" in text
    assert "*Picture: a plot*" in text and "<svg" not in text
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_write_makes_three_files_and_leaves_nothing_else(tmp_path: Path) -> None:
    report = report_of()
    for _ in range(2):  # the second run replaces
        page = report.write(tmp_path / "new" / "folder" / "people.html")
    assert page == tmp_path / "new" / "folder" / "people.html"
    assert sorted(path.name for path in page.parent.iterdir()) == ["people.html", "people.json", "people.md"]
    assert page.read_text(encoding="utf-8") == report.to_html()
    assert json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))["run_id"] == "run-1"
    assert report.write(str(tmp_path / "people.v2")).name == "people.v2.html"


def test_write_keeps_the_old_file_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = report_of().write(tmp_path / "r.html")
    before = page.read_bytes()

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="disk full"):
        report_of(run_id="run-2").write(page)
    assert page.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 3


def test_write_refuses_a_remote_path() -> None:
    with pytest.raises(ConfigurationError, match=r"output\.report"):
        report_of().write("s3://bucket/report.html")


@pytest.mark.parametrize(
    "svg",
    [
        "<?xml version='1.0'?><svg></svg>",
        "<svg><script>1</script></svg>",
        '<svg onload="x()"></svg>',
        '<svg><image href="http://example.org/a.png"/></svg>',
        '<svg><path style="fill: url(http://example.org/a)"/></svg>',
    ],
)
def test_picture_that_runs_or_fetches_is_refused(svg: str) -> None:
    with pytest.raises(ValueError, match="Picture"):
        Picture("p", svg, "alt")


def test_items_are_checked() -> None:
    with pytest.raises(ValueError, match="alt is empty"):
        Picture("p", SVG, " ")
    with pytest.raises(ValueError, match="1 rows do not have 2 cells"):
        Table("t", ("a", "b"), [(1, 2), (1,)])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"), (True, "yes"), (np.bool_(False), "no"), (30162, "30,162"), (np.int32(7), "7"),
        (0.186647, "0.1866"),
        (1.0, "1"), (12345.678, "12,345.7"), (float("nan"), "–"), (float("inf"), "∞"), ((1, 0, 2), "(1, 0, 2)"),
        ({"a": 1}, "a: 1"), ("text", "text"), (STARTED, "2026-01-02 03:04:05+00:00"),
    ],
)  # fmt: skip
def test_values_as_people_read_them(value: Any, shown: str) -> None:
    assert show(value) == shown


def test_durations_words_and_json_types() -> None:
    assert [seconds(value) for value in (0.421, 47.31, 245, 7800)] == ["0.42 s", "47.3 s", "4 min 05 s", "2 h 10 min"]
    assert wording("rows_in") == "Rows in"
    assert plain({1: {"b", "a"}, "c": np.arange(2), "d": Check("n", True, 0)}) == {
        "1": ["a", "b"], "c": [0, 1], "d": {"name": "n", "passed": True, "violations": 0, "detail": ""},
    }  # fmt: skip
