"""Groups by swaps and moves, and uniform permutations: against their definitions on random small tables. No Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from itertools import permutations as all_permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.families.set_valued.block import Effort, Settings, arrange, draw
from anon_spark.families.set_valued.kernels import swaps
from anon_spark.families.set_valued.kernels.graphs import groups_graph
from anon_spark.families.set_valued.kernels.swaps import contested, groups_of, regrouped
from anon_spark.kernels.bitmaps import Sets, items_of, sets_of

pytestmark = pytest.mark.compiles
Records = list[frozenset[int]]


def as_sets(records: Sequence[frozenset[int]]) -> Sets:
    offsets = np.concatenate([[0], np.cumsum([len(record) for record in records])]).astype(np.int64)
    return sets_of(offsets, np.array([item for record in records for item in sorted(record)], dtype=np.int64))


def cost(groups: Sequence[Sequence[frozenset[int]]]) -> Fraction:
    """Flipped bits over the size of the record, summed, by the definition."""
    total = Fraction(0)
    for group in groups:
        counted = Counter(item for record in group for item in record)
        base = {item for item, count in counted.items() if 2 * count > len(group)}
        total += sum((Fraction(len(base ^ record), len(record)) for record in group if record), Fraction(0))
    return total


def cut(records: Sequence[frozenset[int]], order: Sequence[int], sizes: Sequence[int]) -> list[list[frozenset[int]]]:
    ends = np.cumsum(sizes).tolist()
    return [[records[at] for at in order[end - size : end]] for size, end in zip(sizes, ends, strict=True)]


def majority_of(sets: Sets, group: Sequence[int]) -> set[int]:
    """The numbers of the items that more than half of a group has."""
    counted = Counter(int(item) for at in group for item in sets.items[sets.offsets[at] : sets.offsets[at + 1]])
    return {item for item, count in counted.items() if 2 * count > len(group)}


@st.composite
def tables(draw_from: st.DrawFn) -> tuple[Records, list[int], int]:
    k = draw_from(st.integers(2, 4))
    sizes = draw_from(st.lists(st.integers(k, 2 * k - 1), min_size=1, max_size=6))
    item = st.integers(0, draw_from(st.sampled_from([3, 9, 70])))
    records = draw_from(st.lists(st.frozensets(item, max_size=6), min_size=sum(sizes), max_size=sum(sizes)))
    return records, sizes, k


@settings(max_examples=60)
@given(tables())
def test_the_cost_never_rises_and_no_record_is_lost(table: tuple[Records, list[int], int]) -> None:
    records, sizes, k = table
    sets, whole = as_sets(records), np.array(sizes)
    found = regrouped(sets, whole, k, None, "normal")
    order, new_sizes = found.order.tolist(), found.sizes.tolist()
    assert sorted(order) == list(range(len(records)))
    assert len(new_sizes) == len(sizes) and sum(new_sizes) == sum(sizes)
    assert all(k <= size < 2 * k for size in new_sizes)
    before, after = cost(cut(records, range(len(records)), sizes)), cost(cut(records, order, new_sizes))
    assert after <= before + Fraction(len(records), swaps.WEIGHT)  # weights are rounded


@settings(max_examples=40)
@given(tables(), st.booleans())
def test_what_was_saved_is_the_difference_of_the_costs(table: tuple[Records, list[int], int], whole: bool) -> None:
    records, sizes, k = table
    sets, count = as_sets(records), len(records)
    weight = np.array([720 // len(record) if record else 0 for record in records])  # whole numbers: at most six items
    groups = groups_of(np.array(sizes), 2 * k - 1, sets.bits if whole else contested(sets, k), weight)
    alike, others = np.arange(count, dtype=np.int32), np.arange(count - 1, dtype=np.int32)
    near = np.array([others + (others >= at) for at in range(count)], dtype=np.int32)
    no_label = np.full(count, -1, dtype=np.int32)
    saved = swaps.anneal(groups, no_label, alike, alike, near, k, 50 * count, 700.0, 100.0)
    mates = [group[:size].tolist() for group, size in zip(groups.members, groups.size, strict=True)]
    now = [[records[at] for at in group] for group in mates]
    assert sorted(at for group in mates for at in group) == list(range(count))
    assert all(k <= size < 2 * k for size in groups.size)
    assert saved == 720 * (cost(cut(records, range(count), sizes)) - cost(now))
    if whole:
        offsets, items = items_of(groups.shares[:, swaps.BASE].copy())
        base = [items[first:last].tolist() for first, last in pairwise(offsets)]
        assert base == [sorted(majority_of(sets, group)) for group in mates]


@settings(max_examples=30)
@given(tables(), st.integers(0, 2**32))
def test_labels_stay_different_inside_a_group(table: tuple[Records, list[int], int], seed: int) -> None:
    records, sizes, k = table
    draw_from = np.random.default_rng(seed)
    labels = np.concatenate([draw_from.permutation(2 * k)[:size] for size in sizes]).astype(np.int32)
    found = regrouped(as_sets(records), np.array(sizes), k, labels, "normal")
    start = 0
    for size in found.sizes:
        assert len(set(labels[found.order[start : start + size]].tolist())) == size
        start += size


def test_two_mixed_groups_become_two_pure_ones() -> None:
    one, other = frozenset({1, 2, 3}), frozenset({7, 8, 9})
    near = [one | {10 + at} for at in range(4)] + [other | {20 + at} for at in range(4)]
    records = [near[at] for at in (0, 4, 1, 5, 2, 6, 3, 7)]
    order = regrouped(as_sets(records), np.array([4, 4]), 4, None, "normal").order.tolist()
    assert {frozenset(order[:4]), frozenset(order[4:])} == {frozenset({0, 2, 4, 6}), frozenset({1, 3, 5, 7})}


def test_a_record_moves_alone_to_the_group_it_belongs_to() -> None:
    one, other = frozenset({1, 2, 3}), frozenset({7, 8, 9})
    records = [one, one | {10}, one | {11}, other | {12}, other, other | {13}, other | {14}]
    found = regrouped(as_sets(records), np.array([4, 3]), 3, None, "normal")
    assert {frozenset(found.order[: found.sizes[0]].tolist())} == {frozenset({0, 1, 2})}
    assert sorted(found.sizes.tolist()) == [3, 4]


def test_swaps_lower_the_error_rate_of_a_crowd_and_depend_on_the_records_alone() -> None:
    draw_from = np.random.default_rng(5)
    kinds = [frozenset(draw_from.choice(60, 8, replace=False).tolist()) for _ in range(40)]
    records = [kinds[int(draw_from.integers(40))] ^ frozenset(draw_from.choice(60, 2).tolist()) for _ in range(400)]
    sets = as_sets(records)
    found: dict[str, list[tuple[Any, list[int]]]] = {}
    efforts: tuple[Effort, ...] = ("none", "normal", "deep")
    for effort in efforts:
        for key in ("one", "another"):
            settings_of = Settings(k=5, graph="groups", order="gray", effort=effort)
            arranged = arrange(sets, np.array([0]), None, settings_of, key, 0)
            assert arranged is not None
            found.setdefault(effort, []).append((arranged.error, arranged.order.tolist()))
    assert all(one == other for one, other in found.values())
    assert max(found["deep"][0][0], found["normal"][0][0]) < Fraction(9, 10) * found["none"][0][0]


def test_every_permutation_of_a_group_is_drawn_equally_often() -> None:
    graph = groups_graph(np.array([3, 4]))
    drawn = [draw(graph, Settings(k=3, graph="groups"), f"key {at}", 0).slots.tolist() for at in range(4_800)]
    first = Counter(tuple(slots[:3]) for slots in drawn)
    second = Counter(tuple(slot - 3 for slot in slots[3:]) for slots in drawn)
    for counted, size in ((first, 3), (second, 4)):
        assert set(counted) == set(all_permutations(range(size)))
        expected = len(drawn) / len(counted)
        assert sum((count - expected) ** 2 / expected for count in counted.values()) < 2.5 * len(counted)
