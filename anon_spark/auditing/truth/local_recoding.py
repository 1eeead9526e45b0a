"""Truthfulness of a local recoding: equal source tuples are published alike, each tuple at levels of its own.

A run hands over which levels every distinct tuple was given, the *assignment*; the labels are looked up here. Without it
(it is private and not kept) only necessary conditions can be verified of a current release: local_coverage.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Literal

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.reading.classes import published_classes
from anon_spark.auditing.reading.extents import Extents, as_text, with_ends
from anon_spark.auditing.reading.labels import Labels, Path, with_paths
from anon_spark.auditing.reading.recode import KEPT, STATUS, Climb, with_codes, with_scope
from anon_spark.auditing.reading.sums import total
from anon_spark.auditing.reading.values import HI, LO, exact, private, quoted, require_columns
from anon_spark.auditing.release.rows import RowAccount
from anon_spark.auditing.truth.full_domain import (
    PUBLISHED,
    SOURCE,
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
from anon_spark.columns import LEAF, LEVEL
from anon_spark.engine import gathered
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.pending import Pending

LOST, SUPPRESSED = 4, 5  # status of a tuple in scope without a usable assignment, and of one that the assignment leaves out

_ASSIGNED, _OUTSIDE, _LEFT_OUT, _THERE = (private(name) for name in ("assigned", "outside", "left_out", "there"))
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
    extents: Extents | None = None,
) -> tuple[Verdict, RowAccount]:
    """Whether the release is the source with each tuple at the levels it was assigned, or left out as the assignment says.

    assignment: one row per distinct tuple of leaves, columns `assignment_columns`: a leaf's code in its hierarchy (null:
    one more than the last value's) and its level; all levels null: the tuple is suppressed. unchanged, nulls, classes: as for
    `verify_recoding`. extents: columns whose classes show the ends of their rows instead of a label, in the release as the
    texts of `with_texts`.
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
    return local_recoding_check(source, release, hierarchies, assignment, unchanged, nulls, classes, extents).get()


def local_recoding_check(
    source: DataFrame,
    release: DataFrame,
    hierarchies: Mapping[str, Hierarchy],
    assignment: DataFrame,
    unchanged: Sequence[str],
    nulls: Literal["value", "suppress"] = "value",
    classes: DataFrame | None = None,
    extents: Extents | None = None,
    small: bool = False,
) -> Pending[tuple[Verdict, RowAccount]]:
    """As `verify_local_recoding`, its counts not collected yet. small: whether one task can hold both tables."""
    names = list(hierarchies)
    other = check_recoding(source, release, names, unchanged, nulls)
    leaves, levels = assignment_columns(len(names))
    require_columns(assignment, [*leaves, *levels], "assignment")
    if classes is None:
        classes = published_classes(release, names, unchanged=unchanged)
    expected = _assigned_classes(source, hierarchies, assignment, unchanged, nulls, extents or {}, small)
    compared = compare(expected, classes, names, small)
    absent = (F.col(STATUS) == KEPT) & (F.col(SOURCE) > 0) & (F.col(PUBLISHED) == 0)
    faults = {**class_faults(), "absent": absent}
    totals = compared.agg(
        *row_totals(),
        *(total(fault, F.lit(1)).alias(name) for name, fault in faults.items()),
        *(total(F.lit(True), F.col(column)).alias(name) for name, column in _COUNTS.items()),
        total(F.col(STATUS) == LOST, F.col(SOURCE)).alias("lost_rows"),
        total(F.col(STATUS) == SUPPRESSED, F.col(SOURCE)).alias("suppressed"),
    )
    faulty = faulty_classes(compared, faults, names)
    return Pending.of(totals, lambda rows: _verdict(rows[0], list(faults), other, faulty))


def _verdict(totals: Row, faults: Sequence[str], other: Sequence[str], faulty: DataFrame) -> tuple[Verdict, RowAccount]:
    """The verdict on classes and tuples whose faults were counted. other: unchanged columns of another type."""
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
            frame=faulty,
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


def assigned_rows(
    source: DataFrame, hierarchies: Mapping[str, Hierarchy], assignment: DataFrame, nulls: str, columns: Sequence[str]
) -> DataFrame:
    """The rows of the source whose tuple the assignment gives levels: those that a truthful release holds.

    columns: those that are needed. Cost: as `rows_in_scope`, and one join with the assignment; no action.
    """
    leaves, levels = assignment_columns(len(hierarchies))
    kept, raw = [private(f"kept_{at}") for at in range(len(columns))], list(map(raw_column, range(len(hierarchies))))
    rows = source.select(
        *(F.col(quoted(name)).alias(kept[at]) for at, name in enumerate(columns)),
        *(exact(source, name).alias(raw[at]) for at, name in enumerate(hierarchies)),
        F.lit(KEPT).alias(STATUS),
    )
    climbs = [Climb(raw[at], leaves[at], hierarchy, 0) for at, hierarchy in enumerate(hierarchies.values())]
    coded = with_scope(with_codes(rows, climbs), nulls).where(F.col(STATUS) == KEPT)
    codes = [
        F.when(F.col(leaf) < 0, F.lit(len(hierarchy.keys))).otherwise(F.col(leaf)).cast("long").alias(leaf)
        for leaf, hierarchy in zip(leaves, hierarchies.values(), strict=True)
    ]
    given = assignment.where(F.isnotnull(levels[0])).select(*(F.col(leaf).cast("long").alias(leaf) for leaf in leaves))
    held = coded.select(*kept, *codes).join(given, leaves, "left_semi")
    return held.select(*(F.col(kept[at]).alias(name) for at, name in enumerate(columns)))


