"""The registry of families: a new family is a folder beside this file, and its name below.

A job file is read without Spark: only the `job` module of a family is imported for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anon_spark import config
from anon_spark.config import JobSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from anon_spark.families.contract import Family, Pipeline

NAMES = ("lattice", "mst", "relational_transaction", "set_valued", "tree")


@cache
def jobs() -> Mapping[str, type[JobSpec]]:
    """The job of every family."""
    return {name: import_module(f"anon_spark.families.{name}.job").JOB for name in NAMES}


@cache
def family_of(name: str) -> Family[Any, Any, Any]:
    """A family by its name in job files."""
    family: Family[Any, Any, Any] = import_module(f"anon_spark.families.{name}.pipeline").FAMILY
    return family


def drawing() -> frozenset[str]:
    """The families whose releases depend on a secret draw."""
    return frozenset(name for name in NAMES if family_of(name).draws)


def pipeline_of(job: JobSpec, spark: SparkSession | None) -> Pipeline[Any, Any, Any]:
    """The steps of a job, its hierarchies loaded and checked."""
    return family_of(job.family).pipeline(job, spark)


def load_job(path: str | Path, overrides: Sequence[str] = ()) -> JobSpec:
    """Read a job file of any family: see `anon_spark.config.load_job`."""
    return config.load_job(jobs(), path, overrides)


def parse_job(raw: Mapping[str, Any], base: Path) -> JobSpec:
    """A job of any family from plain values: see `anon_spark.config.parse_job`."""
    return config.parse_job(jobs(), raw, base)


def known_keys(family: str | None = None) -> dict[str, str]:
    """Every key of a job file, with its type, default and meaning: see `anon_spark.config.known_keys`."""
    return config.known_keys(jobs(), family)
