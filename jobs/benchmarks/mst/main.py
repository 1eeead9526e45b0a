"""Measurements of the family mst: tree and merging against their plain forms, opponents, and growth with rows.

`spark-submit jobs/benchmarks/mst/main.py scale --rows N --dir FOLDER` measures one size on whatever master it is given and
prints one line of JSON; the other parts run on local Spark.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from anon_spark.errors import AnonSparkError
from anon_spark.families.mst.anonymizer import MstAnonymizer
from anon_spark.families.mst.kernels.distances import levels_of
from anon_spark.families.mst.kernels.neighbours import Classes
from anon_spark.families.mst.kernels.spanning import spanning_tree
from anon_spark.families.mst.merge import Merged, merge_in_rounds
from anon_spark.families.mst.partition import Settings, classes_of, cut_tree
from anon_spark.kernels.classes import Ints
from anon_spark.report.formats import plain
from anon_spark.samples.census import census, census_hierarchies
from anon_spark.spark_session import make_session
from jobs.benchmarks.census_runs import STEPS, census_run, growth, print_scale, seconds_by_step, timed, written_census
from jobs.benchmarks.mst.opponents import CENSUS_ROWS, Tuples, collected, compare, opponents_text, rounds_text, source
from jobs.benchmarks.mst.plain_rounds import PlainMerged, merge_in_plain_rounds, numbered
from jobs.benchmarks.mst.plain_trees import kruskal_weights, prim_weights
from jobs.benchmarks.mst.rivals import rivals_text
from jobs.benchmarks.mst.spread import spread_text
from jobs.markdown import table

SIZES = (100_000, 1_000_000, 3_000_000)  # rows of the growth
MERGE_SIZES = (1_000_000, 3_000_000)
K = 10
REPEATS = 3
LEAST_RATIO = 10
MOST_EXPONENT = 1.15
MOST_REFINED = 2


def report(grown: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    """Tree, merging, rounds against greedy, opponents, and growth of whole runs, as Markdown."""
    spark = make_session("anon-spark benchmark")
    name, df, hierarchies = source(spark, options.data)
    tuples = collected(name, df, hierarchies)
    sizes = MERGE_SIZES if options.merge_rows is None else options.merge_rows
    plain = sizes if options.plain_rows is None else options.plain_rows
    trees = [tree_step(tuples)]
    if options.data is not None:
        trees.append(tree_step(census_tuples(spark, CENSUS_ROWS)))
    merged = [merging(census_tuples(spark, rows), rows in plain) for rows in sizes]
    outcomes = compare(df, hierarchies, tuples)
    parts = [
        tree_text(trees),
        merging_text(merged) if merged else "",
        spread_text(spark),
        f"### Merging in rounds against greedy merging ({name}: greedy / rounds)",
        rounds_text(outcomes),
        rivals_text(spark, options.data),
        f"### MSTK against full-domain recoding ({name}, the same hierarchies for all)",
        opponents_text(outcomes),
        growth_text(grown) if grown else "",
    ]
    return "\n\n".join(part for part in parts if part)


def census_tuples(spark: SparkSession, rows: int) -> Tuples:
    return collected(f"synthetic census of {rows:,} rows", census(spark, rows), census_hierarchies())


def fastest(work: Callable[[], Any]) -> tuple[float, Any]:
    """The least seconds of some repetitions: the first compiles."""
    measured = [timed(work) for _ in range(REPEATS)]
    return min(seconds for seconds, _ in measured), measured[-1][1]


# --- the tree ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeStep:
    """Seconds of the package's tree and of the plain ones on the same tuples; their weights are the same."""

    name: str
    tuples: int
    attributes: int
    seconds: float
    prim: float
    kruskal: float
    total: int


