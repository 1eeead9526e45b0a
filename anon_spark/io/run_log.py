"""The run log: one Delta row per run, also for runs that published nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from anon_spark.config import is_path
from anon_spark.errors import ConfigurationError
from anon_spark.io.tables import history, require_free, sql_name

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
]
SCHEMA = pa.schema(_FIELDS)


@dataclass(frozen=True)
class RunRow:
    """What one run leaves behind; counts and names, never a value of a record."""

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


def check_run_log(spark: SparkSession, table: str) -> None:
    """Refuse a run log place that holds another table, before anything is written."""
    if not history(spark, table, 1):
        require_free(spark, table, "output.runs")
        return
    frame = spark.read.format("delta").load(table) if is_path(table) else spark.read.table(sql_name(table))
    if frame.columns != SCHEMA.names:
        raise ConfigurationError(f"output.runs: {table} is not a run log of anon-spark. Choose another place.")


def append_run(spark: SparkSession, table: str, row: RunRow) -> None:
    """Append one row in one commit."""
    values = {**row.__dict__, "accounting": json.dumps(dict(row.accounting)), "metrics": json.dumps(dict(row.metrics))}
    frame = spark.createDataFrame(pa.Table.from_pylist([values], schema=SCHEMA)).coalesce(1)
    writer = frame.write.format("delta").mode("append")
    if is_path(table):
        writer.save(table)
    else:
        writer.saveAsTable(sql_name(table))
