"""Ratios and growth of a family or another part: `python jobs/benchmark.py FAMILY [--data PATH]`, writes BENCHMARKS.md beside it.

Long; started by hand. Parts on local Spark run here; the growth runs on a real standalone master with two one-core
workers on 127.0.0.1, the driver with 1g and maxResultSize 64m.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

from anon_spark.errors import AnonSparkError
from jobs.cluster import standalone_cluster
from jobs.markdown import replace_section

HERE = Path(__file__).parent
RESULTS = HERE / "BENCHMARKS.md"
# packages of jobs.benchmarks, each with main.py: SIZES, the command `scale`, maybe more words for it, and report(grown, options)
FAMILIES = ("lattice", "mst", "relational_transaction", "set_valued", "tree")
PARTS = (*FAMILIES, "models", "risk", "series", "small", "times")  # the last two: runs of all families, fixed costs and growth
SMALL_DRIVER = {
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "64m",
    "spark.executor.memory": "4g",
    "spark.driver.extraJavaOptions": "",
    "spark.executor.extraJavaOptions": "",
    "spark.sql.shuffle.partitions": "16",
    "spark.log.level": "ERROR",
}


def scaled(script: str, rows: int, folder: str | None, more: Sequence[str] = ()) -> dict[str, Any]:
    """One size on a cluster of its own, with a small driver. more: words for the command."""
    with tempfile.TemporaryDirectory(dir=folder) as place, standalone_cluster(Path(place), memory="5g") as cluster:
        done = cluster.submit(
            HERE.parent / script,
            "scale",
            "--rows",
            str(rows),
            "--dir",
            f"{place}/data",
            *more,
            conf=SMALL_DRIVER,
            timeout=7200,
        )
    for line in done.out.splitlines():
        if line.startswith("RESULT "):
            print(line, flush=True)
            return dict(json.loads(line.removeprefix("RESULT ")))
    raise AnonSparkError(
        f"The run of {rows:,} rows ended with {done.exit_code}:\n{done.out[-3000:]}\n{done.err[-3000:]}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Benchmark a family; writes BENCHMARKS.md.")
    parser.add_argument("family", choices=PARTS)
    parser.add_argument("--data", type=Path, help="folder that holds adult/, fimi/ and informs/, to measure on real tables")
    parser.add_argument("--rows", type=int, nargs="*", help="sizes of the growth (default: those of the family)")
    parser.add_argument("--folder", help="where tables of the growth go (default: the temporary folder)")
    parser.add_argument("--merge-rows", type=int, nargs="*", help="mst: census sizes on which merging is measured")
    parser.add_argument("--plain-rows", type=int, nargs="*", help="mst: of these, those merged plainly too (default: all)")
    parser.add_argument("--copies", type=int, nargs="+", help="set_valued: how many times the table of the growth is copied")
    parser.add_argument("--tables", type=Path, help="tree: folder that keeps the TPC-H tables for other runs (default: none)")
    parser.add_argument("--beside", help="small, times: an earlier commit that is measured, too")
    parser.add_argument("--only", nargs="+", choices=FAMILIES, help="small, times: these families (default: all)")
    parser.add_argument("--large", action="store_true", help="times: only one million rows")
    parser.add_argument("--times", type=float, help="tree: ACS gets so many times the time of a budget (default: 10)")
    options = parser.parse_args()
    family = import_module(f"jobs.benchmarks.{options.family}.main")
    sizes = family.SIZES if options.rows is None else options.rows
    more = family.scale_options(options) if hasattr(family, "scale_options") else []
    grown = [scaled(f"jobs/benchmarks/{options.family}/main.py", rows, options.folder, more) for rows in sizes]
    text = family.report(grown, options)
    machine = (
        f"Measured {date.today().isoformat()} on {os.cpu_count()} cores, Python {platform.python_version()}. "
        "Timings are noisy; ratios are of one run."
    )
    replace_section(RESULTS, "Benchmarks", options.family, f"{machine}\n\n{text}")
    print(f"written: {RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
