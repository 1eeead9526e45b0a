"""The mst partition against brute force on random small tables with ragged hierarchies: arrays only, no Spark."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree

from anon_spark.families.mst.kernels import spanning
from anon_spark.families.mst.kernels.distances import COMMON_LEAVES, common_level, generality, in_runs, levels_of
from anon_spark.families.mst.kernels.neighbours import Classes, neighbours, plan
from anon_spark.families.mst.kernels.spanning import walk
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.primitives.classes.arrays import ladder_of
from tests.families.mst.tables import Case, Partitioned, cases, crowd, partitioned
from tests.oracle.mst_oracle import (
    Group,
    Levels,
    Result,
    Row,
    Trees,
    absorb,
    gen_class,
    greedy_by_array,
    inconsistent,
    kruskal,
    merge_rounds,
    mstk,
    nearest_by_array,
    prim,
    split,
    tau,
)

pytestmark = pytest.mark.compiles

MERGES = st.sampled_from(["greedy", "rounds"])
ZERO_EDGES = st.sampled_from(["include", "exclude"])
STATISTICS = ("weights", "tau", "tau_below_min_weight", "kept", "small", "identical", "rows_kept", "rounds", "merge")


def shape(groups: list[Group]) -> set[tuple[frozenset[Row], Levels, int]]:
    return {(group.tuples, group.levels, group.rows) for group in groups}


def check_against_brute_force(found: Partitioned, truth: Result) -> None:
    assert found.shape == shape(truth.classes)
    statistics = found.statistics
    assert statistics["kept"] == len(truth.cut.kept)
    assert statistics["small"] == len(truth.cut.small)
    assert statistics["identical"] == truth.cut.identical
    assert statistics["rows_kept"] == sum(group.rows for group in truth.cut.kept)
    assert statistics["rounds"] == truth.rounds


def check_classes(found: Partitioned, case: Case) -> None:
    """Every tuple in one class, every class of k rows, every level the smallest on which all agree."""
    trees, count = Trees(case.tables), Counter(case.rows)
    assert Counter(row for tuples, _, _ in found.classes for row in tuples) == Counter(set(case.rows))
    for (tuples, levels, size), (leaf, _, _) in zip(found.classes, found.published, strict=True):
        assert size == sum(count[row] for row in tuples) >= case.k
        assert levels == gen_class(tuples, trees)
        # any member's leaf, attribute by attribute: what is published is what every member has at that level
        assert {trees.generalize(row, levels) for row in tuples} == {trees.generalize(leaf, levels)}


@settings(max_examples=80)
@given(cases(), ZERO_EDGES)
def test_spanning_tree_is_minimal(case: Case, zero_edges: str) -> None:
    """The weights of every minimum spanning tree over all rows, and the threshold that follows from them."""
    trees = Trees(case.tables)
    weights = [weight for weight, _, _ in kruskal(case.rows, trees)]
    statistics = partitioned(case, zero_edges=zero_edges).statistics
    assert {weight: edges for weight, edges in statistics["weights"].items() if edges} == Counter(weights)
    positive = [weight for weight in weights if weight]
    counted = positive if zero_edges == "exclude" else weights
    if positive:
        assert abs(statistics["tau"] - tau(counted, trees)) < 1e-9
        assert statistics["tau_below_min_weight"] == (min(positive) in inconsistent(counted))


@settings(max_examples=80)
@given(cases())
def test_spanning_tree_is_that_of_scipy(case: Case) -> None:
    """The same weights as a library's, which shares nothing with the oracle either; it takes 0 for no edge."""
    trees, shift = Trees(case.tables), 1
    distances = np.array([[trees.weight(one, other) + shift for other in case.rows] for one in case.rows])
    np.fill_diagonal(distances, 0)
    weights = minimum_spanning_tree(distances).data.astype(np.int64) - shift
    statistics = partitioned(case).statistics
    assert len(weights) == len(case.rows) - 1
    assert {weight: edges for weight, edges in statistics["weights"].items() if edges} == Counter(weights.tolist())


@settings(max_examples=120)
@given(cases(), MERGES, ZERO_EDGES)
def test_partition_is_that_of_brute_force(case: Case, merge: str, zero_edges: str) -> None:
    found = partitioned(case, merge, zero_edges)
    check_against_brute_force(found, mstk(case.rows, case.tables, case.k, merge, zero_edges))
    check_classes(found, case)


