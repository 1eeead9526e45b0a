"""Tables nested by keys: what becomes of rows, keys and versions, and what is refused before a row is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.config import InputSpec, JobSpec, NestedInputSpec
from anon_spark.errors import ConfigurationError
from anon_spark.families.registry import parse_job
from anon_spark.io.nesting import as_published, nesting_notes, read_input, with_elements
from anon_spark.io.publication import Output, Published
from anon_spark.io.tables import Snapshot
from anon_spark.runs.identity import Identity
from anon_spark.runs.preparation import RUN_KEY, Preparation, _refuse_touching_places

FIELDS = ["nation", "orders.month", "orders.items.brand", "orders.items.made.by"]
CUSTOMERS = pa.table({"id": pa.array([1, 2, 2, 3, None], pa.int64()), "nation": list("abcde")})
ORDERS = pa.table({  # one without a customer, one without a key; 11 and 12 of customer 1, 13 of both customers 2
    "order": ["11", "12", "13", "14", "15"],
    "customer": pa.array([1, 1, 2, 9, None], pa.int32()),
    "month": [7, 5, 6, 8, 9],
    "what": pa.array([[("a", 1)]] * 5, pa.map_(pa.string(), pa.int64())),
})  # fmt: skip
ITEMS = [("12", "y", 2), ("11", "x", 1), ("12", "x", 1), ("12", "y", 2), ("11", "a", 3), ("14", "z", 4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The flat tables as Parquet files, items in two of them."""
    folder = tmp_path_factory.mktemp("flat")
    (folder / "items").mkdir()
    pq.write_table(CUSTOMERS, folder / "customers")
    pq.write_table(ORDERS, folder / "orders")
    for part in range(2):
        rows = [{"of": of, "brand": brand, "made": {"by": by, "at": 0}} for of, brand, by in ITEMS[part::2]]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"items/{part}.parquet")
    return folder


def spec(folder: Path, **changes: Any) -> NestedInputSpec:
    items = {"table": str(folder / "items"), "format": "parquet", "on": {"order": "of"}}
    orders: dict[str, Any] = {"table": str(folder / "orders"), "format": "parquet", "on": {"id": "customer"}}
    orders |= {"nest": {"items": items}} | changes
    nested = {"table": str(folder / "customers"), "format": "parquet", "nest": {"orders": orders}}
    return NestedInputSpec.model_validate(nested)


JOB: dict[str, Any] = {
    "anon_spark": 1,
    "family": "tree",
    "input": {"table": "town.customers", "nest": {"orders": {"table": "town.orders", "on": {"id": "id"}}}},
    "columns": {"tree": {"month": {"field": "orders.month", "mask": {}}}},
    "privacy": {"k": 2},
    "output": {"table": "/data/release", "runs": "/data/runs"},
}


def job_of(given: InputSpec | None = None) -> JobSpec:
    job = parse_job(JOB, Path("/jobs"))
    return job if given is None else job.model_copy(update={"input": given})


# --- rows


def test_rows_become_sorted_arrays_of_what_is_read(spark: SparkSession, folder: Path) -> None:
    source = read_input(spark, spec(folder), FIELDS)

    made = "struct<by:bigint,at:bigint>"
    arrays = f"array<struct<month:bigint,items:array<struct<brand:string,made:{made}>>>>"
    assert dict(source.frame.dtypes) == {"id": "bigint", "nation": "string", "orders": arrays}  # keys are not in the arrays
    rows = {row["nation"]: row.asDict(recursive=True)["orders"] for row in source.frame.collect()}
    plain = {
        nation: [(one["month"], [(item["brand"], item["made"]["by"]) for item in one["items"]]) for one in orders]
        for nation, orders in rows.items()
    }
    first = [(5, [("x", 1), ("y", 2), ("y", 2)]), (7, [("a", 3), ("x", 1)])]
    assert plain == {"a": first, "b": [(6, [])], "c": [(6, [])], "d": [], "e": []}

    prepared = Preparation(job_of(spec(folder)), spark, cast(Any, None), source, Output(None, None), "")
    assert prepared.input_notes() == [
        "input.nest.orders: 2 rows are left out, because no row of the table above has their key.",
        "input.nest.orders.on: 1 keys stand in several rows of the table above; what is nested is in each of these.",
    ]  # the item of an order without a customer is below a row of the table above it: nothing is said of it
    # formats without versions
    assert (source.version, source.table) == (None, f"{folder}/customers (orders: {folder}/orders; orders.items: {folder}/items)")
    assert json.loads(str(source.table_id))["input.nest.orders.nest.items"] == [f"{folder}/items", None]


def test_keys_of_several_columns_with_any_name(spark: SparkSession) -> None:
    above = spark.createDataFrame(pa.table({"x": [1, 1, None], "y.y": ["a", "b", "c"], "u": [0, 0, 0]}))
    below = spark.createDataFrame(pa.table({"v": ["a", "c", "b", "c"], "u": [1, 1, 1, None], "w.w": [9, 8, 7, 6]}))
    found = with_elements(above, below, "all", {"x": "u", "y.y": "v"}, ["w.w"])
    assert {row["y.y"]: [one["w.w"] for one in row["all"]] for row in found.collect()} == {"a": [9], "b": [7], "c": []}


# --- versions


