"""What must hold of a local recoding whose assignment is gone: each class covers enough rows of the source.

The run's own audit knows which tuple became which class (local_recoding.py); this one judges a current release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Literal

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from anon_spark.auditing.reading.classes import MARK, mark, published_classes
from anon_spark.auditing.reading.labels import Labels, packed
from anon_spark.auditing.reading.recode import KEPT, NULL, STATUS, UNSEEN
from anon_spark.auditing.reading.sampling import smallest_hashes
from anon_spark.auditing.reading.sums import total
from anon_spark.auditing.reading.values import private, quoted
from anon_spark.auditing.release.rows import RowAccount
from anon_spark.auditing.truth.full_domain import (
    PUBLISHED,
    SOURCE,
    SOURCE_MARK,
    check_recoding,
    said_of_types,
)
from anon_spark.auditing.truth.local_recoding import assignment_columns, path_column, source_leaves
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import ROWS
from anon_spark.engine import beside, crossed, setting
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.hierarchy.checks import ambiguous_labels

MOST_VECTORS = 2_000  # level vectors of a current release that are checked for coverage
SOME_TASKS = 64  # where the session does not say how many: a platform may choose by itself
MOST_BROADCAST = 1_000_000  # classes that are sent to the tuples instead of shuffling the tuples
NECESSARY = "Necessary conditions only: which tuple became which class is not known without the run's private assignment."

_LEVELS, _COVERING = (private(name) for name in ("levels", "covering"))


def verify_covered(
    source: DataFrame,
    release: DataFrame,
    hierarchies: Mapping[str, Hierarchy],
    unchanged: Sequence[str],
    nulls: Literal["value", "suppress"] = "value",
    suppresses: bool = False,
) -> tuple[Verdict, RowAccount]:
    """Whether a release could be a local recoding of the source, without the assignment that would prove it.

    suppresses: whether rows of the source in scope may be missing; they count as suppressed.
    Guarantee: necessary conditions only. Passed iff every published label is one of its hierarchy (null is, unless it is
    suppressed), the source has as many rows in scope as are published, the two have the same multiset of unchanged
    values (up to a 32-bit hash per row), and every class has at least as many source rows below its labels as it has
    rows. Where rows are suppressed, the release's unchanged values must be among those of the source, as often as it shows
    them. A release with unchanged values exchanged between classes, or with rows moved to another class that covers
    enough, passes. Above MOST_VECTORS combinations of levels, the last condition is checked on that many, always the
    same ones, and `detail` says so. violations counts classes, and one each for totals and unchanged values; checked
    counts classes. Labels that mean different leaves on two levels raise.
    Cost: two jobs that scan both tables; the second generalizes the distinct source tuples once per combination of
    levels in the release; one row of each reaches the driver.
    """
    names = list(hierarchies)
    other = check_recoding(source, release, names, unchanged, nulls)
    _refuse_ambiguous(hierarchies)
    labels = [Labels.of(hierarchy) for hierarchy in hierarchies.values()]
    tuples = source_leaves(source, hierarchies, unchanged, nulls)
    classes = _numbered(published_classes(release, names, unchanged=unchanged), names, labels, nulls)
    totals = _totals(tuples, classes)
    in_scope = totals["source"] - totals["dropped_nulls"] - totals["dropped_unseen"]
    suppressed = max(0, in_scope - totals["published"]) if suppresses else 0
    altered = totals["published"] == in_scope and totals["mark"] != totals["source_mark"]
    if suppressed:
        altered = _shows_others(source, release, unchanged)

    sampled = totals["vectors"] > MOST_VECTORS
    known = classes.where(F.isnotnull(_LEVELS))
    covered = _covered(tuples, known, labels, sampled, totals["classes"] <= MOST_BROADCAST)
    short = F.col(PUBLISHED) > F.col(_COVERING)
    missing = F.col(PUBLISHED) - F.col(_COVERING)
    counted = covered.agg(
        total(short, F.lit(1)).alias("uncovered"),
        total(short, missing).alias("uncovered_rows"),
        total(F.lit(True), F.lit(1)).alias("covered_classes"),
    ).collect()[0]

    faults = {
        "unknown": totals["unknown"],
        "uncovered": counted["uncovered"],
        "totals": int(totals["published"] + suppressed != in_scope),
        "altered": int(altered),
    }
    texts = {
        "unknown": f"{faults['unknown']} of {totals['classes']} classes have a label that no hierarchy knows.",
        "uncovered": (
            f"{faults['uncovered']} of {counted['covered_classes']} classes have more rows than the source has below their "
            f"labels ({counted['uncovered_rows']} rows too many)."
        ),
        "totals": f"{totals['published']} rows are published, the source has {in_scope} in scope.",
        "altered": "the unchanged columns do not hold the source's values.",
    }
    parts = [*(text for name, text in texts.items() if faults[name]), *said_of_types(other)]
    if not parts:
        parts = [f"all {counted['covered_classes']} checked classes are covered by enough source rows, totals agree."]
    if sampled:
        parts.append(f"Coverage was checked for {MOST_VECTORS} of {totals['vectors']} combinations of levels.")
    violations = sum(faults.values()) + len(other)
    return (
        Verdict(
            kind=Kind.TRUTH,
            name="coverage",
            passed=violations == 0,
            violations=violations,
            checked=totals["classes"],
            detail=" ".join([*parts, NECESSARY]),
            facts={
                **faults,
                "uncovered_rows": counted["uncovered_rows"],
                "classes": totals["classes"],
                "covered_classes": counted["covered_classes"],
                "level_vectors": totals["vectors"],
                "level_vectors_checked": min(totals["vectors"], MOST_VECTORS),
            },
            frame=covered.where(short)
            .join(known, [name for name in covered.columns if name not in (_COVERING, PUBLISHED)])
            .select(
                *(F.col(quoted(name)) for name in names),
                F.col(_COVERING).alias("rows_in_source"),
                F.col(PUBLISHED).alias("rows_in_release"),
            ),
        ),
        replace(RowAccount.without_suppression(totals), suppressed=suppressed),
    )


def _number(at: int) -> str:
    return private(f"number_{at}")


def _refuse_ambiguous(hierarchies: Mapping[str, Hierarchy]) -> None:
    """Refuse labels that mean different values on two levels. Null is under the root only, so it cannot be ambiguous."""
    for name, hierarchy in hierarchies.items():
        values = hierarchy.codes[:, : len(hierarchy.keys)]
        ambiguous = sum(count for _, _, count in ambiguous_labels(values, hierarchy.labels))
        if ambiguous:
            raise ConfigurationError(
                f"{ambiguous} labels of {name} mean different values on two levels: a published one does not say which. "
                "Give labels that mean different things different names.",
                labels=ambiguous,
            )


def _numbered(classes: DataFrame, names: Sequence[str], labels: Sequence[Labels], nulls: str) -> DataFrame:
    """The published classes by their labels, as keys of `packed`, and _LEVELS (null when a label is unknown)."""
    frame, (_, level) = classes, assignment_columns(len(names))
    for at, (name, attribute_labels) in enumerate(zip(names, labels, strict=True)):
        text = F.col(quoted(name)).cast(StringType())
        frame = attribute_labels.with_number(frame, text, _number(at), level[at], nulls)
    known = reduce(and_, (F.isnotnull(name) for name in level))
    return frame.select(
        *(F.col(quoted(name)) for name in names),
        *packed([F.col(_number(at)) for at in range(len(names))], labels),
        ROWS,
        MARK,
        F.when(known, F.array(*level)).alias(_LEVELS),
    )


def _shows_others(source: DataFrame, release: DataFrame, unchanged: Sequence[str]) -> bool:
    """Whether the release shows unchanged values more often than the source has them. Cost: one job, a shuffle of them."""
    one = F.lit(1).cast("long")
    there = source.select(mark(source, unchanged).alias(MARK), one.alias(SOURCE), (one * 0).alias(PUBLISHED))
    shown = release.select(mark(release, unchanged).alias(MARK), (one * 0).alias(SOURCE), one.alias(PUBLISHED))
    counted = there.unionByName(shown).groupBy(MARK).agg(F.sum(SOURCE).alias(SOURCE), F.sum(PUBLISHED).alias(PUBLISHED))
    return not counted.where(F.col(PUBLISHED) > F.col(SOURCE)).isEmpty()


def _totals(tuples: DataFrame, classes: DataFrame) -> Row:
    """The totals of both sides, in one row. Cost: one job."""
    everything, kept = F.lit(True), F.col(STATUS) == KEPT
    of_source = tuples.agg(
        total(everything, F.col(SOURCE)).alias("source"),
        total(F.col(STATUS) == NULL, F.col(SOURCE)).alias("dropped_nulls"),
        total(F.col(STATUS) == UNSEEN, F.col(SOURCE)).alias("dropped_unseen"),
        total(kept, F.col(SOURCE_MARK)).alias("source_mark"),
    )
    of_release = classes.agg(
        total(everything, F.col(ROWS)).alias("published"),
        total(everything, F.col(MARK)).alias("mark"),
        total(everything, F.lit(1)).alias("classes"),
        total(F.isnull(_LEVELS), F.lit(1)).alias("unknown"),
        F.countDistinct(_LEVELS).alias("vectors"),
    )
    return of_source.crossJoin(of_release).collect()[0]


def _covered(
    tuples: DataFrame, classes: DataFrame, labels: Sequence[Labels], sampled: bool, broadcast: bool
) -> DataFrame:
    """One row per class: its rows, PUBLISHED, and the source rows below its labels, _COVERING.

    A label has one level, so a tuple lies below a class iff its labels on the class's levels are the class's.
    Cost: one row per distinct tuple and combination of levels, looked up among the classes; shuffled only when these
    are too many to broadcast. No action.
    """
    leaves, _ = assignment_columns(len(labels))
    vectors = classes.select(_LEVELS).distinct()
    if sampled:
        vectors = smallest_hashes(vectors, [_LEVELS], MOST_VECTORS)
        classes = classes.join(beside(vectors), _LEVELS, "left_semi")
    zero, partitions = F.lit(0).cast("long"), setting(tuples.sparkSession, "spark.sql.shuffle.partitions", "")
    below = tuples.where(F.col(STATUS) == KEPT).groupBy(*leaves).agg(F.sum(SOURCE).alias(_COVERING))
    below = below.repartition(int(partitions) if partitions.isdecimal() else SOME_TASKS)  # few rows that become many
    for at, attribute_labels in enumerate(labels):
        below = attribute_labels.with_numbers(below, leaves[at], path_column(at))
    numbers = [F.get(F.col(path_column(at)), F.get(F.col(_LEVELS), F.lit(at))) for at in range(len(labels))]
    climbed = crossed(below, vectors).select(*packed(numbers, labels), _COVERING)
    keys = [name for name in climbed.columns if name != _COVERING]
    shown = classes.select(*keys)
    hits = climbed.join(beside(shown) if broadcast else shown, keys).select(*keys, _COVERING, zero.alias(PUBLISHED))
    wanted = classes.select(*keys, zero.alias(_COVERING), F.col(ROWS).alias(PUBLISHED))
    return hits.unionByName(wanted).groupBy(*keys).agg(F.sum(_COVERING).alias(_COVERING), F.sum(PUBLISHED).alias(PUBLISHED))
