"""Truthfulness of a local recoding: equal source tuples are published alike, each tuple at levels of its own.

A run hands over which levels every distinct tuple was given, the *assignment*; the labels are looked up here. Without it
(it is private and not kept) only necessary conditions can be verified of a current release.
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
from anon_spark.auditing.reading.recode import KEPT, NULL, STATUS, UNSEEN, with_code, with_scope
from anon_spark.auditing.reading.sampling import smallest_hashes
from anon_spark.auditing.reading.sums import total
from anon_spark.auditing.reading.values import private, quoted, require_columns
from anon_spark.auditing.release.rows import RowAccount
from anon_spark.auditing.truth.full_domain import (
    PUBLISHED,
    SOURCE,
    SOURCE_MARK,
    SUMS,
    check_recoding,
    class_faults,
    compare,
    faulty_classes,
    label_column,
    raw_column,
    row_totals,
    said_of_classes,
    said_of_types,
    source_tuples,
    tuple_sums,
)
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import LEAF, LEVEL, ROWS
from anon_spark.engine import setting
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.hierarchy.checks import ambiguous_labels

MOST_VECTORS = 2_000  # level vectors of a current release that are checked for coverage
SOME_TASKS = 64  # where the session does not say how many: a platform may choose by itself
MOST_BROADCAST = 1_000_000  # classes that are sent to the tuples instead of shuffling the tuples

LOST, SUPPRESSED = 4, 5  # status of a tuple in scope without a usable assignment, and of one that the assignment leaves out
NECESSARY = "Necessary conditions only: which tuple became which class is not known without the run's private assignment."

_ASSIGNED, _OUTSIDE, _LEFT_OUT, _LEVELS, _COVERING = (
    private(name) for name in ("assigned", "outside", "left_out", "levels", "covering")
)
_COUNTS = {name: private(name) for name in ("tuples", "unassigned", "twice", "outside", "unused")}


def assignment_columns(count: int) -> tuple[list[str], list[str]]:
    """The columns of an assignment for so many quasi-identifiers: leaf codes, then levels, both in their order."""
    return [f"{LEAF}{at}" for at in range(count)], [f"{LEVEL}{at}" for at in range(count)]


def verify_local_recoding(
    source: DataFrame,
    release: DataFrame,
    hierarchies: Mapping[str, Hierarchy],
    assignment: DataFrame,
    unchanged: Sequence[str],
    nulls: Literal["value", "suppress"] = "value",
    classes: DataFrame | None = None,
) -> tuple[Verdict, RowAccount]:
    """Whether the release is the source with each tuple at the levels it was assigned, or left out as the assignment says.

    assignment: one row per distinct tuple of leaves, columns `assignment_columns`: a leaf's code in its hierarchy (null:
    one more than the last value's) and its level; all levels null: the tuple is suppressed. unchanged, nulls, classes: as for
    `verify_recoding`.
    Guarantee: passed iff every tuple of the source in scope is assigned exactly once, to levels that exist, and every
    class has exactly the rows of the tuples whose labels it shows, with the same multiset of unchanged values, up to a
    32-bit hash per row. Rows that are suppressed, or that a policy drops, are counted apart; whether they are too many is for
    `verify_rows` to say. An assignment for no tuple of the source is harmless.
    violations counts classes, tuples and assignments at fault, checked counts classes and source tuples in scope. facts:
    the faults by kind (absent: a class of which no row is published), unused, lost_rows, classes, tuples, source_tuples,
    source_unique.
    Cost: one job, one scan of each table; shuffles of the source's distinct tuples (raw, then as leaves with the
    assignment) and of classes, all with map-side aggregation; two broadcast joins per quasi-identifier (three for numbers
    in a text column); one row reaches the driver.
    """
    names = list(hierarchies)
    other = check_recoding(source, release, names, unchanged, nulls)
    leaves, levels = assignment_columns(len(names))
    require_columns(assignment, [*leaves, *levels], "assignment")
    if classes is None:
        classes = published_classes(release, names, unchanged=unchanged)
    compared = compare(_assigned_classes(source, hierarchies, assignment, unchanged, nulls), classes, names)
    absent = (F.col(STATUS) == KEPT) & (F.col(SOURCE) > 0) & (F.col(PUBLISHED) == 0)
    faults = {**class_faults(), "absent": absent}
    totals = compared.agg(
        *row_totals(),
        *(total(fault, F.lit(1)).alias(name) for name, fault in faults.items()),
        *(total(F.lit(True), F.col(column)).alias(name) for name, column in _COUNTS.items()),
        total(F.col(STATUS) == LOST, F.col(SOURCE)).alias("lost_rows"),
        total(F.col(STATUS) == SUPPRESSED, F.col(SOURCE)).alias("suppressed"),
    ).collect()[0]
    kinds = [*faults, "unassigned", "twice", "outside"]
    violations = sum(totals[kind] for kind in kinds) + len(other)
    passed = f"all {totals['classes']} classes are the rows of {totals['tuples']} source tuples, each at its own levels."
    return (
        Verdict(
            kind=Kind.TRUTH,
            name="truthfulness",
            passed=violations == 0,
            violations=violations,
            checked=totals["classes"] + totals["tuples"],
            detail=" ".join([*said_of_classes(totals), *_said_of_tuples(totals), *said_of_types(other)]) or passed,
            facts={
                name: totals[name]
                for name in (*kinds, "unused", "lost_rows", "classes", "tuples", "source_tuples", "source_unique")
            },
            frame=faulty_classes(compared, faults, names),
        ),
        RowAccount(
            source=totals["source"],
            published=totals["published"],
            suppressed=totals["suppressed"],
            dropped_nulls=totals["dropped_nulls"],
            dropped_unseen=totals["dropped_unseen"],
            suppressed_classes=0,
        ),
    )


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
    tuples = _source_leaves(source, hierarchies, unchanged, nulls)
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


def _path(at: int) -> str:
    return private(f"path_{at}")


# -- steps ----------------------------------------------------------------------------------------------------------


def _source_leaves(
    source: DataFrame, hierarchies: Mapping[str, Hierarchy], unchanged: Sequence[str], nulls: str
) -> DataFrame:
    """The source's distinct raw tuples as leaf codes, with STATUS and SUMS; dropped ones have a status, no leaves."""
    leaves, _ = assignment_columns(len(hierarchies))
    frame = source_tuples(source, list(hierarchies), unchanged)
    for at, hierarchy in enumerate(hierarchies.values()):
        frame = with_code(frame, raw_column(at), leaves[at], STATUS, hierarchy, 0)
    codes = []
    for leaf, hierarchy in zip(leaves, hierarchies.values(), strict=True):
        leaf_code = F.when(F.col(leaf) < 0, F.lit(len(hierarchy.keys))).otherwise(F.col(leaf))  # below 0: null
        codes.append(F.when(F.col(STATUS) == KEPT, leaf_code).cast("long").alias(leaf))
    return with_scope(frame, nulls).select(*codes, STATUS, *tuple_sums())


