"""The generalization lattice: one node is one level per attribute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from anon_spark.errors import LimitExceeded
from anon_spark.model.hierarchy import Hierarchy

Node = tuple[int, ...]
MOST_NODES = 5_000_000  # for whose bounds the driver holds some arrays of numbers


@dataclass(frozen=True)
class Lattice:
    """All vectors between (0, …, 0) and the heights of the attributes' hierarchies."""

    heights: Node

    @cached_property
    def shape(self) -> Node:
        return tuple(height + 1 for height in self.heights)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def has_front(self) -> bool:
        """Whether it is small enough for a search of the whole front."""
        return self.size <= MOST_NODES

    @property
    def top(self) -> Node:
        return self.heights

    @property
    def bottom(self) -> Node:
        return (0,) * len(self.heights)

    @property
    def average_height(self) -> int:
        """POkA's default depth: the mean height, rounded up, at least one."""
        return max(1, ceil(sum(self.heights) / len(self.heights)))

    def __contains__(self, node: Sequence[int]) -> bool:
        return len(node) == len(self.heights) and all(
            0 <= level <= height for level, height in zip(node, self.heights, strict=True)
        )

    def nodes(self) -> NDArray[np.int32]:
        """Every node as a row, in lexicographic order (row i is the node of index i)."""
        grids = np.indices(self.shape, dtype=np.int32)
        return np.ascontiguousarray(grids.reshape(len(self.shape), -1).T)

    def index(self, node: Sequence[int]) -> int:
        return int(np.ravel_multi_index(tuple(node), self.shape))

    def node(self, index: int) -> Node:
        return tuple(int(level) for level in np.unravel_index(index, self.shape))

    def specializations(self, node: Node) -> Iterator[Node]:
        """Immediate ones: one positive level decreased."""
        for position, level in enumerate(node):
            if level > 0:
                yield (*node[:position], level - 1, *node[position + 1 :])

    def generalizations(self, node: Node) -> Iterator[Node]:
        """Immediate ones: one level increased."""
        for position, level in enumerate(node):
            if level < self.heights[position]:
                yield (*node[:position], level + 1, *node[position + 1 :])


def below_or_equal(node: Node, other: Node) -> bool:
    """Whether node is a specialization of other (or other itself)."""
    return all(level <= bound for level, bound in zip(node, other, strict=True))


def lattice_of(hierarchies: Sequence[Hierarchy], one_k: bool = False) -> Lattice:
    """The lattice of the hierarchies, refused when the driver could not hold its bounds; for one k it may have any size."""
    lattice = Lattice(tuple(hierarchy.height for hierarchy in hierarchies))
    if lattice.size > MOST_NODES and not one_k:
        raise LimitExceeded(
            f"The lattice has {lattice.size:,} nodes, at most {MOST_NODES:,} are searched. Use fewer levels or columns.",
            nodes=lattice.size,
        )
    return lattice
