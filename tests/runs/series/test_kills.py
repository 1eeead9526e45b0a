"""Runs of a series that are killed: the next run comes to the same end as without the kill, and nothing else is left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anon_spark.io.leftovers import FOLDER
from anon_spark.runs import run as runs
from anon_spark.runs.run import run
from anon_spark.runs.series import increment, settling
from tests.runs.series.growing import Series, table_of
from tests.runs.series.village import FIRST, PUBLISHED, SECOND, THIRD, VILLAGE, Begun
from tests.runs.test_crashes import Killed, deadly, killed_at, killed_in_the_write
from tests.town import Town

pytestmark = pytest.mark.long
Kill = Callable[[Series, pytest.MonkeyPatch], None]


def at_step(name: str) -> Kill:
    return lambda series, patched: killed_at(name, series.town, patched, **series.kind.changes)


def in_the_write(series: Series, patched: pytest.MonkeyPatch) -> None:
    killed_in_the_write(series.town, patched, **series.kind.changes)


def after(module: Any, function: str) -> Kill:
    """Killed when a function of this module has done its work."""

    def kill(series: Series, patched: pytest.MonkeyPatch) -> None:
        work = getattr(module, function)

        def last(*arguments: Any, **named: Any) -> None:
            work(*arguments, **named)
            raise Killed

        prepared = series.prepared()
        with deadly(patched), patched.context() as inner, pytest.raises(Killed):
            inner.setattr(module, function, last)
            run(prepared)

    return kill


def at_the_end(name: str) -> Kill:
    """Killed at a step that follows the publication."""

    def kill(series: Series, patched: pytest.MonkeyPatch) -> None:
        def step(told: str) -> None:
            if told == name:
                raise Killed

        prepared, finish = series.prepared(), runs._finish
        with deadly(patched), patched.context() as inner, pytest.raises(Killed):
            inner.setattr(runs, "_finish", finish)
            run(prepared, step=step)

    return kill


# in the order of a run, with whether the increment stands after the kill
EARLY: dict[str, Kill] = {
    **{name: at_step(name) for name in ("identity", "clean", "fit", "release", "audit", "risk", "publish", "ledger")},
    "entered": after(increment, "enter"),
    "commit": at_step("commit"),
    "write": in_the_write,
}
LATE: dict[str, Kill] = {
    **{name: at_step(name) for name in ("compare", "committed", "confirm")},
    "confirmed": after(increment, "confirm"),
    "forgotten": after(increment, "forget"),
    **{name: at_the_end(name) for name in ("report", "log")},
}
BEGINNING: dict[str, Kill] = {"created": after(settling, "create_ledger"), **EARLY, **LATE}  # of the first increment
DECISIVE = {"commit", "confirm"}  # the ledger is written and the release is not; both are, and nothing is confirmed


def in_order(series: Series) -> None:
    """Nothing is left of a killed run, and the log has a row for every increment."""
    town = series.town
    assert list((town.folder / "work").iterdir()) == [] and not (town.folder / "release" / FOLDER).exists()
    named = {Path(file).name for file in town.release.inputFiles()}
    assert {path.name for path in (town.folder / "release").glob("part-*")} == named
    published = [row.output_version for row in town.runs if row.status == "published"]
    assert len(set(published)) == len(published) == max(series.books.published.values())


@pytest.mark.parametrize("kill", EARLY)
def test_a_run_killed_before_its_commit_publishes_nothing(
    begun_series: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: str
) -> None:
    series = begun_series.series.copied(tmp_path / "town")
    series.town.write(table_of(SECOND))
    before = series.release()
    EARLY[kill](series, monkeypatch)
    assert series.release() == before

    report = series.run(SECOND)

    assert report.status == "published" and report.series is not None and report.series.published == PUBLISHED[1]
    in_order(series)


@pytest.mark.parametrize("kill", LATE)
def test_a_run_killed_after_its_commit_has_published(
    begun_series: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: str
) -> None:
    """The next run confirms it and finds nobody new; the one after that goes on."""
    series = begun_series.series.copied(tmp_path / "town")
    series.town.write(table_of(SECOND))
    LATE[kill](series, monkeypatch)
    there = series.release()

    report = run(series.prepared())

    assert report.status == "waiting" and report.series is not None and report.series.before == sum(PUBLISHED[:2])
    assert series.release() == there
    series.enter(SECOND)
    in_order(series)
    if kill in DECISIVE:
        assert series.run(THIRD).status == "published"
        in_order(series)


@pytest.mark.parametrize("kill", BEGINNING)
def test_the_first_run_is_killed(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: str) -> None:
    series = Series(Town.founded(spark, tmp_path / "town", table_of(FIRST)), VILLAGE)
    BEGINNING[kill](series, monkeypatch)
    if kill in LATE:
        assert run(series.prepared()).status == "waiting"
        series.enter(FIRST)
    else:
        assert series.run(FIRST).status == "published"
    in_order(series)
    assert series.run(SECOND).status == "published"
    in_order(series)


def test_one_kill_after_another(begun_series: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """People of two dead runs are in the ledger, then those of a third that published, and all are settled together."""
    series = begun_series.series.copied(tmp_path / "town")
    series.town.write(table_of(SECOND))
    for name in ("entered", "write", "commit"):
        EARLY[name](series, monkeypatch)
    LATE["committed"](series, monkeypatch)
    assert len({row["run_id"] for row in series.ledger() if row["kind"] == "person"}) == 5
    series.town.write(table_of(THIRD))
    EARLY["audit"](series, monkeypatch)

    report = series.town.run(**series.kind.changes)

    assert report.status == "published" and report.series is not None
    assert (report.series.increment, report.series.published, report.series.before) == (3, PUBLISHED[2], sum(PUBLISHED[:2]))
    ledger = [row for row in series.ledger() if row["kind"] == "person"]
    assert len(ledger) == len({bytes(row["person"]) for row in ledger}) == sum(PUBLISHED)
    in_order_of = {row["increment"] for row in ledger}
    assert in_order_of == {1, 2, 3}
