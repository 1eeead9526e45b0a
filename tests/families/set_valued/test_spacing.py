"""Rings with labels apart, strides, and the paper's greedy graph: against brute force and by what they must fulfil."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.set_valued.kernels import spacing
from anon_spark.families.set_valued.kernels.graphs import Graph, ring_graph
from anon_spark.families.set_valued.kernels.greedy_graph import Greedy, allowed_matching, greedy_graph, greedy_round
from anon_spark.families.set_valued.kernels.spacing import (
    SHIFT,
    SPACED,
    eligible,
    largest_l,
    left_over,
    spaced_ring,
    spaced_ring_of,
    stride_graph,
    stride_order,
)
from anon_spark.families.set_valued.kernels.walks import assignment, disjoint_rounds, shift_rounds
from anon_spark.kernels.bitmaps import Sets, sets_of, taken
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.randomness import stream
from tests.oracle import nonreciprocal_oracle as oracle

pytestmark = pytest.mark.compiles

FACTORS = [SPACED, SHIFT]
SEEDS = st.integers(0, 2**32).map(Random)


class Block(NamedTuple):
    records: list[oracle.Record]
    labels: list[int]
    order: list[int]

    @property
    def arrays(self) -> tuple[Sets, Ints, Codes]:
        items = [sorted(record) for record in self.records]
        codes = np.array([item for record in items for item in record], dtype=np.int64)
        return (
            sets_of(np.cumsum([0, *map(len, items)]), codes),
            np.array(self.order),
            np.array(self.labels, dtype=np.int32),
        )


def block(random: Random, n: int, kinds: int, universe: int, share: float) -> Block:
    """Records of about `share` of the items; label 0 is the most frequent."""
    records = [frozenset(at for at in range(1, universe + 1) if random.random() < share) for _ in range(n)]
    labels = random.choices(range(kinds), [1 / (label + 3) for label in range(kinds)], k=n)
    return Block(records, labels, oracle.gray_order(records, universe))


def tight(random: Random, n: int, g: int) -> Block:
    """One or two labels as often as n records with spacing g allow, the others twice, so that rings are hard to close."""
    most, full = n // g, random.randint(1, 2)
    rest = [full + at // min(2, most) for at in range(n - full * most)]
    labels = random.sample([at // most for at in range(full * most)] + rest, n)
    return block(random, n, 2, 8, 0.4)._replace(labels=labels)


# --- rings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("universe", [6, 300])
@given(SEEDS, st.integers(1, 4), st.integers(6, 26), st.integers(4, 20))
def test_rings_are_those_of_brute_force(
    factor: int,
    universe: int,
    random: Random,
    l: int,  # noqa: E741
    n: int,
    kinds: int,
) -> None:
    """Narrow bitmaps are compared by words, wide ones of few items by items."""
    case = block(random, n, kinds, universe, 3 / universe)
    g, start = factor * (l - 1) + 1, random.randrange(n)
    found = spaced_ring(*case.arrays, l, g, start)
    if not oracle.eligible(case.labels, g):
        assert found is None
        return
    truth = oracle.spaced_ring(case.records, case.order, case.labels, l, g, start)
    assert (None if found is None else found.tolist()) == truth


def test_tight_rings_are_repaired_as_by_brute_force() -> None:
    """Rings that close at once, that need repair, and that stay stuck: all of them happen."""
    random, outcomes = Random(5), Counter[str]()
    for _ in range(150):
        l, factor = random.choice([2, 3, 4]), random.choice(FACTORS)  # noqa: E741
        g = factor * (l - 1) + 1
        n = random.randint(2 * g, 4 * g)
        case = tight(random, n, g)
        sets, order, labels = case.arrays
        truth = oracle.spaced_ring(case.records, case.order, case.labels, l, g, start=0)
        found = spaced_ring(sets, order, labels, l, g, 0)
        assert (None if found is None else found.tolist()) == truth
        at_once = oracle.spaced_ring(case.records, case.order, case.labels, l, g, 0, repair=False)
        outcomes["stuck" if found is None else "repaired" if at_once is None else "at once"] += 1
        assert found is None or oracle.is_spaced(found.tolist(), labels.tolist(), g)
    assert min(outcomes[kind] for kind in ("stuck", "repaired", "at once")) >= 5, outcomes


@given(SEEDS, st.integers(1, 30), st.integers(1, 6))
def test_left_overs_go_label_by_label(random: Random, n: int, kinds: int) -> None:
    """Labels with most left first, then those that come first in the order; inside a label as in the order."""
    case = block(random, n, kinds, 6, 0.5)
    _, order, labels = case.arrays
    kept = random.sample(range(n), random.randrange(n))
    left = [at for at in case.order if at not in kept]
    count = Counter(case.labels[at] for at in left)
    first = {label: next(place for place, at in enumerate(left) if case.labels[at] == label) for label in count}
    truth = sorted(left, key=lambda at: (-count[case.labels[at]], first[case.labels[at]], left.index(at)))
    assert left_over(np.array(kept, dtype=np.int64), order, labels).tolist() == truth


@given(SEEDS, st.integers(2, 4), st.sampled_from(FACTORS), st.integers(0, 9))
def test_rings_of_many_labels_are_spaced(random: Random, l: int, factor: int, draw: int) -> None:  # noqa: E741
    """Slack n / (g · c_max) of 1.6 and more: no failure."""
    case = block(random, 150, 60, 20, 0.3)
    sets, order, labels = case.arrays
    g = factor * (l - 1) + 1
    ring = spaced_ring_of(sets, order, labels, l, g, "key", draw)
    if max(Counter(case.labels).values()) * g * 1.6 <= 150:
        assert ring is not None
    if ring is not None:
        assert sorted(ring) == list(range(150))
        assert oracle.is_spaced(ring.tolist(), case.labels, g)


def test_the_start_is_drawn_and_others_follow_when_stuck() -> None:
    case = block(Random(3), 60, 40, 12, 0.3)
    rings = [spaced_ring_of(*case.arrays, 2, 3, key, number) for key in ("one", "two") for number in range(20)]
    starts = {int(ring[0]) for ring in rings if ring is not None}
    assert len(starts) > 15
    again = spaced_ring_of(*case.arrays, 2, 3, "one", 0)
    assert again is not None and rings[0] is not None and again.tolist() == rings[0].tolist()

    random, rescued = Random(6), 0
    for number in range(150):
        case = tight(random, 30, 7)
        ring = spaced_ring_of(*case.arrays, 4, 7, "key", number)
        alone = [spaced_ring(*case.arrays, 4, 7, start) for start in range(30)]
        if ring is None:
            assert sum(found is None for found in alone) >= 6  # all that were tried, and they were different
        elif any(found is None for found in alone):
            rescued += 1
            assert any(found is not None and (found == ring).all() for found in alone)
    assert rescued >= 5


def test_six_different_starts_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    case = block(Random(4), 8, 2, 6, 0.4)._replace(labels=list(range(8)))
    tried = list[int]()
    monkeypatch.setattr(spacing, "spaced_ring", lambda *given: tried.append(given[-1]))  # None: stuck
    for number in range(30):
        tried.clear()
        assert spaced_ring_of(*case.arrays, 2, 3, "key", number) is None
        assert len(tried) == len(set(tried)) == 6


def shown_apart(graph: Graph, labels: Codes, slots: Codes, degree: int) -> bool:
    """Whether the labels moved by an assignment differ in the slots of every original."""
    shown = np.empty_like(labels)
    shown[slots] = labels
    seen = np.sort(shown[graph.slots].reshape(-1, degree), axis=1)
    return bool((seen[:, 1:] != seen[:, :-1]).all())


def test_spacing_is_what_keeps_published_labels_apart() -> None:
    """Any matching of the ring for 2l - 1, the shifts for l; other matchings for l collide."""
    case = block(Random(8), 120, 40, 20, 0.3)
    sets, order, labels = case.arrays
    apart = dict[tuple[int, bool], list[bool]]()
    for factor in FACTORS:
        ring = spaced_ring_of(sets, order, labels, 3, factor * 2 + 1, "key", 0)
        assert ring is not None
        graph, in_ring = ring_graph(120, 3), labels[ring]
        for walked in (True, False):
            rounds = disjoint_rounds(graph, "key", "walk", 0) if walked else shift_rounds(120, 3)
            taken = [assignment(graph, rounds.round_of_edge, np.array([chosen])) for chosen in range(3)]
            apart[factor, walked] = [shown_apart(graph, in_ring, slots, 3) for slots in taken]
    assert all(apart[SPACED, True] + apart[SPACED, False] + apart[SHIFT, False])
    assert not all(apart[SHIFT, True])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=14), st.integers(1, 6))
def test_eligible(labels: list[int], g: int) -> None:
    codes = np.array(labels, dtype=np.int32)
    assert eligible(codes, g) == oracle.eligible(labels, g)


@pytest.mark.parametrize("factor", FACTORS)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_the_largest_l(factor: int, labels: list[int]) -> None:
    fitting = [l for l in range(1, 50) if oracle.eligible(labels, 2 * l - 1 if factor == SPACED else l)]  # noqa: E741
    assert largest_l(np.bincount(labels), len(labels), factor) == max(fitting)


# --- strides -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "l"), [(12, 4), (25, 4), (300, 6), (301, 6), (7, 7), (5, 1)])
def test_strides_keep_labels_apart(n: int, l: int) -> None:  # noqa: E741
    """One label as often as allowed, the others in pairs."""
    most = n // l
    labels = Random(n).sample([0 if at < most else 1 + (at - most) // min(2, most) for at in range(n)], n)
    codes = np.array(labels, dtype=np.int32)
    order, graph, rounds = stride_order(codes, l), stride_graph(n, l), shift_rounds(n, l)
    for chosen, truth in enumerate(oracle.stride_assignments(labels, l)):
        slots = assignment(graph, rounds.round_of_edge, np.array([chosen]))
        assert dict(zip(order.tolist(), order[slots].tolist(), strict=True)) == dict(enumerate(truth))
        assert shown_apart(graph, codes[order], slots, l)


def test_too_frequent_labels_are_refused() -> None:
    labels = np.array([0, 0, 0, 1, 2, 3, 4], dtype=np.int32)
    sets = sets_of(np.arange(8), np.arange(7))
    with pytest.raises(GuaranteeUnreachable, match="more than one of 3 records"):
        stride_order(labels, 3)
    with pytest.raises(GuaranteeUnreachable, match="more than one of 3 records"):
        greedy_graph(sets, labels, 3, "key", 0)
    assert spaced_ring_of(sets, np.arange(7), labels, 3, 3, "key", 0) is None


# --- the paper's graph -------------------------------------------------------------------------------------------------


def check_greedy(found: Greedy, labels: Sequence[int], l: int) -> None:  # noqa: E741
    posts = found.graph.slots.reshape(-1, l).tolist()
    assert oracle.is_regular(posts, l)
    assert oracle.colliding(posts, labels) == []
    assert all(sorted(slots) == list(range(len(labels))) for slots in zip(*posts, strict=True))
    assert [slots[0] for slots in posts] == list(range(len(labels)))  # rank distance 0 comes first


@given(SEEDS, st.integers(2, 4), st.integers(8, 40), st.integers(5, 20))
def test_greedy_graphs_are_regular_and_own_labels_differ(random: Random, l: int, n: int, kinds: int) -> None:  # noqa: E741
    case = block(random, n, kinds, 12, 0.3)
    sets, order, labels = case.arrays
    if eligible(labels, l):
        in_order = labels[order]
        found = greedy_graph(taken(sets, order), in_order, l, "key", 0)
        check_greedy(found, in_order.tolist(), l)
        again = greedy_graph(taken(sets, order), in_order, l, "key", 0)
        assert again.graph.slots.tolist() == found.graph.slots.tolist()


def test_tight_labels_need_matchings_restarts_and_strides() -> None:
    random, seen = Random(9), Counter[str]()
    for number in range(150):
        l = random.choice([3, 4, 5])  # noqa: E741
        case = tight(random, random.randint(2 * l, 6 * l), l)
        sets, _, labels = case.arrays
        found = greedy_graph(sets, labels, l, "key", number)
        if found.stride:
            posts = found.graph.slots.reshape(-1, l)
            assert posts.T.tolist() == oracle.stride_assignments(case.labels, l)
        check_greedy(found, case.labels, l)
        kinds = {"matched": found.matched > 0, "restarted": found.restarts > 0, "stride": found.stride}
        seen.update(kind for kind, happened in kinds.items() if happened)
    assert min(seen[kind] for kind in ("matched", "restarted", "stride")) >= 1, seen


class Mirror:
    """Brute force with the kernel's random words: the same starts."""

    def __init__(self, words: Sequence[int]) -> None:
        self.words, self.waiting = iter(words), list[int]()

    def choice(self, waiting: Sequence[int]) -> int:
        self.waiting = self.waiting or list(waiting)
        bound = len(self.waiting)
        return self.waiting[next(self.words) % bound if bound > 1 else 0]

    def taken(self, held: list[int], cycle: Sequence[int]) -> list[int]:
        for slot in cycle[:-1]:
            original = held.index(slot)
            if original in self.waiting:  # the last one takes its place
                self.waiting[self.waiting.index(original)] = self.waiting[-1]
                self.waiting.pop()
        return TAKEN(held, cycle)


