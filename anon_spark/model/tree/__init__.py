"""Nested records without Spark: the classes, their hierarchies in one forest, and cuts through it."""

from anon_spark.model.tree.forest import NONE, Cut, Forest
from anon_spark.model.tree.schema import NOT, STAR, TAKEN, TreeClass, TreeSchema

__all__ = ["NONE", "NOT", "STAR", "TAKEN", "Cut", "Forest", "TreeClass", "TreeSchema"]
