"""What the experiments on relational values with items measure: whole runs, sweeps over δ, run time, paths of merging."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing import Verdict, verify_kkm, verify_klm
from anon_spark.families.relational_transaction.anonymizer import RelationalTransactionAnonymizer
from anon_spark.families.relational_transaction.kernels.relation import Floats
from anon_spark.families.relational_transaction.merging import BoundUnreachable
from anon_spark.families.relational_transaction.settings import BLOCK_RECORDS, Bound, Merge, Settings
from anon_spark.metrics.relative_error import Kind, Workload, draw_workload, relative_error
from anon_spark.primitives.rounds import Workspace
from jobs.benchmarks.census_runs import timed
from jobs.benchmarks.relational_transaction.orders import DELTA, SETTINGS, WARM_UP, K, M, Orders, orders
from jobs.benchmarks.relational_transaction.phases import (
    SECRETS,
    Clustered,
    Released,
    clustered,
    merge_path,
    release_frame,
    released,
    stopped,
)
from jobs.benchmarks.relational_transaction.records import ITEMS, PATIENT_ROWS, Table, patient_table
from jobs.reproductions.relational_transaction.errors import errors_of
from jobs.reproductions.relational_transaction.skewed import Compared, compared

NAMES: Mapping[Merge, str] = {"relational": "R", "items": "T", "both": "RT"}  # as the paper calls them
MERGES = tuple(NAMES)
BOUNDS: tuple[Bound, ...] = ("relational", "items")
DELTAS = (0.2, 0.4, 0.65, 0.9)
KEYS = ("1", "2", "3")
L = 4
PATIENT_K = 10
KS = (10, 25, 50, 100)
SIZES = (5_000, 10_000, 15_000, 20_000)  # and all records
QUERIES = 300
REPEATS = 2
ORDER_SEEDS = (1, 2, 3)

RELATIONAL, OF_ITEMS, MIXED = (2, 0), (0, 2), (1, 1)  # kinds of queries: relational values, items


class Outcome(NamedTuple):
    """A release: losses, clusters, errors of counts by kind of query for both readings of a generalized item, violations.

    None: nobody looked for violations.
    """

    ncp: float
    ul: float
    clusters: int
    largest: int
    sets: Mapping[Kind, float]
    uniform: Mapping[Kind, float]
    violations: int | None


Measure = Callable[[Outcome], float]
Sweep = Mapping[Merge, Mapping[float, Outcome | None]]  # None: δ is out of reach


def error_of(kind: Kind, uniform: bool = False) -> Measure:
    """ARE of queries of a kind, a generalized item standing for any of its sets, or for one of its items alike likely."""
    return lambda one: (one.uniform if uniform else one.sets)[kind]


class Run(NamedTuple):
    """A fit through Spark, its release verified from the published columns alone."""

    bound: Bound
    merge: Merge
    outcome: Outcome
    seconds: float
    passed: bool
    checked: int


class First(NamedTuple):
    """NCP of the first clusters of one seed: all records at once, and in blocks."""

    exact: float
    blocked: float
    seconds: float
    blocked_seconds: float


@dataclass(frozen=True)
class Found:
    """Everything that the claims are judged by."""

    table: Table
    first: Sequence[First]
    first_loss: float  # UL of the first clusters
    runs: Sequence[Run]
    seeds: Mapping[Merge, Sequence[Outcome]]  # δ = DELTA, exact clusters of every key
    rum: Sweep
    tum: Sweep
    diverse: Sweep
    paths: Mapping[Merge, Floats]  # UL after every merge
    by_size: Mapping[Merge, Mapping[int, float]]
    by_k: Mapping[Merge, Mapping[int, float]]
    orders: Orders
    skewed: Mapping[str, tuple[int, Compared]]  # by table: k, and the ways to treat rare items


def measured(spark: SparkSession, source: Table) -> Found:
    """All experiments; clusters of a key are made once."""
    warm_up(source)
    judge = Judge.of(spark, source)
    starts = [clustered(source, K, key) for key in KEYS]
    settings = {merge: replace(SETTINGS, merge=merge) for merge in MERGES}
    paths = {merge: merge_path(starts[0], own) for merge, own in settings.items()}
    secret = source.with_secrets()
    apart = clustered(secret, K, KEYS[0], l=L)
    return Found(
        source,
        [first_clusters(source, key, start) for key, start in zip(KEYS, starts, strict=True)],
        float(paths[MERGES[0]].losses[0]),
        [spark_run(judge, bound, merge) for bound in BOUNDS for merge in MERGES],
        {merge: [outcome_of(released(start, own)) for start in starts] for merge, own in settings.items()},
        swept(judge, starts[0], rum_bound),
        swept(judge, starts[0], lambda start, own: stopped(start, own, paths[own.merge])),
        swept(Judge.of(spark, secret), apart, rum_bound, L),
        {merge: path.losses for merge, path in paths.items()},
        *run_times(source),
        orders(source, ORDER_SEEDS),
        skewed(judge),
    )


def skewed(judge: Judge) -> dict[str, tuple[int, Compared]]:
    """Ways to treat rare items on the table and on synthetic patients."""
    invented = Judge.of(judge.spark, patient_table(judge.spark, PATIENT_ROWS))
    return {
        f"{one.table.name}": (k, compared(one.table, k, one.workload)) for one, k in ((judge, K), (invented, PATIENT_K))
    }


def warm_up(source: Table) -> None:
    """Compile what is measured."""
    start = clustered(source.sample(WARM_UP), 5, KEYS[0])
    for merge in MERGES:
        released(start, Settings(k=5, merge=merge, delta=1.0, cost="occurrences", refine="none"))
    merge_path(start, Settings(k=5, merge="items", cost="occurrences"))


def first_clusters(source: Table, key: str, exact: Clustered) -> First:
    blocked = clustered(source, K, key, BLOCK_RECORDS)
    return First(exact.first_ncp, blocked.first_ncp, exact.seconds, blocked.seconds)


# --- releases --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judge:
    """Measures releases of one table: the same queries for all of them."""

    spark: SparkSession
    table: Table
    source: DataFrame
    workload: Workload

    @classmethod
    def of(cls, spark: SparkSession, table: Table) -> Judge:
        frame = table.frame(spark)
        return cls(spark, table, frame, draw_workload(frame, table.hierarchies, ITEMS, table.secrets, queries=QUERIES))

    def outcome(self, start: Clustered, found: Released, verified: bool) -> Outcome:
        error = errors_of(start, found, self.workload)
        violations = self.verdict(release_frame(self.spark, start, found)).violations if verified else None
        return outcome_of(found)._replace(sets=error.sets, uniform=error.uniform, violations=violations)

    def verdict(self, release: DataFrame) -> Verdict:
        names = list(self.table.attributes)
        if self.table.secrets:
            return verify_klm(release, names, ITEMS, SECRETS, K, L, M)
        return verify_kkm(release, names, ITEMS, K, M)


def outcome_of(found: Released) -> Outcome:
    return Outcome(found.ncp, found.ul, found.clusters, found.largest, {}, {}, None)


def spark_run(judge: Judge, bound: Bound, merge: Merge) -> Run:
    """One of the six algorithms as a user runs it."""
    anonymizer = RelationalTransactionAnonymizer(
        k=K,
        m=M,
        quasi_identifiers=judge.table.attributes,
        transactions=[ITEMS],
        bound=bound,
        delta=DELTA,
        merge=merge,
        cost="occurrences",
        refine="none",
        key="reproduction",
    )
    with Workspace(judge.spark) as workspace:
        seconds, recoding = timed(lambda: anonymizer.fit(judge.source, workspace))
        release = recoding.transform(judge.source)
        verdict = judge.verdict(release)
        lost = recoding.measured()
        error = relative_error(judge.source, recoding.rows, judge.workload, judge.table.hierarchies, ITEMS)
        outcome = Outcome(
            lost.ncp, lost.ul, lost.clusters, lost.largest, error.sets, error.uniform, verdict.violations
        )
        return Run(bound, merge, outcome, seconds, verdict.passed, verdict.checked)


def swept(
    judge: Judge,
    start: Clustered,
    bounded: Callable[[Clustered, Settings], Released | None],
    l: int | None = None,  # noqa: E741 - the l of l-diversity
) -> Sweep:
    """Releases by way of merging and δ."""
    found: dict[Merge, dict[float, Outcome | None]] = {merge: {} for merge in MERGES}
    for merge in MERGES:
        for delta in DELTAS:
            one = bounded(start, replace(SETTINGS, merge=merge, delta=delta, l=l))
            verified = l is not None and delta == DELTA  # of the sweeps without l, the same is verified in the runs
            found[merge][delta] = None if one is None else judge.outcome(start, one, verified)
    return found


def rum_bound(start: Clustered, settings: Settings) -> Released | None:
    try:
        return released(start, settings)
    except BoundUnreachable:
        return None


# --- time ------------------------------------------------------------------------------------------------------------------


def run_times(source: Table) -> tuple[dict[Merge, dict[int, float]], dict[Merge, dict[int, float]]]:
    """Seconds of CLUSTER, repair and the merge phase, in one process: by nested random subsets, and by k."""
    sizes = [size for size in SIZES if size < source.records] + [source.records]
    by_size = {size: seconds_of(source.sample(size), SETTINGS) for size in sizes}
    by_k = {k: seconds_of(source, replace(SETTINGS, k=k)) for k in KS}
    return _turned(by_size), _turned(by_k)


def seconds_of(source: Table, settings: Settings) -> dict[Merge, float]:
    """The fastest of some repetitions; the clusters are the same for all ways of merging."""
    best = dict.fromkeys(MERGES, float("inf"))
    for _ in range(REPEATS):
        start = clustered(source, settings.k, KEYS[0])
        for merge in MERGES:
            found = released(start, replace(settings, merge=merge))
            best[merge] = min(best[merge], start.seconds + found.seconds.total)
    return best


def _turned(found: Mapping[int, Mapping[Merge, float]]) -> dict[Merge, dict[int, float]]:
    return {merge: {at: of[merge] for at, of in found.items()} for merge in MERGES}


def raised(losses: Floats) -> int:
    """How many merges raise UL."""
    return int((losses[1:] > losses[:-1]).sum())
