"""Tables by path or catalog name, through SQL and reader options only, so that Spark Connect works too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from anon_spark.config import InputSpec, is_path, is_uri
from anon_spark.engine import gathered
from anon_spark.errors import ConfigurationError
from anon_spark.io.leftovers import folder_of, is_free

SMALL_BYTES = {"delta": 2**20, "parquet": 2**20, "csv": 2**22, "json": 2**22}
"""Of the files of a table, by format, that one task reads: starting more of them would cost more than it saves."""
SMALL_ROWS = 500_000  # a table that compresses well has more in so few bytes


@dataclass(frozen=True)
class Snapshot:
    """A table at one version (None where the format knows no versions), read lazily."""

    frame: DataFrame
    table: str
    version: int | None
    table_id: str | None
    location: str | None
    parts: Mapping[str, Snapshot] = field(default_factory=dict)  # of nested tables: each by its key, the outermost first
    small: bool = False  # whether one task can hold the table; then the frame is one partition

    @property
    def tables(self) -> Mapping[str, Snapshot]:
        """Every table that is read, by its key in the job."""
        return self.parts or {"input": self}


def read_snapshot(spark: SparkSession, spec: InputSpec, key: str = "input") -> Snapshot:
    """A table at its pinned version; the latest one is resolved once, here. A fault names the key of the job.

    Cost: metadata only. A table that is not there, or not that version, is a ConfigurationError.
    """
    if spec.format != "delta":
        reader = spark.read.format(spec.format).options(**spec.options)
        try:
            frame = reader.load(spec.table) if is_path(spec.table) else spark.read.table(sql_name(spec.table))
            frame.schema  # noqa: B018 - Connect resolves lazily: fail here, not in the middle of a run
        except Exception as error:  # also what Hadoop and the readers throw, which Spark hands on as it is
            raise ConfigurationError(
                f"{key}.table: no readable {spec.format} table at {spec.table}. Check the path, the format and the rights."
            ) from error
        place = spec.table if is_path(spec.table) else None
        small = place is not None and has_few_bytes(place, SMALL_BYTES[spec.format]) and not has_many_rows(place)
        return Snapshot(gathered(frame, small), spec.table, None, None, place, small=small)

    newest = history(spark, spec.table, 1)
    detail = delta_detail(spark, spec.table) if newest else None
    if detail is None:
        raise ConfigurationError(
            f"{key}.table: no Delta table at {spec.table}. Check the name, or give {key}.format for another format. A view has "
            "no version that could be read again: write it to a table, or name the table below it."
        )
    latest = int(newest[0]["version"])
    version = latest if spec.version is None else spec.version
    try:
        frame = read_version(spark, spec.table, version, spec.options)
        frame.schema  # noqa: B018
    except Exception as error:
        raise ConfigurationError(
            f"{key}.version: version {version} of {spec.table} cannot be read; the latest is {latest}."
        ) from error
    few_bytes = version == latest and int(detail["sizeInBytes"]) <= SMALL_BYTES["delta"]
    small = few_bytes and not has_many_rows(str(detail["location"]).removeprefix("file:"))
    return Snapshot(
        gathered(frame, small), spec.table, version, str(detail["id"]), str(detail["location"]), small=small
    )


def read_version(spark: SparkSession, table: str, version: int, options: Mapping[str, str] | None = None) -> DataFrame:
    """A Delta table as it was at one version, lazily."""
    reader = spark.read.format("delta").options(**options or {}).option("versionAsOf", str(version))
    return reader.load(table) if is_path(table) else reader.table(sql_name(table))


def delta_detail(spark: SparkSession, table: str) -> dict[str, Any] | None:
    """DESCRIBE DETAIL of a Delta table, None where there is none. Cost: Delta reads the whole state of the table."""
    rows = _described(spark, f"DESCRIBE DETAIL {sql_name(table)}", table)
    return rows[0] if rows and rows[0].get("format") == "delta" else None


def history(spark: SparkSession, table: str, limit: int) -> list[dict[str, Any]]:
    """The newest commits of a Delta table, newest first; none where there is no Delta table."""
    return _described(spark, f"DESCRIBE HISTORY {sql_name(table)} LIMIT {int(limit)}", table)


def location_of(spark: SparkSession, table: str) -> str | None:
    """The location of a table: a path itself, or what the catalog says of an existing Delta table."""
    if is_path(table):
        return table
    detail = delta_detail(spark, table)
    return str(detail["location"]) if detail is not None else None


def _described(spark: SparkSession, statement: str, table: str) -> list[dict[str, Any]]:
    """The rows of a DESCRIBE; none where there is no Delta table. A damaged or unreachable table is refused."""
    try:
        return [row.asDict() for row in spark.sql(statement).collect()]
    except AnalysisException:  # there is no such table, or it is no Delta table
        return []
    except Exception as error:  # what Hadoop throws, which Spark hands on as it is; a connection that broke
        raise ConfigurationError(
            f"{table} cannot be opened: Spark does not know or reach its store, or its Delta log is damaged."
        ) from error


def require_free(spark: SparkSession, table: str, key: str) -> None:
    """Refuse a place for a new Delta table that holds something else, or that cannot hold a table at all."""
    if not is_path(table):
        schema, _, _ = sql_name(table).rpartition(".")
        try:
            occupied = spark.catalog.tableExists(sql_name(table))
            missing = bool(schema) and not spark.catalog.databaseExists(schema)
        except PySparkException as error:
            raise ConfigurationError(f"{key}: the catalog does not know a place {table}. Check the name.") from error
        if missing:
            raise ConfigurationError(f"{key}: the catalog has no schema {schema}. Create it first, or check the name.")
    else:
        occupied = _has_files(table)
        if not is_uri(table) and any(parent.is_file() for parent in Path(table).parents):
            raise ConfigurationError(f"{key}: {table} lies below a file. Choose another place.")
    if occupied:
        raise ConfigurationError(
            f"{key}: {table} holds something that is no Delta table. It is left alone: choose another place."
        )


def sql_name(table: str) -> str:
    """The name of a table in SQL: every part quoted, a path behind its format."""
    if is_path(table):
        return "delta." + _quoted(table)
    return ".".join(_quoted(part) for part in table.split("."))


def _quoted(part: str) -> str:
    return "`" + part.strip("`").replace("`", "``") + "`"


def has_few_bytes(table: str, few: int) -> bool:
    """Whether a table is a file of this machine, or a folder of files, with few bytes together; known without Spark.

    No for a pattern of names. Files that a Delta table no longer needs count as well.
    """
    path = Path(table)
    if not is_path(table) or is_uri(table):
        return False
    try:
        files = [path] if path.is_file() else [part for part in path.rglob("*") if part.is_file()]
        return path.exists() and sum(part.stat().st_size for part in files) <= few
    except OSError:
        return False


def has_many_rows(table: str) -> bool:
    """Whether the Parquet files of a folder of this machine have more than SMALL_ROWS rows, by their footers.

    Text files of few bytes have few rows. Elsewhere it is not known, and bytes decide alone.
    """
    try:
        files = Path(table).rglob("*.parquet") if Path(table).is_dir() else [Path(table)]
        data = [part for part in files if part.suffix == ".parquet" and "_delta_log" not in part.parts]
        return sum(pq.read_metadata(part).num_rows for part in data) > SMALL_ROWS
    except (OSError, pa.ArrowException):
        return True


def _has_files(path: str) -> bool:
    """Whether a path holds anything; a store that cannot be looked into from here is left to Spark's own check."""
    store = folder_of(path)
    try:
        return store is not None and (not is_free(store) if store.is_folder else store.exists)
    except (pa.ArrowException, OSError):
        return False
