"""k-anonymity of a published table: equivalence classes of published values, counted afresh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.reading.classes import published_classes
from anon_spark.auditing.reading.values import private, require_columns
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import PERSONS, ROWS
from anon_spark.model.guarantee import KAnonymity
from anon_spark.pending import Pending

_BUCKET, _CLASSES, _SMALLEST, _UNITS = private("bucket"), private("classes"), private("smallest"), private("units")


def verify_k_anonymity(
    release: DataFrame,
    columns: Sequence[str],
    k: int,
    person: str | None = None,
    classes: DataFrame | None = None,
) -> Verdict:
    """Whether every equivalence class of the release has at least k rows (with `person`: k distinct persons).

    classes: the `published_classes` of just this release, when they were counted and stored before.
    Guarantee: passed iff there is at least one row and no class below k; a class of exactly k is fine. An empty release
    has no violation and is not passed: there is nothing to publish.
    facts: rows, classes, unit, smallest, average, and `histogram`: (from, to, classes, rows) for sizes k to 2k-1, 2k to
    4k-1 and so on; no bucket starts below k. violations and checked count classes.
    Cost: one job, one scan and the shuffle of `published_classes`; at most 65 rows reach the driver.
    """
    return k_anonymity_check(release, columns, k, person, classes).get()


def k_anonymity_check(
    release: DataFrame,
    columns: Sequence[str],
    k: int,
    person: str | None = None,
    classes: DataFrame | None = None,
    least: int = 2,
) -> Pending[Verdict]:
    """As `verify_k_anonymity`, its counts not collected yet. least: the least k, 1 where a population protects."""
    guarantee = KAnonymity(k, columns, person, least)
    require_columns(release, [*guarantee.columns, *([person] if person is not None else [])], "release")
    if classes is None:
        classes = published_classes(release, guarantee.columns, person)
    size = F.col(ROWS if person is None else PERSONS)
    small_classes = classes.where(size < k)
    return Pending.of(classes_by_size(classes, size, k), lambda rows: _verdict(rows, guarantee, small_classes))


def classes_by_size(classes: DataFrame, size: Column, k: int, more: Sequence[Column] = ()) -> DataFrame:
    """Classes of sizes below k, k to 2k-1, 2k to 4k-1 and so on: how many, their rows, the least size. more: other sums."""
    # number of doublings from k, by integers: the length of size div k in binary digits; below k it is -1
    doublings = F.when(size < k, F.lit(-1)).otherwise(F.length(F.bin(F.floor(size / k).cast("long"))) - 1)
    counts = [F.count(F.lit(1)).alias(_CLASSES), F.sum(ROWS).alias(ROWS), F.sum(size).alias(_UNITS), F.min(size).alias(_SMALLEST)]
    return classes.groupBy(doublings.alias(_BUCKET)).agg(*counts, *more).orderBy(_BUCKET)


def buckets_of(buckets: Sequence[Row]) -> dict[int, int]:
    """Rows by doublings of k of the size of their class, -1 below k, from `classes_by_size`."""
    return {row[_BUCKET]: row[ROWS] for row in buckets}


def size_facts(buckets: Sequence[Row], guarantee: KAnonymity) -> dict[str, Any]:
    """Rows, classes and their sizes, from `classes_by_size`."""
    k = guarantee.k
    counted = sum(row[_CLASSES] for row in buckets)
    small = next((row for row in buckets if row[_BUCKET] < 0), None)
    return {
        "k": k,
        "unit": guarantee.unit,
        "rows": sum(row[ROWS] for row in buckets),
        "classes": counted,
        "smallest": min((row[_SMALLEST] for row in buckets), default=0),
        "average": sum(row[_UNITS] for row in buckets) / counted if counted else 0.0,
        "rows_in_violation": int(small[ROWS]) if small is not None else 0,
        "histogram": [
            (k << row[_BUCKET], (k << (row[_BUCKET] + 1)) - 1, row[_CLASSES], row[ROWS])
            for row in buckets
            if row[_BUCKET] >= 0
        ],
    }


def _verdict(buckets: Sequence[Row], guarantee: KAnonymity, small_classes: DataFrame) -> Verdict:
    """The verdict on classes that were counted by size."""
    k, facts = guarantee.k, size_facts(buckets, guarantee)
    rows, counted = facts["rows"], facts["classes"]
    violations = sum(int(row[_CLASSES]) for row in buckets if row[_BUCKET] < 0)
    if not rows:
        detail = "the release is empty, there is nothing to publish."
    elif violations:
        detail = (
            f"{violations} of {counted} classes have fewer than {k} {guarantee.unit} "
            f"({facts['rows_in_violation']} of {rows} rows, smallest class {facts['smallest']})."
        )
    else:
        detail = f"all {counted} classes have at least {k} {guarantee.unit} (smallest {facts['smallest']}, {rows} rows)."
    return Verdict(
        kind=Kind.PROMISE,
        name=f"{k}-anonymity",
        passed=rows > 0 and violations == 0,
        violations=violations,
        checked=counted,
        detail=detail,
        facts=facts,
        frame=small_classes,
    )
