"""The least loss for one k in a lattice that is too large for a whole front, with a proven lower bound.

A node is infeasible if its classes below k hold more rows than may be suppressed. Then all nodes below it are infeasible. A
feasible node loses at least its floor, its loss without suppression; what suppression adds is at least what it adds at any
evaluated node above. Randomized descents from the top find a first release. After that, open nodes are evaluated that could lose
less than (1 - gap) × the least loss found. An infeasible one is raised, attribute by attribute, as long as it stays infeasible,
and everything below it is closed. When no such node is open, the gap is proven, and a smaller one is tried.

Where a model may fail above a node that keeps it, a node is infeasible only if the rows that no node below can keep are too many.
One that fails by the models alone is closed by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from time import monotonic

import numpy as np

from anon_spark.families.lattice.open_nodes import OpenNodes
from anon_spark.families.lattice.scores import Scores
from anon_spark.model.front import Point
from anon_spark.model.lattice import Node

GAPS = tuple(Fraction(percent, 100) for percent in (20, 10, 5, 2, 0))
DESCENTS = 20
SAFE_BITS = 62


@dataclass(frozen=True)
class LeastLoss:
    """The best point found, and a loss that no node is below: equal to its own if it is the optimum."""

    point: Point
    lower_bound: int


def least_loss(scores: Scores, k: int, max_nodes: int, max_seconds: float) -> LeastLoss | None:
    """The point of least loss with at least this k, as far as the budget goes; None if not even the top has this k.

    Guarantee: no node at this k loses less than `lower_bound`, whenever the search ends. How near it comes to the loss found
    depends on the budget, and with `max_seconds` on the machine.
    Cost: batches of at most 64 chains, in which a node is evaluated at each step; on the driver, boxes of open nodes and the
    border of the infeasible ones, whatever the size of the lattice.
    """
    return _Search(scores, k, max_nodes, monotonic() + max_seconds).run()


def searches_one_k(search: str, loss: str, k: int | None) -> bool:
    """Whether a job with these options can be done in a lattice that is too large for a front."""
    return search == "exact" and loss == "glm" and k is not None


class _Search:
    def __init__(self, scores: Scores, k: int, max_nodes: int, deadline: float) -> None:
        self._scores, self._k, self._max_nodes, self._deadline = scores, k, max_nodes, deadline
        self._lattice = scores.lattice
        self._shape = np.array(self._lattice.shape, dtype=np.int64)
        by_level = scores.loss.floors_by_level()
        assert by_level is not None, "the caller refuses losses without floors"
        # rounded down to 62 bits: floors stay lower bounds
        self._shift = max(0, sum(max(terms) for terms in by_level).bit_length() - SAFE_BITS)
        self._terms = np.zeros((self._shape.size, int(self._shape.max())), dtype=np.int64)
        for attribute, terms in enumerate(by_level):
            self._terms[attribute, : len(terms)] = [term >> self._shift for term in terms]
        self._open = OpenNodes(self._lattice, self._terms)
        self._feasible = np.zeros((0, self._shape.size), dtype=np.int64)  # those evaluated that are above no other
        self._best: Point | None = None
        self._draw = np.random.default_rng(0)

    def run(self) -> LeastLoss | None:
        self._evaluate([self._lattice.top])
        if self._open.is_infeasible(self._lattice.top):
            return None
        self._descend()
        proven = 0
        for gap in GAPS:
            self._open.begin_anew()
            while not self._over():
                nodes, least = self._open.pick(self._limit(gap), self._draw, self._over)
                proven = max(proven, least)
                self._scores.tell(min(self._scores.evaluated, self._max_nodes), self._max_nodes, "nodes evaluated")
                if not nodes:
                    break
                self._evaluate(nodes)
                self._raise([node for node in nodes if self._is_feasible(node) is False])
        best = self._best
        return None if best is None else LeastLoss(best, min(best.loss, proven << self._shift))

    def _over(self) -> bool:
        return self._scores.evaluated >= self._max_nodes or monotonic() > self._deadline

    # --- what is known ------------------------------------------------------------------------------------------------

    def _evaluate(self, nodes: Sequence[Node]) -> None:
        for point in self._scores.evaluate_at(sorted({node for node in nodes if node not in self._scores.points}), self._k):
            bounding = self._scores.bounding(point.node)[-1]
            if bounding.k < self._k:
                self._open.close_below(point.node)
                continue
            penalty = bounding.loss - self._scores.loss.floor(self._scores.stats[point.node]) >> self._shift
            self._open.close(point.node, penalty)
            better = self._best is None or (point.loss, point.node) < (self._best.loss, self._best.node)
            if point.k >= self._k and better:
                self._best = point
            levels = np.array(point.node, dtype=np.int64)
            if not (self._feasible <= levels).all(axis=1).any():
                above = (self._feasible >= levels).all(axis=1)
                self._feasible = np.concatenate([self._feasible[~above], levels[None]])

    def _is_feasible(self, node: Node) -> bool | None:
        """Whether a node, or one below, may reach k as far as bounds say; None if nothing is known about it."""
        if node in self._scores.points:
            return self._scores.bounding(node)[-1].k >= self._k
        if self._open.is_infeasible(node):
            return False
        return True if (self._feasible <= np.array(node)).all(axis=1).any() else None

    def _reaches(self, node: Node) -> bool | None:
        """Whether a node reaches k; None if it is not known, also above one that does where a model may fail there."""
        if node in self._scores.points:
            return self._scores.points[node].k >= self._k
        feasible = self._is_feasible(node)
        may_fail = self._scores.stats[self._lattice.top].bound is not None
        return None if feasible and may_fail else feasible

    def _limit(self, gap: Fraction) -> int:
        """What a node must be able to lose less than, if it shall make the gap larger."""
        if self._best is None:  # any node would do
            return (self._scores.loss.denominator >> self._shift) + 1
        return -(-ceil((1 - gap) * self._best.loss) >> self._shift)

    # --- which nodes are evaluated --------------------------------------------------------------------------------------

    def _descend(self) -> None:
        """From the top, lower attributes by chance, those with much loss more often, while the node stays feasible."""
        at = [self._lattice.top] * DESCENTS
        left = [set(range(self._shape.size)) for _ in at]
        while any(left) and not self._over():
            tried: dict[int, tuple[int, Node]] = {}
            for one, node in enumerate(at):
                left[one] = {attribute for attribute in left[one] if node[attribute] > 0}
                if left[one]:
                    attribute = self._by_chance(node, sorted(left[one]))
                    tried[one] = attribute, _with(node, attribute, node[attribute] - 1)
            self._evaluate([node for _, node in tried.values() if self._reaches(node) is None])
            for one, (attribute, node) in tried.items():
                if self._reaches(node):
                    at[one] = node
                else:
                    left[one].discard(attribute)
        self._evaluate(at)

    def _by_chance(self, node: Node, attributes: Sequence[int]) -> int:
        drops = [float(self._terms[at, node[at]] - self._terms[at, node[at] - 1]) for at in attributes]
        weights = (np.array(drops) / (max(drops) or 1.0) + 1e-6) ** self._draw.uniform(0.5, 3)
        return int(self._draw.choice(attributes, p=weights / weights.sum()))

    def _raise(self, nodes: Sequence[Node]) -> None:
        """Raise infeasible nodes until no attribute can be raised further, all in step; close what is below them."""
        chains = [_Chain(node, self._draw.permutation(self._shape.size).tolist(), self._lattice.heights) for node in nodes]
        while chains and not self._over():
            for chain in chains:
                while (asked := chain.asked) is not None and (known := self._is_feasible(asked)) is not None:
                    chain.answer(known)
            for chain in chains:
                if chain.asked is None:
                    self._open.close_below(chain.node)
            chains = [chain for chain in chains if chain.asked is not None]
            self._evaluate([chain.asked for chain in chains if chain.asked is not None])


class _Chain:
    """An infeasible node that is raised, one attribute after the other, by halving the levels that are not known."""

    def __init__(self, node: Node, attributes: list[int], heights: Node) -> None:
        self.node, self._left, self._heights = node, attributes, heights
        self._high = 0
        self._next()

    @property
    def asked(self) -> Node | None:
        """The node whose feasibility decides how to go on; None at the end."""
        if not self._left:
            return None
        attribute = self._left[-1]
        return _with(self.node, attribute, (self.node[attribute] + self._high + 1) // 2)

    def answer(self, feasible: bool) -> None:
        asked = self.asked
        assert asked is not None
        if feasible:
            self._high = asked[self._left[-1]] - 1
        else:
            self.node = asked
        if self.node[self._left[-1]] == self._high:
            self._left.pop()
            self._next()

    def _next(self) -> None:
        while self._left and self.node[self._left[-1]] == self._heights[self._left[-1]]:
            self._left.pop()
        if self._left:
            self._high = self._heights[self._left[-1]]


def _with(node: Node, attribute: int, level: int) -> Node:
    return (*node[:attribute], level, *node[attribute + 1 :])
