"""The counts of one lattice node, from which metrics are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anon_spark.model.lattice import Node


@dataclass(frozen=True)
class NodeStats:
    """Integer sums over the equivalence classes of one node at one k; `all_…` before suppression, the others after it.

    Of a search it is the largest k that the budget allows; `lower` has the same node at every smaller k at which fewer rows are
    suppressed, ascending. A class that fails a model of the job is suppressed at every k; k is 0 where these have more rows than
    the budget. `bound`: what bounds the nodes below, where models may fail above a node that keeps them: only rows are suppressed
    that no node below can keep.
    """

    node: Node
    k: int
    suppressed: int  # rows in classes smaller than k
    classes: int  # classes that remain
    squares: int  # Σ rows² of the classes
    all_squares: int
    majority: int  # Σ rows of the most frequent class value
    all_majority: int
    suppressed_weights: tuple[int, ...]  # loss weight of the suppressed rows, per attribute
    lower: tuple[NodeStats, ...] = ()
    bound: NodeStats | None = None

    @classmethod
    def of(cls, node: Sequence[int], counts: Sequence[int], weights: Sequence[int]) -> NodeStats:
        """From the seven counts in the order of the fields, and the weights."""
        k, suppressed, classes, squares, all_squares, majority, all_majority = counts
        return cls(tuple(node), k, suppressed, classes, squares, all_squares, majority, all_majority, tuple(weights))

    @property
    def bounding(self) -> NodeStats:
        """What bounds the nodes below: no node below has a larger k, or less suppressed at one k."""
        return self if self.bound is None else self.bound

    @property
    def curve(self) -> Iterator[NodeStats]:
        """The node at each k, ascending, itself last."""
        yield from self.lower
        yield self
