"""Releases of one table side by side, on arrays in this process: blocks, orders, graphs and draws as the family makes them.

ER and QE of every order by k and of every way to keep labels apart by l, beside CAHD; seconds are those after the sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from anon_spark.errors import DataError
from anon_spark.families.set_valued.block import Arrangement, Settings, arrange, draw
from anon_spark.families.set_valued.kernels.graphs import Graph, error_rate, published_fields, ring_graph
from anon_spark.kernels.bitmaps import Words, items_of
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.metrics.query_error import QueryError, Workload, distinct, draw_queries, places, presence
from jobs.benchmarks.set_valued.records import CHESS, Block, ItemSets, blocks_of, drawn_labels, in_gray_order, joined
from jobs.reproductions.set_valued.cahd import cahd

KS = (2, 4, 8, 12, 16, 20)
LARGE_K = 40  # where Gray-TSP has turned worse than Gray on Chess
LS = (2, 4, 6, 8)
KEY = "reproduction"
THREADS = 2
QUERIES, QUERY_SEED = 500, 3
QUERY_SIZES = {CHESS: (3, 4)}  # items that must be there, items that must not
OTHER_SIZES = (1, 5)
INPUT, GRAY, TSP, OURS, GROUPS, SWAPS = "input order", "Gray", "Gray-TSP", "window", "groups", "groups, swaps"
SPACED, SPACED_GROUPS, SPACED_SWAPS = "spaced", "spaced, groups", "spaced, groups, swaps"
SHIFT, PAPER, CAHD = "shift", "as printed", "CAHD"

ORDERS: dict[str, Callable[[int], Settings]] = {
    GRAY: lambda k: Settings(k=k, order="gray", graph="ring"),
    TSP: lambda k: Settings(k=k, order="gray_tsp", graph="ring"),
    OURS: lambda k: Settings(k=k, graph="ring"),
    GROUPS: lambda k: Settings(k=k, effort="none"),
    SWAPS: lambda k: Settings(k=k),
}
TRUTHS: dict[str, Callable[[int], Settings]] = {
    SPACED: lambda degree: Settings(l=degree, graph="ring"),
    SPACED_GROUPS: lambda degree: Settings(l=degree, effort="none"),
    SPACED_SWAPS: lambda degree: Settings(l=degree),
    SHIFT: lambda degree: Settings(l=degree, truth="shift", graph="ring"),
    PAPER: lambda degree: Settings(l=degree, truth="paper", graph="ring"),
}


class Part(NamedTuple):
    """One block with its order and graph."""

    block: Block
    arranged: Arrangement


@dataclass(frozen=True)
class Outcome:
    """What a release loses. colliding: the share of records whose published labels are not all different, where l was
    asked for."""

    error: float
    queries: QueryError
    seconds: float
    parts: Sequence[Part] = ()
    colliding: float | None = None


Outcomes = dict[str, dict[int, Outcome]]


@dataclass(frozen=True)
class Compared:
    """All releases of one table: by k, by l, and Gray and Gray-TSP for a large k."""

    table: ItemSets
    labels: Codes
    by_k: Outcomes
    by_l: Outcomes


class Asked(NamedTuple):
    """A fixed set of queries and how many records match each."""

    workload: Workload
    counts: Ints
    records: int

    def error(self, published: Iterable[Any]) -> QueryError:
        """QE of what is published, given in parts."""
        shown = sum((answers(lists, self.workload) for lists in published), np.zeros_like(self.counts))
        off, present = np.abs(self.counts - shown) / self.records, len(self.workload.present)
        return QueryError(float(off[:present].mean()), float(off[present:].mean()))


def compare(table: ItemSets, ks: Sequence[int] = KS, ls: Sequence[int] = LS, large: int | None = LARGE_K) -> Compared:
    """Every way, every k and l, with the same queries and labels."""
    ordered, _ = in_gray_order(table)
    labels = drawn_labels(table.records)  # of the records in Gray order
    asked = queries(table)
    by_k: Outcomes = {INPUT: {k: in_input_order(table, k, asked) for k in ks}}
    for way, settings in ORDERS.items():
        more = [large] if large is not None and way in (GRAY, TSP) else []
        by_k[way] = {k: released(ordered, settings(k), asked) for k in [*ks, *more]}
    by_l: Outcomes = {CAHD: {degree: by_cahd(ordered, labels, degree, asked) for degree in ls}}
    for way, settings in TRUTHS.items():
        by_l[way] = {degree: released(ordered, settings(degree), asked, labels) for degree in ls}
    return Compared(table, labels, by_k, by_l)


def queries(table: ItemSets) -> Asked:
    """Item sets drawn uniformly from the items of the table, once for all releases."""
    items = [int(code) for code in np.unique(table.codes)]
    sizes = QUERY_SIZES.get(table.name, OTHER_SIZES)
    present, absent = (draw_queries(items, QUERIES, size, QUERY_SEED + at) for at, size in enumerate(sizes))
    workload = Workload(present, absent)
    return Asked(workload, answers(lists_of(table.offsets, table.codes), workload), table.records)


def answers(lists: Any, workload: Workload) -> Ints:
    """How many item sets match each query, those for items that are there first."""
    known = distinct([*workload.present, *workload.absent])
    has = presence(lists, known)
    every = [np.count_nonzero(has[at].all(axis=0)) for at in places(workload.present, known)]
    none = [np.count_nonzero(~has[at].any(axis=0)) for at in places(workload.absent, known)]
    return np.array([*every, *none], dtype=np.int64)


def in_input_order(table: ItemSets, k: int, asked: Asked) -> Outcome:
    """One ring of the records as they came."""
    started = perf_counter()
    sets, graph = table.sets, ring_graph(table.records, k)
    base = published_fields(sets, graph).base
    error = error_rate(sets, graph, base)
    return Outcome(error, asked.error([item_lists(base, sets.codes)]), perf_counter() - started)


def released(ordered: ItemSets, settings: Settings, asked: Asked, labels: Codes | None = None) -> Outcome:
    """A table in Gray order with an order, a graph and draws for each of its blocks."""
    started = perf_counter()
    parts = arranged_blocks(ordered, settings, labels)
    colliding = None
    if labels is not None:
        drawn = [draw(part.arranged.graph, settings, KEY, part.block.number).slots for part in parts]
        found = [collisions(part, slots, labels) for part, slots in zip(parts, drawn, strict=True)]
        colliding = sum(found) / ordered.records
    seconds = perf_counter() - started
    counted = np.array([np.count_nonzero(np.diff(part.arranged.sets.offsets)) for part in parts])
    error = float(np.array([part.arranged.error for part in parts]) @ counted / max(1, counted.sum()))
    bases = (item_lists(part.arranged.fields.base, part.arranged.sets.codes) for part in parts)
    return Outcome(error, asked.error(bases), seconds, parts, colliding)


def arranged_blocks(
    ordered: ItemSets, settings: Settings, labels: Codes | None = None, threads: int = THREADS
) -> list[Part]:
    """Order and graph of each block; one whose labels cannot be spaced is joined with a neighbour, as the family does."""
    blocks = blocks_of(ordered, settings, labels)

    def work(block: Block) -> Arrangement | None:
        own = None if labels is None else numbered(labels[block.first : block.first + block.records])
        return arrange(block.sets, block.starts, own, settings, KEY, block.number)

    while True:
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(work, blocks))
        parts = [Part(block, made) for block, made in zip(blocks, found, strict=True) if made is not None]
        if len(parts) == len(blocks):
            return parts
        if len(blocks) == 1:
            raise DataError(f"{ordered.name}: the labels cannot be spaced for l = {settings.degree}.")
        at = min(found.index(None), len(blocks) - 2)
        blocks = [*blocks[:at], joined(ordered, *blocks[at : at + 2]), *blocks[at + 2 :]]


def by_cahd(ordered: ItemSets, labels: Codes, l: int, asked: Asked) -> Outcome:  # noqa: E741
    """The groups of CAHD over the whole table in Gray order."""
    started = perf_counter()
    sets = ordered.sets
    found = cahd(sets, labels, l, order=np.arange(ordered.records))
    seconds = perf_counter() - started
    return Outcome(found.error_rate, asked.error([item_lists(found.bases[found.group], sets.codes)]), seconds)


def collisions(part: Part, slots: Codes, labels: Codes) -> int:
    """How many records of a block have slots whose published labels are not all different."""
    own = labels[part.block.first + part.arranged.order]
    shown = np.empty_like(own)
    shown[slots] = own  # a slot carries the label of the record that was drawn for it
    return colliding_records(part.arranged.graph, shown)


def colliding_records(graph: Graph, shown: Codes) -> int:
    """How many originals have two slots with the same label."""
    degree = np.diff(graph.offsets)
    origin = np.repeat(np.arange(degree.size), degree)
    met = np.unique(np.stack([origin, shown[graph.slots]]), axis=1)[0]
    return int(np.count_nonzero(np.bincount(met, minlength=degree.size) < degree))


def numbered(labels: Codes) -> Codes:
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)


def item_lists(bitmaps: Words, codes: Ints) -> Any:
    """Bitmaps as an Arrow column of item lists."""
    offsets, items = items_of(bitmaps)
    return lists_of(offsets, codes[items])


def lists_of(offsets: Ints, codes: Ints) -> Any:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(codes, pa.int64()))