@pytest.mark.parametrize("seed", [*range(12), 28, 37])  # the last two tell (smaller id, larger id) from its reverse
def test_crowds_merge_as_by_brute_force(seed: int) -> None:
    """Enough classes for every tie to be met; by the oracle's arrays, which its own tests compare with plain loops."""
    case = crowd(seed)
    trees, weights = Trees(case.tables), prim(case.rows, Trees(case.tables))
    cut = split(case.rows, weights, trees, case.k)
    assert len(cut.small) > 20
    done, left = greedy_by_array(cut.small, trees, case.k)
    truth = absorb([*cut.kept, *done], left, trees)
    assert partitioned(case, "greedy").shape == shape(truth)
    done, left, rounds = merge_rounds(cut.small, trees, case.k, nearest=nearest_by_array)
    found, truth = partitioned(case, "rounds"), absorb([*cut.kept, *done], left, trees)
    assert (found.shape, found.statistics["rounds"]) == (shape(truth), rounds)


@settings(max_examples=60)
@given(cases(), MERGES, st.integers(0, 2**32))
def test_order_of_tuples_does_not_matter(case: Case, merge: str, seed: int) -> None:
    one, other = partitioned(case, merge), partitioned(case, merge, seed=seed)
    assert one.shape == other.shape
    assert {name: one.statistics[name] for name in STATISTICS} == {name: other.statistics[name] for name in STATISTICS}


@given(cases())
def test_the_tree_does_not_depend_on_how_it_ends(case: Case) -> None:
    """Small tables end by distances at once; without that, lattice nodes alone must give the same tree."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(spanning, "TAIL", 0)
        by_nodes = partitioned(case)
    by_distances = partitioned(case)
    assert by_nodes.statistics["weights"] == by_distances.statistics["weights"]
    assert by_nodes.shape == by_distances.shape


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_by_boxes_are_those_by_all_pairs(seed: int) -> None:
    """Classes of mixed sizes and levels: the least distance to any other, and the first node that attains it."""
    random = np.random.default_rng(seed)
    levels, place, _ = in_runs(levels_of(ladder_of(crowd(seed).hierarchies)))
    leaf = np.unique(random.integers(0, levels.leaves, (300, levels.leaves.size)), axis=0).astype(np.int32)
    level = (random.integers(0, levels.heights + 1, leaf.shape) * random.integers(0, 2, leaf.shape)).astype(np.int32)
    count = len(leaf)
    classes = Classes(level, place[levels.offsets + leaf], random.integers(1, 9, count), np.arange(count))
    nodes = plan(walk(tuple(levels.heights.tolist()), levels.units), levels)
    queries = np.flatnonzero(random.integers(0, 2, count))
    found = neighbours(classes, levels, nodes, queries)
    cost = generality(levels, level)
    rank = {tuple(node): at for at, node in enumerate(nodes.nodes.tolist())}
    for query, distance, node in zip(queries, found.distance, found.node, strict=True):
        pairs = []
        for other in np.delete(np.arange(count), query):
            join = [
                common_level(levels, at, classes.leaf[query, at], classes.leaf[other, at], max(level[[query, other], at]))
                for at in range(levels.heights.size)
            ]
            together = np.dot(join, levels.units)
            price = sum(classes.size[one] * (together - cost[one]) for one in (query, other))
            pairs.append((price, rank.get(tuple(join), 0)))
        assert (distance, node) == min(pairs)


@pytest.mark.parametrize("renumbered", [False, True])
def test_the_level_on_which_two_leaves_meet_by_look_up_and_by_climbing(renumbered: bool) -> None:
    """Attributes of many leaves have no table of pairs."""
    wide = Hierarchy.intervals(0, COMMON_LEAVES, [10, 100])
    levels = levels_of(ladder_of([*crowd(3).hierarchies, wide]))
    levels = in_runs(levels).levels if renumbered else levels
    climbing = levels._replace(pairs=np.full_like(levels.pairs, -1))
    assert (levels.pairs >= 0).tolist() == [True] * (levels.pairs.size - 1) + [False]
    draw = np.random.default_rng(2)
    for attribute, leaves in enumerate(levels.leaves.tolist()):
        for one, other in draw.integers(0, leaves, (50, 2)).tolist():
            for lowest in (0, 1):
                met = common_level(levels, attribute, one, other, lowest)
                assert met == common_level(climbing, attribute, one, other, lowest)
