"""Ratios and growth of a family: `python jobs/benchmark.py FAMILY [--data PATH]`, writes BENCHMARKS.md beside it.

Long; started by hand. Parts on local Spark run here; the growth runs on a real standalone master with two one-core
workers on 127.0.0.1, the driver with 1g and maxResultSize 64m.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from anon_spark.errors import AnonSparkError
from jobs.cluster import standalone_cluster
from jobs.markdown import replace_section, table

HERE = Path(__file__).parent
RESULTS = HERE / "BENCHMARKS.md"
SMALL_DRIVER = {
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "64m",
    "spark.executor.memory": "4g",
    "spark.driver.extraJavaOptions": "",
    "spark.executor.extraJavaOptions": "",
    "spark.sql.shuffle.partitions": "16",
    "spark.log.level": "ERROR",
}


def lattice(options: argparse.Namespace) -> str:
    """Batches against groupBy, the searches, and growth of whole runs, as Markdown."""
    from jobs.benchmarks.lattice import searches
    from jobs.session import make_session

    grown = [scaled("jobs/benchmarks/lattice.py", rows, options.folder) for rows in options.rows]
    spark = make_session("anon-spark benchmark")
    measured = [searches(spark, None)]
    if options.data is not None:
        measured.append(searches(spark, options.data))
    return "\n\n".join([_lattice_searches(measured), _lattice_growth(grown)])


FAMILIES = {"lattice": lattice}


def scaled(script: str, rows: int, folder: str | None) -> dict[str, Any]:
    """One size on a cluster of its own, with a small driver."""
    with tempfile.TemporaryDirectory(dir=folder) as place, standalone_cluster(Path(place), memory="5g") as cluster:
        done = cluster.submit(
            HERE.parent / script,
            "scale",
            "--rows",
            str(rows),
            "--dir",
            f"{place}/data",
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


def _lattice_searches(measured: Sequence[dict[str, Any]]) -> str:
    parts = ["### Batch evaluation and searches (local Spark, 2 cores, GLM, suppression 1 %)"]
    for result in measured:
        rows = [
            [
                name,
                f"{found['evaluated']:,}",
                f"{found['evaluated'] / result['nodes']:.1%}",
                str(found["batches"]),
                found["hits"],
                f"{found['seconds']:.2f}",
            ]
            for name, found in result["searches"].items()
        ]
        parts += [
            f"**{result['table']}**: {result['tuples']:,} distinct tuples, {result['nodes']:,} nodes. "
            f"One node in a batch {result['batch_seconds_per_node'] * 1e3:.2f} ms, by one Spark groupBy over the distinct "
            f"tuples {result['naive_seconds_per_node'] * 1e3:.0f} ms: **{result['ratio']:,.0f}× faster**. Exhaustive search: "
            f"{result['cells_per_second_and_core'] / 1e6:.0f} M nodes × tuples per second and core.",
            table(["search", "nodes evaluated", "share", "batches", "true points", "seconds"], rows),
        ]
    return "\n\n".join(parts)


def _lattice_growth(grown: Sequence[dict[str, Any]]) -> str:
    head = [
        "rows",
        "distinct tuples",
        "groupBy",
        "read + write",
        "whole run",
        "search",
        "rest / unavoidable",
        "with risk",
        "M nodes × tuples /s/core",
        "k",
        "loss",
    ]
    rows = [
        [
            f"{found['rows']:,}",
            f"{found['tuples']:,}",
            f"{found['group_by']:.1f}",
            f"{found['read_and_write']:.1f}",
            f"{found['total']:.1f}",
            f"{found['search']:.1f}",
            f"**{found['ratio']:.2f}×**",
            f"{found['ratio_with_risk']:.2f}×",
            f"{found['cells_per_second_and_core'] / 1e6:.0f}",
            str(found["k"]),
            f"{found['loss']:.4f}",
        ]
        for found in grown
    ]
    steps = [[f"{found['rows']:,}", *(f"{found['timings'].get(step, 0):.1f}" for step in STEPS)] for found in grown]
    parts = [
        "### Whole runs (standalone master, two one-core workers, driver 1g, maxResultSize 64m; seconds)",
        "Unavoidable: one groupBy-count over the eight columns plus one plain read and write of the table, in the same "
        "session just before. The rest is everything but the search: reading, frequency table, release, audit, "
        "publication, run log, report; the simulated attacks of the report (risk) are shown apart.",
        table(head, rows),
        "Seconds per step (fit includes the search):",
        table(["rows", *STEPS], steps),
    ]
    if len(grown) > 1:
        first, last = grown[0], grown[-1]
        times = last["total"] / first["total"]
        exponent = math.log(times) / math.log(last["rows"] / first["rows"])
        parts.append(
            f"From {first['rows']:,} to {last['rows']:,} rows the whole run takes **{times:.1f}×** as long "
            f"(exponent {exponent:.2f})."
        )
    return "\n\n".join(parts)


STEPS = ("fit", "release", "audit", "risk", "publish")


def main() -> int:
    parser = argparse.ArgumentParser(description="Benchmark a family; writes BENCHMARKS.md.")
    parser.add_argument("family", choices=sorted(FAMILIES))
    parser.add_argument("--data", type=Path, help="folder that holds adult/adult.data.gz, to measure on Adult as well")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000], help="sizes of the growth")
    parser.add_argument("--folder", help="where tables of the growth go (default: the temporary folder)")
    options = parser.parse_args()
    text = FAMILIES[options.family](options)
    machine = (
        f"Measured {date.today().isoformat()} on {os.cpu_count()} cores, Python {platform.python_version()}. "
        "Timings are noisy; ratios are of one run."
    )
    replace_section(RESULTS, "Benchmarks", options.family, f"{machine}\n\n{text}")
    print(f"written: {RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