def tree_step(tuples: Tuples) -> TreeStep:
    """The spanning tree three times over, all on arrays in this process and compiled before."""
    levels = levels_of(tuples.ladder)
    seconds, edges = fastest(lambda: spanning_tree(tuples.codes, tuples.ladder))
    by_prim, prim = fastest(lambda: prim_weights(tuples.codes, levels))
    by_kruskal, kruskal = fastest(lambda: kruskal_weights(tuples.codes, levels))
    weights = np.sort(edges.weight)
    for name, weighed in {"Prim": prim, "Kruskal": kruskal}.items():
        if not np.array_equal(weights, weighed):
            raise AnonSparkError(
                f"The tree has weights of sum {weights.sum():,} and dense {name} of sum {weighed.sum():,}: one is wrong."
            )
    attributes, count = tuples.codes.shape
    return TreeStep(tuples.name, count, attributes, seconds, by_prim, by_kruskal, int(weights.sum()))


def tree_text(measured: Sequence[TreeStep]) -> str:
    head = ["table", "distinct tuples", "attributes", "tree", "dense Prim", "dense Kruskal"]
    head += ["Prim / tree", "Kruskal / tree", "total weight"]
    rows = [
        [
            found.name,
            f"{found.tuples:,}",
            str(found.attributes),
            f"{found.seconds:.3f}",
            f"{found.prim:.2f}",
            f"{found.kruskal:.2f}",
            *(_ratio(dense / found.seconds) for dense in (found.prim, found.kruskal)),
            f"{found.total:,}, the same",
        ]
        for found in measured
    ]
    return "\n\n".join(
        [
            "### The spanning tree (arrays in one process; seconds, the best of 3)",
            "Dense: every pair of distinct tuples once, compiled, distances from look-up tables; Kruskal sorts the pairs "
            f"by counting. Asked for: at least {LEAST_RATIO}×.",
            table(head, rows),
        ]
    )


def _ratio(ratio: float) -> str:
    return f"**{ratio:.1f}×**" + ("" if ratio >= LEAST_RATIO else f", below {LEAST_RATIO}×")


# --- merging -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Merging:
    """Seconds of merging the same small classes in the package's rounds and in plain ones; the result is the same."""

    name: str
    tuples: int
    small: int
    rounds: int
    seconds: float
    plain: float | None


def merging(tuples: Tuples, plainly: bool = True, k: int = K) -> Merging:
    """The package's rounds against plain ones."""
    small = small_classes(tuples, k)
    levels = levels_of(tuples.ladder)
    some = small.take(np.arange(min(200, small.size.size)))
    merge_in_rounds(some, levels, k)  # compiles
    merge_in_plain_rounds(some, levels, k)
    seconds, merged = timed(lambda: merge_in_rounds(small, levels, k))
    plain = None
    if plainly:
        plain, by_plain = timed(lambda: merge_in_plain_rounds(small, levels, k))
        if not same_classes(merged, by_plain):
            raise AnonSparkError(f"Merging in rounds and plain rounds give different classes ({tuples.name}).")
    return Merging(tuples.name, tuples.rows.size, small.size.size, int(merged.rounds or 0), seconds, plain)


def small_classes(tuples: Tuples, k: int) -> Classes:
    """What the cut leaves to be merged."""
    cut = cut_tree(tuples.codes, tuples.rows, tuples.hierarchies, Settings(k=k))
    return classes_of(cut, cut.groups.small)


def same_classes(merged: Merged, plain: PlainMerged) -> bool:
    """Whether both put the same small classes together, on the same levels, in as many rounds."""
    first, number = numbered(merged.number)
    at: Ints = merged.number[first].astype(np.int64)
    return (
        np.array_equal(number, plain.number)
        and np.array_equal(merged.classes.level[at], plain.level)
        and np.array_equal(merged.classes.size[at], plain.size)
        and merged.rounds == plain.rounds
    )


