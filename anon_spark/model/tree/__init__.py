"""Nested records without Spark: the node types, their hierarchies in one forest, and cuts through it."""

from anon_spark.model.tree.forest import NONE, Cut, Forest
from anon_spark.model.tree.schema import NOT, STAR, TAKEN, NodeType, TreeClass, TreeSchema

__all__ = ["NONE", "NOT", "STAR", "TAKEN", "Cut", "Forest", "NodeType", "TreeClass", "TreeSchema"]
