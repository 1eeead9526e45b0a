"""Which nodes of a large lattice can still hold a better release: one byte for each node, or only the border of the infeasible.

Both answer the same questions of the search in bounded.py. `terms[attribute, level]` add up to the floor of a node: what it loses
without suppression.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import product
from typing import Protocol

import numpy as np

from anon_spark.kernels.classes import Ints
from anon_spark.kernels.open_nodes import BINS, CLOSED, LATER, OPEN, draw_open, open_floors, put_off
from anon_spark.model.lattice import MOST_STATUS_NODES, Lattice, Node

BATCH = 64
SAMPLE = 2_048  # open nodes that a batch is chosen from
CHUNK = 2**24
MOST_BOXES = 20_000  # boxes that are looked at for one batch, once it has a node
MOST_LISTED = 5_000  # nodes of a box that are tried before it is cut in two


class OpenNodes(Protocol):
    """Nodes are open, closed, or put off until a smaller gap is tried."""

    def close(self, node: Node) -> None: ...

    def close_below(self, node: Node) -> None:
        """Close a node and all below it."""

    def is_closed(self, node: Node) -> bool: ...

    def put_off(self, levels: Ints, least: int) -> None:
        """Put off the open nodes below these levels whose floor is at least `least`."""

    def begin_anew(self) -> None:
        """Open what was put off."""

    def pick(self, limit: int, draw: np.random.Generator, over: Callable[[], bool]) -> tuple[list[Node], int, int | None]:
        """Some open nodes with a floor below the limit; a floor that no open node is below; how many are open, if known.

        None is picked when none is open, or when the time is over.
        """


def open_nodes(lattice: Lattice, terms: Ints) -> OpenNodes:
    """All nodes open."""
    return Statuses(lattice, terms) if lattice.size <= MOST_STATUS_NODES else Border(lattice, terms)


def apart(nodes: Ints, most: int) -> list[Node]:
    """The first nodes (rows), as many as asked for, that are not below one before them."""
    chosen = np.zeros((0, nodes.shape[1]), dtype=np.int64)
    for node in nodes:
        if len(chosen) < most and not (node <= chosen).all(axis=1).any():
            chosen = np.concatenate([chosen, node[None]])
    return [tuple(node) for node in chosen.tolist()]


class Statuses:
    """One byte for each node. Cost: a walk over all nodes for each batch."""

    def __init__(self, lattice: Lattice, terms: Ints) -> None:
        self._lattice, self._terms = lattice, terms
        self._shape = np.array(lattice.shape, dtype=np.int64)
        self._status = np.full(lattice.size, OPEN, dtype=np.uint8)
        self._by_node = self._status.reshape(lattice.shape)

    def close(self, node: Node) -> None:
        self._by_node[node] = CLOSED

    def close_below(self, node: Node) -> None:
        self._by_node[tuple(slice(0, level + 1) for level in node)] = CLOSED

    def is_closed(self, node: Node) -> bool:
        return bool(self._by_node[node] == CLOSED)

    def put_off(self, levels: Ints, least: int) -> None:
        put_off(self._status, self._shape, self._terms, levels, least)

    def begin_anew(self) -> None:
        for first in range(0, self._status.size, CHUNK):  # a mask of the whole lattice would take as much memory again
            part = self._status[first : first + CHUNK]
            part[part == LATER] = OPEN

    def pick(self, limit: int, draw: np.random.Generator, over: Callable[[], bool]) -> tuple[list[Node], int, int | None]:
        """Nodes with a floor just below the limit."""
        width = max(1, limit // (8 * BINS))
        bins, least = open_floors(self._status, self._shape, self._terms, limit, width)
        left = int(bins.sum())
        if left == 0:
            return [], limit, 0
        upto = int(np.searchsorted(np.cumsum(bins), min(SAMPLE, left)))
        low = 0 if upto == BINS - 1 else limit - (upto + 1) * width
        drawn = draw_open(self._status, self._shape, self._terms, low, limit, SAMPLE, int(draw.integers(2**31)))
        nodes = np.stack(np.unravel_index(drawn, self._lattice.shape), axis=1)
        floors = self._terms[np.arange(self._shape.size), nodes].sum(axis=1)
        return apart(nodes[np.lexsort((drawn, -floors))], BATCH), int(least), left


Box = tuple[int, Node, Node]  # the floor of the lowest node, that node, and the highest one


class Border:
    """Only the highest nodes known to be infeasible: every node below one of them is closed, every other one is open.

    The open nodes are kept as boxes of nodes, none twice, by the floor of their lowest node. A box that a new infeasible node
    cuts into is divided when its turn comes: in each part, another attribute is above that node's level.
    Cost: boxes and infeasible nodes, not the lattice; both grow with the nodes that are evaluated.
    """

    def __init__(self, lattice: Lattice, terms: Ints) -> None:
        self._heights, self._terms = lattice.heights, terms
        self._infeasible = np.zeros((0, len(lattice.heights)), dtype=np.int64)  # none below another
        self._evaluated: set[Node] = set()
        self._later: list[tuple[Ints, int]] = []
        self._boxes: list[Box] = [(self._floor(lattice.bottom), lattice.bottom, lattice.top)]
        self._parked: list[Box] = []  # boxes whose nodes are all put off or evaluated

    def close(self, node: Node) -> None:
        self._evaluated.add(node)

    def close_below(self, node: Node) -> None:
        if not self.is_closed(node):
            levels = np.array(node, dtype=np.int64)
            self._infeasible = np.concatenate([self._infeasible[~(self._infeasible <= levels).all(axis=1)], levels[None]])

    def is_closed(self, node: Node) -> bool:
        return node in self._evaluated or bool(self._above(node).size)

    def put_off(self, levels: Ints, least: int) -> None:
        self._later.append((levels, least))

    def begin_anew(self) -> None:
        self._later.clear()
        for box in self._parked:
            heapq.heappush(self._boxes, box)
        self._parked.clear()

    def pick(self, limit: int, draw: np.random.Generator, over: Callable[[], bool]) -> tuple[list[Node], int, int | None]:
        """Nodes of the boxes with the lowest floors, each raised by chance until its floor lies just below the limit."""
        found: list[Node] = []
        again: list[Box] = []
        looked_at = 0
        while self._boxes and self._boxes[0][0] < limit and len(found) < BATCH:
            looked_at += 1
            if looked_at > MOST_BOXES and (found or over()):
                break
            box = heapq.heappop(self._boxes)
            above = self._above(box[1])
            if above.size:
                for part in self._divided(box, above):
                    heapq.heappush(self._boxes, part)
                continue
            node = self._node_in(box, limit, draw)
            if node is not None:
                found.append(node)
                again.append(box)
        least = min([limit, *(box[0] for box in (*again, *self._boxes[:1]))])
        for box in again:
            heapq.heappush(self._boxes, box)
        return (apart(np.array(found, dtype=np.int64), BATCH) if found else []), least, None if self._boxes else 0

    def _floor(self, node: Node) -> int:
        return sum(int(self._terms[attribute, level]) for attribute, level in enumerate(node))

    def _above(self, node: Node) -> Ints:
        """The infeasible nodes that a node is below, or is."""
        found: Ints = self._infeasible[(self._infeasible >= np.array(node, dtype=np.int64)).all(axis=1)]
        return found

    def _divided(self, box: Box, above: Ints) -> Iterator[Box]:
        """The part of a box that is not below the infeasible node which leaves the fewest ways out."""
        _, low, high = box
        ways = (above < np.array(high)).sum(axis=1)
        node = above[int(np.lexsort((*above.T[::-1], ways))[0])]
        top = list(high)
        for attribute, level in enumerate(node.tolist()):
            if level < high[attribute]:
                raised = (*low[:attribute], level + 1, *low[attribute + 1 :])
                yield self._floor(raised), raised, tuple(top)
                top[attribute] = level

    def _node_in(self, box: Box, limit: int, draw: np.random.Generator) -> Node | None:
        """A node of a box, or above one, that is open and has a floor below the limit; a box without one is parked or cut."""
        for _ in range(4):
            node = self._raised(box[1], limit, draw)
            if self._is_open(node):
                return node
        _, low, high = box
        levels = [range(least, most + 1) for least, most in zip(low, high, strict=True)]
        for at, node in enumerate(product(*levels)):
            if self._floor(node) < limit and self._is_open(node):
                return node
            if at == MOST_LISTED:
                widest = max(range(len(low)), key=lambda attribute: high[attribute] - low[attribute])
                middle = (low[widest] + high[widest]) // 2
                upper = (*low[:widest], middle + 1, *low[widest + 1 :])
                heapq.heappush(self._boxes, (box[0], low, (*high[:widest], middle, *high[widest + 1 :])))
                heapq.heappush(self._boxes, (self._floor(upper), upper, high))
                return None
        self._parked.append(box)
        return None

    def _raised(self, node: Node, limit: int, draw: np.random.Generator) -> Node:
        levels, floor = list(node), self._floor(node)
        for attribute in draw.permutation(len(levels)).tolist():
            while levels[attribute] < self._heights[attribute]:
                more = int(self._terms[attribute, levels[attribute] + 1] - self._terms[attribute, levels[attribute]])
                if floor + more >= limit:
                    break
                levels[attribute], floor = levels[attribute] + 1, floor + more
        return tuple(levels)

    def _is_open(self, node: Node) -> bool:
        if node in self._evaluated:
            return False
        levels, floor = np.array(node), self._floor(node)
        return not any(floor >= least and (levels <= top).all() for top, least in self._later)
