"""Nonreciprocal recoding with its private graph: fields, graph, compatibility of every edge, labels that moved.

The frames: `linked`, the records that are recoded, with LINK; `staged`, the release with BLOCK and SLOT; `edges`, with
LINK, BLOCK, SLOT, ROUND, CHOSEN and PART. None of the verdicts has a frame: it would tell who is whose.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.audit.common_items import loose_rows
from anon_spark.audit.item_sets import Ints, Lists, compiled, item_set, names_in, numbered, require_lists
from anon_spark.audit.truthfulness import total
from anon_spark.audit.values import exact, private, require_columns
from anon_spark.audit.verdict import Verdict
from anon_spark.columns import BASE, BLOCK, CHOSEN, LINK, MAX_ERRORS, PART, ROUND, ROWS, SLOT, UNCERTAIN
from anon_spark.errors import ConfigurationError

Marks = NDArray[np.bool_]

_EDGES, _PARTNERS, _PLACES, _ROUNDS = (private(name) for name in ("edges", "partners", "places", "rounds"))
_FIRST, _LAST, _TAKEN, _SIDE = (private(name) for name in ("first", "last", "taken", "side"))
_ITEMS, _CERTAIN, _LABEL, _SHOWN, _LABELS = (private(name) for name in ("items", "certain", "label", "shown", "labels"))
_WRITTEN = "_written"
_EDGE = [LINK, BLOCK, SLOT, ROUND, CHOSEN, PART]
_EDGE_FAULTS = ("outside", "too_many", "missing")
_ROW_FAULTS = ("loose",)


def verify_fields(release: DataFrame) -> Verdict:
    """Whether every row is well formed: what can be said of a published row alone.

    Guarantee: passed iff there are rows, nothing is null, both lists are sorted and name each item once, and
    0 ≤ max_errors ≤ |uncertain|, with 0 only where nothing is uncertain. An item may stand in both lists (present, but
    not in all records the row may be) or in one. violations and checked count rows. Cost: one job, one scan.
    """
    require_columns(release, [BASE, UNCERTAIN, MAX_ERRORS], "release")
    require_lists(release, [BASE, UNCERTAIN], "release")
    if release.schema[MAX_ERRORS].dataType.typeName() not in ("integer", "long", "short", "byte"):
        raise ConfigurationError(f"Column {MAX_ERRORS} of the release must be a whole number.")
    lists, errors = [exact(release, name) for name in (BASE, UNCERTAIN)], F.col(MAX_ERRORS)
    null = reduce(or_, [F.isnull(column) for column in (*lists, errors)])
    size = F.size(UNCERTAIN)
    faults = {
        "nulls": null | reduce(or_, [F.exists(column, F.isnull) for column in lists]),
        "unsorted": reduce(or_, [F.sort_array(F.array_distinct(column)) != column for column in map(F.array_compact, lists)]),
        "errors": (errors < 0) | (errors > size) | ((errors == 0) != (size == 0)),
    }
    said = {
        "nulls": "have a null",
        "unsorted": "have a list that is not sorted or names an item twice",
        "errors": f"have a number of {MAX_ERRORS} that their uncertain items do not allow",
    }
    known = {name: F.coalesce(fault, F.lit(False)) for name, fault in faults.items()}
    found = release.agg(
        F.count(F.lit(1)).alias("rows"),
        total(reduce(or_, known.values()), F.lit(1)).alias("faulty"),
        *(total(fault, F.lit(1)).alias(name) for name, fault in known.items()),
    ).collect()[0]
    rows = found["rows"]
    parts = [f"{found[name]} of {rows} rows {text}." for name, text in said.items() if found[name]]
    if not rows:
        parts = ["the release is empty, there is nothing to publish."]
    return Verdict(
        name="fields",
        passed=not parts,
        violations=found["faulty"],
        checked=rows,
        detail=" ".join(parts) or f"all {rows} rows are well formed.",
        facts={name: found[name] for name in ("rows", *faults)},
    )


def verify_graph(linked: DataFrame, staged: DataFrame, edges: DataFrame, degree: int) -> Verdict:
    """Whether the graph and its rounds are what the promise of 1 / degree rests on.

    Guarantee: passed iff every record and every slot is there once, has at least `degree` edges, as many as all others
    of its part, none twice, one in each round 0, 1, … of that part and one that is chosen, and each part has one chosen
    round. So every round is a perfect matching of its part, rounds share no edge, and all of a part moves together. That
    the round was chosen at random no table can show.
    violations counts faults of records, slots and parts (one may have several); checked counts records, slots, parts.
    Cost: one job; three shuffles of the edges (by record, slot and part); one row reaches the driver.
    """
    require_columns(linked, [LINK], "linked records")
    require_columns(staged, [BLOCK, SLOT], "staged release")
    require_columns(edges, _EDGE, "edges")
    sides = _ends(linked, edges, [LINK], F.struct(BLOCK, SLOT)).unionByName(
        _ends(staged, edges, [BLOCK, SLOT], F.struct(LINK))
    )
    faults = _end_faults(degree)
    some = F.col(_EDGES) > 0
    places = sides.groupBy(BLOCK, PART).agg(
        F.min(F.when(some, F.col(_EDGES))).alias(_FIRST),
        F.max(_EDGES).alias(_LAST),
        F.count_if(F.col(_SIDE) == LINK).alias("records"),
        F.count_if(F.col(_SIDE) == SLOT).alias("slots"),
        *(
            F.count_if((F.col(_SIDE) == side) & fault).alias(f"{side}_{name}")
            for side in (LINK, SLOT)
            for name, fault in faults.items()
        ),
    )
    incomplete = reduce(or_, [F.isnull(name) for name in _EDGE])
    parts = edges.groupBy(BLOCK, PART).agg(
        F.size(F.collect_set(F.when(F.col(CHOSEN), F.col(ROUND)))).alias(_ROUNDS), F.count_if(incomplete).alias("incomplete")
    )
    counted = places.agg(
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in places.columns if name not in (BLOCK, PART, _FIRST, _LAST)),
        F.count_if(F.col(_FIRST) < F.col(_LAST)).alias("uneven"),
    )
    chosen = parts.agg(
        F.count(F.lit(1)).alias("parts"),
        F.count_if(F.col(_ROUNDS) != 1).alias("choices"),
        F.coalesce(F.sum("incomplete"), F.lit(0)).alias("incomplete"),
    )
    found = counted.crossJoin(chosen).collect()[0]
    what = {LINK: f"{found['records']} records", SLOT: f"{found['slots']} slots"}
    said = [
        f"{found[f'{side}_{name}']} of {what[side]} {text}."
        for side in (LINK, SLOT)
        for name, text in _END_SAID.items()
        if found[f"{side}_{name}"]
    ]
    for name, text in _PART_SAID.items():
        if found[name]:
            said.append(f"{found[name]} of {found['parts']} {text}.")
    if found["incomplete"]:
        said.append(f"{found['incomplete']} edges have a null.")
    if not found["records"]:
        said.append("there are no records.")
    facts = {
        name: found[f"{LINK}_{name}"] + found[f"{SLOT}_{name}"] for name in faults
    } | {name: found[name] for name in ("uneven", "choices", "incomplete", "records", "slots", "parts")}
    violations = sum(facts[name] for name in (*faults, "uneven", "choices", "incomplete"))
    return Verdict(
        name="graph",
        passed=not said,
        violations=violations,
        checked=found["records"] + found["slots"] + found["parts"],
        detail=" ".join(said)
        or f"{what[LINK]} and as many slots in {found['parts']} parts have {degree} or more edges each, in disjoint rounds.",
        facts=facts,
    )


def verify_compatible(linked: DataFrame, staged: DataFrame, edges: DataFrame, items: str) -> Verdict:
    """Whether every edge joins a record and a row it may be, and rows say what their records have in common, no more or less.

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
    ).withColumn(_CERTAIN, F.array_except(BASE, UNCERTAIN))
    counts = (_EDGES, *_EDGE_FAULTS, *_ROW_FAULTS)
    found = (
        records.groupBy(_PLACES)
        .cogroup(rows.groupBy(_PLACES))
        .applyInArrow(_unfit, ", ".join(f"{name} long" for name in counts))
        .agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in counts))
        .collect()[0]
    )
    checked = found[_EDGES]
    said = {
        "outside": "differ in an item that is not uncertain",
        "too_many": f"differ in more than {MAX_ERRORS} items",
        "missing": "have no record or no slot",
    }
    parts = [f"{found[name]} of {checked} edges {text}." for name, text in said.items() if found[name]]
    if found["loose"]:
        parts.append(f"{found['loose']} rows do not say just what their records have in common.")
    if not checked:
        parts = ["there are no edges."]
    return Verdict(
        name="compatibility",
        passed=not parts,
        violations=sum(found[name] for name in (*_EDGE_FAULTS, *_ROW_FAULTS)),
        checked=checked,
        detail=" ".join(parts) or f"all {checked} edges join a record and a row it may be.",
        facts={"edges": checked, **{name: found[name] for name in (*_EDGE_FAULTS, *_ROW_FAULTS)}},
    )


