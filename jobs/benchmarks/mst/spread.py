"""What it costs to spread tree and merging over tasks where one task would do: the same partition, in both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pyspark.sql import SparkSession

from anon_spark.errors import AnonSparkError
from anon_spark.families.mst.assignment import Assignment, assign
from anon_spark.families.mst.partition import Settings
from anon_spark.primitives.classes import count_tuples
from anon_spark.primitives.classes.frequencies import in_files
from anon_spark.primitives.rounds import Workspace
from anon_spark.samples.census import census, census_hierarchies
from jobs.markdown import table

K = 10
SIZES = (100_000, 1_000_000)
TIMES = 3
MOST_PRICE = 5.0  # at the largest size


@dataclass(frozen=True)
class Spread:
    """Seconds of one partition in one task and over many, medians."""

    rows: int
    tuples: int
    small: int
    one: tuple[float, float]  # tree with split, merge
    many: tuple[float, float]

    @property
    def cells(self) -> list[str]:
        price = sum(self.many) / sum(self.one)
        limit = f" (at most {MOST_PRICE:g}×, {'kept' if price <= MOST_PRICE else '**not kept**'})"
        return [
            f"{self.rows:,}",
            f"{self.tuples:,}",
            f"{self.small:,}",
            *(f"{alone:.1f} / {together:.1f}" for alone, together in zip(self.one, self.many, strict=True)),
            f"{price:.1f}×{limit if self.rows == max(SIZES) else ''}",
        ]


def spread_step(spark: SparkSession, rows: int) -> Spread:
    """Partition the census in one task, then with limits that force blocks and rounds over many."""
    with Workspace(spark) as workspace:
        counted = in_files(count_tuples(census(spark, rows), census_hierarchies(), workspace), workspace)
        alone = [assign(counted, Settings(K, merge="rounds"), workspace, None) for _ in range(TIMES + 1)]  # the first compiles
        one, small = alone[-1], int(alone[-1].statistics["small"])
        forced = Settings(K, merge="rounds", local_max=counted.tuples - 1, merge_local_max=small // 8)
        together = [assign(counted, forced, workspace, None) for _ in range(TIMES + 1)]
        names = one.frame.columns
        left = one.frame.select(*names).exceptAll(together[-1].frame.select(*names)).count()
        if left or one.statistics["rounds"] != together[-1].statistics["rounds"]:
            raise AnonSparkError(f"{left:,} tuples have other levels when the work is spread: one of the ways is wrong.")
        return Spread(rows, counted.tuples, small, seconds(alone[1:]), seconds(together[1:]))


def seconds(made: Sequence[Assignment]) -> tuple[float, float]:
    """Medians of the tree with its split, and of merging."""
    taken = [one.statistics["seconds"] for one in made]
    return median(one["tree"] + one.get("split", 0.0) for one in taken), median(one["merge"] for one in taken)


def spread_text(spark: SparkSession) -> str:
    found = [spread_step(spark, rows) for rows in SIZES]
    head = ["rows", "distinct tuples", "small classes", "tree and split", "merge", "price"]
    return "\n\n".join(
        [
            "### One task against many (local Spark, 2 cores; medians of 3, both run before; seconds: one task / spread)",
            "The same partition, checked tuple by tuple. Spread: the tree in blocks and sweeps, rounds of merging over "
            "shares until an eighth of the small classes is left. It is for tables whose tuples no task holds (above "
            "8,000,000), and rounds for more than 500,000 small classes; below, one task is faster.",
            table(head, [one.cells for one in found]),
        ]
    )
