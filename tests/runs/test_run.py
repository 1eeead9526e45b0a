"""A run end to end: what is published, what is logged and reported, what a fault leaves behind, what never escapes."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.cli import main
from anon_spark.columns import quoted
from anon_spark.errors import ConfigurationError
from anon_spark.families.lattice.facts import LatticeFacts
from anon_spark.families.lattice.pipeline import LatticePipeline
from anon_spark.families.lattice.recoding import LatticeRecoding
from anon_spark.families.registry import pipeline_of
from anon_spark.io.tables import history
from anon_spark.primitives.ordering import key_frame, shuffled
from anon_spark.primitives.rounds import Workspace
from anon_spark.runs.identity import Identity
from anon_spark.runs.preparation import Preparation, job_digest, prepare
from tests.published import ASKED, TEST_KEY, PublishedTown
from tests.town import CITIES, QUASI, ROWS, Town, messages

COLUMNS = [*QUASI, "disease", "weight", "city_code"]
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
    release = town.release.collect()

    assert town.release.columns == COLUMNS
    assert dict(dtype for dtype in town.release.dtypes if dtype[0] in QUASI) == dict.fromkeys(QUASI, "string")
    assert min(Counter(tuple(row)[: len(QUASI)] for row in release).values()) >= 5
    assert report.status == "published" and all(check.passed for check in report.checks)
    assert [check.name for check in report.checks] == [
        "columns", "5-anonymity", "truthfulness", "row accounting", "row order",
    ]  # fmt: skip


def test_policies_are_counted_apart_from_suppression(published: PublishedTown) -> None:
    account = dict(published.report.accounting)

    assert (account["source"], account["dropped_nulls"], account["dropped_unseen"]) == (ROWS, 5, 4)
    assert account["published"] == published.town.release.count()
    assert account["suppressed"] == ROWS - 9 - account["published"] <= (ROWS - 9) * 0.05


def test_persons_are_counted_not_rows(published: PublishedTown) -> None:
    town, spark = published.town, published.town.spark
    # the thirty rows of one person are no class: where he lives is not published apart from its region
    assert {row.city for row in town.release.collect()} <= {"North", "South", "*"}
    assert "have at least 5 persons" in next(c.detail for c in published.report.checks if c.name == "5-anonymity")

    # nor is an audit taken in by a release that counted rows
    job = town.job(**ASKED | BARE, privacy__k=5)
    source = spark.read.format("delta").option("versionAsOf", 0).load(job.input.table)
    by_rows = source.select("city", "disease").where(F.col("city").isin(*CITIES))
    verdicts = pipeline_of(job, spark).verify_current(source, by_rows, {"levels": {"city": 0}})
    assert [str(verdict) for verdict in verdicts if not verdict.passed] == [
        "5-anonymity: FAILED. 1 of 4 classes have fewer than 5 persons (30 of 191 rows, smallest class 1)."
    ]


def test_dependency_is_reported(published: PublishedTown) -> None:
    (warning,) = published.report.warnings
    assert warning.startswith("Column city_code determines city: it gives back what was generalized.")
    assert json.loads((published.town.folder / "report" / "town.json").read_text())["warnings"] == [warning]


def test_release_says_which_run_made_it(published: PublishedTown) -> None:
    town, report = published.town, published.report
    described, commit = history(town.spark, str(town.folder / "release"), 9)
    assert described["operation"] == "SET TBLPROPERTIES" and described["userMetadata"] is None

    said = json.loads(commit["userMetadata"])["anon_spark"]

    assert isinstance(report.facts, LatticeFacts)
    levels = {attribute.name: attribute.level for attribute in report.facts.attributes}
    assert said == {
        "run_id": report.run_id,
        "family": "lattice",
        "config_hash": report.config_hash,
        "input_table": str(town.folder / "people"),
        "input_id": town.spark.sql(f"DESCRIBE DETAIL delta.`{town.folder}/people`").first()["id"],  # type: ignore[index]
        "input_version": 0,
        "for_release": False,
        "look": len([finding for finding in report.findings if finding.level == "look"]),
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


def test_the_report_shows_columns_as_the_release_does(published: PublishedTown) -> None:
    """Every named label is in the release, in as many rows, and in at least k; timings and words are complete."""
    release, report = published.town.release, published.report
    assert isinstance(report.facts, LatticeFacts)
    rows = release.count()
    for shown in report.facts.distributions:
        counted = {row[0]: row[1] for row in release.groupBy(quoted(shown.column)).count().collect()}
        texts = {None if value is None else str(value): count for value, count in counted.items()}
        assert shown.rows_after == rows and all(count.after >= 5 for count in shown.labels)
        if shown.rounded_to == 1 or shown.role != "quasi-identifier":
            assert all(texts[count.label] == count.after for count in shown.labels)
    assert {shown.column for shown in report.facts.distributions} == set(release.columns)
    assert report.in_words[0].startswith("Whoever knows ") and report.in_words[-1].endswith(".")
    steps = report.steps()
    assert sum(step.spent for step in steps if step.kind == "step") == pytest.approx(steps[-1].spent)
    assert sum(crowd.after for crowd in report.facts.crowds) == pytest.approx(1)
    assert all(crowd.after == 0 for crowd in report.facts.crowds if crowd.least < 5)


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

    same = shuffled(release.repartition(7), key_frame(spark, TEST_KEY), COLUMNS)  # whatever the partitions
    other = shuffled(release, key_frame(spark, "another key"), COLUMNS)

    assert tuples(same) == rows
    assert tuples(other) != rows and Counter(tuples(other)) == Counter(rows)
    # weight is published as it is and goes 100, 101, … in the source: how often does a row follow its source neighbour?
    following = sum((after[-2] - before[-2]) % 8 == 1 for before, after in pairwise(rows))
    assert following < len(rows) / 3  # all of them in the source, about one in eight by chance


def test_test_key_marks_the_run_and_stays_private(published: PublishedTown) -> None:
    town, report = published.town, published.report
    texts = {path.suffix: path.read_text() for path in (town.folder / "report").glob("town.[!d]*")}

    assert not report.for_release
    assert "not for release" in texts[".html"] and "not for release" in texts[".md"]
    assert json.loads(texts[".json"])["for_release"] is False
    texts |= {"event log": published.logged, "run log": repr(town.runs)}
    texts |= {"commits": str(history(town.spark, str(town.folder / "release"), 9))}
    for where, text in texts.items():
        assert TEST_KEY not in text, where


def test_no_value_of_a_record_escapes(published: PublishedTown) -> None:
    """Report and run log show what the release shows, and examples of frequent values; the event log nothing."""
    folder, facts = published.town.folder, published.report.facts
    assert isinstance(facts, LatticeFacts)
    values = {*CITIES, *CITIES.values(), "Inhabitant-", "asthma", "migraine", "Atlantis"}
    texts = {path.name: path.read_text() for path in (folder / "report").iterdir()}
    texts |= {"event log": published.logged, "run log": repr(published.town.runs)}
    shown = {str(value) for row in published.town.release.collect() for value in row}
    examples = {one.example[0] for one in facts.distributions if one.example is not None}

    assert len(texts) == 6 and all(texts.values())
    for where, text in texts.items():
        allowed = set() if where == "event log" else shown | examples
        assert {value for value in values if value in text} <= allowed, where


# --- reruns


def test_rerun_is_recognised(published: PublishedTown, capsys: pytest.CaptureFixture[str]) -> None:
    town = published.town
    page, rows = town.folder / "report" / "town.html", len(town.runs)
    before = page.read_text()

    assert main(["run", town.job_file(**ASKED), "--quiet"]) == 0

    shown = capsys.readouterr().out.splitlines()
    assert "had 3 findings to look at" in shown[0]  # what stands is no better for having been recognised
    assert shown[1] == "Already published, but look at 1 finding before anybody gets the release."
    assert shown[2:4] == [f"already published: {town.folder}/release version 0", "test key: not for release"]
    assert town.versions == 1
    assert [row.status for row in town.runs[rows:]] == ["already_published"]
    assert page.read_text() == before  # the report of the current release keeps its plots

    # another k, another version, another hierarchy behind the same file name: another release
    prepared = prepare(town.job(**ASKED), town.spark)

    def recognised(prepared: Preparation, for_release: bool = False) -> bool:
        return Identity(prepared, for_release).already_published is not None

    assert recognised(prepared)
    cities = town.folder / "hierarchies" / "city.csv"
    lines = cities.read_text()
    digests = {prepared.config_hash, job_digest(town.job(**ASKED, privacy__k=6), prepared.steps)}
    cities.write_text(lines + "Elmwood;South;*\n")
    digests.add(job_digest(prepared.job, pipeline_of(prepared.job, None)))
    cities.write_text(lines)
    assert job_digest(prepared.job, pipeline_of(prepared.job, None)) == prepared.config_hash
    assert len(digests) == 3
    for other in digests - {prepared.config_hash}:
        assert not recognised(replace(prepared, config_hash=other))
    fewer = replace(prepared.source, version=1, frame=prepared.source.frame.limit(150))
    assert not recognised(replace(prepared, source=fewer))
    # and what was made with a test key is no release for a run without one
    assert not recognised(prepared, for_release=True)
    # the same rows are the same input, whatever table or version they are in
    assert recognised(replace(prepared, source=replace(prepared.source, table_id="another table", version=7)))


# --- faults publish nothing


def faulty(staged: DataFrame, source: DataFrame) -> DataFrame:
    """A release that loses a row, shows another one raw, has an identifier, and is in no order."""
    kept = staged.coalesce(1).where(F.monotonically_increasing_id() > 0)
    leaked = source.limit(1).select(*staged.columns)
    return kept.unionByName(leaked).withColumn("name", F.lit("x")).coalesce(1)


FAULTS = (  # each is told by the check that is there for it
    "columns: FAILED. 1 columns are identifiers: name.",
    "3-anonymity: FAILED. 1 of 3 classes have fewer than 3 rows (1 of 50 rows, smallest class 1).",
    "truthfulness: FAILED. 1 of 3 classes have no source row that recodes to them. 1 of 3 classes are published only in part.",
    "row accounting: FAILED. the run claims classes = 2, the audit counts 3.",
    "row order: FAILED. ",
)


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
    rows, original, columns = len(victim.runs), LatticeRecoding.staged, ["city", "disease"]

    def misled(self: LatticeRecoding, df: DataFrame, key: DataFrame) -> DataFrame:
        found = faulty(original(self, df, key), df)
        columns.append("name")
        return found

    monkeypatch.setattr(LatticeRecoding, "staged", misled)
    monkeypatch.setattr(LatticeRecoding, "published", property(lambda self: columns))
    monkeypatch.setattr(LatticePipeline, "published", property(lambda self: ["city", "disease", "name"]))

    code = main(["run", victim.job_file(**BARE), "--quiet"])

    assert code == 3
    shown = capsys.readouterr()
    (line,) = messages(shown.err)
    assert line.startswith("anon-spark: The audit refused the release, nothing was published. " + " ".join(FAULTS[:-1]))
    assert FAULTS[-1] in line
    assert shown.out == ""
    assert victim.versions == 1
    (row,) = victim.runs[rows:]
    assert (row.status, row.output_version, row.for_release) == ("failed", None, True)
    assert f"anon-spark: {row.message}" == line
    page = victim.folder / "report" / "town.html"
    assert "NOT PUBLISHED" in page.read_text() and row.run_id in page.read_text()
    assert list((victim.folder / "work").iterdir()) == []
    assert not {value for value in (*CITIES, "Inhabitant", "asthma") if value in line + page.read_text() + repr(row)}


@pytest.mark.long
def test_text_of_an_unexpected_error_is_not_kept(
    victim: Town, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: LatticePipeline, df: DataFrame, workspace: Workspace, key: str, progress: object) -> None:
        workspace.store(df.limit(1), "raw")
        df.select(F.expr("cast(disease AS int)")).collect()  # Spark writes the value that it could not cast

    rows = len(victim.runs)
    monkeypatch.setattr(LatticePipeline, "fit", broken)

    assert main(["run", victim.job_file(**BARE), "--quiet"]) == 1

    (line,) = messages(capsys.readouterr().err)
    assert line == "anon-spark: unexpected NumberFormatException CAST_INVALID_INPUT. Run again with --debug to see where."
    (row,) = victim.runs[rows:]
    assert (row.status, row.output_version) == ("failed", None)
    assert row.message == "Unexpected NumberFormatException; its text may hold values and is not kept."
    assert list((victim.folder / "work").iterdir()) == []


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
