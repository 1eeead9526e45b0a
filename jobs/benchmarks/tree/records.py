"""Nested customers as trees, read once for many searches; what a search found, and its release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing.guarantees.tree_support import verify_kmn
from anon_spark.auditing.verdict import Verdict
from anon_spark.families.tree.counting import Asked, Counter, Evaluator, LocalCounter, Promise, Slots
from anon_spark.families.tree.kernels.synopsis import record_rpd
from anon_spark.families.tree.kernels.trees import Trees, packed
from anon_spark.families.tree.publication import Recode, published_rows
from anon_spark.families.tree.records import LABELS, PARENTS, Records, Roles, read_records, source_of, trees_in
from anon_spark.families.tree.search import Seen, searched
from anon_spark.families.tree.settings import MAX_LABELS, Settings
from anon_spark.families.tree.structure import Answer, Solution
from anon_spark.families.tree.tasks import CONTENT, TaskCounter
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.progress import Progress
from anon_spark.model.tree import NONE, Cut, Forest
from anon_spark.primitives.rounds import Workspace
from anon_spark.samples.orders import ORDER_SCHEMA
from jobs.benchmarks.tree.data import Customers

K, M, N = 20, 3, 2
TELL_SECONDS = 30

Part = Literal["value", "fix", "cost"]
PARTS: tuple[Part, ...] = ("value", "fix", "cost")
LONGEST: tuple[Part, ...] = ("cost", "value", "fix")


@dataclass
class PartsTimed:
    """A counter that measures how long each part of judging takes: ValueCheck, FixStructure, loss.

    The first question about a cut is its ValueCheck, a question of cost is its loss, all others are of FixStructure.
    """

    counter: Counter
    apart: bool = True
    seconds: dict[Part, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    questions: dict[Part, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    _met: dict[int, Slots] = field(default_factory=dict)  # by identity, and kept so that none is used again

    @property
    def kind(self) -> str:
        return self.counter.kind

    def answers(self, asked: Sequence[Asked]) -> list[Answer | float]:
        """Those of the counter; each part by itself, or all in one batch, whose seconds then are those of its longest part."""
        found: dict[int, Answer | float] = {}
        parts = [self._part(one) for one in asked]
        for part in parts:
            self.questions[part] += 1
        batches = [[part] for part in PARTS] if self.apart else [list(PARTS)]
        for batch in batches:
            own = [at for at, part in enumerate(parts) if part in batch]
            if own:
                started = perf_counter()
                found |= zip(own, self.counter.answers([asked[at] for at in own]), strict=True)
                longest = max((parts[at] for at in own), key=LONGEST.index)
                self.seconds[longest] += perf_counter() - started
        return [found[at] for at in range(len(asked))]

    def _part(self, asked: Asked) -> Part:
        if asked.factors is not None:
            return "cost"
        known = id(asked.slots) in self._met
        self._met[id(asked.slots)] = asked.slots
        return "fix" if known else "value"


class Searched(NamedTuple):
    """A search that is over: what it saw, its seconds, and those of the parts of judging."""

    settings: Settings
    seen: Seen
    seconds: float
    rounds: int
    parts: Mapping[Part, float]

    @property
    def best(self) -> Solution:
        assert self.seen.best is not None, "{*} is always a solution without l"
        return self.seen.best

    @property
    def fix_share(self) -> float:
        """Of the time, that of FixStructure."""
        return self.parts["fix"] / max(self.seconds, 1e-9)


@dataclass(frozen=True)
class Loaded:
    """The records of one table: on the driver, and as a frame to publish from."""

    name: str
    source: DataFrame  # the rows as they were read, with their private link
    records: Records
    trees: Trees

    @property
    def forest(self) -> Forest:
        return self.records.forest

    def searched(self, settings: Settings, progress: Progress | None = None) -> Searched:
        """One search, counted where it runs."""
        evaluator = Evaluator(self.forest, settings)
        timed = PartsTimed(LocalCounter(self.trees, evaluator.promise))
        evaluator.counter = timed
        started = perf_counter()
        seen = searched(self.forest, settings, evaluator, self.records.occurring, progress)
        return Searched(settings, seen, perf_counter() - started, evaluator.rounds, dict(timed.seconds))

    def rpd(self, cut: Cut, pairs: Sequence[tuple[int, int]]) -> float:
        """RPD of what a cut and its disassociations publish."""
        shown = Recode.of(self.forest, cut, pairs)(self.trees)
        return float(record_rpd(shown, self.forest.counts().astype(np.float64)).mean())

    def release(self, cut: Cut, pairs: Sequence[tuple[int, int]]) -> DataFrame:
        """The rows that a cut and its disassociations publish, with their private link."""
        recode = Recode.of(self.forest, cut, pairs)
        return published_rows(self.records.frame, self.forest, recode, nested=False, linked=True)

    def as_they_are(self, trees: DataFrame) -> DataFrame:
        """Trees of any labels as paths, with their private link."""
        image = np.arange(self.forest.size, dtype=np.int32)
        image[self.forest.top] = NONE  # else everything would become *
        recode = Recode(image, self.forest.top, np.zeros((0, 2), dtype=np.int32))
        return published_rows(trees, self.forest, recode, nested=False, linked=True)


def loaded(spark: SparkSession, customers: Customers, records: int, workspace: Workspace) -> Loaded:
    """So many customers as trees. Cost: one shuffle; all of them reach the driver."""
    source, found = read(customers.frame(spark, records), customers.hierarchies, workspace)
    return Loaded(customers.name, source, found, trees_in(found.frame.select(LABELS, PARENTS).toArrow()))


def read(
    table: DataFrame, hierarchies: Mapping[str, Hierarchy], workspace: Workspace
) -> tuple[DataFrame, Records]:
    """The rows and the records of nested customers; a customer is one row, so they need not be put together."""
    roles = Roles(ORDER_SCHEMA, dict(hierarchies))
    source = source_of(table, roles, workspace)
    return source, read_records(source, roles, "value", "error", MAX_LABELS, workspace)


def task_counter(records: Records, promise: Promise, workspace: Workspace) -> TaskCounter:
    """A counter in tasks, however few records there are."""
    blocks = records.frame.select(LABELS, PARENTS).mapInArrow(_packing, f"{CONTENT} binary")
    return TaskCounter(workspace.store(blocks, "blocks"), records.count, promise)


def _packing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        content = pa.array([packed(trees_in(pa.Table.from_batches([batch])))], pa.binary())
        yield pa.RecordBatch.from_arrays([content], names=[CONTENT])


def split(forest: Forest, cut: Cut, name: str, most: int | None = None) -> Cut:
    """The cut with the labels of a node type that stand highest replaced by those below them; `most`: only the first ones."""
    own = [node for node in cut if forest.published(node)[0] == name]
    highest = max(int(forest.levels[node]) for node in own)
    for node in [node for node in own if forest.levels[node] == highest][:most]:
        cut = forest.specialized(cut, node)
    return cut


def verified(release: DataFrame, settings: Settings) -> Verdict:
    """The audit of the published paths alone."""
    return verify_kmn(release.select("paths"), settings.k, settings.m, settings.n)


def teller(name: str) -> Progress:
    """Progress for long searches: a line now and then, with the seconds since the start."""
    started = last = perf_counter()

    def tell(done: int, total: int, what: str) -> None:
        nonlocal last
        now = perf_counter()
        if now - last >= TELL_SECONDS:
            last = now
            print(f"{name}: {now - started:.0f} s, {done:,} {what}", flush=True)

    return tell


def verdict_cell(verdict: Verdict) -> str:
    return f"{'passed' if verdict.passed else '**failed**'}, {verdict.violations:,} of {verdict.checked:,}"
