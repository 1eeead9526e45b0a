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
from anon_spark.model.facts import CrowdRange, Distribution, Facts, LabelCount
from anon_spark.report import Bars, Check, Picture, RunReport, Section, Table, Text
from anon_spark.report.columns import crowd_items, detail_words, distribution_items, known_words, left_out_words
from anon_spark.report.formats import percent, plain, seconds, show, wording
from anon_spark.report.glossary import WORDS, glossary_of
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


def test_what_holds_and_what_is_lost_stands_in_the_banner() -> None:
    words = ["Whoever knows age of a person finds at least 10 rows.", "No row was left out."]
    report = report_of(in_words=words)
    html = report.to_html()
    assert html.index(" ".join(words)) < html.index("What is guaranteed") and " ".join(words) in report.to_markdown()
    assert json.loads(report.to_json())["in_words"] == words


def test_exponents_are_raised_and_nothing_else_is_markup() -> None:
    html = report_of(guarantee="10^(2,1)-anonymity, (5,3^2)-diversity", covers=["k^m <b>", "a^b"]).to_html()
    assert "10<sup>(2,1)</sup>-anonymity, (5,3<sup>2</sup>)-diversity" in html
    assert "k<sup>m</sup> &lt;b&gt;" in html and "<li>a^b</li>" in html


def test_lost_detail_in_sentences() -> None:
    losses = {"age": 0.4, "zip": 0.62, "sex": 0.0, "race": 1.0, "job": 0.97}
    assert detail_words(losses) == [
        "Column sex is kept as it was.",
        "Column age lost 40 % of its detail, zip 62 %.",
        "Column job (97 %) is nearly lost.",
        "Column race is lost.",
    ]
    assert detail_words({"a": 0.0, "b": 0.0}) == ["Columns a and b are kept as they were."] and detail_words({}) == []
    many = detail_words({f"c{at}": 0.5 for at in range(12)})
    assert len(many) == 1 and many[0].endswith("4 others less or more.")
    assert known_words(["age", "sex", "zip"]) == "age, sex and zip"
    assert known_words([f"c{at}" for at in range(9)]).startswith("all 9 quasi-identifiers (c0, ")
    assert left_out_words(1000, 1000) == "No row was left out."
    assert left_out_words(1000, 990) == "1 % of the rows were left out (10 of 1,000)."


def test_timings_add_up_to_the_whole_run() -> None:
    report = report_of(timings={"identity": 1.0, "fit": 60.0, "search": 50.0, "audit": 10.0})
    steps = report.steps()
    assert [step.name for step in steps] == [
        "Compare with earlier runs", "Fit", "search", "Audit", "Between the steps", "The whole run",
    ]  # fmt: skip
    assert sum(step.spent for step in steps if step.kind == "step") == pytest.approx(steps[-1].spent) == 75
    assert "of this: search" in report.to_markdown() and "| The whole run | 75.0 s |" in report.to_markdown()
    assert report_of(timings={}).steps() == []


def test_the_glossary_has_what_the_page_uses() -> None:
    used = glossary_of(["relational loss (NCP), 0 to 1", "a class of k rows"])
    assert [word for word, _ in used] == ["class", "k", "loss", "NCP"]
    assert glossary_of(["classified, keyed, NCPs"]) == []
    assert list(WORDS) == sorted(WORDS, key=str.lower) and all(means.endswith(".") for _, means in WORDS.values())
    assert "Words and measures" in report_of(guarantee="10-anonymity: k rows in every class").to_html()


def test_bars_are_drawn_by_the_page_and_told_in_words() -> None:
    bars = Bars(
        "Chance", ["mean", "worst"], {"source": [0.5, 1.0], "release": [0.01, 0.1]}, "chance; less is better", "a note",
        as_share=True, limit=(0.1, "promised"), intervals=[(0.4, 0.6), None],
    )  # fmt: skip
    report = report_of(sections=[Section("Part", [bars])])
    html, text = report.to_html(), report.to_markdown()
    assert html.count('class="asr-line"') == 4 and 'style="width: 50.00%"' in html and "promised: 10 %" in html
    assert "| mean | 50 % | 1 % | 40 % to 60 % |" in text and "a note" in text
    assert json.loads(report.to_json())["sections"][0]["items"][0]["series"] == {"source": [0.5, 1], "release": [0.01, 0.1]}
    parts = Bars("P", ["a"], {"x": [0.25], "y": [0.7], "z": [0.05]}, "share", as_share=True, stacked=True)
    assert parts.parts(0) == "25 · 70 · 5 %" and parts.end == 1
    for wrong in ({"x": [1.0]}, {"x": [1.0, -1.0]}, {}):
        with pytest.raises(ValueError, match="Bars"):
            Bars("B", ["a", "b"], wrong, "")


def test_columns_share_one_scale_and_rare_labels_are_joined() -> None:
    age = Distribution(
        "age", "quasi-identifier", 100, 90, (LabelCount("[0, 9]", 50, 45), LabelCount("[10, 19]", 30, 20)),
        LabelCount("others", 20, 5), wider=20, rounded_to=10, example=("7", "[0, 9]"),
    )  # fmt: skip
    sex = Distribution("sex", "kept", 100, 90, (LabelCount(None, 90, 80), LabelCount("", 10, 10)), rounded_to=10)
    lost = Distribution("zip", "quasi-identifier", 100, 90, (LabelCount("*", 100, 90),))
    none = Distribution("weight", "kept", 100, 90, (), LabelCount("others", 100, 90))

    text, *items = distribution_items([age, sex, lost, none], 10)

    drawn = {item.title: item for item in items if isinstance(item, Bars)}
    assert list(drawn) == ["age (quasi-identifier)", "sex (kept, unchanged)"] and len({bars.most for bars in drawn.values()}) == 1
    assert drawn["age (quasi-identifier)"].names == ["[0, 9]", "[10, 19]", "other labels", "a wider label"]
    assert drawn["sex (kept, unchanged)"].names == ["(null)", "(empty)"]
    assert isinstance(text, Text) and "The same label in every row: zip." in text.paragraphs
    assert any("fewer than 10 rows: weight" in line for line in text.paragraphs)
    assert isinstance(items[-1], Table) and list(items[-1].rows) == [("age", "7", "[0, 9]")]
    (crowds,) = crowd_items([CrowdRange(1, 1, 0.5, 0.0), CrowdRange(2, None, 0.5, 1.0)], "values")
    assert isinstance(crowds, Bars) and crowds.names == ["1 (found)", "2 and more"]


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0, "0 %"), (1.0, "100 %"), (0.00001, "below 0.1 %"), (0.99999, "above 99.9 %"), (0.125, "12.5 %")]
)
def test_a_share_is_never_rounded_to_nothing_or_all(share: float, shown: str) -> None:
    assert percent(share) == shown
