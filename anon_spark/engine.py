"""Questions to a session that work on classic Spark, Spark Connect and managed platforms."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema


def small_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A table that the driver holds (a hierarchy, a key, numbers) as a frame to be joined in.

    Guarantee: same rows and types on classic Spark and on Connect, also without rows, where Connect infers no types.
    The values are in no plan, so in no event log.
    """
    return spark.createDataFrame(table, schema=from_arrow_schema(table.schema))


def setting(spark: SparkSession, name: str, default: str) -> str:
    """A setting of the session; `default` where it has none, or where a platform does not let it be read.

    Managed platforms raise CONFIG_NOT_AVAILABLE for most settings, even where a default is given.
    """
    try:
        return spark.conf.get(name, default) or default
    except PySparkException:
        return default


def runs_here(spark: SparkSession) -> bool:
    """Whether driver and workers are this machine, so that a folder of this process is one of theirs.

    A server of Spark Connect may be elsewhere, whatever its master says: it counts as elsewhere.
    """
    return not on_connect(spark) and setting(spark, "spark.master", "").startswith("local")


def on_connect(spark: SparkSession) -> bool:
    """Whether the session is a client of a Spark Connect server."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(spark).__mro__)
