"""The order of a release: a keyed function of published content, so that nothing of the source's order remains."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import KEY, ORDER, quoted
from anon_spark.engine import small_frame


def key_frame(spark: SparkSession, key: str) -> DataFrame:
    """The run key as one row to join, because a literal would appear in the event log."""
    return small_frame(spark, pa.table({KEY: [key]}))


def shuffled(release: DataFrame, key: DataFrame, published: Sequence[str]) -> DataFrame:
    """The release in an order that depends on published content and the key only.

    Guarantee: same rows; the order tells nothing of the source and does not change when a task is retried.
    Cost: one shuffle and a sort inside partitions.
    """
    return with_order(release, key, published).repartition(ORDER).sortWithinPartitions(ORDER).drop(ORDER)


def with_order(release: DataFrame, key: DataFrame, published: Sequence[str]) -> DataFrame:
    """Append the sort value of a release: a hash of the key and the published values."""
    content = [part for name in published for part in (F.isnull(quoted(name)), F.col(quoted(name)))]
    return release.crossJoin(F.broadcast(key)).withColumn(ORDER, F.xxhash64(KEY, *content)).drop(KEY)
