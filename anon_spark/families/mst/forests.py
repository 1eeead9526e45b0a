"""The spanning tree and its cut, in pieces that one task can hold. No Spark.

Tuples that differ one level below some root have distance 2 or more. So all edges lighter than 2 lie inside blocks of
tuples that agree there, and a task builds the forest of its blocks. The heavier edges join the components of that forest;
sweeps over the nodes find them. The cut walks the tree of components first, and continues inside them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.families.mst.kernels.dendrogram import (
    Dendrogram,
    Groups,
    Leaves,
    chain,
    components,
    dendrogram,
    members_of,
    split,
    split_above,
)
from anon_spark.families.mst.kernels.distances import Levels, levels_of
from anon_spark.families.mst.kernels.spanning import Edges, Walk, connections, lightest, spanning_tree
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.tuples import Ladder, TupleTable
from anon_spark.model.lattice import Node

NOWHERE = -1
MIX = np.uint64(0x9E3779B97F4A7C15)


class Sweep(NamedTuple):
    """Nodes that have the same attributes at their root.

    Tuples that agree on one of the nodes agree on `top`; tuples that agree on `bottom` agree on all nodes.
    """

    bottom: Node
    top: Node
    order: Walk


class Joins(NamedTuple):
    """Edges between components, by their names."""

    left: Ints
    right: Ints
    weight: Ints


class Parts(NamedTuple):
    """Per member the least member of its part (NOWHERE if it is in none), and whether that part is large enough."""

    head: Ints
    kept: NDArray[np.bool_]


def block_distance(levels: Levels) -> int:
    """The least distance between tuples of two blocks: up one hierarchy and down again."""
    return int(2 * levels.units[0] * levels.heights[0])


def block_node(levels: Levels) -> Node:
    """The node on which the tuples of a block agree."""
    return tuple((levels.heights - 1).tolist())


def grown(codes: Codes, ladder: Ladder, leaves: Leaves) -> Dendrogram:
    """The forest of whole blocks: all edges of the spanning tree that are lighter than the distance of blocks."""
    return dendrogram(leaves, spanning_tree(codes, ladder, below=block_distance(levels_of(ladder))))


def sweeps(order: Walk, heights: Ints) -> list[Sweep]:
    """The nodes of a walk, grouped by the attributes at their root: one sweep reads the tuples once."""
    _, kind = np.unique(order.nodes == heights, axis=0, return_inverse=True)
    by_kind = []
    for number in range(int(kind.max()) + 1):
        nodes, cost = order.nodes[kind.reshape(-1) == number], order.cost[kind.reshape(-1) == number]
        by_kind.append(Sweep(tuple(nodes.min(axis=0).tolist()), tuple(nodes.max(axis=0).tolist()), Walk(nodes, cost)))
    return by_kind


def lifted(codes: Codes, ladder: Ladder, node: Node) -> Codes:
    """Leaf codes as codes on a node."""
    above = [ladder.climb(attribute, 0, level)[codes[attribute]] for attribute, level in enumerate(node)]
    return np.array(above, dtype=np.int32).reshape(codes.shape)


def share_of(codes: Codes, ladder: Ladder, node: Node, shares: int) -> Ints:
    """A number below `shares`, equal for tuples that agree on the node."""
    key = np.zeros(codes.shape[1], dtype=np.uint64)
    for row in lifted(codes, ladder, node):
        key = (key ^ (row.astype(np.uint64) + np.uint64(1))) * MIX
        key ^= key >> np.uint64(32)
    return (key % np.uint64(shares)).astype(np.int64)


def swept(sweep: Sweep, codes: Codes, ladder: Ladder, component: Ints) -> Joins:
    """The lightest edges that a sweep finds between components, for all tuples (codes on `bottom`) of its groups."""
    _, number = np.unique(component, return_inverse=True)
    table = TupleTable(sweep.bottom, codes, np.ones(component.size, dtype=np.int64))
    edges = connections(table, ladder, sweep.order, number.reshape(-1).astype(np.int32))
    return Joins(component[edges.left], component[edges.right], edges.weight)


def spanning_forest(edges: Joins) -> tuple[Joins, Ints, Ints]:
    """The minimum spanning forest by Kruskal, the joined components, and the least component of each one's tree.

    The forest of a union of forests is that of the union of their graphs.
    """
    names, number = np.unique(np.concatenate([edges.left, edges.right]), return_inverse=True)
    left, right = number.reshape(2, -1)
    order = np.argsort(edges.weight, kind="stable")
    chosen, root = lightest(names.size, left[order], right[order], edges.weight[order])
    kept = order[chosen]
    return Joins(*(side[kept] for side in edges)), names, names[root]


def cut_above(names: Ints, leaves: Leaves, edges: Joins, k: int) -> tuple[Parts, Ints]:
    """Cut the tree of components: the parts of several components, and for the others the greatest weight that stays."""
    by_name, by_weight = np.argsort(names), np.argsort(edges.weight, kind="stable")
    left, right = (
        by_name[np.searchsorted(names, side[by_weight], sorter=by_name)].astype(np.int32)
        for side in (edges.left, edges.right)
    )
    tree = dendrogram(leaves, Edges(left, right, edges.weight[by_weight]))
    groups, stays = split_above(tree, k)
    return parts_of(tree, groups, names), stays


def cut_inside(names: Ints, leaves: Leaves, weight: Ints, stays: Ints, k: int) -> Parts:
    """Cut components, given as chains end to end: first where the tree above was cut, then each part separately."""
    tree = dendrogram(leaves, chain(weight))
    roots = tree.roots.astype(np.int64)
    heaviest = stays[tree.order[tree.first[roots]]]
    whole = tree.weight[roots] <= heaviest
    torn = [
        components(tree.left, tree.right, tree.weight, root, stay)
        for root, stay in zip(roots[~whole], heaviest[~whole], strict=True)
    ]
    return parts_of(tree, split(tree, k, np.concatenate([roots[whole], *torn])), names)


def parts_of(tree: Dendrogram, groups: Groups, names: Ints) -> Parts:
    """The part of each leaf, from the groups."""
    parts = Parts(np.full(names.size, NOWHERE, dtype=np.int64), np.zeros(names.size, dtype=np.bool_))
    for nodes, kept in ((groups.kept, True), (groups.small, False)):
        if nodes.size:
            members, begin = members_of(tree, nodes)
            least = np.minimum.reduceat(names[members], begin)
            parts.head[members] = np.repeat(least, np.diff(begin, append=members.size))
            parts.kept[members] = kept
    return parts
