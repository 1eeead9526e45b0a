"""Lattice, front, knee and choice: the mathematics without a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest

from anon_spark.errors import ConfigurationError, GuaranteeUnreachable
from anon_spark.families.lattice.choice import Choice, choose
from anon_spark.families.lattice.scores import Scores
from anon_spark.metrics.discernibility import Discernibility
from anon_spark.model.front import Point, knee, nondominated
from anon_spark.model.lattice import Lattice, Node, below_or_equal
from anon_spark.model.node_stats import NodeStats


def point(k: int, loss: int, *node: int) -> Point:
    return Point(node or (k,), k, loss, suppressed=0, classes=1)


# --- lattice -----------------------------------------------------------------------------------------------------


def test_nodes_are_all_vectors_in_lexicographic_order_and_indexed_by_it() -> None:
    lattice = Lattice((2, 1, 3))
    nodes = [tuple(row) for row in lattice.nodes().tolist()]
    assert nodes == list(product(range(3), range(2), range(4)))
    assert [lattice.index(node) for node in nodes] == list(range(lattice.size))
    assert [lattice.node(index) for index in range(lattice.size)] == nodes
    assert (lattice.bottom, lattice.top, lattice.size, lattice.shape) == ((0, 0, 0), (2, 1, 3), 24, (3, 2, 4))
    assert all(isinstance(level, int) for level in lattice.node(5))  # nodes are saved as JSON


def test_neighbours_differ_by_one_level() -> None:
    lattice = Lattice((2, 1, 3))
    assert set(lattice.specializations((2, 0, 1))) == {(1, 0, 1), (2, 0, 0)}
    assert set(lattice.generalizations((2, 0, 1))) == {(2, 1, 1), (2, 0, 2)}
    assert list(lattice.specializations(lattice.bottom)) == []
    assert list(lattice.generalizations(lattice.top)) == []
    for node in map(tuple, lattice.nodes().tolist()):
        assert all(node in set(lattice.specializations(above)) for above in lattice.generalizations(node))


@pytest.mark.parametrize("node", [(3, 0, 0), (0, 0, 4), (-1, 0, 0), (0, 0), (0, 0, 0, 0), ()])
def test_what_lies_outside(node: Node) -> None:
    assert node not in Lattice((2, 1, 3))
    assert (2, 1, 3) in Lattice((2, 1, 3))


@pytest.mark.parametrize(
    ("heights", "depth"),
    [((6, 3, 3, 3, 1, 1, 4, 1), 3), ((6, 3, 3, 3, 1, 1, 4), 3), ((1, 1), 1), ((0, 0), 1), ((1, 2), 2)],
)
def test_default_depth_is_the_mean_height_rounded_up(heights: Node, depth: int) -> None:
    assert Lattice(heights).average_height == depth


def test_order_of_nodes_is_component_wise() -> None:
    assert below_or_equal((1, 2), (1, 2))
    assert below_or_equal((0, 2), (1, 2))
    assert not below_or_equal((0, 3), (1, 2))


# --- front -------------------------------------------------------------------------------------------------------


def dominated(one: Point, points: Iterable[Point]) -> bool:
    return any((p.k >= one.k and p.loss < one.loss) or (p.k > one.k and p.loss <= one.loss) for p in points)


def test_front_holds_exactly_what_nothing_dominates() -> None:
    points = [point(k, loss, k, loss) for k, loss in product(range(1, 6), range(5)) if (k * 3 + loss * 5) % 7 > 2]
    front = nondominated(points)
    assert front == sorted((p for p in points if p.k > 1 and not dominated(p, points)), key=lambda p: -p.k)
    assert len(front) > 1


def test_equal_points_are_represented_by_the_smallest_vector() -> None:
    same = [point(4, 7, 1, 1), point(4, 7, 0, 2), point(4, 7, 2, 0)]
    assert nondominated(same) == [same[1]]
    assert nondominated([point(4, 7, 0, 0), point(5, 7, 9, 9)]) == [point(5, 7, 9, 9)]  # equal loss, larger k
    assert nondominated([point(4, 7, 0, 0), point(4, 6, 9, 9)]) == [point(4, 6, 9, 9)]  # equal k, less loss


def test_unprotected_points_are_not_offered() -> None:
    assert nondominated([point(1, 0), point(2, 5)]) == [point(2, 5)]
    assert nondominated([point(1, 0), point(2, 5)], least_k=1) == [point(2, 5), point(1, 0)]
    assert nondominated([point(1, 0)]) == []
    assert nondominated([]) == []


def test_losses_are_compared_as_integers_not_as_floats() -> None:
    big = 2**70
    assert nondominated([point(3, big + 1), point(2, big)]) == [point(3, big + 1), point(2, big)]


def test_knee_is_the_point_farthest_above_the_chord() -> None:
    front = [point(1000, 100), point(100, 20), point(10, 10), point(2, 0)]
    assert knee(front).k == 100  # log k falls by a third of its way, the loss by four fifths
    hollow = [point(1000, 100), point(100, 99), point(2, 0)]  # nothing lies above the chord
    assert knee(hollow).k == 1000


@pytest.mark.parametrize("front", [[point(7, 3)], [point(9, 5), point(2, 1)]])
def test_knee_of_a_front_without_bend_is_its_largest_k(front: list[Point]) -> None:
    assert knee(front) is front[0]


def test_knee_breaks_ties_by_the_larger_k() -> None:
    front = [point(16, 4), point(8, 2), point(4, 1), point(2, 0)]  # bends of 0, 1/6, 1/12, 0
    assert knee(front).k == 8
    even = [point(16, 3), point(8, 1), point(4, 0, 4, 0), point(2, 0, 2, 0)]  # 8 and 4 both bend by a third
    assert knee(even).k == 8


# --- choice ------------------------------------------------------------------------------------------------------

FRONT = [point(100, 90, 2, 2), point(20, 40, 1, 2), point(5, 10, 0, 1), point(2, 4, 0, 0)]


class Fixed:
    """Counts that were decided beforehand."""

    def __init__(self, k: int) -> None:
        self.k = k

    def evaluate(self, nodes: Sequence[Node]) -> list[NodeStats]:
        return [NodeStats.of(node, [self.k, 0, 1, 60, 60, 0, 0], [0] * len(node)) for node in nodes]


def scores(k: int = 20) -> Scores:
    return Scores(Lattice((2, 2)), Fixed(k), Discernibility(10))  # losses over 100


@pytest.mark.parametrize(
    ("choice", "required", "k"),
    [
        (Choice(k=5), 2, 5),  # exactly k is enough
        (Choice(k=6), 2, 20),
        (Choice(k=3), 10, 20),  # nothing below the required k
        (Choice(max_loss=0.4), 2, 20),  # exactly the bound is within it
        (Choice(max_loss=0.399), 2, 5),
        (Choice(max_loss=1.0), 2, 100),
        (Choice(max_loss=0.04), 2, 2),
        (Choice(knee=True), 2, 20),
        (Choice(knee=True), 21, 100),
    ],
)
def test_choice(choice: Choice, required: int, k: int) -> None:
    assert choose(choice, FRONT, scores(), required).k == k


def test_bounds_on_loss_are_decimals_not_doubles() -> None:
    """0.07 · 100 is 7.000000000000001 in doubles, 0.29 · 100 is 28.999999999999996."""
    front = [point(9, 29), point(3, 7)]
    assert choose(Choice(max_loss=0.29), front, scores(), 2).k == 9
    assert choose(Choice(max_loss=0.07), front, scores(), 2).k == 3


def test_a_chosen_node_is_evaluated_even_off_the_front() -> None:
    found = scores()
    chosen = choose(Choice(node=(2, 1)), FRONT, found, 20)
    assert (chosen.node, chosen.k, chosen.loss) == ((2, 1), 20, 60)
    assert found.evaluated == 1


@pytest.mark.parametrize(
    ("choice", "required", "error", "says"),
    [
        (Choice(k=101), 2, GuaranteeUnreachable, "k = 101 cannot be reached: even the most general node has k = 100"),
        (Choice(k=2), 101, GuaranteeUnreachable, "k = 101 cannot"),
        (Choice(knee=True), 101, GuaranteeUnreachable, "k = 101 cannot"),
        (Choice(max_loss=0.5), 101, GuaranteeUnreachable, "k = 101 cannot"),
        (Choice(max_loss=0.03), 2, GuaranteeUnreachable, "least loss with k of at least 2 is 0.040000"),
        (Choice(max_loss=0.3), 20, GuaranteeUnreachable, "least loss with k of at least 20 is 0.400000"),
        (Choice(node=(3, 0)), 2, ConfigurationError, r"heights are \[2, 2\]"),
        (Choice(node=(1,)), 2, ConfigurationError, r"heights are \[2, 2\]"),
        (Choice(node=(1, 1)), 21, GuaranteeUnreachable, "choose.node reaches k = 20, privacy.k asks for 21"),
    ],
)
def test_what_cannot_be_chosen(choice: Choice, required: int, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        choose(choice, FRONT, scores(), required)


def test_an_empty_front_reaches_nothing() -> None:
    with pytest.raises(GuaranteeUnreachable, match="most general node has k = 1"):
        choose(Choice(k=2), [], scores(), 2)


@pytest.mark.parametrize("given", [{}, {"k": 2, "knee": True}, {"k": 2, "max_loss": 0.1}, {"node": (0,), "knee": True}])
def test_a_choice_is_exactly_one_thing(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="exactly one of"):
        Choice(**given)


# --- scores ------------------------------------------------------------------------------------------------------


def test_a_node_is_counted_once_and_answers_come_in_the_order_asked() -> None:
    asked: list[list[Node]] = []

    class Recorded(Fixed):
        def evaluate(self, nodes: Sequence[Node]) -> list[NodeStats]:
            asked.append(list(nodes))
            return super().evaluate(nodes)

    told: list[tuple[int, int, str]] = []
    found = Scores(Lattice((2, 2)), Recorded(3), Discernibility(10), lambda *step: told.append(step))
    assert [p.node for p in found.evaluate([(1, 1), (0, 1), (1, 1)])] == [(1, 1), (0, 1), (1, 1)]
    assert [p.node for p in found.evaluate([(0, 1), (2, 2)])] == [(0, 1), (2, 2)]
    found.evaluate([(2, 2)])
    assert asked == [[(0, 1), (1, 1)], [(2, 2)]]
    assert (found.evaluated, found.batches) == (3, 2)
    assert told == [(2, 9, "nodes"), (3, 9, "nodes")]
