"""Questions to a session that work on classic Spark, Spark Connect and managed platforms."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

_IN_ONE_TASK: ContextVar[bool] = ContextVar("anon_spark_in_one_task", default=False)


def small_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A table that the driver holds (a hierarchy, a key, numbers) as a frame to be joined in.

    Guarantee: same rows and types on classic Spark and on Connect, also without rows, where Connect infers no types.
    The values are in no plan, so in no event log.
    """
    return spark.createDataFrame(table, schema=from_arrow_schema(table.schema))


def gathered(frame: DataFrame, small: bool) -> DataFrame:
    """The frame in one task if it is small: then Spark shuffles nothing, and needs one job. Same rows either way."""
    return frame.coalesce(1) if small else frame


@contextmanager
def in_one_task(small: bool) -> Iterator[None]:
    """Within the block, if the table of the run is small, no frame is broadcast: see `beside`."""
    token = _IN_ONE_TASK.set(small)
    try:
        yield
    finally:
        _IN_ONE_TASK.reset(token)


def runs_in_one_task() -> bool:
    """Whether this is a run on a small table, see `in_one_task`."""
    return _IN_ONE_TASK.get()


def beside(frame: DataFrame) -> DataFrame:
    """A small frame as the right side of a join by equal columns: every task gets it whole.

    It is broadcast, which is a job of its own. In a run on a small table, whose rows are in one task, it is joined in that
    task. Same rows either way.
    """
    return frame.coalesce(1).hint("shuffle_hash") if _IN_ONE_TASK.get() else F.broadcast(frame)


def not_broadcast(frame: DataFrame) -> DataFrame:
    """A frame to be joined by equal columns: in a run on a small table as in `beside`, else as Spark chooses."""
    return frame.coalesce(1).hint("shuffle_hash") if _IN_ONE_TASK.get() else frame


def crossed(frame: DataFrame, few: DataFrame) -> DataFrame:
    """Every row of a frame with every row of a small one; the small one as in `beside`."""
    if not _IN_ONE_TASK.get():
        return frame.crossJoin(F.broadcast(few))
    return frame.crossJoin(few.coalesce(1).hint("shuffle_replicate_nl")).coalesce(1)  # Spark forgets that it was one partition


def only_null() -> Column:
    """A list with nothing but a null. What is done with it is compiled by Spark; a function of every item is interpreted."""
    return F.array(F.lit(None).cast("string"))


def has_null(texts: Column) -> Column:
    """Whether a list of texts has a null in it; null where there is no list."""
    return F.size(F.array_intersect(texts, only_null())) > 0


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


def tasks_at_once(spark: SparkSession) -> int | None:
    """How many tasks the session runs at a time, by its settings; None where they do not tell, as on a cluster that grows."""
    local = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?", setting(spark, "spark.master", ""))
    if local is not None and not on_connect(spark):
        threads = local[1] or "1"
        return (os.cpu_count() or 1) if threads == "*" else int(threads)
    executors, cores = (setting(spark, f"spark.executor.{name}", "") for name in ("instances", "cores"))
    return int(executors) * int(cores) if executors.isdigit() and cores.isdigit() else None


def on_connect(spark: SparkSession) -> bool:
    """Whether the session is a client of a Spark Connect server."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(spark).__mro__)
