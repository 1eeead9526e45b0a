"""Scores of one search: each node is evaluated once, and batches are counted for the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from anon_spark.metrics.loss import Loss
from anon_spark.model.front import Point
from anon_spark.model.lattice import Lattice, Node
from anon_spark.model.node_stats import NodeStats
from anon_spark.model.progress import Progress


class Counting(Protocol):
    """The part of the counting primitives that a search needs."""

    def evaluate(self, nodes: Sequence[Node]) -> list[NodeStats]: ...


class Scores:
    """k and loss of nodes, by batches, remembered.

    A node has a point for each k at which fewer rows are suppressed. `points` has the one of the largest k, as in the paper.
    """

    def __init__(self, lattice: Lattice, counting: Counting, loss: Loss, progress: Progress | None = None) -> None:
        self.lattice = lattice
        self.loss = loss
        self.batches = 0
        self.stats: dict[Node, NodeStats] = {}
        self.points: dict[Node, Point] = {}
        self._counting = counting
        self._progress = progress

    @property
    def evaluated(self) -> int:
        return len(self.points)

    def evaluate(self, nodes: Iterable[Node]) -> list[Point]:
        """Points of the nodes, in their order; only those not seen before are counted, in one batch."""
        wanted = list(nodes)
        missing = sorted({node for node in wanted if node not in self.points})
        if missing:
            self.batches += 1
            for stats in self._counting.evaluate(missing):
                self.stats[stats.node] = stats
                self.points[stats.node] = self._point(stats)
            self.tell(self.evaluated, self.lattice.size)
        return [self.points[node] for node in wanted]

    def evaluate_at(self, nodes: Iterable[Node], k: int) -> list[Point]:
        """Points of new nodes, in one batch, at the first k from this one on; of those that do not reach it, at their largest.

        Of each node only this is remembered.
        """
        missing = list(nodes)
        if missing:
            self.batches += 1
            for found in self._counting.evaluate(missing):
                bound = None if found.bound is None else _at(found.bound, k)
                stats = replace(_at(found, k), bound=bound)
                self.stats[stats.node] = stats
                self.points[stats.node] = self._point(stats)
        return [self.points[node] for node in missing]

    def curve(self, node: Node) -> list[Point]:
        """The points of an evaluated node, by ascending k and loss."""
        return [self._point(stats) for stats in self.stats[node].curve]

    def bounding(self, node: Node) -> list[Point]:
        """As `curve`, of what bounds the nodes below."""
        return [self._point(stats) for stats in self.stats[node].bounding.curve]

    def stats_of(self, point: Point) -> NodeStats:
        """The counts behind a point."""
        return next(stats for stats in self.stats[point.node].curve if stats.k == point.k)

    def _point(self, stats: NodeStats) -> Point:
        return Point(stats.node, stats.k, self.loss.numerator(stats), stats.suppressed, stats.classes)

    def tell(self, done: int, total: int, what: str = "nodes") -> None:
        if self._progress is not None:
            self._progress(done, total, what)


def _at(found: NodeStats, k: int) -> NodeStats:
    """The node at the first k from this one on, or at its largest."""
    return replace(next((one for one in found.curve if one.k >= k), found), lower=())
