"""Answers to the questions of an evaluation: supports of label sets and relations, and the loss, of recoded records.

Few records are counted where the search runs. Many lie in blocks that tasks read, one job for all questions of a round. Both
use the same kernels, so both give the same answers.
"""

from __future__ import annotations

import os
from collections import Counter as Counted
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from anon_spark.families.tree.kept import share_lost, sums_of
from anon_spark.families.tree.kernels.counting import tally
from anon_spark.families.tree.kernels.keys import Layout
from anon_spark.families.tree.kernels.pairs import DENSE_PAIRS, tally_of_pairs
from anon_spark.families.tree.kernels.synopsis import Synopsis, record_rpd, rpd_a, synopsis, updated_synopsis
from anon_spark.families.tree.kernels.trees import (
    Holders,
    Trees,
    disassociated_uses,
    distinct,
    holders_of,
    holding,
    projected,
    renamed,
    taken,
)
from anon_spark.families.tree.kernels.violations import all_violations, first_violation, rare_sets, relation_supports
from anon_spark.families.tree.settings import Cost, Settings
from anon_spark.families.tree.structure import (
    Answer,
    CostQuestion,
    Evaluation,
    Pair,
    Position,
    Question,
    Rare,
    Solution,
    Step,
    evaluation,
    rounded,
)
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.model.tree import NONE, Cut, Forest

SAMPLE = 2**12
MOST_LISTED = 10_000  # label sets below k that are looked at one by one in a round, and reach the driver; all are counted
MOST_KEPT = 8  # synopses of cuts before: at most 32 MiB each, as many paths as a driver's records have nodes
THREADS = min(os.cpu_count() or 1, 8)

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Slots:
    """The labels of a cut that count, as slots: its nodes ascending, then the negations that tell something (T-9)."""

    image: Codes
    nodes: Codes  # by slot, without negations
    slots: Codes  # by node
    ranks: Codes  # of each slot's node type; negations have none
    negated: Flags  # [negations, nodes]: labels all of whose values are in X

    @classmethod
    def of(cls, forest: Forest, cut: Cut, negations: Sequence[int]) -> Slots:
        nodes: Codes = np.array(cut, dtype=np.int32)
        slots: Codes = np.full(forest.size, NONE, dtype=np.int32)
        slots[nodes] = np.arange(nodes.size, dtype=np.int32)
        # a label tells that X is there if all its values are in X; where none does, X may be absent from any record
        told = (forest.only_inside(cut, node) for node in negations)
        rows = [inside for inside in told if inside.any()]
        negated = np.array(rows, dtype=np.bool_).reshape(-1, forest.size)
        ranks: Codes = np.concatenate([forest.ranks[nodes], np.full(len(rows), NONE)]).astype(np.int32)
        return cls(forest.image(cut), nodes, slots, ranks, negated)

    @property
    def count(self) -> int:
        return int(self.ranks.size)


@dataclass(frozen=True)
class Asked:
    """A question as tasks understand it: arrays, no forest."""

    slots: Slots
    top: int
    pairs: Codes
    sizes: int
    focus: Flags
    supports: tuple[Codes | Ints, Codes | Ints, Ints]  # ancestor slot, descendant slot, records
    after: Position | None
    factors: NDArray[np.float64] | None = None  # of a question of cost
    cost: Cost = "rpd_a"
    before: Slots | None = None  # of a question of RPD_a: a cut that differs in few labels; nothing is disassociated
    listed: bool = False


@dataclass(frozen=True)
class Promise:
    """The guarantee that is counted for, and the sensitive values by node (1 … S, 0 for others)."""

    k: int
    l: int  # noqa: E741 - 0: none
    n: int
    secrets: Codes


class Counter(Protocol):
    """Answers questions about the records; kind: where it counts them."""

    @property
    def kind(self) -> str: ...

    def answers(self, asked: Sequence[Asked]) -> list[Answer | float]: ...


