"""The exact minimum spanning tree of distinct tuples under HDist, by Kruskal over lattice nodes instead of pairs.

Two tuples are within distance w iff they have equal codes on a node of cost at most w. So nodes are visited by cost, tuples
with equal codes on a node are connected, and each new connection is an edge of the tree.
A few tuples far from all others would need thousands of nodes; they are connected by distances (the tail).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled, inner
from anon_spark.families.mst.kernels.distances import Levels, levels_of, reach
from anon_spark.kernels.classes import EMPTY, Codes, Ints
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
    """The nodes in the order they are visited, without the bottom, on which only equal tuples agree."""
    nodes = Lattice(heights).nodes()
    cost = nodes @ units
    order = np.argsort(cost, kind="stable")[1:]
    return Walk(nodes[order], cost[order])


def connections(table: TupleTable, ladder: Ladder, order: Walk, components: Codes) -> Edges:
    """The lightest edges between components that the given nodes find, as a forest.

    Guarantee: a minimum spanning forest of the graph of all pairs that agree on one of the nodes, each as heavy as the
    lightest node of those. Cost: nodes × tuples.
    """
    forest = Forest(table.size)
    forest.connect(components, int(components.max()) + 1, 0)
    known = forest.edges
    for node, cost in zip(order.nodes, order.cost, strict=True):
        if forest.edges == table.size - 1:
            break
        inverse, representatives = class_of_tuples(table, ladder, tuple(node.tolist()))
        forest.connect(inverse, representatives.size, int(2 * cost))
    left, right, weight = forest.result()
    return Edges(left[known:], right[known:], weight[known:])


def spanning_tree(codes: Codes, ladder: Ladder, below: int | None = None) -> Edges:
    """The minimum spanning tree of distinct tuples (one column each); with `below` only its edges lighter than that.

    Guarantee: exact; the order of tuples decides between equal trees, but not the weights.
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
        """Join the remaining components by distances."""
        root = roots(self.parent)
        inside = root == np.argmax(np.bincount(root, minlength=root.size))
        members = np.flatnonzero(~inside)
        outside = np.ascontiguousarray(codes[:, members])
        near, near_to = nearest(levels, codes, inside, outside)
        left, right, weight = tail_edges(levels, outside, members, root[members].astype(np.int64), near, near_to)
        order = np.argsort(weight, kind="stable")
        for at in order:
            self.left[self.edges], self.right[self.edges], self.weight[self.edges] = left[at], right[at], weight[at]
            self.edges += 1

    def result(self) -> Edges:
        return Edges(self.left[: self.edges], self.right[: self.edges], self.weight[: self.edges])


@inner
def find(parent: Codes, member: int) -> int:
    """The root of a component, halving the path to it."""
    while parent[member] != member:
        parent[member] = parent[parent[member]]
        member = parent[member]
    return member


@compiled
def roots(parent: Codes) -> Codes:
    """The root of every member."""
    root_of = np.empty(parent.size, dtype=np.int32)
    for member in range(parent.size):
        root_of[member] = find(parent, member)
    return root_of


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
    """Connect all members of each group; every connection of two components becomes an edge."""
    first = np.full(count, EMPTY, dtype=np.int32)
    for member in range(groups.size):
        known = first[groups[member]]
        if known == EMPTY:
            first[groups[member]] = member
            continue
        root, other = find(parent, known), find(parent, member)
        if root == other:
            continue
        if size[root] < size[other]:
            root, other = other, root
        parent[other] = root
        size[root] += size[other]
        largest = max(largest, size[root])
        left[edges], right[edges], weights[edges] = known, member, weight
        edges += 1
    return edges, largest


@compiled
def nearest(levels: Levels, codes: Codes, inside: NDArray[np.bool_], sought: Codes) -> tuple[Ints, Ints]:
    """For each sought tuple the nearest tuple that is inside: its distance, and which it is."""
    near = np.full(sought.shape[1], FAR, dtype=np.int64)
    near_to = np.zeros(sought.shape[1], dtype=np.int64)
    sums = np.empty(codes.shape[1], dtype=np.int64)
    ground = np.zeros(codes.shape[0], dtype=np.int32)
    for at in range(sought.shape[1]):
        sums[:] = 0
        levels_to = reach(levels, ground, sought[:, at])
        for attribute in range(codes.shape[0]):
            offset, unit = levels.offsets[attribute], 2 * levels.units[attribute]
            for position in range(sums.size):
                sums[position] += unit * levels_to[offset + codes[attribute, position]]
        for position in range(sums.size):
            if inside[position] and sums[position] < near[at]:
                near[at], near_to[at] = sums[position], position
    return near, near_to


@compiled
def tail_edges(
    levels: Levels, codes: Codes, names: Ints, component: Ints, near: Ints, near_to: Ints
) -> tuple[Ints, Ints, Ints]:
    """Prim's tree from the largest component over the tuples outside it, by name; those of one component join together.

    near, near_to: the distance of each tuple to the nearest connected one, and that one; both are updated.
    """
    count = names.size
    ground = np.zeros(codes.shape[0], dtype=np.int32)
    left, right = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
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
        left[edges], right[edges], weight[edges] = names[next_at], near_to[next_at], best
        edges += 1
        joined = component[next_at]
        for new in range(count):
            if component[new] == joined:
                connected[new] = True
        for new in range(count):
            if component[new] != joined:
                continue
            levels_to = reach(levels, ground, codes[:, new])
            for at in range(count):
                if not connected[at]:
                    distance = np.int64(0)
                    for attribute in range(codes.shape[0]):
                        climbed = levels_to[levels.offsets[attribute] + codes[attribute, at]]
                        distance += 2 * levels.units[attribute] * climbed
                    if distance < near[at]:
                        near[at], near_to[at] = distance, names[new]
    return left[:edges], right[:edges], weight[:edges]


@compiled
def lightest(count: int, left: Ints, right: Ints, weight: Ints) -> tuple[NDArray[np.bool_], Codes]:
    """Kruskal over edges by ascending weight: which edges form the forest, and the root of every member."""
    parent = np.arange(count).astype(np.int32)
    chosen = np.zeros(weight.size, dtype=np.bool_)
    for edge in range(weight.size):
        root, other = find(parent, left[edge]), find(parent, right[edge])
        if root != other:
            parent[max(root, other)] = min(root, other)  # so that a root is the smallest member
            chosen[edge] = True
    return chosen, roots(parent)
