"""Publication in one commit on top of what a run saw: others at the same output, tables that differ, killed writers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing.release.content import content_of
from anon_spark.errors import ConfigurationError, PublicationRefused
from anon_spark.io import publication
from anon_spark.io.causes import is_conflict, known_cause
from anon_spark.io.leftovers import FOLDER, folder_of, note_publication, notes_in, sweep_uncommitted
from anon_spark.io.publication import (
    Output,
    Published,
    begin,
    metadata_of,
    output_before,
    output_for_run,
    output_of,
    publish,
    unchanged,
    version_of,
    withdraw,
)
from anon_spark.io.tables import history, location_of
from anon_spark.primitives.owners import Owner

METADATA = {"run_id": "run-1", "config_hash": "c0ffee", "input_version": 3, "levels": {"age": 2}}
NOTHING = Output(None, None)


def numbers(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, 1, 1)


def said(run: str) -> dict[str, Any]:
    return METADATA | {"run_id": run}


@pytest.fixture(scope="module")
def dead() -> Owner:
    """A process of this user that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return replace(Owner.here(), pid=ended.pid, started="1")


def test_publication_by_path(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "release")
    assert output_for_run(spark, table) == NOTHING

    assert publish(numbers(spark, 3), table, METADATA, NOTHING) == 0
    texts = numbers(spark, 5).selectExpr("cast(id as string) as id")
    assert publish(texts, table, said("run-2"), output_for_run(spark, table)) == 1

    assert output_for_run(spark, table) == Output(1, Published(1, said("run-2"), 1, ()))
    assert output_before(spark, table, 1) == Output(0, Published(0, METADATA, 0, ()))
    assert output_before(spark, table, 0) == NOTHING
    assert (version_of(spark, table, "run-1"), version_of(spark, table, "run-9")) == (0, None)
    assert location_of(spark, table) == table
    properties = {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES delta.`{table}`").collect()}
    assert properties["delta.logRetentionDuration"] == "interval 3650 days"  # Delta forgets commits after 30 days otherwise
    first = spark.read.format("delta").option("versionAsOf", 0).load(table)  # earlier releases can be read as they were
    assert (first.count(), first.schema["id"].dataType.simpleString()) == (3, "bigint")
    assert json.loads(history(spark, table, 2)[1]["userMetadata"]) == {"anon_spark": METADATA, "anon_spark_number": 0}

    # a write that fails in the middle leaves what is there
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        publish(numbers(spark, 5).selectExpr("id div (id - 3) AS id"), table, said("run-3"), output_for_run(spark, table))
    assert output_of(spark, table) == Output(1, Published(1, said("run-2"), 1, ()))


@pytest.mark.long
def test_why_a_table_refused_a_release_is_known(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "release")
    for option, cause in (
        ("SET TBLPROPERTIES ('delta.appendOnly' = 'true')", "output.table has the property delta.appendOnly"),
        ("ADD CONSTRAINT few CHECK (id < 2)", "output.table has a constraint (CHECK or NOT NULL)"),
    ):
        numbers(spark, 1).write.format("delta").save(table)
        spark.sql(f"ALTER TABLE delta.`{table}` {option}")
        with pytest.raises(Exception) as caught:
            numbers(spark, 3).write.format("delta").mode("overwrite").save(table)
        assert str(known_cause(caught.value)).startswith(cause)
        shutil.rmtree(table)


def test_maintenance_is_no_change(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = json.dumps({"anon_spark": METADATA})
    commits = [("SET TBLPROPERTIES", None), ("VACUUM END", None), ("VACUUM START", None), ("OPTIMIZE", None), ("WRITE", ours)]

    def known(*_: object) -> list[dict[str, Any]]:
        numbered = enumerate(reversed(commits))
        return [{"version": at, "operation": what, "userMetadata": text} for at, (what, text) in numbered][::-1]

    monkeypatch.setattr(publication, "history", known)
    assert output_for_run(spark, "town.release") == Output(4, Published(0, METADATA, 4, ()))

    commits.insert(2, ("DELETE", "by hand"))  # somebody changed what was published: a run does not replace that
    with pytest.raises(ConfigurationError, match=r"was changed by others since it was published \(1 commits\)"):
        output_for_run(spark, "town.release")
    assert output_of(spark, "town.release") == Output(5, Published(0, METADATA, 5, ("DELETE",)))
    commits.insert(0, ("WRITE", ours))  # published again
    assert output_for_run(spark, "town.release") == Output(6, Published(6, METADATA, 6, ()))


@pytest.mark.long
def test_publication_by_catalog_name_begins_with_an_empty_commit(spark: SparkSession) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS town_publication")
    table = "town_publication.release"
    assert output_for_run(spark, table) == NOTHING

    begun = begin(numbers(spark, 2), table, "run-1", NOTHING)
    assert begun == Output(0, None) == output_for_run(spark, table)  # a run that is killed now can run again
    assert begin(numbers(spark, 2), table, "run-2", begun) == begun
    assert publish(numbers(spark, 2), table, METADATA, begun) == 1

    assert output_for_run(spark, table) == Output(1, Published(1, METADATA, 1, ()))
    assert spark.read.table(table).count() == 2
    place = location_of(spark, table)
    assert place is not None and place.endswith("/town_publication.db/release")
    assert location_of(spark, "town_publication.nothing") is None


def test_places_of_others_are_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS town_publication")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "letter.txt").write_text("dear")
    numbers(spark, 1).write.format("delta").save(f"{tmp_path}/table")
    spark.sql(f"CREATE TABLE IF NOT EXISTS town_publication.table USING delta LOCATION '{tmp_path}/table'")
    spark.sql("CREATE VIEW IF NOT EXISTS town_publication.view AS SELECT 1 AS one")
    refused = {
        f"{tmp_path}/table": "holds a table that is no release of anon-spark. It is left alone",
        "town_publication.table": "holds a table that is no release of anon-spark. It is left alone",
        f"{tmp_path}/folder": "holds something that is no Delta table. It is left alone",
        f"{tmp_path}/folder/letter.txt": "holds something that is no Delta table. It is left alone",
        f"{tmp_path}/folder/letter.txt/release": "lies below a file",
        "town_publication.view": "holds something that is no Delta table. It is left alone",
        "noschema.release": "the catalog has no schema `noschema`. Create it first",
        "nocatalog.noschema.release": "the catalog does not know a place nocatalog.noschema.release",
    }
    for place, message in refused.items():
        with pytest.raises(ConfigurationError) as caught:
            output_for_run(spark, place)
        assert str(caught.value).startswith("output.table: ") and message in str(caught.value)
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun" / "_delta_log").mkdir(parents=True)  # a table that was killed before its first commit
    assert output_for_run(spark, f"{tmp_path}/empty") == output_for_run(spark, f"{tmp_path}/begun") == NOTHING


# --- others at the same output


def test_of_several_runs_on_one_state_one_is_published(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "release")

    def attempt(number: int, seen: Output) -> str:
        try:
            publish(numbers(spark, 1_000 * (number + 1)), table, said(f"run-{number}"), seen)  # its check was long ago
            return "published"
        except PublicationRefused:
            return "refused"
        except Exception as error:
            return "conflict" if is_conflict(error) else f"unexpected {type(error).__name__}"

    for seen in (NOTHING, None):  # the first release, and one that replaces it
        on = output_for_run(spark, table) if seen is None else seen
        with ThreadPoolExecutor(3) as pool:
            outcomes = list(pool.map(attempt, range(3), [on] * 3))
        outcomes.append(attempt(3, on))  # and one that comes when it is over
        assert outcomes.count("published") == 1
        assert set(outcomes) <= {"published", "refused", "conflict"} and outcomes[3] == "refused"
    assert len(history(spark, table, 9)) == 2  # no second draw is there, not even by time travel


@pytest.mark.long
def test_a_run_that_comes_between_check_and_commit_loses(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = str(tmp_path / "release")
    publish(numbers(spark, 3), table, METADATA, NOTHING)
    write = publication._write

    def between(act: Callable[[], object]) -> None:
        """Something happens right before the write of a run that has checked the output."""

        def acted(frame: DataFrame, place: str, metadata: Any, on: Output) -> None:
            monkeypatch.setattr(publication, "_write", write)
            act()
            write(frame, place, metadata, on)

        monkeypatch.setattr(publication, "_write", acted)

    seen = output_for_run(spark, table)
    between(lambda: publish(numbers(spark, 4), table, said("run-2"), seen))
    with pytest.raises(PublicationRefused, match="another run published to"):
        publish(numbers(spark, 5), table, said("run-3"), seen)
    assert [row["version"] for row in history(spark, table, 9)] == [1, 0]

    # also when maintenance came between their looks at the output: what counts is the release that they saw
    early = output_for_run(spark, table)
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('kept.by' = 'office')")
    late = output_for_run(spark, table)
    between(lambda: publish(numbers(spark, 6), table, said("run-5"), early))
    with pytest.raises(PublicationRefused, match="another run published to"):
        publish(numbers(spark, 5), table, said("run-6"), late)
    assert [metadata_of(row) is not None for row in history(spark, table, 9)] == [True, False, True, True]

    seen = output_for_run(spark, table)  # somebody else's rows are put back, and are theirs
    between(lambda: numbers(spark, 7).write.format("delta").mode("overwrite").save(table))
    with pytest.raises(PublicationRefused, match="Their version was put back"):
        publish(numbers(spark, 5), table, said("run-4"), seen)
    assert spark.read.format("delta").load(table).count() == 7
    with pytest.raises(ConfigurationError, match="was changed by others"):
        output_for_run(spark, table)


def test_maintenance_right_after_the_commit_is_no_failure(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, write = str(tmp_path / "release"), publication._write

    def maintained(*given: Any) -> None:
        write(*given)
        spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('kept.by' = 'office')")

    monkeypatch.setattr(publication, "_write", maintained)
    assert publish(numbers(spark, 3), table, METADATA, NOTHING) == 0
    assert output_for_run(spark, table) == Output(1, Published(0, METADATA, 1, ()))


def test_an_output_that_changed_meanwhile_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "release")
    seen = output_for_run(spark, table)
    numbers(spark, 2).write.format("delta").save(table)  # somebody else's table, made while the run was at work
    with pytest.raises(PublicationRefused, match=r"holds a table that is no release of anon-spark.* while this run was at work"):
        unchanged(spark, table, seen)
    assert spark.read.format("delta").load(table).count() == 2
    # and one that is published again
    place = str(tmp_path / "other")
    publish(numbers(spark, 3), place, METADATA, NOTHING)
    with pytest.raises(PublicationRefused, match="was published or changed by others while this run was at work"):
        unchanged(spark, place, NOTHING)
    # and a release in the place of the one that was seen
    first = output_for_run(spark, place)
    publish(numbers(spark, 4), place, said("run-2"), first)
    with pytest.raises(PublicationRefused, match="was published or changed by others while this run was at work"):
        unchanged(spark, place, first)


@pytest.mark.long
def test_withdrawing(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "release")
    publish(numbers(spark, 3), table, METADATA, NOTHING)
    withdraw(spark, table, 0, NOTHING)
    assert spark.read.format("delta").load(table).count() == 0
    assert output_for_run(spark, table) == Output(1, None)  # nothing is published, and the next run may

    publish(numbers(spark, 4), table, said("run-2"), output_for_run(spark, table))
    before = output_for_run(spark, table)
    publish(numbers(spark, 5), table, said("run-3"), before)
    withdraw(spark, table, 3, before)
    assert spark.read.format("delta").load(table).count() == 4
    assert output_for_run(spark, table) == Output(4, Published(2, said("run-2"), 4, ()))  # as if run-3 had not been
    assert publish(numbers(spark, 6), table, said("run-4"), output_for_run(spark, table)) == 5


# --- what a killed publication leaves


def test_files_of_a_killed_publication_go_and_others_stay(spark: SparkSession, tmp_path: Path, dead: Owner) -> None:
    table = str(tmp_path / "release")
    place = tmp_path / "release"

    def files() -> set[str]:
        return {path.name for path in place.iterdir() if path.name.startswith("part-")}

    note = note_publication(table, "run-1", None, "content")  # the first publication of all
    assert note is not None
    with pytest.raises(ConfigurationError, match=r"another run \(process \d+ on .*\) is publishing to"):
        output_for_run(spark, table)
    replace(note, owner=dead).write()
    numbers(spark, 3).write.mode("append").parquet(f"{tmp_path}/files")
    (orphan,) = (path for path in (tmp_path / "files").iterdir() if path.name.startswith("part-"))
    orphan.rename(place / orphan.name)  # written, never committed
    assert output_for_run(spark, table) == NOTHING  # it can run again
    (place / "letter.txt").write_text("dear")
    with pytest.raises(ConfigurationError, match="holds something that is no Delta table"):
        output_for_run(spark, table)
    (place / "letter.txt").unlink()
    (found,) = notes_in(folder_of(table))
    assert sweep_uncommitted(found) == 1
    found.remove()
    assert list(place.iterdir()) == []

    # a later one: files that were there and files of others' commits stay
    publish(numbers(spark, 3), table, METADATA, NOTHING)
    note = note_publication(table, "run-2", 0, "content")
    assert note is not None
    replace(note, owner=dead).write()
    (place / orphan.name).write_bytes(b"of run-2")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
    committed = files() - {orphan.name}
    live = note_publication(table, "run-3", 1, "content")
    (found,) = (one for one in notes_in(folder_of(table)) if one.run_id == "run-2")
    assert sweep_uncommitted(found) == 0  # while another run is at work nothing goes
    assert live is not None
    live.remove()
    assert sweep_uncommitted(found) == 1 and files() == committed
    found.remove()
    assert not (place / FOLDER).exists()


def test_content_is_a_matter_of_rows(spark: SparkSession) -> None:
    def content(rows: str, *columns: str, partitions: int = 1) -> str:
        frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(a, b)").repartition(partitions)
        return content_of(frame, columns or ("a", "b"))

    same = content("(1, array('x', null)), (2, null), (2, null)")
    assert content("(2, null), (1, array('x', null)), (2, null)", partitions=7) == same
    others = [
        content("(1, array('x', null)), (2, null)"),
        content("(1, array('x')), (2, null), (2, null)"),
        content("(1, array('x', null)), (2, array()), (2, null)"),
        content("(1, array('x', null)), (1, null), (2, null)"),
        content("(1L, array('x', null)), (2L, null), (2L, null)"),
        content("(1, array('x', null)), (2, null), (2, null)", "a"),
        content("(2, array('x', null)), (1, null), (2, null)"),
    ]
    assert len({same, *others}) == 8
