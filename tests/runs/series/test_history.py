"""Unconfirmed people whose run the history of the release no longer knows: refused, with advice that helps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from anon_spark.errors import DataError
from anon_spark.io.tables import history
from anon_spark.runs.run import run
from anon_spark.runs.series import increment
from tests.runs.series.growing import Series, table_of
from tests.runs.series.test_kills import EARLY
from tests.runs.series.village import PUBLISHED, SECOND, THIRD, Begun, villager


def forgotten(series: Series, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run entered people and died; others published, but could not remove them; then Delta forgot the older commits.

    Returns the message of the refusal.
    """
    spark, release = series.town.spark, series.town.folder / "release"
    series.town.write(table_of([*SECOND, *(villager(30 + at, "Aldorf") for at in range(3))]))  # of whom nobody hears again
    EARLY["entered"](series, monkeypatch)
    spark.sql(f"COMMENT ON TABLE delta.`{release}` IS 'For the registry'")  # the commit that may have been that of the dead run
    series.town.write(table_of(SECOND))
    with monkeypatch.context() as patched:
        patched.setattr(increment, "forget", lambda *_: None)
        report = run(series.prepared())
    assert report.status == "published" and report.output_version is not None
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(release)).checkpoint()
    for commit in range(report.output_version):
        (release / "_delta_log" / f"{commit:020}.json").unlink()
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert min(int(commit["version"]) for commit in history(spark, str(release), 99)) == report.output_version
    series.town.write(table_of(THIRD))
    rows = len(series.ledger())
    with pytest.raises(DataError, match="are not confirmed, and the history of the release begins with version") as caught:
        run(series.prepared())
    assert caught.value.exit_code == 3 and len(series.ledger()) == rows and series.town.runs[-1].status == "failed"
    return str(caught.value)


@pytest.mark.long
def test_they_are_deleted_as_advised(begun_series: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series = begun_series.series.copied(tmp_path / "town")
    told = forgotten(series, monkeypatch)
    statement = re.search(r"surely published nothing: (DELETE FROM .* WHERE run_id = '\w+')\.", told)
    assert statement is not None
    series.town.spark.sql(statement[1])
    report = run(series.prepared())
    assert report.series is not None and (report.status, report.series.published) == ("published", PUBLISHED[2])


@pytest.mark.long
def test_they_are_confirmed_as_advised(begun_series: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series = begun_series.series.copied(tmp_path / "town")
    told = forgotten(series, monkeypatch)
    statement = re.search(r"INSERT INTO .* VALUES \(.*current_timestamp\(\)\)", told)
    assert statement is not None
    series.town.spark.sql(statement[0])
    report = run(series.prepared())
    assert report.series is not None and (report.status, report.series.published) == ("published", PUBLISHED[2])
    assert report.series.before == sum(PUBLISHED[:2]) + 6
