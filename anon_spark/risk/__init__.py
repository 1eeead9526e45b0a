"""What an attacker gains: uniqueness, link attack and homogeneity, as plain numbers for the report.

Measured on the tables themselves with code of its own; nothing here decides whether a release may be published.
"""

from anon_spark.risk.cover import CoverRisk, cover_attack
from anon_spark.risk.homogeneity import Homogeneity, homogeneity
from anon_spark.risk.knowledge import KnowledgeRisk, knowledge_attack
from anon_spark.risk.known_link import KnownLinkRisk, known_link
from anon_spark.risk.link import LinkRisk, link_attack
from anon_spark.risk.reconstruction import Reconstruction, reconstruction
from anon_spark.risk.relink import RelinkRisk, relink_attack
from anon_spark.risk.tree_knowledge import StructureRisk, TreeKnowledge, TreeRisk, tree_attack
from anon_spark.risk.uniqueness import Uniqueness, UniquenessRisk, unique_rows, uniqueness

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
    "tree_attack",
    "unique_rows",
    "uniqueness",
]