@dataclass
class Evaluator:
    """Judges cuts side by side: every evaluation's next question goes into one batch."""

    forest: Forest
    settings: Settings
    negations: tuple[int, ...] = ()
    counter: Counter = field(init=False)
    rounds: int = 0
    _slots: dict[Cut, Slots] = field(default_factory=dict)

    def judge(self, steps: Sequence[Step]) -> list[Solution]:
        """Solutions in the order of the steps. Cost: as many batches as the longest evaluation has questions."""
        # with negations all sets are counted anew: a record can begin or cease to lack a value that nothing fresh tells of
        incremental = not self.negations
        running: dict[int, Evaluation] = {
            at: evaluation(step, self.forest, self.settings, incremental) for at, step in enumerate(steps)
        }
        questions = {at: next(judging) for at, judging in running.items()}
        done: dict[int, Solution] = {}
        while questions:
            answers = self.counter.answers([self._asked(question) for question in questions.values()])
            self.rounds += 1
            following: dict[int, Question | CostQuestion] = {}
            for at, answer in zip(questions, answers, strict=True):
                try:
                    following[at] = running[at].send(answer)
                except StopIteration as end:
                    done[at] = end.value
            questions = following
        self._slots.clear()
        return [done[at] for at in range(len(steps))]

    def rpd(self, solutions: Sequence[Solution]) -> list[float]:
        """RPD of what each solution publishes. Cost: a batch."""
        asked = [self._asked(CostQuestion(one.cut, one.pairs, "rpd")) for one in solutions]
        found = [rounded(answer) for answer in self.counter.answers(asked) if not isinstance(answer, Answer)]
        self._slots.clear()
        return found

    def rare_types(self) -> list[str]:
        """Names of the node types of which fewer than k records have a value, so that no cut can show them. Cost: a batch."""
        roots = self.forest.specialized(self.forest.most_general, self.forest.top)
        (answer,) = self.counter.answers([self._asked(Question(roots, (), 1, listed=True))])
        assert isinstance(answer, Answer) and answer.rare is not None
        return [self.forest.labels[root] for root in roots if 0 < answer.rare.supports.get(root, 0) < self.settings.k]

    @cached_property
    def promise(self) -> Promise:
        settings, forest = self.settings, self.forest
        secrets: Codes = np.zeros(forest.size, dtype=np.int32)
        if settings.l is not None:
            leaves = np.flatnonzero(forest.is_sensitive & (forest.levels == 0))
            secrets[leaves] = np.arange(1, leaves.size + 1, dtype=np.int32)
        return Promise(settings.k, settings.l or 0, settings.relations, secrets)

    @cached_property
    def _factors(self) -> NDArray[np.float64]:
        return self.forest.counts(self.settings.level_count).astype(np.float64)

    def _asked(self, question: Question | CostQuestion) -> Asked:
        slots = self._slots_of(question.cut)
        pairs: Codes = np.array(question.pairs, dtype=np.int32).reshape(-1, 2)
        nothing: Ints = np.zeros(0, dtype=np.int64)
        if isinstance(question, CostQuestion):
            cost = question.cost or self.settings.cost
            factors = self.forest.ncp(question.cut) if cost == "ncp" else self._factors
            none: Flags = np.zeros(0, dtype=np.bool_)
            is_small_step = cost == "rpd_a" and not question.pairs and question.before not in (None, self.forest.most_general)
            before = self._slots_of(question.before) if is_small_step and question.before is not None else None
            return Asked(slots, self.forest.top, pairs, 0, none, (nothing,) * 3, None, factors, cost, before)
        focus: Flags = np.zeros(0 if question.focus is None else slots.count, dtype=np.bool_)
        if question.focus is not None:
            focus[slots.slots[sorted(question.focus)]] = True
        known = np.array([(*pair, times) for pair, times in question.supports.items()], dtype=np.int64).reshape(-1, 3)
        supports = (slots.slots[known[:, 0]], slots.slots[known[:, 1]], known[:, 2])
        return Asked(
            slots, self.forest.top, pairs, question.sizes, focus, supports, question.after, listed=question.listed
        )

    def _slots_of(self, cut: Cut) -> Slots:
        if cut not in self._slots:
            self._slots[cut] = Slots.of(self.forest, cut, self.negations)
        return self._slots[cut]


