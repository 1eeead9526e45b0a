"""Segments, blocks, tours, window orders, fields, draws of the family set_valued against brute force: arrays, no Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.families.set_valued.kernels import windows
from anon_spark.families.set_valued.kernels.graphs import (
    Graph,
    error_rate,
    flips_by_edge,
    groups_graph,
    originals_by_slot,
    published_fields,
    ring_graph,
)
from anon_spark.families.set_valued.kernels.segments import (
    block_starts,
    eligible_starts,
    segment_starts,
    steps_between,
)
from anon_spark.families.set_valued.kernels.tours import tours
from anon_spark.families.set_valued.kernels.windows import improved_ring, window_neighbours
from anon_spark.kernels import randomness
from anon_spark.kernels.bitmaps import Sets, bitmaps, columns_of, in_common, items_of, sets_of, steps_along, taken
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.gray import gray_keys
from anon_spark.kernels.randomness import stream, uniform
from anon_spark.primitives.blocks import merged_with
from anon_spark.primitives.tasks import number_lists
from tests.oracle import nonreciprocal_oracle as oracle

pytestmark = pytest.mark.compiles

Record = frozenset[int]
SEEDS = st.integers(0, 2**32).map(Random)


def randoms(rng: Random, count: int, universe: int, share: float = 0.5) -> list[Record]:
    """Empty records among them; with few items sets repeat, with more than 64 bitmaps have several words."""
    return [frozenset(at for at in range(1, universe + 1) if rng.random() < share) for _ in range(count)]


def some(rng: Random, least: int, most: int) -> list[Record]:
    universe, share = rng.choice([(3, 0.5), (6, 0.5), (8, 0.3), (80, 0.3), (150, 0.02)])
    return randoms(rng, rng.randint(least, most), universe, share)


def arrays(records: Sequence[Record]) -> tuple[Ints, Ints]:
    offsets = np.array([0, *accumulate(map(len, records))], dtype=np.int64)
    return offsets, np.array([item for record in records for item in sorted(record)], dtype=np.int64)


def sets(records: Sequence[Record]) -> Sets:
    return sets_of(*arrays(records))


def records_of(found: Sets) -> list[Record]:
    return [frozenset(found.codes[found.items[one:other]].tolist()) for one, other in pairwise(found.offsets)]


def ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def sizes_of(starts: Ints, count: int) -> list[int]:
    return list(map(int, np.diff(starts, append=count)))


# --- bitmaps, Gray keys ---------------------------------------------------------------------------------------------


@given(SEEDS)
def test_sets_taken_in_another_order(rng: Random) -> None:
    records = some(rng, 1, 12)
    order = rng.choices(range(len(records)), k=len(records))
    found = taken(sets(records), ints(order))
    expected = [records[at] for at in order]
    assert records_of(found) == expected
    offsets, items = items_of(found.bits)
    assert [found.codes[items[one:other]].tolist() for one, other in pairwise(offsets)] == [
        sorted(of) for of in expected
    ]
    assert steps_along(found, np.arange(len(order))).tolist() == oracle.hops(expected, range(len(order)))


@given(SEEDS)
def test_in_common_goes_round_the_ring(rng: Random) -> None:
    """Few items of a byte are looked up one by one, many together, and more than 255 in parts; more places than bitmaps."""
    records = [*randoms(rng, 6, 900, 0.01), *randoms(rng, 2, 900, 0.7), frozenset(range(1, 901))]
    block, other = sets(records), [*randoms(rng, 4, 900, 0.4), frozenset(range(1, 901))]
    shown = columns_of(bitmaps(arrays(other)[0], (arrays(other)[1] - 1).astype(np.int32), 900))
    first, found = rng.randrange(-9, 9), np.empty(8, dtype=np.int64)
    for record in range(9):
        in_common(block, record, shown, first, found)
        assert found.tolist() == [len(records[record] & other[(first + place) % 5]) for place in range(8)]


@given(SEEDS)
def test_gray_keys_sort_like_gray_codes(rng: Random) -> None:
    records = [*some(rng, 2, 20), frozenset[int]()]
    offsets, items = arrays(records)
    universe = 150
    keys = number_lists(*gray_keys(offsets, (items - 1).astype(np.int32), universe + 1)).to_pylist()
    assert keys == [oracle.gray_key(record, universe) for record in records]
    by_key = sorted(range(len(records)), key=lambda at: keys[at])
    assert by_key == oracle.gray_order(records, universe)


# --- segments and blocks --------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.lists(st.integers(0, 2), max_size=40), st.integers(1, 9), st.integers(0, 4))
def test_segments_are_the_cheapest(steps: list[int], least: int, more: int) -> None:
    """Small steps: many ties; short tables: sizes that no sum makes up (N-3)."""
    starts = segment_starts(ints(steps), least, least + more)
    cost, sizes = oracle.segmentation(steps, least, least + more)
    assert sizes_of(starts, len(steps) + 1) == sizes
    assert sum(steps[start - 1] for start in starts.tolist()[1:]) == cost


@pytest.mark.parametrize("count", [350, 351, 599, 600, 899, 1050, 1051, 1199, 1799, 2000])
def test_segments_of_the_default_size(count: int) -> None:
    steps = np.random.default_rng(count).integers(0, 30, count - 1)
    assert sizes_of(segment_starts(steps, 300, 350), count) == oracle.segmentation(steps.tolist(), 300, 350)[1]


@given(SEEDS)
def test_steps_between_records(rng: Random) -> None:
    records = some(rng, 1, 15)
    offsets, items = arrays(records)
    shifted = 3  # lists of a longer table: offsets need not begin at 0
    padded = np.concatenate([np.zeros(shifted, dtype=np.int32), items.astype(np.int32)])
    assert steps_between(offsets + shifted, padded).tolist() == oracle.hops(records, range(len(records)))


@given(SEEDS)
def test_blocks_of_segments(rng: Random) -> None:
    sizes = [rng.randint(1, 6) for _ in range(rng.randint(1, 20))]
    count, k, block = sum(sizes), rng.choice([1, 2]), rng.randint(1, 25)
    parts = oracle.segments(range(count), sizes)
    starts = block_starts(ints([0, *accumulate(sizes)][:-1]), count, max(block, 10 * k))
    expected = oracle.blocks(parts, k, block)
    assert sizes_of(starts, count) == list(map(len, expected))

    # N-12: merged until every label is rare enough
    labels, g = [rng.choice([0, 0, 0, *range(1, 12)]) for _ in range(count)], rng.randint(1, 5)
    merged = eligible_starts(starts, ints(labels), g)
    if oracle.eligible(labels, g):
        assert merged is not None
        assert sizes_of(merged, count) == list(map(len, oracle.merged_blocks(expected, labels, g)))
    else:
        assert merged is None


def test_a_merged_block_may_have_to_be_merged_again() -> None:
    """The last block joins the one before, which is not enough; the first joins the next, which is not enough either."""
    labels = ints([*range(10, 20), 1, 2, 0, 0, 0, 0])
    for starts, expected in (([0, 10, 12], [0]), ([0, 4, 10, 12], [0, 4])):
        found = eligible_starts(ints(starts), labels, 2)
        assert found is not None and found.tolist() == expected
    mirrored = eligible_starts(ints([0, 4, 6, 12]), labels[::-1].copy(), 2)
    assert mirrored is not None and mirrored.tolist() == [0, 12]


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=2, max_size=9))
def test_failed_blocks_join_a_neighbour(blocks: list[tuple[int, bool]]) -> None:
    numbers = list(accumulate(gap for gap, _ in blocks))
    failed = {number for number, (_, bad) in zip(numbers, blocks, strict=True) if bad}
    targets = merged_with(numbers, failed)
    together = Counter(targets)
    assert targets == sorted(targets) and set(targets) <= set(numbers)  # neighbours only
    assert all(together[target] >= 2 for number, target in zip(numbers, targets, strict=True) if number in failed)
    assert all(target in failed or numbers[-1] in failed for target, count in together.items() if count > 1)
    assert max(together.values()) <= 3
    assert (len(together) < len(numbers)) == bool(failed)


def test_the_two_last_blocks_fail() -> None:
    assert merged_with([3, 5, 9], {5, 9}) == [3, 5, 5]
    assert merged_with([3, 5], {3, 5}) == [3, 3]
    assert merged_with([1, 2, 3, 4, 5], {1, 2, 5}) == [1, 1, 3, 4, 4]
    assert merged_with([1, 2, 3], {1, 2, 3}) == [1, 1, 1]


# --- tours ----------------------------------------------------------------------------------------------------------


@given(SEEDS)
def test_tours_keep_ends_and_leave_no_improving_move(rng: Random) -> None:
    records = some(rng, 4, 16)
    order = oracle.gray_order(records, 150)
    cut = rng.choice([len(order), rng.randint(1, len(order) - 1)])
    starts = [0] if cut == len(order) else [0, cut]
    found = tours(sets(records), ints(order), ints(starts)).tolist()
    for one, other in pairwise([*starts, len(order)]):
        segment, path = order[one:other], found[one:other]
        assert (path[0], path[-1], sorted(path)) == (segment[0], segment[-1], sorted(segment))
        before, after = (oracle.path_length(records, way) for way in (segment, path))
        assert after < before or path == segment
        if len(segment) < 4:
            assert path == segment
        elif after < before:
            assert next(oracle.improving_moves(records, path), None) is None


def test_a_tour_that_is_no_shorter_is_not_taken() -> None:
    same = [frozenset({1})] * 6
    assert tours(sets(same), np.arange(6)[::-1].copy(), ints([0])).tolist() == [5, 4, 3, 2, 1, 0]
    zigzag = [frozenset(range(1, at + 1)) for at in (0, 5, 1, 4, 2, 3, 6)]
    assert tours(sets(zigzag), np.arange(7), ints([0])).tolist() == [0, 2, 4, 5, 3, 1, 6]


# --- window orders --------------------------------------------------------------------------------------------------


@given(SEEDS, st.integers(2, 6))
def test_window_neighbours_are_the_nearest(rng: Random, k: int) -> None:
    records = some(rng, 1, 20)
    order = rng.sample(range(len(records)), len(records))
    found = window_neighbours(sets(records), ints(order), k).tolist()
    assert found == oracle.window_nearest(records, order, k)


def turned(order: Sequence[int], first: int) -> list[int]:
    """The same ring, written down from another record on."""
    at = order.index(first)
    return [*order[at:], *order[:at]]


def improved(records: Sequence[Record], order: Sequence[int], k: int, span: int) -> list[int]:
    """The sweeps of the oracle, one at a time, each from the record with which the package's ring begins.

    Where a ring begins the rules leave open; it decides in which order the next sweep takes the records. The package shifts
    the shorter way round, so a record that moves across rank 0 moves the beginning too.
    """
    ring, n = list(order), len(order)
    for _ in range(oracle.MOST_SWEEPS):
        before = oracle.window_flips(records, ring, k)
        for record in list(ring):
            a = ring.index(record)
            ways = [(oracle.move_change(records, ring, k, a, gap), gap) for gap in oracle.allowed_gaps(a, n, k, span)]
            change, gap = min(ways, key=lambda way: way[0], default=(0, 0))
            if change < 0:
                ahead = (gap - a) % n
                landed = (a + ahead) % n if ahead <= n - 1 - ahead else (a + ahead + 1) % n
                begins = turned(oracle.moved(ring, a, gap), record)
                ring = [*begins[n - landed :], *begins[: n - landed]]
        gain = before - oracle.window_flips(records, ring, k)
        if gain == 0 or 200 * gain < before:
            break
    return ring


@settings(max_examples=60)
@given(SEEDS, st.integers(2, 5), st.sampled_from([1, 3, 5, 9, windows.SPAN]))
def test_improved_ring_is_that_of_the_oracle(rng: Random, k: int, span: int) -> None:
    records = some(rng, 1, 16)
    order = rng.sample(range(len(records)), len(records))
    found = improved_ring(sets(records), ints(order), k, span).tolist()
    if len(order) == 2 * k - 1:  # every record has just one gap to go to; the kernel does not try these rings
        assert found == order
    else:
        assert found == improved(records, order, k, span)


def test_improved_rings_of_one_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one sweep the beginning does not matter: the oracle's own function."""
    monkeypatch.setattr(oracle, "MOST_SWEEPS", 1)
    same = 0
    for seed in range(40):
        rng, k = Random(seed), 2 + seed % 3
        records = some(rng, 2 * k, 14)
        order = rng.sample(range(len(records)), len(records))
        wanted = oracle.window_or_opt(records, order, k, most_sweeps=1)
        assert turned(improved(records, order, k, oracle.SPAN), wanted[0]) == wanted
        found = improved_ring(sets(records), ints(order), k, oracle.SPAN).tolist()
        same += turned(found, found[0]) == turned(oracle.window_or_opt(records, order, k), found[0])
    assert same >= 35