def _assigned_classes(
    source: DataFrame,
    hierarchies: Mapping[str, Hierarchy],
    assignment: DataFrame,
    unchanged: Sequence[str],
    nulls: str,
) -> DataFrame:
    """The source's distinct tuples of leaves with the labels they were assigned, STATUS, SUMS and _COUNTS.

    A tuple that is assigned twice takes the smaller level of each, so that the verdict is always the same; one that no
    assignment gives levels to is suppressed, if one leaves it out.
    """
    leaves, levels = assignment_columns(len(hierarchies))
    zero, one = F.lit(0).cast("long"), F.lit(1).cast("long")
    leaf_exists, level_exists = F.lit(True), F.lit(True)
    for hierarchy, leaf, level in zip(hierarchies.values(), leaves, levels, strict=True):
        leaf_exists = leaf_exists & F.col(leaf).between(0, len(hierarchy.keys))
        level_exists = level_exists & F.col(level).between(0, hierarchy.height)
    exists = F.coalesce(leaf_exists & level_exists, F.lit(False))
    left_out = F.coalesce(leaf_exists, F.lit(False)) & reduce(and_, (F.isnull(level) for level in levels))
    assigned = assignment.select(
        *(F.col(leaf).cast("long").alias(leaf) for leaf in leaves),
        F.lit(KEPT).alias(STATUS),
        *(zero.alias(name) for name in SUMS),
        one.alias(_ASSIGNED),
        F.when(exists | left_out, zero).otherwise(one).alias(_OUTSIDE),
        F.when(left_out, one).otherwise(zero).alias(_LEFT_OUT),
        *(F.when(exists, F.col(level)).cast("int").alias(level) for level in levels),
    )
    unknown = [F.lit(None).cast("int").alias(level) for level in levels]
    tuples = _source_leaves(source, hierarchies, unchanged, nulls)
    frame = (
        tuples.select("*", *(zero.alias(name) for name in (_ASSIGNED, _OUTSIDE, _LEFT_OUT)), *unknown)
        .unionByName(assigned)
        .groupBy(*leaves, STATUS)
        .agg(
            *(F.sum(name).alias(name) for name in (*SUMS, _ASSIGNED, _OUTSIDE, _LEFT_OUT)),
            *(F.min(level).alias(level) for level in levels),
        )
    )
    for at, hierarchy in enumerate(hierarchies.values()):
        frame = Labels.of(hierarchy).with_texts(frame, leaves[at], _path(at))
    in_scope = (F.col(STATUS) == KEPT) & (F.col(SOURCE) > 0)
    flags = {
        "tuples": in_scope,
        "unassigned": in_scope & (F.col(_ASSIGNED) == 0),
        "twice": in_scope & (F.col(_ASSIGNED) > 1),
        "unused": (F.col(STATUS) == KEPT) & (F.col(SOURCE) == 0),
    }
    nowhere = in_scope & F.isnull(levels[0])
    lost = F.when(nowhere, F.when(F.col(_LEFT_OUT) > 0, F.lit(SUPPRESSED)).otherwise(F.lit(LOST)))
    return frame.select(
        *(F.get(F.col(_path(at)), F.col(level)).alias(label_column(at)) for at, level in enumerate(levels)),
        F.coalesce(lost, F.col(STATUS)).alias(STATUS),
        *SUMS,
        *(F.when(flag, one).otherwise(zero).alias(_COUNTS[name]) for name, flag in flags.items()),
        _OUTSIDE,
    )


