"""Incognito against brute force over the whole lattice, its counters by definition, and the Adult regression."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.errors import AnonSparkError, GuaranteeUnreachable
from anon_spark.metrics.cells import Ints
from anon_spark.metrics.information_loss import information_loss
from anon_spark.metrics.recoded import Recoded
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.lattice import Lattice, Node
from anon_spark.model.node_stats import NodeStats
from anon_spark.samples.adult import COLUMNS, MST_QUASI_IDENTIFIERS, mst_hierarchies
from jobs.reproductions.mst.incognito import Incognito, best_node, incognito
from tests.families.lattice.tables import Case, KernelCounting, Row, cases, ladder, tuple_table

pytestmark = pytest.mark.compiles


class Recording(KernelCounting):
    """The kernels over arrays, remembering what they were asked for."""

    def __init__(self, rows: Sequence[Row], trees: Sequence[Hierarchy], budget: int = 0) -> None:
        super().__init__(tuple_table(rows, trees), ladder(trees), budget)
        self.asked: list[list[Node]] = []

    def evaluate(self, nodes: Sequence[Node]) -> list[NodeStats]:
        self.asked.append(list(nodes))
        return super().evaluate(nodes)


def lattice_over(trees: Sequence[Hierarchy]) -> Lattice:
    return Lattice(tuple(tree.height for tree in trees))


def rows_by_leaf(rows: Sequence[Row], trees: Sequence[Hierarchy]) -> list[Ints]:
    counted = [Counter(tree.leaf_of(row[at]) for row in rows) for at, tree in enumerate(trees)]
    return [
        np.array([count[leaf] for leaf in range(tree.leaf_count)], dtype=np.int64)
        for count, tree in zip(counted, trees, strict=True)
    ]


# --- brute force ---------------------------------------------------------------------------------------------------


def coded(case: Case) -> list[list[int]]:
    """The rows as leaves."""
    leaves = [[tree.leaf_of(value) for tree, value in zip(case.hierarchies, row, strict=True)] for row in case.rows]
    return [[leaf for leaf in row if leaf is not None] for row in leaves]


def class_sizes(case: Case, node: Node) -> Counter[tuple[int, ...]]:
    return Counter(
        tuple(int(tree.codes[level, leaf]) for tree, level, leaf in zip(case.hierarchies, node, row, strict=True))
        for row in coded(case)
    )


def anonymous_nodes(case: Case, k: int) -> list[Node]:
    nodes: list[Node] = [tuple(row) for row in case.lattice.nodes().tolist()]
    return [node for node in nodes if min(class_sizes(case, node).values()) >= k]


def subset(node: Node, lattice: Lattice) -> set[int]:
    return {at for at, level in enumerate(node) if level < lattice.heights[at]}


def work(case: Case, anonymous: Sequence[Node]) -> tuple[list[Node], int, int]:
    """Nodes to be counted, marked, pruned: by what the prunings mean, not by how they are run."""
    lattice, found = case.lattice, set(anonymous)
    nodes: list[Node] = [tuple(row) for row in lattice.nodes().tolist()]
    candidates = [
        node
        for node in nodes
        if all((*node[:at], lattice.heights[at], *node[at + 1 :]) in found for at in subset(node, lattice))
    ]
    marked = {
        node
        for node in candidates
        for below in lattice.specializations(node)
        if below in found and subset(below, lattice) == subset(node, lattice)
    }
    return sorted(set(candidates) - marked), len(marked), len(nodes) - len(candidates)


@given(cases(), st.integers(1, 6))
def test_all_anonymous_nodes_and_nothing_counted_in_vain(case: Case, k: int) -> None:
    counting = Recording(case.rows, case.hierarchies)
    found = incognito(case.lattice, counting, k)
    expected = anonymous_nodes(case, k)
    assert found.nodes == expected
    asked, marked, pruned = work(case, expected)
    assert sorted(node for batch in counting.asked for node in batch) == asked
    assert (found.evaluated, found.marked, found.pruned) == (len(asked), marked, pruned)
    assert found.evaluated + found.marked + found.pruned == case.lattice.size
    steps = {(len(below := subset(node, case.lattice)), sum(node[at] for at in below)) for node in asked}
    assert found.batches == len(counting.asked) == len(steps)


@given(cases(), st.integers(1, 4))
def test_best_node_is_the_least_of_all(case: Case, k: int) -> None:
    counting = Recording(case.rows, case.hierarchies)
    found = incognito(case.lattice, counting, k)
    by_leaf = rows_by_leaf(case.rows, case.hierarchies)
    if not found.nodes:
        with pytest.raises(GuaranteeUnreachable, match=f"k = {k}"):
            best_node(found, case.hierarchies, by_leaf, counting)
        return
    ranked: list[tuple[Fraction, int, Node, int]] = []
    for node in found.nodes:
        levels = [list(node)] * len(case.rows)
        release = Recoded.of_classes(case.hierarchies, levels, coded(case), [1] * len(case.rows))
        il = information_loss(release.hierarchies, release.rows_by_node)
        ranked.append((il, release.squares, node, release.classes))
    best = best_node(found, case.hierarchies, by_leaf, counting)
    assert (best.information_loss, best.discernibility, best.node, best.classes) == min(ranked)
    assert best.smallest == min(class_sizes(case, best.node).values()) >= k


# --- by hand -------------------------------------------------------------------------------------------------------

CODES = ("12345", "12346", "12355", "12356")
TREES = [
    Hierarchy.from_levels([(code, code[:4] + "*", "*") for code in CODES]),
    Hierarchy.from_levels([("M", "*"), ("F", "*")]),
    Hierarchy.from_levels([("low", "*"), ("high", "*")]),
]
ROWS: list[Row] = [
    ("12345", "M", "low"), ("12346", "M", "low"), ("12345", "F", "low"),
    ("12355", "F", "high"), ("12355", "M", "high"), ("12356", "M", "high"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("k", "nodes", "evaluated", "marked", "pruned", "batches"),
    [
        # all: the table, then each lattice of a subset by its bottom; ZIP on level 1 is marked in four of them
        (1, None, 8, 4, 0, 4),
        # ZIP alone fails on level 0, which prunes four nodes; (2, 0, 0) fails, which prunes (1, 0, 0) among them
        (2, [(1, 1, 0), (1, 1, 1), (2, 0, 1), (2, 1, 0), (2, 1, 1)], 8, 0, 4, 5),
        (3, [(1, 1, 0), (1, 1, 1), (2, 1, 0), (2, 1, 1)], 6, 0, 6, 4),
        (6, [(2, 1, 1)], 5, 0, 7, 3),
        (7, [], 1, 0, 11, 1),
    ],
)
def test_table_of_six_rows(
    k: int, nodes: list[Node] | None, evaluated: int, marked: int, pruned: int, batches: int
) -> None:
    lattice = lattice_over(TREES)
    every = [tuple(row) for row in lattice.nodes().tolist()]
    found = incognito(lattice, Recording(ROWS, TREES), k)
    assert found == Incognito(k, every if nodes is None else nodes, evaluated, marked, pruned, batches)


def test_batches_of_six_rows() -> None:
    counting = Recording(ROWS, TREES)
    incognito(lattice_over(TREES), counting, 2)
    assert counting.asked == [
        [(2, 1, 1)],  # no attribute
        [(0, 1, 1), (2, 0, 1), (2, 1, 0)],  # one, height 0
        [(1, 1, 1)],  # one, height 1
        [(2, 0, 0)],  # two, height 0
        [(1, 0, 1), (1, 1, 0)],  # two, height 1
    ]


PAIR = [Hierarchy.from_levels([("x", "*"), ("y", "*")]), Hierarchy.from_levels([("p", "*"), ("q", "*")])]


@pytest.mark.parametrize(
    ("counts", "node", "dm"),
    [
        ({"xp": 1, "xq": 1, "yp": 2, "yq": 2}, (1, 0), 18),  # 3 and 3 rather than 2 and 4
        ({"xp": 1, "xq": 2, "yp": 1, "yq": 2}, (0, 1), 18),  # and the other way round
        ({"xp": 1, "xq": 2, "yp": 2, "yq": 1}, (0, 1), 18),  # 3 and 3 both: the smaller vector
    ],
)
def test_ties_in_information_loss(counts: dict[str, int], node: Node, dm: int) -> None:
    rows: list[Row] = [(pair[0], pair[1]) for pair, count in counts.items() for _ in range(count)]
    counting = Recording(rows, PAIR)
    found = incognito(lattice_over(PAIR), counting, 2)
    assert found.nodes == [(0, 1), (1, 0), (1, 1)]
    counting.asked.clear()
    best = best_node(found, PAIR, rows_by_leaf(rows, PAIR), counting)
    assert (best.node, best.information_loss, best.discernibility) == (node, Fraction(1, 2), dm)
    assert counting.asked == [[(0, 1), (1, 0)]]  # DM of the tied nodes, not of (1, 1)


def test_suppression_is_refused() -> None:
    with pytest.raises(AnonSparkError, match="budget of 0"):
        incognito(lattice_over(TREES), Recording(ROWS, TREES, budget=2), 2)


# --- Adult ---------------------------------------------------------------------------------------------------------


def test_hierarchies_of_adult() -> None:
    trees = mst_hierarchies()
    assert tuple(trees) == MST_QUASI_IDENTIFIERS
    shapes = [(tree.leaf_count, tree.height) for tree in trees.values()]
    assert shapes == [(74, 4), (7, 3), (2, 1), (16, 4), (5, 2), (14, 2)]
    assert lattice_over(list(trees.values())).size == 1800
    for tree in trees.values():
        assert tree.ambiguous_labels() == []
        assert Hierarchy.from_dict(tree.to_dict()) == tree
    assert set(trees["education"].labels[3]) == {"No-degree", "Degree"}
    assert set(trees["race"].labels[1]) == {"White", "Non-white"}


def test_ages_of_adult_are_anchored_at_15_and_clipped() -> None:
    age = mst_hierarchies()["age"]
    table = {row[0]: row[1:] for row in age.rows()}
    assert table["17"] == table["19"] == ("[17, 19]", "[17, 24]", "[17, 54]", "*")
    assert table["20"] == ("[20, 24]", "[17, 24]", "[17, 54]", "*")
    assert table["54"] == ("[50, 54]", "[45, 54]", "[17, 54]", "*")
    assert table["55"] == ("[55, 59]", "[55, 64]", "[55, 90]", "*")
    assert table["90"] == ("[90, 90]", "[85, 90]", "[55, 90]", "*")
    assert age.bounds is not None
    for level, (low, high) in enumerate(age.bounds):
        assert (high - low).tolist() == age.weights[level].tolist()
        for leaf in range(age.leaf_count):
            code = age.codes[level, leaf]
            assert low[code] <= leaf + 17 <= high[code]
    assert [weights.tolist() for weights in age.weights[3:]] == [[37, 35], [73]]
    assert age.weight_total == 73
    assert [age.leaf_of(value) for value in (16, 17, "90", 91)] == [None, 0, 73, None]


Loaded = tuple[list[Row], list[Hierarchy], Recording]


@pytest.fixture(scope="module")
def loaded(adult: Path) -> Loaded:
    with gzip.open(adult, "rt") as lines:
        split = [[value.strip() for value in line.split(",")] for line in lines if "," in line]
    places = [COLUMNS.index(name) for name in MST_QUASI_IDENTIFIERS]
    rows: list[Row] = [tuple(row[at] for at in places) for row in split if "?" not in row]
    trees = list(mst_hierarchies().values())
    return rows, trees, Recording(rows, trees)


def test_adult(loaded: Loaded) -> None:
    """§7: numbers of k-anonymous nodes, the node of least IL and its measures."""
    rows, trees, counting = loaded
    assert (len(rows), counting.table.size) == (30162, 13369)
    by_leaf = rows_by_leaf(rows, trees)
    every = counting.evaluate([tuple(row) for row in lattice_over(trees).nodes().tolist()])
    assert len(every) == 1800
    sizes, shown = [], []
    for k in range(3, 22, 3):
        found = incognito(lattice_over(trees), counting, k)
        sizes.append(len(found.nodes))
        assert found.nodes == [stats.node for stats in every if stats.k >= k]
        assert found.evaluated <= 120
        best = best_node(found, trees, by_leaf, counting)
        average = len(rows) / (best.classes * k)
        shown.append(
            (best.node, round(float(best.information_loss), 6), best.discernibility, best.classes, round(average, 1))
        )
    assert sizes == [108, 90, 74, 68, 54, 53, 53]
    low, high = ((4, 3, 0, 2, 1, 1), 2.435999, 91348978, 36), ((3, 3, 0, 4, 1, 1), 2.658367, 135338638, 24)
    cavg = [279.3, 139.6, 93.1, 69.8, 83.8, 69.8, 59.8]
    assert shown == [(*(low if k <= 12 else high), average) for k, average in zip(range(3, 22, 3), cavg, strict=True)]