# --- one question on some records --------------------------------------------------------------------------------------


class Tally(NamedTuple):
    """Counts of some records: keys with counts, and the records that each disassociation changed."""

    keys: Ints
    counts: Ints
    used: Ints


@dataclass(frozen=True)
class Indexed:
    """Records, and by label those that hold it."""

    trees: Trees
    holders: Holders

    @classmethod
    def of(cls, trees: Trees, labels: int) -> Indexed:
        """labels: how many there are."""
        if trees.labels.size and not 0 <= trees.labels.min() <= trees.labels.max() < labels:
            raise ValueError("a label is none of the forest")
        return cls(trees, holders_of(trees, labels))

    def holding(self, image: Codes, is_wanted: Flags) -> Ints:
        """The records with a label whose image is wanted, ascending. Raises ValueError for a label without image."""
        if (image[np.diff(self.holders.offsets) > 0] < 0).any():
            raise ValueError("a label lies above the cut")
        return holding(self.holders, (image >= 0) & is_wanted[image], self.trees.records)


def counted(records: Indexed, asked: Asked, promise: Promise) -> Tally:
    """Keys and counts of a question over these records."""
    trees, slots = records.trees, asked.slots
    if not _are_pairs(asked, promise):
        images, weights, used = recoded(records, asked)
        keys, counts = tally(images, weights, slots.slots, slots.count, asked.sizes, asked.focus, slots.negated, promise.secrets)
        return Tally(keys, counts, used)
    # each label counts as its image does, so that the records need not be recoded
    wanted = asked.focus if asked.focus.size else np.ones(slots.count, dtype=np.bool_)
    chosen = records.holding(slots.image, (slots.slots != NONE) & wanted[slots.slots])
    layout, ones = Layout.of(slots.count, asked.sizes), np.ones(trees.records, dtype=np.int64)
    everyone = chosen if asked.focus.size else np.arange(trees.records)
    keys, counts = tally_of_pairs(trees, ones, slots.slots[slots.image], layout, asked.focus, everyone)
    return Tally(keys, counts, np.zeros(0, dtype=np.int64))


def _are_pairs(asked: Asked, promise: Promise) -> bool:
    """Whether single labels and pairs of records are counted that need no merging."""
    is_plain = not asked.pairs.size and not asked.slots.negated.size and not promise.secrets.any()
    return is_plain and asked.sizes <= 2 and asked.slots.count <= DENSE_PAIRS and not _is_most_general(asked)


def _is_most_general(asked: Asked) -> bool:
    return bool(asked.slots.image[asked.top] == asked.top)


def recoded(records: Indexed, asked: Asked) -> tuple[Trees, Ints, Ints]:
    """The records under the cut after the disassociations; how many each stands for; records that each of these changed.

    As far as the question needs it: records without a label in focus may be left out, or equal siblings be left in.
    """
    trees = records.trees
    if _is_quick(trees, asked):
        nothing: Ints = np.zeros(0, dtype=np.int64)
        return renamed(trees, asked.slots.image), np.ones(trees.records, dtype=np.int64), nothing
    images, weights = _together(projected(relevant(records, asked), asked.slots.image, asked.top))
    changed, used = disassociated_uses(images, asked.pairs, weights)
    return changed, weights, used


def _is_quick(trees: Trees, asked: Asked) -> bool:
    """Whether records are counted as they are, with new labels: sets of up to two labels take less time than merging siblings."""
    if asked.pairs.size or _is_most_general(asked):
        return False
    if asked.factors is not None:
        return asked.cost == "rpd_a"
    if asked.sizes <= 2 or trees.records <= SAMPLE:
        return True
    few = projected(Trees(trees.offsets[: SAMPLE + 1], trees.labels, trees.parents), asked.slots.image, asked.top)
    return not _repeat(few)


