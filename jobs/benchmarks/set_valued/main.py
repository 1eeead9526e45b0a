"""Measurements of the family set_valued: closed walks beside WMC, growth of the fit, and whole runs on baskets.

`spark-submit jobs/benchmarks/set_valued/main.py scale --rows N --dir FOLDER` measures one size on whatever master it is given
and prints one line of JSON; the other parts run on local Spark.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from anon_spark.families.registry import parse_job
from anon_spark.families.set_valued.block import Order
from anon_spark.report import RunReport
from anon_spark.report.formats import plain
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run
from anon_spark.samples.baskets import UNIVERSE, baskets
from anon_spark.spark_session import make_session
from jobs.benchmarks.census_runs import STEPS, growth, print_scale, timed
from jobs.benchmarks.set_valued.growth import MOST_SORTS, ORDERS, TIMES, against_sort, grown, growth_text, plain_sort
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
    """Baskets released with each order, and a plain sort of them in the same session."""
    folder.mkdir(parents=True)
    source = str(folder / "baskets")
    baskets(spark, rows).write.format("delta").save(source)
    read = spark.read.format("delta").load(source)
    plain_sort(read, "items")  # the first reads the table's log and compiles
    found: dict[str, Any] = {"rows": rows, "plain_sort": plain_sort(read, "items"), "orders": {}}
    for order in ORDERS:
        seconds, report = timed(partial(basket_run, spark, folder, order))
        facts = plain(report.facts)
        found["orders"][order] = {
            "rows": rows,
            "total": seconds,
            "timings": dict(report.timings),
            "statistics": dict(facts["statistics"]),
            "blocks": facts["measures"]["blocks"],
            "er": facts["measures"]["er"],
            "chosen": dict(facts["orders"]),
        }
    shutil.rmtree(folder)
    return {**found, "total": sum(one["total"] for one in found["orders"].values())}


def basket_run(spark: SparkSession, folder: Path, order: Order) -> RunReport:
    """A published release of the baskets in the folder."""
    job = {
        "anon_spark": 1,
        "family": "set_valued",
        "input": {"table": "./baskets"},
        "columns": {"person": "person_id", "items": "items", "sensitive": ["religion"]},
        "privacy": {"k": K},
        "set_valued": {"order": order, "graph": "ring"},
        "work": "./work",
        "output": {"table": f"./release_{order}", "runs": "./runs", "report": f"{order}.html"},
    }
    return run(prepare(parse_job(job, folder), spark))


def whole_text(whole: Sequence[dict[str, Any]]) -> str:
    """Whole runs by size and order, the fit beside the sort, and the price of the window order."""
    runs = [(size, order, size["orders"][order]) for size in whole for order in ORDERS]
    sorts = [
        [f"{size['rows']:,}", order, *against_sort(found, size["plain_sort"], order)] for size, order, found in runs
    ]
    steps = [
        [
            f"{size['rows']:,}",
            order,
            str(found["blocks"]),
            f"{found['er']:.4f}",
            f"{found['total']:.1f}",
            *(f"{found['timings'].get(step, 0):.1f}" for step in STEPS),
        ]
        for size, order, found in runs
    ]
    chosen = "; ".join(
        f"{size['rows']:,}: "
        + ", ".join(f"{kind} {count}" for kind, count in size["orders"]["window"]["chosen"].items())
        for size in whole
    )
    parts = [
        f"### Whole runs ({UNIVERSE} items, k = {K}; standalone master, two one-core workers, driver 1g, maxResultSize 64m; "
        "seconds)",
        table(["records", "order", "blocks", "ER", "whole run", *STEPS], steps),
        f"The fit beside the sort alone (asked for with gray_tsp: at most {MOST_SORTS}×). Plain sort: Spark's global sort of "
        "the table by Gray keys, written nowhere; own sort: the family's, with its checks, item numbers and files.",
        table(["records", "order", "fit", "plain sort", "fit / plain sort", "own sort", "fit / own sort"], sorts),
        " ".join(window_price(size) for size in whole) + f" Orders chosen by block: {chosen}.",
    ]
    if len(whole) > 1:
        for order in ORDERS:
            times, exponent = growth([size["orders"][order] for size in whole])
            parts.append(
                f"Order {order}: from {whole[0]['rows']:,} to {whole[-1]['rows']:,} records the whole run takes "
                f"**{times:.1f}×** as long (exponent {exponent:.2f})."
            )
    return "\n\n".join(parts)


def window_price(size: dict[str, Any]) -> str:
    tsp, window = (size["orders"][order] for order in ("gray_tsp", "window"))
    price = window["timings"]["fit"] / tsp["timings"]["fit"]
    return (
        f"The price of the window order for {size['rows']:,} records: the fit takes **{price:.1f}×** as long as with "
        f"gray_tsp, for an ER that is {1 - window['er'] / tsp['er']:.1%} lower."
    )


if __name__ == "__main__":
    sys.exit(print_scale(whole_run))
