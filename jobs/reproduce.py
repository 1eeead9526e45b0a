"""A family's paper run again: `python jobs/reproduce.py FAMILY [--data PATH]`, writes REPRODUCTION.md beside it."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from anon_spark.spark_session import make_session
from jobs.markdown import replace_section

HERE = Path(__file__).parent
RESULTS = HERE / "REPRODUCTION.md"
# packages of jobs.reproductions, each with main.py: reproduce(spark, data, figures), and more options if OPTIONS names some
FAMILIES = ("lattice", "mst", "relational_transaction", "set_valued", "tree")


def main() -> int:
    parser = argparse.ArgumentParser(description="Reproduce a paper's experiments and claims; writes REPRODUCTION.md.")
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--data", type=Path, help="folder that holds adult/, fimi/ and informs/; default: synthetic tables")
    parser.add_argument("--tables", type=Path, help="tree: folder that keeps the TPC-H tables for other runs (default: none)")
    parser.add_argument("--rows", type=int, help="tree: customers of the experiments (default: 20,000)")
    parser.add_argument("--large", type=int, help="tree: customers of one more run with default parameters (default: none)")
    parser.add_argument("--cuts", type=int, help="tree: cuts that a search may judge (default: 400)")
    options = parser.parse_args()
    family = import_module(f"jobs.reproductions.{options.family}.main")
    spark = make_session("anon-spark reproduce")
    more = {name: getattr(options, name) for name in getattr(family, "OPTIONS", ())}
    text = family.reproduce(spark, options.data, HERE / "figures", **more)
    replace_section(RESULTS, "Reproduction", options.family, text)
    print(f"written: {RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
