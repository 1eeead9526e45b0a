"""Measure releases of one table side by side: `spark-submit jobs/compare.py JOB JOB … [--report PAGE]`."""

from __future__ import annotations

import sys

from anon_spark.cli import main

if __name__ == "__main__":
    sys.exit(main(["compare", *sys.argv[1:]]))
