"""The demonstration of each family: a synthetic Delta table, the family's job file of conf/, a run, and what came out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import Row, SparkSession

from anon_spark.families.registry import NAMES, family_of, load_job
from anon_spark.machine.progress import Steps
from anon_spark.report import RunReport
from anon_spark.runs.preparation import prepare
from anon_spark.runs.publishing import nothing
from anon_spark.runs.run import run
from anon_spark.samples.sample import copy_jobs

SHOWN_ROWS = 8
SHOWN_WIDTH = 44  # of a list of items


def make_samples(spark: SparkSession, folder: Path, rows: int) -> Path:
    """Write sample tables, job files and hierarchies for the demonstrations; returns the folder of the jobs."""
    folder.mkdir(parents=True, exist_ok=True)
    for sample in {family_of(name).sample.table: family_of(name).sample for name in NAMES}.values():
        sample.write(spark, folder, rows)
    return copy_jobs(folder)


def demonstrate(spark: SparkSession, jobs: Path, family: str, steps: Steps | None = None) -> str:
    """Run one family on its sample; returns the text to show."""
    job = load_job(jobs / f"{family}.yaml")
    progress, step = (None, nothing) if steps is None else (steps.tell, steps.begin)
    report = run(prepare(job, spark), progress, step=step)
    release = spark.read.format("delta").load(job.output.table).limit(SHOWN_ROWS)
    rows = [[_cell(value) for value in row] for row in release.collect()]
    shown = pd.DataFrame(rows, columns=release.columns).to_string(index=False)
    lines = [
        *report.facts.summary(), "", "Some rows of the release:", shown, "", _outcome(report),
        f"The report with its plots: {job.output.report}",
    ]  # fmt: skip
    table = family_of(family).sample.table
    earlier = [name for name in NAMES[: NAMES.index(family)] if family_of(name).sample.table == table]
    for other in earlier:
        page = jobs.parent / "compared.html"
        lines.append(f"Both side by side: anon-spark compare {jobs}/{other}.yaml {jobs}/{family}.yaml --report {page}")
    return "\n".join(lines)


def _outcome(report: RunReport) -> str:
    checks = [f"  {'passed' if check.passed else 'FAILED'}  {check.name}: {check.detail}" for check in report.checks]
    findings = [f"  {finding.level:6}  {finding.text}" for finding in report.findings]
    return "\n".join([*checks, *findings, report.verdict, f"{report.status.replace('_', ' ')}: {report.output_table}"])


def _cell(value: Any) -> str:
    """A value, a list of items (generalized ones in brackets), a range or paths, on one short line."""
    if isinstance(value, Row | Mapping) and "lo" not in value:
        return "…"  # nested values say the same as paths
    if isinstance(value, Row | Mapping):
        return str(value["lo"]) if value["lo"] == value["hi"] else f"{value['lo']}–{value['hi']}"
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    text = ", ".join(item if isinstance(item, str) else f"({' '.join(map(_label, item))})" for item in value)
    return text if len(text) <= SHOWN_WIDTH else text[: SHOWN_WIDTH - 1] + "…"


def _label(item: Any) -> str:
    """A member of a generalized item, or a node of a path."""
    return item if isinstance(item, str) else str(item["value"])
