"""Guarantees of a release: their parameters and, in plain words, what they cover."""

from anon_spark.model.guarantee.attributes import AttributeProtection
from anon_spark.model.guarantee.item_sets import NonreciprocalAnonymity, NonreciprocalDiversity
from anon_spark.model.guarantee.relational import DiverseAnonymity, KAnonymity, LDiversity
from anon_spark.model.guarantee.transactions import KKmAnonymity, KLmDiversity
from anon_spark.model.guarantee.trees import KmnAnonymity

__all__ = [
    "AttributeProtection",
    "DiverseAnonymity",
    "KAnonymity",
    "KKmAnonymity",
    "KLmDiversity",
    "KmnAnonymity",
    "LDiversity",
    "NonreciprocalAnonymity",
    "NonreciprocalDiversity",
]
