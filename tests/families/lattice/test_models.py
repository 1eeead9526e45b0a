"""Models of sensitive columns in the searches of the lattice: arrays only, against every node and against exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.families.lattice.bounded import least_loss
from anon_spark.families.lattice.exact import exact_front
from anon_spark.families.lattice.exhaustive import exhaustive_front
from anon_spark.families.lattice.poka import Poka
from anon_spark.families.lattice.scores import Scores
from anon_spark.kernels import exact_models
from anon_spark.kernels.histograms import histograms_of
from anon_spark.kernels.models import SensitiveColumn
from anon_spark.model.front import nondominated
from anon_spark.model.guarantee.models import (
    BetaLikeness,
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Model,
    RecursiveCL,
    TCloseness,
)
from anon_spark.model.hierarchy import Hierarchy
from tests.families.lattice.tables import Case, cases, loss_value, scores_of
from tests.oracle import models_oracle as oracle
from tests.oracle.lattice_oracle import Point, level_table
from tests.oracle.models_oracle import front_with_models

pytestmark = pytest.mark.compiles

TREE = Hierarchy.from_levels([(str(at), "low" if at < 2 else "high", "*") for at in range(4)])
LEVELS = np.array([[0, 1, 2, 3], [0, 0, 1, 1]], dtype=np.int32)
LIMITS = st.sampled_from([Fraction(1, 10), Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3)])


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Any model, often with a limit that classes of a small table meet exactly."""
    kind = draw(st.sampled_from(["l", "entropy", "recursive", "equal", "ordered", "tree", "beta", "delta"]))
    limit = draw(LIMITS)
    match kind:
        case "l":
            return DistinctL(draw(st.integers(2, 3)))
        case "entropy":
            return EntropyL(draw(st.sampled_from([Fraction(6, 5), Fraction(3, 2), Fraction(2), Fraction(3)])))
        case "recursive":
            c = draw(st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3)]))
            return RecursiveCL(c, draw(st.integers(2, 3)))
        case "equal":
            return TCloseness(limit)
        case "ordered":
            return TCloseness(limit, "ordered")
        case "tree":
            return TCloseness(limit, "hierarchical", TREE)
        case "beta":
            return BetaLikeness(draw(st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)])), draw(st.booleans()))
    return DeltaDisclosure(draw(st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)])))


def column(values: Sequence[int], asked: Sequence[Model]) -> tuple[list[int], SensitiveColumn]:
    """Codes without gaps, as the counting makes them, and the column."""
    present = sorted(set(values))
    codes = [present.index(value) for value in values]
    totals = np.bincount(codes).astype(np.int64)
    return codes, SensitiveColumn(tuple(asked), totals, np.ascontiguousarray(LEVELS[:, present]))


def scores(case: Case, sensitive: Sequence[tuple[list[int], SensitiveColumn]], loss: str = "glm") -> Scores:
    return scores_of(case.rows, case.hierarchies, case.eta, loss, case.classes, case.persons, sensitive)


@st.composite
def sensitive_columns(draw: st.DrawFn, rows: int) -> list[tuple[list[int], SensitiveColumn]]:
    found = []
    for _ in range(draw(st.integers(1, 2))):
        values = draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
        found.append(column(values, draw(st.lists(models(), min_size=1, max_size=2))))
    return found


@settings(max_examples=120)
@given(st.data())
def test_compiled_answers_are_the_exact_ones(data: st.DataObject) -> None:
    classes = data.draw(st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any), min_size=1, max_size=8))
    table = np.array(classes, dtype=np.int64)
    present = table.sum(axis=0) > 0
    table = table[:, present]
    levels = np.ascontiguousarray(LEVELS[:, present])
    model = data.draw(models())
    places, values = np.nonzero(table)
    histograms = histograms_of(places, values, table[places, values], len(table))
    totals = table.sum(axis=0)
    column = SensitiveColumn((model,), totals, levels)
    labels, whole = labels_of(column), dict(enumerate(totals.tolist()))
    truth = [oracle.holds(dict(enumerate(counts)), whole, model, labels) for counts in table.tolist()]
    assert column.kept(histograms).tolist() == truth
    assert [exact_models.holds(model, counts, totals.tolist(), levels) for counts in table.tolist()] == truth


@settings(max_examples=50)
@given(st.data(), cases(), st.sampled_from(["glm", "dm", "cm"]), st.sampled_from([1, 64]), st.booleans())
def test_the_exact_front_is_the_exhaustive_front_is_the_true_front(
    data: st.DataObject, case: Case, loss: str, batch: int, guided: bool
) -> None:
    sensitive = data.draw(sensitive_columns(len(case.rows)))
    every = scores(case, sensitive, loss)
    found = exhaustive_front(every)
    assert exact_front(scores(case, sensitive, loss), batch, guided) == found
    tables = [level_table(hierarchy) for hierarchy in case.hierarchies]
    names = [str(at) for at in range(len(sensitive))]
    values = {name: codes for name, (codes, _) in zip(names, sensitive, strict=True)}
    models_of = {name: column.models for name, (_, column) in zip(names, sensitive, strict=True)}
    levels = {name: labels_of(column) for name, (_, column) in zip(names, sensitive, strict=True)}
    others: dict[str, Any] = {"levels": levels, "loss": loss, "class_column": case.classes, "person": case.persons}
    truth = front_with_models(case.rows, tables, case.eta, values, models_of, **others)
    assert [Point(point.node, point.k, loss_value(every, point.loss)) for point in found] == truth


