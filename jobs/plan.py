"""Check and count, write nothing: `spark-submit jobs/plan.py JOB [--set KEY=VALUE]`."""

from __future__ import annotations

import sys

from anon_spark.cli import main

if __name__ == "__main__":
    sys.exit(main(["plan", *sys.argv[1:]]))
