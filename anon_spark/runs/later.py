"""The run-log row of a release whose run could not write it."""

from __future__ import annotations

from datetime import datetime

from anon_spark.io.publication import Published
from anon_spark.io.run_log import RunRow
from anon_spark.runs.preparation import Preparation
from anon_spark.runs.software import versions

LATER = "Written by a later run: the log could not be written when this was published."


def later_row(prepared: Preparation, current: Published, content: str | None, before: datetime) -> RunRow:
    """The row of a release that this job published earlier. before: a time by which it was published; content: of its input."""
    return RunRow(
        run_id=str(current.metadata.get("run_id")),
        family=prepared.job.family,
        status="published",
        message=LATER,
        started=before,
        finished=before,
        config_hash=prepared.config_hash,
        input_table=prepared.source.table,
        input_version=current.metadata.get("input_version"),
        output_table=prepared.job.output.table,
        output_version=current.version,
        guarantee=str(prepared.steps.guarantee),
        for_release=bool(current.metadata.get("for_release")),
        software=versions()["anon-spark"],
        accounting={},
        metrics={},
        content=content,
    )
