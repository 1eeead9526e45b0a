"""Measurements of the family set_valued: closed walks beside WMC, growth of the fit, and whole runs on baskets.

`spark-submit jobs/benchmarks/set_valued/main.py scale --rows N --dir FOLDER` measures one size on whatever master it is given
and prints one line of JSON; the other parts run on local Spark.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anon_spark.families.registry import parse_job
from anon_spark.report import RunReport
from anon_spark.report.formats import plain
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run
from anon_spark.samples.baskets import UNIVERSE, baskets
from anon_spark.spark_session import make_session
from jobs.benchmarks.census_runs import STEPS, growth, print_scale, timed
from jobs.benchmarks.set_valued.growth import (
    MOST_SORTS,
    RING_TSP,
    SWAPPED,
    TIMES,
    WAYS,
    against_sort,
    fitted,
    grown,
    growth_text,
    plain_sort,
    prices_text,
)
from jobs.benchmarks.set_valued.records import BASKET_ROWS, CHESS, basket_table, read_lists
from jobs.benchmarks.set_valued.walks import BUDGET, CASES, KEYS, compared, ring_growth_text, walks_text
from jobs.markdown import table

SIZES = (1_000_000,)  # baskets of the whole runs
K = 10


def report(whole: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    """Walks, growth of the fit, and whole runs, as Markdown."""
    spark = make_session("anon-spark benchmark")
    source = basket_table(spark, BASKET_ROWS) if options.data is None else read_lists(options.data, CHESS)
    times = tuple(options.copies or TIMES)
    parts = [
        f"### Walks (all rounds of one ring; mean steps of {len(KEYS)} draws, seconds of the fastest)",
        "One process, compiled before; a step is one edge walked or one step back. The walk that forgets dead ends has a "
        f"budget of {BUDGET:,} steps; steps and seconds of a walk that did not finish are lower bounds. "
        "Seconds include drawing the random words; a walk that needs more of them begins anew with twice as many.",
        walks_text({case: compared(*case) for case in CASES}),
        ring_growth_text(),
        growth_text(source.name, grown(spark, source, times)),
        whole_text(whole) if whole else "",
    ]
    return "\n\n".join(part for part in parts if part)


# --- whole runs ----------------------------------------------------------------------------------------------------------


def whole_run(spark: SparkSession, rows: int, folder: Path) -> dict[str, Any]:
    """Baskets fitted in each way and released in the default one, and a plain sort of them in the same session."""
    folder.mkdir(parents=True)
    source = str(folder / "baskets")
    baskets(spark, rows).write.format("delta").save(source)
    read = spark.read.format("delta").load(source)
    plain_sort(read, "items")  # the first reads the table's log and compiles
    found: dict[str, Any] = {"rows": rows, "plain_sort": plain_sort(read, "items"), "orders": {}}
    for way in WAYS:
        found["orders"][way] = basket_release(spark, folder, rows) if way == SWAPPED else basket_fit(read, way, folder)
    shutil.rmtree(folder)
    return {**found, "total": found["orders"][SWAPPED]["total"]}


def basket_fit(baskets: DataFrame, way: str, folder: Path) -> dict[str, Any]:
    """What one fit took and gave."""
    found = fitted(baskets, way, K, (folder / "work").as_uri())
    return {"timings": {"fit": found.seconds}, "seconds_sort": found.sort, "blocks": found.blocks, "er": found.error_rate}


def basket_release(spark: SparkSession, folder: Path, rows: int) -> dict[str, Any]:
    """What a published release in the default way took and gave."""
    seconds, report = timed(lambda: basket_run(spark, folder))
    facts = plain(report.facts)
    return {
        "rows": rows,
        "total": seconds,
        "timings": dict(report.timings),
        "seconds_sort": facts["statistics"]["seconds_sort"],
        "blocks": facts["measures"]["blocks"],
        "er": facts["measures"]["er"],
        "chosen": dict(facts["orders"]),
    }


def basket_run(spark: SparkSession, folder: Path) -> RunReport:
    """A published release of the baskets in the folder."""
    job = {
        "anon_spark": 1,
        "family": "set_valued",
        "input": {"table": "./baskets"},
        "columns": {"person": "person_id", "items": "items", "sensitive": ["religion"]},
        "privacy": {"k": K},
        "set_valued": dict(WAYS[SWAPPED]),
        "work": "./work",
        "output": {"table": "./release", "runs": "./runs", "report": "release.html"},
    }
    return run(prepare(parse_job(job, folder), spark))


def whole_text(whole: Sequence[dict[str, Any]]) -> str:
    """Whole runs by size, the fit of each way beside the sort, and what each way costs and saves."""
    runs = [(size, way, size["orders"][way]) for size in whole for way in WAYS]
    sorts = [
        [f"{size['rows']:,}", way, *against_sort(found, size["plain_sort"], way)] for size, way, found in runs
    ]
    steps = [
        [
            f"{size['rows']:,}",
            str(found["blocks"]),
            f"{found['er']:.4f}",
            f"{found['total']:.1f}",
            *(f"{found['timings'].get(step, 0):.1f}" for step in STEPS),
        ]
        for size, way, found in runs
        if way == SWAPPED
    ]
    chosen = "; ".join(
        f"{size['rows']:,}: "
        + ", ".join(f"{kind} {count}" for kind, count in size["orders"][SWAPPED]["chosen"].items())
        for size in whole
    )
    parts = [
        f"### Whole runs ({UNIVERSE} items, k = {K}; standalone master, two one-core workers, driver 1g, maxResultSize 64m; "
        "seconds)",
        table(["records", "blocks", "ER", "whole run", *STEPS], steps),
        f"The fit beside the sort alone (asked for with {RING_TSP}: at most {MOST_SORTS}×). Plain sort: Spark's global sort of "
        "the table by Gray keys, written nowhere; own sort: the family's, with its checks, item numbers and files.",
        table(["records", "way", "fit", "plain sort", "fit / plain sort", "own sort", "fit / own sort"], sorts),
        " ".join(f"{size['rows']:,} records: {prices_text(_fits(size))}" for size in whole)
        + f" Orders chosen by block: {chosen}.",
        "The default way is measured in a whole run, whose fit also checks persons and carries the sensitive column; the others "
        "are fits of the items alone. So what swaps cost is at most what is said here.",
    ]
    if len(whole) > 1:
        times, exponent = growth([size["orders"][SWAPPED] for size in whole])
        parts.append(
            f"From {whole[0]['rows']:,} to {whole[-1]['rows']:,} records the whole run takes **{times:.1f}×** as long "
            f"(exponent {exponent:.2f})."
        )
    return "\n\n".join(parts)


def _fits(size: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Seconds of the fit and ER by way."""
    return {way: (found["timings"]["fit"], found["er"]) for way, found in size["orders"].items()}


if __name__ == "__main__":
    sys.exit(print_scale(whole_run))
