"""Jobs on tables of a catalog, one command for all of them: `spark-submit cataloged.py run|audit [--found] JOB …`."""

from __future__ import annotations

import sys

from anon_spark.cli import main
from anon_spark.samples.census import census
from anon_spark.spark_session import make_session

ROWS = 300

if __name__ == "__main__":
    command, *jobs = sys.argv[1:]
    if jobs[0] == "--found":
        jobs = jobs[1:]
        session = make_session("anon-spark catalog")
        session.sql("CREATE SCHEMA town")
        census(session, ROWS).write.format("delta").saveAsTable("town.census")
    sys.exit(max(main([command, job]) for job in jobs))
