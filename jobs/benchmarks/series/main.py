"""Measurement of a series: increments of one size to a release that grows. Local Spark, one session."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anon_spark.families.registry import parse_job
from anon_spark.report import RunReport
from anon_spark.runs.audit import audit
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run
from anon_spark.samples.census import census, census_hierarchies
from anon_spark.samples.level_tables import write_level_tables
from anon_spark.spark_session import make_session
from jobs.benchmarks.census_runs import timed
from jobs.markdown import table

SIZES: Sequence[int] = ()  # nothing runs on a cluster
ROWS, INCREMENTS = 50_000, 20
MOST = 1.5  # the last increment, in times of the second
STEPS = ("input", "fit", "release", "audit", "risk", "publish")


def report(grown: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    """Seconds by increment as Markdown. --rows: of one increment."""
    rows = (options.rows or [ROWS])[0]
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        return series_text(*measured(make_session("anon-spark benchmark"), rows, folder), rows)
    finally:
        shutil.rmtree(folder)


def measured(spark: SparkSession, rows: int, folder: Path) -> tuple[list[tuple[float, RunReport]], float]:
    """The time and report of every increment, and the time of an audit of the whole series."""
    everybody, people = str(folder / "everybody"), str(folder / "people")
    census(spark, rows * INCREMENTS).write.parquet(everybody)
    write_level_tables(folder / "hierarchies", census_hierarchies())
    job = parse_job(_job(), folder)
    runs = []
    for number in range(INCREMENTS):
        arriving = F.pmod(F.xxhash64("person_id"), F.lit(INCREMENTS)) == number
        spark.read.parquet(everybody).where(arriving).write.format("delta").mode("append").save(people)
        runs.append(timed(lambda: run(prepare(job, spark))))
        print(f"increment {number + 1}: {runs[-1][0]:.1f} s, {runs[-1][1].status}", flush=True)
    audited, verdicts = timed(lambda: audit(job, spark))
    assert all(verdict.passed for verdict in verdicts)
    return runs, audited


def _job() -> dict[str, Any]:
    levels = {name: {"levels": f"hierarchies/{name}.csv"} for name in census_hierarchies() if name != "age"}
    age = {"intervals": {"from": 17, "to": 90, "widths": [3, 6, 12, 24, 48]}}
    return {
        "anon_spark": 1,
        "family": "lattice",
        "input": {"table": "./people"},
        "columns": {
            "person": "person_id",
            "identifiers": ["name"],
            "quasi_identifiers": {"age": age, **levels},
            "sensitive": ["disease"],
        },
        "privacy": {"k": 10, "suppression": 0.01},
        "work": "./work",
        "output": {
            "table": "./release", "runs": "./runs", "report": "report.html", "mode": "append", "ledger": "./ledger",
            "increment": "part",
        },
    }  # fmt: skip


def series_text(runs: Sequence[tuple[float, RunReport]], audited: float, rows: int) -> str:
    """The table, with a verdict that is computed."""
    second, last = runs[1][0], runs[-1][0]
    ratio = last / second
    kept = "kept" if ratio <= MOST else "MISSED"
    lines = []
    for number, (seconds, made) in enumerate(runs, start=1):
        series = made.series
        assert series is not None
        spent = [f"{made.timings.get(step, 0.0):.1f}" for step in STEPS]
        lines.append([str(number), f"{series.published:,}", f"{series.waiting:,}", f"{seconds:.1f}", *spent])
    return "\n\n".join(
        [
            f"### {len(runs)} increments of about {rows:,} rows (census of eight columns, lattice, k = 10; local, one session; "
            "seconds)",
            f"The last increment takes **{ratio:.2f} times** as long as the second (asked for: {MOST}): **{kept}**. An audit of "
            f"the whole series takes {audited:.0f} s. Steps: input is the join with the ledger; publish holds the commits of the "
            "ledger and of the release, and the comparison with what was audited.",
            table(["increment", "persons published", "waiting", "whole run", *STEPS], lines),
        ]
    )
