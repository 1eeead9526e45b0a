"""All disjoint assignments of a regular graph, found one after the other by random walks over unused edges.

A uniform choice among them gives every edge the same probability, because together they use each edge once. The first one
alone does not, nor does a perfect matching drawn uniformly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from anon_spark.arrays import each_once
from anon_spark.compiled import compiled, inner
from anon_spark.errors import AnonSparkError, LimitExceeded
from anon_spark.families.set_valued.kernels.graphs import Graph
from anon_spark.kernels.bitmaps import Words
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.randomness import stream, uniform

R = TypeVar("R")

CLOSED, BACKTRACKING, FORGETFUL = 0, 1, 2  # the walks: the paper's, its baseline with and without dead marks
WORDS_PER_EDGE = 16
MOST_STEPS = 20_000_000
MORE_WORDS = -1
NO_LIMIT = int(np.iinfo(np.int64).max)
LAST_WORD = np.uint64(np.iinfo(np.uint64).max)


class Rounds(NamedTuple):
    """The round of each edge, aligned with graph.slots: in a part of degree m, 0 … m - 1; and the steps of all walks."""

    round_of_edge: Codes
    steps: int


def disjoint_rounds(graph: Graph, key: str, purpose: str, block: int) -> Rounds:
    """Rounds by closed walks: each round is a perfect matching of its part, each edge is in one round.

    Cost: steps × degree; usually 1 to 15 steps for each edge, at most records² × degree.
    """
    return rounds_by(CLOSED, graph, key, purpose, block, NO_LIMIT, WORDS_PER_EDGE * graph.slots.size)


def wmc_rounds(
    graph: Graph, key: str, purpose: str, block: int, dead_marks: bool = True, budget: int = MOST_STEPS
) -> Rounds:
    """Rounds by walks that visit no record twice and turn back at dead ends: the baseline of comparisons.

    Without dead marks a walk may take exponentially many steps; more than `budget` in total raise.
    """
    walk = BACKTRACKING if dead_marks else FORGETFUL
    return rounds_by(walk, graph, key, purpose, block, budget, WORDS_PER_EDGE * graph.slots.size)


def rounds_by(walk: int, graph: Graph, key: str, purpose: str, block: int, budget: int, first_words: int) -> Rounds:
    """Rounds by one kind of walk; they do not depend on `first_words`."""
    require_regular(graph)

    def attempt(words: Words) -> Rounds | None:
        round_of_edge, steps = walked_rounds(graph, walk, budget, words)
        return None if steps == MORE_WORDS else Rounds(round_of_edge, steps)

    rounds = with_words(attempt, key, purpose, block, first_words)
    if rounds.steps > budget:
        raise LimitExceeded(f"Walks over {graph.slots.size} edges did not end within {budget} steps.", budget=budget)
    return rounds


def shift_rounds(records: int, degree: int) -> Rounds:
    """The rounds of a ring graph: round c moves every record c ranks ahead."""
    return Rounds(np.tile(np.arange(degree, dtype=np.int32), records), 0)


def permuted_rounds(graph: Graph, key: str, purpose: str, block: int) -> Rounds:
    """The rounds of groups: in round c every record is c slots, round its group, ahead of its place in a secret permutation.

    Guarantee: every permutation of a group has the same probability, so the assignment of any round is one of them, each equally
    likely. Cost: one exact draw per record.
    """
    first = np.flatnonzero(np.diff(graph.part, prepend=-1))
    sizes = np.diff(graph.offsets)
    rank = np.arange(graph.part.size) - first[graph.part]
    places = permutations(uniform(key, purpose, block, sizes - rank), first, sizes[first])
    ahead = graph.slots - np.repeat(first[graph.part] + places, sizes)
    return Rounds((ahead % np.repeat(sizes, sizes)).astype(np.int32), 0)


@compiled
def permutations(drawn: Ints, first: Ints, sizes: Ints) -> Ints:
    """One permutation of 0 … size - 1 per group; drawn[p]: which of the places that are left the record p gets."""
    places = np.empty(drawn.size, dtype=np.int64)
    for group in range(first.size):
        start, size = first[group], sizes[group]
        for at in range(size):
            places[start + at] = at
        for at in range(size):
            other = start + at + drawn[start + at]
            places[start + at], places[other] = places[other], places[start + at]
    return places


def assignment(graph: Graph, round_of_edge: Codes, chosen: Ints) -> Codes:
    """The slot of each original if part p takes round chosen[p]."""
    taken = round_of_edge == np.repeat(chosen[graph.part], np.diff(graph.offsets))
    slots: Codes = graph.slots[taken]
    if slots.size != graph.part.size:
        raise AnonSparkError(f"A chosen round is none of its part: {slots.size} slots for {graph.part.size} records.")
    return slots


def require_regular(graph: Graph) -> None:
    """Raise unless each part is regular: equal numbers of edges, no edge twice, no edge to another part."""
    degree = np.diff(graph.offsets)
    leaving = graph.part[graph.slots] != np.repeat(graph.part, degree)
    of_part = np.zeros(graph.part.max(initial=-1) + 1, dtype=np.int64)
    of_part[graph.part] = degree
    expected = of_part[graph.part]
    incoming = np.bincount(graph.slots, minlength=degree.size)
    twice = graph.slots.size - each_once(np.repeat(np.arange(degree.size), degree) * degree.size + graph.slots).size
    faults = int((degree != expected).sum() + (incoming != expected).sum() + leaving.sum()) + twice
    if faults:
        raise AnonSparkError(f"The graph is not regular: {faults} records, slots or edges deviate.", faults=faults)


def with_words(run: Callable[[Words], R | None], key: str, purpose: str, block: int, count: int) -> R:
    """The result of `run` with `count` random words, doubled as long as `run` returns None because they were too few."""
    while (result := run(stream(key, purpose, block, count))) is None:
        count = 2 * count + 1
    return result


@compiled
def pick(words: Words, used: int, bound: int) -> tuple[int, int]:
    """A uniform number below `bound`, and the number of words used so far; MORE_WORDS if they ran out.

    Uses no word if there is no choice.
    """
    if bound == 1:
        return 0, used
    size = np.uint64(bound)
    surplus = (LAST_WORD % size + np.uint64(1)) % size  # 2^64 modulo bound: words to reject
    while used < words.size:
        word = words[used]
        used += 1
        if word <= LAST_WORD - surplus:
            return int(np.int64(word % size)), used
    return MORE_WORDS, used


class Walks(NamedTuple):
    """State of the walks: the unused edges of original u are at offsets[u] … offsets[u] + unused[u] - 1.

    held and holder: the current slot of each original, and the reverse. child: the last exit of the walk from a slot. visited
    (by slot) and tried (by edge) hold the number of the last walk or visit, so nothing has to be cleared.
    """

    offsets: Ints
    slots: Codes
    edges: Ints
    unused: Ints
    held: Ints
    holder: Ints
    child: Ints
    visited: Ints
    tried: Ints


@compiled
def walks_of(graph: Graph) -> Walks:
    records, edges = graph.part.size, graph.slots.size
    return Walks(
        graph.offsets,
        graph.slots.copy(),
        np.arange(edges),
        graph.offsets[1:] - graph.offsets[:-1],
        np.arange(records),
        np.arange(records),
        np.zeros(records, dtype=np.int64),
        np.zeros(records, dtype=np.int64),
        np.zeros(edges, dtype=np.int64),
    )


@compiled
def walked_rounds(graph: Graph, walk: int, budget: int, words: Words) -> tuple[Codes, int]:
    """All rounds, each started from the identity, and the steps: MORE_WORDS if words ran out, above budget if that did."""
    state = walks_of(graph)
    records = state.held.size
    round_of_edge = np.empty(graph.slots.size, dtype=np.int32)
    waiting, place = np.empty(records, dtype=np.int64), np.empty(records, dtype=np.int64)
    rounds = 0 if records == 0 else state.unused.max()
    steps, used, number = 0, 0, 0
    for current in range(rounds):
        count = 0
        for original in range(records):
            state.held[original] = state.holder[original] = original
            place[original] = count if state.unused[original] > 0 else records
            if state.unused[original] > 0:
                waiting[count] = original
                count += 1
        while count > 0:
            at, used = pick(words, used, count)
            if at == MORE_WORDS:
                return round_of_edge, MORE_WORDS
            first = waiting[at]
            number += 1
            if walk == CLOSED:
                taken, used = closed_walk(state, first, number, words, used)
            else:
                taken, used = backtracking_walk(state, first, number, steps, walk, budget - steps, words, used)
            if taken == MORE_WORDS:
                return round_of_edge, MORE_WORDS
            steps += taken
            if steps > budget:
                return round_of_edge, steps
            count = take_cycle(state.held, state.holder, state.child, first, waiting, place, count)
        use_up(state, round_of_edge, current)
    return round_of_edge, steps


@compiled
def closed_walk(state: Walks, first: int, number: int, words: Words, used: int) -> tuple[int, int]:
    """Closed walk from the slot of `first` along edges not yet walked, preferring slots not yet visited.

    The start never counts as visited. A regular graph never blocks the walk. Leaves its last exits in `child`; returns the
    steps and the number of words used.
    """
    start = state.held[first]
    fresh, again = np.empty(state.unused[first], dtype=np.int64), np.empty(state.unused[first], dtype=np.int64)
    here, original, steps = start, first, 0
    while True:
        fresh_count, again_count = 0, 0
        begin = state.offsets[original]
        for at in range(begin, begin + state.unused[original]):
            slot = state.slots[at]
            # the slot that the original holds leads nowhere, unless it is the start
            if state.tried[at] == number or (slot == here and original != first):
                continue
            if state.visited[slot] != number:
                fresh[fresh_count] = at
                fresh_count += 1
            else:
                again[again_count] = at
                again_count += 1
        chosen, used = pick(words, used, fresh_count if fresh_count > 0 else again_count)
        if chosen == MORE_WORDS:
            return MORE_WORDS, used
        edge = fresh[chosen] if fresh_count > 0 else again[chosen]
        steps += 1
        state.tried[edge] = number
        state.child[here] = state.slots[edge]
        here = np.int64(state.slots[edge])
        if here == start:
            return steps, used
        state.visited[here] = number
        original = state.holder[here]


@compiled
def backtracking_walk(
    state: Walks, first: int, number: int, visits: int, walk: int, budget: int, words: Words, used: int
) -> tuple[int, int]:
    """Walk from the slot of `first` to unvisited slots until it returns; at a dead end it steps back and tries another edge.

    BACKTRACKING never returns to a slot that was left; FORGETFUL does. `visits` is any number not below the steps of
    earlier walks. Leaves the cycle in `child`; returns the steps, those back included, and the number of words used.
    """
    start = state.held[first]
    path, visit = np.empty(state.held.size, dtype=np.int64), np.empty(state.held.size, dtype=np.int64)
    fresh = np.empty(state.unused[first], dtype=np.int64)
    path[0], visit[0] = start, visits + 1
    depth, steps = 0, 0
    while steps < budget:
        here = path[depth]
        original = state.holder[here]
        count = 0
        begin = state.offsets[original]
        for at in range(begin, begin + state.unused[original]):
            slot = state.slots[at]
            if state.tried[at] == visit[depth] or (slot == here and original != first):
                continue
            if state.visited[slot] != number:
                fresh[count] = at
                count += 1
        steps += 1
        if count == 0:
            if walk == FORGETFUL:
                state.visited[here] = 0
            depth -= 1
            continue
        chosen, used = pick(words, used, count)
        if chosen == MORE_WORDS:
            return MORE_WORDS, used
        edge = fresh[chosen]
        state.tried[edge] = visit[depth]
        state.child[here] = state.slots[edge]
        if state.slots[edge] == start:
            return steps, used
        depth += 1
        path[depth], visit[depth] = state.slots[edge], visits + 1 + steps
        state.visited[path[depth]] = number
    return steps + 1, used


@inner
def take_cycle(held: Ints, holder: Ints, child: Ints, first: int, waiting: Ints, place: Ints, count: int) -> int:
    """Move the originals on the cycle of last exits to their next slots; returns how many originals still wait.

    Only the last exit of a slot counts, so detours of the walk drop out.
    """
    start = held[first]
    here, original, slot = start, first, np.int64(-1)
    while slot != start:
        slot = child[here]
        following = holder[slot]
        held[original], holder[slot] = slot, original
        at = place[original]
        if at < count:
            count -= 1
            last = waiting[count]
            waiting[at], waiting[count] = last, original
            place[last], place[original] = at, count
        here, original = slot, following
    return int(count)


@inner
def use_up(state: Walks, round_of_edge: Codes, current: int) -> None:
    """Record the round of the edges now held and remove them; the other edges keep their order."""
    for original in range(state.held.size):
        if state.unused[original] == 0:
            continue
        begin = state.offsets[original]
        last = begin + state.unused[original] - 1
        at = begin
        while state.slots[at] != state.held[original]:
            at += 1
        round_of_edge[state.edges[at]] = current
        while at < last:
            state.slots[at], state.edges[at] = state.slots[at + 1], state.edges[at + 1]
            at += 1
        state.unused[original] -= 1
