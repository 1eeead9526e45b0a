"""All families through Spark Connect, in a process of its own: `python connected.py FOLDER ROWS`, with SPARK_REMOTE set.

Makes the tables, then plans, runs and audits each job, and says after each step what it returned; then assesses a table.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

from anon_spark.assessment import assess
from anon_spark.assessment.tuples import HELD_BYTES
from anon_spark.cli import main
from anon_spark.engine import on_connect
from anon_spark.spark_session import make_session
from tests.assessment.tables import QUASI, SENSITIVE, frame, people
from tests.e2e.families import JOBS, founded

STEPS = ("plan", "run", "audit")
FEWER_JOBS = {  # of Spark, with the same code
    "baskets": ("--set", "set_valued.order=gray"),
    "patients": ("--set", "relational_transaction.merge=relational"),
    "orders": ("--set", "tree.max_cuts=3"),
}

if __name__ == "__main__":
    folder, rows = Path(sys.argv[1]), int(sys.argv[2])
    session = make_session("anon-spark on Connect")
    assert on_connect(session)
    founded(session, folder, rows)
    for job in JOBS:
        for command in STEPS:
            started = perf_counter()
            code = main([command, str(folder / f"{job}.yaml"), *FEWER_JOBS.get(job, ())])
            sys.stdout.write(f"{job} {command} {code} after {perf_counter() - started:.1f} s\n")
            sys.stdout.flush()
    table = frame(session, people(7))
    held, spread = (assess(table, QUASI, SENSITIVE, "person", 0.1, held_bytes=most).facts for most in (HELD_BYTES, 0))
    sys.stdout.write(f"risk: {held == spread}\n")
    session.stop()
