"""The streaming pipeline: a source that grows is published once, whatever becomes of stream, runs and checkpoint."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anon_spark as an
from pipelines import streaming
from pipelines.streaming import main, stream
from tests.town import REMOVED, Town, people

SERIES: dict[str, Any] = {
    "columns__person": "person_id",
    "columns__keep": [],
    "output__mode": "append",
    "output__ledger": "./ledger",
    "output__increment": "part",
    "output__report": REMOVED,
}
EVERYBODY = people(260)


@pytest.fixture
def town(spark: SparkSession, tmp_path: Path) -> Town:
    return Town.founded(spark, tmp_path / "town", EVERYBODY.slice(0, 200))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mock]:
    """A stand-in for the run, for what concerns the stream alone; no stream is left behind."""
    run = Mock(return_value=Mock(message="ran", findings=[]))
    monkeypatch.setattr(an, "run", run)
    yield run
    assert SparkSession.active().streams.active == []


def checkpoint(town: Town) -> Path:
    return town.folder / "checkpoint"


def once(town: Town, after: Callable[[an.RunReport], object] | None = None) -> list[an.RunReport]:
    """Look once; the reports of what was run."""
    reports: list[an.RunReport] = []
    stream(town.job_file(**SERIES), str(checkpoint(town)), town.spark, None, after or reports.append)
    return reports


def arrive(town: Town, first: int, end: int) -> None:
    town.spark.createDataFrame(EVERYBODY.slice(first, end - first)).write.format("delta").mode("append").save(
        str(town.folder / "people")
    )


def batches_done(town: Town) -> int:
    return len([file for file in (checkpoint(town) / "commits").glob("*") if file.name.isdigit()])


def ledger(town: Town) -> list[tuple[bytes, int]]:
    """Person and increment of every row of the ledger that stands for a person."""
    rows = town.spark.read.format("delta").load(str(town.folder / "ledger")).where(F.col("kind") == "person")
    return [(bytes(row["person"]), row["increment"]) for row in rows.collect()]


@pytest.mark.long
def test_who_arrives_in_any_batch_is_published_once(town: Town) -> None:
    # the process dies between the run and the checkpoint
    with pytest.raises(RuntimeError, match="killed"):
        once(town, Mock(side_effect=RuntimeError("killed")))
    assert (town.release.count(), len(ledger(town)), batches_done(town)) == (200, 200, 0)

    (again,) = once(town)  # the batch comes again
    assert (again.status, again.series and again.series.new) == ("waiting", 0)
    assert (town.release.count(), len(ledger(town)), batches_done(town)) == (200, 200, 1)
    assert once(town) == []

    arrive(town, 200, 202)  # fewer than k
    (waited,) = once(town)
    assert (waited.status, waited.series and waited.series.waiting) == ("waiting", 2)
    assert (town.release.count(), batches_done(town)) == (200, 2)

    arrive(town, 202, 260)
    (second,) = once(town)
    assert second.status == "published" and second.series is not None
    assert (second.series.new, second.series.published + second.series.waiting, second.series.before) == (60, 60, 200)

    shutil.rmtree(checkpoint(town))  # everything comes again, in one batch
    (last,) = once(town)
    assert last.series is not None and last.series.new == second.series.waiting
    persons = [person for person, _ in ledger(town)]
    assert len(persons) == len(set(persons)) == town.release.count() == 260 - second.series.waiting
    increments = Counter(number for _, number in ledger(town))
    assert increments == {row["part"]: row["count"] for row in town.release.groupBy("part").count().collect()}


@pytest.mark.long
def test_a_refused_run_ends_the_stream_and_its_batch_comes_again(
    town: Town, capsys: pytest.CaptureFixture[str]
) -> None:
    town.write(people(200, person_id=[None, *range(7001, 7200)]))
    arguments = [town.job_file(**SERIES), "--checkpoint", str(checkpoint(town)), "--once"]
    assert main(arguments) == 3
    assert "1 rows have no person" in capsys.readouterr().err
    assert (batches_done(town), town.versions) == (0, 0)

    town.write(EVERYBODY.slice(0, 200))
    assert main(arguments) == 0
    assert "Published" in capsys.readouterr().out
    assert (batches_done(town), town.release.count()) == (2, 200)  # the old batch, and the commit that mended the rows


@pytest.mark.long
def test_every_kind_of_commit_starts_a_run(town: Town, runs: Mock) -> None:
    table = f"delta.`{town.folder}/people`"
    arriving = EVERYBODY.slice(200, 20)
    town.spark.createDataFrame(arriving).createOrReplaceTempView("arriving")
    merge = f"MERGE INTO {table} t USING arriving s ON t.person_id = s.person_id - 100 WHEN MATCHED THEN UPDATE SET weight = 1 "
    for statement, calls in (
        (f"SELECT * FROM {table}", 1),  # nothing; the table itself is the first batch
        (f"DELETE FROM {table} WHERE person_id = 7003", 2),
        (f"UPDATE {table} SET weight = 0 WHERE person_id = 7004", 3),
        (merge + "WHEN NOT MATCHED THEN INSERT *", 4),
        (f"INSERT INTO {table} SELECT * FROM arriving", 5),
        (f"OPTIMIZE {table}", 6),
        (f"DELETE FROM {table}", 7),
    ):
        town.spark.sql(statement).collect()
        once(town)
        assert runs.call_count == calls, statement
    town.write(EVERYBODY)
    once(town)
    assert runs.call_count == 8
    operations = [row["operation"] for row in town.spark.sql(f"DESCRIBE HISTORY {table}").collect()]
    assert operations == ["WRITE", "DELETE", "OPTIMIZE", "WRITE", "MERGE", "UPDATE", "DELETE", "WRITE"]


@pytest.mark.long
def test_other_columns_end_the_stream_and_another_start_goes_on(
    town: Town, runs: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    def rewrite(table: DataFrame, mode: str, option: str) -> None:
        table.write.format("delta").mode(mode).option(option, "true").save(str(town.folder / "people"))

    def run(*_: object) -> Mock:
        if runs.call_count == 1:
            wider = town.spark.createDataFrame(EVERYBODY.slice(200, 20)).withColumn("height", F.lit(170))
            rewrite(wider, "append", "mergeSchema")
        return Mock(message="ran", findings=[])

    runs.side_effect = run
    arguments = [town.job_file(**SERIES), "--checkpoint", str(checkpoint(town))]
    assert main([*arguments, "--every", "1"]) == 1
    assert "ended: DELTA_SCHEMA_CHANGED_WITH_VERSION. Nothing is lost: start it again." in capsys.readouterr().err
    assert (main([*arguments, "--once"]), runs.call_count) == (0, 2)

    narrower = town.spark.createDataFrame(EVERYBODY).drop("weight")
    rewrite(narrower, "overwrite", "overwriteSchema")
    assert (main([*arguments, "--once"]), runs.call_count) == (1, 2)
    shutil.rmtree(checkpoint(town))
    assert (main([*arguments, "--once"]), runs.call_count) == (0, 3)


def test_a_stream_goes_on_until_a_signal_stops_it_in_order(
    town: Town, runs: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: object) -> Mock:
        if runs.call_count == 1:
            arrive(town, 200, 201)
        else:
            Timer(3, os.kill, (os.getpid(), signal.SIGTERM)).start()  # while it waits for rows
        return Mock(message="ran", findings=[Mock(level="look", text="this")])

    runs.side_effect = run
    assert main([town.job_file(**SERIES), "--checkpoint", str(checkpoint(town)), "--every", "1"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "ran\nlook at:\n  this\n" * 2
    assert shown.err.startswith("stopped.")
    assert batches_done(town) == 2


def test_a_signal_during_a_run_stops_the_run(town: Town, runs: Mock) -> None:
    def run(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("the run went on")

    runs.side_effect = run
    assert main([town.job_file(**SERIES), "--checkpoint", str(checkpoint(town)), "--every", "1"]) == 1
    assert batches_done(town) == 0


@pytest.mark.parametrize(
    ("changes", "place", "told"),
    [
        ({"output__mode": "replace", "output__ledger": REMOVED, "output__increment": REMOVED}, "checkpoint", "output.mode: "),
        ({"input__version": 0}, "checkpoint", "input.version: "),
        ({"columns__sensitive": ["nothing"]}, "checkpoint", "nothing"),
        ({}, "work/checkpoint", "--checkpoint lies inside work"),
        ({}, "ledger", "--checkpoint is the same place as output.ledger"),
        ({}, "people/checkpoint", "--checkpoint lies inside input"),
    ],
)
def test_what_is_wrong_before_any_row_is_told_at_the_start(
    town: Town, runs: Mock, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], place: str, told: str
) -> None:
    job = {name: value for name, value in (SERIES | changes).items() if value is not REMOVED or name == "output__report"}
    file = town.job_file(**job)
    before = town.listing()
    assert main([file, "--checkpoint", str(town.folder / place), "--once"]) == 2
    assert told in capsys.readouterr().err
    assert (town.listing(), runs.call_count) == (before, 0)


def test_a_client_of_spark_connect_is_refused(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "on_connect", lambda spark: True)
    with pytest.raises(an.ConfigurationError, match="Spark Connect"):
        once(town)


@pytest.mark.long
def test_a_process_that_is_stopped_leaves_nothing_private(town: Town) -> None:
    script = Path(streaming.__file__)
    job = town.job_file(**SERIES)
    command = [sys.executable, str(script), job, "--checkpoint", str(checkpoint(town)), "--every", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Published")
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, "stopped." in errors) == (1, True)
    assert list((town.folder / "work").glob("*")) == []
    assert town.release.count() == 200
