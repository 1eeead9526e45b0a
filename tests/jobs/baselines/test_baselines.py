"""The baselines on random small tables: every class has k rows, and the score equals its definition. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from anon_spark.errors import AnonSparkError
from anon_spark.families.mst.kernels.distances import Levels, in_runs, levels_of
from anon_spark.kernels.classes import Codes
from anon_spark.primitives.classes.arrays import ladder_of
from jobs.baselines.k_member import k_member
from jobs.baselines.mondrian import relaxed_mondrian, strict_mondrian
from jobs.baselines.oka import oka
from jobs.baselines.scoring import mean_loss, single_rows
from jobs.baselines.top_down import top_down
from tests.families.mst.tables import FLAT, PAIRS, Case, arrays_of, case_of, cases, crowd

pytestmark = [pytest.mark.compiles, pytest.mark.long]  # rivals for benchmarks: no release depends on them

Baseline = Callable[[Levels, Codes, int], Codes]

BASELINES: dict[str, Baseline] = {
    "strict Mondrian": strict_mondrian,
    "relaxed Mondrian": relaxed_mondrian,
    "k-member": k_member,
    "OKA": oka,
    "top-down": top_down,
}
each_baseline = pytest.mark.parametrize("baseline", BASELINES.values(), ids=BASELINES.keys())


def input_of(case: Case) -> tuple[Levels, Codes]:
    """The hierarchies and single rows."""
    arrays = arrays_of(case)
    return levels_of(ladder_of(case.hierarchies)), single_rows(arrays.codes.T, arrays.rows)


def one_attribute(written: str, k: int) -> tuple[Levels, Codes]:
    """Rows of one attribute: "a1*3 b1" is a1 three times and b1 once."""
    parts = [(part.split("*") + ["1"])[:2] for part in written.split()]
    return input_of(case_of([PAIRS], [(leaf,) for leaf, times in parts for _ in range(int(times))], k))


def sizes_of(class_of: Codes) -> list[int]:
    """The rows of every class, in ascending order."""
    sizes = np.bincount(class_of)
    return sorted(sizes[sizes > 0].tolist())


def brute_force_loss(case: Case, leaf: Codes, class_of: Sequence[int]) -> Fraction:
    """The mean loss of a cell by its definition: the lowest level on which all rows of the class have the same code."""
    total = Fraction(0)
    for row in range(len(leaf)):
        members = [other for other in range(len(leaf)) if class_of[other] == class_of[row]]
        for attribute, hierarchy in enumerate(case.hierarchies):
            for codes in hierarchy.codes:
                labels = {int(codes[leaf[member, attribute]]) for member in members}
                if len(labels) == 1:
                    below = sum(int(code) in labels for code in codes)
                    total += Fraction(below - 1, max(hierarchy.leaf_count - 1, 1))
                    break
    return total / leaf.size


def check(case: Case, baseline: Baseline) -> None:
    """Each row is in one class of at least k rows, a second run gives the same, and the score is right."""
    levels, leaf = input_of(case)
    before = leaf.copy()
    class_of = baseline(levels, leaf, case.k)
    assert class_of.shape == (len(case.rows),)
    assert class_of.min() >= 0
    assert sizes_of(class_of)[0] >= case.k
    assert np.array_equal(leaf, before), "the input is not changed"
    assert np.array_equal(baseline(levels, leaf, case.k), class_of)
    assert mean_loss(levels, leaf, class_of) == pytest.approx(float(brute_force_loss(case, leaf, class_of.tolist())))


@each_baseline
@settings(max_examples=30)
@given(case=cases(most_rows=40))
def test_classes_have_k_rows(baseline: Baseline, case: Case) -> None:
    check(case, baseline)


@each_baseline
@pytest.mark.parametrize("seed", range(3))
def test_larger_tables(baseline: Baseline, seed: int) -> None:
    check(crowd(seed), baseline)


@each_baseline
def test_k_is_one(baseline: Baseline) -> None:
    case = crowd(0, 60)
    levels, leaf = input_of(case)
    assert sizes_of(baseline(levels, leaf, 1))[0] >= 1


@each_baseline
@pytest.mark.parametrize("count", [3, 5, 6, 20])
def test_equal_rows_lose_nothing(baseline: Baseline, count: int) -> None:
    levels, leaf = one_attribute(f"b2*{count}", 3)
    class_of = baseline(levels, leaf, 3)
    assert sizes_of(class_of)[0] >= 3
    assert mean_loss(levels, leaf, class_of) == 0


@each_baseline
def test_groups_of_equal_rows_lose_nothing(baseline: Baseline) -> None:
    levels, leaf = one_attribute("a1*3 b1*3 c1*3 d1*3", 3)
    assert mean_loss(levels, leaf, baseline(levels, leaf, 3)) == 0


@each_baseline
def test_as_many_rows_as_k_are_one_class(baseline: Baseline) -> None:
    levels, leaf = one_attribute("a1 b1 c1", 3)
    assert sizes_of(baseline(levels, leaf, 3)) == [3]


@each_baseline
@pytest.mark.parametrize("k", [0, 4])
def test_an_impossible_k_is_refused(baseline: Baseline, k: int) -> None:
    levels, leaf = one_attribute("a1 b1 c1", 3)
    with pytest.raises(AnonSparkError):
        baseline(levels, leaf, k)


# --- single baselines -------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(case=cases(most_rows=40))
def test_strict_mondrian_cuts_between_values(case: Case) -> None:
    levels, leaf = input_of(case)
    class_of = strict_mondrian(levels, leaf, case.k)
    values = in_runs(levels).place[leaf + levels.offsets]
    boxes = [(values[class_of == at].min(axis=0), values[class_of == at].max(axis=0)) for at in range(class_of.max() + 1)]
    for at, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:at]:
            assert ((high < other_low) | (other_high < low)).any(), "two classes share no combination of values"


@pytest.mark.parametrize(("baseline", "sizes"), [(strict_mondrian, [10]), (relaxed_mondrian, [5, 5])])
def test_only_relaxed_mondrian_divides_equal_values(baseline: Baseline, sizes: list[int]) -> None:
    levels, leaf = one_attribute("a1*7 b1*3", 5)
    assert sizes_of(baseline(levels, leaf, 5)) == sizes


def test_a_median_at_the_end_is_cut_off() -> None:
    levels, leaf = one_attribute("a1*3 b1*7", 3)
    assert sizes_of(strict_mondrian(levels, leaf, 3)) == [3, 7]


def test_rows_left_by_k_member_join_the_class_that_grows_least() -> None:
    levels, leaf = one_attribute("a1*4 b1*3", 3)
    class_of = k_member(levels, leaf, 3)
    assert sizes_of(class_of) == [3, 4]
    assert mean_loss(levels, leaf, class_of) == 0


def test_oka_fills_clusters_with_the_rows_that_others_give_up() -> None:
    levels, leaf = one_attribute("a1*2 b1*8 d1*2", 3)  # starts: a1, b1, b1, b1
    class_of = oka(levels, leaf, 3)
    assert sizes_of(class_of) == [3, 3, 3, 3]


@pytest.mark.parametrize(("written", "sizes"), [("a1*5 b1", [3, 3]), ("a1*4 b1", [5]), ("a1*3 a2*3 b1*2", [3, 5])])
def test_small_classes_of_top_down_borrow_or_merge(written: str, sizes: list[int]) -> None:
    levels, leaf = one_attribute(written, 3)
    assert sizes_of(top_down(levels, leaf, 3)) == sizes


def test_the_score_of_an_example() -> None:
    case = case_of([FLAT, PAIRS], [("a", "a1"), ("b", "a2"), ("c", "d1")], 1)
    levels, leaf = input_of(case)
    # the first two rows have the root of six leaves and a node of four leaves out of 16; the last row is exact
    assert mean_loss(levels, leaf, np.array([0, 0, 1], dtype=np.int32)) == pytest.approx((2 * 1 + 2 * 3 / 15) / 6)
    assert mean_loss(levels, leaf, np.array([7, 7, 7], dtype=np.int32)) == pytest.approx(1)
