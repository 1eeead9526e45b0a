"""Series that are refused: the exit code, one message that says what to do, and nothing written or lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anon_spark.cli import main
from anon_spark.runs.preparation import RUN_KEY
from tests.often import often
from tests.oracle.series_promises import Row
from tests.runs.series.growing import CITY, PATHS, K, Kind, Series, table_of
from tests.runs.series.village import CANARY, FIRST, PUBLISHED, SECOND, THIRD, VILLAGE, Begun, changed, villager
from tests.town import REMOVED, Town, messages

ROLES = VILLAGE.changes["columns"]
WITHOUT_SPARK: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no ledger": ({"output__ledger": REMOVED}, ["output.ledger: is required by output.mode: append"]),
    "no person": (
        {"columns": {**ROLES, "person": None}}, ["columns.person: is required by output.mode: append, which publishes"],
    ),
    "another format": ({"input__format": "parquet"}, ["input.format: should be delta with output.mode: append"]),
    "all of them": (
        {"columns": {**ROLES, "person": None}, "input__format": "csv", "output__ledger": REMOVED},
        ["output.ledger: is required", "columns.person: is required", "input.format: should be delta"],
    ),
    "a ledger without a series": (
        {"output__mode": "replace", "output__increment": REMOVED}, ["output.ledger: goes with output.mode: append"],
    ),
    "an increment without a series": (
        {"output__mode": REMOVED, "output__ledger": REMOVED}, ["output.increment: goes with output.mode: append"],
    ),
    "a ledger inside the release": ({"output__ledger": "./release/ledger"}, ["output.ledger", "choose a place apart from it"]),
    "the ledger is the input": ({"output__ledger": "./people"}, ["output.ledger", "choose a place apart from it"]),
    "the ledger is the run log": ({"output__ledger": "./runs"}, ["output.ledger", "choose a place apart from it"]),
    "another mode": ({"output__mode": "add"}, ["output.mode"]),
}  # fmt: skip


@pytest.mark.parametrize("fault", WITHOUT_SPARK)
def test_a_job_file_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str) -> None:
    changes, words = WITHOUT_SPARK[fault]
    town = Town(None, tmp_path)  # type: ignore[arg-type]
    (tmp_path / "hierarchies").mkdir()
    (tmp_path / "hierarchies" / "city.csv").write_text("Aldorf;North;*\n", encoding="utf-8")
    file = town.job_file(**changed(**changes))
    started = perf_counter()
    assert main(["run", file]) == 2
    assert perf_counter() - started < 1  # and no JVM is there that could have been asked
    told = capsys.readouterr().err
    assert all(word in told for word in words) and "Traceback" not in told, told
    assert {path.name for path in tmp_path.iterdir()} == {"hierarchies", "job.yaml"}


# --- what is there does not go with the job

REPLACING = {"output__mode": REMOVED, "output__ledger": REMOVED, "output__increment": REMOVED}
JOBS: dict[str, tuple[dict[str, Any], str]] = {  # changes of the job, and the message; nothing is changed by the run
    "another k": ({"privacy__k": 4}, "differs from the one that began the series at {release} in its guarantee"),
    "another family": ({"family": "mst", "lattice": REMOVED, "privacy": {"k": K}}, "in its family. All"),
    "another column": ({"columns": {**ROLES, "keep": []}}, "in its columns"),
    "another quasi-identifier": (
        {"columns": {**ROLES, "quasi_identifiers": {"city": CITY, "disease": {"mask": {}}}, "sensitive": []}, "lattice": {}},
        "in its guarantee",
    ),
    "no increment column": ({"output__increment": REMOVED}, "in its columns"),
    "a replacement": (REPLACING, "is a series, to which"),
    "no ledger there": (
        {"output__ledger": "./ledger2"}, "there is no ledger at {folder}/ledger2, but {release} has 1 increments",
    ),
    "another table": ({"output__table": "./release2"}, "is of a series whose release is not at {folder}/release2"),
    "the ledger is no ledger": (
        {"output__table": "./release2", "output__ledger": "./runs", "output__runs": "./runs2"}, "is no ledger of anon-spark",
    ),
    "the increment is a column": ({"output__increment": "Disease"}, "output.increment: Disease is a published column already"),
    "a test key": ({}, "ANON_SPARK_RUN_KEY: the series at {release} was begun without a test key, and this run is with one"),
    "a second draw": ({}, "--redraw: in a series everybody is drawn once"),
}  # fmt: skip


@pytest.mark.parametrize("fault", often(JOBS, {"another k", "no ledger there"}))
def test_another_job_is_refused(
    begun_series: Begun, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    changes, words = JOBS[fault]
    town = begun_series.series.town
    file = town.job_file(**changed(**changes))
    before = town.listing()
    if fault == "a test key":
        monkeypatch.setenv(RUN_KEY, "planted-run-key")
    assert main(["run", file, "--quiet", *(["--redraw"] if fault == "a second draw" else [])]) == 2
    told = capsys.readouterr().err
    assert words.format(release=town.folder / "release", folder=town.folder) in told and "Traceback" not in told, told
    assert len(messages(told)) == 1 and CANARY not in told
    assert {name for name, time in town.listing().items() if before.get(name) != time} <= {"work"}  # its right was tried


def sql(series: Series, statement: str) -> None:
    places = {name: f"delta.`{series.town.folder}/{name}`" for name in ("ledger", "release")}
    (somebody,) = series.town.spark.sql(f"SELECT hex(max(person)) FROM {places['ledger']} WHERE increment = 1").collect()
    series.town.spark.sql(statement.format(**places, somebody=f"unhex('{somebody[0]}')"))


def stranger(series: Series) -> None:
    """A row that looks like those of the ledger, for a person whom nobody knows."""
    person = "kind, unhex(sha2('x', 256)), run_id, increment, input_version, release_version, salt, person_type, written"
    sql(series, f"INSERT INTO {{ledger}} SELECT {person} FROM {{ledger}} WHERE kind = 'person' LIMIT 1")


def edited(statement: str) -> Callable[[Series], None]:
    return lambda series: sql(series, statement)


def lost_ledger(series: Series) -> None:
    shutil.rmtree(series.town.folder / "ledger")


def other_ledger(series: Series) -> None:
    """The ledger of another series of the same people."""
    folder = series.town.folder
    shutil.move(folder / "ledger", folder / "ledger of this one")
    series.town.run(**changed(output__table="./release2"))


def with_nobody(series: Series) -> None:
    rows = [{**row, "person_id": None} if row["trace"] in (9, 10) else row for row in SECOND]
    series.town.write(table_of(rows, pa.string()))


def numbered(rows: Sequence[Row]) -> list[Row]:
    """The same people by their numbers."""
    return [{**row, "person_id": int(row["person_id"].removeprefix(f"{CANARY}Person"))} for row in rows]


def with_numbers(series: Series) -> None:
    series.town.write(table_of(numbered(SECOND)))


def with_fractions(series: Series) -> None:
    series.town.write(table_of([{**row, "person_id": float(row["person_id"])} for row in numbered(SECOND)], pa.float64()))


def unseen(series: Series) -> None:
    series.town.write(table_of([*SECOND, villager(20, f"{CANARY}Town")]))


EDITED = "is not the ledger with which increment 1 was published: rows are missing, added or changed"
FAULTS: dict[str, tuple[Callable[[Series], None], int, str]] = {
    "the ledger is lost": (lost_ledger, 2, "there is no ledger at {folder}/ledger, but {folder}/release has 1 increments"),
    "the ledger of another series": (other_ledger, 2, "belongs to another series than {folder}/release, or its salt was changed"),
    "a person was removed": (
        edited("DELETE FROM {ledger} WHERE person = {somebody}"), 3, EDITED,
    ),
    "all people were removed": (edited("DELETE FROM {ledger} WHERE kind <> 'series'"), 3, EDITED),
    "a person was added": (stranger, 3, EDITED),
    "a person has another increment": (
        edited("UPDATE {ledger} SET increment = 0 WHERE person = {somebody}"), 3, EDITED,
    ),
    "a person has another hash": (
        edited("UPDATE {ledger} SET person = unhex('00') WHERE person = {somebody}"),
        3, EDITED,
    ),
    "people of another run": (edited("UPDATE {ledger} SET run_id = 'x' WHERE kind = 'person'"), 3, EDITED),
    "another salt": (
        edited("UPDATE {ledger} SET salt = 'a' WHERE kind = 'series'"), 2, "or its salt was changed",
    ),
    "no salt": (edited("DELETE FROM {ledger} WHERE kind = 'series'"), 2, "should have one row of kind series"),
    "two salts": (
        edited("INSERT INTO {ledger} SELECT * FROM {ledger} WHERE kind = 'series'"), 2,
        "should have one row of kind series",
    ),
    "another type of person in the ledger": (
        edited("UPDATE {ledger} SET person_type = 'date' WHERE kind = 'series'"), 2, "had the type date",
    ),
    "somebody wrote to the release": (
        edited("INSERT INTO {release} SELECT * FROM {release} LIMIT 1"), 2, "was changed by others since",
    ),
    "somebody deleted from the release": (
        edited("DELETE FROM {release} WHERE city = 'Bexley'"), 2, "was changed by others since",
    ),
    "rows of nobody": (with_nobody, 3, "columns.person person_id: 2 rows have no person"),
    "people are numbers": (with_numbers, 2, "has the type whole number now, and had the type text"),
    "people are fractions": (with_fractions, 2, "columns.person person_id is double: with output.mode: append persons are"),
    "an unseen value": (unseen, 3, "1 value in 1 row."),
}  # fmt: skip
SOMETIMES = {"all people were removed"}


@pytest.mark.parametrize("fault", often(FAULTS, SOMETIMES))
def test_a_fault_is_refused_and_nothing_is_lost(
    begun_series: Begun, tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    series = begun_series.series.copied(tmp_path / "town")
    plant, code, words = FAULTS[fault]
    series.town.write(table_of(SECOND))
    plant(series)
    folder = series.town.folder
    tables = {name: newest(series, name) for name in ("release", "ledger")}
    rows = len(series.town.runs)

    assert main(["run", series.town.job_file(**series.kind.changes), "--quiet"]) == code

    told = capsys.readouterr().err
    assert words.format(folder=folder) in told and "Traceback" not in told and CANARY not in told, told
    assert {name: newest(series, name) for name in tables} == tables
    assert len(series.town.runs) == rows + (code == 3)
    if code == 3:
        assert series.town.runs[-1].status == "failed" and list((folder / "work").iterdir()) == []
    repaired(series, fault)


def newest(series: Series, name: str) -> int | None:
    """How many commits a table has."""
    return len(list((series.town.folder / name / "_delta_log").glob("*.json")))


def repaired(series: Series, fault: str) -> None:
    """What the messages advise: after it the next run publishes everybody who waited."""
    if fault == "an unseen value":
        with (series.town.folder / "hierarchies" / "city.csv").open("a", encoding="utf-8") as file:
            file.write(f"{CANARY}Town;North;*\n")
        paths = {"city": lambda value: (value, "North", "*") if value == f"{CANARY}Town" else PATHS["city"](value)}
        series.kind = Kind(series.kind.changes, lambda _: type(VILLAGE.promise({}))(K, {"city": 0}, paths))  # type: ignore[call-arg]
        rows = [*SECOND, villager(20, f"{CANARY}Town")]
    elif fault in ("a person was removed", "a person has another increment", "another salt"):
        sql(series, "RESTORE {ledger} TO VERSION AS OF 2")
        rows = SECOND
    elif fault in ("rows of nobody", "people are numbers"):
        rows = SECOND
    else:
        return
    report = series.run(rows)
    assert report.status == "published" and report.series is not None and report.series.published == PUBLISHED[1]


@pytest.mark.long
def test_a_release_that_was_replaced_is_no_series(
    begun_series: Begun, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    town = begun_series.series.town.copied(tmp_path / "town")
    apart = {"output__table": "./release2", "output__runs": "./runs2"}
    assert main(["run", town.job_file(**changed(**apart, **REPLACING)), "--quiet"]) == 0
    before = town.listing()
    capsys.readouterr()
    assert main(["run", town.job_file(**changed(**apart, output__ledger="./ledger2")), "--quiet"]) == 2
    assert "was published with output.mode: replace, so its people are in no ledger" in capsys.readouterr().err
    assert {name for name, time in town.listing().items() if before.get(name) != time} <= {"job.yaml", "work", "."}


# --- what is no fault


@pytest.mark.long
def test_wider_numbers_are_the_same_people(spark: SparkSession, tmp_path: Path) -> None:
    series = Series(Town.founded(spark, tmp_path / "town", table_of(numbered(FIRST), pa.int32())), VILLAGE)
    first = numbered(FIRST)
    report = series.town.run(**VILLAGE.changes)
    assert report.status == "published"
    series.book(first, report)
    series.town.write(table_of(numbered(SECOND), pa.int64()))
    report = series.town.run(**VILLAGE.changes)
    series.book(numbered(SECOND), report)
    assert report.series is not None and report.series.published == PUBLISHED[1]
    series.town.write(table_of(numbered(THIRD), pa.decimal128(12, 0)))
    report = series.town.run(**VILLAGE.changes)
    series.book(numbered(THIRD), report)
    assert report.series is not None and report.series.published == PUBLISHED[2]


@pytest.mark.long
def test_a_confirmation_that_is_removed_is_written_again(begun_series: Begun, tmp_path: Path) -> None:
    series = begun_series.series.copied(tmp_path / "town")
    sql(series, "DELETE FROM {ledger} WHERE kind = 'confirmed'")
    assert series.run(SECOND).status == "published"


@pytest.mark.long
def test_inputs_of_earlier_increments_were_vacuumed(begun_series: Begun, tmp_path: Path) -> None:
    """How long people have waited is then not known; nothing else is lost."""
    series = begun_series.series.copied(tmp_path / "town")
    people = series.town.folder / "people"
    first = set(people.glob("*.parquet"))
    report = series.run(SECOND)
    assert report.series is not None and [one.increment for one in report.series.waited] == [1]
    for file in first:
        file.unlink()
    report = series.run([*THIRD, villager(14, "Bexley")])
    assert report.status == "published" and report.series is not None and report.series.waiting
    assert [one.increment for one in report.series.waited] == [2]


@pytest.mark.long
def test_an_input_that_lost_rows(begun_series: Begun, tmp_path: Path) -> None:
    """Published people stay published; of those who waited, who is gone is nobody's business any more."""
    series = begun_series.series.copied(tmp_path / "town")
    fewer = [row for row in THIRD if row["trace"] not in (0, 1, 5, 8)]
    report = series.run(fewer)
    assert report.status == "published" and report.series is not None
    assert (report.series.before, report.series.published, report.series.waiting) == (PUBLISHED[0], 3, 2)
    assert series.run(THIRD).status == "published"  # 8 is back, and Carden has three again


def test_too_few_new_people_wait(begun_series: Begun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    series = begun_series.series.copied(tmp_path / "town")
    rows = len(series.town.runs)
    before = newest(series, "release"), newest(series, "ledger")
    assert main(["run", series.town.job_file(**series.kind.changes), "--quiet"]) == 0
    assert "2 people are new, fewer than 3: they wait" in capsys.readouterr().out
    assert (newest(series, "release"), newest(series, "ledger")) == before
    (row,) = series.town.runs[rows:]
    assert row.status == "waiting" and '"waiting": 2' in row.metrics and row.output_version is None


@pytest.mark.long
def test_people_without_a_class_wait_and_somebody_is_told(
    begun_series: Begun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Enough people are new, and no class of them is large enough."""
    series = begun_series.series.copied(tmp_path / "town")
    series.town.write(table_of([*FIRST, villager(9, "Dunmore")]))
    assert main(["run", series.town.job_file(**series.kind.changes), "--quiet"]) == 0
    told = capsys.readouterr().out
    assert "note" in told and "3 people wait, because no release of them alone keeps the promise" in told
    row = series.town.runs[-1]
    assert row.status == "waiting" and '"waiting": 3' in row.metrics and '"level": "note"' in row.findings
