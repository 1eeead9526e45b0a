"""A run end to end: what is published, what is logged and reported, what a fault leaves behind, what never escapes."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import pipelines.run
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from anon_spark.families.lattice import LatticeRecoding
from anon_spark.io.publication import publish
from anon_spark.io.tables import history
from anon_spark.primitives.ordering import key_frame, shuffled
from anon_spark.primitives.rounds import Workspace
from jobs.cli import main
from pipelines.audit import audit
from pipelines.preparation import RUN_KEY, prepare
from pipelines.run import require_all
from tests.spark.conftest import TEST_KEY, PublishedTown
from tests.spark.town import CITIES, PUBLISHED, QUASI, ROWS, Town, people

BARE: dict[str, Any] = {  # one attribute and what is not generalized: enough for faults
    "columns__quasi_identifiers": {"city": {"levels": "hierarchies/city.csv"}},
    "columns__keep": [],
    "privacy": {"k": 3},
    "lattice": {"choose": {"node": [1]}},
}


def tuples(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


# --- what is published


def test_release_is_what_was_asked_for(published: PublishedTown) -> None:
    town, report = published.town, published.report
    release = tuples(town.release)

    assert town.release.columns == PUBLISHED
    sizes = Counter(row[: len(QUASI)] for row in release)
    assert min(sizes.values()) >= 5
    assert report.status == "published" and all(check.passed for check in report.checks)
    assert report.accounting["published"] == len(release)
    assert ROWS - len(release) == report.accounting["suppressed"] <= ROWS * 0.05
    assert [check.name for check in report.checks] == [
        "columns", "5-anonymity", "truthfulness", "row accounting", "row order",
    ]  # fmt: skip
    assert report.warnings == []
    assert dict(dtype for dtype in town.release.dtypes if dtype[0] in QUASI) == dict.fromkeys(QUASI, "string")


def test_release_says_which_run_made_it(published: PublishedTown) -> None:
    town, report = published.town, published.report
    (commit,) = history(town.spark, str(town.folder / "release"), 9)

    said = json.loads(commit["userMetadata"])["anon_spark"]

    levels = {attribute["name"]: attribute["level"] for attribute in report.facts["attributes"]}
    assert said == {
        "run_id": report.run_id,
        "family": "lattice",
        "config_hash": report.config_hash,
        "input_table": str(town.folder / "people"),
        "input_id": town.spark.sql(f"DESCRIBE DETAIL delta.`{town.folder}/people`").first()["id"],  # type: ignore[index]
        "input_version": 0,
        "for_release": False,
        "k": 5,
        "levels": levels,
    }


def test_run_log_and_report(published: PublishedTown) -> None:
    town, report = published.town, published.report

    row = town.runs[0]

    assert (row.run_id, row.status, row.message) == (report.run_id, "published", None)
    assert (row.input_version, row.output_version, row.for_release) == (0, 0, False)
    assert row.config_hash == report.config_hash
    assert json.loads(row.accounting) == report.accounting
    metrics = json.loads(row.metrics)
    assert metrics["chosen"]["k"] >= 5 and metrics["front"] and "audit" in metrics["timings"]
    page = town.folder / "report" / "town.html"
    assert "PUBLISHED" in page.read_text() and "NOT PUBLISHED" not in page.read_text()
    assert json.loads(page.with_suffix(".json").read_text())["run_id"] == report.run_id
    assert page.with_suffix(".md").exists()


def test_nothing_private_stays_behind(published: PublishedTown) -> None:
    folder = published.town.folder
    assert list((folder / "work").iterdir()) == []
    assert sorted(entry.name for entry in folder.iterdir()) == [
        "hierarchies", "job.yaml", "people", "release", "report", "runs", "work",
    ]  # fmt: skip


def test_order_is_a_function_of_key_and_content(published: PublishedTown, spark: SparkSession) -> None:
    release = published.town.release
    rows = tuples(release)
    assert len(release.inputFiles()) == 1

    same = shuffled(release.repartition(7), key_frame(spark, TEST_KEY), PUBLISHED)  # whatever the partitions
    other = shuffled(release, key_frame(spark, "another key"), PUBLISHED)

    assert tuples(same) == rows
    assert tuples(other) != rows and sorted(tuples(other)) == sorted(rows)
    # weight is published as it is and goes 100, 101, … in the source: how often does a row follow its source neighbour?
    following = sum((after[-1] - before[-1]) % 8 == 1 for before, after in pairwise(rows))
    assert following < len(rows) / 3  # all of them in the source, about one in eight by chance


def test_test_key_marks_the_run_and_stays_private(published: PublishedTown) -> None:
    town, report = published.town, published.report
    texts = {path.suffix: path.read_text() for path in (town.folder / "report").iterdir()}

    assert not report.for_release
    assert "not for release" in texts[".html"] and "not for release" in texts[".md"]
    assert json.loads(texts[".json"])["for_release"] is False
    texts |= {"event log": published.logged, "run log": repr(town.runs)}
    texts |= {"commit": history(town.spark, str(town.folder / "release"), 1)[0]["userMetadata"]}
    for where, text in texts.items():
        assert TEST_KEY not in text, where


def test_no_value_of_a_record_escapes(published: PublishedTown) -> None:
    folder = published.town.folder
    values = {*CITIES, *CITIES.values(), "Inhabitant-", "asthma", "migraine"}
    texts = {path.name: path.read_text() for path in (folder / "report").iterdir()}
    texts |= {"event log": published.logged, "run log": repr(published.town.runs)}

    assert len(texts) == 5 and all(texts.values())
    for where, text in texts.items():
        assert {value for value in values if value in text} == set(), where


# --- reruns


def test_rerun_is_recognised(
    published: PublishedTown, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    town = published.town
    page, rows = town.folder / "report" / "town.html", len(town.runs)
    before = page.read_text()

    assert main(["run", town.job_file(input__version=0), "--quiet"]) == 0

    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == [f"already published: {town.folder}/release version 0", "test key: not for release"]
    assert town.versions == 1
    assert [row.status for row in town.runs[rows:]] == ["already_published"]
    assert page.read_text() == before  # the report of the release that stands keeps its plots

    # another k, another version, another hierarchy behind the same file name: another release
    def recognised(**changes: object) -> bool:
        return prepare(town.job(**{"input__version": 0} | changes), town.spark).already_published

    assert recognised()
    assert not recognised(privacy__k=6)
    assert not recognised(input__version=1)
    cities = town.folder / "hierarchies" / "city.csv"
    lines = cities.read_text()
    cities.write_text(lines + "Elmwood;South;*\n")
    assert not recognised()
    cities.write_text(lines)
    # and what was made with a test key is no release for a run without one
    monkeypatch.delenv(RUN_KEY)
    assert not recognised()


# --- faults publish nothing


def leak_a_row(staged: DataFrame, source: DataFrame) -> DataFrame:
    return staged.unionByName(source.limit(1).select(*staged.columns))


def lose_a_row(staged: DataFrame, source: DataFrame) -> DataFrame:
    return staged.coalesce(1).where(F.monotonically_increasing_id() > 0)


def keep_identifiers(staged: DataFrame, source: DataFrame) -> DataFrame:
    return staged.withColumn("name", F.lit("x"))


def keep_order(staged: DataFrame, source: DataFrame) -> DataFrame:
    return staged.coalesce(1)


@pytest.fixture(scope="module")
def victim(published_once: PublishedTown, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A town whose release stands, and must still stand after every fault."""
    town = published_once.town.copied(tmp_path_factory.mktemp("victim") / "town")
    before = tuples(town.release)
    yield town
    assert (town.versions, tuples(town.release)) == (1, before)


