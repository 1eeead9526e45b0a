"""General loss metric (Iyengar's LM): the mean over cells of how much of its domain a published value covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon_spark.metrics.cells import CellLoss, RowsByNode, published_rows
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.node_stats import NodeStats

INT64_SAFE = 2**62


@dataclass(frozen=True)
class GeneralLoss:
    """GLM from marginals: per attribute and level, the loss weight of all rows, over the weight of the root.

    Guarantee: exact. Numerators are integers over rows · attributes · lcm(root weights); a suppressed row costs 1 per
    cell.
    """

    rows: int
    root_weights: tuple[int, ...]  # 0 for a domain of one leaf, which cannot lose anything
    marginals: tuple[tuple[int, ...], ...]
    name: str = "glm"

    @cached_property
    def scale(self) -> int:
        return lcm(*(weight for weight in self.root_weights if weight > 0))

    @property
    def denominator(self) -> int:
        return self.rows * len(self.root_weights) * self.scale

    def numerator(self, stats: NodeStats) -> int:
        retained = sum(
            self._factor(attribute) * (self.marginals[attribute][level] - stats.suppressed_weights[attribute])
            for attribute, level in enumerate(stats.node)
        )
        return retained + stats.suppressed * len(self.root_weights) * self.scale

    def floor(self, stats: NodeStats) -> int:
        return sum(
            self._factor(attribute) * self.marginals[attribute][level] for attribute, level in enumerate(stats.node)
        )

    def floors(self, nodes: NDArray[np.int32]) -> NDArray[Any]:
        dtype = np.int64 if self.denominator < INT64_SAFE else object
        total = np.zeros(len(nodes), dtype=dtype)
        for attribute, terms in enumerate(self.floors_by_level()):
            total += np.array(terms, dtype=dtype)[nodes[:, attribute]]
        return total

    def floors_by_level(self) -> list[list[int]]:
        return [
            [self._factor(attribute) * weight for weight in by_level] for attribute, by_level in enumerate(self.marginals)
        ]

    def per_attribute(self, stats: NodeStats) -> Sequence[float]:
        """Mean loss of each attribute's cells, suppressed rows included."""
        return [
            (self._share(attribute, self.marginals[attribute][level] - weight) + stats.suppressed) / self.rows
            for attribute, (level, weight) in enumerate(zip(stats.node, stats.suppressed_weights, strict=True))
        ]

    def _factor(self, attribute: int) -> int:
        weight = self.root_weights[attribute]
        return self.scale // weight if weight else 0

    def _share(self, attribute: int, weight: int) -> float:
        return weight / self.root_weights[attribute] if self.root_weights[attribute] else 0.0


def general_loss(hierarchies: Sequence[Hierarchy], rows_by_node: RowsByNode, suppressed: int) -> Fraction:
    """GLM of a table whose cells stand on any levels; a suppressed row costs 1 per cell.

    The hierarchies' own weights: a null leaf is one more leaf of a categorical domain, among numbers it loses nothing.
    """
    lost = sum(
        CellLoss(hierarchy.weights, hierarchy.weight_total).of(rows)
        for hierarchy, rows in zip(hierarchies, rows_by_node, strict=True)
    )
    cells = len(hierarchies) * (published_rows(rows_by_node) + suppressed)
    return Fraction(lost + suppressed * len(hierarchies)) / cells
