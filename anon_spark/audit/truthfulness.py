"""Truthfulness of a full-domain recoding without row ids: the multiset of published rows is the source's, recoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from anon_spark.audit.accounting import RowAccount
from anon_spark.audit.classes import MARK, mark, published_classes
from anon_spark.audit.recode import KEPT, NULL, UNSEEN, with_recoded
from anon_spark.audit.values import exact, private, quoted, require_columns
from anon_spark.audit.verdict import Verdict
from anon_spark.columns import ROWS
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy

_STATUS = private("status")
_SUMS = tuple(private(f"{name}_sum") for name in ("source", "source_mark", "tuples", "single", "published", "mark"))
_SOURCE, _SOURCE_MARK, _TUPLES, _SINGLE, _PUBLISHED, _PUBLISHED_MARK = _SUMS


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
    if nulls not in ("value", "suppress"):
        raise ConfigurationError("nulls must be 'value' or 'suppress'.")
    if not recoded:
        raise ConfigurationError("A recoding needs at least one quasi-identifier, none was given.")
    names = list(recoded)
    require_columns(source, [*names, *unchanged], "source")
    require_columns(release, [*names, *unchanged], "release")
    other = [name for name in unchanged if source.schema[name].dataType != release.schema[name].dataType]

    if classes is None:
        classes = published_classes(release, names, unchanged=unchanged)
    compared = _compared(source, classes, recoded, unchanged, nulls)
    published, expected = F.col(_PUBLISHED), F.col(_SOURCE)
    kept = F.col(_STATUS) == KEPT
    faults = {
        "invented": (published > 0) & (expected == 0),
        "partial": (published > 0) & (published < expected),
        "excess": (expected > 0) & (published > expected),
        "altered": (published > 0) & (published == expected) & (F.col(_SOURCE_MARK) != F.col(_PUBLISHED_MARK)),
    }
    absent = kept & (published == 0)
    found = compared.agg(
        _total(F.lit(True), expected).alias("source"),
        _total(F.lit(True), published).alias("published"),
        _total(absent, expected).alias("suppressed"),
        _total(F.col(_STATUS) == NULL, expected).alias("dropped_nulls"),
        _total(F.col(_STATUS) == UNSEEN, expected).alias("dropped_unseen"),
        _total(absent, F.lit(1)).alias("suppressed_classes"),
        _total(published > 0, F.lit(1)).alias("classes"),
        _total(F.lit(True), F.col(_TUPLES)).alias("source_tuples"),
        _total(F.lit(True), F.col(_SINGLE)).alias("source_unique"),
        *(_total(fault, F.lit(1)).alias(name) for name, fault in faults.items()),
    ).collect()[0]

    account = RowAccount(
        source=found["source"],
        published=found["published"],
        suppressed=found["suppressed"],
        dropped_nulls=found["dropped_nulls"],
        dropped_unseen=found["dropped_unseen"],
        suppressed_classes=found["suppressed_classes"],
    )
    violations = sum(found[name] for name in faults) + len(other)
    said = {
        "invented": "have no source row that recodes to them",
        "partial": "are published only in part",
        "excess": "have more rows than the source",
        "altered": "have other values in unchanged columns",
    }
    parts = [f"{found[name]} of {found['classes']} classes {text}." for name, text in said.items() if found[name]]
    if other:
        parts.append(f"{len(other)} unchanged columns have another type than in the source: {', '.join(other)}.")
    any_fault = F.lit(False)
    for fault in faults.values():
        any_fault = any_fault | fault
    return (
        Verdict(
            name="truthfulness",
            passed=violations == 0,
            violations=violations,
            checked=found["classes"],
            detail=" ".join(parts) or f"all {found['classes']} classes are the source's rows, recoded.",
            facts={name: found[name] for name in (*faults, "classes", "source_tuples", "source_unique")},
            frame=compared.where(any_fault).select(
                *(F.col(_label(at)).alias(name) for at, name in enumerate(names)),
                expected.alias("rows_in_source"),
                published.alias("rows_in_release"),
            ),
        ),
        account,
    )


def _label(at: int) -> str:
    return private(f"label_{at}")


def _raw(at: int) -> str:
    return private(f"raw_{at}")


def _total(condition: Column, value: Column) -> Column:
    return F.coalesce(F.sum(F.when(condition, value).otherwise(F.lit(0))), F.lit(0)).cast("long")


def source_classes(
    source: DataFrame, recoded: Mapping[str, tuple[Hierarchy, int]], unchanged: Sequence[str], nulls: str
) -> DataFrame:
    """The source's distinct tuples with row count and hash sum, each recoded; dropped ones have a status, no labels.

    Cost: one shuffle of distinct raw tuples, one broadcast join per quasi-identifier; no action.
    """
    raw = [exact(source, name).alias(_raw(at)) for at, name in enumerate(recoded)]
    frame = (
        source.select(*raw, mark(source, unchanged).alias(_SOURCE_MARK))
        .groupBy(*(_raw(at) for at in range(len(raw))))
        .agg(F.count(F.lit(1)).alias(_SOURCE), F.sum(_SOURCE_MARK).alias(_SOURCE_MARK))
        .withColumn(_STATUS, F.lit(KEPT))
    )
    for at, (hierarchy, level) in enumerate(recoded.values()):
        frame = with_recoded(frame, _raw(at), _label(at), _STATUS, hierarchy, level)
    unseen = F.when(F.col(_STATUS).bitwiseAND(UNSEEN) != 0, F.lit(UNSEEN)).otherwise(F.lit(KEPT))
    with_null = F.col(_STATUS).bitwiseAND(NULL) != 0
    status = F.when(with_null, F.lit(NULL)).otherwise(unseen) if nulls == "suppress" else unseen
    one, zero = F.lit(1).cast("long"), F.lit(0).cast("long")
    return frame.withColumn(_STATUS, status).select(
        *(F.when(F.col(_STATUS) == KEPT, F.col(_label(at))).alias(_label(at)) for at in range(len(raw))),
        _STATUS,
        _SOURCE,
        _SOURCE_MARK,
        one.alias(_TUPLES),
        F.when(F.col(_SOURCE) == 1, one).otherwise(zero).alias(_SINGLE),
        zero.alias(_PUBLISHED),
        zero.alias(_PUBLISHED_MARK),
    )


def _compared(
    source: DataFrame,
    classes: DataFrame,
    recoded: Mapping[str, tuple[Hierarchy, int]],
    unchanged: Sequence[str],
    nulls: str,
) -> DataFrame:
    """One row per class of either side with both sides' sums: a null-safe full outer join, as union and groupBy."""
    labels = [F.col(quoted(name)).cast(StringType()).alias(_label(at)) for at, name in enumerate(recoded)]
    zero = F.lit(0).cast("long")
    published = classes.select(
        *labels,
        F.lit(KEPT).alias(_STATUS),
        *(zero.alias(name) for name in (_SOURCE, _SOURCE_MARK, _TUPLES, _SINGLE)),
        F.col(ROWS).alias(_PUBLISHED),
        F.col(MARK).alias(_PUBLISHED_MARK),
    )
    both = source_classes(source, recoded, unchanged, nulls).unionByName(published)
    keys = [_label(at) for at in range(len(labels))]
    return both.groupBy(*keys, _STATUS).agg(*(F.sum(name).alias(name) for name in _SUMS))
