"""Tables for the lattice tests without Spark: rows of leaf texts become the arrays of the kernels, in plain Python.

Nothing here groups, counts or weighs by the package's own code; only `scores_of` hands the arrays to it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from anon_spark.families.lattice.scores import Scores
from anon_spark.kernels.histograms import Histograms
from anon_spark.kernels.models import NOTHING, Conditions, SensitiveColumn
from anon_spark.kernels.tuples import Ladder, PersonSets, TupleTable, evaluate_nodes
from anon_spark.metrics.classification import ClassificationError
from anon_spark.metrics.discernibility import Discernibility
from anon_spark.metrics.glm import GeneralLoss
from anon_spark.metrics.loss import Loss
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.lattice import Lattice, Node
from anon_spark.model.node_stats import NodeStats
from anon_spark.primitives.classes.counting import to_stats
from tests.oracle.lattice_oracle import Evaluation, Point, curve, evaluate_node, level_table

Row = tuple[str | None, ...]
LOSSES = ("glm", "dm", "cm")


@dataclass(frozen=True)
class Case:
    """A small table with all that a job can say about it."""

    hierarchies: list[Hierarchy]
    rows: list[Row]
    eta: int
    classes: list[Hashable] | None = None
    persons: list[Hashable] | None = None

    @property
    def lattice(self) -> Lattice:
        return Lattice(tuple(hierarchy.height for hierarchy in self.hierarchies))

    def oracle(self, loss: str) -> dict[Node, Evaluation]:
        """Every node by brute force."""
        tables = [level_table(hierarchy) for hierarchy in self.hierarchies]
        nodes = [tuple(row) for row in self.lattice.nodes().tolist()]
        return {n: evaluate_node(self.rows, tables, n, self.eta, loss, self.classes, self.persons) for n in nodes}

    def oracle_pairs(self, loss: str) -> list[Point]:
        """Every node at every k that the budget allows, by brute force."""
        tables = [level_table(hierarchy) for hierarchy in self.hierarchies]
        nodes = [tuple(row) for row in self.lattice.nodes().tolist()]
        return [
            point
            for node in nodes
            for point in curve(self.rows, tables, node, self.eta, loss, self.classes, self.persons)
        ]

    def scores(self, loss: str) -> Scores:
        return scores_of(self.rows, self.hierarchies, self.eta, loss, self.classes, self.persons)


class KernelCounting:
    """The kernels over arrays, as the package calls them in a task."""

    def __init__(self, table: TupleTable, ladder: Ladder, budget: int, conditions: Conditions = NOTHING) -> None:
        self.table, self.ladder, self.budget, self.conditions = table, ladder, budget, conditions

    def evaluate(self, nodes: Sequence[Node]) -> list[NodeStats]:
        return to_stats(nodes, evaluate_nodes(self.table, self.ladder, nodes, self.budget, self.conditions))


def ladder(hierarchies: Sequence[Hierarchy]) -> Ladder:
    return Ladder(tuple(h.codes for h in hierarchies), tuple(h.weights for h in hierarchies))


def tuple_table(
    rows: Sequence[Row],
    hierarchies: Sequence[Hierarchy],
    classes: Sequence[Hashable] | None = None,
    persons: Sequence[Hashable] | None = None,
) -> TupleTable:
    """Distinct tuples in order of first appearance; a person with several tuples is one of the sets."""
    leaves: list[dict[str | None, int]] = [
        {key: leaf for leaf, key in enumerate([*h.keys, *([None] if h.has_null else [])])} for h in hierarchies
    ]
    count = Counter(rows)
    position = {row: at for at, row in enumerate(count)}
    codes = np.array([[leaf[row[at]] for row in count] for at, leaf in enumerate(leaves)], dtype=np.int32)
    class_counts, single, sets = None, None, None
    if classes is not None:
        values = {value: at for at, value in enumerate(dict.fromkeys(classes))}
        class_counts = np.zeros((len(count), len(values)), dtype=np.int64)
        for row, value in zip(rows, classes, strict=True):
            class_counts[position[row], values[value]] += 1
    if persons is not None:
        tuples_of: dict[Hashable, set[int]] = defaultdict(set)
        for row, person in zip(rows, persons, strict=True):
            tuples_of[person].add(position[row])
        alone = Counter(min(found) for found in tuples_of.values() if len(found) == 1)
        single = np.array([alone[at] for at in range(len(count))], dtype=np.int64)
        several = Counter(tuple(sorted(found)) for found in tuples_of.values() if len(found) > 1)
        sets = PersonSets(
            np.cumsum([0, *(len(found) for found in several)]).astype(np.int64),
            np.array([at for found in several for at in found], dtype=np.int32),
            np.array(list(several.values()), dtype=np.int64),
        )
    rows_of = np.array(list(count.values()), dtype=np.int64)
    return TupleTable((0,) * len(hierarchies), codes, rows_of, single, sets, class_counts)


def general_loss(rows: Sequence[Row], hierarchies: Sequence[Hierarchy]) -> GeneralLoss:
    """GLM with its marginals summed row by row."""
    marginals = []
    for at, hierarchy in enumerate(hierarchies):
        leaf = {key: code for code, key in enumerate([*hierarchy.keys, None])}
        counts = Counter(leaf[row[at]] for row in rows)
        marginals.append(
            tuple(
                sum(n * int(hierarchy.weights[level][hierarchy.codes[level][code]]) for code, n in counts.items())
                for level in range(hierarchy.height + 1)
            )
        )
    return GeneralLoss(len(rows), tuple(h.weight_total for h in hierarchies), tuple(marginals))


def scores_of(
    rows: Sequence[Row],
    hierarchies: Sequence[Hierarchy],
    eta: int,
    loss: str,
    classes: Sequence[Hashable] | None = None,
    persons: Sequence[Hashable] | None = None,
    sensitive: Sequence[tuple[Sequence[int], SensitiveColumn]] = (),
) -> Scores:
    """What a search works with, on arrays alone. sensitive: the codes of the rows' values, and the column with its models."""
    lattice = Lattice(tuple(hierarchy.height for hierarchy in hierarchies))
    table = tuple_table(rows, hierarchies, classes, persons)
    table = replace(table, sensitive=tuple(histograms(rows, values) for values, _ in sensitive))
    conditions = Conditions(tuple(column for _, column in sensitive))
    measures: dict[str, Loss] = {
        "glm": general_loss(rows, hierarchies),
        "dm": Discernibility(len(rows)),
        "cm": ClassificationError(len(rows)),
    }
    return Scores(lattice, KernelCounting(table, ladder(hierarchies), eta, conditions), measures[loss])


