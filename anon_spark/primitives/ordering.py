"""The order of a release: a keyed function of published content, so that nothing of the source's order remains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import KEY, ORDER, quoted
from anon_spark.engine import crossed, gathered, small_frame


def key_frame(spark: SparkSession, key: str) -> DataFrame:
    """The run key as one row to join, because a literal would appear in the event log."""
    return small_frame(spark, pa.table({KEY: [key]}))


def shuffled(release: DataFrame, key: DataFrame | None, published: Sequence[str], small: bool = False) -> DataFrame:
    """The release in an order that depends on published content and the key only.

    small: whether one task can hold the release; key: as in `with_order`.
    Guarantee: same rows; the order tells nothing of the source and does not change when a task is retried.
    Cost: one shuffle, none of a small release, and a sort inside partitions.
    """
    return spread(with_order(release, key, published), small).sortWithinPartitions(ORDER).drop(ORDER)


def spread(ordered: DataFrame, small: bool) -> DataFrame:
    """Rows with ORDER in partitions that tell nothing of the source: by that value, or all in one if they are few."""
    return gathered(ordered, True) if small else ordered.repartition(ORDER)


def with_order(release: DataFrame, key: DataFrame | None, published: Sequence[str]) -> DataFrame:
    """Append the sort value of a release: a hash of the key and the published values.

    key None: the release has the column KEY.
    """
    content = [part for name in published for part in (F.isnull(quoted(name)), F.col(quoted(name)))]
    keyed = release if key is None else crossed(release, key)
    return keyed.withColumn(ORDER, F.xxhash64(KEY, *content)).drop(KEY)


def with_key(table: pa.Table, key: DataFrame) -> pa.Table:
    """A table that is joined in, with the key in every row: that saves a join of the key alone."""
    text: Any = key.collect()[0][KEY]
    return table.append_column(KEY, pa.array([text] * table.num_rows, pa.string()))
