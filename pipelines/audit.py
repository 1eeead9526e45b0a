"""An audit of the release that stands: the same verifiers, on the published table and the version it came from."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from anon_spark.audit import Verdict
from anon_spark.config import JobSpec
from anon_spark.errors import ConfigurationError
from anon_spark.io.publication import Published, standing_release
from anon_spark.io.tables import read_snapshot, read_version
from pipelines.families import pipeline_of


def audit(job: JobSpec, spark: SparkSession) -> Sequence[Verdict]:
    """Verdicts on the newest release of the job. Writes nothing."""
    steps = pipeline_of(job, spark)
    standing = standing_release(spark, job.output.table)
    if standing is None:
        raise ConfigurationError(f"output.table: nothing is published at {job.output.table} yet. Run the job first.")
    version = standing.metadata.get("input_version")
    source = read_snapshot(spark, job.input.model_copy(update={"version": version}))
    steps.check_columns(source.frame)
    release = read_version(spark, job.output.table, standing.latest)
    return [_untouched(standing), *steps.verify_published(source.frame, release, standing.metadata)]


def _untouched(standing: Published) -> Verdict:
    """Whether nobody changed the table since it was published; maintenance that keeps its rows is no change."""
    since, changes = standing.latest - standing.version, standing.changes
    said = f"{len(changes)} commits since version {standing.version} are not ours: {', '.join(sorted(set(changes)))}."
    detail = said if changes else f"version {standing.version} is the release, nothing changed its rows since."
    return Verdict("publication", not changes, len(changes), since, detail)
