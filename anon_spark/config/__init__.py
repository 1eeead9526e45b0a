"""Job files: YAML in, frozen specifications out, or one error that names every fault. No Spark here."""

from anon_spark.config.hierarchies import (
    DateSpec,
    EdgesSource,
    HierarchySpec,
    IntervalsSpec,
    LevelsSource,
    MaskSpec,
    Source,
)
from anon_spark.config.job import (
    ColumnsSpec,
    InputSpec,
    JobSpec,
    NestedInputSpec,
    NestSpec,
    OutputSpec,
    PrivacySpec,
    RolesSpec,
)
from anon_spark.config.lattice import ChooseSpec, LatticeJob, LatticeSpec
from anon_spark.config.limits import LimitsSpec
from anon_spark.config.loading import FAMILIES, config_hash, known_keys, load_job, parse_job
from anon_spark.config.locations import is_path, is_uri, relation, resolve_file, resolve_table
from anon_spark.config.mst import MstJob, MstPrivacySpec, MstSpec
from anon_spark.config.relational_transaction import (
    ItemsSpec,
    RelationalSpec,
    RelationalTransactionColumnsSpec,
    RelationalTransactionJob,
    RelationalTransactionPrivacySpec,
    RelationalTransactionSpec,
)
from anon_spark.config.set_valued import SetValuedColumnsSpec, SetValuedJob, SetValuedPrivacySpec, SetValuedSpec
from anon_spark.config.tree import TreeClassSpec, TreeColumnsSpec, TreeJob, TreePrivacySpec, TreeSpec

__all__ = [
    "FAMILIES",
    "ChooseSpec",
    "ColumnsSpec",
    "DateSpec",
    "EdgesSource",
    "HierarchySpec",
    "InputSpec",
    "IntervalsSpec",
    "ItemsSpec",
    "JobSpec",
    "LatticeJob",
    "LatticeSpec",
    "LevelsSource",
    "LimitsSpec",
    "MaskSpec",
    "MstJob",
    "MstPrivacySpec",
    "MstSpec",
    "NestSpec",
    "NestedInputSpec",
    "OutputSpec",
    "PrivacySpec",
    "RelationalSpec",
    "RelationalTransactionColumnsSpec",
    "RelationalTransactionJob",
    "RelationalTransactionPrivacySpec",
    "RelationalTransactionSpec",
    "RolesSpec",
    "SetValuedColumnsSpec",
    "SetValuedJob",
    "SetValuedPrivacySpec",
    "SetValuedSpec",
    "Source",
    "TreeClassSpec",
    "TreeColumnsSpec",
    "TreeJob",
    "TreePrivacySpec",
    "TreeSpec",
    "config_hash",
    "is_path",
    "is_uri",
    "known_keys",
    "load_job",
    "parse_job",
    "relation",
    "resolve_file",
    "resolve_table",
]
