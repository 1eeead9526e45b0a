"""POkA: from a base node down to ground nodes, up again through accepted nodes, on to the next base node.

The recursive searches of the paper are run level by level. Whether a node is evaluated depends only on whether a node
below it was continued, never on the order. So the nodes of one height are one batch, with the counters and results of the
recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Literal

from anon_spark.families.lattice.scores import Scores
from anon_spark.model.front import Point
from anon_spark.model.lattice import Node, below_or_equal

Depth = int | Literal["best", "worst"]
Accept = Callable[[Point], bool]
K_STOP = 2


@dataclass(frozen=True)
class Poka:
    """One search; `refine=False` is the printed algorithm (with the repairs without which it does not run)."""

    scores: Scores
    depth: Depth
    refine: bool = True

    def visit(self) -> list[Point]:
        """The base nodes in the order they were found; their non-dominated subset is POkA's front."""
        (top,) = self.scores.evaluate([self.scores.lattice.top])
        base = self._refined(top)
        visited = [base]
        while base.k > K_STOP:
            following = self._next(base)
            if following is None:
                break
            base = self._refined(following)
            visited.append(base)
        return visited

    def _next(self, base: Point) -> Point | None:
        def strictly(point: Point) -> bool:
            return 0 < point.k < base.k and point.loss < base.loss

        def on_plateau(point: Point) -> bool:
            return 0 < point.k < base.k and point.loss <= base.loss

        # 1. depth and height search     2. the same on a plateau of loss     3. a forced step
        return self._search(base, strictly) or self._search(base, on_plateau) or self._forced(base)

    def _search(self, base: Point, accept: Accept) -> Point | None:
        """Search down to the ground nodes, then up; nodes strictly inside SG(base) are passed, not evaluated."""
        height = sum(base.node)
        distance = min(self._depth_at(base.node), height)  # the bottom serves as ground before the full depth
        if distance == 0:
            return None
        frontier = set(_specializations_at(base.node, distance))
        accepted = [point for point in self.scores.evaluate(frontier) if accept(point)] if distance == 1 else []
        best = _best(accepted)
        while frontier:
            above = {up for node in frontier for up in self.scores.lattice.generalizations(node)}
            passed = {node for node in above if below_or_equal(node, base.node) and height - sum(node) > 1}
            accepted = [point for point in self.scores.evaluate(above - passed) if accept(point)]
            best = _best([*accepted, best])
            frontier = passed | {point.node for point in accepted}
        return best

    def _forced(self, base: Point) -> Point | None:
        """The best immediate specialization of less k; if all keep k, the best one below the plateau of equal k."""
        plateau = self._below([base.node])
        best = _best(point for point in plateau if 0 < point.k < base.k)
        if best is not None:
            return best
        lower: list[Point] = []
        while plateau:
            plateau = self._below(point.node for point in plateau if point.k == base.k)
            lower.extend(point for point in plateau if 0 < point.k < base.k)
        return _best(lower)

    def _refined(self, point: Point) -> Point:
        """The node of least loss among those below with the same k, all of which are connected through that k."""
        best, frontier = point, {point.node}
        while self.refine and frontier:
            same_k = [candidate for candidate in self._below(frontier) if candidate.k == point.k]
            best = min([best, *same_k], key=lambda candidate: (candidate.loss, candidate.node))
            frontier = {candidate.node for candidate in same_k}
        return best

    def _below(self, nodes: Iterable[Node]) -> list[Point]:
        """The evaluated immediate specializations of the nodes."""
        return self.scores.evaluate({down for node in nodes for down in self.scores.lattice.specializations(node)})

    def _depth_at(self, node: Node) -> int:
        if self.depth == "best":
            return max(1, *node)
        if self.depth == "worst":
            return max(1, sum(node) - min(node))
        return self.depth


def _best(points: Iterable[Point | None]) -> Point | None:
    return min((point for point in points if point is not None), key=lambda point: point.rank, default=None)


def _specializations_at(node: Node, distance: int) -> list[Node]:
    """Nodes below the node whose levels sum up to `distance` less."""
    *heads, last = node
    nodes = []
    for levels in product(*(range(max(0, level - distance), level + 1) for level in heads)):
        rest = distance - (sum(heads) - sum(levels))
        if 0 <= rest <= last:
            nodes.append((*levels, last - rest))
    return nodes
