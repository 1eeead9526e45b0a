"""A guess of k for nodes that are not evaluated yet, and the batch of nodes that it makes worth evaluating."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon_spark.families.lattice.scores import Scores
from anon_spark.model.front import Point

RIDGE = 1.0  # keeps the guess finite for levels that were seen once or never
CANDIDATES = 512  # open nodes whose drops are counted, so that choosing a batch stays cheap
WITNESSES = 20_000  # open nodes among which the drops are counted


class Guide:
    """Learns ln k as a sum of one term per level, by ridge regression.

    Guarantee: none, and none is needed. It decides which nodes are evaluated first, never what the search returns.
    """

    def __init__(self, scores: Scores, draw: np.random.Generator) -> None:
        self._scores, self._draw = scores, draw
        self._first = np.cumsum([0, *scores.lattice.shape[:-1]])  # position of each attribute's level 0 among the terms

    def batch(
        self,
        size: int,
        nodes: NDArray[np.intp],
        most_k: NDArray[np.int64],
        least_loss: NDArray[Any],
        front: list[Point],
    ) -> NDArray[np.intp]:
        """At most `size` nodes, one at least: half where the guess lies furthest above the front, half where most drop."""
        levels = np.stack(np.unravel_index(nodes, self._scores.lattice.shape), axis=1)
        guess = np.minimum(self._guess(levels), np.log(most_k))
        floors = least_loss.astype(np.float64)
        front_k = np.array([point.k for point in front], dtype=np.float64)
        front_loss = np.array([point.loss for point in front], dtype=np.float64)
        # 1. the front falls in loss: the first point that loses no more than the node has the k to be surpassed
        rival = np.searchsorted(-front_loss, -floors)
        known = np.append(front_k, 1.0)[rival]
        promising = np.argsort(np.log(known) - guess, kind="stable")[: (size + 1) // 2]
        # 2. a node with that k drops the nodes below it that lose at least what the front loses at that k
        tried = self._sample(nodes.size, CANDIDATES)
        seen = self._sample(nodes.size, WITNESSES)
        least = np.append(front_loss, np.inf)[np.searchsorted(-front_k, -np.exp(guess[tried]), side="right") - 1]
        drops = floors[seen] >= least[:, None]
        for attribute in range(levels.shape[1]):
            drops &= levels[seen, attribute] <= levels[tried, attribute, None]
        drops[:, np.isin(seen, promising)] = False
        chosen = [*promising, *tried[_cover(drops, size - promising.size)]]
        return np.unique(nodes[chosen])

    def _guess(self, levels: NDArray[np.intp]) -> NDArray[np.float64]:
        points = self._scores.points.values()
        seen = np.array([point.node for point in points]) + self._first
        indicators = np.zeros((len(seen), sum(self._scores.lattice.shape)))
        np.put_along_axis(indicators, seen, 1.0, axis=1)
        logs = np.log([max(point.k, 1) for point in points])  # 0 where a node keeps no k at all
        normal = indicators.T @ indicators + RIDGE * np.eye(indicators.shape[1])
        terms = np.linalg.solve(normal, indicators.T @ (logs - logs.mean()))
        return np.asarray(logs.mean() + terms[levels + self._first].sum(axis=1))

    def _sample(self, size: int, most: int) -> NDArray[np.intp]:
        return np.arange(size) if size <= most else np.sort(self._draw.choice(size, size=most, replace=False))


def _cover(drops: NDArray[np.bool_], most: int) -> list[int]:
    """Up to `most` rows, one after the other the one that drops most of what is left."""
    left = drops.sum(axis=1)
    chosen: list[int] = []
    while len(chosen) < most and left.size and left.max() > 0:
        best = int(left.argmax())
        chosen.append(best)
        gone = np.flatnonzero(drops[best])
        left -= drops[:, gone].sum(axis=1)
        drops[:, gone] = False
    return chosen
