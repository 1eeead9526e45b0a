"""Points of k against loss, dominance, and the ways to choose one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

from anon_spark.model.lattice import Node


@dataclass(frozen=True)
class Point:
    """The k and the loss of a node. `loss` is an exact integer: two losses are compared without rounding."""

    node: Node
    k: int
    loss: int
    suppressed: int
    classes: int

    @property
    def rank(self) -> tuple[int, int, Node]:
        """Smaller is better: largest k, then least loss, then the smallest vector."""
        return (-self.k, self.loss, self.node)


def nondominated(points: Iterable[Point], least_k: int = 2) -> list[Point]:
    """The front by decreasing k. Nodes that share a point are represented by the smallest vector."""
    front: list[Point] = []
    for point in sorted(points, key=lambda point: point.rank):
        if point.k < least_k:
            break
        if not front or point.loss < front[-1].loss:
            front.append(point)
    return front


def knee(front: Sequence[Point]) -> Point:
    """The point farthest from the chord between the ends of the front, in the plane of log k and loss.

    Ties go to the larger k. A front of one or two points has no bend: its point of largest k.
    """
    first, last = front[0], front[-1]
    width = log(first.k) - log(last.k) or 1.0
    height = (first.loss - last.loss) or 1

    def bend(point: Point) -> float:
        across = (log(point.k) - log(last.k)) / width
        up = (point.loss - last.loss) / height
        return round(across - up, 12)  # above the chord means more k for less loss

    return max(front, key=lambda point: (bend(point), point.k))