TAKEN = oracle.taken


def test_greedy_rounds_and_matchings_are_those_of_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """Round after round the same assignment, or stuck where brute force is; a matching exactly where there is one."""
    random, seen = Random(11), Counter[str]()
    for number in range(120):
        l = random.choice([2, 3, 4])  # noqa: E741
        n = random.randint(2 * l, 18 * l)
        case = tight(random, n, l) if number % 2 else block(random, n, 9, 10, 0.3)
        sets, _, labels = case.arrays
        earlier = np.empty((n, 0), dtype=np.int32)
        for current in range(l):
            used = [set(slots) for slots in earlier.tolist()]
            mirror = Mirror(stream("key", f"round {current}", number, 2 * n).tolist())
            monkeypatch.setattr(oracle, "taken", mirror.taken)
            truth = oracle.greedy_round(case.records, case.labels, used, mirror)  # type: ignore[arg-type]
            held = greedy_round(sets, labels, earlier, "key", f"round {current}", number)
            assert (None if held is None else held.tolist()) == truth
            matched = allowed_matching(labels, earlier)
            exists = oracle.allowed_matching(case.labels, used) is not None
            assert (matched.min() >= 0) == exists
            if exists:
                assert sorted(matched) == list(range(n))
                assert all(labels[slot] not in labels[list(used[at])] for at, slot in enumerate(matched))
            seen["walked" if held is not None else "matched" if exists else "none"] += 1
            if held is None and not exists:
                break
            earlier = np.column_stack([earlier, held if held is not None else matched]).astype(np.int32)
    assert min(seen[kind] for kind in ("walked", "matched", "none")) >= 3, seen
