"""Incognito, the full-domain baseline: all k-anonymous nodes of the lattice, and the one of them that loses least.

A subset of the attributes at given levels has the classes of the lattice node that has the other attributes at their
root. So the lattices of all subsets lie in the one lattice, every node belongs to one subset (its attributes below
their root), and the nodes of all subsets are counted by the same batches.

Departures from the printed algorithm: a node that leaves attributes at their root is not counted again for every
larger subset; the steps of one height of all subsets of a size are one batch; roll-up is done inside the counting.
Not in the paper: which of the k-anonymous nodes is its result (`best_node`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from anon_spark.errors import AnonSparkError, GuaranteeUnreachable
from anon_spark.metrics.cells import Ints
from anon_spark.metrics.discernibility import discernibility
from anon_spark.metrics.information_loss import information_loss_by_level
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.lattice import Lattice, Node
from anon_spark.model.node_stats import NodeStats

Flags = NDArray[np.bool_]


class Counting(Protocol):
    """What the search needs of the counting primitives, at a suppression budget of 0."""

    def evaluate(self, nodes: Sequence[Node]) -> list[NodeStats]: ...


@dataclass(frozen=True)
class Incognito:
    """All k-anonymous nodes in lexicographic order, and what finding them took.

    Guarantee: evaluated + marked + pruned is the size of the lattice.
    """

    k: int
    nodes: list[Node]
    evaluated: int  # nodes whose classes were counted
    marked: int  # k-anonymous because a specialization is
    pruned: int  # not k-anonymous because a subset of the attributes at these levels is not
    batches: int


@dataclass(frozen=True)
class BestNode:
    """The result of Incognito: the node and its exact measures."""

    node: Node
    information_loss: Fraction
    discernibility: int
    classes: int
    smallest: int  # rows (or persons) of the smallest class


def incognito(lattice: Lattice, counting: Counting, k: int) -> Incognito:
    """The k-anonymous nodes, without suppression. An empty list: the whole table has fewer than k rows.

    Cost: evaluated nodes × distinct tuples; one batch per subset size and height; arrays of lattice size.
    """
    nodes = lattice.nodes()
    below_root = nodes < np.array(lattice.heights)
    size = below_root.sum(axis=1)  # of the subset a node belongs to
    height = (nodes * below_root).sum(axis=1)  # in the lattice of that subset
    anonymous = np.zeros(lattice.shape, dtype=bool)
    flat = anonymous.reshape(-1)  # the same flags by index of the node
    evaluated = candidates = batches = 0
    for subset_size in range(len(lattice.heights) + 1):  # 0: the table as one class
        # 1. candidates: k-anonymous without any one of their attributes                  (subset pruning)
        candidate = (size == subset_size) & _anonymous_without_each(anonymous, below_root)
        candidates += int(candidate.sum())
        for step in np.unique(height[candidate]):
            # 2. count the candidates of this height that no k-anonymous node lies below
            batch = np.flatnonzero(candidate & (height == step) & ~flat)
            if batch.size == 0:
                continue
            batches += 1
            evaluated += batch.size
            for stats in _count(counting, [lattice.node(int(index)) for index in batch]):
                # 3. all that is above a k-anonymous node is k-anonymous                  (generalization pruning)
                if stats.k >= k:
                    anonymous[tuple(slice(level, None) for level in stats.node)] = True
    found = [lattice.node(int(index)) for index in np.flatnonzero(flat)]
    return Incognito(k, found, evaluated, candidates - evaluated, lattice.size - candidates, batches)


def best_node(
    found: Incognito, hierarchies: Sequence[Hierarchy], rows_by_leaf: Sequence[Ints], counting: Counting
) -> BestNode:
    """The k-anonymous node of least IL, then least DM, then the smallest vector: the strongest opponent.

    rows_by_leaf: rows of each leaf, per attribute; IL needs nothing else, DM is counted for the nodes that tie only.
    """
    if not found.nodes:
        raise GuaranteeUnreachable(
            f"k = {found.k} cannot be reached: the whole table is smaller. Lower k, or give more rows.", k=found.k
        )
    by_level = [
        information_loss_by_level(hierarchy, rows) for hierarchy, rows in zip(hierarchies, rows_by_leaf, strict=True)
    ]
    losses = [
        sum((levels[level] for levels, level in zip(by_level, node, strict=True)), Fraction(0)) for node in found.nodes
    ]
    least = min(losses)
    tied = [node for node, loss in zip(found.nodes, losses, strict=True) if loss == least]
    rows = int(rows_by_leaf[0].sum())
    return min(
        (
            BestNode(stats.node, least, discernibility(stats.squares, rows, 0), stats.classes, stats.k)
            for stats in _count(counting, tied)
        ),
        key=lambda best: (best.discernibility, best.node),
    )


def _anonymous_without_each(anonymous: Flags, below_root: Flags) -> Flags:
    """For each node, whether raising any one attribute that is below its root leads to a k-anonymous node."""
    holds = np.ones(anonymous.size, dtype=bool)
    for attribute in range(anonymous.ndim):
        raised = np.take(anonymous, [-1], axis=attribute)
        holds &= np.broadcast_to(raised, anonymous.shape).reshape(-1) | ~below_root[:, attribute]
    return holds


def _count(counting: Counting, nodes: Sequence[Node]) -> list[NodeStats]:
    """One batch; suppressed rows would make a node look more anonymous than it is."""
    counted = counting.evaluate(nodes)
    if any(stats.suppressed for stats in counted):
        raise AnonSparkError("Incognito suppresses nothing: count with a suppression budget of 0.")
    return counted
