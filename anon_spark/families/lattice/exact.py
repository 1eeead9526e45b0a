"""The true front of pairs (node, k) from bounds, with a fraction of the nodes.

k is monotone: a node has at most the largest k of any evaluated node above it. Under a model it is not, where rows are
suppressed: a class that fails may take in one that holds. Then the bounds count only the rows of a failing class that no node
below can keep: classes that keep a model keep it together, so what is published of such a class below keeps it, too. The loss
of a node is at least its loss without suppression. GLM computes this from marginals alone; for DM and CM it is at least that of
any evaluated node below. To this comes what suppression adds at a k: at least as much as at any evaluated node above. A node
whose bounds the front already meets cannot add a point, so it is dropped. The others are evaluated in batches until none is
left. Batches are random, or guided by a guess of k where a node is dear.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon_spark.families.lattice.guide import Guide
from anon_spark.families.lattice.scores import Scores
from anon_spark.model.front import Point, nondominated

BATCH = 64
LEAST_K = 2
PENALTY_NODES = 100_000  # lattices up to this size keep what suppression adds, for each node and each step of k
PENALTY_STEPS = 40


def exact_front(scores: Scores, batch: int = BATCH, guided: bool = False, least_k: int = LEAST_K) -> list[Point]:
    """The same front as the exhaustive search, representatives included, whatever the batches are.

    least_k: smaller ones are of no interest.
    Cost: bounds are arrays of lattice size on the driver; one evaluation per batch. `guided` needs a third fewer nodes with GLM
    and chooses a batch in some hundredths of a second; it has no effect on losses whose floors are not known beforehand, where
    it would need more.
    """
    bounds = Bounds(scores, least_k)
    draw = np.random.default_rng(0)  # decides only how many nodes are evaluated, never the result
    guide = Guide(scores, draw) if guided and bounds.knows_floors else None
    front = bounds.learn(scores.evaluate([scores.lattice.top, scores.lattice.bottom]))
    while (left := bounds.open_nodes(front)).size:
        if guide is None or scores.batches == 1 or left.size <= batch:
            picked = draw.choice(left, size=min(batch, left.size), replace=False)
        else:
            picked = guide.batch(batch, left, *bounds.of(left), front)
        front = bounds.learn(scores.evaluate(scores.lattice.node(int(index)) for index in picked))
        scores.tell(scores.lattice.size - left.size, scores.lattice.size, "nodes settled")
    return front


class Bounds:
    """For every node: the largest k and the least loss it can still have."""

    def __init__(self, scores: Scores, least_k: int = LEAST_K) -> None:
        self._scores, self._least_k = scores, least_k
        shape = scores.lattice.shape
        floors = scores.loss.floors(scores.lattice.nodes())
        self.knows_floors = floors is not None
        if floors is None:
            floors = np.zeros(scores.lattice.size, dtype=np.int64)
        self._most_k = np.full(shape, np.iinfo(np.int64).max, dtype=np.int64)
        self._least_loss: NDArray[Any] = floors.reshape(shape)
        self._penalties = Penalties(shape, floors.dtype, min(LEAST_K, least_k)) if scores.lattice.size <= PENALTY_NODES else None
        self._open = np.ones(shape, dtype=bool)
        self._front: list[Point] = []

    def learn(self, points: list[Point]) -> list[Point]:
        """Tighten the bounds by evaluated nodes (at their largest k); returns the front of all pairs learnt so far."""
        pairs = list(self._front)
        for point in points:
            below = tuple(slice(0, level + 1) for level in point.node)
            bounding = self._scores.bounding(point.node)
            np.minimum(self._most_k[below], bounding[-1].k, out=self._most_k[below])
            floor = self._scores.loss.floor(self._scores.stats[point.node])
            if not self.knows_floors:
                above = tuple(slice(level, None) for level in point.node)
                np.maximum(self._least_loss[above], floor, out=self._least_loss[above])
            if self._penalties is not None and bounding[-1].suppressed:
                self._penalties.learn(bounding, floor)
            self._open[point.node] = False
            pairs.extend(self._scores.curve(point.node))
        self._front = nondominated(pairs, self._least_k)
        return self._front

    def of(self, nodes: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The largest k and the least loss that the nodes can have."""
        return self._most_k.reshape(-1)[nodes], self._least_loss.reshape(-1)[nodes]

    def open_nodes(self, front: list[Point]) -> NDArray[np.intp]:
        """Indices of the nodes that could still add a point, or represent one with a smaller vector."""
        left: NDArray[np.intp] = np.flatnonzero(self._open)
        left = left[self._most_k.reshape(-1)[left] >= self._least_k]
        if not front:  # no node yet has such a k
            return left
        most_k, least_loss = self.of(left)
        # the front falls in k and in loss: the last point of at least most_k loses least among those
        rivals = np.searchsorted([-point.k for point in front], -most_k, side="right") - 1
        rival_k = np.array([point.k for point in front], dtype=np.int64)[rivals]
        rival_loss = np.array([point.loss for point in front], dtype=least_loss.dtype)[rivals]
        rival_index = np.array([self._scores.lattice.index(point.node) for point in front])[rivals]
        tie = (rival_loss == least_loss) & ((rival_k > most_k) | (rival_index < left))
        dropped = (rivals >= 0) & ((rival_loss < least_loss) | tie)
        if self._penalties is not None:
            dropped |= self._penalties.beaten(front, left, most_k, least_loss)
        left = left[~dropped]
        self._open[:] = False
        self._open.reshape(-1)[left] = True
        return left


class Penalties:
    """What suppression adds at least to the loss of a node, for steps of k.

    At one k it never rises on the way up: fewer rows are in classes below k, and each of them had lost more before. It never
    falls with k, so at the first k of a step it holds for the whole step.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], least_k: int = LEAST_K) -> None:
        even = np.arange(least_k, least_k + PENALTY_STEPS // 2)
        wider = np.round(even[-1] * 1.3 ** np.arange(1, PENALTY_STEPS // 2 + 1)).astype(np.int64)
        self._first = np.concatenate([even, wider])
        self._last = np.append(self._first[1:] - 1, np.iinfo(np.int64).max)
        self._least = np.zeros((*shape, self._first.size), dtype=dtype)

    def learn(self, curve: list[Point], floor: int) -> None:
        """From the points of an evaluated node, by ascending k; above its largest k nothing is said."""
        at = np.searchsorted([point.k for point in curve], self._first)
        added = [curve[place].loss - floor if place < len(curve) else 0 for place in at]
        below = tuple(slice(0, level + 1) for level in curve[0].node)
        np.maximum(self._least[below], np.array(added, dtype=self._least.dtype), out=self._least[below])

    def beaten(
        self, front: list[Point], nodes: NDArray[np.intp], most_k: NDArray[np.int64], least_loss: NDArray[Any]
    ) -> NDArray[np.bool_]:
        """Whether the front loses less than the node can, at every k that the node can have."""
        least = self._least.reshape(-1, self._first.size)
        by_k = np.array([-point.k for point in front])
        losses = np.array([point.loss for point in front], dtype=least_loss.dtype)
        beaten = np.ones(nodes.size, dtype=bool)
        for step, (first, last) in enumerate(zip(self._first, self._last, strict=True)):
            rivals = np.searchsorted(by_k, -np.minimum(most_k, last), side="right") - 1
            lower = (rivals >= 0) & (losses[rivals] < least_loss + least[nodes, step])
            beaten &= lower | (most_k < first)
        return beaten
