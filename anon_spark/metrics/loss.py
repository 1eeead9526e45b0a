"""The interface of a measure of information loss, as a search uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anon_spark.model.node_stats import NodeStats


class Loss(Protocol):
    """A measure with exact integer numerators over one common denominator."""

    @property
    def name(self) -> str: ...

    @property
    def denominator(self) -> int: ...

    def numerator(self, stats: NodeStats) -> int:
        """Loss of the node with its suppression."""

    def floor(self, stats: NodeStats) -> int:
        """Loss of the node without suppression: no node above it loses less."""

    def floors(self, nodes: NDArray[np.int32]) -> NDArray[Any] | None:
        """`floor` of many nodes without counting, if the measure allows it."""

    def floors_by_level(self) -> Sequence[Sequence[int]] | None:
        """Per attribute and level, the terms whose sum is the floor of a node, if the measure has such terms."""
