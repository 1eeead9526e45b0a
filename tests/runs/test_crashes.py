"""Runs that are killed: the release is the old or the new one, a rerun finishes, and nothing private is left after it.

`jobs/crashes.py` kills real processes at every step of every family; here a kill is a run that stops without any of its
cleaning up, in the suite's own session.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.cli import main
from anon_spark.errors import AnonSparkError, PublicationRefused, Stopped
from anon_spark.io import publication, run_log
from anon_spark.io.leftovers import FOLDER, Note
from anon_spark.io.publication import Output
from anon_spark.primitives.owners import Owner
from anon_spark.primitives.rounds import Workspace
from anon_spark.report import RunReport
from anon_spark.runs import publishing
from anon_spark.runs import run as runs
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run
from tests.families.set_valued.test_run import SETS, baskets
from tests.runs.test_run import BARE
from tests.town import Town, people

STEPS = [
    "identity", "clean", "fit", "release", "audit", "risk", "publish", "commit", "compare", "committed",
    "report", "log",
]  # fmt: skip


class Killed(BaseException):
    """The end of a process that gets no chance to do anything more."""


@contextmanager
def deadly(patched: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing that a dead process could not do is done, and what it leaves is owned by a process that has ended."""
    here = Owner.here()
    with patched.context() as inner:
        inner.setattr(Workspace, "close", lambda self: None)
        inner.setattr(Note, "end", lambda self: None)
        inner.setattr(runs, "_finish", lambda *_: None)
        inner.setattr(Owner, "here", classmethod(lambda cls: replace(here, boot="an earlier one")))
        yield


def killed_at(wanted: str, town: Town, patched: pytest.MonkeyPatch, **changes: Any) -> None:
    """Run a job up to a step, and die there."""

    def step(name: str) -> None:
        if name == wanted:
            raise Killed

    prepared = prepare(town.job(**changes), town.spark)
    with deadly(patched), pytest.raises(Killed):
        run(prepared, step=step)


def killed_in_the_write(town: Town, patched: pytest.MonkeyPatch, **changes: Any) -> None:
    """Run a job until its rows lie in the folder of the release, and die before they are committed."""

    def written(frame: DataFrame, table: str, *_: object) -> None:
        frame.write.format("delta").save(f"{table}-elsewhere")
        for file in Path(f"{table}-elsewhere").glob("part-*"):
            shutil.move(file, Path(table) / file.name)
        shutil.rmtree(f"{table}-elsewhere")
        raise Killed

    prepared = prepare(town.job(**changes), town.spark)
    with deadly(patched), patched.context() as inner, pytest.raises(Killed):
        inner.setattr(publication, "_write", written)
        run(prepared)


def in_order(town: Town, report: RunReport) -> None:
    """Nothing of a killed run is left after the run that made this report."""
    release = town.folder / "release"
    assert list((town.folder / "work").iterdir()) == []
    assert not (release / FOLDER).exists()
    named = {Path(file).name for file in town.release.inputFiles()}
    if town.versions == 1:
        assert {path.name for path in release.glob("part-*")} == named
    assert town.runs[-1].run_id == report.run_id
    assert (town.folder / "report" / "town.html").exists()


def test_a_job_killed_in_its_first_publication_runs_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = Town.founded(spark, tmp_path / "town", people(60))
    killed_in_the_write(town, monkeypatch, **BARE)
    assert list((town.folder / "release").glob("part-*")) and town.versions == 0
    assert list((town.folder / "work").iterdir()) != [] and town.runs == []

    told: list[str] = []
    report = run(prepare(town.job(**BARE), spark), step=told.append)

    assert told == STEPS
    assert report.status == "published" and town.versions == 1
    assert any("files of a publication that was stopped" in told for told in report.warnings)
    assert any("1 working folders that stopped runs had left were removed." in told for told in report.warnings)
    in_order(town, report)


