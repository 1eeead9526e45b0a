"""Several runs of one series at once: one publishes, the others end with PublicationRefused, and nobody is published twice."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anon_spark.errors import GuaranteeViolated, PublicationRefused
from anon_spark.io import ledger, publication
from anon_spark.io.leftovers import note_publication
from anon_spark.runs import publishing
from anon_spark.runs.run import run
from anon_spark.runs.series import increment, settling
from tests.runs.series.growing import Series, table_of
from tests.runs.series.village import FIRST, PUBLISHED, SECOND, THIRD, VILLAGE, Begun
from tests.town import Town

PATIENCE = 60  # seconds that one thread waits for the other
MEANWHILE = "another run|by others"


def persons_by_run(series: Series) -> dict[str, int]:
    runs = [row["run_id"] for row in series.ledger() if row["kind"] == "person"]
    return {run_id: runs.count(run_id) for run_id in runs}


def statuses(series: Series) -> list[str]:
    return sorted(row.status for row in series.town.runs)


@pytest.mark.long
@pytest.mark.parametrize("at", ["clean", "commit"])
def test_another_run_publishes_in_the_middle_of_a_run(begun_series: Begun, tmp_path: Path, at: str) -> None:
    """A run that entered its people: the winner leaves them alone before its own commit, and removes them then."""
    series = begun_series.series.copied(tmp_path / "town")
    series.town.write(table_of(SECOND))
    seen: list[dict[str, int]] = []

    def other() -> None:
        seen.append(persons_by_run(series))
        run(series.prepared(), step=lambda step: seen.append(persons_by_run(series)) if step == "commit" else None)
        seen.append(persons_by_run(series))

    with pytest.raises(PublicationRefused, match=MEANWHILE):
        run(series.prepared(), step=lambda step: other() if step == at else None)

    waiting = [PUBLISHED[1]] if at == "commit" else []  # people whom the loser entered
    assert [sorted(counts.values()) for counts in seen] == [
        sorted([*waiting, PUBLISHED[0]]), sorted([*waiting, PUBLISHED[0], PUBLISHED[1]]), sorted(PUBLISHED[:2]),
    ]  # fmt: skip
    series.enter(SECOND, lost=at != "commit")
    assert statuses(series) == ["failed", "published", "published"]
    assert run(series.prepared()).status == "waiting"
    if at != "commit":  # the loser entered its people after the winner had published: they do not count, and go with the next one
        assert sorted(persons_by_run(series).values()) == sorted([PUBLISHED[1], *PUBLISHED[:2]])
        assert series.run(THIRD).status == "published"


@pytest.mark.long
def test_a_live_run_is_not_disturbed_by_one_that_publishes_nothing(begun_series: Begun, tmp_path: Path, monkeypatch: Any) -> None:
    """Another run begins, looks at the ledger and is refused by its audit, while this one has entered its people."""
    series = begun_series.series.copied(tmp_path / "town")
    series.town.write(table_of(SECOND))

    def other() -> None:
        with monkeypatch.context() as patched, pytest.raises(GuaranteeViolated):
            patched.setattr(increment, "enter", less(ledger.enter))
            run(series.prepared())

    report = run(series.prepared(), step=lambda step: other() if step == "commit" else None)

    assert report.status == "published" and len(persons_by_run(series)) == 3
    series.enter(SECOND, lost=True)
    assert series.run(THIRD).status == "published"
    assert sorted(persons_by_run(series).values()) == sorted(PUBLISHED)


def less(enter: Callable[..., int]) -> Callable[..., int]:
    """Entering that misses somebody."""
    return lambda ledger, persons, *rest: enter(ledger, persons.limit(persons.count() - 1), *rest)


@pytest.mark.long
def test_a_job_that_was_prepared_before_another_ran(begun_series: Begun, tmp_path: Path) -> None:
    series = begun_series.series.copied(tmp_path / "town")
    nobody_new = series.prepared()
    for rows in (SECOND, THIRD):
        series.town.write(table_of(rows))
        early = series.prepared()
        assert series.run(rows).status == "published"
        with pytest.raises(PublicationRefused, match=MEANWHILE):
            run(early)
    there = series.release()
    assert run(nobody_new).status == "waiting" and series.release() == there
    series.check_ledger(lost=True)


def at_once(series: Series) -> list[Any]:
    """Two runs in two threads: what each of them returned or raised."""
    jobs = [series.prepared(), series.prepared()]

    def one(job: Any) -> Any:
        try:
            return run(job).status
        except Exception as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, jobs))


def one_wins(outcomes: list[Any]) -> bool:
    refused = [outcome for outcome in outcomes if isinstance(outcome, PublicationRefused)]
    return "published" in outcomes and len(refused) == 1 and refused[0].exit_code == 3


def meeting(function: Callable[..., Any], only: Callable[..., bool] = lambda *_: True) -> Callable[..., Any]:
    """A function that both threads enter at the same moment."""
    barrier = Barrier(2)

    def together(*arguments: Any, **named: Any) -> Any:
        if only(*arguments):
            barrier.wait(PATIENCE)
        return function(*arguments, **named)

    return together


def write_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither run sees the other's note before its own is written."""
    monkeypatch.setattr(publishing, "note_publication", meeting(note_publication))
    monkeypatch.setattr(publication, "_write", meeting(publication._write))


@pytest.mark.long
def test_two_first_runs_at_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both create the ledger at the same moment, and one ledger is used by both; both write the first increment."""
    series = Series(Town.founded(spark, tmp_path / "town", table_of(FIRST)), VILLAGE)
    monkeypatch.setattr(settling, "create_ledger", meeting(ledger.create_ledger))
    write_at_once(monkeypatch)
    assert one_wins(at_once(series))
    monkeypatch.undo()
    assert len([row for row in series.ledger() if row["kind"] == "series"]) == 1
    assert statuses(series) == ["failed", "published"]
    assert len(persons_by_run(series)) in (1, 2)  # the winner may not have known of the loser
    series.enter(FIRST, lost=True)
    assert series.run(SECOND).status == "published"


@pytest.mark.long
def test_two_later_runs_at_once(begun_series: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series = begun_series.series.copied(tmp_path / "town")
    series.town.write(table_of(SECOND))
    write_at_once(monkeypatch)
    assert one_wins(at_once(series))
    monkeypatch.undo()
    series.enter(SECOND, lost=True)
    assert series.run(THIRD).status == "published"
