"""Truthfulness of a full-domain recoding without row ids: the multiset of published rows is the source's, recoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Literal

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from anon_spark.auditing.reading.classes import MARK, mark, published_classes
from anon_spark.auditing.reading.recode import KEPT, NULL, STATUS, UNSEEN, Climb, with_labels, with_scope
from anon_spark.auditing.reading.sums import total
from anon_spark.auditing.reading.values import exact, private, quoted, require_columns, shape
from anon_spark.auditing.release.rows import RowAccount
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import ROWS
from anon_spark.engine import gathered
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.pending import Pending

SUMS = tuple(private(f"{name}_sum") for name in ("source", "source_mark", "tuples", "single", "published", "mark"))
SOURCE, SOURCE_MARK, TUPLES, SINGLE, PUBLISHED, PUBLISHED_MARK = SUMS


def verify_recoding(
    source: DataFrame,
    release: DataFrame,
    recoded: Mapping[str, tuple[Hierarchy, int]],
    unchanged: Sequence[str],
    nulls: Literal["value", "suppress"] = "value",
    classes: DataFrame | None = None,
) -> tuple[Verdict, RowAccount]:
    """Whether the release is the source with each quasi-identifier at its level, whole classes left out, no more.

    recoded: quasi-identifier → (hierarchy, level); unchanged: columns published as they are; nulls: what the run did
    with a null quasi-identifier (NaN counts as null); classes: the `published_classes` of just this release and these
    unchanged columns, when they were counted and stored before.
    Guarantee: passed iff every class of the release has exactly as many rows as the source has rows that recode to it
    and the same multiset of unchanged values, up to a 32-bit hash per row. A class that is absent altogether is
    suppressed, and counted; one that is there in part, changed, too large or not an ancestor is a violation.
    violations and checked count classes; facts: classes by kind of fault, source_tuples and source_unique (distinct raw
    tuples, and rows that are alone on theirs).
    Cost: one job, one scan of each table, one shuffle of the source's distinct tuples and one of classes, both with
    map-side aggregation; one row reaches the driver.
    """
    return recoding_check(source, release, recoded, unchanged, nulls, classes).get()


def recoding_check(
    source: DataFrame,
    release: DataFrame,
    recoded: Mapping[str, tuple[Hierarchy, int]],
    unchanged: Sequence[str],
    nulls: Literal["value", "suppress"] = "value",
    classes: DataFrame | None = None,
    small: bool = False,
) -> Pending[tuple[Verdict, RowAccount]]:
    """As `verify_recoding`, its counts not collected yet. small: whether one task can hold both tables."""
    names = list(recoded)
    other = check_recoding(source, release, names, unchanged, nulls)
    if classes is None:
        classes = published_classes(release, names, unchanged=unchanged)
    compared = compare(source_classes(source, recoded, unchanged, nulls), classes, names, small)
    faults = class_faults()
    absent = (F.col(STATUS) == KEPT) & (F.col(PUBLISHED) == 0)
    totals = compared.agg(
        *row_totals(),
        total(absent, F.col(SOURCE)).alias("suppressed"),
        total(absent, F.lit(1)).alias("suppressed_classes"),
        *(total(fault, F.lit(1)).alias(name) for name, fault in faults.items()),
    )
    faulty = faulty_classes(compared, faults, names)
    return Pending.of(totals, lambda rows: _verdict(rows[0], list(faults), other, faulty))


def _verdict(totals: Row, faults: Sequence[str], other: Sequence[str], faulty: DataFrame) -> tuple[Verdict, RowAccount]:
    """The verdict on classes whose faults were counted. other: unchanged columns of another type."""
    account = RowAccount(
        source=totals["source"],
        published=totals["published"],
        suppressed=totals["suppressed"],
        dropped_nulls=totals["dropped_nulls"],
        dropped_unseen=totals["dropped_unseen"],
        suppressed_classes=totals["suppressed_classes"],
    )
    violations = sum(totals[name] for name in faults) + len(other)
    parts = [*said_of_classes(totals), *said_of_types(other)]
    return (
        Verdict(
            kind=Kind.TRUTH,
            name="truthfulness",
            passed=violations == 0,
            violations=violations,
            checked=totals["classes"],
            detail=" ".join(parts) or f"all {totals['classes']} classes are the source's rows, recoded.",
            facts={name: totals[name] for name in (*faults, "classes", "source_tuples", "source_unique")},
            frame=faulty,
        ),
        account,
    )


# -- what every recoding is compared by -----------------------------------------------------------------------------


def check_recoding(
    source: DataFrame, release: DataFrame, names: Sequence[str], unchanged: Sequence[str], nulls: str
) -> list[str]:
    """Refuse arguments that no release could meet; returns the unchanged columns that changed their type."""
    if nulls not in ("value", "suppress"):
        raise ConfigurationError("nulls must be 'value' or 'suppress'.")
    if not names:
        raise ConfigurationError("A recoding needs at least one quasi-identifier, none was given.")
    require_columns(source, [*names, *unchanged], "source")
    require_columns(release, [*names, *unchanged], "release")
    kinds = [{name: shape(frame.schema[name].dataType) for name in unchanged} for frame in (source, release)]
    return [name for name in unchanged if kinds[0][name] != kinds[1][name]]


def class_faults() -> dict[str, Column]:
    """Kind of fault → whether a row of `compare` has it; a class has at most one."""
    published, expected = F.col(PUBLISHED), F.col(SOURCE)
    return {
        "invented": (published > 0) & (expected == 0),
        "partial": (published > 0) & (published < expected),
        "excess": (expected > 0) & (published > expected),
        "altered": (published > 0) & (published == expected) & (F.col(SOURCE_MARK) != F.col(PUBLISHED_MARK)),
    }


def row_totals() -> list[Column]:
    """Sums over the rows of `compare` that every verdict and row account names."""
    return [
        total(F.lit(True), F.col(SOURCE)).alias("source"),
        total(F.lit(True), F.col(PUBLISHED)).alias("published"),
        total(F.col(STATUS) == NULL, F.col(SOURCE)).alias("dropped_nulls"),
        total(F.col(STATUS) == UNSEEN, F.col(SOURCE)).alias("dropped_unseen"),
        total(F.col(PUBLISHED) > 0, F.lit(1)).alias("classes"),
        total(F.lit(True), F.col(TUPLES)).alias("source_tuples"),
        total(F.lit(True), F.col(SINGLE)).alias("source_unique"),
    ]


def said_of_classes(totals: Row) -> list[str]:
    """One sentence per kind of fault, where there are any."""
    texts = {
        "invented": "have no source row that recodes to them",
        "partial": "are published only in part",
        "excess": "have more rows than the source",
        "altered": "have other values in unchanged columns",
    }
    return [f"{totals[name]} of {totals['classes']} classes {text}." for name, text in texts.items() if totals[name]]


def said_of_types(other: Sequence[str]) -> list[str]:
    """One sentence, if any unchanged column has another type."""
    many = f"{len(other)} unchanged columns have another type than in the source: {', '.join(other)}."
    return [many] if other else []


def faulty_classes(compared: DataFrame, faults: Mapping[str, Column], names: Sequence[str]) -> DataFrame:
    """The classes with any of the faults: labels and both sides' rows."""
    return compared.where(reduce(or_, faults.values())).select(
        *(F.col(label_column(at)).alias(name) for at, name in enumerate(names)),
        F.col(SOURCE).alias("rows_in_source"),
        F.col(PUBLISHED).alias("rows_in_release"),
    )


