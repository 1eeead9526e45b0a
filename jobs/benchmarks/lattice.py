"""Measurements of the lattice family: batches against one groupBy per node, the searches, and growth with rows.

`spark-submit jobs/benchmarks/lattice.py scale --rows N --dir FOLDER` measures one size on whatever master it is given
and prints one line of JSON; the other parts run on local Spark.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import ROWS
from anon_spark.config import parse_job
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
from anon_spark.primitives.classes.frequencies import code_columns
from anon_spark.primitives.generalize import climbed
from anon_spark.primitives.rounds import Workspace
from anon_spark.samples.adult import adult
from anon_spark.samples.census import census, census_hierarchies
from jobs.session import make_session
from pipelines.demo import write_level_tables
from pipelines.preparation import prepare
from pipelines.run import run

NAIVE_NODES = 8
CORES = 2


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the work, and what it returned."""
    started = perf_counter()
    result = work()
    return perf_counter() - started, result


def searches(spark: SparkSession, data: Path | None, rows: int = 30_000) -> dict[str, Any]:
    """Batch evaluation against one groupBy per node, and the three searches, on one table."""
    table = adult(spark, data) if data is not None else census(spark, rows)
    hierarchies = census_hierarchies()
    with Workspace(spark) as workspace:
        counted = count_tuples(table, hierarchies, workspace)
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
            "exact": search(exact_front),
            "poka": search(lambda scores: nondominated(Poka(scores, lattice.average_height).visit())),
        }
        naive = naive_seconds(counted, budget)
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
            climbed(counted.frame, codes, ladder, lattice.bottom, node).groupBy(*codes).agg(F.sum(ROWS).alias("n"))
        )
        classes.groupBy("n").agg(F.sum("n")).orderBy("n").limit(budget + 1).toArrow()

    for node in nodes[:2]:
        one(node)
    started = perf_counter()
    for node in nodes[2:]:
        one(node)
    return (perf_counter() - started) / NAIVE_NODES


def scale(spark: SparkSession, rows: int, folder: Path) -> dict[str, Any]:
    """One whole run on the census against what nobody can avoid: a groupBy-count, a read and a write of the table."""
    warm_up = _whole_run(spark, 50_000, folder / "warm")
    measured = _whole_run(spark, rows, folder / str(rows))
    return {**measured, "warm_up": warm_up["total"]}


def _whole_run(spark: SparkSession, rows: int, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True)
    source = str(folder / "census")
    census(spark, rows).write.format("delta").save(source)
    write_level_tables(folder / "hierarchies", census_hierarchies())
    read: DataFrame = spark.read.format("delta").load(source)
    names = list(census_hierarchies())
    group, _ = timed(lambda: read.groupBy(*names).count().write.format("noop").mode("overwrite").save())
    copy, _ = timed(lambda: read.write.format("delta").save(str(folder / "copy")))
    shutil.rmtree(folder / "copy")
    total, report = timed(lambda: run(prepare(parse_job(_job(folder), folder), spark)))
    search = report.facts["search"]
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
        "k": report.facts["chosen"]["k"],
        "loss": report.facts["chosen"]["loss"],
    }


def _job(folder: Path) -> dict[str, Any]:
    levels = {name: {"levels": f"hierarchies/{name}.csv"} for name in census_hierarchies() if name != "age"}
    return {
        "anon_spark": 1,
        "family": "lattice",
        "input": {"table": "./census"},
        "columns": {
            "identifiers": ["name", "person_id"],
            "quasi_identifiers": {
                "age": {"intervals": {"from": 17, "to": 90, "widths": [3, 6, 12, 24, 48]}},
                **levels,
            },
            "sensitive": ["disease"],
            "keep": ["weight"],
        },
        "privacy": {"k": 10, "suppression": 0.01},
        "work": "./work",
        "output": {"table": "./release", "runs": "./runs", "report": "report.html"},
    }


def _main() -> int:
    parser = argparse.ArgumentParser(description="One size of the growth measurement; prints one line of JSON.")
    parser.add_argument("part", choices=["scale"])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--dir", type=Path, required=True)
    options = parser.parse_args()
    print("RESULT " + json.dumps(scale(make_session("anon-spark benchmark"), options.rows, options.dir)))
    return 0


if __name__ == "__main__":
    sys.exit(_main())
