"""Generalization hierarchies: level tables with integer codes, weights and the rule that finds a value's leaf.

Every leaf is `height` levels below the one root (shallow leaves repeat a label). All work is done on
(level, code); labels are only what is shown and published. No Spark here.
"""

from anon_spark.model.hierarchy.ambiguity import refuse_ambiguous
from anon_spark.model.hierarchy.ends import ends_of
from anon_spark.model.hierarchy.hierarchy import DateRule, Hierarchy, MaskRule, Rule, TopRule
from anon_spark.model.hierarchy.rules import as_rules, portable
from anon_spark.model.hierarchy.values import BinGrid, calendar_day, canonical_number

__all__ = [
    "BinGrid",
    "DateRule",
    "Hierarchy",
    "MaskRule",
    "Rule",
    "TopRule",
    "as_rules",
    "calendar_day",
    "canonical_number",
    "ends_of",
    "portable",
    "refuse_ambiguous",
]