def merging_text(measured: Sequence[Merging]) -> str:
    rows = [
        [
            found.name,
            f"{found.tuples:,}",
            f"{found.small:,}",
            str(found.rounds),
            f"{found.seconds:.1f}",
            "–" if found.plain is None else f"{found.plain:.1f}",
            "–" if found.plain is None else f"**{found.plain / found.seconds:.1f}×**",
        ]
        for found in measured
    ]
    return "\n\n".join(
        [
            f"### Merging (k = {K}, arrays in one process; seconds)",
            "Plain rounds search the nearest neighbour of every class anew in every round, over lattice nodes by cost with "
            "all classes in buckets, and the last unfinished ones by distances; compiled as well. Both ways give the same "
            "classes, which is checked in the run.",
            table(["table", "distinct tuples", "small classes", "rounds", "seconds", "plain", "ratio"], rows),
        ]
    )


# --- growth --------------------------------------------------------------------------------------------------------------


def whole_run(spark: SparkSession, rows: int, folder: Path) -> dict[str, Any]:
    """One run on the census, then the fit alone without refinement and with it."""
    written = written_census(spark, rows, folder)
    total, report = timed(lambda: census_run(spark, folder, "mst", {"k": K}))
    fits = {refine: fit_seconds(written, refine, folder / "fits") for refine in ("none", "local")}
    shutil.rmtree(folder)
    partition, measures = plain(report.facts)["partition"], plain(report.facts)["measures"]
    return {
        "rows": rows,
        "total": total,
        "timings": dict(report.timings),
        "fits": fits,
        **{name: partition[name] for name in ("tuples", "small", "merge", "rounds", "steps")},
        **{name: measures[name] for name in ("glm", "il")},
    }


def fit_seconds(df: DataFrame, refine: Literal["none", "local"], folder: Path) -> float:
    hierarchies = census_hierarchies()
    anonymizer = MstAnonymizer(k=K, quasi_identifiers=hierarchies, refine=refine, workdir=str(folder))
    seconds, recoding = timed(lambda: anonymizer.fit(df))
    recoding.close()
    return seconds


def growth_text(grown: Sequence[dict[str, Any]]) -> str:
    head = ["rows", "distinct tuples", "small classes", "tree", "split", "merge", "refine", "rounds", "whole run", "GLM", "IL"]
    rows = [
        [
            f"{found['rows']:,}",
            f"{found['tuples']:,}",
            f"{found['small']:,}",
            *(f"{found['steps'][step]:.1f}" for step in ("tree", "split", "merge", "refine")),
            str(found["rounds"] or found["merge"]),
            f"{found['total']:.1f}",
            f"{found['glm']:.4f}",
            f"{found['il']:.4f}",
        ]
        for found in grown
    ]
    parts = [
        f"### Whole runs (census, eight attributes, k = {K}; standalone master, two one-core workers, driver 1g, "
        "maxResultSize 64m; seconds)",
        table(head, rows),
        "Seconds per step (fit includes tree, split, merge and refine):",
        table(["rows", *STEPS], seconds_by_step(grown)),
        f"The fit alone, one after the other. Asked for: with refinement at most {MOST_REFINED}× the fit without.",
        table(
            ["rows", "without refinement", "with", "ratio"],
            [
                [
                    f"{found['rows']:,}",
                    *(f"{found['fits'][refine]:.1f}" for refine in ("none", "local")),
                    f"**{found['fits']['local'] / found['fits']['none']:.2f}×**",
                ]
                for found in grown
            ],
        ),
    ]
    if len(grown) > 1:
        times, exponent = growth(grown)
        held = "kept" if exponent <= MOST_EXPONENT else "**not kept**"
        parts.append(
            f"From {grown[0]['rows']:,} to {grown[-1]['rows']:,} rows the whole run takes **{times:.1f}×** as long "
            f"(exponent {exponent:.2f}; limit {MOST_EXPONENT}, {held}). What every run costs, however small, is in it: "
            f"from {grown[-2]['rows']:,} rows on the exponent is {growth(grown[-2:])[1]:.2f}, and that of the fit "
            f"alone {growth([{**found, 'total': found['fits']['local']} for found in grown])[1]:.2f}."
        )
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(print_scale(whole_run))
