"""anon-spark purge --history: earlier releases are really gone, the current one and the properties are as they were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.cli import main
from anon_spark.errors import AnonSparkError
from anon_spark.io import vacuum
from anon_spark.io.earlier import can_be_read, earlier_versions, shown
from anon_spark.io.leftovers import folder_of, note_publication
from anon_spark.io.publication import Output, output_for_run, publish
from anon_spark.io.tables import delta_detail
from anon_spark.io.vacuum import BEFORE, NONE, RETENTION, vacuum_all
from anon_spark.runs.history import Past
from tests.town import Town, messages, people

CHANGES: dict[str, Any] = {"columns__keep": []}
RELEASES = (0, 2, 3)  # versions; version 1 describes the table


class Terminal(StringIO):
    """Somebody who answers."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def published_once_here(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """One release, by a run."""
    town = Town.founded(spark, tmp_path_factory.mktemp("history") / "town")
    town.run(**CHANGES)
    return town


@pytest.fixture
def town(published_once_here: Town, tmp_path: Path) -> Iterator[Town]:
    """Three releases; the last one is that of the job."""
    town = published_once_here.copied(tmp_path / "town")
    table, release = place(town), output_for_run(town.spark, place(town)).release
    assert release is not None
    frame = town.release
    for run in ("second", str(release.metadata["run_id"]) + "-again"):
        publish(frame, table, {**release.metadata, "run_id": run}, output_for_run(town.spark, table))
    yield town


def place(town: Town) -> str:
    return str(town.folder / "release")


def properties(town: Town) -> dict[str, str]:
    detail = delta_detail(town.spark, place(town))
    assert detail is not None
    return dict(detail["properties"])


def readable(town: Town) -> list[bool]:
    return [can_be_read(town.spark, place(town), version) for version in RELEASES]


@pytest.mark.long
def test_earlier_releases_are_gone_and_nothing_else_changed(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    rows, before = sorted(town.release.collect()), properties(town)
    assert readable(town) == [True] * 3 and shown(town.spark, place(town), earlier_versions(town.spark, place(town), 3)) == 2

    assert main(["purge", town.job_file(**CHANGES), "--history", "--work", "--yes"]) == 0

    told = capsys.readouterr().out.splitlines()[-3:]  # after what --work says of others on this machine
    assert told[0].startswith(f"2 earlier releases of {place(town)} can no longer be read") and "version 3 stays" in told[1]
    assert readable(town) == [False, False, True] and properties(town) == before
    assert shown(town.spark, place(town), [2, 0]) == 0
    assert len(list((town.folder / "release").glob("*.parquet"))) == len(set(town.release.inputFiles()))
    assert sorted(town.release.collect()) == rows
    assert main(["audit", town.job_file(**CHANGES), "--quiet"]) == 0  # maintenance is no change


@pytest.mark.long
def test_it_asks_and_a_no_changes_nothing(
    town: Town, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = town.versions
    for answer, code in (("n\n", 1), ("\n", 1), ("y\n", 0)):
        assert readable(town)[:2] == [True, True] and town.versions == before
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        assert main(["purge", town.job_file(**CHANGES), "--history"]) == code
        shown_text = capsys.readouterr().out
        assert "2 earlier releases of" in shown_text and "The current one, version 3, stays." in shown_text
        assert ("nothing was removed" in shown_text) == (code == 1)
    assert readable(town) == [False, False, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "purge: say what to remove: --work (perhaps with --all), --history, or both."),
        (["--history", "--yes", "--all"], "purge: say what to remove: --work"),
        (["--history"], "purge: --history asks before it removes anything, and there is no terminal. Add --yes."),
    ],
)
def test_what_is_not_said_is_not_done(
    published_once_here: Town,
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    assert main(["purge", published_once_here.job_file(**CHANGES), *options]) == 2
    assert messages(capsys.readouterr().err)[0].startswith(f"anon-spark: {message}")


def test_tables_of_others_are_left_alone(town: Town, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    town.spark.range(3).write.format("delta").save(f"{town.folder}/others")
    town.spark.range(2).write.format("delta").mode("append").save(f"{town.folder}/others")
    for table, message in (("./others", "no release of anon-spark"), ("./nothing", "nothing is published")):
        assert main(["purge", town.job_file(**CHANGES, output__table=table), "--history", "--yes"]) == 2
        assert message in capsys.readouterr().err
    assert can_be_read(town.spark, f"{town.folder}/others", 0)
    town.spark.sql(f"DELETE FROM delta.`{place(town)}` WHERE sex = 'f'").collect()
    assert main(["purge", town.job_file(**CHANGES), "--history", "--yes"]) == 2
    assert "was changed by others" in capsys.readouterr().err and readable(town) == [True] * 3


@pytest.mark.long
def test_files_of_a_run_that_is_publishing_stay(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    note = note_publication(place(town), "third", 3, "digest")
    assert note is not None
    assert main(["purge", town.job_file(**CHANGES), "--history", "--yes"]) == 2
    assert "says it is publishing" in capsys.readouterr().err and readable(town) == [True] * 3

    replace(note, ended=True).write()
    assert main(["purge", town.job_file(**CHANGES), "--history", "--yes"]) == 0
    assert folder_of(place(town)) is not None and readable(town) == [False, False, True]


@pytest.mark.long
def test_a_failure_and_a_kill_leave_no_retention_of_zero(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    vacuum._set(town.spark, place(town), {RETENTION: "interval 9 days"})
    before = properties(town)
    really = SparkSession.sql

    def failing(spark: SparkSession, statement: str) -> DataFrame:
        if statement.startswith("VACUUM"):
            assert properties(town)[RETENTION] == NONE
            raise OSError("No space left on device")
        return really(spark, statement)

    with monkeypatch.context() as patched:
        patched.setattr(SparkSession, "sql", failing)
        with pytest.raises(OSError, match="No space"):
            vacuum_all(town.spark, place(town))
    assert properties(town) == before

    # killed between the VACUUM and what follows: the next one knows what was there
    vacuum._set(town.spark, place(town), {RETENTION: NONE, BEFORE: "interval 9 days"})
    vacuum_all(town.spark, place(town))
    assert properties(town) == before and readable(town)[:2] == [False, False]


def test_a_release_that_is_still_there_afterwards_is_told(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    past = Past.of(town.job(**CHANGES), town.spark)
    assert past == Past(place(town), 3, (2, 0))
    monkeypatch.setattr("anon_spark.runs.history.vacuum_all", lambda *_: None)
    with pytest.raises(AnonSparkError, match=r"2 earlier releases of .* can still be read, the newest is version 2"):
        list(past.remove(town.spark))


def test_releases_that_can_be_read_are_counted_by_halving(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    tried: list[int] = []

    def there(_: object, __: str, version: int) -> bool:
        tried.append(version)
        return version > 37

    monkeypatch.setattr("anon_spark.io.earlier.can_be_read", there)
    versions = list(range(99, -1, -1))
    assert shown(spark, "anywhere", versions) == 62 and len(tried) <= 7
    assert shown(spark, "anywhere", versions[:62]) == 62 and shown(spark, "anywhere", versions[62:]) == 0
    assert shown(spark, "anywhere", []) == 0 and Output(None, None).release is None and people(1).num_rows == 1
