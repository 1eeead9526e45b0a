"""ACS, GCS, OCS and beam search over the cuts, from {*} downwards.

Every search sees cuts through `Evaluator.judge`, which judges a list of them side by side. A value is specialized once on the
way to a cut: a partial cut may still have it. A closed value is never specialized below; costs are rounded to 12 significant
digits, and of equal ones the most general cut comes first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

from anon_spark.families.tree.settings import Settings
from anon_spark.families.tree.structure import Solution, Step
from anon_spark.model.progress import Progress
from anon_spark.model.tree import Cut, Forest

Closed = frozenset[int]
Order = tuple[float, bool, int, Cut]


class Judge(Protocol):
    """Judges cuts side by side, and tells the RPD of solutions."""

    def judge(self, steps: Sequence[Step]) -> list[Solution]: ...

    def rpd(self, solutions: Sequence[Solution]) -> list[float]: ...


class BudgetSpent(Exception):
    """The search may judge no more cuts; the best solution so far is kept."""


@dataclass
class Seen:
    """State of a search: how many cuts it judged, and the best that may be published."""

    forest: Forest
    settings: Settings
    judge: Judge
    progress: Progress | None = None
    most_rpd: float | None = None  # solutions with a higher RPD are not the best
    evaluated: int = 0
    passed: int = 0  # ValueCheck
    pops: int = 0
    best: Solution | None = None
    stopped_by: str | None = None
    trail: list[tuple[int, float]] = field(default_factory=list)  # cuts judged, loss: each time a better one was found
    started: float = field(default_factory=perf_counter)

    def judged(self, wanted: Sequence[Step]) -> list[Solution]:
        """Judge cuts, within the budget: the list is cut short by it, and the search ends with this batch."""
        left = None if self.settings.max_cuts is None else self.settings.max_cuts - self.evaluated
        if left is not None and left <= 0:
            self.stopped_by = "max_cuts"
            raise BudgetSpent
        limit = self.settings.max_seconds
        if limit is not None and self.best is not None and perf_counter() - self.started > limit:
            self.stopped_by = "max_seconds"
            raise BudgetSpent
        solutions = self.judge.judge(wanted[:left])
        self.evaluated += len(solutions)
        self.passed += sum(solution.fits for solution in solutions)
        better = [one for one in solutions if one.valid and (self.best is None or self.order(one) < self.order(self.best))]
        if better and self.most_rpd is not None:
            better = [one for one, rpd in zip(better, self.judge.rpd(better), strict=True) if rpd <= self.most_rpd]
        if better:
            self.best = min(better, key=self.order)
            self.trail.append((self.evaluated, self.best.cost))
        if self.progress is not None and self.best is not None:
            message = f"cuts evaluated, best loss {self.best.cost:.6g}"
            self.progress(self.evaluated, self.settings.max_cuts or 0, message)
        if len(solutions) < len(wanted):
            self.stopped_by = "max_cuts"
            raise BudgetSpent
        return solutions

    def order(self, solution: Solution) -> Order:
        """Solutions are compared by this: cost first, then the most general cut.

        By NCP the cut {*} can cost as much as the names of the node types, which say more.
        """
        says_nothing = self.settings.cost == "ncp" and solution.cut == self.forest.most_general
        return (solution.cost, says_nothing, *self.forest.key(solution.cut))


def searched(
    forest: Forest, settings: Settings, judge: Judge, occurring: Iterable[int], progress: Progress | None = None
) -> Seen:
    """The best cut that the job's search finds. occurring: the leaves of the records.

    Guarantee: {*} is judged first, so there is a solution whenever the job is feasible.
    """
    seen = Seen(forest, settings, judge, progress)
    closed = unseen_nodes(forest, occurring) if settings.close_unseen else frozenset()
    beam = beam_cuts if settings.cuts == "full" else partial_beam_cuts
    walk = {"acs": all_cuts, "gcs": greedy_cuts, "ocs": greedy_cuts, "beam": beam}[settings.search]
    try:
        (start,) = seen.judged([Step(forest.most_general)])
        if start.fits:
            walk(seen, start, closed)
    except BudgetSpent:
        pass
    return seen


def unseen_nodes(forest: Forest, occurring: Iterable[int]) -> Closed:
    """Nodes none of whose leaves occurs: specializing them changes nothing."""
    alive: set[int] = set()
    for leaf in occurring:
        node = leaf
        while node != -1 and node not in alive:
            alive.add(node)
            node = int(forest.parents[node])
    return frozenset(range(forest.size)) - alive


def all_cuts(seen: Seen, start: Solution, closed: Closed) -> None:
    """ACS: every cut below a cut that passes ValueCheck, depth first (T-7)."""
    stack = [(start, closed)]
    while stack:
        cut, closed = stack.pop()
        seen.pops += 1
        values = _open(seen.forest, cut, closed)
        kids = seen.judged([Step(cut.cut, value, cut.clean) for value in values])
        below = [
            (kid, closed.union(values[: at + 1]))  # each cut is met once
            for at, kid in enumerate(kids)
            if kid.fits
        ]
        stack += reversed(below)


def greedy_cuts(seen: Seen, start: Solution, closed: Closed) -> None:
    """GCS: specialize the cheapest cut of the queue, keep its g cheapest kids. OCS: the same without disassociation."""
    forest, settings = seen.forest, seen.settings
    queue: list[tuple[Order, Solution, Closed]] = [(seen.order(start), start, closed)]
    while queue:
        _, cut, closed = heapq.heappop(queue)
        seen.pops += 1
        # 1. judge all specializations by values that are not closed
        values = _open(forest, cut, closed)
        kids = seen.judged([Step(cut.cut, value, cut.clean) for value in values])
        # 2. a value that failed ValueCheck fails in every cut below
        failed = closed.union(value for value, kid in zip(values, kids, strict=True) if not kid.fits)
        # 3. keep the g cheapest; each closes the values of those before it
        ranked = sorted(
            (seen.order(kid), value, kid)
            for value, kid in zip(values, kids, strict=True)
            if kid.fits and (kid.clean or not settings.without_disassociation)
        )
        for at, (order, _, kid) in enumerate(ranked[: settings.g]):
            heapq.heappush(queue, (order, kid, failed.union(value for _, value, _ in ranked[: at + 1])))
        if settings.queue_limit is not None and len(queue) > settings.queue_limit:
            queue = heapq.nsmallest(settings.queue_limit, queue)  # a sorted list is a heap


def partial_beam_cuts(seen: Seen, start: Solution, closed: Closed) -> None:
    """The beam over full cuts, then over partial ones below the best of them.

    A beam over partial cuts alone follows many small gains, and ended above the best full cut in 5 of 15 settings measured.
    Guarantee: no solution is taken that loses more than the best full cut, neither by the cost of the search nor, if that is
    RPD_a, by RPD, of which RPD_a is an estimate.
    """
    beam_cuts(seen, start, closed, whole=True)
    if seen.best is not None and seen.settings.cost == "rpd_a":
        (seen.most_rpd,) = seen.judge.rpd([seen.best])
    beam_cuts(seen, seen.best or start, closed)


def beam_cuts(seen: Seen, start: Solution, closed: Closed, whole: bool = False) -> None:
    """Of each generation, the `width` cheapest cuts over all parents; values are closed by failed ValueChecks only.

    whole: a value is specialized to all its children, or not at all, also where cuts are partial.
    """
    forest, width = seen.forest, seen.settings.width
    none: frozenset[int] = frozenset()
    met = {none}  # the values that were specialized on the way to a cut; of a partial cut, in any order
    generation: list[tuple[Solution, Closed, frozenset[int]]] = [(start, closed, none)]
    while generation:
        # 1. all specializations of the generation that were not judged before, in one batch
        wanted: list[tuple[int, int]] = []
        for at, (cut, closed, done) in enumerate(generation):
            for value in _open(forest, cut, closed | done):
                if done | {value} not in met:
                    met.add(done | {value})
                    wanted.append((at, value))
        kids = seen.judged([Step(generation[at][0].cut, value, generation[at][0].clean, whole) for at, value in wanted])
        seen.pops += len(generation)
        # 2. values that fail below a cut fail below all its kids
        failed = [set(closed) for _, closed, _ in generation]
        for (at, value), kid in zip(wanted, kids, strict=True):
            if not kid.fits:
                failed[at].add(value)
        # 3. the cheapest are the next generation
        ranked = sorted((seen.order(kid), at, value, kid) for (at, value), kid in zip(wanted, kids, strict=True) if kid.fits)
        generation = [
            (kid, frozenset(failed[at]), generation[at][2] | {value}) for _, at, value, kid in ranked[:width]
        ]


def _open(forest: Forest, cut: Solution, closed: Closed) -> list[int]:
    """The values of a cut that may be specialized, in order."""
    return [value for value in cut.cut if value not in closed and forest.can_specialize(value)]
