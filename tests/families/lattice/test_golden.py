"""The package on the worked example of the specification, on Adult, and on a synthetic census of the same shape.

Numbers come from the specification (§6 to §8) and, for the census, from the brute force and its NumPy twin.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from hashlib import sha256
from math import lcm
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anon_spark.families.lattice.bounded import least_loss
from anon_spark.families.lattice.choice import Choice, choose
from anon_spark.families.lattice.exact import exact_front
from anon_spark.families.lattice.exhaustive import exhaustive_front
from anon_spark.families.lattice.poka import Depth, Poka
from anon_spark.families.lattice.scores import Scores
from anon_spark.model.front import Point, nondominated
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.lattice import Node, lattice_of
from anon_spark.model.node_stats import NodeStats
from anon_spark.samples.census import QUASI_IDENTIFIERS, census, census_hierarchies
from tests.families.lattice.tables import Row, loss_value, scores_of
from tests.oracle.lattice_numpy import least_losses, read_adult
from tests.oracle.lattice_oracle import level_table

pytestmark = pytest.mark.compiles

# --- §6: the paper's Table 1 (ZIP, SEX, SALARY), eta = 0 -----------------------------------------------------------

ROWS: list[Row] = [
    ("12345", "M", "<50K"),
    ("12346", "M", "<50K"),
    ("12345", "F", "<50K"),
    ("12355", "F", "≥50K"),
    ("12355", "M", "≥50K"),
    ("12356", "M", "≥50K"),
]
TREES = [
    Hierarchy.from_levels([(code, code[:4] + "*", "*") for code in ("12345", "12346", "12355", "12356")]),
    Hierarchy.from_levels([("M", "*"), ("F", "*")]),
    Hierarchy.from_levels([("<50K", "*"), ("≥50K", "*")]),
]
TABLE_1 = {  # node: k, GLM to four digits, DM
    (0, 0, 0): (1, 0.0, 6), (0, 0, 1): (1, 0.3333, 6), (0, 1, 0): (1, 0.3333, 10), (0, 1, 1): (1, 0.6667, 10),
    (1, 0, 0): (1, 0.1111, 10), (1, 0, 1): (1, 0.4444, 10), (1, 1, 0): (3, 0.4444, 18), (1, 1, 1): (3, 0.7778, 18),
    (2, 0, 0): (1, 0.3333, 10), (2, 0, 1): (2, 0.6667, 20), (2, 1, 0): (3, 0.6667, 18), (2, 1, 1): (6, 1.0, 36),
}  # fmt: skip


def on_table_1(loss: str) -> Scores:
    return scores_of(ROWS, TREES, 0, loss)


def test_every_node_of_table_1() -> None:
    glm, dm = on_table_1("glm"), on_table_1("dm")
    found = {
        one.node: (one.k, round(float(loss_value(glm, one.loss)), 4), other.loss)
        for one, other in zip(glm.evaluate(TABLE_1), dm.evaluate(TABLE_1), strict=True)
    }
    assert found == TABLE_1
    assert glm.lattice.size == len(TABLE_1)


@pytest.mark.parametrize("loss", ["glm", "dm"])
@pytest.mark.parametrize("search", [exhaustive_front, exact_front])
def test_front_of_table_1(loss: str, search: Any) -> None:
    """The k = 1 point of the specification is the unprotected table: it is never offered."""
    front: list[Point] = search(scores := on_table_1(loss))
    assert [(point.node, point.k) for point in front] == [((2, 1, 1), 6), ((1, 1, 0), 3)]
    losses = {"glm": [1, Fraction(4, 9)], "dm": [36, 18]}[loss]
    assert [loss_value(scores, point.loss) for point in front] == losses


@pytest.mark.parametrize("depth", [1, 2])
def test_literal_search_misses_the_three_anonymous_table(depth: int) -> None:
    visited = Poka(on_table_1("glm"), depth, refine=False).visit()
    assert [point.node for point in visited] == [(2, 1, 1), (2, 1, 0), (2, 0, 0)]


@pytest.mark.parametrize(("depth", "evaluated"), [(1, 11), (2, 12)])
def test_refined_search_finds_it(depth: int, evaluated: int) -> None:
    scores = on_table_1("glm")
    visited = Poka(scores, depth).visit()
    assert [point.node for point in visited] == [(2, 1, 1), (1, 1, 0), (0, 0, 0)]
    assert [point.node for point in nondominated(visited)] == [(2, 1, 1), (1, 1, 0)]
    assert scores.evaluated == evaluated


# --- §7: the paper's numbers -----------------------------------------------------------------------------------------


def test_lattice_of_the_eight_attributes() -> None:
    trees = list(census_hierarchies().values())
    eight, seven = lattice_of(trees), lattice_of(trees[:-1])
    assert eight.heights == (6, 3, 3, 3, 1, 1, 4, 1)
    assert (eight.size, seven.size) == (17920, 8960)
    assert (eight.average_height, seven.average_height) == (3, 3)
    assert lcm(*(tree.weight_total for tree in trees)) == 8760  # P-10
    assert int(Fraction("0.01") * 30162) == 301


# --- searches on a large table: every node is counted once, searches then look it up ----------------------------------


class Counted:
    """All nodes of a table, counted by the kernels in one batch."""

    def __init__(self, rows: Sequence[Row], eta: int, classes: list[str] | None = None) -> None:
        self.rows, self.eta, self.classes = rows, eta, classes
        trees = list(census_hierarchies().values())
        self.trees = trees if classes is None else trees[:-1]  # the class is no quasi-identifier
        whole = self.scores("dm")
        exhaustive_front(whole)
        self.stats = whole.stats

    def scores(self, loss: str) -> Scores:
        rows = self.rows if self.classes is None else [row[:-1] for row in self.rows]
        return scores_of(rows, self.trees, self.eta, loss, self.classes)

    @cache  # noqa: B019 - lives as long as the module's fixture
    def known(self, loss: str) -> Scores:
        return self.scores(loss)

    def search(self, loss: str) -> Scores:
        """A fresh search that looks counts up."""
        return Scores(self.known(loss).lattice, Known(self.stats), self.known(loss).loss)


class Known:
    def __init__(self, stats: dict[Node, NodeStats]) -> None:
        self.stats = stats

    def evaluate(self, nodes: Sequence[Node]) -> list[NodeStats]:
        return [self.stats[node] for node in nodes]


def pairs(points: Sequence[Point]) -> set[tuple[int, int]]:
    return {(point.k, point.loss) for point in points}


def paper_front(scores: Scores) -> list[Point]:
    """The front of the paper: each node at its largest k alone."""
    return nondominated(scores.evaluate([tuple(row) for row in scores.lattice.nodes().tolist()]))


def evaluated_and_hits(table: Counted, loss: str, depths: Sequence[Depth], refine: bool) -> list[tuple[int, int]]:
    truth = pairs(paper_front(table.search(loss)))
    found = []
    for depth in depths:
        scores = table.search(loss)
        found.append((len(pairs(nondominated(Poka(scores, depth, refine).visit())) & truth), scores.evaluated))
    return [(evaluated, hits) for hits, evaluated in found]


def shown(scores: Scores, points: Sequence[Point]) -> list[tuple[Node, int, float]]:
    return [(point.node, point.k, round(float(loss_value(scores, point.loss)), 6)) for point in points]


@pytest.fixture(scope="module")
def adult_rows(adult: Path) -> list[tuple[str, ...]]:
    return read_adult(adult)


@pytest.fixture(scope="module")
def adult_8(adult_rows: list[tuple[str, ...]]) -> Counted:
    return Counted(adult_rows, len(adult_rows) // 100)


@pytest.fixture(scope="module")
def adult_7(adult_rows: list[tuple[str, ...]]) -> Counted:
    return Counted(adult_rows, len(adult_rows) // 100, [row[-1] for row in adult_rows])


@pytest.mark.slow
class TestAdult:
    """§8, eta = 301."""

    def of(self, loss: str, request: pytest.FixtureRequest) -> Counted:
        found: Counted = request.getfixturevalue("adult_7" if loss == "cm" else "adult_8")
        return found

    @pytest.mark.parametrize(("loss", "nodes", "points"), [("glm", 17920, 41), ("dm", 17920, 32), ("cm", 8960, 8)])
    def test_fronts(self, loss: str, nodes: int, points: int, request: pytest.FixtureRequest) -> None:
        """The paper's front, and that of pairs: exact has all of it, representatives included, with a tenth of the nodes."""
        table = self.of(loss, request)
        paper, every, some = (table.search(loss) for _ in range(3))
        assert (len(paper_front(paper)), paper.evaluated) == (points, nodes)
        assert exact_front(some) == exhaustive_front(every)
        if loss == "glm":
            assert some.evaluated <= nodes // 10
            assert some.batches <= 40
        assert some.evaluated <= nodes // 5

    def test_guided_batches_need_a_twentieth_of_the_nodes(self, adult_8: Counted) -> None:
        scores = adult_8.search("glm")
        assert exact_front(scores, guided=True) == exhaustive_front(adult_8.search("glm"))
        assert scores.evaluated <= 0.06 * 17920
        assert scores.batches <= 40

    def test_the_release_of_every_k_loses_what_brute_force_finds(self, adult_rows: list[tuple[str, ...]]) -> None:
        budgets, ks = [len(adult_rows) * percent // 100 for percent in (0, 1, 5)], range(2, 101)
        trees = list(census_hierarchies().values())
        truth = least_losses(adult_rows, [level_table(tree) for tree in trees], budgets, ks)
        for budget in budgets:
            scores = scores_of(adult_rows, trees, budget, "glm")
            front = exact_front(scores)
            chosen = {k: choose(Choice(k=k), front, scores, k) for k in ks}
            assert {k: loss_value(scores, point.loss) for k, point in chosen.items()} == {
                k: truth[budget, k] for k in ks
            }
            assert all(point.suppressed <= budget for point in chosen.values())
            assert scores.evaluated <= scores.lattice.size // 9

    def test_first_and_last_points(self, adult_8: Counted) -> None:
        scores = adult_8.search("glm")
        front = shown(scores, paper_front(scores))
        assert front[:3] == [
            ((6, 3, 3, 3, 1, 1, 4, 1), 30162, 1.0),
            ((6, 3, 3, 2, 1, 1, 4, 1), 14456, 0.927515),
            ((6, 3, 3, 3, 1, 0, 4, 1), 9782, 0.875),
        ]
        assert front[-2:] == [((5, 1, 2, 2, 0, 0, 3, 0), 3, 0.227123), ((4, 1, 2, 2, 0, 0, 2, 0), 2, 0.186647)]
        visited = adult_8.search("glm")
        assert shown(visited, nondominated(Poka(visited, 3).visit())) == front

    @pytest.mark.parametrize(
        ("loss", "refine", "expected"),  # evaluated and hits at d = 1, 2, 3, 4
        [
            ("glm", False, [(500, 15), (2078, 34), (4532, 40), (7334, 40)]),
            ("glm", True, [(516, 17), (2088, 35), (4538, 41), (7336, 41)]),
            ("dm", True, [(422, 13), (1391, 22), (2823, 27), (5232, 29)]),
            ("cm", True, [(303, 3), (923, 3), (2102, 8), (3989, 8)]),
        ],
    )
    def test_poka(
        self, loss: str, refine: bool, expected: list[tuple[int, int]], request: pytest.FixtureRequest
    ) -> None:
        assert evaluated_and_hits(self.of(loss, request), loss, [1, 2, 3, 4], refine) == expected

    def test_without_suppression(self, adult_rows: list[tuple[str, ...]]) -> None:
        eight, seven = Counted(adult_rows, 0), Counted(adult_rows, 0, [row[-1] for row in adult_rows])
        for table, loss, points, expected in [
            (eight, "glm", 10, (1070, 10)), (eight, "dm", 11, (1044, 11)), (seven, "cm", 5, (512, 4)),
        ]:  # fmt: skip
            front = exhaustive_front(table.search(loss))
            assert front == paper_front(table.search(loss))  # nothing is suppressed at any k
            assert len(front) == points
            assert exact_front(table.search(loss)) == front
            assert evaluated_and_hits(table, loss, [3], True) == [expected]


# --- a synthetic census of the same shape ----------------------------------------------------------------------------

ETA = 40
CENSUS = {  # loss: points, digest of (node, k, loss) of all of them, evaluated and hits at d = 1, 2, 3
    "glm": (22, "7bacb19a0501ff06", [(262, 10), (927, 18), (2244, 21)]),
    "dm": (15, "8e5262395d076bee", [(193, 9), (772, 9), (1550, 13)]),
    "cm": (5, "c617127c829e46d3", [(165, 2), (596, 5), (1338, 5)]),
}


@pytest.fixture(scope="module")
def census_rows(spark: SparkSession) -> list[tuple[str, ...]]:
    table = census(spark, 4000, seed=11).select(*QUASI_IDENTIFIERS).toArrow()
    rows = list(zip(*([str(value) for value in column.to_pylist()] for column in table.columns), strict=True))
    assert len(set(rows)) == 2768, "the sample has changed: freeze its numbers again with the oracle"
    return rows


@pytest.fixture(scope="module")
def census_8(census_rows: list[tuple[str, ...]]) -> Counted:
    return Counted(census_rows, ETA)


@pytest.fixture(scope="module")
def census_7(census_rows: list[tuple[str, ...]]) -> Counted:
    return Counted(census_rows, ETA, [row[-1] for row in census_rows])


@pytest.mark.long
@pytest.mark.parametrize("loss", CENSUS)
def test_census(loss: str, request: pytest.FixtureRequest) -> None:
    table: Counted = request.getfixturevalue("census_7" if loss == "cm" else "census_8")
    points, digest, expected = CENSUS[loss]
    batches, guided = table.search(loss), table.search(loss)
    assert exact_front(batches) == exact_front(guided, guided=True) == exhaustive_front(table.search(loss))
    assert (guided.evaluated < batches.evaluated) == (loss == "glm")  # the other losses are not guided
    scores = table.search(loss)
    front = paper_front(scores)
    exact = [(point.node, point.k, str(loss_value(scores, point.loss))) for point in front]
    assert (len(front), sha256(repr(exact).encode()).hexdigest()[:16]) == (points, digest)
    assert evaluated_and_hits(table, loss, [1, 2, 3], True) == expected


def test_ends_of_the_census_front(census_8: Counted) -> None:
    scores = census_8.scores("glm")  # counted afresh, batch by batch
    front = shown(scores, exact_front(scores))
    assert front[0] == ((6, 3, 3, 3, 1, 1, 4, 1), 4000, 1.0)
    ends = shown(scores, paper_front(census_8.search("glm")))[-2:]
    assert ends == [((6, 2, 3, 2, 0, 0, 3, 0), 3, 0.400443), ((6, 1, 3, 1, 0, 0, 3, 0), 2, 0.343318)]
    assert front[-1] == ends[-1]
    assert front[-2][2] <= ends[-2][2]
    assert scores.evaluated <= 17920 // 10


@pytest.mark.parametrize("k", [2, 5, 50])
def test_one_k_of_the_census_loses_what_the_front_loses(k: int, census_8: Counted) -> None:
    """Large enough that nodes need not be evaluated for what suppression adds above them."""
    found = least_loss(census_8.search("glm"), k, 17920, 60)
    best = [point for point in exact_front(census_8.search("glm")) if point.k >= k][-1]
    assert found is not None
    assert found.point.loss == found.lower_bound == best.loss
