"""Chances of an attack on sampled tuples, as sums over the rows that have these tuples."""

from __future__ import annotations

import math

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from anon_spark.columns import ROWS


def sampled_sums(is_found: Column) -> list[Column]:
    """Sums: sampled tuples, their rows, the rows of tuples that are found, and the highest chance with the raw table."""
    return [
        F.count(F.lit(1)).alias("tuples"),
        F.coalesce(F.sum(ROWS), F.lit(0)).alias("rows"),
        F.coalesce(F.sum(F.when(is_found, F.col(ROWS))), F.lit(0)).alias("found"),
        F.coalesce(F.max(1 / F.col(ROWS)), F.lit(0.0)).alias("before_worst"),
    ]


def squares(chance: Column) -> list[Column]:
    """Sums over sampled tuples and their rows that `error_of_ratio` needs."""
    weight = F.col(ROWS).cast("double") * F.col(ROWS)
    sums = {"squares": weight * chance * chance, "cross": weight * chance, "weights": weight}
    return [F.coalesce(F.sum(value), F.lit(0.0)).alias(name) for name, value in sums.items()]


def error_of_ratio(sums: Row, total: float) -> float | None:
    """Standard error of total / rows where whole tuples were sampled; None for fewer than two."""
    if sums["tuples"] < 2:
        return None
    rate = total / sums["rows"]
    spread = max(0.0, sums["squares"] - 2 * rate * sums["cross"] + rate**2 * sums["weights"])
    return float(f"{math.sqrt(spread) / sums['rows']:.6g}")