@given(SEEDS, st.integers(2, 7))
def test_improved_ring_flips_no_more(rng: Random, k: int) -> None:
    records = some(rng, 2 * k, 40)
    order = rng.sample(range(len(records)), len(records))
    ring = improved_ring(sets(records), ints(order), k, 20).tolist()
    assert sorted(ring) == sorted(order)
    assert oracle.window_flips(records, ring, k) <= oracle.window_flips(records, order, k)


@settings(max_examples=60)
@given(SEEDS, st.integers(2, 4))
def test_the_change_of_a_move_is_exact(rng: Random, k: int) -> None:
    """One record moved, at each rank: the change said, W counted anew, and the windows kept up to date."""
    records = some(rng, 2 * k, 14)
    count, span = len(records), rng.choice([3, 6, 325])
    block, ring = sets(records), ints(rng.sample(range(count), count))
    words = block.bits.shape[1]
    counts = np.zeros(words * 64, dtype=np.int32)

    def computed() -> windows.Windows:
        numbers, masks = np.zeros((2, count), dtype=np.int64), np.zeros((2, 8 * words, count), dtype=np.uint8)
        found = windows.Windows(numbers[0], masks[0], masks[1], numbers[1])
        windows.refresh(block, ring, k, found, 0, count, counts)
        return found

    kept = computed()
    place = np.argsort(ring)
    for record in rng.sample(range(count), count):
        before, a = ring.tolist(), int(place[record])
        change, gap = windows.best_move(block, ring, k, span, kept, a, counts, windows.room_for(k, span))
        ways = [(oracle.move_change(records, before, k, a, to), to) for to in oracle.allowed_gaps(a, count, k, span)]
        best = min(ways, key=lambda way: way[0], default=(0, -1))
        assert change == min(best[0], 0)
        if change == 0:
            continue
        assert (a + gap) % count == best[1]
        windows.move(ring, kept, place, a, gap, k)
        windows.refresh_moved(block, ring, k, kept, int(place[record]), gap, counts)
        assert oracle.window_flips(records, ring.tolist(), k) - oracle.window_flips(records, before, k) == change
        assert ring[place].tolist() == list(range(count)) and not counts.any()
        assert all(np.array_equal(one, other) for one, other in zip(list[Any](kept), list[Any](computed()), strict=True))
    assert kept.cost.sum() == oracle.window_flips(records, ring.tolist(), k)


