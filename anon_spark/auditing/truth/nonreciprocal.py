"""Truthfulness of a nonreciprocal recoding: rows are well formed, and say exactly what the records of their edges share.

The frames are those of `guarantees/nonreciprocal`. No verdict has a frame: it would reveal the links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.reading.item_sets import (
    item_set,
    names_in,
    numbered,
    require_lists,
)
from anon_spark.auditing.reading.sums import FAULTY, sum_of
from anon_spark.auditing.reading.values import exact, private, require_columns
from anon_spark.auditing.truth.common_items import faults_of
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import BASE, BLOCK, LINK, MAX_ERRORS, SLOT, UNCERTAIN
from anon_spark.errors import ConfigurationError
from anon_spark.pending import Pending

_EDGES, _PLACES, _ITEMS = (private(name) for name in ("edges", "places", "items"))
_EDGE_FAULTS = ("outside", "too_many", "missing")
_ROW_FAULTS = ("loose",)
_FIELD_FAULTS = {
    "nulls": "have a null",
    "unsorted": "have a list that is not sorted or names an item twice",
    "errors": f"have a number of {MAX_ERRORS} that their uncertain items do not allow",
}


def verify_fields(release: DataFrame) -> Verdict:
    """Whether every published row is well formed by itself.

    Guarantee: passed iff there are rows, nothing is null, both lists are sorted and name each item once, and
    0 ≤ max_errors ≤ |uncertain|, with 0 only where nothing is uncertain. An item may stand in both lists (most
    records behind the row have it, but not all) or in one. violations and checked count rows. Cost: one job, one scan.
    """
    return fields_check(release).get()


def fields_check(release: DataFrame) -> Pending[Verdict]:
    """As `verify_fields`, its counts not collected yet."""
    require_columns(release, [BASE, UNCERTAIN, MAX_ERRORS], "release")
    require_lists(release, [BASE, UNCERTAIN], "release")
    if release.schema[MAX_ERRORS].dataType.typeName() not in ("integer", "long", "short", "byte"):
        raise ConfigurationError(f"Column {MAX_ERRORS} of the release must be a whole number.")
    read = release.select(
        *(exact(release, name).cast("array<string>").alias(name) for name in (BASE, UNCERTAIN)), F.col(MAX_ERRORS).cast("long")
    )
    found = read.mapInArrow(_malformed, ", ".join(f"{name} long" for name in ("rows", FAULTY, *_FIELD_FAULTS)))
    return Pending.of(found.agg(*map(sum_of, found.columns)), lambda sums: _fields_verdict(sums[0]))


def _malformed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of a release → how many they are, how many have any fault, and how many have which."""
    for batch in batches:
        errors, sizes = batch.column(2), pc.list_value_length(batch.column(1))
        nulls, unsorted = np.asarray(errors.is_null()), np.zeros(batch.num_rows, dtype=np.bool_)
        for lists in batch.columns[:2]:
            of_row, items = np.asarray(pc.list_parent_indices(lists)), pc.list_flatten(lists)
            known = np.asarray(items.is_valid())
            nulls |= np.asarray(lists.is_null())
            nulls[of_row[~known]] = True
            of_row, items = of_row[known], items.drop_null()
            rises = np.asarray(pc.less(items[:-1], items[1:]))  # as bytes, in UTF-8
            unsorted[of_row[1:][(of_row[1:] == of_row[:-1]) & ~rises]] = True
        size, most = (np.asarray(numbers.fill_null(0), dtype=np.int64) for numbers in (sizes, errors))
        told = np.asarray(errors.is_valid()) & np.asarray(sizes.is_valid())
        impossible = (most < 0) | (told & ((most > size) | ((most == 0) != (size == 0))))
        faults = (nulls | unsorted | impossible, nulls, unsorted, impossible)
        counts = [batch.num_rows, *(int(np.count_nonzero(fault)) for fault in faults)]
        yield pa.RecordBatch.from_arrays([pa.array([count]) for count in counts], names=["rows", FAULTY, *_FIELD_FAULTS])


def _fields_verdict(counts: Row) -> Verdict:
    rows = counts["rows"]
    parts = [f"{counts[name]} of {rows} rows {text}." for name, text in _FIELD_FAULTS.items() if counts[name]]
    if not rows:
        parts = ["the release is empty, there is nothing to publish."]
    return Verdict(
        kind=Kind.TRUTH,
        name="fields",
        passed=not parts,
        violations=counts[FAULTY],
        checked=rows,
        detail=" ".join(parts) or f"all {rows} rows are well formed.",
        facts={name: counts[name] for name in ("rows", *_FIELD_FAULTS)},
    )


