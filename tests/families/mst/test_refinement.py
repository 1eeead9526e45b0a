"""Refinement against its definition on random small tables: nothing is lost, k and l stay, the loss falls. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.families.mst.kernels import losses
from anon_spark.families.mst.kernels.distances import levels_of
from anon_spark.families.mst.kernels.losses import Tuples, classes_from, closest, node_weights, weight_without
from anon_spark.families.mst.kernels.top_down import FILLED, LOOSE, top_down
from anon_spark.families.mst.partition import Settings, partition
from anon_spark.families.mst.refinement import Refining, Sensitive, blocks_of, refined_levels
from anon_spark.kernels.classes import Codes
from anon_spark.primitives.classes.arrays import ladder_of
from tests.families.mst.tables import FLAT, Arrays, Case, arrays_of, case_of, cases, crowd

pytestmark = pytest.mark.compiles

Class = tuple[tuple[int, int], ...]  # (level, code) of every attribute


def classes_of(case: Case, arrays: Arrays, level: Codes) -> dict[Class, list[int]]:
    """The tuples of each published class."""
    found: dict[Class, list[int]] = {}
    for at in range(arrays.rows.size):
        nodes = zip(case.hierarchies, level[at].tolist(), arrays.codes[:, at].tolist(), strict=True)
        found.setdefault(tuple((up, int(of.codes[up, leaf])) for of, up, leaf in nodes), []).append(at)
    return found


def weight(case: Case, label: Class) -> Fraction:
    """(leaves below - 1) / (leaves - 1), summed over the attributes."""
    total = Fraction(0)
    for hierarchy, (level, code) in zip(case.hierarchies, label, strict=True):
        if hierarchy.leaf_count > 1:
            total += Fraction(int((hierarchy.codes[level] == code).sum()) - 1, hierarchy.leaf_count - 1)
    return total


def loss(case: Case, arrays: Arrays, level: Codes) -> Fraction:
    """The general loss by its definition."""
    found = classes_of(case, arrays, level)
    return sum((int(arrays.rows[tuples].sum()) * weight(case, label) for label, tuples in found.items()), Fraction(0))


def values_of(arrays: Arrays) -> Codes:
    return np.empty((arrays.rows.size, 0, 0), dtype=np.int32) if arrays.values is None else arrays.values


def sensitive_of(arrays: Arrays) -> Sensitive:
    return Sensitive(values_of(arrays))


def refining(case: Case, arrays: Arrays, sweeps: int = 4, block_tuples: int = 8_000) -> Refining:
    columns = values_of(arrays).shape[1]
    return Refining(case.hierarchies, len(case.rows), case.k, case.l, columns, sweeps, 2, block_tuples, 10**6)


def check_kept(case: Case, arrays: Arrays, level: Codes) -> None:
    """Every class has k rows and l values, on the least levels on which its tuples agree."""
    values = values_of(arrays)
    for label, tuples in classes_of(case, arrays, level).items():
        assert arrays.rows[tuples].sum() >= case.k
        for column in range(values.shape[1]):
            assert len(set(values[tuples, column].ravel().tolist()) - {-1}) >= (case.l or 0)
        for at, (up, _) in enumerate(label):
            codes = case.hierarchies[at].codes
            assert up == 0 or len({int(codes[up - 1, leaf]) for leaf in arrays.codes[at, tuples]}) > 1


@settings(max_examples=30)
@given(cases(most_rows=40), st.integers(0, 2))
def test_the_loss_falls_and_k_stays(case: Case, sweeps: int) -> None:
    arrays = arrays_of(case)
    parts = partition(arrays.codes, arrays.rows, case.hierarchies, Settings(case.k))
    before = parts.levels[parts.class_of]
    after = refined_levels(refining(case, arrays, sweeps), arrays.codes.T, before, arrays.rows, sensitive_of(arrays))
    check_kept(case, arrays, after)
    assert loss(case, arrays, after) <= loss(case, arrays, before)
    if sweeps == 0:
        assert (after == before).all()


@settings(max_examples=30)
@given(cases(most_rows=40, diverse=True), st.integers(0, 2), st.integers(0, 2**32))
def test_l_is_reached_whatever_the_order_of_tuples(case: Case, sweeps: int, seed: int) -> None:
    arrays = arrays_of(case)
    parts = partition(arrays.codes, arrays.rows, case.hierarchies, Settings(case.k))
    before = parts.levels[parts.class_of]
    after = refined_levels(refining(case, arrays, sweeps), arrays.codes.T, before, arrays.rows, sensitive_of(arrays))
    check_kept(case, arrays, after)
    order = np.random.default_rng(seed).permutation(arrays.rows.size)
    shuffled = Sensitive(values_of(arrays)[order])
    again = refined_levels(
        refining(case, arrays, sweeps), arrays.codes.T[order], before[order], arrays.rows[order], shuffled
    )
    assert (again == after[order]).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_crowd_loses_less(seed: int) -> None:
    case = crowd(seed)
    arrays = arrays_of(case)
    parts = partition(arrays.codes, arrays.rows, case.hierarchies, Settings(case.k, merge="rounds"))
    level = parts.levels[parts.class_of]
    shown = [loss(case, arrays, level)]
    for sweeps in (1, 2, 4):
        after = refined_levels(refining(case, arrays, sweeps), arrays.codes.T, level, arrays.rows, sensitive_of(arrays))
        shown.append(loss(case, arrays, after))
    assert shown == sorted(shown, reverse=True) and shown[-1] < Fraction(9, 10) * shown[0]


@pytest.mark.parametrize("most", [40, 100])
def test_blocks_are_small_and_all_tuples_are_in_one(most: int) -> None:
    case = crowd(1)
    arrays = arrays_of(case)
    parts = partition(arrays.codes, arrays.rows, case.hierarchies, Settings(2, merge="rounds"))
    small = refining(Case(case.hierarchies, case.rows, 2), arrays, block_tuples=most)
    level, values = parts.levels[parts.class_of], sensitive_of(arrays)
    block = blocks_of(small, arrays.codes.T, level, values)
    sizes = np.bincount(block)
    assert sizes.min() > 0 and sizes.max() <= max(most, 48) and len(sizes) > 1
    order = np.random.default_rng(most).permutation(block.size)
    assert (blocks_of(small, arrays.codes.T[order], level[order], values) == block[order]).all()


def test_a_block_without_enough_values_takes_in_the_next() -> None:
    case = crowd(1)
    arrays = arrays_of(Case(case.hierarchies, case.rows, 2, 2, [(int(at == 7),) for at in range(len(case.rows))]))
    whole = Case(case.hierarchies, case.rows, 2, 2, [(0,)] * len(case.rows))
    level = np.zeros((arrays.rows.size, len(case.hierarchies)), dtype=np.int32)
    assert blocks_of(refining(whole, arrays, block_tuples=60), arrays.codes.T, level, sensitive_of(arrays)).max() == 0


@settings(max_examples=25)
@given(cases(most_rows=40), st.sampled_from([LOOSE, FILLED]))
def test_a_partition_from_the_top_keeps_k(case: Case, way: int) -> None:
    arrays = arrays_of(case)
    levels = levels_of(ladder_of(case.hierarchies))
    tuples = Tuples(np.ascontiguousarray(arrays.codes.T), arrays.rows, values_of(arrays))
    classes = top_down(levels, node_weights(levels, len(case.rows)), tuples, case.k, way)
    check_kept(case, arrays, classes.level[classes.class_of])
    assert np.array_equal(np.bincount(classes.class_of, arrays.rows, classes.size.size), classes.size)


@settings(max_examples=25)
@given(cases(most_rows=30), st.integers(0, 2**32))
def test_prices_of_moves_are_those_of_the_definition(case: Case, seed: int) -> None:
    """What a class loses with one tuple more, and with one less, from all classes by brute force."""
    arrays = arrays_of(case)
    count = 1 + arrays.rows.size // 3
    class_of = np.random.default_rng(seed).permutation(arrays.rows.size).astype(np.int32) % np.int32(count)
    levels = levels_of(ladder_of(case.hierarchies))
    weights = node_weights(levels, len(case.rows))
    tuples = Tuples(np.ascontiguousarray(arrays.codes.T), arrays.rows, values_of(arrays))
    classes = classes_from(levels, weights, tuples, class_of, count, count)

    def price(members: Sequence[int]) -> tuple[int, int]:
        """Rows and weight, each node's weight rounded by itself."""
        total = 0
        for at, hierarchy in enumerate(case.hierarchies):
            leaves = arrays.codes[at, list(members)]
            level = next(up for up in range(hierarchy.height + 1) if len(set(hierarchy.codes[up, leaves].tolist())) == 1)
            below = int((hierarchy.codes[level] == hierarchy.codes[level, leaves[0]]).sum()) - 1
            total += round(Fraction(below, max(1, hierarchy.leaf_count - 1)) * 2**32)
        return int(arrays.rows[list(members)].sum()), total

    inside = [np.flatnonzero(class_of == number).tolist() for number in range(count)]
    for number, members in enumerate(inside):
        assert (classes.size[number], classes.weight[number]) == price(members)
        for member in members if len(members) > 1 else []:
            rest = [other for other in members if other != member]
            assert weight_without(levels, weights, tuples, classes, number, member) == price(rest)[1]
    for member in range(arrays.rows.size):
        own = int(class_of[member])
        growths = []
        for number, members in enumerate(inside):
            (rows, now), (more, then) = price(members), price([*members, member])
            growths.append((more * then - rows * now, number))
        others = [one for one in growths if one[1] != own]
        if others:
            least, best = min(others)
            assert closest(levels, weights, tuples, classes, member, own, losses.LARGE, losses.LARGE) == (best, least)


def test_edges() -> None:
    """All rows equal, one attribute, a table of exactly k rows."""
    for rows, k in (([("a",)] * 7, 3), ([("a",), ("b",), ("c",)], 3), ([("a",)] * 3 + [("b",)] * 3, 3)):
        case = case_of([FLAT], rows, k)
        arrays = arrays_of(case)
        parts = partition(arrays.codes, arrays.rows, case.hierarchies, Settings(k))
        level = parts.levels[parts.class_of]
        after = refined_levels(refining(case, arrays), arrays.codes.T, level, arrays.rows, sensitive_of(arrays))
        assert (after == level).all()
