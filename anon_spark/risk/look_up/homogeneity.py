"""Homogeneity: what k-anonymity does not cover, a class whose rows all share one sensitive value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.reading.values import content_hash, exact
from anon_spark.columns import PREFIX, ROWS
from anon_spark.pending import Pending


@dataclass(frozen=True)
class Homogeneity:
    """One sensitive column: published rows and classes, and those in classes with only one value of it."""

    column: str
    rows: int
    classes: int
    homogeneous_rows: int
    homogeneous_classes: int

    @property
    def share(self) -> float:
        """Share of published rows whose sensitive value is plain to see from their class; 0 for an empty release."""
        return self.homogeneous_rows / self.rows if self.rows else 0.0


def homogeneity(release: DataFrame, columns: Sequence[str], sensitive: Sequence[str]) -> list[Homogeneity]:
    """Per sensitive column, how much of the release sits in classes with one sensitive value (null is a value).

    Cost: one job, one scan and one groupBy with map-side aggregation for all columns together; one row reaches the driver.
    Values are compared by 64-bit hash.
    """
    return homogeneity_to_be(release, columns, sensitive).get()


def homogeneity_to_be(release: DataFrame, columns: Sequence[str], sensitive: Sequence[str]) -> Pending[list[Homogeneity]]:
    """As `homogeneity`, its counts not collected yet."""
    if not sensitive:
        return Pending.known([])
    keys = [exact(release, name).alias(f"{PREFIX}{at}") for at, name in enumerate(columns)]
    values = [content_hash([exact(release, name)]).alias(f"{PREFIX}value_{at}") for at, name in enumerate(sensitive)]
    classes = (
        release.select(*keys, *values)
        .groupBy(*(f"{PREFIX}{at}" for at in range(len(keys))))
        .agg(
            F.count(F.lit(1)).alias(ROWS),
            *((F.min(f"{PREFIX}value_{at}") == F.max(f"{PREFIX}value_{at}")).alias(f"one_{at}") for at in range(len(values))),
        )
    )
    totals = classes.agg(
        F.coalesce(F.sum(ROWS), F.lit(0)).alias("rows"),
        F.count(F.lit(1)).alias("classes"),
        *(F.coalesce(F.sum(F.when(F.col(f"one_{at}"), F.col(ROWS))), F.lit(0)).alias(f"rows_{at}") for at in range(len(values))),
        *(F.count(F.when(F.col(f"one_{at}"), F.lit(1))).alias(f"classes_{at}") for at in range(len(values))),
    )
    return Pending.of(totals, lambda rows: _of_columns(rows[0], sensitive))


def _of_columns(totals: Row, sensitive: Sequence[str]) -> list[Homogeneity]:
    return [
        Homogeneity(name, totals["rows"], totals["classes"], totals[f"rows_{at}"], totals[f"classes_{at}"])
        for at, name in enumerate(sensitive)
    ]