def histograms(rows: Sequence[Row], values: Sequence[int]) -> Histograms:
    """The values of each distinct tuple, in the order of `tuple_table`."""
    of_tuple = [Counter(value for row, value in zip(rows, values, strict=True) if row == one) for one in Counter(rows)]
    starts = np.cumsum([0, *map(len, of_tuple)]).astype(np.int64)
    codes = np.array([value for found in of_tuple for value in found], dtype=np.int32)
    return Histograms(starts, codes, np.array([n for found in of_tuple for n in found.values()], dtype=np.int64))


def loss_value(scores: Scores, numerator: int) -> Fraction:
    """The loss as the oracle states it: GLM and CM as shares, DM as its integer."""
    return Fraction(numerator, 1 if scores.loss.name == "dm" else scores.loss.denominator)


@st.composite
def hierarchies(draw: st.DrawFn, depth: int = 3) -> Hierarchy:
    """A ragged tree of at most `depth` levels above its values, or intervals; some with a null leaf."""
    if draw(st.sampled_from([True, False, False])):
        widths = np.cumprod(draw(st.lists(st.integers(2, 3), max_size=depth - 1))).tolist()
        start, span = draw(st.integers(-3, 3)), draw(st.sampled_from([0, 1, 5, 8, 11]))
        hierarchy = Hierarchy.intervals(start, start + span, widths)
    else:
        below: list[int] = []  # how many levels each node lies below the root
        edges = []
        for child in range(draw(st.sampled_from([1, 2, 4, 6, 7, 8, 9]))):
            parents = [-1, *(node for node, steps in enumerate(below) if steps < depth)]
            parent = draw(st.sampled_from(parents))
            below.append(1 if parent < 0 else below[parent] + 1)
            edges.append((f"n{child}", "*" if parent < 0 else f"n{parent}"))
        hierarchy = Hierarchy.from_edges(edges)
    return hierarchy.with_null() if draw(st.sampled_from([True, False, False])) else hierarchy


@st.composite
def cases(draw: st.DrawFn, most_rows: int = 24) -> Case:
    """Up to three attributes, up to `most_rows` rows, a class column, mostly no persons, any budget below the rows.

    Sizes are drawn first and evenly: left to itself hypothesis would hardly leave tables of one column and three rows.
    """
    trees = [draw(hierarchies()) for _ in range(draw(st.sampled_from([1, 2, 2, 3, 3])))]
    leaves = [st.sampled_from([*tree.keys, *([None] if tree.has_null else [])]) for tree in trees]
    count = draw(st.sampled_from([1, 2, *range(6, most_rows + 1)]))
    rows = draw(st.lists(st.tuples(*leaves), min_size=count, max_size=count))
    labels: list[Hashable] = list(draw(st.lists(st.sampled_from("xyz"), min_size=count, max_size=count)))
    persons: list[Hashable] | None = None
    if draw(st.sampled_from([True, False, False])):
        persons = list(draw(st.lists(st.integers(0, count), min_size=count, max_size=count)))
    eta = draw(st.sampled_from([0, *range(0, count, 1 + count // 6)]))
    return Case(trees, rows, eta, labels, persons)