def test_failed_audit_publishes_nothing(
    victim: Town, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, original = len(victim.runs), LatticeRecoding.staged
    monkeypatch.setattr(LatticeRecoding, "staged", lambda self, df: leak_a_row(original(self, df), df))

    code = main(["run", victim.job_file(**BARE), "--quiet"])

    assert code == 3
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert line.startswith(
        "anon-spark: The audit refused the release, nothing was published. "
        "3-anonymity: FAILED. 1 of 3 classes have fewer than 3 rows (1 of 51 rows, smallest class 1). truthfulness: FAILED. "
    )
    assert shown.out == ""
    assert victim.versions == 1
    (row,) = victim.runs[rows:]
    assert (row.status, row.output_version, row.for_release) == ("failed", None, True)
    assert f"anon-spark: {row.message}" == line
    page = victim.folder / "report" / "town.html"
    assert "NOT PUBLISHED" in page.read_text() and row.run_id in page.read_text()
    assert list((victim.folder / "work").iterdir()) == []
    assert not {value for value in (*CITIES, "Inhabitant", "asthma") if value in line + page.read_text() + repr(row)}


def test_every_fault_is_caught(victim: Town, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(victim.job(**BARE), victim.spark)
    steps, source, key = prepared.steps, prepared.source.frame, key_frame(victim.spark, "any key")
    with Workspace(victim.spark, str(workdir)) as workspace:
        recoding = steps.fit(source, workspace, None)

        def failed(fault: Callable[[DataFrame, DataFrame], DataFrame], published: list[str], shuffle: bool = True) -> list[str]:
            monkeypatch.setattr(type(steps), "published", property(lambda _: published))
            staged = fault(recoding.staged(source), source)
            stored = workspace.store(shuffled(staged, key, published) if shuffle else staged, fault.__name__)
            verdicts, _ = steps.verify(source, stored, recoding, key, workspace)
            with pytest.raises(GuaranteeViolated) as caught:
                require_all(verdicts)
            return list(caught.value.facts["checks"])

        asked = ["city", "disease"]
        assert failed(lose_a_row, asked) == ["truthfulness", "row accounting"]
        assert failed(keep_identifiers, [*asked, "name"]) == ["columns"]
        assert failed(keep_order, asked, shuffle=False) == ["row order"]


def test_interrupted_publication_keeps_the_old_release(
    victim: Town, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(release: DataFrame, *arguments: Any) -> int:
        """A write that fails in the middle, with a value of a record in the text of the error."""
        return publish(release.withColumn("city", F.expr("cast(disease AS int)")), *arguments)

    rows = len(victim.runs)
    monkeypatch.setattr(pipelines.run, "publish", broken)

    assert main(["run", victim.job_file(**BARE), "--quiet"]) == 1

    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"anon-spark: unexpected (\w+) ?[\w.]*\. Run again with --debug to see where\.", line)
    assert victim.versions == 1
    (row,) = victim.runs[rows:]
    assert re.fullmatch(r"Unexpected \w+; its text may hold values and is not kept\.", row.message)
    assert (row.status, row.output_version) == ("failed", None)
    assert list((victim.folder / "work").iterdir()) == []
    assert not {value for value in ("asthma", "migraine", "none'") if value in line + repr(row)}


# --- persons, policies and dependencies


@pytest.fixture(scope="module")
def households(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """Forty people with a row each in three cities, and one with twenty in Bexley; nine rows without a known city."""
    rows = 69
    city = [["Aldorf", "Carden", "Dunmore"][number % 3] if number < 40 else "Bexley" for number in range(rows)]
    city[60:] = ["Atlantis"] * 4 + [None] * 5  # type: ignore[list-item]
    person = [number if number < 40 or number >= 60 else 999 for number in range(rows)]
    code = [len(name) * 100 + ord(name[0]) if name else None for name in city]
    table = people(rows, city=city, person_id=person, city_code=code, disease=["none", "asthma", "none"] * 23)
    return Town.founded(spark, tmp_path_factory.mktemp("households") / "town", table)


def test_persons_policies_and_dependencies(households: Town) -> None:
    changes: dict[str, Any] = {
        "columns__quasi_identifiers": {"city": {"levels": "hierarchies/city.csv"}},
        "columns__keep": ["city_code"],
        "columns__person": "person_id",
        "privacy": {"k": 3},
        "nulls": "suppress",
        "on_unseen": "suppress",
    }
    job, spark = households.job(**changes), households.spark

    # a release by rows, in which the twenty rows of one person look like a class: the audit is not taken in
    source = spark.read.format("delta").load(job.input.table)
    by_rows = source.select("city", "disease", "city_code").where(F.col("city").isin(*CITIES))
    publish(by_rows, job.output.table, {"run_id": "by rows", "input_version": 0, "levels": {"city": 0}}, rows=60)
    failed = [verdict for verdict in audit(job, spark) if not verdict.passed]
    assert [str(verdict) for verdict in failed] == [
        "3-anonymity: FAILED. 1 of 4 classes have fewer than 3 persons (20 of 60 rows, smallest class 1)."
    ]

    # nor is the search: counting persons, Bexley is not published apart from its region
    report = households.run(**changes)
    assert (report.output_version, report.for_release) == (1, True)
    assert {row.city for row in households.release.collect()} == {"North", "South"}
    assert households.release.columns == ["city", "disease", "city_code"]
    assert "all 2 classes have at least 3 persons" in next(c.detail for c in report.checks if c.name == "3-anonymity")
    assert [verdict.passed for verdict in audit(job, spark)] == [True] * 6
    before = spark.read.format("delta").option("versionAsOf", 0).load(job.output.table)
    assert before.where("city = 'Bexley'").count() == 20  # earlier versions stay readable

    # what policies left out is counted apart from suppression
    assert dict(report.accounting) == {
        "source": 69, "published": 60, "suppressed": 0, "dropped_nulls": 5, "dropped_unseen": 4, "suppressed_classes": 0,
    }  # fmt: skip
    # a kept column that gives the quasi-identifier back is reported, and published all the same
    (warning,) = report.warnings
    assert warning.startswith("Column city_code determines city: it gives back what was generalized.")
    assert json.loads((households.folder / "report" / "town.json").read_text())["warnings"] == [warning]
    assert [row.status for row in households.runs] == ["published"]


# --- what is refused before a row is read


def test_places_are_compared_after_names_are_resolved(published: PublishedTown, tmp_path: Path) -> None:
    town = published.town
    town.spark.sql("CREATE SCHEMA IF NOT EXISTS town_run")
    town.spark.sql(f"CREATE TABLE IF NOT EXISTS town_run.people USING delta LOCATION '{town.folder}/people'")
    before = town.listing()

    with pytest.raises(ConfigurationError, match=r"^input\.table contains output\.table: choose places apart"):
        prepare(town.job(input__table="town_run.people", output__table="./people/release"), town.spark)
    with pytest.raises(ConfigurationError, match=r"^input\.table contains output\.report: choose places apart"):
        prepare(town.job(input__table="town_run.people", output__report="people/town.html"), town.spark)

    os.utime(town.folder / "job.yaml", ns=(before["job.yaml"],) * 2)
    assert town.listing() == before
