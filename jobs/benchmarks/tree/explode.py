"""Counting a cut by Spark SQL alone: every set of labels with every set of relations becomes a row. The baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.errors import AnonSparkError
from anon_spark.families.tree.counting import Asked, Evaluator, Indexed, LocalCounter, counted
from anon_spark.families.tree.kernels.keys import Layout
from anon_spark.families.tree.kernels.violations import all_violations
from anon_spark.families.tree.records import LABELS, PARENTS
from anon_spark.families.tree.settings import Settings
from anon_spark.families.tree.structure import Question
from anon_spark.model.tree import Cut, Forest
from anon_spark.primitives.rounds import Workspace
from jobs.benchmarks.census_runs import timed
from jobs.benchmarks.tree.records import K, Loaded, M, N, task_counter
from jobs.markdown import table

LEAST_RATIO = 20
RECORDS = 20_000
REPEATS = 3
WARM_UP = 100

Size = tuple[int, int]  # labels, relations


def exploded(records: DataFrame, forest: Forest, cut: Cut, m: int, n: int) -> DataFrame:
    """Every (V, E) of 1 … m labels and 0 … n relations that a record has under the cut, and how many have it.

    records: LABELS and PARENTS. Equal labels of a record are one, and relations are pairs of labels, so nodes need not be
    merged. Cost: a row per record and (V, E), some hundred for a record of twelve labels; one shuffle of these.
    """
    image = F.array(*(F.lit(int(node)) for node in forest.image(cut)))
    labels = F.transform(LABELS, lambda label: F.get(image, label))
    nodes = records.select(labels.alias("labels"), F.col(PARENTS).alias("parents"))
    depth = len(forest.schema.names)
    known = nodes.select(F.array_sort(F.array_distinct("labels")).alias("known"), _relations(depth).alias("relations"))
    sets = known.select("relations", F.explode(_up_to(F.col("known"), m)).alias("V"))
    inside = F.filter(
        "relations", lambda pair: F.array_contains("V", pair["above"]) & F.array_contains("V", pair["below"])
    )
    none = F.array(F.array().cast("array<struct<above:int,below:int>>"))
    chosen = sets.select("V", inside.alias("inside")).select(
        "V", F.explode(F.concat(none, _up_to(F.col("inside"), n)) if n else none).alias("E")
    )
    return chosen.groupBy("V", "E").count()


def _relations(depth: int) -> Column:
    """The distinct pairs (above, below) of labels on a path, ascending."""
    pairs, upper = [], F.sequence(F.lit(0), F.size("labels") - 1)
    for _ in range(depth - 1):
        upper = F.transform(upper, lambda at: F.when(at >= 0, F.get("parents", at)).otherwise(-1))
        zipped = F.arrays_zip(upper.alias("upper"), F.col("labels").alias("label"))
        there = F.filter(zipped, lambda one: one["upper"] >= 0)
        pairs.append(
            F.transform(
                there, lambda one: F.struct(F.get("labels", one["upper"]).alias("above"), one["label"].alias("below"))
            )
        )
    every = F.filter(F.concat(*pairs), lambda pair: pair["above"] != pair["below"])  # under {*} all labels are one
    return F.array_sort(F.array_distinct(every))


def _up_to(members: Column, most: int) -> Column:
    """All sets of 1 … most members of a sorted array, each as a sorted array."""
    sets = F.transform(members, lambda one: F.array(one))  # noqa: PLW0108 - Spark looks at the parameters
    found = [sets]
    for _ in range(most - 1):
        sets = F.flatten(
            F.transform(
                sets,
                lambda chosen: F.transform(
                    F.filter(members, lambda one: one > F.element_at(chosen, -1)), lambda one: F.concat(chosen, F.array(one))
                ),
            )
        )
        found.append(sets)
    return F.concat(*found)


def exploded_violations(records: DataFrame, forest: Forest, cut: Cut, k: int, m: int, n: int) -> dict[Size, int]:
    """By (|V|, |E|): how many fewer than k records have. Cost: that of `exploded`, one job."""
    few = exploded(records, forest, cut, m, n).where(F.col("count") < k)
    sizes = few.groupBy(F.size("V"), F.size("E")).count().collect()
    return {(labels, relations): times for labels, relations, times in sizes}


def asked_all(evaluator: Evaluator, cut: Cut, m: int) -> Asked:
    """The question for all sets of a cut, nothing disassociated."""
    return evaluator._asked(Question(cut, (), m))


def counted_violations(loaded: Loaded, evaluator: Evaluator, cut: Cut) -> dict[Size, int]:
    """The same by the family's kernels, where this runs; sets without relations are told together, as (0, 0)."""
    asked = asked_all(evaluator, cut, evaluator.settings.m)
    promise = evaluator.promise
    keys, counts, _ = counted(Indexed.of(loaded.trees, promise.secrets.size), asked, promise)
    layout = Layout.of(asked.slots.count, asked.sizes, 0)
    supports, ranks = asked.supports[2].reshape(0, 0), asked.slots.ranks
    violations = all_violations(layout, keys, counts, promise.k, 0, promise.n, supports, ranks)
    return {(0, 0): violations.value_violations, **violations.structure_violations}


