"""Tables at a pinned version, publication in one commit, the run log, hierarchies from tables, private workspaces."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from anon_spark.config import HierarchySpec, InputSpec, NestedInputSpec
from anon_spark.errors import ConfigurationError, HierarchyError, LimitExceeded
from anon_spark.io.hierarchies import load_hierarchies, load_hierarchy
from anon_spark.io.nesting import reads_little
from anon_spark.io.run_log import SCHEMA, Logged, RunRow, append_run, begin_run_log, check_run_log, logged_runs
from anon_spark.io.tables import SMALL_ROWS, has_few_bytes, has_many_rows, read_snapshot, sql_name
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.primitives import rounds, stores
from anon_spark.primitives.rounds import PROBES, Workspace, collect_small, usable
from anon_spark.primitives.stores import Store


def numbers(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, 1, 1)


@pytest.fixture(scope="module")
def versioned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Delta table of three rows, five in its version 1."""
    table = str(tmp_path_factory.mktemp("versioned") / "table")
    for rows in (3, 5):
        numbers(spark, rows).write.format("delta").mode("overwrite").save(table)
    return table


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, versioned: str) -> str:
    """The same table under a catalog name, in a schema of its own."""
    spark.sql("CREATE SCHEMA town_io")
    spark.sql(f"CREATE TABLE town_io.numbers USING delta LOCATION '{versioned}'")
    return "town_io.numbers"


# --- reading


@pytest.mark.parametrize("where", ["versioned", "catalog"])
def test_snapshot_is_pinned(spark: SparkSession, request: pytest.FixtureRequest, where: str, versioned: str) -> None:
    table = request.getfixturevalue(where)

    latest = read_snapshot(spark, InputSpec(table=table))
    pinned = read_snapshot(spark, InputSpec(table=table, version=0))

    assert (latest.version, latest.frame.count()) == (1, 5)
    assert (pinned.version, pinned.frame.count()) == (0, 3)
    assert latest.table_id == pinned.table_id != "None"
    assert latest.location is not None and latest.location.endswith(versioned)


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_other_formats_have_no_version(spark: SparkSession, tmp_path: Path, form: Any) -> None:
    path = tmp_path / f"people.{form}"
    if form == "parquet":
        pq.write_table(pa.table({"age": [31, 32], "city": ["x", "y"]}), path)
    else:
        path.write_text("age;city\n31;x\n32;y\n" if form == "csv" else '{"age": 31, "city": "x"}\n{"age": 32, "city": "y"}\n')
    options = {"header": "true", "sep": ";"} if form == "csv" else {}

    snapshot = read_snapshot(spark, InputSpec(table=str(path), format=form, options=options))

    assert (snapshot.version, snapshot.table_id) == (None, None)
    assert [(str(row.age), row.city) for row in snapshot.frame.orderBy("age").collect()] == [("31", "x"), ("32", "y")]


