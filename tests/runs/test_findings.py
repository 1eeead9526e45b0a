"""Findings end to end: 98 % of the rows unique through a kept column is told in plan, run, report and refused by a limit."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anon_spark.cli import main
from anon_spark.risk import Uniqueness, unique_rows
from tests.town import ROWS, Town, people

KEPT = {"columns__keep": ["weight", "mark"], "privacy": {"k": 3}, "lattice": {"choose": {"node": [2, 0, 1]}}}


@pytest.fixture(scope="module")
def town(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """`mark` is nearly unique; `weight` and `mark` are what the job keeps."""
    marks = [number if number > 3 else 0 for number in range(ROWS)]
    return Town.founded(spark, tmp_path_factory.mktemp("findings") / "town", people(mark=marks))


@pytest.mark.long
def test_a_kept_column_that_singles_people_out_is_refused(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    limited = KEPT | {"limits": {"unique": 0.5}}

    # 1. a plan tells before anything is fitted
    assert main(["plan", town.job_file(**limited)]) == 3
    planned = capsys.readouterr().out.splitlines()
    assert any(line.startswith("look: At least 100.0% of the rows are unique") for line in planned)  # weight and mark together
    mark = "look: Column mark, which is kept, has a value that is in no other row in 98.0%"
    assert any(line.startswith(mark) for line in planned)
    assert any(line.startswith("stop: limits.unique allows 0.5.") for line in planned)

    # 2. a limit refuses: exit 3, nothing published, a row in the run log that says what to do
    assert main(["run", town.job_file(**limited), "--quiet"]) == 3
    message = capsys.readouterr().err
    assert "limits.unique allows 0.5" in message and "mark singles out most" in message and "raise the limit" in message
    assert town.versions == 0 and [row.status for row in town.runs] == ["failed"]
    assert "limits.unique" in town.runs[0].message
    refused = json.loads((town.folder / "report" / "town.json").read_text())
    assert [one["kind"] for one in refused["findings"] if one["level"] == "stop"] == ["limits.unique"]


@pytest.mark.long
def test_without_a_limit_it_is_published_and_no_banner_is_green(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", town.job_file(**KEPT), "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert "  look    100.0% of the rows are unique" in shown and "Published, but look at" in shown
    report = json.loads((town.folder / "report" / "town.json").read_text())
    found = {one["kind"]: one for one in report["findings"]}
    assert found["unique"]["level"] == "look" and found["unique"]["share"] == 1.0
    assert found["column_unique"]["share"] == 0.98
    page = (town.folder / "report" / "town.html").read_text()
    assert "PUBLISHED, but look at this" in page and "asr-notice asr-good" not in page
    link = report["facts"]["risk"]["link_attack"]
    assert 0 <= link["interval_from"] <= link["expected_success_after"] <= link["interval_to"] and link["standard_error"] > 0


@pytest.mark.long
def test_a_release_without_such_columns_is_green(town: Town, tmp_path: Path) -> None:
    report = town.copied(tmp_path / "town").run(**KEPT | {"columns__keep": [], "limits": {"unique": 0, "loss": 0.9}})

    assert [finding for finding in report.findings if finding.level != "note"] == []
    assert [notice.tone for notice in report.notices()] == ["good"]
    assert report.verdict.startswith("Published: every check passed, and nothing needs a second look")


def test_unique_rows_by_hand(spark: SparkSession) -> None:
    rows = [(1, "a", None), (1, "a", 2.0), (1, "b", None), (2, "b", None), (2, None, 3.0), (3, None, 3.0)]
    frame = spark.createDataFrame(rows, "person int, name string, size double").repartition(3)
    sets = [["name", "size"], ["name"], ["size"]]

    alone = unique_rows(frame, sets)
    single = unique_rows(frame, sets, "person")

    for names, counted in zip(([1, 2], [1], [2]), alone, strict=True):
        groups = Counter(tuple(row[at] for at in names) for row in rows)
        assert counted == Uniqueness(6, len(groups), sum(count == 1 for count in groups.values()))
    assert [one.unique for one in single] == [2, 2, 1]  # a's two rows are one person's
    assert unique_rows(frame, []) == []
    assert unique_rows(frame.limit(0), [["name"]]) == [Uniqueness(0, 0, 0)]
