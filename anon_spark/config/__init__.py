"""Job files: YAML in, frozen specifications out, or one error that names every fault. No Spark here."""

from anon_spark.config.hierarchies import (
    DateSpec,
    EdgesSource,
    HierarchySpec,
    IntervalsSpec,
    LevelsSource,
    MaskSpec,
    Source,
    TopSource,
)
from anon_spark.config.job import (
    ColumnsSpec,
    InputSpec,
    JobSpec,
    KSpec,
    NestedInputSpec,
    NestSpec,
    OutputSpec,
    PrivacySpec,
    QuasiIdentifierJob,
    RolesSpec,
)
from anon_spark.config.limits import LimitsSpec
from anon_spark.config.loading import Families, config_hash, known_keys, load_job, parse_job
from anon_spark.config.locations import is_path, is_uri, relation, resolve_file, resolve_table

__all__ = [
    "ColumnsSpec",
    "DateSpec",
    "EdgesSource",
    "Families",
    "HierarchySpec",
    "InputSpec",
    "IntervalsSpec",
    "JobSpec",
    "KSpec",
    "LevelsSource",
    "LimitsSpec",
    "MaskSpec",
    "NestSpec",
    "NestedInputSpec",
    "OutputSpec",
    "PrivacySpec",
    "QuasiIdentifierJob",
    "RolesSpec",
    "Source",
    "TopSource",
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
