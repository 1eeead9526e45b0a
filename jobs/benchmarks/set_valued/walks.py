"""Closed walks beside the walks that visit nobody twice (WMC), with and without a memory of dead ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from statistics import mean

from anon_spark.errors import LimitExceeded
from anon_spark.families.set_valued.block import BLOCK_RECORDS
from anon_spark.families.set_valued.kernels.graphs import Graph, ring_graph
from anon_spark.families.set_valued.kernels.walks import Rounds, disjoint_rounds, wmc_rounds
from jobs.benchmarks.census_runs import timed
from jobs.markdown import table

CASES = ((1_000, 4), (1_000, 16), (3_196, 16))  # records of a ring, k
KEYS = ("first", "second", "third")  # of the draws, one repetition each
BUDGET = 20_000_000
PURPOSE = "benchmark"
CLOSED, MARKED, FORGETFUL = "closed walk", "WMC with dead marks", "WMC without"
RING_GROWTH = (3_196, 4 * 3_196, 16 * 3_196)
CLAIMED = 10  # "almost 10 times faster"

Walk = Callable[[Graph, str], Rounds]


@dataclass(frozen=True)
class Walked:
    """All rounds of one ring, several times over: steps and seconds of the repetitions that ended, seconds of those that
    did not end within the budget."""

    steps: Sequence[int]
    seconds: Sequence[float]
    given_up: Sequence[float]
    budget: int

    @property
    def finished(self) -> bool:
        return not self.given_up

    @property
    def least_seconds(self) -> float:
        """Of the fastest repetition; where some did not end, the mean of all, which is too little."""
        return mean([*self.seconds, *self.given_up]) if self.given_up else min(self.seconds)

    @property
    def mean_steps(self) -> float:
        """Over all repetitions; those that did not end count with the budget, which is too few."""
        return mean([*self.steps, *([self.budget] * len(self.given_up))])

    @property
    def cells(self) -> list[str]:
        if not self.given_up:
            return [f"{self.mean_steps:,.0f}", f"{self.least_seconds:.3f}"]
        tried = len(self.steps) + len(self.given_up)
        ended = f", the others {mean(self.steps):,.0f}" if self.steps else ""
        return [
            f"**did not finish** {self.budget:,} steps in {len(self.given_up)} of {tried}{ended}",
            f"> {max(self.given_up):.1f}",
        ]


def walked(graph: Graph, walk: Walk, keys: Sequence[str] = KEYS, budget: int = BUDGET) -> Walked:
    """Repeat with other draws. Seconds include those of the random words."""
    steps, seconds, given_up = list[int](), list[float](), list[float]()
    for key in keys:

        def attempt(key: str = key) -> Rounds | None:
            try:
                return walk(graph, key)
            except LimitExceeded:
                return None

        took, rounds = timed(attempt)
        if rounds is None:
            given_up.append(took)
        else:
            steps.append(rounds.steps)
            seconds.append(took)
    return Walked(steps, seconds, given_up, budget)


def ways(budget: int = BUDGET) -> dict[str, Walk]:
    return {
        CLOSED: lambda graph, key: disjoint_rounds(graph, key, PURPOSE, 0),
        MARKED: lambda graph, key: wmc_rounds(graph, key, PURPOSE, 0),
        FORGETFUL: lambda graph, key: wmc_rounds(graph, key, PURPOSE, 0, dead_marks=False, budget=budget),
    }


def compared(records: int, k: int, budget: int = BUDGET) -> dict[str, Walked]:
    """The three walks on one ring."""
    graph, small = ring_graph(records, k), ring_graph(20, 3)
    found = {}
    for name, walk in ways(budget).items():
        walked(small, walk)  # compiles
        found[name] = walked(graph, walk, budget=budget)
    return found


def walks_text(found: Mapping[tuple[int, int], Mapping[str, Walked]]) -> str:
    """Steps and seconds of each ring."""
    head = ["records", "k", "edges"] + [f"{name}: {what}" for name in ways() for what in ("steps", "seconds")]
    rows = [
        [f"{n:,}", str(k), f"{n * k:,}", *(cell for name in ways() for cell in walks[name].cells)]
        for (n, k), walks in found.items()
    ]
    told = [
        f"n = {n:,}, k = {k}: {speed(walks[MARKED], walks[CLOSED])} of the WMC that remembers dead ends, "
        f"{speed(walks[FORGETFUL], walks[CLOSED])} of the one that does not"
        for (n, k), walks in found.items()
    ]
    return "\n\n".join(
        [table(head, rows), "Seconds of the other walk by those of the closed one: " + "; ".join(told) + "."]
    )


def speed(other: Walked, closed: Walked) -> str:
    ratio = f"{other.least_seconds / closed.least_seconds:.1f}×"
    return ratio if other.finished else f"more than {ratio}"


def ring_growth(sizes: Sequence[int] = RING_GROWTH, k: int = 16, block: int | None = None) -> dict[int, float]:
    """Steps of closed walks by records: in one ring, or in rings of about `block` records each."""
    found = {}
    for records in sizes:
        rings = 1 if block is None else max(1, records // block)
        borders = [records * number // rings for number in range(rings + 1)]
        found[records] = float(
            sum(
                disjoint_rounds(ring_graph(last - first, k), KEYS[0], PURPOSE, number).steps
                for number, (first, last) in enumerate(pairwise(borders))
            )
        )
    return found


def exponent(found: Mapping[int, float]) -> float:
    """Of what grows with records, from the fewest to the most."""
    first, last = min(found), max(found)
    return log(found[last] / found[first]) / log(last / first)


def ring_growth_text(k: int = 16) -> str:
    """Steps per edge as rings grow, and as only their number does."""
    told = []
    for name, block in (("one ring", None), ("blocks, as the family walks", BLOCK_RECORDS)):
        found = ring_growth(k=k, block=block)
        shown = ", ".join(f"n = {n:,}: {steps / (n * k):.1f}" for n, steps in found.items())
        told.append(f"in {name}: {shown}, exponent of the steps {exponent(found):.2f}")
    return f"Closed walks of k = {k}, steps per edge " + "; ".join(told) + "."
