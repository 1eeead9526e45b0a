"""Build, check and show a hierarchy: `spark-submit jobs/hierarchy.py SOURCE`."""

from __future__ import annotations

import sys

from anon_spark.cli import main

if __name__ == "__main__":
    sys.exit(main(["hierarchy", *sys.argv[1:]]))