def test_rings_too_short_to_move_in_stay() -> None:
    records = randoms(Random(1), 5, 6)
    assert improved_ring(sets(records), np.arange(5), 3, 325).tolist() == [0, 1, 2, 3, 4]
    assert improved_ring(sets(records), np.arange(5), 1, 325).tolist() == [0, 1, 2, 3, 4]


# --- graphs, fields -------------------------------------------------------------------------------------------------


def posts(graph: Graph) -> list[list[int]]:
    return [graph.slots[one:other].tolist() for one, other in pairwise(graph.offsets)]


@given(SEEDS)
def test_published_fields_and_error_rate(rng: Random) -> None:
    """Rings with ties of votes, k = 1 and k = n among them, and groups of several sizes."""
    k = rng.randint(1, 5)
    records = some(rng, k, 12)
    if rng.random() < 0.5:
        graph, expected = ring_graph(len(records), k), oracle.ring_graph(len(records), k)
    else:
        sizes = list(map(len, oracle.groups(range(len(records)), k)))
        graph, expected = groups_graph(ints(sizes)), oracle.groups_graph(sizes)
        assert graph.part.tolist() == [at for at, size in enumerate(sizes) for _ in range(size)]
    assert [set(post) for post in posts(graph)] == expected
    offsets, originals = originals_by_slot(graph)
    assert [originals[one:other].tolist() for one, other in pairwise(offsets)] == oracle.preimages(expected)

    block, release = sets(records), oracle.published(records, expected)
    fields = published_fields(block, graph)
    for shown, wanted in (
        (fields.base, [slot.base for slot in release]),
        (fields.uncertain, [slot.dist for slot in release]),
    ):
        begins, items = items_of(shown)
        assert [frozenset(block.codes[items[one:other]].tolist()) for one, other in pairwise(begins)] == wanted
    assert fields.errors.tolist() == [slot.t for slot in release]
    flips = flips_by_edge(block, graph, fields.base).tolist()
    assert flips == [
        oracle.hamming(record, release[slot].base)
        for record, post in zip(records, posts(graph), strict=True)
        for slot in post
    ]
    assert error_rate(block, graph, fields.base) == pytest.approx(
        float(oracle.error_rate(records, release, expected).rate)
    )


