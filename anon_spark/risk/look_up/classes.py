"""Published classes as an attacker sees them: labels as texts, and how many rows share them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.reading.values import exact, private

SIZE = private("size")


def label_columns(count: int) -> list[str]:
    """The names of a class's labels, by position."""
    return [private(f"label_{at}") for at in range(count)]


def published_sizes(release: DataFrame, names: Sequence[str]) -> DataFrame:
    """One row per class: its labels, as `label_columns`, and SIZE, its rows. Cost: one shuffle of partial counts."""
    labels = label_columns(len(names))
    shown = release.select(*(exact(release, name).cast("string").alias(label) for name, label in zip(names, labels, strict=True)))
    return shown.groupBy(*labels).agg(F.count(F.lit(1)).alias(SIZE))
