"""A family's paper run again: `python jobs/reproduce.py FAMILY [--data PATH]`, writes REPRODUCTION.md beside it."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from jobs.markdown import replace_section
from jobs.session import make_session

HERE = Path(__file__).parent
RESULTS = HERE / "REPRODUCTION.md"
# modules of jobs.reproductions: reproduce(spark, data, figures)
FAMILIES = ("lattice", "mst", "relational_transaction", "set_valued")


def main() -> int:
    parser = argparse.ArgumentParser(description="Reproduce a paper's experiments and claims; writes REPRODUCTION.md.")
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--data", type=Path, help="folder that holds adult/, fimi/ and informs/; default: synthetic tables")
    options = parser.parse_args()
    family = import_module(f"jobs.reproductions.{options.family}")
    spark = make_session("anon-spark reproduce")
    replace_section(RESULTS, "Reproduction", options.family, family.reproduce(spark, options.data, HERE / "figures"))
    print(f"written: {RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
