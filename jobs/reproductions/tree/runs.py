"""What the experiments on nested records measure: searches and MiRaCle by k, m, n, g and size, losses, absences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing.verdict import Verdict
from anon_spark.families.tree.settings import Cuts, Search, Settings
from anon_spark.families.tree.structure import Solution
from anon_spark.metrics.path_dependence import rpd
from anon_spark.primitives.rounds import Workspace
from anon_spark.risk.trees.knowledge import TreeKnowledge, tree_attack
from anon_spark.samples.orders import ORDER_SCHEMA
from jobs.benchmarks.census_runs import timed
from jobs.benchmarks.tree.data import Customers, customers
from jobs.benchmarks.tree.records import K, Loaded, M, N, loaded, teller, verified
from jobs.benchmarks.tree.searches import first_records
from jobs.reproductions.tree.miracle import miracle
from jobs.reproductions.tree.multi_level import multi_level_loss

Way = Literal["GCS", "OCS", "beam", "partial", "MiRaCle", "ACS"]  # partial: the beam over partial cuts
WAYS: tuple[Way, ...] = ("GCS", "OCS", "beam", "partial", "MiRaCle")
G = 2
KS = (5, 10, 20, 50, 100, 300)
MS = (2, 3, 4, 5, 6)
NS = (0, 1, 2, 3)
GS = (1, 2, 3, 4)
ENDING = (50, 200)  # k for which ACS ends on the default number of records
SHARES = (4, 2, 1)  # of the records: a quarter, half, all
RECORDS = 20_000
CUTS = 400
ABSENCES = (1, 2, 3, 4)
DRAWS = 2_000
KEY = "reproduction"
ACS_CUTS = 5_000
LARGE_SECONDS = 600
SEARCHES: Mapping[Way, Search] = {"GCS": "gcs", "OCS": "ocs", "beam": "beam", "partial": "beam", "ACS": "acs"}

Release = tuple[object, ...]
"""By what releases of one table are known: a cut with its disassociations, or MiRaCle's k."""


class Losses(NamedTuple):
    """What a release loses: RPD, and of the frequent subtrees ML² and dML², where they were counted."""

    rpd: float
    ml2: float | None = None
    dml2: float | None = None
    frequent: int = 0
    preserved: int = 0


class Outcome(NamedTuple):
    """One way with its settings, its release measured and audited; MiRaCle has no cuts."""

    way: Way
    settings: Settings
    records: int
    losses: Losses
    verdict: Verdict
    seconds: float
    cuts: int = 0
    ended: bool = True
    best: Solution | None = None


Sweep = Mapping[int, Mapping[Way, Outcome]]
"""By the parameter that changes, then by way."""


@dataclass(frozen=True)
class Found:
    """Everything that the claims are judged by."""

    name: str
    records: int
    nodes: int
    cuts: int  # the budget of a search
    by_k: Sweep
    by_m: Sweep
    by_n: Sweep
    by_size: Sweep
    greeds: Mapping[int, Mapping[int, Outcome]]  # k, then g; 0 is ACS
    absent: Mapping[Way, Sequence[TreeKnowledge]]
    large: Mapping[Way, Outcome] = field(default_factory=dict)

    @property
    def usual(self) -> Mapping[Way, Outcome]:
        """All ways with the default parameters."""
        return self.by_k[K]

    @property
    def outcomes(self) -> list[Outcome]:
        sweeps = (self.by_k, self.by_m, self.by_n, self.by_size)
        every = [one for sweep in sweeps for of in sweep.values() for one in of.values()]
        every += [one for of in self.greeds.values() for one in of.values()] + list(self.large.values())
        return list({id(one): one for one in every}.values())


