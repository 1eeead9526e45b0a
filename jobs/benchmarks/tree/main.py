"""Measurements of the family tree: growth, counting against Spark SQL, searches against each other, and rare values.

`spark-submit jobs/benchmarks/tree/main.py scale --rows N --dir FOLDER --tables FOLDER --most N` judges a fixed list of cuts
of one size on whatever master it is given and prints one line of JSON; the other parts run in one process.
"""

from __future__ import annotations

import argparse
import atexit
import json
import sys
import tempfile
from collections.abc import Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any

from anon_spark.model.tree import Cut, Forest
from anon_spark.primitives.rounds import Workspace
from anon_spark.spark_session import make_session
from jobs.benchmarks.tree.data import customers
from jobs.benchmarks.tree.explode import RECORDS, compared, compared_text
from jobs.benchmarks.tree.growth import SIZES, WARM_UP, growth_text, measured
from jobs.benchmarks.tree.records import loaded, split
from jobs.benchmarks.tree.searches import (
    BUDGET_RECORDS,
    TIMES,
    WIDTH_RECORDS,
    budget_text,
    budgeted,
    ended,
    ended_text,
    widths,
    widths_text,
)
from jobs.benchmarks.tree.skewed import skewed, skewed_text

__all__ = ["SIZES"]


def scale_options(options: argparse.Namespace) -> list[str]:
    """More words for the command `scale`: the tables, which are made here once for all sizes."""
    if options.tables is None:
        room = tempfile.TemporaryDirectory(dir=options.folder)
        atexit.register(room.cleanup)
        options.tables = Path(room.name)
    most = most_records(options)
    spark = make_session("anon-spark tables")
    customers(spark, most, options.tables)
    spark.stop()  # the cluster needs the memory
    return ["--tables", str(options.tables.resolve()), "--most", str(most)]


def most_records(options: argparse.Namespace) -> int:
    """The size of the table of which all others are samples."""
    return max(BUDGET_RECORDS, *(SIZES if options.rows is None else options.rows or [0]))


def report(grown: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    """All parts as Markdown. Growth is measured before; without it only the others."""
    spark = make_session("anon-spark benchmark")
    source = customers(spark, most_records(options), options.tables)
    parts = [growth_text(grown)] if grown else []
    with Workspace(spark) as workspace:
        few = loaded(spark, source, RECORDS, workspace)
        parts.append(compared_text(few, compared(few, exploded_cuts(few.forest), workspace)))
    with Workspace(spark) as workspace:
        some = loaded(spark, source, WIDTH_RECORDS, workspace)
        parts += [ended_text(source.name, ended(some)), widths_text(some, widths(some))]
    with Workspace(spark) as workspace:
        many = loaded(spark, source, BUDGET_RECORDS, workspace)
        parts.append(budget_text(source.name, budgeted(many, TIMES if options.times is None else options.times)))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        parts.append(skewed_text(skewed(spark, Path(folder))))
    return "\n\n".join(parts)


def exploded_cuts(forest: Forest) -> list[Cut]:
    """Roots of node types, the groups below them, and these with the values of the node types that searches split most."""
    roots = forest.specialized(forest.most_general, forest.top)
    found = [roots]
    for names in (forest.schema.names, ["nation"], ["quantity"]):
        found.append(reduce(partial(split, forest), names, found[-1]))
    return found


def print_scale() -> int:
    """The command `scale`: one size after a small one as warm-up, printed as a line of JSON."""
    parser = argparse.ArgumentParser(description="One size of the growth measurement; prints one line of JSON.")
    parser.add_argument("part", choices=["scale"])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--most", type=int, required=True)
    options = parser.parse_args()
    spark = make_session("anon-spark benchmark")
    warm_up = measured(spark, WARM_UP, options.tables, options.most, options.dir / "warm")
    found = measured(spark, options.rows, options.tables, options.most, options.dir / str(options.rows))
    print("RESULT " + json.dumps({**found, "warm_up": warm_up["steps"][0]["total"]}))
    return 0


if __name__ == "__main__":
    sys.exit(print_scale())
