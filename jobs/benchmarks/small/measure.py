"""Whole runs of small tables in one session, as one line of JSON: `python measure.py FOLDER [--times N]`.

It imports nothing of `jobs`, so that it measures whatever anon-spark is first on the path: this one, or that of an earlier
commit. FOLDER holds one job file per case; their outputs go below it and are new for every run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import Any

import yaml
from pyspark.sql import DataFrame, SparkSession

from anon_spark.families.registry import parse_job
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run
from anon_spark.spark_session import make_session

TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds() -> float:
    """Seconds of the processor that this process and all below it took so far, those that ended included."""
    taken, above = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it ended just now
                continue
            above[int(entry.name)], taken[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    mine = {os.getpid()}
    while more := {process for process, parent in above.items() if parent in mine} - mine:
        mine |= more
    return sum(taken[process] for process in mine) / TICKS


def jobs_so_far(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def measured(spark: SparkSession, work: Callable[[], Any]) -> dict[str, float]:
    """Seconds on the clock and of the processor, and Spark jobs."""
    jobs, processor, clock = jobs_so_far(spark), processor_seconds(), perf_counter()
    work()
    clock, processor = perf_counter() - clock, processor_seconds() - processor
    return {"clock": clock, "processor": processor, "jobs": jobs_so_far(spark) - jobs}


def run_job(job: Any, spark: SparkSession) -> None:
    run(prepare(job, spark))


def read(spark: SparkSession, spec: dict[str, Any], folder: Path) -> DataFrame:
    reader = spark.read.format(spec.get("format", "delta")).options(**spec.get("options", {}))
    return reader.load(str((folder / spec["table"]).resolve()))


def unavoidable(table: Callable[[], DataFrame], columns: list[str], place: str) -> None:
    """One groupBy-count over the quasi-identifiers, and one plain read and write of the table."""
    table().groupBy(*(f"`{name}`" for name in columns)).count().write.format("noop").mode("overwrite").save()
    plain = table()
    plain.toDF(*(f"c{at}" for at in range(len(plain.columns)))).write.format("delta").save(place)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    make: Callable[..., SparkSession] = make_session
    brief = {"brief": True} if "brief" in signature(make).parameters else {}  # as commands start it for small tables
    spark, found = make("anon-spark small runs", **brief), {}
    for file in sorted(options.folder.glob("*.yaml")):
        content = yaml.safe_load(file.read_text())
        quasi_identifiers = list(content["columns"].get("quasi_identifiers", {}))
        runs, plain = [], []
        for number in range(options.times + 1):  # the first compiles
            output = options.folder / "out" / f"{file.stem}-{os.getpid()}-{number}"
            content["output"] = {"table": str(output), "runs": f"{output}-runs", "report": f"{output}.html"}
            job = parse_job(content, options.folder)
            runs.append(measured(spark, partial(run_job, job, spark)))
            if quasi_identifiers:
                table = partial(read, spark, content["input"], options.folder)
                plain.append(measured(spark, partial(unavoidable, table, quasi_identifiers, f"{output}-plain")))
        found[file.stem] = {"runs": runs[1:], "unavoidable": plain[1:]}
    print("RESULT " + json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
