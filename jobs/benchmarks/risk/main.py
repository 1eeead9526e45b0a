"""Measurements of assessments: cost beside one groupBy of the quasi-identifiers, and estimates on simulated populations.

`spark-submit jobs/benchmarks/risk/main.py scale --rows N --dir FOLDER` measures one size on whatever master it is given and
prints one line of JSON; the simulation needs no Spark.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from anon_spark.assessment import assess
from anon_spark.samples.census import QUASI_IDENTIFIERS
from jobs.benchmarks.census_runs import print_scale, timed, written_census
from jobs.benchmarks.risk.populations import simulated, simulation_text
from jobs.markdown import table

SIZES = (1_000_000, 10_000_000)
REPEATS = 3  # of the groupBy, whose first run reads files that are not in memory yet: the best counts
MOST, MOST_SETS = 3.0, 20.0  # groupBys: for everything but the sets of columns, and for these


def whole_run(spark: SparkSession, rows: int, folder: Path) -> dict[str, Any]:
    """An assessment of the census beside one groupBy of its eight columns; sets of columns also from tuples left in Spark."""
    read = written_census(spark, rows, folder)
    names = list(QUASI_IDENTIFIERS)
    grouped = read.groupBy(*names).count()
    group = min(timed(lambda: grouped.write.format("noop").mode("overwrite").save())[0] for _ in range(REPEATS))
    plain, _ = timed(lambda: assess(read, names, ["disease"], population=0.1, sets=False))
    total, page = timed(lambda: assess(read, names, ["disease"], population=0.1))
    spread, other = timed(lambda: assess(read, names, held_bytes=0))
    shutil.rmtree(folder)
    assert other.facts.column_sets == page.facts.column_sets
    return {
        "rows": rows,
        "tuples": page.facts.look_up.classes,
        "group_by": group,
        "plain": plain,
        "total": total,
        "timings": dict(page.seconds),
        "spread": other.seconds["column_sets"],
        "spread_total": spread,
    }


def report(grown: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    """Cost and estimates as Markdown."""
    return "\n\n".join([cost_text(grown), simulation_text(simulated())])


def cost_text(grown: Sequence[dict[str, Any]]) -> str:
    """Seconds by rows, as ratios to one groupBy, with verdicts that are computed."""
    rows = []
    for found in grown:
        sets, group = found["timings"]["column_sets"], found["group_by"]
        rows.append(
            [
                f"{found['rows']:,}",
                f"{found['tuples']:,}",
                f"{group:.1f}",
                f"{found['plain']:.1f}",
                f"**{found['plain'] / group:.2f}×** ({_kept(found['plain'] <= MOST * group)})",
                f"{sets:.1f}",
                f"**{sets / group:.2f}×** ({_kept(sets <= MOST_SETS * group)})",
                f"{found['spread']:.1f}",
                f"**{found['spread'] / group:.2f}×** ({_kept(found['spread'] <= MOST_SETS * group)})",
            ]
        )
    head = ["rows", "distinct tuples", "groupBy", "all but sets", "ratio", "sets, held", "ratio", "sets, spread", "ratio"]
    return "\n\n".join(
        [
            "### Cost of an assessment (census of eight columns, one sensitive; standalone master, two one-core workers, driver "
            "1g, maxResultSize 64m; seconds)",
            f"Asked for: at most {MOST:g} times one groupBy of the eight columns (the best of {REPEATS}) for everything but the "
            f"255 sets of columns, and at most {MOST_SETS:g} times for these. Held: distinct tuples on the driver, the default; "
            "spread: tuples left in Spark, as for tables with too many of them; both give the same counts, which is checked in "
            "the run.",
            table(head, rows),
        ]
    )


def _kept(is_kept: bool) -> str:
    return "kept" if is_kept else "MISSED"


if __name__ == "__main__":
    sys.exit(print_scale(whole_run))
