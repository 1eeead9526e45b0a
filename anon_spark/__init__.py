"""anon-spark: verified anonymization of Delta tables on Spark.

Public names are loaded on first use, so that `anon_spark.model` can be imported without Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anon_spark.audit import Verdict, verify
    from anon_spark.families.lattice import LatticeAnonymizer, LatticeRecoding
    from anon_spark.families.mst import MstAnonymizer, MstRecoding
    from anon_spark.families.relational_transaction import (
        RelationalTransactionAnonymizer,
        RelationalTransactionRecoding,
    )
    from anon_spark.families.set_valued import SetValuedAnonymizer, SetValuedRecoding
    from anon_spark.families.tree import TreeAnonymizer, TreeRecoding
    from anon_spark.model.guarantee import (
        KAnonymity,
        KKmAnonymity,
        KLmDiversity,
        KmnAnonymity,
        LDiversity,
        NonreciprocalAnonymity,
        NonreciprocalDiversity,
    )
    from anon_spark.model.hierarchy import Hierarchy
    from anon_spark.model.ranges import FreeRange
    from anon_spark.model.tree import TreeClass, TreeSchema
    from anon_spark.primitives.recoding import Recoding

_HOMES = {
    "FreeRange": "anon_spark.model.ranges",
    "Hierarchy": "anon_spark.model.hierarchy",
    "KAnonymity": "anon_spark.model.guarantee",
    "KKmAnonymity": "anon_spark.model.guarantee",
    "KLmDiversity": "anon_spark.model.guarantee",
    "KmnAnonymity": "anon_spark.model.guarantee",
    "LDiversity": "anon_spark.model.guarantee",
    "LatticeAnonymizer": "anon_spark.families.lattice",
    "LatticeRecoding": "anon_spark.families.lattice",
    "MstAnonymizer": "anon_spark.families.mst",
    "MstRecoding": "anon_spark.families.mst",
    "NonreciprocalAnonymity": "anon_spark.model.guarantee",
    "NonreciprocalDiversity": "anon_spark.model.guarantee",
    "Recoding": "anon_spark.primitives.recoding",
    "RelationalTransactionAnonymizer": "anon_spark.families.relational_transaction",
    "RelationalTransactionRecoding": "anon_spark.families.relational_transaction",
    "SetValuedAnonymizer": "anon_spark.families.set_valued",
    "SetValuedRecoding": "anon_spark.families.set_valued",
    "TreeAnonymizer": "anon_spark.families.tree",
    "TreeClass": "anon_spark.model.tree",
    "TreeRecoding": "anon_spark.families.tree",
    "TreeSchema": "anon_spark.model.tree",
    "Verdict": "anon_spark.audit",
    "verify": "anon_spark.audit",
}

__all__ = [
    "FreeRange",
    "Hierarchy",
    "KAnonymity",
    "KKmAnonymity",
    "KLmDiversity",
    "KmnAnonymity",
    "LDiversity",
    "LatticeAnonymizer",
    "LatticeRecoding",
    "MstAnonymizer",
    "MstRecoding",
    "NonreciprocalAnonymity",
    "NonreciprocalDiversity",
    "Recoding",
    "RelationalTransactionAnonymizer",
    "RelationalTransactionRecoding",
    "SetValuedAnonymizer",
    "SetValuedRecoding",
    "TreeAnonymizer",
    "TreeClass",
    "TreeRecoding",
    "TreeSchema",
    "Verdict",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'anon_spark' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