def path_column(at: int) -> str:
    return private(f"path_{at}")


# -- steps ----------------------------------------------------------------------------------------------------------


def source_leaves(
    source: DataFrame, hierarchies: Mapping[str, Hierarchy], unchanged: Sequence[str], nulls: str
) -> DataFrame:
    """The source's distinct raw tuples as leaf codes, with STATUS and SUMS; dropped ones have a status, no leaves."""
    leaves, _ = assignment_columns(len(hierarchies))
    frame = source_tuples(source, list(hierarchies), unchanged)
    climbs = [Climb(raw_column(at), leaves[at], hierarchy, 0) for at, hierarchy in enumerate(hierarchies.values())]
    codes = []
    for leaf, hierarchy in zip(leaves, hierarchies.values(), strict=True):
        leaf_code = F.when(F.col(leaf) < 0, F.lit(len(hierarchy.keys))).otherwise(F.col(leaf))  # below 0: null
        codes.append(F.when(F.col(STATUS) == KEPT, leaf_code).cast("long").alias(leaf))
    return with_scope(with_codes(frame, climbs), nulls).select(*codes, STATUS, *tuple_sums())


def _assigned_classes(
    source: DataFrame,
    hierarchies: Mapping[str, Hierarchy],
    assignment: DataFrame,
    unchanged: Sequence[str],
    nulls: str,
    extents: Extents,
    small: bool,
) -> DataFrame:
    """The source's distinct tuples of leaves with the labels they were assigned, STATUS, SUMS and _COUNTS.

    With extents, the tuples of a class together, with the ends of all its rows in place of the label.

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
    tuples = source_leaves(source, hierarchies, unchanged, nulls)
    both = tuples.select("*", *(zero.alias(name) for name in (_ASSIGNED, _OUTSIDE, _LEFT_OUT)), *unknown).unionByName(assigned)
    frame = (
        gathered(both, small)
        .groupBy(*leaves, STATUS)
        .agg(
            *(F.sum(name).alias(name) for name in (*SUMS, _ASSIGNED, _OUTSIDE, _LEFT_OUT)),
            *(F.min(level).alias(level) for level in levels),
        )
    )
    paths = [Path(Labels.of(hierarchy), leaves[at], path_column(at)) for at, hierarchy in enumerate(hierarchies.values())]
    frame = with_paths(frame, paths)
    in_scope = (F.col(STATUS) == KEPT) & (F.col(SOURCE) > 0)
    flags = {
        "tuples": in_scope,
        "unassigned": in_scope & (F.col(_ASSIGNED) == 0),
        "twice": in_scope & (F.col(_ASSIGNED) > 1),
        "unused": (F.col(STATUS) == KEPT) & (F.col(SOURCE) == 0),
    }
    nowhere = in_scope & F.isnull(levels[0])
    lost = F.when(nowhere, F.when(F.col(_LEFT_OUT) > 0, F.lit(SUPPRESSED)).otherwise(F.lit(LOST)))
    names = list(hierarchies)
    for name, extent in extents.items():
        at = names.index(name)
        frame = with_ends(frame, leaves[at], extent, _end(at, LO), _end(at, HI))
    labelled = frame.select(
        *(F.get(F.col(path_column(at)), F.col(level)).alias(label_column(at)) for at, level in enumerate(levels)),
        F.coalesce(lost, F.col(STATUS)).alias(STATUS),
        *SUMS,
        *(F.when(flag, one).otherwise(zero).alias(_COUNTS[name]) for name, flag in flags.items()),
        _OUTSIDE,
        *(_end(names.index(name), end) for name in extents for end in (LO, HI)),
        (F.col(SOURCE) > 0).alias(_THERE),
    )
    return _with_extents(labelled, [names.index(name) for name in extents], len(names))


def _with_extents(labelled: DataFrame, positions: Sequence[int], count: int) -> DataFrame:
    """Tuples with the ends of their class in place of some labels; a class of nulls alone keeps null."""
    if not positions:
        return labelled.drop(_THERE)
    keys = [label_column(at) for at in range(count)]
    ends = [_end(at, end) for at in positions for end in (LO, HI)]
    sums = [name for name in labelled.columns if name not in (*keys, STATUS, _THERE, *ends)]
    here = F.col(_THERE)  # an assignment for no tuple of the source moves no end
    together = labelled.groupBy(*keys, STATUS).agg(
        *(F.sum(name).alias(name) for name in sums),
        *(F.min(F.when(here, F.col(_end(at, LO)))).alias(_end(at, LO)) for at in positions),
        *(F.max(F.when(here, F.col(_end(at, HI)))).alias(_end(at, HI)) for at in positions),
        *(F.max(here & F.isnull(_end(at, LO))).alias(_end(at, "null")) for at in positions),
    )
    shown = {}
    for at in positions:
        ends_of_class = (F.when(~F.col(_end(at, "null")), F.col(_end(at, end))) for end in (LO, HI))
        shown[at] = F.when(F.isnotnull(label_column(at)), as_text(*ends_of_class)).alias(label_column(at))
    return together.select(*(shown.get(at, F.col(key)) for at, key in enumerate(keys)), STATUS, *sums)


def _end(at: int, which: str) -> str:
    return private(f"end_{which}_{at}")


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
