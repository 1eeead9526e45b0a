"""The run log: one Delta row per run, also for runs that published nothing."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.config import is_path
from anon_spark.engine import small_frame
from anon_spark.errors import ConfigurationError
from anon_spark.io.retries import retried
from anon_spark.io.tables import history, require_free, sql_name
from anon_spark.primitives.rounds import collect_small

_FIELDS: list[tuple[str, Any]] = [
    ("run_id", pa.string()),
    ("family", pa.string()),
    ("status", pa.string()),
    ("message", pa.string()),
    ("started", pa.timestamp("us", "UTC")),
    ("finished", pa.timestamp("us", "UTC")),
    ("config_hash", pa.string()),
    ("input_table", pa.string()),
    ("input_version", pa.int64()),
    ("output_table", pa.string()),
    ("output_version", pa.int64()),
    ("guarantee", pa.string()),
    ("for_release", pa.bool_()),
    ("software", pa.string()),
    ("accounting", pa.string()),  # JSON: where the rows went
    ("metrics", pa.string()),  # JSON: what the family reports
    ("content", pa.string()),  # digest of the rows that were read; private
    ("findings", pa.string()),  # JSON: what a person should look at
]
SCHEMA = pa.schema(_FIELDS)
OLDEST = 16  # columns of the logs that the first version wrote
_SQL = {"string": "STRING", "timestamp[us, tz=UTC]": "TIMESTAMP", "int64": "BIGINT", "bool": "BOOLEAN"}


@dataclass(frozen=True)
class RunRow:
    """The log row of one run: counts, names, and labels that the release shows in k rows or more."""

    run_id: str
    family: str
    status: str
    message: str | None
    started: datetime
    finished: datetime
    config_hash: str
    input_table: str
    input_version: int | None
    output_table: str
    output_version: int | None
    guarantee: str
    for_release: bool
    software: str
    accounting: Mapping[str, int]
    metrics: Mapping[str, Any]
    content: str | None = None
    findings: Sequence[Mapping[str, Any]] = ()


def check_run_log(spark: SparkSession, table: str) -> None:
    """Refuse a run log place that holds another table, before anything is written. Writes nothing."""
    if not history(spark, table, 1):
        require_free(spark, table, "output.runs")
        return
    known = SCHEMA.names
    if _log(spark, table).columns not in (known, known[:OLDEST]):
        raise ConfigurationError(f"output.runs: {table} is not a run log of anon-spark. Choose another place.")


def begin_run_log(spark: SparkSession, table: str) -> None:
    """Create an empty run log where there is none, so that runs can append to it at once. Cost: at most a commit."""
    if history(spark, table, 1):
        return
    columns = ", ".join(f"`{name}` {_SQL[str(kind)]}" for name, kind in _FIELDS)
    retried(lambda: spark.sql(f"CREATE TABLE IF NOT EXISTS {sql_name(table)} ({columns}) USING delta").collect())


def append_run(spark: SparkSession, table: str, row: RunRow) -> None:
    """Append one row in one commit; repeated where others write at the same moment. Cost: a commit."""
    content = {name: json.dumps(getattr(row, name)) for name in ("accounting", "metrics", "findings")}
    frame = small_frame(spark, pa.Table.from_pylist([{**row.__dict__, **content}], schema=SCHEMA)).coalesce(1)
    writer = frame.write.format("delta").mode("append").option("mergeSchema", "true")  # logs of older versions
    retried(lambda: writer.save(table) if is_path(table) else writer.saveAsTable(sql_name(table)))


@dataclass(frozen=True)
class Logged:
    """The log entry of a run: the digest of what it read, if the log has it, whether it published, and metrics of its series."""

    content: str | None
    published: bool
    series: Mapping[str, Any] | None = None


def logged_runs(spark: SparkSession, table: str, run_ids: Collection[str]) -> dict[str, Logged]:
    """The log entries of some runs, by run id; also of those that were stopped or failed after their commit.

    Cost: one job; at most a row per run id reaches the driver.
    """
    if not run_ids or not history(spark, table, 1):
        return {}
    log = _log(spark, table)
    content = F.col("content") if "content" in log.columns else F.lit(None).cast("string")
    well = F.coalesce(F.col("status") == "published", F.lit(False))
    series = F.max(F.when(well, F.get_json_object("metrics", "$.series"))).alias("series")
    entries = (F.max(content).alias("content"), F.max(well).alias("published"), series)
    rows = log.where(F.col("run_id").isin(sorted(run_ids))).groupBy("run_id").agg(*entries)
    collected = collect_small(rows, len(run_ids), "Rows of the run log")
    return {row["run_id"]: _logged(row) for row in collected.to_pylist()}


def _logged(row: Mapping[str, Any]) -> Logged:
    return Logged(row["content"], row["published"], None if row["series"] is None else json.loads(row["series"]))


def _log(spark: SparkSession, table: str) -> DataFrame:
    return spark.read.format("delta").load(table) if is_path(table) else spark.read.table(sql_name(table))
