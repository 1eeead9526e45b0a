"""The command `anon-spark risk`: formats, pages, two tables side by side, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from anon_spark.cli import main
from tests.assessment.tables import GOLDEN, golden

VALUES = {"flu", "cold", "hiv"}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden table as Delta, Parquet and CSV, and a release of it with one class."""
    folder = tmp_path_factory.mktemp("risk")
    golden(spark).write.format("delta").save(str(folder / "delta"))
    columns = [list(column) for column in zip(*GOLDEN, strict=True)]
    table = pa.table(dict(zip(("class", "salary", "disease"), columns, strict=True)))
    pq.write_table(table, folder / "golden.parquet")
    pc.write_csv(table, folder / "golden.csv")
    pq.write_table(table.set_column(0, "class", pa.array(["*"] * 12)), folder / "release.parquet")
    pq.write_table(table.slice(0, 0), folder / "empty.parquet")
    return folder


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("delta", []),
        ("golden.parquet", ["--format", "parquet"]),
        ("golden.csv", ["--format", "csv", "--option", "header=true", "--option", "inferSchema=true"]),
    ],
)
def test_formats(tables: Path, name: str, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["risk", str(tables / name), "--quasi", "class", "--sensitive", "disease,salary", *options]) == 0

    told = capsys.readouterr().out
    assert "Whoever knows class of a person finds at least 3 rows." in told
    assert "prosecutor: highest 0.3333, average 0.25; 100 % above 0.05" in told
    assert "disease: least l 2, entropy l 1.89, t 0.3333, β 1, 0 % of the rows in classes with one value" in told


def test_page(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "pages" / "risk.html"
    command = ["risk", str(tables / "delta"), "--quasi", "class,salary", "--sensitive", "disease", "--population", "1000"]

    assert main([*command, "--output", str(page)]) == 0

    assert f"report: {page}" in capsys.readouterr().out
    told = json.loads(page.with_suffix(".json").read_text())
    assert told["facts"]["look_up"]["classes"] == 9
    assert told["facts"]["population"]["fraction"] == 0.012
    text = page.read_text()
    assert text.count('class="asr-bars"') == 2
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert not any(value in text + page.with_suffix(".md").read_text() for value in VALUES)


def test_before_and_after(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "both.html"
    both = [str(tables / "golden.parquet"), str(tables / "release.parquet")]

    assert main(["risk", *both, "--quasi", "class", "--sensitive", "disease", "--output", str(page)]) == 0

    told = capsys.readouterr().out
    assert "at least 3 rows" in told
    assert "at least 12 rows" in told
    written = json.loads(page.with_suffix(".json").read_text())
    assert [written[name]["facts"]["look_up"]["highest"] for name in ("before", "after")] == [1 / 3, 1 / 12]
    assert "before" in page.read_text()


def test_paths_are_relative_to_where_the_command_is_given(
    tables: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tables)  # the session was started elsewhere
    assert main(["risk", "./delta", "./release.parquet", "--quasi", "class", "--population", "./delta"]) == 0
    assert "at least 12 rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["delta", "--quasi", "clas"], 2, "Columns not found: clas. Did you mean: class?"),
        (["delta", "--quasi", ","], 2, "--quasi: name at least one column"),
        (["delta", "--quasi", "class,class"], 2, "quasi: class is named twice"),
        (["delta", "--quasi", "class", "--sensitive", "class"], 2, "sensitive: class is in quasi already"),
        (["delta", "--quasi", "class", "--population", "nowhere"], 2, "--population: no Delta table at"),
        (["delta", "--quasi", "class", "--population", "-1"], 2, "population: must be above 0"),
        (["delta", "--quasi", "class", "--population", "3"], 3, "3 people are fewer than the 12 of the table"),
        (["delta", "--quasi", "class", "--option", "header"], 2, "--option: give KEY=VALUE"),
        (["delta", "--quasi", "class", "--output", "page.txt"], 2, "--output: page.txt cannot be written"),
        (["empty.parquet", "--quasi", "class", "--format", "parquet"], 3, "The table is empty"),
        (["nowhere", "--quasi", "class"], 2, "TABLE: no Delta table at"),
        (["nowhere.parquet", "--quasi", "class"], 2, "TABLE: no readable parquet table at"),
        (["delta", "nowhere", "--quasi", "class"], 2, "RELEASE: no Delta table at"),
        (["delta", "release.parquet", "--quasi", "class", "--person", "who"], 2, "TABLE: Columns not found: who."),
    ],
)
def test_refuses(
    tables: Path, spark: SparkSession, arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def place(argument: str) -> str:
        return str(tables / argument) if (tables / argument).exists() or "nowhere" in argument else argument

    assert main(["risk", *map(place, arguments)]) == code

    told = capsys.readouterr().err
    assert message in told
    assert not any(value in told for value in VALUES)


def test_a_page_inside_a_table_is_refused(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["risk", str(tables / "delta"), "--quasi", "class", "--output", str(tables / "delta" / "page.html")]) == 2

    assert "--output: lies inside TABLE. Choose a place apart from it." in capsys.readouterr().err
