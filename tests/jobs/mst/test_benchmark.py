"""The plain forms that the benchmark measures against give what the package gives; how it charges and what it checks."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from anon_spark.errors import AnonSparkError
from anon_spark.families.mst.kernels.distances import levels_of
from anon_spark.families.mst.kernels.spanning import spanning_tree
from anon_spark.families.mst.merge import merge_in_rounds
from anon_spark.model.hierarchy import Hierarchy
from jobs.benchmarks.census_runs import growth
from jobs.benchmarks.mst import main as mst
from jobs.benchmarks.mst.opponents import Tuples, mstk, on_node, outcome
from jobs.benchmarks.mst.plain_rounds import merge_in_plain_rounds
from jobs.benchmarks.mst.plain_trees import kruskal_weights, prim_weights
from jobs.reproductions.mst.main import distance, exactly, paper_table
from tests.families.mst.tables import crowd
from tests.oracle.mst_oracle import Trees, kruskal, merge_rounds, prim, split

pytestmark = pytest.mark.long  # tools of benchmarks and methods of papers: nothing that a release depends on


def tuples_of(seed: int) -> Tuples:
    """The distinct tuples of a crowd in lexicographic order."""
    case = crowd(seed)
    counted = sorted(Counter(case.rows).items())
    places = [{row[0]: leaf for leaf, row in enumerate(table)} for table in case.tables]
    codes = np.array([[place[row[at]] for row, _ in counted] for at, place in enumerate(places)], dtype=np.int32)
    return Tuples("crowd", codes, np.array([rows for _, rows in counted]), tuple(case.hierarchies))


@pytest.mark.parametrize("seed", range(3))
def test_dense_trees_have_the_weights_of_the_tree(seed: int) -> None:
    tuples, case = tuples_of(seed), crowd(seed)
    levels = levels_of(tuples.ladder)
    truth = sorted(weight for weight, _, _ in kruskal(sorted(set(case.rows)), Trees(case.tables)))
    assert prim_weights(tuples.codes, levels).tolist() == truth
    assert kruskal_weights(tuples.codes, levels).tolist() == truth
    assert np.sort(spanning_tree(tuples.codes, tuples.ladder).weight).tolist() == truth
    assert mst.tree_step(tuples).total == sum(truth)


@pytest.mark.parametrize("dense", ["prim_weights", "kruskal_weights"])
def test_another_tree_is_an_error(dense: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tuples = tuples_of(0)
    honest = getattr(mst, dense)
    monkeypatch.setattr(mst, dense, lambda codes, levels: np.append(honest(codes, levels)[:-1], 999))
    with pytest.raises(AnonSparkError, match="one is wrong"):
        mst.tree_step(tuples)


@pytest.mark.parametrize("tail", [0, 8])
@pytest.mark.parametrize("seed", range(4))
def test_plain_rounds_give_the_classes_of_the_rounds(seed: int, tail: int) -> None:
    """Whether the last classes are found on lattice nodes, too, or compared with all others."""
    tuples, case = tuples_of(seed), crowd(seed)
    levels, small = levels_of(tuples.ladder), mst.small_classes(tuples, case.k)
    plain = merge_in_plain_rounds(small, levels, case.k, tail)
    trees = Trees(case.tables)
    done, left, rounds = merge_rounds(split(case.rows, prim(case.rows, trees), trees, case.k).small, trees, case.k)
    shown = Counter(zip(map(tuple, plain.level.tolist()), plain.size.tolist(), strict=True))
    assert (shown, plain.rounds) == (Counter((group.levels, group.rows) for group in [*done, *left]), rounds)
    assert mst.same_classes(merge_in_rounds(small, levels, case.k), plain)


def test_other_classes_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tuples = tuples_of(1)
    assert mst.merging(tuples, k=4).plain is not None
    assert mst.merging(tuples, plainly=False, k=4).plain is None
    monkeypatch.setattr(mst, "merge_in_plain_rounds", lambda small, levels, k: merge_in_plain_rounds(small, levels, k + 1))
    with pytest.raises(AnonSparkError, match="different classes"):
        mst.merging(tuples, k=4)


def test_suppressed_rows_are_charged() -> None:
    """Three rows of a, one of b, domain of four: b is suppressed, and costs 3/4 of IL, four of DM, a row of CAVG."""
    hierarchy = Hierarchy.from_levels([(leaf, "*") for leaf in "abcd"])
    tuples = Tuples("four rows", np.array([[0, 1]], dtype=np.int32), np.array([3, 1]), (hierarchy,))
    found = outcome(on_node(tuples, (0,), 2), 2, 0.0, (0,))
    assert (found.il, found.dm, found.cavg, found.classes, found.suppressed) == (3 / 16, 9 + 4, 2.0, 1, 1)
    whole = outcome(on_node(tuples, (1,), 2), 2, 0.0, (1,))
    assert (whole.il, whole.dm, whole.cavg, whole.suppressed) == (0.75, 16, 2.0, 0)


def test_the_papers_table() -> None:
    table = paper_table()
    assert [distance(table, *pair) for pair in ((4, 5), (3, 6), (1, 5), (5, 7))] == [6, 4, 4, 2]
    assert exactly(table, 2) == (2, 4)  # {1, 2} and {3, 4}
    found = mstk(table, 3, "greedy")
    assert (found.dm, found.classes, found.small) == (25, 2, 2)


def test_exponent_of_growth() -> None:
    grown = [{"rows": 10, "total": 2.0}, {"rows": 20, "total": 99.0}, {"rows": 1000, "total": 20.0}]
    times, exponent = growth(grown)
    assert (times, round(exponent, 9)) == (10.0, 0.5)
