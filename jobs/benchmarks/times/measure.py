"""One whole run in a new session, as one line of JSON: `python measure.py JOB TABLE FOLDER`.

It imports nothing of `jobs`, so that it measures whatever anon-spark is first on the path: this one, or that of an earlier
commit.
JOB: a job file; TABLE: read in place of its input; FOLDER: where everything is written.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter

import yaml

from anon_spark.families.registry import parse_job
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run
from anon_spark.spark_session import make_session


def main(job: str, table: str, folder: str) -> int:
    content = yaml.safe_load(Path(job).read_text())
    content["input"] = {"table": table}
    content["output"] = {"table": f"{folder}/release", "runs": f"{folder}/runs", "report": f"{folder}/report.html"}
    spark = make_session("anon-spark run times")
    spark.range(1).count()
    started = perf_counter()
    report = run(prepare(parse_job(content, Path(job).parent), spark))
    found = {"total": perf_counter() - started, "steps": dict(report.timings)}
    print("RESULT " + json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
