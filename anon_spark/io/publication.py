"""Publication: one Delta commit that says which run made it, or nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from anon_spark.config import is_path, is_uri
from anon_spark.errors import AnonSparkError, ConfigurationError
from anon_spark.io.tables import delta_detail, history, sql_name

MARK = "anon_spark"


@dataclass(frozen=True)
class Published:
    """The newest commit of a release table and what its metadata says of the run."""

    version: int
    metadata: Mapping[str, Any]
    location: str


def last_release(spark: SparkSession, table: str) -> Published | None:
    """The release that stands at the output now; None where nothing stands.

    A place that holds anything but our release is refused: an overwrite must not cost anybody their table.
    """
    detail = delta_detail(spark, table)
    if detail is None:
        _refuse_occupied(spark, table)
        return None
    newest = history(spark, table, 1)[0]
    metadata = _metadata(newest.get("userMetadata"))
    if metadata is None:
        raise ConfigurationError(
            f"output.table: {table} holds a table whose last commit is not a release of anon-spark. It is left alone: "
            "choose another place, or remove it yourself."
        )
    return Published(int(newest["version"]), metadata, str(detail["location"]))


def publish(release: DataFrame, table: str, metadata: Mapping[str, Any], rows: int) -> int:
    """Replace the release by one atomic commit and read back that it is ours; the version it got.

    Guarantee: readers see the old release or the new one. Cost: one write of the release.
    """
    writer = (
        release.write.format("delta")
        .mode("overwrite")
        .option("overwriteSchema", "true")
        .option("userMetadata", json.dumps({MARK: dict(metadata)}))
    )
    if is_path(table):
        writer.save(table)
    else:
        writer.saveAsTable(sql_name(table))
    newest = history(release.sparkSession, table, 1)[0]
    found = _metadata(newest.get("userMetadata")) or {}
    if found.get("run_id") != metadata["run_id"]:
        raise AnonSparkError(
            f"output.table: the newest commit of {table} is not this run's. Another writer is at work there: run again."
        )
    written = (newest.get("operationMetrics") or {}).get("numOutputRows")
    if written is not None and int(written) != rows:
        raise AnonSparkError(
            f"output.table: version {newest['version']} of {table} has {written} rows instead of the {rows} that were "
            "audited. Remove that version."
        )
    return int(newest["version"])


def _metadata(text: str | None) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text or "")
    except json.JSONDecodeError:
        return None
    mine = found.get(MARK) if isinstance(found, dict) else None
    return mine if isinstance(mine, dict) else None


def _refuse_occupied(spark: SparkSession, table: str) -> None:
    occupied = _has_files(table) if is_path(table) else spark.catalog.tableExists(sql_name(table))
    if occupied:
        raise ConfigurationError(
            f"output.table: {table} holds something that is no Delta table. It is left alone: choose another place."
        )


def _has_files(path: str) -> bool:
    """Whether a path holds anything; a store that cannot be looked into from here is left to Spark's own check."""
    try:
        filesystem, place = fs.FileSystem.from_uri(path) if is_uri(path) else (fs.LocalFileSystem(), path)
        info = filesystem.get_file_info(place)
        if info.type == fs.FileType.Directory:
            return bool(filesystem.get_file_info(fs.FileSelector(place)))
        return bool(info.type != fs.FileType.NotFound)
    except (pa.ArrowInvalid, OSError):
        return False
