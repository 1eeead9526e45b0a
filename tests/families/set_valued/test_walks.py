"""Disjoint assignments by random walks: against brute force with the same random words, and by what they must fulfil."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.errors import AnonSparkError, LimitExceeded
from anon_spark.families.set_valued.kernels.graphs import Graph, groups_graph, ring_graph
from anon_spark.families.set_valued.kernels.walks import (
    BACKTRACKING,
    CLOSED,
    FORGETFUL,
    LAST_WORD,
    MORE_WORDS,
    NO_LIMIT,
    Rounds,
    Walks,
    assignment,
    backtracking_walk,
    closed_walk,
    disjoint_rounds,
    pick,
    rounds_by,
    shift_rounds,
    walks_of,
    wmc_rounds,
)
from anon_spark.kernels.bitmaps import Words
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.randomness import stream, uniform
from tests.oracle import nonreciprocal_oracle as oracle

pytestmark = pytest.mark.compiles

WALKERS: dict[int, Callable[..., oracle.Walk]] = {
    CLOSED: oracle.closed_walk,
    BACKTRACKING: oracle.wmc_walk,
    FORGETFUL: partial(oracle.wmc_walk, dead_marks=False),
}
METHODS: list[Callable[[Graph, str, str, int], Rounds]] = [disjoint_rounds, wmc_rounds]


def graph_of(posts: Sequence[Sequence[int]], part: Sequence[int] | None = None) -> Graph:
    """Slots of each original ascending, as brute force has them."""
    offsets = np.cumsum([0, *map(len, posts)])
    slots = np.array([slot for post in posts for slot in sorted(post)], dtype=np.int32)
    return Graph(offsets, slots, np.array(part or [0] * len(posts), dtype=np.int32))


def posts_of(graph: Graph) -> list[list[int]]:
    return [slots.tolist() for slots in np.split(graph.slots, graph.offsets[1:-1])]


def assignments_of(graph: Graph, rounds: Rounds, degree: int) -> list[list[int]]:
    """All assignments of a graph of one part."""
    return [assignment(graph, rounds.round_of_edge, np.array([chosen])).tolist() for chosen in range(degree)]


@st.composite
def regular_posts(draw: st.DrawFn, most: int = 9) -> list[list[int]]:
    """Any set of offsets on a ring whose originals and slots are numbered at random."""
    n = draw(st.integers(1, most))
    offsets = draw(st.sets(st.integers(0, n - 1), min_size=1))
    originals, slots = draw(st.permutations(range(n))), draw(st.permutations(range(n)))
    return [[slots[(at + offset) % n] for offset in offsets] for at in originals]


@st.composite
def graphs_in_parts(draw: st.DrawFn) -> tuple[Graph, list[list[int]]]:
    """Several regular graphs side by side, their records mixed; and the records of each."""
    parts = draw(st.lists(regular_posts(), min_size=1, max_size=4))
    n = sum(map(len, parts))
    numbers = draw(st.permutations(range(n)))
    posts, part, members, begin = [[0]] * n, [0] * n, list[list[int]](), 0
    for number, found in enumerate(parts):
        own = numbers[begin : begin + len(found)]
        begin += len(found)
        for original, post in zip(own, found, strict=True):
            posts[original], part[original] = [own[slot] for slot in post], number
        members.append(own)
    return graph_of(posts, part), members


# --- against brute force ---------------------------------------------------------------------------------------------


class Mirror:
    """Brute force with the kernel's random words: the same starts, the same choices."""

    def __init__(self, words: Words, walker: Callable[..., oracle.Walk]) -> None:
        self.words, self.walker, self.waiting = iter(words.tolist()), walker, list[int]()

    def number(self, bound: int) -> int:
        return next(self.words) % bound if bound > 1 else 0

    def choice(self, waiting: Sequence[int]) -> int:
        self.waiting = self.waiting or list(waiting)
        assert sorted(self.waiting) == list(waiting)
        return self.waiting[self.number(len(self.waiting))]

    def walk(self, available: oracle.Graph, held: list[int], first: int, _: oracle.Choose) -> oracle.Walk:
        walk: oracle.Walk = self.walker(available, held, first, lambda cand: cand[self.number(len(cand))])
        for slot in oracle.erase_loops(walk.slots)[:-1]:
            original = held.index(slot)
            if original in self.waiting:  # the last one takes its place
                self.waiting[self.waiting.index(original)] = self.waiting[-1]
                self.waiting.pop()
        return walk