@pytest.fixture(scope="module")
def versioned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Delta table of one order of customer 1, and one more in its version 1."""
    table = str(tmp_path_factory.mktemp("versioned") / "orders")
    for order in (11, 12):
        added = pa.table({"order": [str(order)], "customer": [1], "month": [order]})
        spark.createDataFrame(added).coalesce(1).write.format("delta").mode("append").save(table)
    return table


def test_every_table_is_read_at_its_version(spark: SparkSession, folder: Path, versioned: str) -> None:
    def itself(**changes: Any) -> NestedInputSpec:
        below = {"table": versioned, "version": 0, "on": {"customer": "customer"}}
        return NestedInputSpec.model_validate({"table": versioned, "nest": {"orders": below | changes}})

    source = read_input(spark, itself(), ["orders.month"])
    assert (source.version, source.table) == (1, f"{versioned} (orders: {versioned} at version 0)")
    (same,) = {part.table_id for part in source.tables.values()}
    assert json.loads(str(source.table_id)) == {"input": [same, 1], "input.nest.orders": [same, 0]}
    assert [[one.month for one in row.orders] for row in source.frame.collect()] == [[11], [11]]

    items = {"items": {"table": str(folder / "items"), "format": "parquet", "on": {"order": "of"}}}
    mixed = read_input(spark, itself(nest=items), ["orders.items.brand"])  # a version of all needs one of each
    told = f"{versioned} at version 1 (orders: {versioned} at version 0; orders.items: {folder}/items)"
    assert (mixed.version, mixed.table) == (None, told)
    assert json.loads(str(mixed.table_id))["input"] == [same, 1]


def test_an_audit_reads_what_the_release_was_made_of(folder: Path) -> None:
    latest = spec(folder, format="delta")
    origins = {"input": ["a", 4], "input.nest.orders": ["b", 7], "input.nest.orders.nest.items": ["c", None]}

    pinned = as_published(latest, {"input_id": json.dumps(origins), "input_version": None})

    assert isinstance(pinned, NestedInputSpec) and (pinned.version, pinned.nest["orders"].version) == (4, 7)
    assert pinned.nest["orders"].nest["items"] == latest.nest["orders"].nest["items"]
    assert as_published(InputSpec(table="a.b"), {"input_version": 7}) == InputSpec(table="a.b", version=7)
    with pytest.raises(ConfigurationError, match="made of more tables than the job names"):
        as_published(spec(folder, nest={}), {"input_id": json.dumps(origins)})
    for other in ({"input_id": "an id of a single table"}, {"input_id": '{"input":["x",1]}'}, {}):
        with pytest.raises(ConfigurationError, match=r"was not made of this table. Run the job again.$"):
            as_published(latest, other)


# --- what is refused


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "table": ({"table": "/nowhere/at/all"}, "month", "input.nest.orders.table: no readable parquet table at /nowhere/at/all."),
    "key above": ({"on": {"idd": "customer"}}, "month", "input.nest.orders.on: Columns not found: idd. Did you mean: id?"),
    "key below": ({"on": {"id": "id"}}, "month", "input.nest.orders.on: Columns not found: id."),
    "types": ({"on": {"nation": "customer"}}, "month",
              "input.nest.orders.on: nation is string and customer is int. Give keys of one type."),
    "field": ({}, "mnth", "input.nest.orders: Columns not found: mnth. Did you mean: month?"),
    "map": ({}, "what", "input.nest.orders: column what holds a map or variant, which cannot be nested."),
    "below": ({"nest": {"items": {"table": "no.where", "on": {"a": "b"}}}}, "items.brand",
              "input.nest.orders.nest.items.table: no Delta table at no.where."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_fault_names_its_key(spark: SparkSession, folder: Path, case: str) -> None:
    changes, field, message = REFUSED[case]
    with pytest.raises(ConfigurationError) as caught:
        read_input(spark, spec(folder, **{"nest": {}} | changes), [f"orders.{field}"])
    assert str(caught.value).startswith(message)


def test_a_name_that_is_taken(spark: SparkSession, folder: Path) -> None:
    given = spec(folder).model_dump(by_alias=True, exclude_none=True)
    taken = NestedInputSpec.model_validate(given | {"nest": {"Nation": given["nest"]["orders"] | {"nest": {}}}})
    with pytest.raises(ConfigurationError, match=r"^input.nest.Nation: the table above has a column Nation already"):
        read_input(spark, taken, ["Nation.month"])


# --- in a run


def test_nothing_is_said_of_a_single_table() -> None:
    assert nesting_notes(Snapshot(cast(DataFrame, None), "a.b", 1, "a", "/data/b"), InputSpec(table="a.b")) == []


def snapshots(*places: str) -> Snapshot:
    """An input of several tables by their places, in Delta, at version 3."""
    frame = cast(DataFrame, None)
    keys = ("input", "input.nest.orders")
    parts = {key: Snapshot(frame, key, 3, key, place) for key, place in zip(keys, places, strict=True)}
    return Snapshot(frame, "town.customers (orders: town.orders at version 3)", 3, "all", places[0], parts)


def test_a_nested_table_must_not_be_written_over(spark: SparkSession) -> None:
    _refuse_touching_places(job_of(), spark, snapshots("/data/customers", "/data/customers"))  # both are only read
    for place in ("/data/release/orders", "/data"):
        with pytest.raises(ConfigurationError, match=r"^input.nest.orders.table (lies inside|contains) output.table"):
            _refuse_touching_places(job_of(), spark, snapshots("/data/customers", place))


def test_a_rerun_is_recognised_by_all_tables(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUN_KEY, "key")
    source = snapshots("/data/customers", "/data/orders")
    said = {"config_hash": "c", "input_id": "all", "input_version": 3, "for_release": False}
    output = Output(0, Published(0, said, 0, ()))
    prepared = Preparation(job_of(), spark, cast(Any, None), source, output, "c")

    def recognised(source: Snapshot) -> bool:
        identity = Identity(replace(prepared, source=source), for_release=False)
        identity.__dict__["logged"] = {}  # nothing is known of the rows
        return identity.already_published is not None

    assert recognised(source)
    assert not recognised(replace(source, table_id="other"))
    assert not recognised(replace(source, version=None))
