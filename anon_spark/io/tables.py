"""Tables by path or catalog name, spoken to in SQL and reader options only, so that Spark Connect works too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from anon_spark.config import InputSpec, is_path
from anon_spark.errors import ConfigurationError


@dataclass(frozen=True)
class Snapshot:
    """A table at one version (None where the format knows no versions), read lazily."""

    frame: DataFrame
    table: str
    version: int | None
    table_id: str | None
    location: str | None


def read_snapshot(spark: SparkSession, spec: InputSpec) -> Snapshot:
    """The input at its pinned version; the latest one is resolved once, here.

    Cost: metadata only. A table that is not there, or not that version, is a ConfigurationError.
    """
    if spec.format != "delta":
        reader = spark.read.format(spec.format).options(**spec.options)
        try:
            frame = reader.load(spec.table) if is_path(spec.table) else spark.read.table(spec.table)
            frame.schema  # noqa: B018 - Connect resolves lazily: fail here, not in the middle of a run
        except PySparkException as error:
            raise ConfigurationError(
                f"input.table: no readable {spec.format} table at {spec.table}. Check the path, the format and the rights."
            ) from error
        return Snapshot(frame, spec.table, None, None, spec.table if is_path(spec.table) else None)

    detail = delta_detail(spark, spec.table)
    if detail is None:
        raise ConfigurationError(
            f"input.table: no Delta table at {spec.table}. Check the name, or give input.format for another format."
        )
    latest = int(history(spark, spec.table, 1)[0]["version"])
    version = latest if spec.version is None else spec.version
    reader = spark.read.format("delta").options(**spec.options).option("versionAsOf", str(version))
    try:
        frame = reader.load(spec.table) if is_path(spec.table) else reader.table(spec.table)
        frame.schema  # noqa: B018
    except PySparkException as error:
        raise ConfigurationError(
            f"input.version: version {version} of {spec.table} cannot be read; the latest is {latest}."
        ) from error
    return Snapshot(frame, spec.table, version, str(detail["id"]), str(detail["location"]))


def delta_detail(spark: SparkSession, table: str) -> dict[str, Any] | None:
    """DESCRIBE DETAIL of a Delta table, None where there is none."""
    try:
        row = spark.sql(f"DESCRIBE DETAIL {sql_name(table)}").first()
    except PySparkException:
        return None
    found = row.asDict() if row is not None else {}
    return found if found.get("format") == "delta" else None


def history(spark: SparkSession, table: str, limit: int) -> list[dict[str, Any]]:
    """The newest commits of a Delta table, newest first."""
    rows = spark.sql(f"DESCRIBE HISTORY {sql_name(table)} LIMIT {int(limit)}").collect()
    return [row.asDict() for row in rows]


def sql_name(table: str) -> str:
    """How SQL names the table: every part quoted, a path behind its format."""
    if is_path(table):
        return "delta." + _quoted(table)
    return ".".join(_quoted(part) for part in table.split("."))


def _quoted(part: str) -> str:
    return "`" + part.strip("`").replace("`", "``") + "`"