def label_column(at: int) -> str:
    return private(f"label_{at}")


def raw_column(at: int) -> str:
    return private(f"raw_{at}")


def source_tuples(source: DataFrame, names: Sequence[str], unchanged: Sequence[str]) -> DataFrame:
    """The source's distinct raw tuples with row count and hash sum, and a status for the look-ups to fill.

    Cost: one shuffle of distinct raw tuples; no action.
    """
    raw = [exact(source, name).alias(raw_column(at)) for at, name in enumerate(names)]
    return (
        source.select(*raw, mark(source, unchanged).alias(SOURCE_MARK))
        .groupBy(*(raw_column(at) for at in range(len(raw))))
        .agg(F.count(F.lit(1)).alias(SOURCE), F.sum(SOURCE_MARK).alias(SOURCE_MARK))
        .withColumn(STATUS, F.lit(KEPT))
    )


def tuple_sums() -> list[Column]:
    """The columns SUMS of a source tuple, nothing published yet."""
    one, zero = F.lit(1).cast("long"), F.lit(0).cast("long")
    return [
        F.col(SOURCE),
        F.col(SOURCE_MARK),
        one.alias(TUPLES),
        F.when(F.col(SOURCE) == 1, one).otherwise(zero).alias(SINGLE),
        zero.alias(PUBLISHED),
        zero.alias(PUBLISHED_MARK),
    ]


def source_classes(
    source: DataFrame, recoded: Mapping[str, tuple[Hierarchy, int]], unchanged: Sequence[str], nulls: str
) -> DataFrame:
    """The source's distinct tuples with row count and hash sum, each recoded; dropped ones have a status, no labels.

    Cost: one shuffle of distinct raw tuples, one broadcast join per quasi-identifier; no action.
    """
    frame = source_tuples(source, list(recoded), unchanged)
    climbs = [Climb(raw_column(at), label_column(at), *goal) for at, goal in enumerate(recoded.values())]
    kept = F.col(STATUS) == KEPT
    return with_scope(with_labels(frame, climbs), nulls).select(
        *(F.when(kept, F.col(label_column(at))).alias(label_column(at)) for at in range(len(recoded))),
        STATUS,
        *tuple_sums(),
    )


def compare(expected: DataFrame, classes: DataFrame, names: Sequence[str], small: bool = False) -> DataFrame:
    """One row per class of either side with both sides' sums: a null-safe full outer join, as union and groupBy.

    expected: labels, STATUS, SUMS and perhaps more sums; classes: what `published_classes` counted; small: whether one task can
    hold them.
    """
    keys = [label_column(at) for at in range(len(names))]
    sums = [name for name in expected.columns if name not in (*keys, STATUS)]
    zero = F.lit(0).cast("long")
    published = classes.select(
        *(F.col(quoted(name)).cast(StringType()).alias(key) for key, name in zip(keys, names, strict=True)),
        F.lit(KEPT).alias(STATUS),
        *(zero.alias(name) for name in sums if name not in (PUBLISHED, PUBLISHED_MARK)),
        F.col(ROWS).alias(PUBLISHED),
        F.col(MARK).alias(PUBLISHED_MARK),
    )
    both = gathered(expected.unionByName(published), small)
    return both.groupBy(*keys, STATUS).agg(*(F.sum(name).alias(name) for name in sums))
