"""Everything that can be refused before a row is read: configuration, hierarchies, places, versions, columns."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import combinations

from pyspark.sql import SparkSession

from anon_spark.config import JobSpec, config_hash, relation
from anon_spark.errors import ConfigurationError
from anon_spark.io.publication import Published, last_release
from anon_spark.io.run_log import check_run_log
from anon_spark.io.tables import Snapshot, delta_detail, read_snapshot
from anon_spark.primitives.rounds import usable
from pipelines.families import FamilyPipeline, pipeline_of


@dataclass(frozen=True)
class Preparation:
    """A job that can run: its steps, its input at a pinned version, and the release that stands now."""

    job: JobSpec
    spark: SparkSession
    steps: FamilyPipeline
    source: Snapshot
    standing: Published | None
    config_hash: str  # of the job and of the hierarchies it points to

    @property
    def already_published(self) -> bool:
        """Whether the release that stands came from the same job and the same version of the same table."""
        if self.standing is None or self.source.version is None:
            return False
        said = self.standing.metadata
        return (said.get("config_hash"), said.get("input_id"), said.get("input_version")) == (
            self.config_hash,
            self.source.table_id,
            self.source.version,
        )


def prepare(job: JobSpec, spark: SparkSession) -> Preparation:
    """Check everything that needs no row. Raises ConfigurationError; writes nothing."""
    steps = pipeline_of(job, spark)
    source = read_snapshot(spark, job.input)
    steps.check_columns(source.frame)
    standing = last_release(spark, job.output.table)
    check_run_log(spark, job.output.runs)
    _refuse_touching_places(job, spark, source, standing)
    if job.work is not None:
        usable(job.work)
    digest = hashlib.sha256(f"{config_hash(job)}\n{steps.fingerprint()}".encode()).hexdigest()
    return Preparation(job, spark, steps, source, standing, digest)


def _refuse_touching_places(
    job: JobSpec, spark: SparkSession, source: Snapshot, standing: Published | None
) -> None:
    """Compare real locations: a catalog name may lead into another table's folder."""
    runs = delta_detail(spark, job.output.runs)
    places = {
        "input.table": source.location,
        "output.table": standing.location if standing else job.output.table,
        "output.runs": str(runs["location"]) if runs else job.output.runs,
        "work": job.work,
    }
    known = [(key, place) for key, place in places.items() if place is not None and "/" in place]
    for (key, place), (other, other_place) in combinations(known, 2):
        found = relation(place, other_place)
        if found is not None:
            raise ConfigurationError(f"{key} {found} {other}: choose places apart from each other.")
