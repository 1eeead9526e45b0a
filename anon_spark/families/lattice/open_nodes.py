"""Which nodes of a large lattice can still hold a better release: kept as boxes, so that no step looks at every node."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernels.classes import Ints
from anon_spark.model.lattice import Lattice, Node

BATCH = 64
MOST_BOXES = 20_000  # boxes that are looked at for one batch, once it has a node
MOST_PENALTIES = 1_000  # that are kept; more would take longer to compare than they spare
MOST_LISTED = 4_096  # nodes of a box that are listed; a larger one is cut in two

Box = tuple[int, Node, Node]  # a loss that none of its nodes is below, the lowest node, and the highest one


class OpenNodes:
    """The nodes that are not below an infeasible one.

    `terms[attribute, level]` add up to the floor of a node: what it loses without suppression. What suppression adds is at least
    the penalty of any evaluated node above. The open nodes are kept as boxes of nodes, none twice, by a lower bound of their
    loss. A box that a new infeasible node cuts into is divided when its turn comes.
    Cost: boxes and infeasible nodes, not the lattice; both grow with the nodes that are evaluated.
    """

    def __init__(self, lattice: Lattice, terms: Ints) -> None:
        self._heights, self._terms = np.array(lattice.heights, dtype=np.int64), terms
        self._attributes = np.arange(len(lattice.heights))
        self._infeasible = np.zeros((0, len(lattice.heights)), dtype=np.int64)  # none below another
        self._evaluated: set[Node] = set()
        self._penalized = np.zeros((0, len(lattice.heights)), dtype=np.int64)
        self._penalties = np.zeros(0, dtype=np.int64)
        self._boxes: list[Box] = [(self._floor(lattice.bottom), lattice.bottom, lattice.top)]
        self._parked: list[Box] = []  # none of their nodes can lose less than the limit

    def close_below(self, node: Node) -> None:
        """Close an infeasible node and all below it."""
        if not self.is_infeasible(node):
            levels = np.array(node, dtype=np.int64)
            self._infeasible = np.concatenate([self._infeasible[~(self._infeasible <= levels).all(axis=1)], levels[None]])

    def is_infeasible(self, node: Node) -> bool:
        return bool(_above(self._infeasible, node).any())

    def close(self, node: Node, penalty: int) -> None:
        """Close a feasible node: it is evaluated, and suppression adds this much to its floor."""
        self._evaluated.add(node)
        if penalty <= self._penalty(node):
            return
        levels = np.array(node, dtype=np.int64)
        needless = (self._penalized <= levels).all(axis=1) & (self._penalties <= penalty)
        self._penalized = np.concatenate([self._penalized[~needless], levels[None]])
        self._penalties = np.append(self._penalties[~needless], penalty)
        if self._penalties.size > MOST_PENALTIES:  # the half that says most about most nodes stays
            reach = self._penalties * (self._penalized + 1.0).prod(axis=1)
            stay = np.sort(np.argsort(-reach, kind="stable")[: MOST_PENALTIES // 2])
            self._penalized, self._penalties = self._penalized[stay], self._penalties[stay]

    def begin_anew(self) -> None:
        """Look again at all open nodes: the limit has risen."""
        for box in self._parked:
            heapq.heappush(self._boxes, box)
        self._parked.clear()

    def pick(self, limit: int, draw: np.random.Generator, over: Callable[[], bool]) -> tuple[list[Node], int]:
        """Open nodes that could lose less than the limit, and a loss that no open node is below.

        No node: none is open, or the time is over. They are from the boxes with the lowest bounds, each raised by chance until
        its floor lies just below the limit.
        """
        found: list[Node] = []
        again: list[Box] = []
        looked_at = 0
        while self._boxes and self._boxes[0][0] < limit and len(found) < BATCH:
            looked_at += 1
            if over() or (looked_at > MOST_BOXES and found):
                break
            box = heapq.heappop(self._boxes)
            above = self._infeasible[_above(self._infeasible, box[1])]
            if len(above):
                self._keep(self._divided(box, above))
                continue
            node = self._node_in(box, limit, draw)
            if node is not None:
                found.append(node)
                again.append(box)
        least = min([limit, *(box[0] for box in (*again, *self._boxes[:1]))])
        for box in again:
            heapq.heappush(self._boxes, box)
        return _apart(found), least

    def _floor(self, node: Node) -> int:
        return int(self._terms[self._attributes, node].sum())

    def _penalty(self, node: Node) -> int:
        """What suppression at least adds to the loss of a node."""
        return int(self._penalties[_above(self._penalized, node)].max(initial=0))

    def _keep(self, parts: Iterator[tuple[Node, Node]]) -> None:
        for low, high in parts:
            heapq.heappush(self._boxes, (self._floor(low) + self._penalty(high), low, high))

    def _divided(self, box: Box, above: Ints) -> Iterator[tuple[Node, Node]]:
        """The part of a box that is not below the infeasible node which leaves the fewest ways out.

        In each part, another attribute is above that node's level.
        """
        _, low, high = box
        ways = (above < np.array(high)).sum(axis=1)
        node = above[int(np.lexsort((*above.T[::-1], ways))[0])]
        top = list(high)
        for attribute, level in enumerate(node.tolist()):
            if level < high[attribute]:
                yield (*low[:attribute], level + 1, *low[attribute + 1 :]), tuple(top)
                top[attribute] = level

    def _node_in(self, box: Box, limit: int, draw: np.random.Generator) -> Node | None:
        """A node of a box, or above one, that could lose less than the limit; a box without one is parked, a large one cut."""
        _, low, high = box
        if self._floor(low) + self._penalty(high) < limit:
            for _ in range(4):
                node = self._raised(low, limit, draw)
                if node not in self._evaluated and self._floor(node) + self._penalty(node) < limit:
                    return node
            sides = np.array(high) - np.array(low) + 1
            if sides.prod(dtype=np.float64) > MOST_LISTED:
                self._keep(_halves(low, high, int(np.argmax(sides))))
                return None
            for node in map(tuple, self._listed(low, sides, limit).tolist()):
                if node not in self._evaluated:
                    return node
        self._parked.append(box)
        return None

    def _listed(self, low: Node, sides: Ints, limit: int) -> Ints:
        """The nodes of a box that could lose less than the limit."""
        nodes: Ints = np.indices(tuple(sides.tolist())).reshape(sides.size, -1).T + np.array(low)
        floors = self._terms[self._attributes, nodes].sum(axis=1)
        nodes, floors = nodes[floors < limit], floors[floors < limit]
        for top, penalty in zip(self._penalized, self._penalties.tolist(), strict=True):
            left = (floors < limit - penalty) | (nodes > top).any(axis=1)
            nodes, floors = nodes[left], floors[left]
        return nodes

    def _raised(self, node: Node, limit: int, draw: np.random.Generator) -> Node:
        levels, floor = list(node), self._floor(node)
        for attribute in draw.permutation(len(levels)).tolist():
            while levels[attribute] < self._heights[attribute]:
                more = int(self._terms[attribute, levels[attribute] + 1] - self._terms[attribute, levels[attribute]])
                if floor + more >= limit:
                    break
                levels[attribute], floor = levels[attribute] + 1, floor + more
        return tuple(levels)


def _above(nodes: Ints, node: Node) -> NDArray[np.bool_]:
    """Which of the nodes (rows) a node is below, or is."""
    return np.asarray((nodes >= np.array(node, dtype=np.int64)).all(axis=1))


def _halves(low: Node, high: Node, attribute: int) -> Iterator[tuple[Node, Node]]:
    middle = (low[attribute] + high[attribute]) // 2
    yield low, (*high[:attribute], middle, *high[attribute + 1 :])
    yield (*low[:attribute], middle + 1, *low[attribute + 1 :]), high


def _apart(nodes: list[Node]) -> list[Node]:
    """The nodes that are not below one before them."""
    chosen: list[Node] = []
    for node in nodes:
        if not chosen or not _above(np.array(chosen, dtype=np.int64), node).any():
            chosen.append(node)
    return chosen
