"""Distinct l-diversity of a published table: sensitive values per equivalence class, counted afresh."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.reading.sensitive import counted_value
from anon_spark.auditing.reading.values import exact, private, require_columns
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import ROWS
from anon_spark.model.guarantee import LDiversity
from anon_spark.pending import Pending


def verify_l_diversity(
    release: DataFrame, columns: Sequence[str], sensitive: Sequence[str], l: int  # noqa: E741 - the papers' name
) -> Verdict:
    """Whether every equivalence class of the release has at least l distinct values in every sensitive column.

    Guarantee: passed iff there is at least one row and no class has fewer than l values in any of the columns; exactly l
    is fine. Classes are told apart as `published_classes` does. Null is a value, one and the same with NaN; texts that
    their collation holds equal are one value, so no doubt counts in favour. Columns are counted one by one: that their
    combinations differ is not enough, and not needed. An empty release is not passed.
    facts: l, rows, classes, smallest, average (of each class's poorest column), rows_in_violation, and `columns`: per
    sensitive column its smallest count and the classes below l. violations and checked count classes.
    Cost: one job, one scan, one shuffle of distinct pairs (class, value), each row once per sensitive column before
    map-side aggregation; one row reaches the driver.
    """
    return l_diversity_check(release, columns, sensitive, l).get()


def l_diversity_check(
    release: DataFrame, columns: Sequence[str], sensitive: Sequence[str], l: int  # noqa: E741 - the papers' name
) -> Pending[Verdict]:
    """As `verify_l_diversity`, its counts not collected yet."""
    guarantee = LDiversity(l, columns, sensitive)
    require_columns(release, [*guarantee.columns, *guarantee.sensitive], "release")
    classes = _class_values(release, guarantee)
    counts = [F.col(_values(at)) for at in range(len(guarantee.sensitive))]
    poorest = F.least(*counts) if len(counts) > 1 else counts[0]
    below = reduce(or_, (count < l for count in counts))
    totals = classes.agg(
        F.count(F.lit(1)).alias("classes"),
        F.coalesce(F.sum(ROWS), F.lit(0)).alias("rows"),
        F.coalesce(F.min(poorest), F.lit(0)).alias("smallest"),
        F.coalesce(F.avg(poorest), F.lit(0.0)).alias("average"),
        F.count(F.when(below, F.lit(1))).alias("violations"),
        F.coalesce(F.sum(F.when(below, F.col(ROWS))), F.lit(0)).alias("rows_in_violation"),
        *(F.coalesce(F.min(count), F.lit(0)).alias(f"smallest_{at}") for at, count in enumerate(counts)),
        *(F.count(F.when(count < l, F.lit(1))).alias(f"violations_{at}") for at, count in enumerate(counts)),
    )
    return Pending.of(totals, lambda rows: _verdict(rows[0], guarantee, classes.where(below)))


def _verdict(totals: Row, guarantee: LDiversity, poor_classes: DataFrame) -> Verdict:
    least = guarantee.l
    facts: dict[str, Any] = {
        "l": least,
        **{name: totals[name] for name in ("rows", "classes", "smallest", "average", "rows_in_violation")},
        "columns": {
            name: {"smallest": totals[f"smallest_{at}"], "violations": totals[f"violations_{at}"]}
            for at, name in enumerate(guarantee.sensitive)
        },
    }
    rows, violations, counted = totals["rows"], totals["violations"], totals["classes"]
    if not rows:
        detail = "the release is empty, there is nothing to publish."
    elif violations:
        failing = [name for name, counts_of_column in facts["columns"].items() if counts_of_column["violations"]]
        detail = (
            f"{violations} of {counted} classes have fewer than {least} values in {', '.join(failing)} "
            f"({facts['rows_in_violation']} of {rows} rows, fewest values {facts['smallest']})."
        )
    else:
        names = ", ".join(guarantee.sensitive)
        detail = f"all {counted} classes have at least {least} values in {names} (fewest {facts['smallest']}, {rows} rows)."
    return Verdict(
        kind=Kind.PROMISE,
        name=f"distinct {least}-diversity",
        passed=rows > 0 and violations == 0,
        violations=violations,
        checked=counted,
        detail=detail,
        facts=facts,
        frame=poor_classes,
    )


def _class_values(release: DataFrame, guarantee: LDiversity) -> DataFrame:
    """One row per equivalence class: its published values, ROWS, and per sensitive column how many values it has."""
    keys = [exact(release, name).alias(private(f"key_{at}")) for at, name in enumerate(guarantee.columns)]
    values = [counted_value(release, name).alias(_values(at)) for at, name in enumerate(guarantee.sensitive)]
    grouped = release.select(*keys, *values).groupBy(*(private(f"key_{at}") for at in range(len(keys))))
    counts = [
        (F.countDistinct(_values(at)) + F.max(F.isnull(_values(at)).cast("long"))).alias(_values(at))
        for at in range(len(values))
    ]
    classes = grouped.agg(F.count(F.lit(1)).alias(ROWS), *counts)
    names = [F.col(private(f"key_{at}")).alias(name) for at, name in enumerate(guarantee.columns)]
    return classes.select(*names, ROWS, *(_values(at) for at in range(len(values))))


def _values(at: int) -> str:
    return private(f"values_{at}")
