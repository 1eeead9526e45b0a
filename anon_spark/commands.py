"""The commands as functions, for notebooks and pipelines: session, run, plan, audit and compare.

A job is the path of a job file, or what `anon_spark.families.registry.load_job` returned. Without a session the current one is
used, else local Spark with Delta.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from anon_spark.auditing import Verdict
from anon_spark.config import JobSpec
from anon_spark.families.registry import load_job
from anon_spark.model.progress import Progress
from anon_spark.report import Comparison, RunReport
from anon_spark.runs.audit import audit as audit_current
from anon_spark.runs.compare import compare as compare_releases
from anon_spark.runs.plan import Plan
from anon_spark.runs.plan import plan as planned
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run as run_prepared
from anon_spark.spark_session import make_session

Job = JobSpec | str | os.PathLike[str]


def session(name: str = "anon-spark", options: Mapping[str, str] | None = None) -> SparkSession:
    """The existing Spark session (also Spark Connect), else a new local one with Delta. options: Spark settings."""
    return make_session(name, options)


def run(
    job: Job,
    spark: SparkSession | None = None,
    *,
    changes: Sequence[str] = (),
    redraw: bool = False,
    progress: Progress | None = None,
) -> RunReport:
    """Anonymize, audit and publish the table of a job; the report of what was published.

    changes: keys of the job file with other values, as in `privacy.k=25`. redraw: allow a second random draw for the same
    rows. progress: callback for long work.
    Raises an AnonSparkError where nothing was published; its `exit_code` is that of the command line.
    """
    return run_prepared(prepare(_job(job, changes), _session(spark)), progress, redraw)


def plan(job: Job, spark: SparkSession | None = None, *, changes: Sequence[str] = ()) -> Plan:
    """Check a job and count what a run would meet; writes nothing. Raises what a run would raise before its fit."""
    return planned(prepare(_job(job, changes), _session(spark)))


def audit(job: Job, spark: SparkSession | None = None, *, changes: Sequence[str] = ()) -> Sequence[Verdict]:
    """Verify the current release of a job; writes nothing. One verdict per check: look at `passed`, or call `require()`."""
    return audit_current(_job(job, changes), _session(spark))


def compare(jobs: Sequence[Job], spark: SparkSession | None = None, *, report: str | Path | None = None) -> Comparison:
    """The current releases of several jobs on one table side by side, each verified first. report: writes the page."""
    return compare_releases(jobs, _session(spark), report)


def _job(job: Job, changes: Sequence[str]) -> JobSpec:
    return job if isinstance(job, JobSpec) else load_job(Path(job), changes)


def _session(spark: SparkSession | None) -> SparkSession:
    return spark if spark is not None else make_session("anon-spark")
