"""The oracle itself against the worked example of the specification, and both against the regression on Adult."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import lcm
from pathlib import Path
from typing import Any

import pytest

from anon_spark.samples.census import census_hierarchies
from tests.oracle.lattice_numpy import NodeValues, all_nodes, read_adult
from tests.oracle.lattice_oracle import (
    Interval,
    LevelTable,
    Node,
    Point,
    cell_loss,
    dominates,
    evaluate_node,
    exhaustive_front,
    lattice_nodes,
    level_table,
    nondominated,
    poka,
)

# --- the paper's Table 1 (ZIP, SEX, SALARY), eta = 0 -------------------------------------------------------------

ROWS = [
    ("12345", "M", "<50K"),
    ("12346", "M", "<50K"),
    ("12345", "F", "<50K"),
    ("12355", "F", "≥50K"),
    ("12355", "M", "≥50K"),
    ("12356", "M", "≥50K"),
]
HEIGHTS = (2, 1, 1)
TABLES = [
    {zip_code: [zip_code, zip_code[:4] + "*", "*"] for zip_code in ("12345", "12346", "12355", "12356")},
    {sex: [sex, "*"] for sex in ("M", "F")},
    {salary: [salary, "*"] for salary in ("<50K", "≥50K")},
]
TABLE_1 = {  # node: k, ninths of GLM, DM
    (0, 0, 0): (1, 0, 6), (0, 0, 1): (1, 3, 6), (0, 1, 0): (1, 3, 10), (0, 1, 1): (1, 6, 10),
    (1, 0, 0): (1, 1, 10), (1, 0, 1): (1, 4, 10), (1, 1, 0): (3, 4, 18), (1, 1, 1): (3, 7, 18),
    (2, 0, 0): (1, 3, 10), (2, 0, 1): (2, 6, 20), (2, 1, 0): (3, 6, 18), (2, 1, 1): (6, 9, 36),
}  # fmt: skip


def on_table_1(loss: str) -> dict[Node, tuple[int, Fraction]]:
    return {node: evaluate_node(ROWS, TABLES, node, 0, loss)[:2] for node in lattice_nodes(HEIGHTS)}


def test_every_node_of_table_1() -> None:
    glm, dm = on_table_1("glm"), on_table_1("dm")
    assert glm == {node: (k, Fraction(ninths, 9)) for node, (k, ninths, _) in TABLE_1.items()}
    assert dm == {node: (k, Fraction(cost)) for node, (k, _, cost) in TABLE_1.items()}


@pytest.mark.parametrize(
    ("loss", "points"),
    [("glm", [(6, Fraction(1)), (3, Fraction(4, 9)), (1, Fraction(0))]), ("dm", [(6, 36), (3, 18), (1, 6)])],
)
def test_front_of_table_1(loss: str, points: list[tuple[int, Any]]) -> None:
    front = exhaustive_front(HEIGHTS, on_table_1(loss).__getitem__, min_k=1)
    assert [(p.k, p.loss) for p in front] == points
    assert [p.node for p in front] == [(2, 1, 1), (1, 1, 0), (0, 0, 0)]


@pytest.mark.parametrize("d", [1, 2])
def test_literal_search_misses_the_three_anonymous_table(d: int) -> None:
    result = poka(HEIGHTS, on_table_1("glm").__getitem__, d, refine=False)
    assert [p.node for p in result.visited] == [(2, 1, 1), (2, 1, 0), (2, 0, 0)]


@pytest.mark.parametrize(("d", "evaluated"), [(1, 11), (2, 12)])
def test_refined_search_finds_it(d: int, evaluated: int) -> None:
    result = poka(HEIGHTS, on_table_1("glm").__getitem__, d)
    assert [p.node for p in result.visited] == [(2, 1, 1), (1, 1, 0), (0, 0, 0)]
    assert [p.node for p in result.nondominated] == [(2, 1, 1), (1, 1, 0)]  # P-5: the k = 1 node is not returned
    assert len(result.evaluated) == evaluated


# --- rules no example of the paper shows ------------------------------------------------------------------------


def test_suppression_moves_all_classes_of_one_size() -> None:
    flat = [{value: [value, "*"] for value in "abcd"}]
    rows = [(value,) for value in "abbcccdddd"]  # classes of 1, 2, 3, 4 rows
    expected = {0: (1, 0), 1: (2, 1), 2: (2, 1), 3: (3, 3), 5: (3, 3), 6: (4, 6), 9: (4, 6)}
    assert {eta: evaluate_node(rows, flat, (0,), eta)[:3:2] for eta in expected} == expected
    assert evaluate_node(rows, flat, (0,), 6, "dm").loss == 16 + 10 * 6
    assert evaluate_node(rows, flat, (0,), 6, "glm").loss == Fraction(6, 10)
    with pytest.raises(ValueError, match="below the 10 rows"):
        evaluate_node(rows, flat, (0,), 10)


def test_classification_errors_are_minorities_and_suppressed_rows() -> None:
    flat = [{value: [value, "*"] for value in "abc"}]
    rows, classes = [(value,) for value in "aaabbbbc"], list("xxyyyyxz")
    assert evaluate_node(rows, flat, (0,), 0, "cm", classes).loss == Fraction(2, 8)
    assert evaluate_node(rows, flat, (0,), 1, "cm", classes).loss == Fraction(3, 8)
    assert evaluate_node(rows, flat, (1,), 0, "cm", classes).loss == Fraction(4, 8)  # four of eight are y


def test_classes_count_persons_and_losses_count_rows() -> None:
    flat = [{value: [value, "*"] for value in "ab"}]
    rows, person = [(value,) for value in "aaaabb"], [1, 1, 1, 1, 2, 3]
    alone = evaluate_node(rows, flat, (0,), 3, "dm", person=person)  # four rows of one person exceed eta
    assert alone[:3] == (1, Fraction(20), 0)
    dropped = evaluate_node(rows, flat, (0,), 4, "dm", person=person)
    assert dropped[:3] == (2, Fraction(4 + 6 * 4), 4)
    assert dropped.classes == {("a",): (4, 1), ("b",): (2, 2)}


def test_numeric_cells_lose_the_length_of_their_interval() -> None:
    levels = {n: [n, "low" if n < 13 else "high", "*"] for n in range(10, 15)}
    intervals = {n: [(n, n), (10, 12) if n < 13 else (13, 14), (10, 14)] for n in range(10, 15)}
    table = LevelTable(levels, {n: [(Fraction(a), Fraction(b)) for a, b in of] for n, of in intervals.items()})
    assert [cell_loss(table, 10, level) for level in range(3)] == [0, Fraction(2, 4), 1]
    assert [cell_loss(table, 14, level) for level in range(3)] == [0, Fraction(1, 4), 1]


def test_null_leaf_costs_nothing_until_the_root() -> None:
    table = level_table(census_hierarchies()["age"].with_null())
    assert [cell_loss(table, None, level) for level in range(7)] == [0, 0, 0, 0, 0, 0, 1]
    assert cell_loss(table, "17", 1) == Fraction(2, 73)


def test_plateau_takes_a_forced_step() -> None:
    half = Fraction(1, 2)
    nodes: NodeValues = {(1, 1): (4, half), (1, 0): (3, half * 3 / 2), (0, 1): (2, half), (0, 0): (1, Fraction(0))}
    # strict finds nothing, the retry with ≤ reaches (0, 1), whose k is the stop
    assert [p.node for p in poka((1, 1), nodes.__getitem__, 1).visited] == [(1, 1), (0, 1)]
    nodes[0, 1] = (2, Fraction(9, 10))  # now no child is accepted at all: the one with the largest k is taken
    result = poka((1, 1), nodes.__getitem__, 1)
    assert [p.node for p in result.visited] == [(1, 1), (1, 0), (0, 0)]
    assert [p.node for p in result.nondominated] == [(1, 1)]


def test_forced_step_crosses_nodes_of_the_same_k() -> None:
    nodes: NodeValues = {(2,): (4, Fraction(1, 2)), (1,): (4, Fraction(3, 5)), (0,): (1, Fraction(9, 10))}
    assert [p.node for p in poka((2,), nodes.__getitem__, 1).visited] == [(2,), (0,)]


@pytest.mark.parametrize(("d", "same_as"), [("best", 2), ("worst", 3), (None, 2)])
def test_named_depths(d: str | None, same_as: int) -> None:
    """At the top (2, 1, 1): the largest level, all but the smallest, the mean height rounded up."""
    evaluate = on_table_1("glm").__getitem__
    named, numbered = poka(HEIGHTS, evaluate, d, k_stop=5), poka(HEIGHTS, evaluate, same_as, k_stop=5)
    assert (named.visited, named.evaluated) == (numbered.visited, numbered.evaluated)


def test_front_is_what_nothing_dominates() -> None:
    nodes = on_table_1("dm")
    points = [Point(node, *value) for node, value in nodes.items()]
    front = exhaustive_front(HEIGHTS, nodes.__getitem__)
    assert front == nondominated(points)
    assert all(
        any(dominates(q, p) for q in points)
        for p in points
        if (p.k, p.loss) not in {(q.k, q.loss) for q in front} and p.k > 1
    )


# --- Adult, hierarchies of the specification, eta = 301 -----------------------------------------------------------


@pytest.fixture(scope="module")
def adult_rows(adult: Path) -> list[tuple[str, ...]]:
    return read_adult(adult)


@pytest.fixture(scope="module")
def adult_nodes(adult_rows: list[tuple[str, ...]]) -> dict[str, NodeValues]:
    """Every node under GLM, DM and CM; CM has seven quasi-identifiers, salary is its class and so stays at level 1."""
    nodes = all_nodes(adult_rows, adult_tables(), 301, [row[-1] for row in adult_rows])
    return nodes | {"cm": {node[:-1]: value for node, value in nodes["cm"].items() if node[-1] == 1}}


def adult_tables() -> list[LevelTable]:
    return [level_table(hierarchy) for hierarchy in census_hierarchies().values()]


def front_of(nodes: NodeValues) -> list[Point]:
    return exhaustive_front(max(nodes), nodes.__getitem__)


@pytest.mark.slow
class TestAdult:
    def test_shape(self, adult_rows: list[tuple[str, ...]]) -> None:
        hierarchies = census_hierarchies()
        assert (len(adult_rows), len(set(adult_rows))) == (30162, 12458)
        assert [h.height for h in hierarchies.values()] == [6, 3, 3, 3, 1, 1, 4, 1]
        assert lcm(*(h.weight_total for h in hierarchies.values())) == 8760  # P-10

    @pytest.mark.parametrize("node", [(4, 1, 2, 2, 0, 0, 2, 0), (0,) * 8, (2, 0, 3, 1, 1, 0, 4, 1)])
    def test_numpy_agrees_with_the_oracle(
        self, adult_rows: list[tuple[str, ...]], adult_nodes: dict[str, NodeValues], node: Node
    ) -> None:
        tables, salary = adult_tables(), [row[-1] for row in adult_rows]
        assert evaluate_node(adult_rows, tables, node, 301, "glm")[:2] == adult_nodes["glm"][node]
        assert evaluate_node(adult_rows, tables, node, 301, "dm")[:2] == adult_nodes["dm"][node]
        seven = [row[:-1] for row in adult_rows]
        assert evaluate_node(seven, tables[:-1], node[:-1], 301, "cm", salary)[:2] == adult_nodes["cm"][node[:-1]]

    @pytest.mark.parametrize(
        ("node", "k", "loss"),
        [
            ((6, 3, 3, 3, 1, 1, 4, 1), 30162, 1.0),
            ((6, 3, 3, 2, 1, 1, 4, 1), 14456, 0.927515),
            ((6, 3, 3, 3, 1, 0, 4, 1), 9782, 0.875),
            ((5, 1, 2, 2, 0, 0, 3, 0), 3, 0.227123),
            ((4, 1, 2, 2, 0, 0, 2, 0), 2, 0.186647),
        ],
    )
    def test_points(self, adult_nodes: dict[str, NodeValues], node: Node, k: int, loss: float) -> None:
        """Ages as closed intervals of whole numbers, clipped to 90, length over 90 - 17: half-open ones do not fit."""
        found = adult_nodes["glm"][node]
        assert (found[0], round(float(found[1]), 6)) == (k, loss)
        assert Point(node, *found) in front_of(adult_nodes["glm"])

    def test_half_open_ages_give_another_front(self, adult_rows: list[tuple[str, ...]]) -> None:
        """The planted fault: a bin of width 3 that loses 3/73 instead of 2/73 misses a point and the losses."""
        tables = adult_tables()

        def half_open(level: int, span: Interval | None) -> Interval | None:
            return (span[0], min(span[1] + 1, Fraction(90))) if span is not None and 0 < level < 6 else span

        spans = tables[0].bounds or {}
        widened = {leaf: [half_open(level, span) for level, span in enumerate(of)] for leaf, of in spans.items()}
        glm = all_nodes(adult_rows, [LevelTable(tables[0], widened), *tables[1:]], 301)["glm"]
        assert len(front_of(glm)) == 40
        assert round(float(glm[4, 1, 2, 2, 0, 0, 2, 0][1]), 6) == 0.188342

    @pytest.mark.parametrize(("loss", "nodes", "points"), [("glm", 17920, 41), ("dm", 17920, 32), ("cm", 8960, 8)])
    def test_fronts(self, adult_nodes: dict[str, NodeValues], loss: str, nodes: int, points: int) -> None:
        front = front_of(adult_nodes[loss])
        assert (len(adult_nodes[loss]), len(front)) == (nodes, points)
        assert all(one.k > other.k and one.loss > other.loss for one, other in pairwise(front))

    @pytest.mark.parametrize(
        ("loss", "refine", "evaluated_and_hits"),  # d = 1, 2, …
        [
            ("glm", False, [(500, 15), (2078, 34), (4532, 40), (7334, 40), (10160, 40), (12749, 40)]),
            ("glm", True, [(516, 17), (2088, 35), (4538, 41), (7336, 41), (10162, 41), (12751, 41)]),
            ("dm", True, [(422, 13), (1391, 22), (2823, 27), (5232, 29), (8504, 32), (11570, 32)]),
            ("cm", True, [(303, 3), (923, 3), (2102, 8), (3989, 8)]),
        ],
    )
    def test_poka(
        self, adult_nodes: dict[str, NodeValues], loss: str, refine: bool, evaluated_and_hits: list[tuple[int, int]]
    ) -> None:
        nodes = adult_nodes[loss]
        true = {(point.k, point.loss) for point in front_of(nodes)}
        seen = []
        for d in range(1, len(evaluated_and_hits) + 1):
            result = poka(max(nodes), nodes.__getitem__, d, refine)
            seen.append((len(result.evaluated), len(true & {(p.k, p.loss) for p in result.nondominated})))
        assert seen == evaluated_and_hits

    def test_without_suppression(self, adult_rows: list[tuple[str, ...]]) -> None:
        nodes = all_nodes(adult_rows, adult_tables(), 0, [row[-1] for row in adult_rows])
        nodes["cm"] = {node[:-1]: value for node, value in nodes["cm"].items() if node[-1] == 1}
        seen = {}
        for loss, values in nodes.items():
            result, front = poka(max(values), values.__getitem__, 3), front_of(values)
            hits = {(p.k, p.loss) for p in front} & {(p.k, p.loss) for p in result.nondominated}
            seen[loss] = (len(hits), len(front), len(result.evaluated))
        assert seen == {"glm": (10, 10, 1070), "dm": (11, 11, 1044), "cm": (4, 5, 512)}