@dataclass
class Experiment:
    """The ways on one table; equal releases are measured once."""

    loaded: Loaded
    workspace: Workspace
    cuts: int = CUTS
    seconds: float | None = None
    _original: DataFrame = field(init=False)
    _losses: dict[Release, Losses] = field(default_factory=dict)
    _verdicts: dict[tuple[Release, int, int, int], Verdict] = field(default_factory=dict)
    _clustered: dict[int, tuple[float, DataFrame]] = field(default_factory=dict)
    _outcomes: dict[tuple[Way, Settings], Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._original = self.workspace.store(self.loaded.as_they_are(self.loaded.records.frame), "original")

    def ways(self, settings: Settings, subtrees: bool = True) -> dict[Way, Outcome]:
        return {way: self.outcome(way, settings, subtrees) for way in WAYS}

    def outcome(self, way: Way, settings: Settings, subtrees: bool = True) -> Outcome:
        """One way, once; says what it found. subtrees: whether ML² and dML² are measured too."""
        if (way, settings) not in self._outcomes:
            found = self._clusters(settings, subtrees) if way == "MiRaCle" else self._searched(way, settings, subtrees)
            told = f"{way}, {found.records:,} records, k = {settings.k}, m = {settings.m}, n = {settings.n}, g = {settings.g}"
            print(f"{told}: RPD {found.losses.rpd:.4g}, {found.cuts:,} cuts, {found.seconds:.1f} s", flush=True)
            self._outcomes[way, settings] = found
        return self._outcomes[way, settings]

    def _searched(self, way: Way, settings: Settings, subtrees: bool) -> Outcome:
        most = ACS_CUTS if way == "ACS" else self.cuts
        cuts: Cuts = "partial" if way == "partial" else "full"
        limited = replace(settings, search=SEARCHES[way], max_cuts=most, max_seconds=self.seconds, cuts=cuts)
        found = self.loaded.searched(limited, teller(way))
        best = found.best
        frame = self.loaded.release(best.cut, best.pairs)
        return Outcome(
            way,
            settings,
            self.loaded.records.count,
            *self._measured((best.cut, best.pairs), frame, settings, subtrees),
            found.seconds,
            found.seen.evaluated,
            found.seen.stopped_by is None,
            best,
        )

    def _clusters(self, settings: Settings, subtrees: bool) -> Outcome:
        k = settings.k
        if k not in self._clustered:
            records, forest = self.loaded.records.frame, self.loaded.forest
            self._clustered[k] = timed(lambda: miracle(records, forest, k, KEY, self.workspace))
        seconds, trees = self._clustered[k]
        frame = self.loaded.as_they_are(trees)
        measures = self._measured(("MiRaCle", k), frame, settings, subtrees)
        return Outcome("MiRaCle", settings, self.loaded.records.count, *measures, seconds)

    def _measured(self, what: Release, frame: DataFrame, settings: Settings, subtrees: bool) -> tuple[Losses, Verdict]:
        """Losses and audit of a release; each once."""
        asked = (what, settings.k, settings.m, settings.n)
        known = self._losses.get(what)
        if asked not in self._verdicts or known is None or (subtrees and known.ml2 is None):
            release = self.workspace.store(frame, "release")
            if asked not in self._verdicts:
                self._verdicts[asked] = replace(verified(release, settings), frame=None)
            if known is None:
                known = Losses(rpd(release, self.loaded.forest))
            if subtrees and known.ml2 is None:
                lost = multi_level_loss(self._original, release, self.loaded.forest, workspace=self.workspace)
                known = Losses(known.rpd, lost.ml2, lost.dml2, sum(lost.frequent), sum(lost.preserved))
            self._losses[what] = known
        return known, self._verdicts[asked]

    def absences(self, one: Outcome) -> tuple[TreeKnowledge, ...]:
        """Who also knows what a record lacks, values or groups, one to four of them; first who does not."""
        assert one.best is not None, "a search found it"
        forest = self.loaded.forest
        pairs = [(forest.published(upper), forest.published(lower)) for upper, lower in one.best.pairs]
        return tree_attack(
            self.loaded.source,
            self.workspace.store(self.loaded.release(one.best.cut, one.best.pairs), "attacked"),
            ORDER_SCHEMA,
            forest.hierarchies,
            [forest.published(node) for node in one.best.cut],
            pairs,
            one.settings.k,
            one.settings.m,
            one.settings.n,
            KEY,
            DRAWS,
            ABSENCES,
        ).knowledge


def measured(spark: SparkSession, tables: Path, records: int = RECORDS, large: int | None = None, cuts: int = CUTS) -> Found:
    """All experiments. large: the default parameters on so many customers too."""
    source = customers(spark, max(records, large or 0), tables)
    plain = Settings(k=K, m=M, n=N, g=G)
    with Workspace(spark) as workspace:
        table = loaded(spark, source, records, workspace)
        warm_up(table)
        whole = Experiment(table, workspace, cuts)
        by_k = {k: whole.ways(replace(plain, k=k)) for k in KS}
        found = Found(
            source.name,
            table.records.count,
            table.records.nodes,
            cuts,
            by_k,
            {m: whole.ways(replace(plain, m=m)) for m in MS},
            {n: whole.ways(replace(plain, n=n)) for n in NS},
            by_size(spark, source, records, whole, plain),
            {k: greeds(whole, replace(plain, k=k)) for k in ENDING},
            {way: whole.absences(by_k[K][way]) for way in ("GCS", "beam")},
        )
    return found if large is None else replace(found, large=larger(spark, source, large, cuts))


def warm_up(table: Loaded) -> None:
    """Compile what is measured."""
    few = first_records(table, 500)
    for settings in (Settings(k=5, search="gcs", cuts="full"), Settings(k=5, cuts="full"), Settings(k=5)):
        few.searched(replace(settings, m=M, n=N, max_cuts=50))


def by_size(spark: SparkSession, source: Customers, records: int, whole: Experiment, plain: Settings) -> Sweep:
    """The ways on a part of the customers, on all at last."""
    found: dict[int, Mapping[Way, Outcome]] = {}
    for share in SHARES:
        if share == 1:
            found[whole.loaded.records.count] = whole.ways(plain, subtrees=False)
            continue
        with Workspace(spark) as workspace:
            own = Experiment(loaded(spark, source, records // share, workspace), workspace, whole.cuts)
            found[own.loaded.records.count] = own.ways(plain, subtrees=False)
    return found


def greeds(whole: Experiment, settings: Settings) -> dict[int, Outcome]:
    """GCS for each g, and ACS."""
    by_g = {g: whole.outcome("GCS", replace(settings, g=g), subtrees=False) for g in GS}
    return {**by_g, 0: whole.outcome("ACS", settings, subtrees=False)}


def larger(spark: SparkSession, source: Customers, records: int, cuts: int) -> dict[Way, Outcome]:
    """The default parameters on more customers; a search ends after LARGE_SECONDS at the latest."""
    with Workspace(spark) as workspace:
        own = Experiment(loaded(spark, source, records, workspace), workspace, cuts, LARGE_SECONDS)
        return own.ways(Settings(k=K, m=M, n=N, g=G))
