"""Remove what stopped runs of a job left: `spark-submit jobs/purge.py JOB --work`, or without Spark `anon-spark purge`."""

from __future__ import annotations

import sys

from anon_spark.cli import main

if __name__ == "__main__":
    sys.exit(main(["purge", *sys.argv[1:]]))
