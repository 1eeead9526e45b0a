"""Compatibility of rows and records: a release of item sets against its source, without the private graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.reading.classes import mark
from anon_spark.auditing.reading.item_sets import (
    Ints,
    Words,
    bitmaps,
    bits_set,
    item_set,
    names_in,
    numbered,
    require_lists,
)
from anon_spark.auditing.reading.sampling import chunk_of, every_chunk, smallest_hashes
from anon_spark.auditing.reading.sums import total
from anon_spark.auditing.reading.values import exact, private, quoted, require_columns
from anon_spark.auditing.release.rows import RowAccount
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import BASE, MAX_ERRORS, ROWS, UNCERTAIN
from anon_spark.compiled import compiled
from anon_spark.engine import has_null
from anon_spark.errors import ConfigurationError
from anon_spark.pending import Pending, together

SAMPLE = 500
COMPLETE = 5_000  # up to so many rows all are compared with all
SETS_AT_ONCE = 50_000  # distinct sets or rows that meet the sample in one worker, about

_ITEMS, _CERTAIN, _CHUNK, _HASH = (private(name) for name in ("items", "certain", "chunk", "hash"))
_SIDE, _FITTING = private("side"), private("fitting")
_SOURCE, _RELEASE = 0, 1
_MET = f"{_SIDE} int, {_HASH} long, {ROWS} long, {_FITTING} long"


def verify_nr_compat(
    source: DataFrame,
    release: DataFrame,
    items: str,
    k: int,
    sensitive: str | None = None,
    nulls: Literal["value", "suppress"] = "value",
    sample: int = SAMPLE,
) -> tuple[Verdict, RowAccount]:
    """Whether every record fits k published rows, and every published row k records, by the tables alone.

    A record fits a row iff they differ in uncertain items only, in at most max_errors of them. nulls: with `suppress` a
    record without a list was left out. sample: of more than COMPLETE rows, so many distinct item sets and so many
    distinct published rows (by hash of their content, always the same ones) are compared with the whole other table.
    Guarantee: necessary conditions only: passed iff there are rows, no list has a null in it, both tables have as many
    rows in scope, the same multiset of sensitive values (up to a 32-bit hash per row), and all that were compared have k.
    The tables do not show which of these rows is a record's own, nor whether it was drawn fairly.
    violations counts records and rows (of the sample) below k, and one for each other fault; checked counts records and
    rows that were compared. Cost: two jobs; each scans and groups both tables; the second compares the sample with every
    distinct set and row, as bitmaps over the items of the sample, in Arrow. One row of each reaches the driver.
    """
    return nr_compat_check(source, release, items, k, sensitive, nulls, sample).get()


def nr_compat_check(
    source: DataFrame,
    release: DataFrame,
    items: str,
    k: int,
    sensitive: str | None = None,
    nulls: Literal["value", "suppress"] = "value",
    sample: int = SAMPLE,
    rows: int | None = None,
) -> Pending[tuple[Verdict, RowAccount]]:
    """As `verify_nr_compat`, its counts not collected yet.

    rows: how many the larger table has, as far as is known: on that hangs what is compared. If there are others, the counts
    are collected once more.
    """
    if nulls not in ("value", "suppress"):
        raise ConfigurationError("nulls must be 'value' or 'suppress'.")
    kept = [sensitive] if sensitive is not None else []
    require_columns(source, [items, *kept], "source")
    require_columns(release, [BASE, UNCERTAIN, MAX_ERRORS, *kept], "release")
    require_lists(source, [items], "source")
    require_lists(release, [BASE, UNCERTAIN], "release")

    listed = F.isnotnull(quoted(items))
    in_scope = source.where(listed)
    of_source = source.select(quoted(items), mark(source, kept).alias(_HASH)).agg(
        F.count(F.lit(1)).alias("source"),
        F.count_if(~listed).alias("unlisted"),
        total(listed, F.col(_HASH)).alias("source_mark"),
        F.count_if(has_null(exact(source, items))).alias("holes"),
    )
    of_release = release.select(mark(release, kept).alias(_HASH)).agg(
        F.count(F.lit(1)).alias("published"), total(F.lit(True), F.col(_HASH)).alias("mark")
    )
    totals = Pending((of_source, of_release), lambda found: found[0][0].asDict() | found[1][0].asDict())

    def matched(largest: int) -> Pending[Row]:
        most = largest if largest <= COMPLETE else sample
        met = _matches(in_scope, release, items, most, 1 + largest // SETS_AT_ONCE)
        return Pending.of(_fitting_totals(met, k), lambda found: found[0])

    def judged(found: tuple[dict[str, int], Row | None]) -> tuple[Verdict, RowAccount]:
        counted, fitting_rows = found
        largest = max(counted["source"], counted["published"])
        if fitting_rows is None or largest != rows:
            fitting_rows = matched(largest).get()
        return _verdict(counted, fitting_rows, k, nulls, sample, complete=largest <= max(COMPLETE, sample))

    return together(totals, Pending.known(None) if rows is None else matched(rows)).then(judged)


def _fitting_totals(met: DataFrame, k: int) -> DataFrame:
    """One row: records and rows that were compared, those that fit fewer than k, and the least that one fits."""
    by_side = [
        column
        for side, name in ((_SOURCE, "records"), (_RELEASE, "rows"))
        for column in (
            total(F.col(_SIDE) == side, F.col(ROWS)).alias(name),
            total((F.col(_SIDE) == side) & (F.col(_FITTING) < k), F.col(ROWS)).alias(f"{name}_below"),
            F.min(F.when(F.col(_SIDE) == side, F.col(_FITTING))).alias(f"{name}_least"),
        )
    ]
    each = met.groupBy(_SIDE, _HASH).agg(F.max(ROWS).alias(ROWS), F.sum(_FITTING).alias(_FITTING))
    return each.agg(*by_side)


def _verdict(
    totals: Mapping[str, int], counts: Row, k: int, nulls: str, sample: int, complete: bool
) -> tuple[Verdict, RowAccount]:
    """The verdict on two tables and on what was compared of them. complete: whether that was everything."""
    dropped = totals["unlisted"] if nulls == "suppress" else 0
    account = RowAccount(totals["source"], totals["published"], 0, dropped, 0, 0)
    faults = {
        "records_below": counts["records_below"],
        "rows_below": counts["rows_below"],
        "holes": totals["holes"],
        "totals": int(account.balance != 0),
        "altered": int(account.balance == 0 and totals["mark"] != totals["source_mark"]),
        "empty": int(not totals["published"]),
    }
    texts = {
        "records_below": f"{faults['records_below']} of {counts['records']} records may be fewer than {k} published rows.",
        "rows_below": f"{faults['rows_below']} of {counts['rows']} published rows may be fewer than {k} records.",
        "holes": f"{faults['holes']} records have a null among their items.",
        "totals": f"{totals['published']} rows are published, the source has {totals['source'] - dropped} in scope.",
        "altered": "the sensitive column does not hold the source's values.",
        "empty": "the release is empty, there is nothing to publish.",
    }
    parts = [text for name, text in texts.items() if faults[name]]
    if not parts:
        parts = [f"each of {counts['records']} records may be {k} rows or more, each of {counts['rows']} rows {k} records."]
    if not complete:
        parts.append(f"Compared were {sample} distinct item sets and {sample} distinct rows with the whole other table.")
    return (
        Verdict(
            kind=Kind.TRUTH,
            name="compatible rows",
            passed=not any(faults.values()),
            violations=sum(faults.values()),
            checked=counts["records"] + counts["rows"],
            detail=" ".join(parts),
            facts={
                "k": k,
                "complete": complete,
                **{name: counts[name] for name in ("records", "rows", "records_least", "rows_least")},
                **faults,
            },
        ),
        account,
    )


def _matches(source: DataFrame, release: DataFrame, items: str, most: int, chunks: int) -> DataFrame:
    """Per sampled set or row (side, hash) and chunk of the other table: how many rows of the chunk fit."""
    sets = source.select(item_set(items).alias(_ITEMS)).groupBy(_ITEMS).agg(F.count(F.lit(1)).alias(ROWS))
    fields = [item_set(BASE).alias(BASE), item_set(UNCERTAIN).alias(UNCERTAIN)]
    errors = F.coalesce(MAX_ERRORS, F.lit(-1)).cast("long").alias(MAX_ERRORS)
    rows = release.select(*fields, errors).groupBy(BASE, UNCERTAIN, MAX_ERRORS).agg(F.count(F.lit(1)).alias(ROWS))
    rows = rows.withColumn(_CERTAIN, F.array_except(BASE, UNCERTAIN))
    sets = sets.withColumn(_HASH, F.xxhash64(_ITEMS))
    rows = rows.withColumn(_HASH, F.xxhash64(BASE, F.size(BASE), UNCERTAIN, MAX_ERRORS))
    everywhere, chunk = every_chunk(chunks).alias(_CHUNK), chunk_of(F.col(_HASH), chunks).alias(_CHUNK)
    some_sets = smallest_hashes(sets, [_ITEMS], most, F.col(_HASH)).select("*", everywhere)
    some_rows = smallest_hashes(rows, [BASE, UNCERTAIN, MAX_ERRORS], most, F.col(_HASH)).select("*", everywhere)
    all_sets, all_rows = sets.select("*", chunk), rows.select("*", chunk)
    of_sets = some_sets.groupBy(_CHUNK).cogroup(all_rows.groupBy(_CHUNK)).applyInArrow(_compared(_SOURCE), _MET)
    of_rows = all_sets.groupBy(_CHUNK).cogroup(some_rows.groupBy(_CHUNK)).applyInArrow(_compared(_RELEASE), _MET)
    return of_sets.unionByName(of_rows)


def _compared(side: int) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """Sets and rows, one of them the sample → per member of the sample the compatible ones of the other."""

    def compare(sets: pa.Table, rows: pa.Table) -> pa.Table:
        return compared(sets, rows, side)  # by name: a compiled function sent to a task is compiled again

    return compare


def compared(sets: pa.Table, rows: pa.Table, side: int) -> pa.Table:
    """Per member of the sample the compatible ones of the other side."""
    sampled = (sets, rows)[side]
    names = names_in(sets[_ITEMS]) if side == _SOURCE else names_in(rows[BASE], rows[UNCERTAIN])
    set_bits, strange = bitmaps(numbered(sets[_ITEMS], names), len(names))
    base, extra = bitmaps(numbered(rows[BASE], names), len(names))
    uncertain, _ = bitmaps(numbered(rows[UNCERTAIN], names), len(names))
    _, certain = bitmaps(numbered(rows[_CERTAIN], names), len(names))
    # items outside the names: a sampled set has none, a sampled row allows none
    most = np.where(certain > 0, -1, np.asarray(rows[MAX_ERRORS], dtype=np.int64) - extra)
    weights = [np.asarray(table[ROWS], dtype=np.int64) for table in (sets, rows)]
    of_sets, of_rows = fitting(set_bits, strange, base, uncertain, most, weights[0], weights[1])
    met = sampled.select([_HASH, ROWS]).add_column(0, _SIDE, pa.array([side] * len(sampled), pa.int32()))
    return met.append_column(_FITTING, pa.array((of_sets, of_rows)[side], pa.int64()))


@compiled
def fitting(
    set_bits: Words, strange: Ints, base: Words, uncertain: Words, most: Ints, times_set: Ints, times_row: Ints
) -> tuple[Ints, Ints]:
    """Per set the rows, per row the sets that are compatible, each as often as it occurs. Cost: sets × rows, in words."""
    of_sets, of_rows = np.zeros(set_bits.shape[0], dtype=np.int64), np.zeros(base.shape[0], dtype=np.int64)
    for record in range(set_bits.shape[0]):
        if strange[record] > 0:
            continue
        for row in range(base.shape[0]):
            errors = np.int64(0)
            for word in range(set_bits.shape[1]):
                differing = set_bits[record, word] ^ base[row, word]
                if differing & ~uncertain[row, word] != np.uint64(0):
                    errors = np.int64(-1)
                    break
                errors += bits_set(differing)
            if 0 <= errors <= most[row]:
                of_sets[record] += times_row[row]
                of_rows[row] += times_set[record]
    return of_sets, of_rows
