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
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.guarantees.draw import taken_rounds
from anon_spark.auditing.reading.item_sets import Ints, Marks, item_set, names_in, numbered
from anon_spark.auditing.reading.values import content_hash, exact, hashed, private
from anon_spark.auditing.truth.common_items import loose_rows
from anon_spark.auditing.truth.nonreciprocal import unfit_edges
from anon_spark.columns import BASE, BLOCK, CHOSEN, LINK, MAX_ERRORS, PART, ROUND, SLOT, UNCERTAIN
from anon_spark.pending import Pending

_PLACE, _ITEMS, _CERTAIN = private("place"), private("items"), private("certain")
_LABEL, _WRITTEN, _HASH, _RECORDS = private("label"), private("written"), private("hash"), private("records")
_COUNTS = ("records", "slots", "parts", "edges", "faulty", "links")
_EDGE = [LINK, SLOT, ROUND, CHOSEN, PART]


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


def sound_blocks(linked: DataFrame, staged: DataFrame, edges: DataFrame, promise: Promise) -> Pending[Sound | None]:
    """The size of a sound graph; None where anything is wrong with it, or where there is none.

    The frames are those of `verify_graph`. Guarantee: not None iff verify_graph, verify_labels (with a sensitive column),
    verify_compatible and (with a key) the rounds of verify_draw all pass, up to 64-bit hashes of links and sensitive values.
    Cost: one job; one shuffle of the edges, the rows and the records by block, one of the records by link; a task holds a block.
    """
    shown = promise.sensitive
    taken = edges.where(F.col(CHOSEN)).select(LINK, F.col(BLOCK).alias(_PLACE))
    records = linked.select(LINK, item_set(promise.items).alias(_ITEMS), *_label(linked, shown)).join(taken, LINK)
    ends = edges.select(F.col(BLOCK).alias(_PLACE), *_EDGE)
    left = ends.unionByName(records.withColumn(_HASH, F.xxhash64(LINK)), allowMissingColumns=True)
    rows = staged.select(
        F.col(BLOCK).alias(_RECORDS),  # under a new name: both sides may come from one frame
        SLOT,
        item_set(BASE).alias(BASE),
        item_set(UNCERTAIN).alias(UNCERTAIN),
        F.coalesce(MAX_ERRORS, F.lit(-1)).cast("long").alias(MAX_ERRORS),
        *_label(staged, shown),
    ).withColumn(_CERTAIN, F.array_except(BASE, UNCERTAIN))

    def look(of_records: pa.Table, of_rows: pa.Table) -> pa.Table:
        return looked_at(of_records, of_rows, promise)  # by name: a compiled function sent to a task is compiled again

    found = left.groupBy(_PLACE).cogroup(rows.groupBy(_RECORDS)).applyInArrow(look, ", ".join(f"{name} long" for name in _COUNTS))
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


def _label(frame: DataFrame, sensitive: str | None) -> list[Column]:
    """A sensitive value as it counts, and as it is written: -0.0 is not 0.0 to a reader."""
    if sensitive is None:
        return []
    value = exact(frame, sensitive)
    return [content_hash([value]).alias(_LABEL), hashed(frame, [sensitive]).alias(_WRITTEN)]


# --- one block, as arrays -----------------------------------------------------------------------------------------------