@pytest.mark.parametrize("walk", WALKERS)
@given(regular_posts(), st.text(max_size=3))
def test_walks_are_those_of_brute_force(walk: int, posts: list[list[int]], key: str) -> None:
    graph = graph_of(posts)
    mirror = Mirror(stream(key, "walk", 7, 5000), WALKERS[walk])
    truth = oracle.disjoint_assignments(posts, mirror, mirror.walk)  # type: ignore[arg-type]
    rounds = rounds_by(walk, graph, key, "walk", 7, NO_LIMIT, 5000)
    assert assignments_of(graph, rounds, len(posts[0])) == truth.assignments
    assert rounds.steps == truth.steps


def cycle_of(state: Walks, start: int) -> list[int]:
    cycle = [start, int(state.child[start])]
    while cycle[-1] != start:
        cycle.append(int(state.child[cycle[-1]]))
    return cycle


FIGURE_3 = [[2, 3], [0, 2], [1, 4], [4, 1], [0, 3]]


def words_of(*choices: int) -> Words:
    """The place of each chosen candidate by slot, where there is more than one."""
    return np.array(choices, dtype=np.uint64)


def test_figure_3() -> None:
    state = walks_of(graph_of(FIGURE_3))
    assert closed_walk(state, 3, 1, words_of(1, 0, 0, 0), 0) == (6, 4)  # r5, r1, r3, (r2,) r1 again, (r4)
    assert cycle_of(state, 3) == [3, 4, 0, 3]
    assert closed_walk(state, 3, 2, words_of(9, 1, 0, 0, 1), 1) == (7, 5)  # r2 goes on to r3: more is erased
    assert cycle_of(state, 3) == [3, 4, 3]
    for walk in BACKTRACKING, FORGETFUL:
        state = walks_of(graph_of(FIGURE_3))
        assert backtracking_walk(state, 3, 1, 0, walk, 100, words_of(1, 0, 0), 0) == (7, 3)
        assert cycle_of(state, 3) == [3, 4, 0, 3]


def test_only_the_start_may_keep_its_slot() -> None:
    graph = graph_of([[*post, own] for own, post in enumerate(FIGURE_3)])
    assert backtracking_walk(walks_of(graph), 3, 1, 0, BACKTRACKING, 9, words_of(1), 0) == (1, 1)
    state = walks_of(graph)
    assert closed_walk(state, 3, 1, words_of(1), 0) == (1, 1)
    assert cycle_of(state, 3) == [3, 3]
    assert closed_walk(state, 3, 2, words_of(2, 0, 0, 0), 0) == (6, 4)  # but no one on the way


# --- what rounds must fulfil -------------------------------------------------------------------------------------------


def check_rounds(graph: Graph, rounds: Rounds, members: Sequence[Sequence[int]]) -> None:
    """In every part, its rounds are disjoint bijections that together have all its edges."""
    posts = posts_of(graph)
    by_edge = [found.tolist() for found in np.split(rounds.round_of_edge, graph.offsets[1:-1])]
    for own in members:
        place = {record: at for at, record in enumerate(own)}
        inner = [[place[slot] for slot in posts[record]] for record in own]
        found = [dict(zip(by_edge[record], post, strict=True)) for record, post in zip(own, inner, strict=True)]
        degree = len(inner[0])
        assert all(sorted(slots) == list(range(degree)) for slots in found)
        assert oracle.are_partition([[slots[chosen] for slots in found] for chosen in range(degree)], inner)
    assert rounds.steps >= graph.slots.size


@pytest.mark.parametrize("method", METHODS)
@given(graphs_in_parts(), st.text(max_size=3))
def test_rounds_part_the_edges(
    method: Callable[[Graph, str, str, int], Rounds], case: tuple[Graph, list[list[int]]], key: str
) -> None:
    graph, members = case
    check_rounds(graph, method(graph, key, "walk", 0), members)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 1), (5, 5), (7, 4), (40, 3), (300, 12)])
def test_rings(method: Callable[[Graph, str, str, int], Rounds], n: int, k: int) -> None:
    graph = ring_graph(n, k)
    check_rounds(graph, method(graph, "key", "walk", n), [range(n)])


def test_groups_have_as_many_rounds_as_records() -> None:
    sizes = np.array([4, 7, 5, 1])
    graph = groups_graph(sizes)
    members = [range(4), range(4, 11), range(11, 16), range(16, 17)]
    rounds = disjoint_rounds(graph, "key", "walk", 0)
    check_rounds(graph, rounds, members)
    slots = assignment(graph, rounds.round_of_edge, np.array([3, 6, 0, 0]))
    assert all(sorted(slots[list(own)]) == list(own) for own in members)
    with pytest.raises(AnonSparkError, match="13 slots for 17 records"):
        assignment(graph, rounds.round_of_edge, np.array([4, 6, 0, 0]))


