"""Searches of the family `tree` on records of the oracle, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anon_spark.families.tree.counting import Evaluator, LocalCounter
from anon_spark.families.tree.kernels.trees import trees_of
from anon_spark.families.tree.search import Seen, searched
from anon_spark.families.tree.settings import Settings
from anon_spark.families.tree.structure import Solution
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import Forest, NodeType, TreeSchema
from tests.oracle import tree_oracle as oracle


def forest_of(node_types: dict[str, dict[str, list[str]]], sensitive: Sequence[str] = ()) -> Forest:
    names = list(node_types)
    above = dict(zip(names[1:], names, strict=False))
    schema = TreeSchema(tuple(NodeType(name, name, above.get(name), name in sensitive) for name in names))
    tables = {
        name: Hierarchy.from_levels([(leaf, group, "*") for group, leaves in groups.items() for leaf in leaves])
        for name, groups in node_types.items()
    }
    return Forest.of(schema, tables)


def evaluator(forest: Forest, records: Sequence[oracle.Tree], settings: Settings, negations: Sequence[str] = ()) -> Evaluator:
    trees = trees_of([[tuple(map(forest.number, path)) for path in record] for record in records])
    found = Evaluator(forest, settings, tuple(map(forest.number, negations)))
    found.counter = LocalCounter(trees, found.promise)
    return found


def search(forest: Forest, records: Sequence[oracle.Tree], negations: Sequence[str] = (), **told: Any) -> Seen:
    settings = Settings(**{"cuts": "full", **told})
    occurring = {forest.number(label) for record in records for path in record for label in path}
    return searched(forest, settings, evaluator(forest, records, settings, negations), occurring)


def named(forest: Forest, one: Solution) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    return tuple(forest.named(one.cut)), [(forest.labels[upper], forest.labels[lower]) for upper, lower in one.pairs]
