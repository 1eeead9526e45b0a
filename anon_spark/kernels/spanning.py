"""The exact minimum spanning tree of distinct tuples under HDist, by Kruskal over lattice nodes instead of pairs.

Two tuples are within w of each other iff they have equal codes on some node that costs at most w. So the nodes are
visited by cost, tuples with equal codes on a node are connected, and each new connection is an edge of the tree.
A few tuples far from all others would need thousands of nodes: they are finished by distances (the tail).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.kernels.classes import EMPTY, Codes, Ints
from anon_spark.kernels.compiled import compiled
from anon_spark.kernels.distances import Levels, levels_of, reach
from anon_spark.kernels.tuples import Ladder, TupleTable, class_of_tuples
from anon_spark.model.lattice import Lattice

TAIL = 5000
TAIL_PER_NODE = 8
FAR = np.int64(np.iinfo(np.int64).max)


class Edges(NamedTuple):
    """Edges by ascending weight: two tuples each, and 2 · units · common levels."""

    left: Codes
    right: Codes
    weight: Ints


class Walk(NamedTuple):
    """All nodes of a lattice above the bottom by (cost, lexicographic)."""

    nodes: Codes
    cost: Ints


def walk(heights: tuple[int, ...], units: Ints) -> Walk:
    """The order in which nodes are visited; the bottom, on which only equal tuples agree, is left out."""
    nodes = Lattice(heights).nodes()
    cost = nodes @ units
    order = np.argsort(cost, kind="stable")[1:]
    return Walk(nodes[order], cost[order])


def spanning_tree(codes: Codes, ladder: Ladder, below: int | None = None) -> Edges:
    """The minimum spanning tree of distinct tuples (one column each); with `below` only its edges lighter than that.

    Guarantee: exact; which of several equal trees it is depends on the order of tuples, the weights do not.
    Cost: visited nodes × tuples, without the tail rule's at most 5,000 × tuples distances.
    """
    tuples = codes.shape[1]
    levels, table = levels_of(ladder), TupleTable((0,) * len(codes), codes, np.ones(tuples, dtype=np.int64))
    order = walk(tuple(levels.heights.tolist()), levels.units)
    forest = Forest(tuples)
    start = 0
    while forest.edges < tuples - 1 and start < order.cost.size:
        cost = order.cost[start]
        if below is not None and 2 * cost >= below:
            break
        stop = int(np.searchsorted(order.cost, cost, side="right"))
        if below is None and forest.outside <= min(TAIL, TAIL_PER_NODE * (stop - start)):
            forest.finish(codes, levels)
            break
        for node in order.nodes[start:stop]:
            inverse, representatives = class_of_tuples(table, ladder, tuple(node.tolist()))
            forest.connect(inverse, representatives.size, int(2 * cost))
        start = stop
    return forest.result()


class Forest:
    """Components of tuples that grow together, and the edges that joined them."""

    def __init__(self, tuples: int) -> None:
        self.parent: Codes = np.arange(tuples, dtype=np.int32)
        self.size: Codes = np.ones(tuples, dtype=np.int32)
        room = max(tuples - 1, 0)
        self.left: Codes = np.empty(room, dtype=np.int32)
        self.right: Codes = np.empty(room, dtype=np.int32)
        self.weight: Ints = np.empty(room, dtype=np.int64)
        self.edges = 0
        self.largest = 1 if tuples else 0

    @property
    def outside(self) -> int:
        """Tuples that are not in the largest component."""
        return int(self.parent.size) - self.largest

    def connect(self, groups: Codes, count: int, weight: int) -> None:
        """Join the components that share a group."""
        self.edges, self.largest = join_groups(
            groups, count, weight, self.parent, self.size, self.left, self.right, self.weight, self.edges, self.largest
        )

    def finish(self, codes: Codes, levels: Levels) -> None:
        """Join what is left by distances."""
        root = roots(self.parent)
        biggest = int(np.argmax(np.bincount(root, minlength=root.size)))
        members = np.flatnonzero(root != biggest).astype(np.int32)
        left, right, weight = tail_edges(codes, levels, root, biggest, members)
        order = np.argsort(weight, kind="stable")
        for at in order:
            self.left[self.edges], self.right[self.edges], self.weight[self.edges] = left[at], right[at], weight[at]
            self.edges += 1

    def result(self) -> Edges:
        return Edges(self.left[: self.edges], self.right[: self.edges], self.weight[: self.edges])


@compiled
def find(parent: Codes, member: int) -> int:
    """The root of a component, halving the path to it."""
    while parent[member] != member:
        parent[member] = parent[parent[member]]
        member = parent[member]
    return member


@compiled
def roots(parent: Codes) -> Codes:
    """The root of every member."""
    found = np.empty(parent.size, dtype=np.int32)
    for member in range(parent.size):
        found[member] = find(parent, member)
    return found


@compiled
def join_groups(
    groups: Codes,
    count: int,
    weight: int,
    parent: Codes,
    size: Codes,
    left: Codes,
    right: Codes,
    weights: Ints,
    edges: int,
    largest: int,
) -> tuple[int, int]:
    """Connect all members of each group; every connection of two components is written down as an edge."""
    first = np.full(count, EMPTY, dtype=np.int32)
    for member in range(groups.size):
        known = first[groups[member]]
        if known == EMPTY:
            first[groups[member]] = member
            continue
        one, other = find(parent, known), find(parent, member)
        if one == other:
            continue
        if size[one] < size[other]:
            one, other = other, one
        parent[other] = one
        size[one] += size[other]
        largest = max(largest, size[one])
        left[edges], right[edges], weights[edges] = known, member, weight
        edges += 1
    return edges, largest


@compiled
def tail_edges(
    codes: Codes, levels: Levels, root: Codes, biggest: int, members: Codes
) -> tuple[Codes, Codes, Ints]:
    """Prim's tree from the largest component over the members outside it; members of one component join together."""
    count = members.size
    near = np.full(count, FAR, dtype=np.int64)  # of each member: distance to what is connected, and to whom
    near_to = np.zeros(count, dtype=np.int32)
    sums = np.empty(codes.shape[1], dtype=np.int64)
    ground = np.zeros(codes.shape[0], dtype=np.int32)
    for at in range(count):
        sums[:] = 0
        levels_to = reach(levels, ground, codes[:, members[at]])
        for attribute in range(codes.shape[0]):
            offset, unit = levels.offsets[attribute], 2 * levels.units[attribute]
            for position in range(sums.size):
                sums[position] += unit * levels_to[offset + codes[attribute, position]]
        for position in range(sums.size):
            if root[position] == biggest and sums[position] < near[at]:
                near[at], near_to[at] = sums[position], position
    left, right = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
    weight = np.empty(count, dtype=np.int64)
    connected = np.zeros(count, dtype=np.bool_)
    edges = 0
    while True:
        next_at, best = -1, FAR
        for at in range(count):
            if not connected[at] and near[at] < best:
                next_at, best = at, near[at]
        if next_at < 0:
            break
        left[edges], right[edges], weight[edges] = members[next_at], near_to[next_at], best
        edges += 1
        joined = root[members[next_at]]
        for new in range(count):
            if root[members[new]] == joined:
                connected[new] = True
        for new in range(count):
            if root[members[new]] != joined:
                continue
            levels_to = reach(levels, ground, codes[:, members[new]])
            for at in range(count):
                if not connected[at]:
                    distance = np.int64(0)
                    for attribute in range(codes.shape[0]):
                        climbed = levels_to[levels.offsets[attribute] + codes[attribute, members[at]]]
                        distance += 2 * levels.units[attribute] * climbed
                    if distance < near[at]:
                        near[at], near_to[at] = distance, members[new]
    return left[:edges], right[:edges], weight[:edges]
