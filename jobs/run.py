"""Anonymize, audit and publish: `spark-submit jobs/run.py JOB [--set KEY=VALUE]`."""

from __future__ import annotations

import sys

from anon_spark.cli import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