# --- draws ----------------------------------------------------------------------------------------------------------


@given(st.text(max_size=5), st.text(max_size=5), st.integers(0, 2**40), st.integers(0, 50))
def test_a_longer_stream_begins_with_the_shorter(key: str, purpose: str, block: int, count: int) -> None:
    longer = stream(key, purpose, block, count + 7)
    assert stream(key, purpose, block, count).tolist() == longer[:count].tolist()
    for other in ((key + "x", purpose, block), (key, purpose + "x", block), (key, purpose, block + 1)):
        assert stream(*other, 4).tolist() != longer[:4].tolist()
    assert stream("ab", "c", block, 4).tolist() != stream("a", "bc", block, 4).tolist()


def test_uniform_leaves_out_the_words_that_favour_small_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [2**64 - 1, 7, 2**64 - 2, 2**63 + 1, 5, 11]  # 2^64 - 1 is a multiple of 3: only the last word is too much

    def told(key: str, purpose: str, block: int, count: int) -> Ints:
        return np.array((words * count)[:count], dtype=np.uint64)

    monkeypatch.setattr(randomness, "stream", told)
    assert uniform("key", "purpose", 0, ints([3, 3, 3])).tolist() == [7 % 3, (2**64 - 2) % 3, (2**63 + 1) % 3]
    assert uniform("key", "purpose", 0, ints([1, 2])).tolist() == [0, 1]
    words[:] = [2**64 - 1] * 9 + [4]  # all that is drawn at first is refused
    assert uniform("key", "purpose", 0, ints([3])).tolist() == [1]


def test_uniform_is_even_and_does_not_depend_on_what_follows() -> None:
    drawn = uniform("key", "choice", 3, np.full(6000, 6))
    assert uniform("key", "choice", 3, np.full(17, 6)).tolist() == drawn[:17].tolist()
    assert all(abs(times - 1000) < 4.5 * (6000 * 5 / 36) ** 0.5 for times in Counter(drawn.tolist()).values())
    assert set(drawn.tolist()) == set(range(6))
    assert uniform("key", "choice", 4, np.full(17, 6)).tolist() != drawn[:17].tolist()
