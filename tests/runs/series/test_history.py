"""Unconfirmed people whose run the history of the release no longer knows: refused, with advice that helps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from anon_spark.errors import DataError
from anon_spark.io.tables import history
from anon_spark.report.run_report import RunReport
from anon_spark.runs.run import run
from anon_spark.runs.series import increment, settling
from tests.oracle.series_promises import Row
from tests.runs.series.growing import Series, table_of
from tests.runs.series.test_kills import EARLY, LATE
from tests.runs.series.village import PUBLISHED, SECOND, THIRD, Begun, villager

LATER = [*THIRD, *(villager(40 + at, "Aldorf") for at in range(3))]


def forget_all_before(series: Series, version: int) -> None:
    """Delta forgets the commits of the release before a version."""
    spark, release = series.town.spark, series.town.folder / "release"
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(release)).checkpoint()
    for commit in range(version):
        (release / "_delta_log" / f"{commit:020}.json").unlink()
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert min(int(commit["version"]) for commit in history(spark, str(release), 99)) == version


def refused(series: Series, rows: Sequence[Row]) -> str:
    """The message of the next run, which is refused and changes nothing."""
    series.town.write(table_of(rows))
    there, entered = series.release(), len(series.ledger())
    with pytest.raises(DataError, match="are not confirmed, and the history of the release begins with version") as caught:
        run(series.prepared())
    assert caught.value.exit_code == 3 and len(series.ledger()) == entered and series.release() == there
    assert series.town.runs[-1].status == "failed"
    return str(caught.value)


def carried_out(series: Series, told: str, statement: str) -> RunReport:
    """The next run after the one statement that the message gives was executed."""
    found: list[str] = re.findall(r"(?:DELETE|INSERT) .*(?=\.$)", told)
    assert len(found) == 1 and found[0].startswith(statement)
    series.town.spark.sql(found[0])
    return run(series.prepared())


@pytest.mark.long
def test_a_run_that_published_nothing(begun_series: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It entered people and died; another run published under its number, but could not remove them."""
    series = begun_series.series.copied(tmp_path / "town")
    release = series.town.folder / "release"
    series.town.write(table_of([*SECOND, *(villager(30 + at, "Aldorf") for at in range(3))]))  # of whom nobody hears again
    EARLY["entered"](series, monkeypatch)
    # a commit that may have been that of the dead run
    series.town.spark.sql(f"COMMENT ON TABLE delta.`{release}` IS 'For the registry'")
    series.town.write(table_of(SECOND))
    with monkeypatch.context() as patched:
        patched.setattr(increment, "forget", lambda *_: None)
        report = run(series.prepared())
    assert report.status == "published" and report.output_version is not None
    forget_all_before(series, report.output_version)

    told = refused(series, THIRD)
    report = carried_out(series, told, "DELETE")

    assert report.series is not None and (report.status, report.series.published) == ("published", PUBLISHED[2])
    assert report.series.before == sum(PUBLISHED[:2])


@pytest.mark.long
def test_a_run_that_published(begun_series: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It died before it was confirmed; the next run published, but could not confirm it."""
    series = begun_series.series.copied(tmp_path / "town")
    series.town.write(table_of(SECOND))
    LATE["confirm"](series, monkeypatch)
    series.town.write(table_of(THIRD))
    with monkeypatch.context() as patched:
        patched.setattr(settling, "confirm", lambda *_: None)
        report = run(series.prepared())
    assert report.status == "published" and report.output_version is not None
    forget_all_before(series, report.output_version)

    told = refused(series, LATER)
    report = carried_out(series, told, "INSERT")

    assert report.series is not None and (report.status, report.series.published) == ("published", 3)
    assert report.series.before == sum(PUBLISHED)
