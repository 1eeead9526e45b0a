"""VACUUM of everything that the newest version of a Delta table does not need, whatever its retention says.

Delta refuses a retention below that of the table unless the session allows it, and settings of the session are not ours. So
the table's own retention is 0 for the time of the VACUUM. What it was stands in another property meanwhile: after a kill the
next call puts it back.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from anon_spark.errors import ConfigurationError
from anon_spark.io.tables import delta_detail, sql_name

RETENTION = "delta.deletedFileRetentionDuration"
BEFORE = "anon_spark.deletedFileRetentionDuration"  # what it was; empty for none
NONE = "interval 0 seconds"


def vacuum_all(spark: SparkSession, table: str) -> None:
    """Remove every data file that the newest version does not name, also those that somebody is just writing.

    Guarantee: the newest version is as it was, and so are the properties of the table, also where VACUUM fails. Readers of
    older versions fail. Cost: a listing of the folder; four to six commits that change no row.
    """
    detail = delta_detail(spark, table)
    if detail is None:
        raise ConfigurationError(f"{table} is no Delta table.")
    properties: Mapping[str, str] = detail["properties"]
    before = properties[BEFORE] if BEFORE in properties else properties.get(RETENTION, "")
    _set(spark, table, {RETENTION: NONE, BEFORE: before})
    try:
        spark.sql(f"VACUUM {sql_name(table)}").collect()
    finally:
        if before:
            _set(spark, table, {RETENTION: before})
        gone = [BEFORE] if before else [BEFORE, RETENTION]
        spark.sql(f"ALTER TABLE {sql_name(table)} UNSET TBLPROPERTIES IF EXISTS ({', '.join(map(_text, gone))})").collect()


def _set(spark: SparkSession, table: str, properties: Mapping[str, str]) -> None:
    pairs = ", ".join(f"{_text(name)} = {_text(value)}" for name, value in properties.items())
    spark.sql(f"ALTER TABLE {sql_name(table)} SET TBLPROPERTIES ({pairs})").collect()


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
