"""Truthfulness of records with relational values and items: what is published of a record is true of it.

A run hands over `linked`, the records as it read them, with LINK; the staged release has LINK, too. Neither is kept: what can
be said without them is in `transaction_coverage`. No verdict has a frame: it would reveal the links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.auditing.reading.labels import Labels, Path, with_paths
from anon_spark.auditing.reading.recode import KEPT, STATUS
from anon_spark.auditing.reading.sums import FAULTY, fault_sums, sum_of
from anon_spark.auditing.reading.values import HI, LO, exact, private, require_columns, same
from anon_spark.auditing.release.rows import RowAccount
from anon_spark.auditing.truth.full_domain import raw_column
from anon_spark.auditing.truth.item_groups import groups_of_records
from anon_spark.auditing.truth.linked import verdict_of_records
from anon_spark.auditing.truth.transaction_records import (
    CONTENT,
    GREATEST,
    HIDDEN,
    ITEMS,
    LEAST,
    LEFT_OUT,
    NOTHING_LEFT_OUT,
    OWN,
    LeaveOut,
    Transactions,
    item_totals,
    items_left_out,
    kept_column,
    published_rows,
    read_records,
    scoped_records,
    scoped_totals,
    shown_column,
    with_leaves,
)
from anon_spark.auditing.verdict import Verdict
from anon_spark.columns import LINK
from anon_spark.engine import beside, crossed, has_null, small_frame
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.ranges import FreeRange
from anon_spark.pending import Pending

_RECORD, _ROW, _SENSITIVE, _ITEM, _PAIRS = (private(name) for name in ("record", "row", "sensitive", "item", "pairs"))
_OF_ITEMS = ("uncovered", "ambiguous", "idle")  # in the order of `groups_of_records`
_FAULT_TEXTS = {
    "unlinked": "have no row, or rows no record",
    "label": "have a label that is neither their value's nor above it",
    "range": "have a number outside the published range",
    "uncovered": "have an item that no generalized item holds",
    "ambiguous": "have an item that several generalized items hold",
    "idle": "have a generalized item that holds none of their items",
    "sensitive": "have another list of sensitive items",
    "altered": "have other values in unchanged columns",
}


def verify_transactions(
    source: DataFrame,
    staged: DataFrame,
    relational: Mapping[str, Hierarchy | FreeRange | None],
    transactions: Sequence[str],
    items: str,
    sensitive_items: Mapping[str, Sequence[str]],
    sensitive: str | None,
    unchanged: Sequence[str],
    linked: DataFrame,
    nulls: Literal["value", "suppress"] = "value",
    vocabulary: Sequence[str] = (),
    nodes: Sequence[Sequence[str]] | None = None,
    leave_out: LeaveOut = NOTHING_LEFT_OUT,
) -> tuple[Verdict, RowAccount]:
    """Whether every record of the source in scope has one published row, and all that the row says is true of it.

    relational: quasi-identifier → hierarchy, None or FreeRange for a number that is published as struct<lo,hi>;
    transactions: source columns; items, sensitive: published columns; sensitive_items: transaction column → its sensitive
    items, without the column's name; linked: LINK and the source's columns of every record; nulls: what the run did with a
    null (NaN counts as null); vocabulary: items, as they are published, that a generalized item may hold although no record
    has them; nodes: the generalized items that an item hierarchy allows, or None; leave_out: the items that may be published
    nowhere. Items of several columns are written `column.item`.
    Guarantee: passed iff there are records; `linked` has the source's rows in scope, as a multiset up to a 64-bit hash per
    row; every record has exactly one row; each label is its value's or above it, each number lies in its range, and the
    ends of a range are numbers of its class; each item that is not sensitive is in exactly one inner array, or in no row and
    `leave_out` allows that, and all such items together keep within its share; each inner array has an item of the record and,
    besides, only items of the source that are not sensitive, or of the vocabulary; it is one of the nodes; the
    sensitive list is the record's, and so are unchanged columns; no list has a null in it.
    Rows that a policy drops (null; a value no hierarchy knows, a number outside its domain) are counted apart.
    violations counts records with a fault, links that occur more than once, (class, range) pairs with an end that nobody
    has, items and generalized items that may not be published, lists with nulls, columns of another type, one for items
    left out beyond the share, and one for records that are not the source's; checked counts records.
    Cost: one job, two more where links repeat; source and release are scanned twice, records once, and records and release
    joined by LINK; two broadcast joins per hierarchy; one row reaches the driver. Where items may be left out, source and
    release are scanned once more, and the names of those left out are sent to every task: they are among the items of the
    source, whose number the fit bounds.
    """
    return transactions_check(
        source, staged, relational, transactions, items, sensitive_items, sensitive, unchanged, linked, nulls, vocabulary, nodes,
        leave_out,
    ).get()  # fmt: skip


def transactions_check(
    source: DataFrame,
    staged: DataFrame,
    relational: Mapping[str, Hierarchy | FreeRange | None],
    transactions: Sequence[str],
    items: str,
    sensitive_items: Mapping[str, Sequence[str]],
    sensitive: str | None,
    unchanged: Sequence[str],
    linked: DataFrame,
    nulls: Literal["value", "suppress"] = "value",
    vocabulary: Sequence[str] = (),
    nodes: Sequence[Sequence[str]] | None = None,
    leave_out: LeaveOut = NOTHING_LEFT_OUT,
) -> Pending[tuple[Verdict, RowAccount]]:
    """As `verify_transactions`, its counts not collected yet."""
    columns = Transactions(relational, transactions, items, sensitive_items, sensitive, unchanged)
    other = columns.check(source, staged, nulls)
    require_columns(linked, [LINK, *columns.source], "linked records")
    require_columns(staged, [LINK], "staged release")

    of_records, of_rows = linked.agg(_count("records")), staged.agg(_count("published"))
    scoped = scoped_records(read_records(source, columns), columns, nulls)
    in_scope = scoped.where(F.col(STATUS) == KEPT)
    of_items = item_totals(in_scope, staged, columns, vocabulary, leave_out)

    joined = _joined(linked, staged, columns)
    if leave_out.share:
        joined = crossed(joined, items_left_out(in_scope, staged, columns, leave_out))
        joined = joined.withColumn(OWN, F.array_except(OWN, LEFT_OUT))  # no row has any of those
    by_class = _checked(joined, columns).groupBy(*(shown_column(at) for at in range(len(relational)))).agg(
        *fault_sums({name: F.col(name) for name in _FAULT_TEXTS}),
        *_ends(columns),
        _count(_PAIRS),
        F.sum(F.col(CONTENT).cast("decimal(20,0)")).alias(CONTENT),
    )
    by_class = by_class.withColumn("loose", reduce(lambda left, right: left + right, _loose(columns), F.lit(0)))
    content = F.coalesce(F.sum(CONTENT), F.lit(0)).alias("content")
    sums = by_class.agg(*map(sum_of, [FAULTY, *_FAULT_TEXTS, "loose", _PAIRS]), content)
    of_source = scoped.agg(*scoped_totals())
    frames = (sums, of_source, of_records, of_rows, of_items, _strange_groups(staged, items, nodes))

    def judged(found: Sequence[Sequence[Row]]) -> tuple[Verdict, RowAccount]:
        sums, *totals = (rows[0].asDict() for rows in found)
        counted = reduce(or_, totals)
        links = _links(sums, counted) or _links_counted(linked, staged, columns)
        return _verdict(sums, counted | links, leave_out, other)

    return Pending(frames, judged)


def _count(name: str) -> Column:
    return F.count(F.lit(1)).alias(name)


def _links(sums: Mapping[str, Any], counted: Mapping[str, int]) -> dict[str, Any] | None:
    """How many different links records and rows have, and the content of the records, from their pairs; None where those do
    not tell.

    If every record and row has a partner, and there are as many pairs as records and as rows, no link is there twice: a link
    of a records and b rows has a · b pairs, which is at least a, and at least b, and both only where a = b = 1.
    """
    records, rows = counted["records"], counted["published"]
    if sums["unlinked"] or sums[_PAIRS] != records or sums[_PAIRS] != rows:
        return None
    return {"links": records, "shown_links": rows, "content": sums["content"]}


def _links_counted(linked: DataFrame, staged: DataFrame, columns: Transactions) -> dict[str, Any]:
    """As `_links`, counted. Cost: two jobs."""
    of_records = read_records(linked, columns, [LINK]).agg(
        F.countDistinct(LINK).alias("links"),
        F.coalesce(F.sum(F.col(CONTENT).cast("decimal(20,0)")), F.lit(0)).alias("content"),
    )
    of_rows = staged.agg(F.countDistinct(LINK).alias("shown_links"))
    return of_records.collect()[0].asDict() | of_rows.collect()[0].asDict()


def _verdict(
    sums: Mapping[str, int], totals: Mapping[str, Any], leave_out: LeaveOut, other: Sequence[str]
) -> tuple[Verdict, RowAccount]:
    """The verdict on records, rows and items whose faults were counted. other: unchanged columns of another type."""
    records = totals["records"]
    alike = totals["in_scope"] == records and totals["source_content"] == totals["content"]
    counts = {
        **{name: sums[name] for name in (*_FAULT_TEXTS, "loose")},
        "repeated": totals["records"] - totals["links"] + totals["published"] - totals["shown_links"],
        **{name: totals[name] for name in ("holes", "unknown_items", "strange_groups")},
        "beyond": int(leave_out.exceeded(totals["left_out"], totals["occurrences"])),
        "other_records": 0 if alike else 1,
    }
    texts = {
        "unknown_items": f"{counts['unknown_items']} published items are none of the source, or sensitive.",
        "strange_groups": f"{counts['strange_groups']} generalized items are no node of the item hierarchy.",
        "loose": f"{counts['loose']} ranges of classes end at a number that nobody in the class has.",
        "beyond": f"{totals['left_out']} of {totals['occurrences']} occurrences of items are left out, more than the job allows.",
        "holes": f"{counts['holes']} rows of the source have a null among their items.",
    }
    verdict = verdict_of_records(counts, _FAULT_TEXTS, texts, sums[FAULTY], records, totals["in_scope"], other)
    return verdict, RowAccount.without_suppression(totals)


# -- a record and its row -------------------------------------------------------------------------------------------


def _path(at: int) -> str:
    return private(f"path_{at}")


def _joined(linked: DataFrame, staged: DataFrame, columns: Transactions) -> DataFrame:
    """Records and rows joined by LINK; one side is null where there is none."""
    records = with_leaves(read_records(linked, columns, [LINK]), columns).withColumn(_RECORD, F.lit(True))
    for at, hierarchy in columns.hierarchies.items():  # below 0: null
        leaf = F.col(raw_column(at))
        records = records.withColumn(raw_column(at), F.when(leaf < 0, F.lit(len(hierarchy.keys))).otherwise(leaf))
    paths = [Path(Labels.of(hierarchy), raw_column(at), _path(at)) for at, hierarchy in columns.hierarchies.items()]
    records = with_paths(records, paths)
    rows = published_rows(staged, columns, [LINK]).withColumn(_ROW, F.lit(True)).withColumnRenamed(HIDDEN, _SENSITIVE)
    for at in range(len(columns.unchanged)):
        rows = rows.withColumnRenamed(kept_column(at), private(f"kept_shown_{at}"))
    return records.join(rows, LINK, "full")


def _checked(joined: DataFrame, columns: Transactions) -> DataFrame:
    """A column for each kind of fault that says whether a row of `_joined` has it. Items are compared in Arrow."""
    both = F.isnotnull(_RECORD) & F.isnotnull(_ROW)
    shown = {at: F.col(shown_column(at)) for at in range(len(columns.relational))}
    true_of = {
        "label": [_among(shown[at], F.col(_path(at))) for at in columns.hierarchies],
        "range": [F.col(raw_column(at)).between(shown[at][LO], shown[at][HI]) for at in columns.ranges],
        "sensitive": [F.col(HIDDEN).eqNullSafe(F.col(_SENSITIVE))],
        "altered": [
            same(F.col(kept_column(at)), F.col(private(f"kept_shown_{at}"))) for at in range(len(columns.unchanged))
        ],
    }
    faults = {
        name: both & reduce(or_, [~F.coalesce(condition, F.lit(False)) for condition in conditions], F.lit(False))
        for name, conditions in true_of.items()
    }
    compared = joined.select(
        *(shown[at].alias(shown_column(at)) for at in shown),
        *(F.when(both, F.col(raw_column(at))).alias(raw_column(at)) for at in columns.ranges),
        CONTENT,
        (~both).alias("unlinked"),
        *(fault.alias(name) for name, fault in faults.items()),
        OWN,
        ITEMS,
    )
    of_items = [T.StructField(name, T.BooleanType()) for name in _OF_ITEMS]
    schema = T.StructType([*(field for field in compared.schema.fields if field.name not in (OWN, ITEMS)), *of_items])
    return compared.mapInArrow(_items_compared, schema)


def _among(label: Column, path: Column) -> Column:
    """Whether a label, or null, is one of a path."""
    return F.coalesce(F.array_contains(path, label), F.isnull(label) & has_null(path))


def _items_compared(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches with a column for each kind of fault of items, in place of the items."""
    for batch in batches:
        rest = {name: batch.column(name) for name in batch.schema.names}
        own, shown, unlinked = rest.pop(OWN), rest.pop(ITEMS), rest["unlinked"]
        faults = groups_of_records(own, shown) & ~np.asarray(unlinked)[:, None]
        rest |= {name: pa.array(faults[:, at]) for at, name in enumerate(_OF_ITEMS)}
        yield pa.RecordBatch.from_arrays(list(rest.values()), names=list(rest))


