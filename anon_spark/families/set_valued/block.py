"""One block, from records in Gray order to slots: order, graph, all assignments, the chosen one. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from anon_spark.families.set_valued.kernels.graphs import (
    Fields,
    Graph,
    error_rate,
    groups_graph,
    published_fields,
    ring_graph,
)
from anon_spark.families.set_valued.kernels.greedy_graph import greedy_graph
from anon_spark.families.set_valued.kernels.groups import best_groups
from anon_spark.families.set_valued.kernels.spacing import spaced_ring_of, stride_graph, stride_order
from anon_spark.families.set_valued.kernels.swaps import regrouped
from anon_spark.families.set_valued.kernels.tours import tours
from anon_spark.families.set_valued.kernels.walks import assignment, disjoint_rounds, permuted_rounds, shift_rounds
from anon_spark.families.set_valued.kernels.windows import SPAN, improved_ring, window_neighbours
from anon_spark.kernels.bitmaps import Sets, taken
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.randomness import uniform

Order = Literal["window", "gray_tsp", "gray"]
GraphKind = Literal["ring", "groups"]
Truth = Literal["spaced", "shift", "paper"]
Effort = Literal["none", "normal", "deep"]

BLOCK_RECORDS = 5_000
SEGMENT = (300, 350)
WALK, CHOICE = "walk", "choice"  # purposes of secret draws
STRIDE = "stride"  # the order by labels alone


@dataclass(frozen=True)
class Settings:
    """Settings of a fit: k or l, and how the order and the graph are made."""

    k: int | None = None
    l: int | None = None  # noqa: E741 - the literature's name
    order: Order = "window"
    segment: tuple[int, int] = SEGMENT
    graph: GraphKind = "groups"
    truth: Truth = "spaced"
    block: int = BLOCK_RECORDS
    effort: Effort = "normal"  # of the search for better groups
    strides: bool = False  # with `shift`: order records by labels alone if the labels cannot be spaced

    @property
    def shifts(self) -> bool:
        """Whether only the shifts of a ring are assignments, because others could repeat labels."""
        return self.l is not None and self.truth == "shift" and self.graph == "ring"

    @property
    def degree(self) -> int:
        """The least number of slots of a record."""
        degree = self.k if self.k is not None else self.l
        assert degree is not None, "one of k and l is given"
        return degree

    @property
    def spacing(self) -> int:
        """How many neighbours in a ring must have distinct labels; 1 without l."""
        if self.l is None:
            return 1
        return 2 * self.l - 1 if self.truth == "spaced" else self.l

    @property
    def block_records(self) -> int:
        """The least number of records of a block."""
        return max(self.block, 10 * self.degree)


class Arrangement(NamedTuple):
    """Records in the order of their ranks, the graph over ranks, and the kind of the chosen order."""

    order: Ints
    sets: Sets
    graph: Graph
    fields: Fields
    kind: str
    error: float  # ER: mean share of flipped bits over the records that have items


class Drawn(NamedTuple):
    """All assignments of a graph, as the round of each edge, and the slot of each original in the one that is chosen."""

    rounds: Codes
    chosen: Ints  # per part
    slots: Codes
    steps: int


def arrange(
    sets: Sets, starts: Ints, labels: Codes | None, settings: Settings, key: str, block: int
) -> Arrangement | None:
    """Order and graph of records in Gray order whose segments begin at `starts`: of all configured orders, the one with
    the least ER. None if the labels cannot be spaced.

    Guarantee: every record has at least k (l) slots, every slot as many records. For k, order and graph depend on the
    item sets alone. Cost: records² Hamming distances for the window order and for labels.
    """
    best: Arrangement | None = None
    orders = _orders(sets, starts, settings) if settings.l is None else _spaced(sets, starts, labels, settings, key, block)
    for kind, order in orders:
        tried = _arranged(sets, order, labels, settings, key, block, kind)
        if tried is not None and (best is None or tried.error < best.error):
            best = tried
    return best if best is None or settings.graph == "ring" else _regrouped(best, labels, settings)


def _regrouped(found: Arrangement, labels: Codes | None, settings: Settings) -> Arrangement:
    """As many groups with a lower error rate, if swaps and moves of records find some."""
    if settings.effort == "none":
        return found
    spaced = labels[found.order] if labels is not None and settings.l is not None else None
    better = regrouped(found.sets, np.bincount(found.graph.part), settings.degree, spaced, settings.effort)
    sets, graph = taken(found.sets, better.order), groups_graph(better.sizes)
    fields = published_fields(sets, graph)
    error = error_rate(sets, graph, fields.base)
    return Arrangement(found.order[better.order], sets, graph, fields, found.kind, error) if error < found.error else found


def draw(graph: Graph, settings: Settings, key: str, block: int, kind: str = "") -> Drawn:
    """All disjoint assignments of the graph, then one of them for each part.

    Guarantee: each edge is chosen with probability exactly 1 / degree, whatever the walks; in groups each permutation of a
    group with the same probability, so a known link tells nothing but that its slot is taken.
    Cost: the walks, typically edges to 15 × edges; in groups one draw per record.
    """
    if settings.graph == "groups":
        rounds = permuted_rounds(graph, key, WALK, block)
    elif settings.shifts or kind == STRIDE:
        rounds = shift_rounds(graph.part.size, settings.degree)
    else:
        rounds = disjoint_rounds(graph, key, WALK, block)
    first = np.flatnonzero(np.diff(graph.part, prepend=-1))
    chosen = uniform(key, CHOICE, block, np.diff(graph.offsets)[first])
    return Drawn(rounds.round_of_edge, chosen, assignment(graph, rounds.round_of_edge, chosen), rounds.steps)


def _orders(sets: Sets, starts: Ints, settings: Settings) -> Iterator[tuple[str, Ints]]:
    gray = np.arange(sets.offsets.size - 1)
    if settings.order != "gray_tsp":
        yield "gray", gray
    if settings.order == "gray":
        return
    yield "gray_tsp", tours(sets, gray, starts)
    if settings.order == "window":
        degree = settings.degree
        yield "window", improved_ring(sets, gray, degree, SPAN)
        yield "window_nearest", improved_ring(sets, window_neighbours(sets, gray, degree), degree, SPAN)


def _spaced(
    sets: Sets, starts: Ints, labels: Codes | None, settings: Settings, key: str, block: int
) -> Iterator[tuple[str, Ints]]:
    assert labels is not None and settings.l is not None, "l is a promise about labels"
    gray = np.arange(labels.size)
    if settings.truth == "paper":
        yield "gray_tsp", tours(sets, gray, starts)
        return
    ring = spaced_ring_of(sets, gray, labels, settings.l, settings.spacing, key, block)
    if ring is not None:
        yield "spaced", ring
    elif settings.strides:
        yield STRIDE, stride_order(labels, settings.l)


def _arranged(
    sets: Sets, order: Ints, labels: Codes | None, settings: Settings, key: str, block: int, kind: str
) -> Arrangement | None:
    ringed = taken(sets, order)
    spaced = labels[order] if labels is not None and settings.l is not None else None
    if settings.graph == "groups":
        sizes = best_groups(ringed, np.arange(order.size), settings.degree, spaced)
        if sizes is None:
            return None
        graph = groups_graph(sizes)
    elif spaced is not None and settings.truth == "paper":
        greedy = greedy_graph(ringed, spaced, settings.degree, key, block)
        graph, kind = greedy.graph, STRIDE if greedy.stride else kind
    elif kind == STRIDE:
        graph = stride_graph(order.size, settings.degree)
    else:
        graph = ring_graph(order.size, settings.degree)
    fields = published_fields(ringed, graph)
    return Arrangement(order, ringed, graph, fields, kind, error_rate(ringed, graph, fields.base))
