"""Which pipeline a job goes to: a new family is a module here and one line below."""

from __future__ import annotations

from pyspark.sql import SparkSession

from anon_spark.config import JobSpec, LatticeJob
from anon_spark.errors import ConfigurationError
from pipelines.lattice import LatticePipeline

FamilyPipeline = LatticePipeline  # a union as families are added


def pipeline_of(job: JobSpec, spark: SparkSession | None) -> FamilyPipeline:
    """The steps of the job's family, its hierarchies loaded and checked."""
    if isinstance(job, LatticeJob):
        return LatticePipeline.of(job, spark)
    raise ConfigurationError(f"family {job.family} is not in this version.")
