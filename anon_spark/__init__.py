"""anon-spark: verified anonymization of Delta tables on Spark.

Public names are loaded on first use, so that `anon_spark.model` can be imported without Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anon_spark.assessment import Assessment, assess
    from anon_spark.auditing import Verdict, verify
    from anon_spark.commands import audit, compare, plan, run, session
    from anon_spark.errors import (
        AnonSparkError,
        ConfigurationError,
        DataError,
        GuaranteeViolated,
        HierarchyError,
        LimitExceeded,
        Stopped,
    )
    from anon_spark.families.lattice.anonymizer import LatticeAnonymizer
    from anon_spark.families.lattice.recoding import LatticeRecoding
    from anon_spark.families.mst.anonymizer import MstAnonymizer
    from anon_spark.families.mst.recoding import MstRecoding
    from anon_spark.families.recoding import Recoding
    from anon_spark.families.relational_transaction.anonymizer import RelationalTransactionAnonymizer
    from anon_spark.families.relational_transaction.recoding import RelationalTransactionRecoding
    from anon_spark.families.set_valued.anonymizer import SetValuedAnonymizer
    from anon_spark.families.set_valued.queries import count, counts
    from anon_spark.families.set_valued.recoding import SetValuedRecoding
    from anon_spark.families.tree.anonymizer import TreeAnonymizer
    from anon_spark.families.tree.recoding import TreeRecoding
    from anon_spark.model.guarantee import (
        KAnonymity,
        KKmAnonymity,
        KLmDiversity,
        KmnAnonymity,
        LDiversity,
        NonreciprocalAnonymity,
        NonreciprocalDiversity,
    )
    from anon_spark.model.guarantee.models import (
        BetaLikeness,
        DeltaDisclosure,
        DistinctL,
        EntropyL,
        RecursiveCL,
        TCloseness,
    )
    from anon_spark.model.hierarchy import Hierarchy
    from anon_spark.model.progress import Progress
    from anon_spark.model.ranges import FreeRange
    from anon_spark.model.tree import NodeType, TreeClass, TreeSchema
    from anon_spark.releases import Release, read_release
    from anon_spark.report import Comparison, RunReport
    from anon_spark.risk import (
        cover_attack,
        homogeneity,
        knowledge_attack,
        link_attack,
        relink_attack,
        tree_attack,
        uniqueness,
    )
    from anon_spark.runs.plan import Plan
    from anon_spark.suggestion import Suggestion, suggest
    from anon_spark.suggestion.one_line import anonymize

_HOMES = {
    "AnonSparkError": "anon_spark.errors",
    "Assessment": "anon_spark.assessment",
    "BetaLikeness": "anon_spark.model.guarantee.models",
    "Comparison": "anon_spark.report",
    "ConfigurationError": "anon_spark.errors",
    "DataError": "anon_spark.errors",
    "DeltaDisclosure": "anon_spark.model.guarantee.models",
    "DistinctL": "anon_spark.model.guarantee.models",
    "EntropyL": "anon_spark.model.guarantee.models",
    "FreeRange": "anon_spark.model.ranges",
    "GuaranteeViolated": "anon_spark.errors",
    "Hierarchy": "anon_spark.model.hierarchy",
    "HierarchyError": "anon_spark.errors",
    "KAnonymity": "anon_spark.model.guarantee",
    "KKmAnonymity": "anon_spark.model.guarantee",
    "KLmDiversity": "anon_spark.model.guarantee",
    "KmnAnonymity": "anon_spark.model.guarantee",
    "LDiversity": "anon_spark.model.guarantee",
    "LatticeAnonymizer": "anon_spark.families.lattice.anonymizer",
    "LatticeRecoding": "anon_spark.families.lattice.recoding",
    "LimitExceeded": "anon_spark.errors",
    "MstAnonymizer": "anon_spark.families.mst.anonymizer",
    "MstRecoding": "anon_spark.families.mst.recoding",
    "NodeType": "anon_spark.model.tree",
    "NonreciprocalAnonymity": "anon_spark.model.guarantee",
    "NonreciprocalDiversity": "anon_spark.model.guarantee",
    "Plan": "anon_spark.runs.plan",
    "Progress": "anon_spark.model.progress",
    "Recoding": "anon_spark.families.recoding",
    "RecursiveCL": "anon_spark.model.guarantee.models",
    "RelationalTransactionAnonymizer": "anon_spark.families.relational_transaction.anonymizer",
    "RelationalTransactionRecoding": "anon_spark.families.relational_transaction.recoding",
    "Release": "anon_spark.releases",
    "RunReport": "anon_spark.report",
    "SetValuedAnonymizer": "anon_spark.families.set_valued.anonymizer",
    "SetValuedRecoding": "anon_spark.families.set_valued.recoding",
    "Stopped": "anon_spark.errors",
    "Suggestion": "anon_spark.suggestion",
    "TCloseness": "anon_spark.model.guarantee.models",
    "TreeAnonymizer": "anon_spark.families.tree.anonymizer",
    "TreeClass": "anon_spark.model.tree",
    "TreeRecoding": "anon_spark.families.tree.recoding",
    "TreeSchema": "anon_spark.model.tree",
    "Verdict": "anon_spark.auditing",
    "anonymize": "anon_spark.suggestion.one_line",
    "assess": "anon_spark.assessment",
    "audit": "anon_spark.commands",
    "compare": "anon_spark.commands",
    "count": "anon_spark.families.set_valued.queries",
    "counts": "anon_spark.families.set_valued.queries",
    "cover_attack": "anon_spark.risk",
    "homogeneity": "anon_spark.risk",
    "knowledge_attack": "anon_spark.risk",
    "link_attack": "anon_spark.risk",
    "plan": "anon_spark.commands",
    "read_release": "anon_spark.releases",
    "relink_attack": "anon_spark.risk",
    "run": "anon_spark.commands",
    "session": "anon_spark.commands",
    "suggest": "anon_spark.suggestion",
    "tree_attack": "anon_spark.risk",
    "uniqueness": "anon_spark.risk",
    "verify": "anon_spark.auditing",
}

__all__ = [
    "AnonSparkError",
    "Assessment",
    "BetaLikeness",
    "Comparison",
    "ConfigurationError",
    "DataError",
    "DeltaDisclosure",
    "DistinctL",
    "EntropyL",
    "FreeRange",
    "GuaranteeViolated",
    "Hierarchy",
    "HierarchyError",
    "KAnonymity",
    "KKmAnonymity",
    "KLmDiversity",
    "KmnAnonymity",
    "LDiversity",
    "LatticeAnonymizer",
    "LatticeRecoding",
    "LimitExceeded",
    "MstAnonymizer",
    "MstRecoding",
    "NodeType",
    "NonreciprocalAnonymity",
    "NonreciprocalDiversity",
    "Plan",
    "Progress",
    "Recoding",
    "RecursiveCL",
    "RelationalTransactionAnonymizer",
    "RelationalTransactionRecoding",
    "Release",
    "RunReport",
    "SetValuedAnonymizer",
    "SetValuedRecoding",
    "Stopped",
    "Suggestion",
    "TCloseness",
    "TreeAnonymizer",
    "TreeClass",
    "TreeRecoding",
    "TreeSchema",
    "Verdict",
    "anonymize",
    "assess",
    "audit",
    "compare",
    "count",
    "counts",
    "cover_attack",
    "homogeneity",
    "knowledge_attack",
    "link_attack",
    "plan",
    "read_release",
    "relink_attack",
    "run",
    "session",
    "suggest",
    "tree_attack",
    "uniqueness",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'anon_spark' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
