"""Simulated attacks, as plain numbers for the report: by values, by items, and by nested labels.

Tables are read as the audit reads them (`auditing.reading`); nothing is shared with what makes a release. Nothing here decides
whether a release may be published, but for `relink_verdict`.
"""

from anon_spark.risk.item_sets.knowledge import KnowledgeRisk, knowledge_attack
from anon_spark.risk.item_sets.known_link import KnownLinkRisk, known_link
from anon_spark.risk.item_sets.reconstruction import Reconstruction, reconstruction
from anon_spark.risk.item_sets.relink import RelinkRisk, relink_attack, relink_verdict
from anon_spark.risk.look_up.cover import CoverRisk, cover_attack
from anon_spark.risk.look_up.homogeneity import Homogeneity, homogeneity
from anon_spark.risk.look_up.link import LinkRisk, link_attack
from anon_spark.risk.look_up.uniqueness import Uniqueness, UniquenessRisk, unique_rows, uniqueness
from anon_spark.risk.trees.knowledge import StructureRisk, TreeKnowledge, TreeRisk, tree_attack

__all__ = [
    "CoverRisk",
    "Homogeneity",
    "KnowledgeRisk",
    "KnownLinkRisk",
    "LinkRisk",
    "Reconstruction",
    "RelinkRisk",
    "StructureRisk",
    "TreeKnowledge",
    "TreeRisk",
    "Uniqueness",
    "UniquenessRisk",
    "cover_attack",
    "homogeneity",
    "knowledge_attack",
    "known_link",
    "link_attack",
    "reconstruction",
    "relink_attack",
    "relink_verdict",
    "tree_attack",
    "unique_rows",
    "uniqueness",
]