def labels_of(column: SensitiveColumn) -> dict[int, tuple[str, ...]]:
    """The levels of the hierarchical distance by code of the value, as the oracle takes them."""
    assert column.levels is not None
    paths = enumerate(column.levels.T.tolist())
    return {code: (*(f"{level}-{label}" for level, label in enumerate(path)), "*") for code, path in paths}


@settings(max_examples=50)
@given(st.data(), cases(), st.integers(2, 6), st.sampled_from([1, 5, 10_000]))
def test_the_least_loss_for_one_k_is_bounded(data: st.DataObject, case: Case, k: int, max_nodes: int) -> None:
    sensitive = data.draw(sensitive_columns(len(case.rows)))
    every = scores(case, sensitive)
    every.evaluate([tuple(row) for row in case.lattice.nodes().tolist()])
    possible = [point.loss for node in every.points for point in every.curve(node) if point.k >= k]
    found = least_loss(scores(case, sensitive), k, max_nodes, 60)
    if found is None:
        assert max_nodes < 10_000 or not possible
        return
    assert found.lower_bound <= min(possible) <= found.point.loss
    if max_nodes == 10_000:
        assert found.lower_bound == found.point.loss


@settings(max_examples=30)
@given(st.data(), cases())
def test_what_poka_visits_keeps_the_models(data: st.DataObject, case: Case) -> None:
    sensitive = data.draw(sensitive_columns(len(case.rows)))
    found = nondominated(Poka(scores(case, sensitive), "worst").visit())
    assert all(point.k >= 2 for point in found)


def test_a_class_that_fails_may_take_in_one_that_holds() -> None:
    """1,000 equal rows and 10 diverse ones: apart, the 1,000 are left out and the 10 stay; together, all are left out.

    So the node above has no k at all, and must not close the nodes below it.
    """
    tree = Hierarchy.from_levels([("same", "*"), ("mixed", "*")])
    rows = [("same",)] * 1000 + [("mixed",)] * 10
    values, sensitive = column([0] * 1000 + [1, 2] * 5, [EntropyL(2)])
    found = scores_of(rows, [tree], 1000, "glm", sensitive=[(values, sensitive)])
    below, above = found.evaluate([(0,), (1,)])
    assert (below.k, below.suppressed) == (10, 1000)
    assert above.k == 0
    assert found.bounding((1,))[-1].k == 1010  # 995 rows must go, and the rest is of one class
    again = scores_of(rows, [tree], 1000, "glm", sensitive=[(values, sensitive)])
    assert [point.k for point in exact_front(again)] == [10]
    one_k = scores_of(rows, [tree], 1000, "glm", sensitive=[(values, sensitive)])
    best = least_loss(one_k, 5, 100, 60)
    assert best is not None
    assert best.point.node == (0,)


@settings(max_examples=30)
@given(st.data(), cases())
def test_without_suppression_every_model_is_monotone(data: st.DataObject, case: Case) -> None:
    """Above a node that keeps the models every node keeps them: the same holds for distinct l with suppression."""
    sensitive = data.draw(sensitive_columns(len(case.rows)))
    if any(not isinstance(model, DistinctL) for _, of in sensitive for model in of.models):
        case = Case(case.hierarchies, case.rows, 0, case.classes, case.persons)
    found = scores(case, sensitive)
    for point in found.evaluate([tuple(row) for row in case.lattice.nodes().tolist()]):
        assert found.stats[point.node].bound is None
        assert all(found.points[up].k >= point.k for up in case.lattice.generalizations(point.node))


def test_ties_are_decided_exactly() -> None:
    halves = histograms_of(np.array([0, 0]), np.array([0, 1]), np.array([7, 7]), 1)
    assert SensitiveColumn((EntropyL(2),), np.array([7, 7])).kept(halves).all()
    assert not SensitiveColumn((EntropyL(Fraction(2000000001, 1000000000)),), np.array([7, 7])).kept(halves).any()
    assert not SensitiveColumn((RecursiveCL(1, 2),), np.array([7, 7])).kept(halves).any()
    uneven = histograms_of(np.array([0, 0, 0]), np.array([0, 1, 2]), np.array([2, 1, 1]), 1)
    assert SensitiveColumn((EntropyL(Fraction(28284271247461900, 10**16)),), np.array([2, 1, 1])).kept(uneven).all()
    assert not SensitiveColumn((EntropyL(Fraction(28284271247461902, 10**16)),), np.array([2, 1, 1])).kept(uneven).any()


@settings(max_examples=30)
@given(st.data(), cases())
def test_what_bounds_the_nodes_below(data: st.DataObject, case: Case) -> None:
    """What `exact` relies on: below a node, no k is larger and suppression adds no less at any k, whatever the models."""
    sensitive = data.draw(sensitive_columns(len(case.rows)))
    for loss in ("glm", "dm", "cm"):
        found = scores(case, sensitive, loss)
        points = found.evaluate([tuple(row) for row in case.lattice.nodes().tolist()])
        floors = {point.node: found.loss.floor(found.stats[point.node]) for point in points}
        for point in points:
            here = found.bounding(point.node)
            under = [one.node for one in points if all(low <= high for low, high in zip(one.node, point.node, strict=True))]
            for down in under:  # bounds of two classes may be one row less each than that of both: compared is what a node has
                for below in found.curve(down):
                    if below.k == 0:
                        continue
                    assert below.k <= here[-1].k
                    above = next(one for one in here if one.k >= below.k)
                    assert above.loss - floors[point.node] <= below.loss - floors[down]