@pytest.mark.long
def test_a_job_killed_after_its_commit_is_put_in_order(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release is the new one, and the next run writes what is missing."""
    town = Town.founded(spark, tmp_path / "town", people(60))
    town.run(**BARE)
    killed_at("committed", town, monkeypatch, **BARE | {"privacy__k": 4})
    assert town.versions == 2 and len(town.runs) == 1
    shutil.rmtree(town.folder / "report")
    report = town.run(**BARE | {"privacy__k": 4})
    assert report.status == "already_published" and town.versions == 2
    assert all(check.passed for check in report.checks) and report.checks
    assert sorted(row.status for row in town.runs) == ["already_published", "published", "published"]
    in_order(town, report)


@pytest.mark.long
def test_a_draw_that_was_never_committed_is_not_left(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = Town.founded(spark, tmp_path / "town", baskets())
    killed_in_the_write(town, monkeypatch, **SETS)
    drawn = set((town.folder / "release").glob("part-*"))
    assert drawn

    report = town.run(**SETS)  # not refused as a second draw: the first was never readable as a table

    assert report.status == "published" and not drawn & set((town.folder / "release").glob("part-*"))
    in_order(town, report)


def mangle_writes(patched: pytest.MonkeyPatch) -> None:
    """From now on what is written is not what was audited."""
    write = publication._write

    def other(frame: DataFrame, table: str, metadata: Any, on: Output, *appending: Any) -> None:
        """A row is lost on the way, another one comes twice: as many rows as were audited."""
        if "withdrawn" in metadata:
            write(frame, table, metadata, on, *appending)
            return
        fewer = frame.limit(frame.count() - 1)
        write(fewer.unionAll(fewer.limit(1)), table, metadata, on, *appending)

    patched.setattr(publication, "_write", other)


def test_a_published_table_that_is_not_what_was_audited_is_taken_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    town = Town.founded(spark, tmp_path / "town", people(60))
    mangle_writes(monkeypatch)
    assert main(["run", town.job_file(**BARE), "--quiet"]) == 3
    assert "did not hold what had been audited. It was taken back" in capsys.readouterr().err
    assert town.release.count() == 0 and town.runs[-1].status == "failed"
    assert not (town.folder / "release" / FOLDER).exists()


@pytest.mark.long
def test_what_stood_before_stands_again(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    town = Town.founded(spark, tmp_path / "town", people(60))
    before = town.run(**BARE).output_version
    mangle_writes(monkeypatch)
    with pytest.raises(PublicationRefused):
        town.run(**BARE | {"privacy__k": 4})
    monkeypatch.undo()
    assert town.release.count() == 60
    report = town.run(**BARE)
    assert (report.status, report.output_version) == ("already_published", before)
    assert not (town.folder / "release" / FOLDER).exists()


@pytest.mark.long
def test_a_release_that_could_not_be_compared_is_compared_by_the_next_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = Town.founded(spark, tmp_path / "town", people(60))

    def lost(*_: object) -> str:
        raise RuntimeError("an executor was lost")

    said = r"Version 0 of .* was committed, but the run ended"
    with monkeypatch.context() as patched, pytest.raises(AnonSparkError, match=said):
        patched.setattr(publishing, "content_of", lost)
        town.run(**BARE)
    assert (town.runs[-1].status, town.runs[-1].output_version) == ("failed", 0)
    assert "COMMITTED, NOT CONFIRMED" in (town.folder / "report" / "town.html").read_text(encoding="utf-8")

    compared: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(publishing, "_compare", lambda prepared, version, *_: compared.append(version))
        report = town.run(**BARE)
    assert compared == [0] and (report.status, report.output_version) == ("already_published", 0)
    assert [row.status for row in town.runs] == ["failed", "published", "already_published"]
    assert "ALREADY PUBLISHED" in (town.folder / "report" / "town.html").read_text(encoding="utf-8")
    in_order(town, report)


@pytest.mark.long
def test_a_stopped_run_ends_in_order(spark: SparkSession, tmp_path: Path) -> None:
    town = Town.founded(spark, tmp_path / "town", people(60))

    def step(name: str) -> None:
        if name == "audit":
            raise Stopped("SIGTERM")

    with pytest.raises(Stopped):
        run(prepare(town.job(**BARE), spark), step=step)
    (row,) = town.runs
    assert (row.status, row.message) == ("failed", "Stopped before anything was published.")
    assert list((town.folder / "work").iterdir()) == [] and town.versions == 0


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.long
def test_a_log_that_cannot_be_written_takes_no_report_along(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    town = Town.founded(spark, tmp_path / "town", people(60))
    append = run_log.append_run
    monkeypatch.setattr(runs, "append_run", full)
    assert main(["run", town.job_file(**BARE), "--quiet"]) == 1
    assert "could not be written. Make room or give rights, and run the job again" in capsys.readouterr().err
    assert (town.folder / "report" / "town.html").exists() and town.versions == 1 and town.runs == []
    monkeypatch.setattr(runs, "append_run", append)
    assert main(["run", town.job_file(**BARE), "--quiet"]) == 0
    assert [row.status for row in town.runs] == ["published", "already_published"] and town.versions == 1


@pytest.mark.long
def test_a_report_that_cannot_be_written_takes_no_row_along(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = Town.founded(spark, tmp_path / "town", people(60))
    monkeypatch.setattr(RunReport, "write", full)
    with pytest.raises(AnonSparkError, match=r"published: .* but the report .* could not be written"):
        town.run(**BARE | {"output__report": "report/other.html"})
    assert town.runs[-1].status == "published"


@pytest.mark.long
def test_data_files_that_are_gone_are_told(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    town = Town.founded(spark, tmp_path / "town", people(60))
    for file in (town.folder / "people").glob("part-*"):  # vacuumed, or lost
        file.unlink()
    assert main(["run", town.job_file(**BARE), "--quiet"]) == 3
    assert "data files of the version that is read are gone" in capsys.readouterr().err
    assert "data files" in town.runs[-1].message and town.versions == 0


@pytest.mark.long
def test_an_output_that_cannot_be_replaced_is_told(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    town = Town.founded(spark, tmp_path / "town", people(60))
    town.run(**BARE)
    spark.sql(f"ALTER TABLE delta.`{town.folder}/release` SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    assert main(["run", town.job_file(**BARE | {"privacy__k": 4}), "--quiet"]) == 3
    assert "output.table has the property delta.appendOnly" in capsys.readouterr().err
    assert town.runs[-1].message.startswith("output.table has the property delta.appendOnly")
    assert not (town.folder / "release" / FOLDER).exists()

    spark.sql(f"ALTER TABLE delta.`{town.folder}/release` UNSET TBLPROPERTIES ('delta.appendOnly')")
    spark.sql(f"ALTER TABLE delta.`{town.folder}/release` ADD CONSTRAINT there CHECK (city <> '*')")
    assert main(["run", town.job_file(**BARE | {"lattice": {"choose": {"node": [2]}}}), "--quiet"]) == 3
    assert "output.table has a constraint (CHECK or NOT NULL)" in capsys.readouterr().err
    assert town.release.count() == 60 and not (town.folder / "release" / FOLDER).exists()
