"""Whether the private graph of a nonreciprocal recoding is sound, block by block in one pass.

It answers with yes or no what `verify_graph`, `verify_labels`, `verify_draw` and `verify_compatible` answer with counts. A block
holds all edges of its records and slots, so a task can look at it with plain arrays, while those look at all edges of the table
several times. Only after a no are they needed: to tell what is wrong, and how often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.arrays import each_once
from anon_spark.auditing.guarantees.draw import taken_rounds
from anon_spark.auditing.reading.item_sets import Ints, Lists, Marks, names_in, numbered
from anon_spark.auditing.reading.values import content_hash, exact, hashed, private, quoted
from anon_spark.auditing.truth.common_items import faults_of
from anon_spark.columns import BASE, BLOCK, LINK, MAX_ERRORS, PART, SLOT, SLOTS, TAKEN, UNCERTAIN
from anon_spark.compiled import compiled
from anon_spark.pending import Pending

_PLACE, _ITEMS = private("place"), private("items")
_LABEL, _WRITTEN, _HASH, _ROWS = private("label"), private("written"), private("hash"), private("rows")
_COUNTS = ("records", "slots", "parts", "edges", "faulty", "links")


@dataclass(frozen=True)
class Promise:
    """What a graph is checked for. sensitive: the column whose values move with the assignment; key: that chose the rounds."""

    degree: int
    items: str
    sensitive: str | None = None
    l: int | None = None  # noqa: E741 - the literature's name
    key: str | None = None


@dataclass(frozen=True)
class Sound:
    """The size of a graph that keeps everything it was checked for."""

    records: int
    parts: int
    edges: int


def sound_blocks(linked: DataFrame, staged: DataFrame, graph: DataFrame, promise: Promise) -> Pending[Sound | None]:
    """The size of a sound graph; None where anything is wrong with it, or where there is none.

    linked, staged: as for `verify_graph`; graph: LINK, BLOCK, PART, SLOTS (the slots of a record, by round), TAKEN (the round
    that is published). Guarantee: not None only if verify_graph, verify_labels (with a sensitive column), verify_compatible and
    (with a key) the rounds of verify_draw all pass, up to 64-bit hashes of links and sensitive values. They all pass and it is
    None only where a list of items is null, has a null or names an item twice.
    Cost: one job; one shuffle of graph and records by link, one of both and of the rows by block; a task holds a block.
    """
    shown = promise.sensitive
    known = linked.select(
        LINK, _texts(promise.items).alias(_ITEMS), F.xxhash64(LINK).alias(_HASH), *_label(linked, shown)
    )
    records = graph.select(LINK, F.col(BLOCK).alias(_PLACE), PART, SLOTS, TAKEN).join(known, LINK, "left")
    rows = staged.select(
        F.col(BLOCK).alias(_ROWS),  # under a new name: both sides may come from one frame
        SLOT,
        *(_texts(name).alias(name) for name in (BASE, UNCERTAIN)),
        F.coalesce(MAX_ERRORS, F.lit(-1)).cast("long").alias(MAX_ERRORS),
        *_label(staged, shown),
    )

    def look(of_records: pa.Table, of_rows: pa.Table) -> pa.Table:
        return looked_at(of_records, of_rows, promise)  # by name: a compiled function sent to a task is compiled again

    found = records.groupBy(_PLACE).cogroup(rows.groupBy(_ROWS)).applyInArrow(look, ", ".join(f"{name} long" for name in _COUNTS))
    sums = found.agg(*(F.coalesce(F.sum(F.col(name).cast("decimal(20,0)")), F.lit(0)).alias(name) for name in _COUNTS))
    whole = linked.agg(
        F.count(F.lit(1)).alias("records"), F.coalesce(F.sum(F.xxhash64(LINK).cast("decimal(20,0)")), F.lit(0)).alias("links")
    )
    return Pending((sums, whole), lambda answers: _sound(answers[0][0], answers[1][0]))


def _sound(found: Row, whole: Row) -> Sound | None:
    """Every linked record is in one block: as many, and with the same sum of hashes, modulo 2^64."""
    count = {name: int(found[name]) for name in _COUNTS}
    same = count["records"] == whole["records"] and (count["links"] - int(whole["links"])) % 2**64 == 0
    if count["faulty"] or not count["records"] or not same:
        return None
    return Sound(count["records"], count["parts"], count["edges"])


def _texts(name: str) -> Column:
    return F.col(quoted(name)).cast("array<string>")


def _label(frame: DataFrame, sensitive: str | None) -> list[Column]:
    """A sensitive value as it counts, and as it is written: -0.0 is not 0.0 to a reader."""
    if sensitive is None:
        return []
    value = exact(frame, sensitive)
    return [content_hash([value]).alias(_LABEL), hashed(frame, [sensitive]).alias(_WRITTEN)]


# --- one block, as arrays -----------------------------------------------------------------------------------------------


def looked_at(records: pa.Table, rows: pa.Table, promise: Promise) -> pa.Table:
    """The size of a block, whether anything is wrong with it, and the sum of the hashes of its links."""
    graph = _Graph.of(records, rows) if records.num_rows and rows.num_rows else None
    sound = (
        graph is not None
        and _is_fair(graph, promise)
        and _is_drawn(graph, int(records.column(_PLACE)[0].as_py()), promise)
        and _is_true(graph, records, rows, promise)
    )
    hashes = np.asarray(records.column(_HASH).drop_null(), dtype=np.int64)
    links = int(hashes.view(np.uint64).sum().astype(np.int64)) if hashes.size else 0  # as the bits of a long
    parts, edges = (0, 0) if graph is None else (int(graph.part.max()) + 1, graph.record.size)
    counts = (records.num_rows, rows.num_rows, parts, edges, int(not sound), links)
    return pa.table({name: [count] for name, count in zip(_COUNTS, counts, strict=True)})


@dataclass(frozen=True)
class _Graph:
    """Edges between records and slots, both by their place; parts are numbered from 0."""

    record: Ints
    slot: Ints
    round: Ints
    chosen: Marks
    part: Ints
    records: int
    slots: int

    @classmethod
    def of(cls, records: pa.Table, rows: pa.Table) -> _Graph | None:
        """None where something is null, a record or slot is there twice, or an edge has no record or no slot."""
        needed = [records.column(name) for name in (_PLACE, LINK, PART, SLOTS, TAKEN, _ITEMS)] + [rows.column(SLOT)]
        slots: Any = pc.list_flatten(records.column(SLOTS))
        if any(column.null_count for column in needed) or slots.null_count or not len(slots):
            return None
        links, part, taken = (np.asarray(records.column(name), dtype=np.int64) for name in (LINK, PART, TAKEN))
        known = np.asarray(rows.column(SLOT), dtype=np.int64)
        slot = _places(known, np.asarray(slots, dtype=np.int64))
        if slot is None or each_once(links).size < links.size:
            return None
        sizes = np.asarray(pc.list_value_length(records.column(SLOTS)), dtype=np.int64)
        record = np.repeat(np.arange(links.size), sizes)
        round_ = np.arange(record.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        numbers = np.unique(part, return_inverse=True)[1].reshape(-1)
        return cls(record, slot, round_, round_ == taken[record], numbers[record], links.size, known.size)


def _places(known: Ints, wanted: Ints) -> Ints | None:
    """The place of each wanted number among the known ones; None where these repeat, or lack one."""
    order = np.argsort(known)
    ordered = known[order]
    at = np.minimum(np.searchsorted(ordered, wanted), max(0, known.size - 1))
    if not known.size or (ordered[1:] == ordered[:-1]).any() or (ordered[at] != wanted).any():
        return None
    return order[at]


def _is_fair(graph: _Graph, promise: Promise) -> bool:
    """Whether rounds are perfect matchings of their parts that share no edge, and one of each part is chosen."""
    size = graph.record.size
    of_part = np.full(int(graph.part.max()) + 1, -1, dtype=np.int64)  # edges of each record and slot of a part
    for end, count in ((graph.record, graph.records), (graph.slot, graph.slots)):
        edges = np.bincount(end, minlength=count)
        part = np.full(count, -1, dtype=np.int64)
        part[end] = graph.part
        of_part[graph.part] = np.where(of_part[graph.part] < 0, edges[end], of_part[graph.part])
        fair = (
            edges.min() >= promise.degree
            and (part[end] == graph.part).all()
            and (of_part[graph.part] == edges[end]).all()
            and graph.round.min() >= 0
            and (graph.round < edges[end]).all()
            and each_once(end * (int(graph.round.max()) + 1) + graph.round).size == size
            and (np.bincount(end[graph.chosen], minlength=count) == 1).all()
        )
        if not fair:
            return False
    pairs = each_once(graph.record * graph.slots + graph.slot).size
    chosen = each_once((graph.part * (int(graph.round.max()) + 1) + graph.round)[graph.chosen]).size
    return pairs == size and chosen == of_part.size


def _is_drawn(graph: _Graph, block: int, promise: Promise) -> bool:
    """Whether the key chose the round of every part."""
    if promise.key is None:
        return True
    taken = np.zeros(int(graph.part.max()) + 1, dtype=np.int64)
    taken[graph.part[graph.chosen]] = graph.round[graph.chosen]
    rounds = np.zeros_like(taken)
    np.maximum.at(rounds, graph.part, graph.round + 1)
    return taken_rounds(promise.key, block, rounds.tolist()) == taken.tolist()


def _is_true(graph: _Graph, records: pa.Table, rows: pa.Table, promise: Promise) -> bool:
    """Whether sensitive values moved with the assignment, and each row says just what its records have in common."""
    if promise.sensitive is not None:
        mine = {name: np.asarray(records.column(name), dtype=np.int64)[graph.record] for name in (_LABEL, _WRITTEN)}
        shown = {name: np.asarray(rows.column(name), dtype=np.int64)[graph.slot] for name in (_LABEL, _WRITTEN)}
        if any((mine[name] != shown[name])[graph.chosen].any() for name in mine):
            return False
        if promise.l is not None:
            label = np.unique(shown[_LABEL], return_inverse=True)[1].reshape(-1)
            values = each_once(graph.record * (int(label.max()) + 1) + label)  # of a record and a value
            if values.size < graph.record.size or np.bincount(graph.record).min() < promise.l:
                return False
    names = names_in(records.column(_ITEMS), rows.column(BASE), rows.column(UNCERTAIN))
    lists = [numbered(column, names) for column in (records.column(_ITEMS), rows.column(BASE), rows.column(UNCERTAIN))]
    if rows.column(BASE).null_count or rows.column(UNCERTAIN).null_count or not all(are_sets(one, len(names)) for one in lists):
        return False
    items, base, uncertain = lists
    most = np.asarray(rows.column(MAX_ERRORS), dtype=np.int64)
    return not any(faults_of(items, graph.record, graph.slot, base, uncertain, most, len(names)))


@compiled
def are_sets(lists: Lists, items: int) -> bool:
    """Whether every number of the lists is one of an item, and no list has it twice."""
    offsets, numbers = lists
    last = np.full(max(1, items), -1, dtype=np.int64)
    for row in range(offsets.size - 1):
        for at in range(offsets[row], offsets[row + 1]):
            item = numbers[at]
            if item < 0 or last[item] == row:
                return False
            last[item] = row
    return True
