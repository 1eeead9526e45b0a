"""Measure how well people in a table can be told apart: `spark-submit jobs/risk.py TABLE [RELEASE] --quasi age,sex,zip`."""

from __future__ import annotations

import sys

from anon_spark.cli import main

if __name__ == "__main__":
    sys.exit(main(["risk", *sys.argv[1:]]))
