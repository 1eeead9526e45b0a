"""The lattice family against brute force on random small tables: counts, fronts and searches, arrays only."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.families.lattice.bounded import least_loss
from anon_spark.families.lattice.exact import exact_front
from anon_spark.families.lattice.exhaustive import exhaustive_front
from anon_spark.families.lattice.poka import Depth, Poka
from anon_spark.families.lattice.scores import Scores
from anon_spark.model.front import Point, nondominated
from anon_spark.model.hierarchy import Hierarchy
from tests.families.lattice.tables import LOSSES, Case, cases, loss_value, scores_of
from tests.oracle import lattice_oracle as oracle

pytestmark = pytest.mark.compiles

DEPTHS: tuple[Depth, ...] = (1, 2, 3, "best", "worst")


def four_levels(leaves: int) -> Hierarchy:
    return Hierarchy.from_levels([(f"v{at}", f"pair {at // 2}", f"four {at // 4}", "*") for at in range(leaves)])


def shown(scores: Scores, points: list[Point]) -> list[oracle.Point]:
    return [oracle.Point(point.node, point.k, loss_value(scores, point.loss)) for point in points]


@settings(max_examples=60)
@given(cases(), st.sampled_from(LOSSES))
def test_every_node_counts_as_by_brute_force(case: Case, loss: str) -> None:
    truth, scores = case.oracle(loss), case.scores(loss)
    for point in scores.evaluate(truth):
        expected = truth[point.node]
        kept = [size for size in expected.classes.values() if size.persons >= expected.k]
        assert (point.k, point.suppressed, point.classes) == (expected.k, expected.n_sup, len(kept))
        assert loss_value(scores, point.loss) == expected.loss


@settings(max_examples=40)
@given(cases(), st.sampled_from(LOSSES))
def test_a_node_has_a_point_for_every_k(case: Case, loss: str) -> None:
    """Between two points of a node nothing changes: the next one above k is the node at k."""
    scores = case.scores(loss)
    scores.evaluate([tuple(row) for row in case.lattice.nodes().tolist()])
    for truth in case.oracle_pairs(loss):
        found = next(point for point in scores.curve(truth.node) if point.k >= truth.k)
        assert loss_value(scores, found.loss) == truth.loss
        assert scores.stats_of(found).suppressed == found.suppressed <= case.eta
    assert all(scores.curve(point.node)[-1] == point for point in scores.points.values())


@settings(max_examples=40)
@given(cases())
def test_sums_before_suppression_bound_every_loss_above(case: Case) -> None:
    """What `exact` relies on: on the way up k and the loss without suppression never fall, what suppression adds never rises."""
    for loss in LOSSES:
        scores = case.scores(loss)
        points = scores.evaluate([tuple(row) for row in case.lattice.nodes().tolist()])
        floors = {point.node: scores.loss.floor(scores.stats[point.node]) for point in points}
        for point in points:
            assert floors[point.node] <= point.loss
            for above in case.lattice.generalizations(point.node):
                assert scores.points[above].k >= point.k
                assert floors[above] >= floors[point.node]
                for here in scores.curve(point.node):
                    there = next(found for found in scores.curve(above) if found.k >= here.k)
                    assert there.loss - floors[above] <= here.loss - floors[point.node]
        known = scores.loss.floors(case.lattice.nodes())
        if known is not None:  # GLM knows them from marginals
            assert known.tolist() == list(floors.values())


@settings(max_examples=60)
@given(cases(), st.sampled_from(LOSSES), st.sampled_from([1, 3, 64]), st.booleans())
def test_exact_front_is_the_exhaustive_front_is_the_true_front(case: Case, loss: str, batch: int, guided: bool) -> None:
    """Pairs of node and k, with their representatives, whatever the batches."""
    truth = oracle.nondominated(case.oracle_pairs(loss))
    every, some = case.scores(loss), case.scores(loss)
    assert shown(every, exhaustive_front(every)) == truth
    assert shown(some, exact_front(some, batch, guided)) == truth
    assert every.evaluated == case.lattice.size >= some.evaluated


@settings(max_examples=100)
@given(cases(), st.integers(2, 12), st.sampled_from([1, 5, 20, 10_000]))
def test_the_least_loss_for_one_k_has_a_proven_bound(case: Case, k: int, max_nodes: int) -> None:
    """With a budget it is the optimum; without one it is above it, and the bound below it."""
    possible = [point.loss for point in case.oracle_pairs("glm") if point.k == k]
    scores = case.scores("glm")
    found = least_loss(scores, k, max_nodes, 60)
    if not possible:
        assert found is None
        return
    assert found is not None
    assert found.point.k >= k
    assert found.point.suppressed <= case.eta
    loss, lower = (loss_value(scores, number) for number in (found.point.loss, found.lower_bound))
    assert lower <= min(possible) <= loss
    if max_nodes == 10_000:
        assert lower == loss


@settings(max_examples=100)
@given(
    st.integers(0, 2**32), st.integers(2, 5), st.integers(0, 15), st.sampled_from([10, 30, 80, 10_000]), st.sampled_from([1, 4])
)
def test_the_least_loss_in_lattices_of_which_little_is_evaluated(
    seed: int, k: int, eta: int, max_nodes: int, few: int
) -> None:
    """Some hundred nodes, few at a time, in boxes that are cut: as when all of them are evaluated."""
    draw = np.random.default_rng(seed)
    trees = [four_levels(int(leaves)) for leaves in draw.integers(3, 9, draw.integers(3, 5))]
    drawn = [np.minimum(draw.geometric(0.3, 40) - 1, len(tree.keys) - 1) for tree in trees]
    rows = [tuple(f"v{at}" for at in row) for row in np.stack(drawn, axis=1).tolist()]
    every = scores_of(rows, trees, eta, "glm")
    every.evaluate([tuple(node) for node in every.lattice.nodes().tolist()])
    least = min(point.loss for node in every.points for point in every.curve(node) if point.k >= k)
    scores = scores_of(rows, trees, eta, "glm")
    with pytest.MonkeyPatch.context() as small:
        small.setattr("anon_spark.families.lattice.bounded.DESCENTS", few)
        small.setattr("anon_spark.families.lattice.open_nodes.BATCH", few)
        small.setattr("anon_spark.families.lattice.open_nodes.MOST_LISTED", 2 * few)
        small.setattr("anon_spark.families.lattice.open_nodes.MOST_BOXES", few)
        found = least_loss(scores, k, max_nodes, 60)
    assert found is not None
    assert found.lower_bound <= least <= found.point.loss
    if max_nodes == 10_000:
        assert found.lower_bound == found.point.loss


@settings(max_examples=60)
@given(cases(), st.sampled_from(LOSSES), st.sampled_from(DEPTHS), st.booleans())
def test_poka_level_by_level_is_the_recursion(case: Case, loss: str, depth: Depth, refine: bool) -> None:
    values = {node: (found.k, found.loss) for node, found in case.oracle(loss).items()}
    truth = oracle.poka(case.lattice.heights, values.__getitem__, depth, refine)
    scores = case.scores(loss)
    visited = Poka(scores, depth, refine).visit()
    assert shown(scores, visited) == truth.visited
    assert shown(scores, nondominated(visited)) == truth.nondominated
    assert set(scores.points) == truth.evaluated
    assert all(one.k > other.k for one, other in pairwise(visited))  # so it ends: no endless loop


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("loss", LOSSES)
def test_poka_on_a_constructed_plateau(depth: Depth, loss: str) -> None:
    """An attribute of one value: every step keeps k for a while, so plateau, forced step and refine all happen."""
    flat = Hierarchy.from_levels([("only", "a", "b", "*"), ("never", "a", "b", "*")])
    pairs = Hierarchy.from_levels([(f"v{n}", f"g{n // 2}", "*") for n in range(4)])
    rows: list[tuple[str | None, ...]] = [("only", f"v{n}", "only") for n in (0, 1, 2, 2, 3, 3, 3)]
    case = Case([flat, pairs, flat], rows, 1, list("xxxxxyx"))
    values = {node: (found.k, found.loss) for node, found in case.oracle(loss).items()}
    for refine in (True, False):
        truth = oracle.poka(case.lattice.heights, values.__getitem__, depth, refine)
        scores = case.scores(loss)
        assert shown(scores, Poka(scores, depth, refine).visit()) == truth.visited
        assert set(scores.points) == truth.evaluated


def test_losses_beyond_64_bits_are_compared_exactly() -> None:
    """Coprime domains make a common denominator of more than 62 bits: bounds turn into Python integers."""
    primes = (1009, 1013, 1019, 1021, 1031, 1033, 1039)  # their lcm has 70 bits
    trees = [Hierarchy.intervals(0, prime, [500]) for prime in primes]
    draw = np.random.default_rng(7)
    rows: list[tuple[str | None, ...]] = [
        tuple(str(int(draw.choice([0, 1, prime // 2 + 1, prime]))) for prime in primes) for _ in range(12)
    ]
    scores, every = (scores_of(rows, trees, 2, "glm") for _ in range(2))
    assert scores.loss.denominator > 2**70
    floors = scores.loss.floors(scores.lattice.nodes())
    assert floors is not None
    assert floors.dtype == object
    assert exact_front(scores) == exact_front(scores_of(rows, trees, 2, "glm"), guided=True) == exhaustive_front(every)
    one = least_loss(scores_of(rows, trees, 2, "glm"), 3, 10_000, 60)
    assert one is not None
    assert one.point.loss == min(point.loss for point in exhaustive_front(every) if point.k >= 3)
    assert one.lower_bound <= one.point.loss <= one.lower_bound * (1 + Fraction(1, 10**9))  # its floors are rounded down
    assert scores.evaluated < every.evaluated
    assert all(Fraction(point.loss, scores.loss.denominator) <= 1 for point in every.points.values())
