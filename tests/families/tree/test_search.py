"""Searches and FixStructure of the family `tree` say what the oracle says, on the example and on random trees."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from anon_spark.families.tree import counting
from anon_spark.families.tree.counting import MOST_KEPT, LocalCounter
from anon_spark.families.tree.kernels.trees import Trees, distinct
from anon_spark.families.tree.settings import Settings
from anon_spark.families.tree.structure import Step
from anon_spark.kernels.classes import Ints
from tests.families.tree.searching import evaluator, forest_of, named, search
from tests.oracle import tree_oracle as oracle
from tests.oracle.tree_example import (
    BATCHES,
    BEST,
    DGH,
    FIGURE_4,
    FIGURE_4_SD,
    LABELS_IGNORED,
    NODE_TYPES,
    RECORDS,
    TWO_PASSES,
    random_trees,
)

pytestmark = pytest.mark.compiles

LETTERS = {"h": {"hs": ["h1", "h2"]}, "d": {"ds": ["d1", "d2"]}, "t": {"ts": ["t1", "t2"]}, "u": {"us": ["u1", "u2"]}}
LEAVES = ("h1", "h2", "d1", "d2", "t1", "t2", "u1", "u2")


@pytest.mark.parametrize("mode", ["batch", "sequential"])
@pytest.mark.parametrize(
    ("told", "counted", "closing"),
    [
        ({"search": "acs"}, (79, 76, 76), (31, 28)),
        ({"search": "gcs", "g": 1}, (28, 27, 10), (18, 17)),
        ({"search": "gcs", "g": 2}, (68, 67, 52), (28, 27)),
        ({"search": "gcs", "g": 3}, (76, 75, 71), (29, 28)),
        ({"search": "ocs", "g": 1}, (28, 27, 9), (18, 17)),
        ({"search": "ocs", "g": 2}, (68, 67, 39), (28, 27)),
        ({"search": "ocs", "g": 3}, (76, 75, 51), (29, 28)),
        ({"search": "beam", "width": 1}, (28, 27, 10), (18, 17)),
    ],
    ids=str,
)
def test_searches_of_the_example(told: dict[str, Any], counted: tuple[int, ...], closing: tuple[int, ...], mode: str) -> None:
    forest = forest_of(NODE_TYPES)
    asked = {"k": 3, "m": 2, "n": 1, "mode": mode, **told}
    seen = search(forest, RECORDS, close_unseen=False, **asked)
    assert seen.best is not None and named(forest, seen.best) == (BEST, [])
    assert (seen.evaluated, seen.passed, seen.pops) == counted
    assert round(seen.best.cost, 8) == 0.015625
    less = search(forest, RECORDS, level_count="global", **asked)
    assert less.best is not None and named(forest, less.best) == (BEST, []) and round(less.best.cost, 8) == 0.00057870
    assert (less.evaluated, less.passed) == closing


@pytest.mark.parametrize("mode", ["batch", "sequential"])
def test_figure_4(mode: str) -> None:
    forest = forest_of(NODE_TYPES)
    for count, cost in (("class", 0.0349537), ("global", 0.00726166)):
        told: dict[str, Any] = {"k": 3, "m": 2, "n": 1, "mode": mode, "level_count": count}
        (one,) = evaluator(forest, RECORDS, Settings(**told)).judge([Step(forest.cut_of(FIGURE_4))])
        assert named(forest, one)[1] == FIGURE_4_SD and one.valid and not one.clean
        assert one.cost == pytest.approx(cost, rel=1e-6)


@pytest.mark.parametrize("mode", ["batch", "sequential"])
@pytest.mark.parametrize(
    ("records", "k", "m", "n"), [(LABELS_IGNORED, 3, 3, 1), (TWO_PASSES, 3, 2, 1), (BATCHES, 2, 3, 1)], ids=["T-4", "T-5", "T-6"]
)
def test_counterexamples(records: list[oracle.Tree], k: int, m: int, n: int, mode: str) -> None:
    forest = forest_of(LETTERS)
    (one,) = evaluator(forest, records, Settings(k=k, m=m, n=n, mode=mode)).judge([Step(forest.cut_of(LEAVES))])  # type: ignore[arg-type]
    _, expected = oracle.fix_structure(records, k, m, n, mode=mode)
    assert named(forest, one)[1] == expected
    assert not oracle.verify_kmn(oracle.disassociate(records, expected), k, m, n)


@pytest.mark.parametrize("seed", range(12))
def test_random_trees_are_fixed_as_the_oracle_does(seed: int) -> None:
    random = Random(seed)
    forest = forest_of(NODE_TYPES)
    records = random_trees(random, DGH, random.randint(8, 40))
    k, m = random.randint(2, 4), random.randint(2, 4)
    n = random.randint(0, min(3, m * (m - 1) // 2))
    cuts = random.sample(DGH.cuts(), 12)
    for mode in ("batch", "sequential"):
        settings = Settings(k=k, m=m, n=n, mode=mode)
        found = evaluator(forest, records, settings).judge([Step(forest.cut_of(cut)) for cut in cuts])
        task = oracle.Task(DGH, records, k, m, n, mode=mode, close_unseen=False)
        for cut, one in zip(cuts, found, strict=True):
            expected = oracle.evaluate(task, cut)
            assert one.fits == expected.passed
            if expected.passed:
                assert named(forest, one)[1] == list(expected.sd)
                assert one.cost == pytest.approx(float(expected.cost), rel=1e-11)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "told", [{"search": "gcs", "g": 2, "max_cuts": 40}, {"search": "beam", "width": 3}, {"search": "ocs", "g": 2}], ids=str
)
def test_searches_are_those_of_the_oracle(told: dict[str, Any], seed: int) -> None:
    random = Random(100 + seed)
    forest, records = forest_of(NODE_TYPES), random_trees(random, DGH, 30)
    k, m, n = random.choice([(3, 2, 1), (2, 3, 2), (4, 2, 1)])
    cost = random.choice(["rpd_a", "rpd"])
    negations = tuple(random.sample(["General", "Flu", "Disease", "Surgery"], seed % 3))
    seen = search(forest, records, negations, k=k, m=m, n=n, cost=cost, **told)
    task = oracle.Task(DGH, records, k, m, n, negations=negations, cost=cost, mode="batch")
    expected = {
        "gcs": lambda: oracle.gcs(task, told["g"], max_cuts=40),
        "ocs": lambda: oracle.ocs(task, told["g"]),
        "beam": lambda: oracle.beam(task, told["width"]),
    }[told["search"]]()
    assert seen.best is not None and named(forest, seen.best)[0] == expected.found.cut
    assert named(forest, seen.best)[1] == list(expected.found.sd)
    if told["search"] != "beam":
        assert seen.evaluated == expected.evaluated


@pytest.mark.parametrize("seed", range(4))
def test_cuts_cost_the_same_side_by_side_and_one_by_one(seed: int) -> None:
    """Side by side they are counted from the cut before, whose synopsis is kept; of few cuts."""
    random = Random(200 + seed)
    forest, records = forest_of(NODE_TYPES), random_trees(random, DGH, 40)
    judging = evaluator(forest, records, Settings(k=2, m=1, n=0))
    alone = evaluator(forest, records, Settings(k=2, m=1, n=0))
    cuts = [forest.cut_of(names) for names in random.sample(DGH.cuts(), 24)]
    batches = [[Step(cut, node) for node in cut if forest.can_specialize(node)] for cut in cuts]
    for steps in [*batches, [step for batch in batches for step in batch]]:  # the last has more cuts before than are kept
        assert judging.judge(steps) == [alone.judge([step])[0] for step in steps]
    assert isinstance(judging.counter, LocalCounter) and isinstance(alone.counter, LocalCounter)
    assert 2 <= len(judging.counter.synopses.kept) <= MOST_KEPT and not alone.counter.synopses.kept


@pytest.mark.parametrize("seed", range(4))
def test_equal_records_are_counted_alike_together_and_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(300 + seed)
    forest = forest_of(NODE_TYPES)
    records = random_trees(random, DGH, 1) * 6 + random_trees(random, DGH, 30)  # the first of them are the sample
    steps = [Step(forest.cut_of(cut)) for cut in random.sample(DGH.cuts(), 12)]
    one_by_one = evaluator(forest, records, Settings(k=3, m=3, n=2)).judge(steps)
    called = list[int]()

    def noted(trees: Trees, weights: Ints) -> tuple[Trees, Ints]:
        called.append(trees.records)
        return distinct(trees, weights)

    monkeypatch.setattr(counting, "SAMPLE", 4)
    monkeypatch.setattr(counting, "distinct", noted)

    assert evaluator(forest, records, Settings(k=3, m=3, n=2)).judge(steps) == one_by_one
    assert len(records) in called


@pytest.mark.parametrize("seed", range(6))
def test_diverse_cuts_are_those_of_the_oracle(seed: int) -> None:
    random = Random(200 + seed)
    sensitive = random.choice([["Treatment"], ["Disease"], ["Hospital"]])
    dgh, forest = oracle.Dgh(NODE_TYPES, sensitive), forest_of(NODE_TYPES, sensitive)
    records = random_trees(random, dgh, 30)
    cuts = random.sample(dgh.cuts(), min(10, len(dgh.cuts())))
    settings = Settings(k=2, m=2, n=1, l=2)
    found = evaluator(forest, records, settings).judge([Step(forest.cut_of(cut)) for cut in [("*",), *cuts]])
    task = oracle.Task(dgh, records, 2, 2, 1, l=2, mode="batch", close_unseen=False)
    for cut, one in zip([("*",), *cuts], found, strict=True):
        expected = oracle.evaluate(task, cut)
        assert one.fits == expected.passed
        if expected.passed:
            assert named(forest, one)[1] == list(expected.sd)
            assert one.valid == expected.diverse


def test_a_negation_that_begins_to_tell_is_counted_everywhere() -> None:
    """Two labels that nobody lacks in the cut before: the record without H1 is alone with its disease."""
    forest = forest_of(NODE_TYPES)
    records = [oracle.tree(text) for text in ("H1→Flu", "H1→Flu", "H1", "H1", "Flu", "Rea", "Rea")]
    parent = forest.cut_of(("Disease", "General", "Maternity", "Treatment"))
    kid = Step(parent, forest.number("General"), clean=True)
    for negations, fits in (((), True), (("H1",), False)):
        judge = evaluator(forest, records, Settings(k=2, m=2, n=0, cuts="full"), negations).judge
        assert [one.fits for one in judge([Step(parent), kid])] == [True, fits]


def test_a_budget_stops_with_the_best_so_far() -> None:
    forest = forest_of(NODE_TYPES)
    seen = search(forest, RECORDS, k=3, m=2, n=1, search="acs", max_cuts=9)
    assert seen.evaluated == 9 and seen.stopped_by == "max_cuts" and seen.best is not None
    assert seen.best.cost == min(cost for _, cost in seen.trail)
    quick = search(forest, RECORDS, k=3, m=2, n=1, search="acs", max_seconds=1e-9)
    assert quick.stopped_by == "max_seconds" and quick.evaluated == 1
    short = search(forest, RECORDS, k=3, m=2, n=1, search="gcs", g=3, queue_limit=1)
    assert short.stopped_by is None and short.evaluated < 29