def verify_compatible(linked: DataFrame, staged: DataFrame, edges: DataFrame, items: str) -> Verdict:
    """Whether every edge joins a record and a row that fits it, and rows say exactly what their records have in common.

    items: the column of `linked` with the item lists; an item counts once. Guarantee: passed iff there are edges and all
    are compatible (they differ in uncertain items only, in max_errors at most; an edge without its record or slot is not), and
    of every row the base is the items that more than half of its records have, uncertain those that some have and others
    not, and max_errors is the largest number of items in which one of them differs from the base. violations counts edges
    and rows, checked counts edges.
    Cost: one job; the edges are shuffled once, records and rows twice and once; a task holds one block, and its time is
    edges × items of a row. One row reaches the driver.
    """
    require_columns(linked, [LINK, items], "linked records")
    require_columns(staged, [BLOCK, SLOT, BASE, UNCERTAIN, MAX_ERRORS], "staged release")
    require_columns(edges, [LINK, BLOCK, SLOT], "edges")
    require_lists(linked, [items], "linked records")
    require_lists(staged, [BASE, UNCERTAIN], "staged release")
    posts = edges.groupBy(LINK, BLOCK).agg(F.collect_list(F.coalesce(SLOT, F.lit(-1))).alias(_EDGES))
    known = linked.where(F.isnotnull(LINK)).select(LINK, item_set(items).alias(_ITEMS))
    # BLOCK under a new name: both sides may come from one frame
    records = posts.join(known, LINK, "left").select(F.col(BLOCK).alias(_PLACES), _EDGES, _ITEMS)
    rows = staged.select(
        F.col(BLOCK).alias(_PLACES),
        SLOT,
        item_set(BASE).alias(BASE),
        item_set(UNCERTAIN).alias(UNCERTAIN),
        F.coalesce(MAX_ERRORS, F.lit(-1)).cast("long").alias(MAX_ERRORS),
    )
    counts = (_EDGES, *_EDGE_FAULTS, *_ROW_FAULTS)
    sums = (
        records.groupBy(_PLACES)
        .cogroup(rows.groupBy(_PLACES))
        .applyInArrow(_unfit, ", ".join(f"{name} long" for name in counts))
        .agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in counts))
        .collect()[0]
    )
    return _compatible_verdict(sums)


def sound_rows(edges: int) -> Verdict:
    """The verdict on edges and rows without faults."""
    return _compatible_verdict({_EDGES: edges, **dict.fromkeys((*_EDGE_FAULTS, *_ROW_FAULTS), 0)})


def _compatible_verdict(sums: Mapping[str, int] | Row) -> Verdict:
    checked = sums[_EDGES]
    texts = {
        "outside": "differ in an item that is not uncertain",
        "too_many": f"differ in more than {MAX_ERRORS} items",
        "missing": "have no record or no slot",
    }
    parts = [f"{sums[name]} of {checked} edges {text}." for name, text in texts.items() if sums[name]]
    if sums["loose"]:
        parts.append(f"{sums['loose']} rows do not say just what their records have in common.")
    if not checked:
        parts = ["there are no edges."]
    return Verdict(
        kind=Kind.TRUTH,
        name="compatibility",
        passed=not parts,
        violations=sum(sums[name] for name in (*_EDGE_FAULTS, *_ROW_FAULTS)),
        checked=checked,
        detail=" ".join(parts) or f"all {checked} edges join a record and a row it may be.",
        facts={"edges": checked, **{name: sums[name] for name in (*_EDGE_FAULTS, *_ROW_FAULTS)}},
    )


def _unfit(records: pa.Table, rows: pa.Table) -> pa.Table:
    """One block: how many edges it has, and how many of them have which fault."""
    slots = np.asarray(rows[SLOT], dtype=np.int64)
    order = np.argsort(slots, kind="stable")
    wanted = np.asarray(pc.list_flatten(records[_EDGES]), dtype=np.int64)
    sizes = np.asarray(pc.list_value_length(records[_EDGES]), dtype=np.int64)
    there = np.repeat(np.asarray(records[_ITEMS].is_valid()), sizes)
    at = np.minimum(np.searchsorted(slots, wanted, sorter=order), max(0, slots.size - 1))
    row = order[at] if slots.size else np.full(wanted.size, -1)
    row = np.where(there & (slots[row] == wanted), row, -1) if slots.size else row
    names = names_in(records[_ITEMS], rows[BASE], rows[UNCERTAIN])
    record_items, row = numbered(records[_ITEMS], names), row.astype(np.int64)
    record = np.repeat(np.arange(sizes.size), sizes)
    base, uncertain = (numbered(rows[name], names) for name in (BASE, UNCERTAIN))
    most, found = np.asarray(rows[MAX_ERRORS], dtype=np.int64), row >= 0
    faults = faults_of(record_items, record[found], row[found], base, uncertain, most, len(names))
    counts = {_EDGES: wanted.size, **faults._asdict(), "missing": int((~found).sum())}
    return pa.table({name: [counts[name]] for name in (_EDGES, *_EDGE_FAULTS, *_ROW_FAULTS)})
