"""Hierarchies as the rules they were made from, which may be saved when the values may not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from anon_spark.model.hierarchy.hierarchy import Hierarchy, MaskRule, Rule


def as_rules(hierarchies: Mapping[str, Hierarchy | Rule]) -> dict[str, Hierarchy | Rule]:
    """The hierarchies, each replaced by its rule if it was made by one, so that its domain is not limited to its values."""
    return {
        name: entry if isinstance(entry, Rule) or entry.rule is None else entry.rule
        for name, entry in hierarchies.items()
    }


def portable(hierarchies: Mapping[str, Hierarchy | Rule], fitted: Iterable[Hierarchy]) -> dict[str, Hierarchy | Rule]:
    """Hierarchies that apply to any table and may be saved: they contain no value of the fitted table.

    A mask keeps its fitted length, on which its levels depend. Dates without a domain stay without one: levels and labels do
    not depend on it, and its ends would reveal the first and last value, also of rows that were not published.
    """
    kept = as_rules(hierarchies)
    return {
        name: hierarchy.rule if hierarchy.rule is not None and isinstance(hierarchy.rule, MaskRule) else kept[name]
        for name, hierarchy in zip(hierarchies, fitted, strict=True)
    }