UNREADABLE: dict[str, tuple[dict[str, Any], str]] = {
    "missing path": ({"table": "FOLDER/missing"}, "input.table: no Delta table at FOLDER/missing."),
    "a file": ({"table": "FOLDER/note.txt"}, "input.table: no Delta table at FOLDER/note.txt."),
    "below a file": ({"table": "FOLDER/note.txt/table"}, "input.table: no Delta table at FOLDER/note.txt/table."),
    "unknown store": ({"table": "nostore://x/y"}, "nostore://x/y cannot be opened"),
    "damaged log": ({"table": "FOLDER/damaged"}, "FOLDER/damaged cannot be opened"),
    "unknown name": ({"table": "town_io.nobody"}, "input.table: no Delta table at town_io.nobody."),
    "unknown schema": ({"table": "noschema.nobody"}, "input.table: no Delta table at noschema.nobody."),
    "missing csv": ({"table": "FOLDER/no.csv", "format": "csv"}, "input.table: no readable csv table at FOLDER/no.csv."),
    "no parquet": ({"table": "FOLDER/note.txt", "format": "parquet"}, "input.table: no readable parquet table at"),
    "unknown store of csv": ({"table": "nostore://x/y", "format": "csv"}, "input.table: no readable csv table at nostore:"),
    "missing name": ({"table": "nobody", "format": "parquet"}, "input.table: no readable parquet table at nobody."),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_unreadable_input_is_refused(spark: SparkSession, tmp_path: Path, case: str) -> None:
    fields, message = UNREADABLE[case]
    (tmp_path / "note.txt").write_text("not a table")
    (tmp_path / "damaged/_delta_log").mkdir(parents=True)
    (tmp_path / "damaged/_delta_log/00000000000000000000.json").write_text("nonsense")
    fields = {key: value.replace("FOLDER", str(tmp_path)) for key, value in fields.items()}

    with pytest.raises(ConfigurationError) as caught:
        read_snapshot(spark, InputSpec(**fields))

    assert str(caught.value).startswith(message.replace("FOLDER", str(tmp_path)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("where", ["versioned", "catalog"])
def test_version_that_is_not_there(spark: SparkSession, request: pytest.FixtureRequest, where: str) -> None:
    table = request.getfixturevalue(where)

    with pytest.raises(ConfigurationError, match=r"^input.version: version 7 of .* cannot be read; the latest is 1\.$"):
        read_snapshot(spark, InputSpec(table=table, version=7))


def test_names_are_quoted() -> None:
    assert sql_name("town.people") == "`town`.`people`"
    assert sql_name("town.`people`") == "`town`.`people`"
    assert sql_name("/data/peo`ple; DROP") == "delta.`/data/peo``ple; DROP`"


# --- run log


ROW = RunRow(
    run_id="run-1",
    family="lattice",
    status="failed",
    message="k = 9 cannot be reached.",
    started=datetime(2024, 2, 29, 12, 0, 0, 5, tzinfo=UTC),
    finished=datetime(2024, 2, 29, 12, 1, tzinfo=UTC),
    config_hash="c0ffee",
    input_table="town.people",
    input_version=3,
    output_table="town.release",
    output_version=None,
    guarantee="9-anonymity",
    for_release=True,
    software="0.1.0",
    accounting={"source": 5},
    metrics={"loss": "glm", "front": []},
)


def test_run_log_appends(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "runs")
    check_run_log(spark, table)
    append_run(spark, table, ROW)
    check_run_log(spark, table)
    append_run(spark, table, replace(ROW, run_id="run-2", status="published", input_version=None))

    found = spark.sql(f"SELECT *, date_format(started, 'yyyy-MM-dd HH:mm:ss.SSSSSS') AS at FROM {sql_name(table)}")
    assert found.columns == [*SCHEMA.names, "at"]
    first, second = (row.asDict() for row in sorted(found.collect(), key=lambda row: str(row.run_id)))
    assert first | {"started": None, "finished": None} == {
        **ROW.__dict__,
        "started": None,
        "finished": None,
        "accounting": '{"source": 5}',
        "metrics": '{"loss": "glm", "front": []}',
        "findings": "[]",
        "at": "2024-02-29 12:00:00.000005",
    }
    assert (second["run_id"], second["status"], second["input_version"]) == ("run-2", "published", None)


def test_six_first_writers_of_a_run_log_all_write_their_row(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "runs")

    def one(number: int) -> None:
        begin_run_log(spark, table)
        append_run(spark, table, replace(ROW, run_id=f"run-{number}"))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(one, range(6)))
    found = spark.read.format("delta").load(table).select("run_id").collect()
    assert sorted(row.run_id for row in found) == [f"run-{number}" for number in range(6)]


@pytest.mark.long
def test_a_run_log_of_the_first_version_is_continued(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "runs")
    append_run(spark, table, ROW)
    older = spark.read.format("delta").load(table).drop("content", "findings")
    older.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(table)
    check_run_log(spark, table)
    assert logged_runs(spark, table, {"run-1"}) == {"run-1": Logged(None, published=False)}  # it failed
    append_run(spark, table, replace(ROW, run_id="run-2", status="published", content="rows"))
    append_run(spark, table, replace(ROW, run_id="run-3", status="published"))
    assert logged_runs(spark, table, {"run-2", "run-3", "run-4"}) == {"run-2": Logged("rows", True), "run-3": Logged(None, True)}
    check_run_log(spark, table)


def test_run_log_does_not_join_other_tables(spark: SparkSession, tmp_path: Path, versioned: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "letter.txt").write_text("dear")
    refused = {
        versioned: "is not a run log of anon-spark. Choose another place.",
        f"{tmp_path}/folder": "holds something that is no Delta table",
        f"{tmp_path}/folder/letter.txt/runs": "lies below a file",
        "noschema.runs": "the catalog has no schema `noschema`",
    }
    for place, message in refused.items():
        with pytest.raises(ConfigurationError) as caught:
            check_run_log(spark, place)
        assert str(caught.value).startswith("output.runs: ") and message in str(caught.value)


# --- hierarchies


LEVELS = [("b1", "b", "*"), ("a2", "a", "*"), ("a1", "a", "*")]


def test_hierarchies_from_tables_and_files(spark: SparkSession, tmp_path: Path, catalog: str) -> None:
    columns = dict(zip(("value", "group", "top"), map(list, zip(*LEVELS, strict=True)), strict=True))
    frame = spark.createDataFrame(pa.table(columns))
    frame.coalesce(1).write.format("delta").saveAsTable("town_io.levels")
    frame.repartition(3).write.parquet(f"{tmp_path}/parquet")  # whatever the order of its rows
    (tmp_path / "levels.csv").write_text("\n".join(";".join(row) for row in sorted(LEVELS)))
    (tmp_path / "levels.tsv").write_text("value\tgroup\n" + "\n".join("\t".join(row[:2]) for row in sorted(LEVELS)))
    (tmp_path / "edges.csv").write_text("a1,a\na2,a\nb1,b\na,*\nb,*\n")
    expected = Hierarchy.from_levels(sorted(LEVELS))
    expected.save(tmp_path / "levels.json")
    specs = {
        "catalog": {"levels": "town_io.levels", "format": "delta"},
        "parquet": {"levels": f"{tmp_path}/parquet", "format": "parquet"},
        "csv": {"levels": f"{tmp_path}/levels.csv"},
        "tsv": {"levels": f"{tmp_path}/levels.tsv", "sep": "\t", "header": True},
        "json": {"levels": f"{tmp_path}/levels.json"},
        "edges": {"edges": f"{tmp_path}/edges.csv"},
    }

    found = load_hierarchies({name: HierarchySpec.model_validate(spec) for name, spec in specs.items()}, spark)

    for name, hierarchy in found.items():
        assert isinstance(hierarchy, Hierarchy), name
        assert (hierarchy.keys, hierarchy.labels) == (expected.keys, expected.labels), name


def test_faults_of_hierarchies_name_the_column(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("v1;g1;*\nv1;g2;*\n")
    for file in ("latin.csv", "latin.json"):
        (tmp_path / file).write_bytes("K\xf6ln;*\n".encode("latin-1"))
    faults = {
        "missing.csv": "Check the path, the encoding (UTF-8) and sep.",
        "latin.csv": "Check the path, the encoding (UTF-8) and sep.",
        "twice.csv": "1 value listed again with different parents (line 2). Keep one row per value.",
        "missing.json": "No such file or directory.",
        "latin.json": ".",
    }
    for file, message in faults.items():
        with pytest.raises(HierarchyError) as caught:
            load_hierarchies({"city": HierarchySpec(levels=f"{tmp_path}/{file}")}, None)
        assert str(caught.value).startswith("columns.quasi_identifiers.city: ")
        assert str(caught.value).endswith(message)
    missing = HierarchySpec(levels=f"{tmp_path}/nothing", format="parquet")
    with pytest.raises(ConfigurationError, match=r"no readable parquet table at .*/nothing. Check the name."):
        load_hierarchy(missing, spark)
    with pytest.raises(ConfigurationError, match="is a table: give a Spark session to read it"):
        load_hierarchy(missing)


# --- workspaces


def test_workspace_is_private_and_removed(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "root"
    with Workspace(spark, str(root)) as workspace:
        assert not root.exists()  # made on first use
        stored = workspace.store(numbers(spark, 4), "numbers")
        again = workspace.store(stored.where("id > 1"), "some")
        (folder,) = root.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert sorted(entry.name for entry in folder.iterdir()) == ["001-numbers", "002-some", "_owner.json"]
        assert (stored.count(), again.count(), again.schema) == (4, 2, stored.schema)
    assert list(root.iterdir()) == []

    with pytest.raises(RuntimeError), Workspace(spark, root.as_uri()) as workspace:
        workspace.store(numbers(spark, 1), "numbers")
        assert len(list(root.iterdir())) == 1
        raise RuntimeError
    assert list(root.iterdir()) == []
    with Workspace(spark, str(root)):
        pass  # never used: nothing to remove


def test_workspace_that_cannot_be(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigurationError, match=r"work: .*/file is not a folder that can be written to"):
        Workspace(spark, f"{tmp_path}/file").store(numbers(spark, 1), "numbers")
    with pytest.raises(ConfigurationError, match=r"^work: nostore: cannot be managed from here"):
        usable(spark, "nostore://bucket/work")
    usable(spark, None)

    asked: list[str] = []

    def from_uri(uri: str) -> tuple[fs.FileSystem, str]:
        asked.append(uri)
        return fs.LocalFileSystem(), "/"

    monkeypatch.setattr(stores, "fs", SimpleNamespace(FileSystem=SimpleNamespace(from_uri=from_uri)))
    usable(spark, "s3a://bucket/work")  # Hadoop's name of what pyarrow calls s3
    assert asked == ["s3://bucket/work"]


def test_workspace_on_a_cluster(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "_is_local", lambda _: False)
    with pytest.raises(ConfigurationError, match="On a cluster the private working directory must be named: give `work:`"):
        usable(spark, None)
    with Workspace(spark, f"{tmp_path}/shared") as workspace:
        assert workspace.store(numbers(spark, 2), "numbers").count() == 2

    workspace = Workspace(spark, f"{tmp_path}/work")
    monkeypatch.setattr(Store, "names", lambda self: [])  # as if the workers wrote to another machine
    with pytest.raises(ConfigurationError, match=f"work: of {PROBES} files that the workers wrote there the driver sees 0"):
        workspace.store(numbers(spark, 2), "numbers")
    assert sorted(path.name for path in Path(workspace.path).iterdir()) == ["000-probe", "_owner.json"]  # no row of the table


def test_what_reaches_the_driver_is_bounded(spark: SparkSession) -> None:
    assert collect_small(numbers(spark, 3), 3, "Numbers").num_rows == 3
    with pytest.raises(LimitExceeded, match="Numbers: more than 3, too many for the driver"):
        collect_small(numbers(spark, 4), 3, "Numbers")


def test_what_is_little_is_known_without_spark(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    (folder / "part=1").mkdir(parents=True)
    (folder / "part=1" / "one.parquet").write_bytes(bytes(600))
    (folder / "two.parquet").write_bytes(bytes(500))
    assert has_few_bytes(str(folder), 1100) and not has_few_bytes(str(folder), 1099)
    assert has_few_bytes(str(folder / "two.parquet"), 500)
    elsewhere = (str(tmp_path / "nothing"), str(tmp_path / "*.csv"), "db.people", "s3://bucket/people")
    assert not any(has_few_bytes(place, 1100) for place in elsewhere)
    nested = {"table": str(folder), "on": {"a": "b"}}
    little, far = (
        NestedInputSpec.model_validate({"table": str(folder), "nest": {"visits": visits}})
        for visits in (nested, nested | {"table": "db.visits"})
    )
    assert reads_little(little) and not reads_little(far)


def test_rows_that_compress_well_are_many_all_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """A million equal rows fit a few kilobytes, and are no small table."""
    few, many = str(tmp_path / "few"), str(tmp_path / "many")
    spark.range(1000).selectExpr("1 AS age").write.format("delta").save(few)
    spark.range(2 * SMALL_ROWS).selectExpr("1 AS age").write.format("delta").save(many)
    assert has_few_bytes(many, 2**20) and has_many_rows(many) and not has_many_rows(few)
    assert [read_snapshot(spark, InputSpec(table=place)).small for place in (few, many)] == [True, False]
    (tmp_path / "broken.parquet").write_text("none")
    assert has_many_rows(str(tmp_path / "broken.parquet")) and not has_many_rows(str(tmp_path / "nothing.csv"))
