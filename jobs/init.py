"""Look at a table and write a job for it: `spark-submit jobs/init.py TABLE --into FOLDER`."""

from __future__ import annotations

import sys

from anon_spark.cli import main

if __name__ == "__main__":
    sys.exit(main(["init", *sys.argv[1:]]))