def _said_of_tuples(totals: Row) -> list[str]:
    """One sentence per kind of fault that was found in the assignment, or in classes that are not there."""
    texts = {
        "absent": f"{totals['absent']} classes of the source are not published at all.",
        "unassigned": f"{totals['unassigned']} of {totals['tuples']} source tuples have no assignment.",
        "twice": f"{totals['twice']} of {totals['tuples']} source tuples are assigned more than once.",
        "outside": f"{totals['outside']} assignments name a leaf or level that its hierarchy does not have.",
    }
    lost = f"{totals['lost_rows']} source rows are lost for want of an assignment."
    return [*(text for name, text in texts.items() if totals[name]), *([lost] if totals["lost_rows"] else [])]


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
        classes = classes.join(F.broadcast(vectors), _LEVELS, "left_semi")
    zero, partitions = F.lit(0).cast("long"), setting(tuples.sparkSession, "spark.sql.shuffle.partitions", "")
    below = tuples.where(F.col(STATUS) == KEPT).groupBy(*leaves).agg(F.sum(SOURCE).alias(_COVERING))
    below = below.repartition(int(partitions) if partitions.isdecimal() else SOME_TASKS)  # few rows that become many
    for at, attribute_labels in enumerate(labels):
        below = attribute_labels.with_numbers(below, leaves[at], _path(at))
    numbers = [F.get(F.col(_path(at)), F.get(F.col(_LEVELS), F.lit(at))) for at in range(len(labels))]
    climbed = below.crossJoin(F.broadcast(vectors)).select(*packed(numbers, labels), _COVERING)
    keys = [name for name in climbed.columns if name != _COVERING]
    shown = classes.select(*keys)
    hits = climbed.join(F.broadcast(shown) if broadcast else shown, keys).select(*keys, _COVERING, zero.alias(PUBLISHED))
    wanted = classes.select(*keys, zero.alias(_COVERING), F.col(ROWS).alias(PUBLISHED))
    return hits.unionByName(wanted).groupBy(*keys).agg(F.sum(_COVERING).alias(_COVERING), F.sum(PUBLISHED).alias(PUBLISHED))