def test_shifts() -> None:
    graph, rounds = ring_graph(9, 4), shift_rounds(9, 4)
    assert assignments_of(graph, rounds, 4) == oracle.shifts(9, 4)


@pytest.mark.parametrize(
    "graph",
    [
        graph_of([[0, 1], [1, 2], [2, 1]]),
        graph_of([[0, 1], [1], [0]]),
        graph_of([[0, 0], [1, 1]]),
        graph_of([[0, 1], [1, 2], [2, 3], [3, 0]], [0, 0, 1, 1]),
        ring_graph(2, 3),
    ],
    ids=["slots", "originals", "twice", "parts", "small"],
)
def test_other_graphs_are_refused(graph: Graph) -> None:
    with pytest.raises(AnonSparkError, match="not regular"):
        disjoint_rounds(graph, "key", "walk", 0)


# --- chance ------------------------------------------------------------------------------------------------------------

RUNS, RECORDS, DEGREE = 6000, 8, 3


def is_uniform(chosen: Sequence[Sequence[int]]) -> bool:
    """Every edge of the ring within 4.5 standard deviations of one in `DEGREE`."""
    slots = np.array(chosen)
    share = np.array([np.mean((slots - np.arange(RECORDS)) % RECORDS == offset, axis=0) for offset in range(DEGREE)])
    deviation = np.sqrt((DEGREE - 1) / DEGREE**2 / len(chosen))
    return bool((np.abs(share - 1 / DEGREE) <= 4.5 * deviation).all())


def published(choice: Callable[[int], Ints]) -> list[list[int]]:
    graph = ring_graph(RECORDS, DEGREE)
    rounds = [disjoint_rounds(graph, "chance", "walk", run) for run in range(RUNS)]
    return [assignment(graph, found.round_of_edge, choice(run)).tolist() for run, found in enumerate(rounds)]


def test_every_edge_is_as_likely() -> None:
    assert is_uniform(published(lambda run: uniform("chance", "choice", run, np.array([DEGREE]))))


def test_the_first_assignment_alone_is_not_uniform() -> None:
    assert not is_uniform(published(lambda _: np.array([0])))


def test_uniform_matchings_are_not_uniform() -> None:
    matchings = list(oracle.perfect_matchings(oracle.ring_graph(RECORDS, DEGREE)))
    drawn = uniform("chance", "matching", 0, np.full(RUNS, len(matchings)))
    assert not is_uniform([matchings[at] for at in drawn])


@given(regular_posts(), st.integers(1, 40), st.integers(1, 400))
def test_the_number_of_words_tried_first_does_not_matter(posts: list[list[int]], few: int, many: int) -> None:
    graph = graph_of(posts)
    found = [rounds_by(CLOSED, graph, "key", "walk", 3, NO_LIMIT, count) for count in (few, many)]
    assert found[0].steps == found[1].steps
    assert (found[0].round_of_edge == found[1].round_of_edge).all()


def test_key_purpose_and_block_change_the_rounds() -> None:
    graph = ring_graph(50, 4)
    draws = [("key", "walk", 0), ("other", "walk", 0), ("key", "attack", 0), ("key", "walk", 1), ("key", "walk", 0)]
    found = [disjoint_rounds(graph, *draw).round_of_edge.tolist() for draw in draws]
    assert found[0] == found[-1]
    assert len({tuple(rounds) for rounds in found}) == 4


def test_picks() -> None:
    """2^64 = 1 modulo 3: the last word would favour 0."""
    last = int(LAST_WORD)
    assert pick(words_of(last, 5), 0, 3) == (2, 2)
    assert pick(words_of(last - 1, 5), 0, 3) == (2, 1)
    assert pick(words_of(last, 5), 0, 4) == (3, 1)
    assert pick(words_of(last), 0, 3)[0] == pick(words_of(), 0, 2)[0] == MORE_WORDS
    assert pick(words_of(), 0, 1) == (0, 0)


# --- cost --------------------------------------------------------------------------------------------------------------


def test_steps_for_each_edge_are_few() -> None:
    graph = ring_graph(1000, 4)
    assert all(2 <= method(graph, "key", "walk", 0).steps / 4000 <= 6 for method in METHODS)


def test_walks_that_forget_dead_ends_exceed_their_budget() -> None:
    graph = ring_graph(500, 4)
    with pytest.raises(LimitExceeded, match="2000 edges did not end within 200000 steps"):
        wmc_rounds(graph, "key", "walk", 0, dead_marks=False, budget=200_000)
    steps = wmc_rounds(graph, "key", "walk", 0).steps
    assert wmc_rounds(graph, "key", "walk", 0, budget=steps).steps == steps
    with pytest.raises(LimitExceeded):
        wmc_rounds(graph, "key", "walk", 0, budget=steps - 1)
