"""Published classes as an attacker sees them: labels as texts, and how many rows share them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.reading.values import exact, private
from anon_spark.columns import ROWS

SIZE = private("size")


def label_columns(count: int) -> list[str]:
    """The names of a class's labels, by position."""
    return [private(f"label_{at}") for at in range(count)]


def published_sizes(release: DataFrame, names: Sequence[str], classes: DataFrame | None = None) -> DataFrame:
    """One row per class: its labels, as `label_columns`, and SIZE, its rows.

    classes: the classes with their ROWS, where they are counted already. Cost: else one shuffle of partial counts.
    """
    counted = release if classes is None else classes
    named = zip(names, label_columns(len(names)), strict=True)
    labels = [exact(counted, name).cast("string").alias(label) for name, label in named]
    if classes is not None:
        return classes.select(*labels, F.col(ROWS).alias(SIZE))
    return release.select(*labels).groupBy(*label_columns(len(names))).agg(F.count(F.lit(1)).alias(SIZE))
