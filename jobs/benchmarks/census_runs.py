"""Whole runs on the synthetic census: what the families' growth measurements have in common."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anon_spark.families.registry import parse_job
from anon_spark.report import RunReport
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run
from anon_spark.samples.census import census, census_hierarchies
from anon_spark.samples.level_tables import write_level_tables
from anon_spark.spark_session import make_session

WARM_UP = 50_000
STEPS = ("fit", "release", "audit", "risk", "publish")

WholeRun = Callable[[SparkSession, int, Path], dict[str, Any]]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the work, and what it returned."""
    started = perf_counter()
    result = work()
    return perf_counter() - started, result


def written_census(spark: SparkSession, rows: int, folder: Path) -> DataFrame:
    """The census as a Delta table in a new folder, its hierarchies beside it, read again."""
    folder.mkdir(parents=True)
    source = str(folder / "census")
    census(spark, rows).write.format("delta").save(source)
    write_level_tables(folder / "hierarchies", census_hierarchies())
    return spark.read.format("delta").load(source)


def census_run(spark: SparkSession, folder: Path, family: str, privacy: Mapping[str, Any]) -> RunReport:
    """A published release of the census in the folder."""
    levels = {name: {"levels": f"hierarchies/{name}.csv"} for name in census_hierarchies() if name != "age"}
    job = {
        "anon_spark": 1,
        "family": family,
        "input": {"table": "./census"},
        "columns": {
            "identifiers": ["name", "person_id"],
            "quasi_identifiers": {
                "age": {"intervals": {"from": 17, "to": 90, "widths": [3, 6, 12, 24, 48]}},
                **levels,
            },
            "sensitive": ["disease"],
            "keep": ["weight"],
        },
        "privacy": dict(privacy),
        "work": "./work",
        "output": {"table": "./release", "runs": "./runs", "report": "report.html"},
    }
    return run(prepare(parse_job(job, folder), spark))


def print_scale(whole_run: WholeRun) -> int:
    """The command `scale --rows N --dir FOLDER`: one size after a small one as warm-up, printed as a line of JSON."""
    parser = argparse.ArgumentParser(description="One size of the growth measurement; prints one line of JSON.")
    parser.add_argument("part", choices=["scale"])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--dir", type=Path, required=True)
    options = parser.parse_args()
    spark = make_session("anon-spark benchmark")
    warm_up = whole_run(spark, WARM_UP, options.dir / "warm")
    measured = whole_run(spark, options.rows, options.dir / str(options.rows))
    print("RESULT " + json.dumps({**measured, "warm_up": warm_up["total"]}))
    return 0


def seconds_by_step(grown: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """One row of a table per size."""
    return [[f"{found['rows']:,}", *(f"{found['timings'].get(step, 0):.1f}" for step in STEPS)] for found in grown]


def growth(grown: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """From the first size to the last: how many times as long a whole run takes, and the exponent of the rows."""
    first, last = grown[0], grown[-1]
    times = last["total"] / first["total"]
    return times, math.log(times) / math.log(last["rows"] / first["rows"])