def verify_labels(
    linked: DataFrame,
    staged: DataFrame,
    edges: DataFrame,
    sensitive: str,
    l: int | None = None,  # noqa: E741 - the literature's name
) -> Verdict:
    """Whether each slot shows the sensitive value of its chosen record; with l, whether a record's slots show l different.

    Guarantee: passed iff there are records, the value of every record is that of the slot of its one chosen edge, and
    (with l) the values of all its slots are pairwise distinct and at least l. Null is a value, text is compared byte by
    byte. violations counts records, checked counts records. Cost: one job; the edges are shuffled twice (by slot, by
    record), records and rows once; one row reaches the driver.
    """
    require_columns(linked, [LINK, sensitive], "linked records")
    require_columns(staged, [BLOCK, SLOT, sensitive], "staged release")
    require_columns(edges, [LINK, BLOCK, SLOT, CHOSEN], "edges")
    own = linked.select(LINK, *_label(linked, sensitive, _LABEL))
    shown = staged.select(BLOCK, SLOT, *_label(staged, sensitive, _SHOWN))
    seen = (
        edges.join(shown, [BLOCK, SLOT], "left")
        .groupBy(LINK)
        .agg(
            F.count(F.lit(1)).alias(_EDGES),
            F.count(_SHOWN).alias(_PARTNERS),
            F.size(F.collect_set(_SHOWN)).alias(_LABELS),
            F.count_if(CHOSEN).alias(_TAKEN),
            *(F.max(F.when(F.col(CHOSEN), F.col(name))).alias(name) for name in (_SHOWN, _SHOWN + _WRITTEN)),
        )
    )
    compared = own.join(seen, LINK, "full")
    few = F.col(_LABELS) < F.greatest(F.col(_EDGES), F.lit(l)) if l is not None else F.lit(False)
    faults = {
        "unlinked": F.isnull(_LABEL) | F.isnull(_EDGES) | (F.col(_TAKEN) != 1) | (F.col(_PARTNERS) < F.col(_EDGES)),
        "not_moved": ~F.col(_LABEL).eqNullSafe(F.col(_SHOWN))
        | ~F.col(_LABEL + _WRITTEN).eqNullSafe(F.col(_SHOWN + _WRITTEN)),
        "alike": F.coalesce(few, F.lit(True)),
    }
    known = {name: F.coalesce(fault, F.lit(True)) for name, fault in faults.items()}
    found = compared.agg(
        F.count(F.lit(1)).alias("records"),
        total(reduce(or_, known.values()), F.lit(1)).alias("faulty"),
        *(total(fault, F.lit(1)).alias(name) for name, fault in known.items()),
    ).collect()[0]
    records = found["records"]
    said = {
        "unlinked": "have no one chosen slot",
        "not_moved": "do not find their sensitive value in the chosen slot",
        "alike": f"have slots with the same sensitive value, or fewer than {l}",
    }
    parts = [f"{found[name]} of {records} records {text}." for name, text in said.items() if found[name]]
    if not records:
        parts = ["there are no records."]
    distinct = "" if l is None else f", and the slots of a record show {l} or more, all different"
    return Verdict(
        name="labels",
        passed=not parts,
        violations=found["faulty"],
        checked=records,
        detail=" ".join(parts) or f"all {records} sensitive values moved with the assignment{distinct}.",
        facts={"l": l, "records": records, **{name: found[name] for name in faults}},
    )


