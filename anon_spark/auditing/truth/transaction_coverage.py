"""Whether published rows with items could be the source's: what can be said without the private link of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.reading.classes import published_classes
from anon_spark.auditing.reading.labels import Labels
from anon_spark.auditing.reading.recode import KEPT, STATUS
from anon_spark.auditing.reading.sums import total
from anon_spark.auditing.reading.values import HI, LO, hashed, private, quoted
from anon_spark.auditing.release.rows import RowAccount
from anon_spark.auditing.truth.full_domain import raw_column, said_of_types
from anon_spark.auditing.truth.linked import NECESSARY
from anon_spark.auditing.truth.transaction_records import (
    CONTENT,
    GREATEST,
    HIDDEN,
    LEAST,
    NOTHING_LEFT_OUT,
    LeaveOut,
    Transactions,
    item_totals,
    kept_column,
    published_rows,
    read_records,
    scoped_records,
    scoped_totals,
    shown_column,
)
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.engine import crossed
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.ranges import FreeRange

_LEAF, _LEVEL = private("leaf"), private("level")


def verify_transactions_covered(
    source: DataFrame,
    release: DataFrame,
    relational: Mapping[str, Hierarchy | FreeRange | None],
    transactions: Sequence[str],
    items: str,
    sensitive_items: Mapping[str, Sequence[str]],
    sensitive: str | None,
    unchanged: Sequence[str],
    nulls: Literal["value", "suppress"] = "value",
    vocabulary: Sequence[str] = (),
    leave_out: LeaveOut = NOTHING_LEFT_OUT,
) -> tuple[Verdict, RowAccount]:
    """Whether a release could be made of the source, without the link that would prove it.

    Arguments: those of `verify_transactions`; vocabulary: items, as they are published, that a generalized item may hold
    although no record has them (those of an item hierarchy); leave_out: the items that may be published nowhere.
    Guarantee: necessary conditions only. Passed iff the source has as many rows in scope as are published; the two have the
    same multiset of sensitive items with unchanged values (up to a 64-bit hash per row); every label is one of its
    hierarchy, every range lies between the least and the greatest number of the source; every published item is one of the
    source or the vocabulary, and no sensitive one of the source; and every item of the source that is not sensitive is held
    by as many rows as records have it, or more, or by none where `leave_out` allows that.
    A release with items or values exchanged between rows may pass.
    violations counts classes with an unknown label or range, items at fault, columns of another type, and one each for
    items left out beyond the share, totals and unchanged values; checked counts classes and items.
    Cost: one job that scans the source three times and the release three times; one row reaches the driver.
    """
    columns = Transactions(relational, transactions, items, sensitive_items, sensitive, unchanged)
    other = columns.check(source, release, nulls)
    scoped = scoped_records(_carried(read_records(source, columns), columns), columns, nulls)
    of_release = _carried(published_rows(release, columns), columns).agg(
        F.count(F.lit(1)).alias("published"),
        F.coalesce(F.sum(F.col(CONTENT).cast("decimal(20,0)")), F.lit(0)).alias("content"),
    )
    kept = scoped.where(F.col(STATUS) == KEPT)
    totals = (
        scoped.agg(*scoped_totals())
        .crossJoin(of_release)
        .crossJoin(_class_totals(kept, release, columns, nulls))
        .crossJoin(item_totals(kept, release, columns, vocabulary, leave_out))
        .collect()[0]
    )
    in_scope, published = totals["in_scope"], totals["published"]
    faults = {
        **{name: totals[name] for name in ("unknown_labels", "outside", "unknown_items", "seldom", "holes")},
        "beyond": int(leave_out.exceeded(totals["left_out"], totals["occurrences"])),
        "totals": int(published != in_scope),
        "altered": int(published == in_scope and totals["content"] != totals["source_content"]),
    }
    texts = {
        "unknown_labels": f"{faults['unknown_labels']} of {totals['classes']} classes have a label that no hierarchy knows.",
        "outside": f"{faults['outside']} of {totals['classes']} classes have a range that the source's numbers do not reach.",
        "unknown_items": f"{faults['unknown_items']} published items are none of the source, or sensitive.",
        "seldom": f"{faults['seldom']} of {totals['items']} items are held by fewer rows than records have them.",
        "holes": f"{faults['holes']} rows of the source have a null among their items.",
        "beyond": f"{totals['left_out']} of {totals['occurrences']} occurrences of items are left out, more than the job allows.",
        "totals": f"{published} rows are published, the source has {in_scope} in scope.",
        "altered": "sensitive items or unchanged columns do not hold the source's values.",
    }
    parts = [*(text for name, text in texts.items() if faults[name]), *said_of_types(other)]
    if not published:
        parts.append("the release is empty, there is nothing to publish.")
    good = f"all {totals['classes']} classes and {totals['items']} items could be the source's, totals agree."
    return (
        Verdict(
            kind=Kind.TRUTH,
            name="coverage",
            passed=not parts,
            violations=sum(faults.values()) + len(other),
            checked=totals["classes"] + totals["items"],
            detail=" ".join([*(parts or [good]), NECESSARY]),
            facts={**faults, "classes": totals["classes"], "items": totals["items"]},
        ),
        RowAccount.without_suppression(totals),
    )


def _carried(frame: DataFrame, columns: Transactions) -> DataFrame:
    """CONTENT: a hash of what a row shows unchanged, its sensitive items included."""
    return frame.withColumn(CONTENT, hashed(frame, [HIDDEN, *(kept_column(at) for at in range(len(columns.unchanged)))]))


def _class_totals(scoped: DataFrame, release: DataFrame, columns: Transactions, nulls: str) -> DataFrame:
    """One row: classes, those with an unknown label, those with a range outside the source's numbers."""
    names = list(columns.relational)
    classes = published_classes(release, names)
    classes = classes.select(*(F.col(quoted(name)).alias(shown_column(at)) for at, name in enumerate(names)))
    ends = [
        end(raw_column(at)).alias(f"{name}_{at}") for at in columns.ranges for end, name in ((F.min, LEAST), (F.max, GREATEST))
    ]
    unknown, outside = [], []
    for at, hierarchy in columns.hierarchies.items():
        text = F.col(shown_column(at)).cast("string")
        classes = Labels.of(hierarchy).with_number(classes, text, f"{_LEAF}_{at}", f"{_LEVEL}_{at}", nulls)
        unknown.append(F.isnull(f"{_LEAF}_{at}"))
    for at in columns.ranges:
        low, high = (F.col(shown_column(at))[end] for end in (LO, HI))
        inside = (F.col(f"{LEAST}_{at}") <= low) & (low <= high) & (high <= F.col(f"{GREATEST}_{at}"))
        outside.append(~F.coalesce(inside, F.lit(False)))
    known = crossed(classes, scoped.agg(*ends)) if ends else classes
    return known.agg(
        F.count(F.lit(1)).alias("classes"),
        *(
            total(reduce(or_, faults, F.lit(False)), F.lit(1)).alias(name)
            for name, faults in (("unknown_labels", unknown), ("outside", outside))
        ),
    )
