"""What it costs to spread tree and merging over tasks where one task would do: the same partition, in both ways."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from anon_spark.errors import AnonSparkError
from anon_spark.families.mst.assignment import Assignment, assign
from anon_spark.families.mst.partition import Settings
from anon_spark.primitives.classes import count_tuples
from anon_spark.primitives.classes.frequencies import in_files
from anon_spark.primitives.rounds import Workspace
from anon_spark.samples.census import census, census_hierarchies
from jobs.benchmarks.census_runs import timed
from jobs.markdown import table

K = 10
SIZES = (100_000, 1_000_000)


@dataclass(frozen=True)
class Spread:
    """Seconds of one partition in one task and over many."""

    rows: int
    tuples: int
    small: int
    one: Assignment
    many: Assignment

    @property
    def cells(self) -> list[str]:
        first, other = (made.statistics["seconds"] for made in (self.one, self.many))
        tree = first["tree"] + first["split"]
        return [
            f"{self.rows:,}",
            f"{self.tuples:,}",
            f"{self.small:,}",
            f"{tree:.1f} / {other['tree']:.1f}",
            f"{first['merge']:.1f} / {other['merge']:.1f}",
            f"{(other['tree'] + other['merge']) / (tree + first['merge']):.1f}×",
        ]


def spread_step(spark: SparkSession, rows: int) -> Spread:
    """Partition the census in one task, then with limits that force blocks and rounds over many."""
    with Workspace(spark) as workspace:
        counted = in_files(count_tuples(census(spark, rows), census_hierarchies(), workspace), workspace)
        assign(counted, Settings(K, merge="rounds"), workspace, None)  # compiles
        _, one = timed(lambda: assign(counted, Settings(K, merge="rounds"), workspace, None))
        small = int(one.statistics["small"])
        forced = Settings(K, merge="rounds", local_max=counted.tuples - 1, merge_local_max=small // 8)
        _, many = timed(lambda: assign(counted, forced, workspace, None))
        names = one.frame.columns
        left = one.frame.select(*names).exceptAll(many.frame.select(*names)).count()
        if left or one.statistics["rounds"] != many.statistics["rounds"]:
            raise AnonSparkError(f"{left:,} tuples have other levels when the work is spread: one of the ways is wrong.")
        return Spread(rows, counted.tuples, small, one, many)


def spread_text(spark: SparkSession) -> str:
    found = [spread_step(spark, rows) for rows in SIZES]
    head = ["rows", "distinct tuples", "small classes", "tree and split", "merge", "price"]
    return "\n\n".join(
        [
            "### One task against many (local Spark, 2 cores; seconds: one task / spread)",
            "The same partition, checked tuple by tuple. Spread: the tree in blocks and sweeps, rounds of merging over "
            "shares until an eighth of the small classes is left. It is for tables whose tuples no task holds (above "
            "8,000,000), and rounds for more than 500,000 small classes; below, one task is faster.",
            table(head, [one.cells for one in found]),
        ]
    )
