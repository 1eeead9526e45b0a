"""Several jobs in one application, for a cluster that need not start anew for each: `spark-submit several.py JOB …`."""

from __future__ import annotations

import sys

from anon_spark.cli import main

if __name__ == "__main__":
    sys.exit(max(main(["run", job, "--quiet"]) for job in sys.argv[1:]))
