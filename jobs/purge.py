"""Remove what stopped runs of a job left, or earlier releases: `spark-submit jobs/purge.py JOB --work`, or `--history --yes`.

`anon-spark purge JOB --work` does the first without Spark.
"""

from __future__ import annotations

import sys

from anon_spark.cli import main

if __name__ == "__main__":
    sys.exit(main(["purge", *sys.argv[1:]]))