def without_relations_together(sizes: Mapping[Size, int]) -> dict[Size, int]:
    """Violations by size with those without relations under (0, 0)."""
    plain = sum(times for (_, relations), times in sizes.items() if not relations)
    return {(0, 0): plain, **{size: times for size, times in sizes.items() if size[1]}}


# --- measured ------------------------------------------------------------------------------------------------------------


class Counted(NamedTuple):
    """One cut counted in several ways: seconds. together: in tasks, its share of one job for all cuts."""

    labels: int
    patterns: int  # (V, E) with fewer than k records
    local: float
    alone: float
    together: float
    exploded: float

    @property
    def ratio(self) -> float:
        """How many times as long Spark SQL takes as the tasks, which count several cuts in one job."""
        return self.exploded / self.together


def compared(loaded: Loaded, cuts: Sequence[Cut], workspace: Workspace, k: int = K, m: int = M, n: int = N) -> list[Counted]:
    """Each cut counted here, in tasks, and by Spark SQL; the same violations, or an error. The first cut once more before."""
    forest, settings = loaded.forest, Settings(k=k, m=m, n=n)
    evaluator = Evaluator(forest, settings)
    local = LocalCounter(loaded.trees, evaluator.promise)
    tasks = task_counter(loaded.records, evaluator.promise, workspace)
    frame = workspace.store(loaded.records.frame.select(LABELS, PARENTS), "exploding")
    exploded_violations(frame.limit(WARM_UP), forest, cuts[0], k, m, n)
    asked = [asked_all(evaluator, cut, m) for cut in cuts]
    together = _least(lambda: tasks.answers(asked)) / len(cuts)
    counted = []
    for cut, one in zip(cuts, asked, strict=True):
        here, alone = _least(partial(local.answers, [one])), _least(partial(tasks.answers, [one]))
        seconds, plain = timed(partial(exploded_violations, frame, forest, cut, k, m, n))
        print(f"exploded a cut of {len(cut)} labels: {seconds:.1f} s", flush=True)
        expected = without_relations_together(plain)
        if expected != counted_violations(loaded, evaluator, cut):
            raise AnonSparkError(f"A cut of {len(cut)} labels: kernels and Spark SQL count other violations: one is wrong.")
        counted.append(Counted(len(cut), sum(expected.values()), here, alone, together, seconds))
    return counted


def _least(work: Callable[[], Any]) -> float:
    """The least seconds of some repetitions; the first one compiles."""
    return min(timed(work)[0] for _ in range(REPEATS))


def compared_text(loaded: Loaded, counted: Sequence[Counted]) -> str:
    rows = [
        [
            str(one.labels),
            f"{one.patterns:,}",
            f"{one.exploded:.1f}",
            f"{one.alone:.3f}",
            f"{one.together:.3f}",
            f"{one.local:.3f}",
            f"{one.exploded / one.alone:.0f}×",
            f"**{one.ratio:.0f}×**",
            f"{one.exploded / one.local:.0f}×",
        ]
        for one in counted
    ]
    least = min(one.ratio for one in counted)
    verdict = "kept" if least >= LEAST_RATIO else "**not kept**"
    head = ["labels", f"(V, E) below k = {K}", "Spark SQL", "job alone", f"job of {len(counted)} cuts", "driver"]
    head += ["SQL / job alone", "SQL / job of several", "SQL / driver"]
    return "\n\n".join(
        [
            f"### Counting a cut against an explode of every pattern ({loaded.name}, {loaded.records.count:,} records, "
            f"m = {M}, n = {N}; local Spark; seconds for one cut)",
            "Spark SQL: every (V, E) of a record is a row, counted by groupBy. Job: the family's kernels in tasks, a cut alone "
            "or all of them in one job, as a search asks. Driver: the same kernels without a job. All give the same violations, "
            "which is checked in the run.",
            table(head, rows),
            f"In the mean {fmean(one.ratio for one in counted):.0f}×, at least **{least:.0f}×** (asked for: {LEAST_RATIO}×, "
            f"{verdict}).",
        ]
    )
