"""An audit of the current release: the same verifiers, on the published table and the version it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing import Verdict, verify_metadata
from anon_spark.config import JobSpec
from anon_spark.errors import ConfigurationError
from anon_spark.families.contract import Pipeline
from anon_spark.families.registry import pipeline_of
from anon_spark.io.nesting import as_published, read_input
from anon_spark.io.publication import Published, output_of
from anon_spark.io.tables import Snapshot, read_version
from anon_spark.primitives.plain import without_metadata
from anon_spark.runs.series.audit import audit_series
from anon_spark.runs.untouched import untouched


@dataclass(frozen=True)
class CurrentRelease:
    """The newest release of a job, lazily, and the version of the input that it says it came from."""

    job: JobSpec
    steps: Pipeline[Any, Any, Any]
    published: Published
    source: Snapshot
    release: DataFrame  # as it is now, without metadata that others added since
    as_published: DataFrame  # at the version of its commit

    @classmethod
    def of(cls, job: JobSpec, spark: SparkSession) -> CurrentRelease:
        """The current release. Raises ConfigurationError where nothing is published. Cost: metadata only; writes nothing."""
        steps = pipeline_of(job, spark)
        output = output_of(spark, job.output.table)
        published = output.release
        if output.series is not None:
            raise ConfigurationError(
                f"output.table: {job.output.table} is a series, whose increments come from several versions of the input. "
                "`anon-spark audit` verifies it with a job that says output.mode: append; it cannot be compared."
            )
        if published is None:
            raise ConfigurationError(f"output.table: nothing is published at {job.output.table} yet. Run the job first.")
        source = read_input(spark, as_published(job.input, published.metadata), job.fields)
        steps.check_columns(source.frame)
        latest = read_version(spark, job.output.table, published.latest)
        written = _as_published(spark, job.output.table, published, latest)
        return cls(job, steps, published, source, without_metadata(latest), written)

    def verify(self) -> list[Verdict]:
        """The verdicts of all checks that a current release allows."""
        verdicts = self.steps.verify_current(self.source.frame, self.release, self.published.metadata)
        return [untouched(self.published), verify_metadata(self.as_published, self.steps.comments), *verdicts]


def audit(job: JobSpec, spark: SparkSession) -> Sequence[Verdict]:
    """Verdicts on the newest release of the job, or on its series. Writes nothing."""
    return audit_series(job, spark) if job.output.appends else CurrentRelease.of(job, spark).verify()


def _as_published(spark: SparkSession, table: str, published: Published, latest: DataFrame) -> DataFrame:
    """The release at its own commit, for its schema; the latest version where Delta can no longer read that one."""
    if published.version == published.latest:
        return latest
    written = read_version(spark, table, published.version)
    try:
        written.schema  # noqa: B018 - Spark finds out late whether a version can be read
    except Exception:
        return latest
    return written
