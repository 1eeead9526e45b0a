"""Ambiguous labels: those that mean different sets of values on two levels."""

from __future__ import annotations

from collections.abc import Mapping

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy.hierarchy import Hierarchy


def refuse_ambiguous(hierarchies: Mapping[str, Hierarchy]) -> None:
    """Refuse ambiguous labels, which cannot be read in a release that mixes levels."""
    clashes = {name: hierarchy.ambiguous_labels() for name, hierarchy in hierarchies.items()}
    listed = [
        f"{name}: {labels} on levels {low} and {high}" for name, pairs in clashes.items() for low, high, labels in pairs
    ]
    if listed:
        raise HierarchyError(
            f"Labels stand for different sets of values on two levels ({'; '.join(listed)}). Local recoding publishes "
            "several levels side by side: give them different names.",
            ambiguous=len(listed),
        )