def _ends(columns: Transactions) -> list[Column]:
    """Least and greatest number of the records of a class."""
    return [
        end(raw_column(at)).alias(f"{name}_{at}")
        for at in columns.ranges
        for end, name in ((F.min, LEAST), (F.max, GREATEST))
    ]


def _loose(columns: Transactions) -> list[Column]:
    """Per range 1 if an end of it is no number of its class."""
    flags = []
    for at in columns.ranges:
        ends = [F.col(f"{name}_{at}") == F.col(shown_column(at))[end] for name, end in ((LEAST, LO), (GREATEST, HI))]
        tight = F.coalesce(ends[0] & ends[1], F.lit(False))
        flags.append((F.isnotnull(f"{LEAST}_{at}") & ~tight).cast("long"))
    return flags


def _strange_groups(release: DataFrame, items: str, nodes: Sequence[Sequence[str]] | None) -> DataFrame:
    """One row: how many different generalized items are none of the nodes."""
    if nodes is None:
        return small_frame(release.sparkSession, pa.table({"strange_groups": pa.array([0], pa.int64())}))
    allowed = pa.table({_ITEM: pa.array([sorted(node) for node in nodes], pa.list_(pa.string()))})
    groups = release.select(F.explode(exact(release, items)).alias(_ITEM)).distinct()
    known = beside(small_frame(release.sparkSession, allowed))
    return groups.join(known, _ITEM, "left_anti").agg(F.count(F.lit(1)).alias("strange_groups"))
