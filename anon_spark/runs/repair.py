"""Repair by a rerun: the report or run-log row that could not be written when a release was published."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from anon_spark.auditing import Verdict
from anon_spark.io.publication import Published, read_back
from anon_spark.io.run_log import append_run
from anon_spark.primitives.plain import without_metadata
from anon_spark.runs.identity import Identity
from anon_spark.runs.later import later_row
from anon_spark.runs.preparation import Preparation


def repair(prepared: Preparation, current: Published, identity: Identity, before: datetime) -> Sequence[Verdict]:
    """Add the missing run-log row of the current release; where its report is missing too, the verdicts of a new audit for it.

    before: a time by which it was published; the exact time is unknown.
    The report of a run that failed after its commit counts as missing. Cost: a job that reads the log; an audit only where the
    report is missing.
    """
    logged = identity.logged.get(str(current.metadata.get("run_id")))
    if logged is None or not logged.published:
        append_run(prepared.spark, prepared.job.output.runs, later_row(prepared, current, identity.content, before))
    page = prepared.job.output.report
    failed_later = logged is not None and not logged.published
    if page is None or (Path(page).exists() and not failed_later):
        return ()
    release = read_back(prepared.spark, prepared.job.output.table, current.version)
    return prepared.steps.verify_current(prepared.source.frame, without_metadata(release), current.metadata)