# -- steps ----------------------------------------------------------------------------------------------------------


def _label(frame: DataFrame, sensitive: str, name: str) -> list[Column]:
    """A sensitive value, and how it is written: -0.0 is not 0.0 to a reader, although they count as one."""
    value = exact(frame, sensitive)
    return [F.struct(value.alias("value")).alias(name), F.struct(value.cast("string").alias("text")).alias(name + _WRITTEN)]


def _ends(table: DataFrame, edges: DataFrame, keys: list[str], partner: Column) -> DataFrame:
    """One row per record (or slot) of the table or of an edge: what its edges are like. Cost: one shuffle of edges."""
    names = {_PARTNERS: partner, _PLACES: F.struct(BLOCK, PART), ROUND: F.col(ROUND), _TAKEN: F.col(CHOSEN)}
    looks = [value.alias(name) for name, value in names.items()]
    ends = edges.select(*keys, F.lit(0).alias(ROWS), F.lit(1).alias(_EDGES), *looks)
    own = table.select(
        *keys,
        F.lit(1).alias(ROWS),
        F.lit(0).alias(_EDGES),
        *(F.lit(None).cast(ends.schema[name].dataType).alias(name) for name in names),
    )
    place = F.min(_PLACES)
    return own.unionByName(ends).groupBy(*keys).agg(
        F.lit(keys[-1]).alias(_SIDE),
        F.sum(ROWS).alias(ROWS),
        F.sum(_EDGES).alias(_EDGES),
        F.size(F.collect_set(_PARTNERS)).alias(_PARTNERS),
        F.size(F.collect_set(_PLACES)).alias(_PLACES),
        F.size(F.collect_set(ROUND)).alias(_ROUNDS),
        F.min(ROUND).alias(_FIRST),
        F.max(ROUND).alias(_LAST),
        F.count_if(_TAKEN).alias(_TAKEN),
        place[BLOCK].alias("block"),
        place[PART].alias("part"),
    ).select(
        _SIDE, ROWS, _EDGES, _PARTNERS, _PLACES, _ROUNDS, _FIRST, _LAST, _TAKEN,
        F.col("block").alias(BLOCK), F.col("part").alias(PART),
    )  # fmt: skip


