"""The page on series is true: its example is run, and its messages are those of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import anon_spark as an
from anon_spark.config import JobSpec
from anon_spark.families.registry import load_job

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "series.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "anon_spark"

Rows = list[tuple[str, ...]]


def tables(head: str) -> list[Rows]:
    """The tables of the page with these column names, in their order."""
    found: list[Rows] = []
    lines = PAGE.splitlines()
    for at, line in enumerate(lines):
        if line == head:
            rows = []
            for row in lines[at + 2 :]:
                if not row.startswith("|"):
                    break
                rows.append(tuple(cell.strip() for cell in row.strip("|").split("|")))
            found.append(rows)
    return found


def one_table(head: str) -> Rows:
    (table,) = tables(head)
    return table


def shown(release: DataFrame, *named: str) -> Rows:
    """A release as on the page: a line per class, its diseases in order."""
    classes: dict[tuple[str, ...], list[str]] = {}
    for row in release.collect():
        classes.setdefault(tuple(str(row[name]) for name in (*named, "age")), []).append(row["disease"])
    return [(*key, ", ".join(sorted(diseases))) for key, diseases in sorted(classes.items())]


class Hospital:
    """The table of the example, night by night."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        (example,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        (folder / "job.yaml").write_text(example, encoding="utf-8")

    def become(self, night: int) -> None:
        rows = [
            (name, int(age), disease)
            for since, name, age, disease in one_table("| night | name | age | disease |")
            if int(since) <= night
        ]
        frame = self.spark.createDataFrame(rows, "name string, age int, disease string")
        frame.coalesce(1).write.format("delta").mode("overwrite").save(str(self.folder / "people"))

    def job(self, *changes: str) -> JobSpec:
        places = {"input.table": "people", "output.table": "release", "output.ledger": "ledger", "output.runs": "runs"}
        return load_job(self.folder / "job.yaml", [*(f"{key}=./{place}" for key, place in places.items()), *changes])

    @property
    def release(self) -> DataFrame:
        return self.spark.read.format("delta").load(str(self.folder / "release"))


@pytest.mark.long
def test_two_nights_with_replace_single_somebody_out(spark: SparkSession, tmp_path: Path) -> None:
    hospital, nights = Hospital(spark, tmp_path), one_table("| release | age | disease |")
    replace = ["output.mode=replace", "output.ledger=null", "output.increment=null", "lattice.levels=null"]
    published: list[Rows] = []
    for night in (1, 2):
        hospital.become(night)
        if night == 2:
            with pytest.raises(an.DataError, match=r"limits\.republication allows 0\."):
                an.run(hospital.job(*replace, "limits.republication=0"), spark)
        report = an.run(hospital.job(*replace), spark)
        published.append(shown(hospital.release))
    assert [(f"night {night}", *row) for night, rows in enumerate(published, start=1) for row in rows] == nights

    # the attacker of the page: one release minus the other, where Nora must be
    before, after = ([disease for row in rows if row[0] == "[30, 39]" for disease in row[1].split(", ")] for rows in published)
    for disease in before:
        after.remove(disease)
    nora = {name: disease for _, name, _, disease in one_table("| night | name | age | disease |")}["Nora"]
    assert after == [nora] == ["diabetes"]
    assert (report.republication["newcomers"], report.republication["few_newcomers"]) == (1, 1)
    assert "republication" in [finding.kind for finding in report.findings if finding.level == "look"]


@pytest.mark.long
def test_three_nights_with_append_do_not(spark: SparkSession, tmp_path: Path) -> None:
    hospital = Hospital(spark, tmp_path)
    nights: Rows = []
    for night in (1, 2, 3):
        hospital.become(night)
        report = an.run(hospital.job(), spark)
        facts = report.series
        assert facts is not None
        told = "1 person is new, fewer than 3" if facts.published == 0 else ""
        does = f"waits: {told}" if report.status == "waiting" else f"increment {facts.increment}"
        nights.append((str(night), does, str(facts.published), str(facts.waiting)))
    assert nights == one_table("| night | what the run does | published | waiting |")
    assert shown(hospital.release, "part") == one_table("| part | age | disease |")
    assert [verdict.name for verdict in an.audit(hospital.job(), spark) if not verdict.passed] == []


def texts() -> Iterator[str]:
    """Every text of the package, with … for what is filled in."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_messages_of_the_page_are_those_of_the_code() -> None:
    known = [re.sub(r"\s+", " ", text) for text in texts()]
    told = [row[0] for row in one_table("| message | exit code | what to do |")]
    assert len(told) > 10
    assert [message for message in told if not any(message in text for text in known)] == []


def test_a_message_that_is_not_there_is_found() -> None:
    assert not any("output.ledger: there is no such ledger" in text for text in texts())