def looked_at(left: pa.Table, rows: pa.Table, promise: Promise) -> pa.Table:
    """The size of a block, whether anything is wrong with it, and the sum of the hashes of its links."""
    edges, records = left.filter(left.column(_ITEMS).is_null()), left.filter(left.column(_ITEMS).is_valid())
    links, hashes = (np.asarray(records.column(name), dtype=np.int64) for name in (LINK, _HASH))
    total = int(hashes.view(np.uint64).sum()) if hashes.size else 0
    parts = 0
    whole = not any(edges.column(name).null_count for name in _EDGE) and not rows.column(SLOT).null_count
    if whole and records.num_rows and rows.num_rows and edges.num_rows:
        graph = _Graph.of(edges, links, np.asarray(rows.column(SLOT), dtype=np.int64))
        whole = graph is not None and _is_fair(graph, promise)
        if whole and graph is not None:
            parts = int(graph.part.max()) + 1
            whole = _is_drawn(graph, left, promise) and _is_true(graph, records, rows, promise)
    else:
        whole = False
    links_sum = int(np.uint64(total % 2**64).astype(np.int64))  # as the bits of a long
    counts = (records.num_rows, rows.num_rows, parts, edges.num_rows, int(not whole), links_sum)
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
    def of(cls, edges: pa.Table, links: Ints, slots: Ints) -> _Graph | None:
        """None where a record or slot is there twice, or an edge has no record or no slot."""
        link, slot, round_, part = (np.asarray(edges.column(name), dtype=np.int64) for name in (LINK, SLOT, ROUND, PART))
        record_at, slot_at = _places(links, link), _places(slots, slot)
        if record_at is None or slot_at is None:
            return None
        numbers = np.unique(part, return_inverse=True)[1].reshape(-1)
        chosen = np.asarray(edges.column(CHOSEN), dtype=np.bool_)
        return cls(record_at, slot_at, round_, chosen, numbers, links.size, slots.size)


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
            and np.unique(end * (int(graph.round.max()) + 1) + graph.round).size == size
            and (np.bincount(end[graph.chosen], minlength=count) == 1).all()
        )
        if not fair:
            return False
    pairs = np.unique(graph.record * graph.slots + graph.slot).size
    chosen = np.unique(np.stack([graph.part[graph.chosen], graph.round[graph.chosen]]), axis=1).shape[1]
    return pairs == size and chosen == of_part.size


def _is_drawn(graph: _Graph, left: pa.Table, promise: Promise) -> bool:
    """Whether the key chose the round of every part."""
    if promise.key is None:
        return True
    taken = np.zeros(int(graph.part.max()) + 1, dtype=np.int64)
    taken[graph.part[graph.chosen]] = graph.round[graph.chosen]
    rounds = np.zeros_like(taken)
    np.maximum.at(rounds, graph.part, graph.round + 1)
    return taken_rounds(promise.key, int(left.column(_PLACE)[0].as_py()), rounds.tolist()) == taken.tolist()


def _is_true(graph: _Graph, records: pa.Table, rows: pa.Table, promise: Promise) -> bool:
    """Whether sensitive values moved with the assignment, and each row says just what its records have in common."""
    if promise.sensitive is not None:
        mine = {name: np.asarray(records.column(name), dtype=np.int64)[graph.record] for name in (_LABEL, _WRITTEN)}
        shown = {name: np.asarray(rows.column(name), dtype=np.int64)[graph.slot] for name in (_LABEL, _WRITTEN)}
        if any((mine[name] != shown[name])[graph.chosen].any() for name in mine):
            return False
        if promise.l is not None:
            values = np.unique(np.stack([graph.record, shown[_LABEL]]), axis=1)
            if values.shape[1] < graph.record.size or np.bincount(values[0]).min() < promise.l:
                return False
    names = names_in(records.column(_ITEMS), rows.column(BASE), rows.column(UNCERTAIN))
    items = numbered(records.column(_ITEMS), names)
    base, uncertain, certain = (numbered(rows.column(name), names) for name in (BASE, UNCERTAIN, _CERTAIN))
    most: Any = np.asarray(rows.column(MAX_ERRORS), dtype=np.int64)
    order = np.argsort(graph.record, kind="stable")  # edges of a record follow each other
    record, slot = graph.record[order], graph.slot[order]
    if any(unfit_edges(items, record, slot, base, uncertain, certain, most, len(names))):
        return False
    return loose_rows(items, record, slot, base, uncertain, most, len(names)) == 0
