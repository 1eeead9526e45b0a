"""Verify the current release: `spark-submit jobs/audit.py JOB [--set KEY=VALUE]`."""

from __future__ import annotations

import sys

from anon_spark.cli import main

if __name__ == "__main__":
    sys.exit(main(["audit", *sys.argv[1:]]))