def _together(trees: Trees) -> tuple[Trees, Ints]:
    """Equal records as one, with their number, if a sample shows that there are many."""
    weights = np.ones(trees.records, dtype=np.int64)
    return distinct(trees, weights) if _repeat(trees) else (trees, weights)


def _repeat(trees: Trees) -> bool:
    """Whether at least half of a sample of the records are equal to others."""
    few = Trees(trees.offsets[: SAMPLE + 1], trees.labels, trees.parents)
    return distinct(few, np.ones(few.records, dtype=np.int64))[0].records <= max(few.records // 2, SAMPLE // 2)


def relevant(records: Indexed, asked: Asked) -> Trees:
    """The records that hold a label in focus after the cut; all, without a focus."""
    if not asked.focus.size:
        return records.trees
    slots = asked.slots
    return taken(records.trees, records.holding(slots.image, (slots.slots != NONE) & asked.focus[slots.slots]))


def answer_of(asked: Asked, tally_: Tally, promise: Promise) -> Answer:
    """The violations that whole counts show."""
    slots = asked.slots
    layout = Layout.of(slots.count, asked.sizes, int(promise.secrets.max(initial=0)))
    supports = np.zeros((slots.count, slots.count), dtype=np.int64)
    upper, lower, times = asked.supports
    supports[upper, lower] = supports[lower, upper] = times
    counted = relation_supports(layout, tally_.keys, tally_.counts)
    if not times.size:
        supports = counted
    nodes = slots.nodes.tolist()
    if asked.after is not None:
        return _first(asked, layout, tally_, promise, supports, nodes)
    violations = all_violations(
        layout, tally_.keys, tally_.counts, promise.k, promise.l, promise.n, supports, slots.ranks
    )
    above, below = np.nonzero(counted)
    ordered = slots.ranks[above] < slots.ranks[below]
    return Answer(
        values=violations.value_violations,
        diversity=violations.diversity_violations,
        sizes={size: [(nodes[a], nodes[b]) for a, b in pairs] for size, pairs in violations.relations.items()},
        supports={
            (nodes[a], nodes[b]): int(counted[a, b])
            for a, b in zip(above[ordered].tolist(), below[ordered].tolist(), strict=True)
        },
        used=tuple(tally_.used.tolist()),
        rare=_rare(asked, layout, tally_, promise) if asked.listed else None,
    )


def _rare(asked: Asked, layout: Layout, tally_: Tally, promise: Promise) -> Rare:
    nodes = asked.slots.nodes
    sets, times, supports = rare_sets(layout, tally_.keys, tally_.counts, promise.k, MOST_LISTED)
    named = [tuple(int(nodes[slot]) for slot in row if NONE < slot < nodes.size) for row in sets.tolist()]
    named.sort(key=lambda labels: (len(labels), labels))  # without negations, some are shorter
    by_node = [
        {int(node): int(number) for node, number in zip(nodes, numbers[: nodes.size], strict=True) if number}
        for numbers in (times, supports)
    ]
    return Rare(named, *by_node)


def _first(asked: Asked, layout: Layout, tally_: Tally, promise: Promise, supports: Ints, nodes: list[int]) -> Answer:
    slots = asked.slots.slots
    size, labels, relations, pairs = asked.after or Position(0, (), 0, ())
    position = (
        size,
        tuple(int(slots[node]) for node in labels),
        relations,
        tuple((int(slots[a]), int(slots[b])) for a, b in pairs),
    )
    violation = first_violation(
        layout, tally_.keys, tally_.counts, promise.k, promise.l, promise.n, supports, asked.slots.ranks, position
    )
    used = tuple(tally_.used.tolist())
    if violation is None:
        return Answer(0, 0, {}, {}, used)
    named: tuple[Pair, ...] = tuple((nodes[a], nodes[b]) for a, b in violation.relations)
    at = Position(len(violation.slots), tuple(nodes[slot] for slot in violation.slots), len(named), named)
    upper, lower = violation.least
    return Answer(0, 0, {}, {}, used, (at, (nodes[upper], nodes[lower])))


# --- loss ----------------------------------------------------------------------------------------------------------------


@dataclass
class Synopses:
    """Synopses of some records under cuts.

    Cuts of one step of a search differ from the cut before in few labels. The synopsis of that one is kept, and theirs are made
    from it.
    """

    records: Indexed
    kept: dict[bytes, tuple[Slots, Synopsis]] = field(default_factory=dict)  # by the nodes of the cut

    def keep(self, asked: Sequence[Asked], pool: ThreadPoolExecutor | None = None) -> None:
        """Those of cuts that most of these cuts come from, several of them."""
        before = {one.before.nodes.tobytes(): one.before for one in asked if one.before is not None}
        times = Counted(one.before.nodes.tobytes() for one in asked if one.before is not None)
        wanted = [cut for cut, number in times.most_common(MOST_KEPT) if number > 1]
        missing = [cut for cut in wanted if cut not in self.kept]
        if missing and not self.kept:
            self.kept[missing[0]] = before[missing[0]], self._whole(before[missing[0]])
        found = list((pool.map if pool else map)(lambda cut: self._from_nearest(before[cut]), missing))
        for cut in [cut for cut in self.kept if cut not in wanted][: max(0, len(self.kept) + len(missing) - MOST_KEPT)]:
            del self.kept[cut]
        self.kept |= {cut: (before[cut], synopsis) for cut, synopsis in zip(missing, found, strict=True)}

    def of(self, asked: Asked) -> Synopsis:
        """The synopsis under a cut; from that of the cut before, if it was kept."""
        known = None if asked.before is None else self.kept.get(asked.before.nodes.tobytes())
        if known is not None:
            return self._updated(asked.slots, *known)
        images, weights, _ = recoded(self.records, asked)
        return synopsis(images, weights)

    def _from_nearest(self, slots: Slots) -> Synopsis:
        """From that of the cut which differs in the fewest values."""
        return self._updated(slots, *min(self.kept.values(), key=lambda known: int((known[0].image != slots.image).sum())))

    def _updated(self, slots: Slots, before: Slots, known: Synopsis) -> Synopsis:
        moved = slots.image != before.image
        is_changed: Flags = np.zeros(slots.image.size, dtype=np.bool_)
        for image in (slots.image[moved], before.image[moved]):
            is_changed[image[image >= 0]] = True
        holders = self.records.holding(slots.image, is_changed)
        return updated_synopsis(known, self.records.trees, slots.image, is_changed, holders)

    def _whole(self, slots: Slots) -> Synopsis:
        trees = self.records.trees
        return synopsis(renamed(trees, slots.image), np.ones(trees.records, dtype=np.int64))


# --- few records -------------------------------------------------------------------------------------------------------


@dataclass
class LocalCounter:
    """Records that are counted where the search runs. Cost: their arrays; each question one pass over those it concerns."""

    trees: Trees
    promise: Promise

    kind = "driver"

    def answers(self, asked: Sequence[Asked]) -> list[Answer | float]:
        if len(asked) == 1:
            return [self._answer(asked[0])]
        with ThreadPoolExecutor(min(len(asked), THREADS)) as pool:  # compiled loops hold no lock
            self.synopses.keep(asked, pool)
            return list(pool.map(self._answer, asked))

    @cached_property
    def synopses(self) -> Synopses:
        return Synopses(Indexed.of(self.trees, self.promise.secrets.size))

    def _answer(self, asked: Asked) -> Answer | float:
        records = self.synopses.records
        if asked.factors is None:
            return answer_of(asked, counted(records, asked, self.promise), self.promise)
        if asked.cost == "ncp":
            return share_lost(sums_of(self.trees, asked.slots.image, asked.top, asked.pairs, asked.factors))
        if asked.cost == "rpd":
            images, weights, _ = recoded(records, asked)
            return float(record_rpd(images, asked.factors) @ weights) / self.trees.records
        return rpd_a(self.synopses.of(asked), asked.factors)
