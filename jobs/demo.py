"""The demonstration: `spark-submit jobs/demo.py [--dir FOLDER]`."""

from __future__ import annotations

import sys

from anon_spark.cli import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
