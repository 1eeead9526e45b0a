"""Equivalence classes: the frequency table of distinct tuples, and the class counts of batches of lattice nodes."""

from anon_spark.primitives.classes.choice import counting
from anon_spark.primitives.classes.counting import Counting
from anon_spark.primitives.classes.frequencies import Frequencies, count_tuples

__all__ = ["Counting", "Frequencies", "count_tuples", "counting"]