def _end_faults(degree: int) -> Mapping[str, Column]:
    """Kind of fault → whether a record or slot of `_ends` has it."""
    edges, some = F.col(_EDGES), F.col(_EDGES) > 0
    rounds = (F.col(_ROUNDS) == edges) & (F.col(_FIRST) == 0) & (F.col(_LAST) == edges - 1)
    return {
        "unknown": F.col(ROWS) == 0,
        "repeated": F.col(ROWS) > 1,
        "few": edges < degree,
        "doubled": some & (F.col(_PARTNERS) < edges),
        "scattered": F.col(_PLACES) > 1,
        "rounds": some & ~F.coalesce(rounds, F.lit(False)),
        "chosen": F.col(_TAKEN) != 1,
    }


_END_SAID = {
    "unknown": "are in the graph, and not in the table",
    "repeated": "are in the table more than once",
    "few": "have too few edges",
    "doubled": "have an edge twice",
    "scattered": "have edges in several parts",
    "rounds": "are not in each round once",
    "chosen": "do not have exactly one chosen edge",
}
_PART_SAID = {"uneven": "parts have unequal numbers of edges", "choices": "parts do not have exactly one chosen round"}


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
    own, record, row = numbered(records[_ITEMS], names), np.repeat(np.arange(sizes.size), sizes), row.astype(np.int64)
    base, uncertain, certain = (numbered(rows[name], names) for name in (BASE, UNCERTAIN, _CERTAIN))
    most = np.asarray(rows[MAX_ERRORS], dtype=np.int64)
    found = unfit_edges(own, record, row, base, uncertain, certain, most, len(names))
    counts = {name: [int(value)] for name, value in zip(_EDGE_FAULTS, found, strict=True)}
    loose = loose_rows(own, record[row >= 0], row[row >= 0], base, uncertain, most, len(names))
    return pa.table({_EDGES: [wanted.size], **counts, "loose": [loose]})


@compiled
def unfit_edges(
    records: Lists, record: Ints, row: Ints, base: Lists, uncertain: Lists, certain: Lists, most: Ints, items: int
) -> tuple[int, int, int]:
    """Edges (record[e], row[e]), grouped by record, with an error that is not uncertain, with too many, without a row."""
    offsets, numbers = records
    has = np.zeros(items, dtype=np.bool_)
    outside, too_many, missing = 0, 0, 0
    last = -1
    for edge in range(record.size):
        own = record[edge]
        if own != last:
            if last >= 0:
                for at in range(offsets[last], offsets[last + 1]):
                    has[numbers[at]] = False
            for at in range(offsets[own], offsets[own + 1]):
                has[numbers[at]] = True
            last = own
        if row[edge] < 0:
            missing += 1
            continue
        size = offsets[own + 1] - offsets[own]
        sure = shared(has, certain, row[edge])
        covers_all = sure + shared(has, uncertain, row[edge]) == size  # the record has nothing else
        if not covers_all or sure < certain[0][row[edge] + 1] - certain[0][row[edge]]:
            outside += 1
        elif size + base[0][row[edge] + 1] - base[0][row[edge]] - 2 * shared(has, base, row[edge]) > most[row[edge]]:
            too_many += 1
    return outside, too_many, missing


@compiled
def shared(has: Marks, lists: Lists, row: int) -> int:
    """How many items of a row's list the marked record has."""
    total = 0
    for at in range(lists[0][row], lists[0][row + 1]):
        if has[lists[1][at]]:
            total += 1
    return total
