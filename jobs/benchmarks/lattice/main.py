"""Measurements of the lattice family: batches against one groupBy per node, the searches, and growth with rows.

`spark-submit jobs/benchmarks/lattice/main.py scale --rows N --dir FOLDER` measures one size on whatever master it is given
and prints one line of JSON; the other parts run on local Spark.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import ROWS
from anon_spark.families.lattice.exact import exact_front
from anon_spark.families.lattice.exhaustive import exhaustive_front
from anon_spark.families.lattice.poka import Poka
from anon_spark.families.lattice.scores import Scores
from anon_spark.metrics.glm import GeneralLoss
from anon_spark.model.front import Point, nondominated
from anon_spark.model.lattice import lattice_of
from anon_spark.primitives.classes import Frequencies, count_tuples, counting
from anon_spark.primitives.classes.arrays import ladder_of
from anon_spark.primitives.classes.counting import marginals
from anon_spark.primitives.classes.frequencies import code_columns, in_files
from anon_spark.primitives.generalize import climbed
from anon_spark.primitives.rounds import Workspace
from anon_spark.report.formats import plain
from anon_spark.samples.adult import adult
from anon_spark.samples.census import census, census_hierarchies
from anon_spark.spark_session import make_session
from jobs.benchmark import scaled
from jobs.benchmarks.census_runs import STEPS, census_run, growth, print_scale, seconds_by_step, timed, written_census
from jobs.benchmarks.lattice import large
from jobs.markdown import table

NAIVE_NODES = 8
CORES = 2
SIZES = (1_000_000, 10_000_000)  # rows of the growth


def report(grown: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    """Batches against groupBy, the searches, and growth of whole runs, as Markdown."""
    spark = make_session("anon-spark benchmark")
    measured = [searches(spark, None)]
    if options.data is not None:
        measured.append(searches(spark, options.data))
    wide = [
        scaled("jobs/benchmarks/lattice/large.py", rows, options.folder, ["--table", name])
        for name, rows in large.ROWS.items()
    ]
    return "\n\n".join([_searches_text(measured), large.large_text(wide), _growth_text(grown)])


def searches(spark: SparkSession, data: Path | None, rows: int = 30_000) -> dict[str, Any]:
    """Batch evaluation against one groupBy per node, and the three searches, on one table."""
    df = adult(spark, data) if data is not None else census(spark, rows)
    hierarchies = census_hierarchies()
    with Workspace(spark) as workspace:
        counted = count_tuples(df, hierarchies, workspace)
        budget = int(Fraction("0.01") * counted.rows)
        lattice = lattice_of(counted.hierarchies)
        loss = GeneralLoss(counted.rows, tuple(h.weight_total for h in counted.hierarchies), marginals(counted))
        ways = counting(counted, budget, workspace)
        ways.evaluate([lattice.top] * 2)  # compiles, or loads what was compiled

        def search(how: Callable[[Scores], list[Point]]) -> dict[str, Any]:
            scores = Scores(lattice, ways, loss)
            seconds, front = timed(lambda: how(scores))
            points = {(point.k, point.loss) for point in front}
            return {"seconds": seconds, "evaluated": scores.evaluated, "batches": scores.batches, "points": points}

        exhaustive_front(Scores(lattice, ways, loss))  # starts the Python workers
        found = {
            "exhaustive": search(exhaustive_front),
            "exact, random batches": search(exact_front),
            "exact, guided": search(partial(exact_front, guided=True)),
            "poka": search(lambda scores: nondominated(Poka(scores, lattice.average_height).visit())),
        }
        naive = naive_seconds(in_files(counted, workspace), budget)
    truth = found["exhaustive"]["points"]
    for result in found.values():
        result["hits"] = f"{len(result.pop('points') & truth)}/{len(truth)}"
    per_node = found["exhaustive"]["seconds"] / lattice.size
    return {
        "table": "Adult" if data is not None else f"census of {rows:,} rows",
        "tuples": counted.tuples,
        "nodes": lattice.size,
        "searches": found,
        "batch_seconds_per_node": per_node,
        "naive_seconds_per_node": naive,
        "ratio": naive / per_node,
        "cells_per_second_and_core": lattice.size * counted.tuples / found["exhaustive"]["seconds"] / CORES,
    }


def naive_seconds(counted: Frequencies, budget: int) -> float:
    """Seconds per node when each is one Spark groupBy (over the distinct tuples already, not over the rows)."""
    ladder, codes = ladder_of(counted.hierarchies), code_columns(len(counted.hierarchies))
    lattice = lattice_of(counted.hierarchies)
    draw = random.Random(0)
    nodes = [lattice.node(draw.randrange(lattice.size)) for _ in range(NAIVE_NODES + 2)]

    def one(node: tuple[int, ...]) -> None:
        classes = (
            climbed(counted.files.frame, codes, ladder, lattice.bottom, node).groupBy(*codes).agg(F.sum(ROWS).alias("n"))
        )
        classes.groupBy("n").agg(F.sum("n")).orderBy("n").limit(budget + 1).toArrow()

    for node in nodes[:2]:
        one(node)
    started = perf_counter()
    for node in nodes[2:]:
        one(node)
    return (perf_counter() - started) / NAIVE_NODES


def whole_run(spark: SparkSession, rows: int, folder: Path) -> dict[str, Any]:
    """One run on the census against what nobody can avoid: a groupBy-count, a read and a write of the table."""
    read = written_census(spark, rows, folder)
    names = list(census_hierarchies())
    group, _ = timed(lambda: read.groupBy(*names).count().write.format("noop").mode("overwrite").save())
    copy, _ = timed(lambda: read.write.format("delta").save(str(folder / "copy")))
    shutil.rmtree(folder / "copy")
    total, report = timed(lambda: census_run(spark, folder, "lattice", {"k": 10, "suppression": 0.01}))
    facts = plain(report.facts)
    search = facts["search"]
    shutil.rmtree(folder)
    unavoidable = group + copy
    return {
        "rows": rows,
        "tuples": search["tuples"],
        "group_by": group,
        "read_and_write": copy,
        "total": total,
        "search": search["seconds"],
        "evaluated": search["evaluated"],
        "batches": search["batches"],
        "timings": dict(report.timings),
        "ratio": (total - search["seconds"] - report.timings["risk"]) / unavoidable,
        "ratio_with_risk": (total - search["seconds"]) / unavoidable,
        "cells_per_second_and_core": search["evaluated"] * search["tuples"] / search["seconds"] / CORES,
        "k": facts["chosen"]["k"],
        "loss": facts["chosen"]["loss"],
    }


def _searches_text(measured: Sequence[dict[str, Any]]) -> str:
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


def _growth_text(grown: Sequence[dict[str, Any]]) -> str:
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
    parts = [
        "### Whole runs (standalone master, two one-core workers, driver 1g, maxResultSize 64m; seconds)",
        "Unavoidable: one groupBy-count over the eight columns plus one plain read and write of the table, in the same "
        "session just before. The rest is everything but the search: reading, frequency table, release, audit, "
        "publication, run log, report; the simulated attacks of the report (risk) are shown apart.",
        table(head, rows),
        "Seconds per step (fit includes the search):",
        table(["rows", *STEPS], seconds_by_step(grown)),
    ]
    if len(grown) > 1:
        times, exponent = growth(grown)
        parts.append(
            f"From {grown[0]['rows']:,} to {grown[-1]['rows']:,} rows the whole run takes **{times:.1f}×** as long "
            f"(exponent {exponent:.2f})."
        )
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(print_scale(whole_run))
