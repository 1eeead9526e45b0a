"""Sensitive values and a population by tuple: every way of counting gives the same, and keeps the classes of brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.errors import ConfigurationError, DataError, LimitExceeded
from anon_spark.kernels.exact_models import holds
from anon_spark.kernels.models import Conditions
from anon_spark.model.guarantee.models import DistinctL, EntropyL, Models, TCloseness
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.lattice import Node
from anon_spark.primitives.classes import Frequencies, count_tuples, counting, held
from anon_spark.primitives.classes.distributed import DistributedCounting
from anon_spark.primitives.rounds import Workspace

COUNTING = import_module("anon_spark.primitives.classes.counting")  # its package has a function of that name
BUDGET = 12
TREES: dict[str, Hierarchy] = {
    "age": Hierarchy.intervals(20, 43, [4, 12]),
    "city": Hierarchy.from_levels([(f"c{n}", f"r{n // 3}", "*") for n in range(6)]),
}
NODES: list[Node] = [(0, 0), (0, 1), (1, 1), (2, 1), (3, 2), (2, 0)]
ILLNESS = Hierarchy.from_levels([("flu", "mild", "*"), ("cold", "mild", "*"), ("hiv", "severe", "*")])
MODELS: Models = {
    "illness": (DistinctL(2), TCloseness(Fraction(3, 10), "hierarchical", ILLNESS)),
    "income": (EntropyL(Fraction(3, 2)), TCloseness(Fraction(2, 5), "ordered")),
}
MAP_K, PRESENCE = 20, (Fraction(1, 10), Fraction(1, 2))


def rows_of(number: int, seed: int) -> list[tuple[Any, ...]]:
    draw = np.random.default_rng(seed)
    return [
        (
            20 + int(draw.triangular(0, 2, 24)),
            f"c{int(draw.triangular(0, 1, 6))}",
            ("flu", "cold", "hiv", None)[int(draw.choice(4, p=[0.5, 0.3, 0.1, 0.1]))],
            float(draw.integers(0, 5)) if draw.random() > 0.1 else float("nan"),
            int(draw.integers(0, 90)),
        )
        for _ in range(number)
    ]


PEOPLE = rows_of(150, 3)
EVERYBODY = [row[:2] for row in (*PEOPLE, *rows_of(450, 4))]


def frame(spark: SparkSession, partitions: int) -> DataFrame:
    names = ("age", "city", "illness", "income", "id")
    table = pa.table({name: list(values) for name, values in zip(names, zip(*PEOPLE, strict=True), strict=True)})
    return spark.createDataFrame(table).repartition(partitions)


def population(spark: SparkSession) -> DataFrame:
    table = pa.table({"age": [age for age, _ in EVERYBODY], "city": [city for _, city in EVERYBODY]})
    return spark.createDataFrame(table).repartition(3)


@pytest.fixture(scope="module")
def workspace(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root: Path = tmp_path_factory.mktemp("models")
    with Workspace(spark, str(root)) as found:
        yield found


def label(node: Node, row: tuple[Any, ...]) -> tuple[str, ...]:
    found = []
    for level, (name, tree) in zip(node, TREES.items(), strict=True):
        leaf = tree.leaf_of(row[list(TREES).index(name)])
        assert leaf is not None
        found.append(str(tree.labels[level][tree.codes[level][leaf]]))
    return tuple(found)


def kept_classes(node: Node, with_population: bool) -> dict[tuple[str, ...], int]:
    """The classes that keep everything, with their rows, by exact arithmetic over plain rows."""
    classes = Counter(label(node, row) for row in PEOPLE)
    there = Counter(label(node, row) for row in EVERYBODY)
    kept = {}
    for one, rows in classes.items():
        good = True
        for at, name in ((2, "illness"), (3, "income")):
            values = [None if row[at] is None or row[at] != row[at] else row[at] for row in PEOPLE]
            order = sorted(set(values), key=lambda value: (value is None, 0 if value is None else value))
            inside = Counter(value for value, row in zip(values, PEOPLE, strict=True) if label(node, row) == one)
            every = Counter(values)
            levels = None
            if name == "illness":
                tree = ILLNESS.with_null()
                levels = [[int(tree.codes[level][tree.leaf_of(value) or 0]) for value in order] for level in range(tree.height)]
            counts, totals = [inside[value] for value in order], [every[value] for value in order]
            good &= all(holds(model, counts, totals, levels) for model in MODELS[name])
        if with_population:
            share = Fraction(rows, there[one])
            good &= there[one] >= MAP_K and PRESENCE[0] <= share <= PRESENCE[1]
        if good:
            kept[one] = rows
    return kept


@pytest.fixture(
    scope="module", params=[False, pytest.param(True, marks=pytest.mark.long)], ids=["models", "with population"]
)
def ways(request: pytest.FixtureRequest, spark: SparkSession, workspace: Workspace) -> tuple[bool, dict[str, Any]]:
    """The same table held by the driver, in files and sent with tasks, and counted by shuffles."""
    more: dict[str, Any] = {"population": population(spark)} if request.param else {}
    here = count_tuples(frame(spark, 2), TREES, workspace, models=MODELS, **more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held, "MOST_CELLS", 0)
        stored = count_tuples(frame(spark, 7), TREES, workspace, models=MODELS, **more)
    assert here.held is not None and stored.held is None

    def way(found: Frequencies, **options: Any) -> Any:
        conditions = Conditions(found.sensitive, *((MAP_K, PRESENCE) if request.param else ()))
        return counting(found, BUDGET, workspace, conditions=conditions, **options)

    return request.param, {"held": way(here), "sent": way(stored), "shuffled": way(stored, travel_limit=0)}


def test_every_way_of_counting_is_the_same(
    ways: tuple[bool, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, found = ways
    assert isinstance(found["shuffled"], DistributedCounting)
    expected = found["held"].evaluate(NODES)
    assert any(stats.bound is not None and stats.bound.k != stats.k for stats in expected)
    assert found["sent"].evaluate(NODES) == expected
    assert found["shuffled"].evaluate(NODES[1:3]) == expected[1:3]
    monkeypatch.setattr(COUNTING, "DRIVER_WORK", 0)
    monkeypatch.setattr(COUNTING, "TASK_WORK", 200)  # several tasks
    assert found["sent"].evaluate(NODES) == expected


@pytest.mark.parametrize("node", [(1, 1), (2, 1)])
def test_classes_are_those_that_brute_force_keeps(ways: tuple[bool, dict[str, Any]], node: Node) -> None:
    with_population, found = ways
    expected = sorted(rows for rows in kept_classes(node, with_population).values() if rows >= 2)
    (stats,) = found["held"].evaluate([node])
    gone = len(PEOPLE) - sum(expected)
    if gone <= BUDGET:
        at = next(one for one in stats.curve if one.k >= 2)
        assert (at.suppressed, at.classes) == (gone, len(expected))
    else:
        assert stats.k < 2
    for way in found.values():
        assert way.large_classes(node, 2).count() == len(expected)


def test_a_combination_that_the_population_lacks_is_refused(spark: SparkSession, workspace: Workspace) -> None:
    few = population(spark).where("age > 30")
    with pytest.raises(DataError, match="not in the population") as refused:
        count_tuples(frame(spark, 1), TREES, workspace, population=few)
    assert refused.value.facts["rows"] == sum(row[0] <= 30 for row in PEOPLE)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(DataError, match="not in the population"):
        patch.setattr(held, "MOST_CELLS", 0)
        count_tuples(frame(spark, 1), TREES, workspace, population=few)
    with pytest.raises(ConfigurationError, match="age of the population"):
        count_tuples(frame(spark, 1), TREES, workspace, population=population(spark).selectExpr("city age", "city"))


def test_too_many_values_and_an_order_of_texts_are_refused(spark: SparkSession, workspace: Workspace) -> None:
    many = spark.range(1200).selectExpr("cast(20 + id % 20 as int) age", "'c0' city", "id code", "'x' word")
    with pytest.raises(LimitExceeded, match=r"code.*1,200 distinct values.*Bin"):
        count_tuples(many, TREES, workspace, models={"code": (DistinctL(2),)})
    with pytest.MonkeyPatch.context() as patch, pytest.raises(LimitExceeded, match="binned"):
        patch.setattr(held, "MOST_CELLS", 0)
        count_tuples(many, TREES, workspace, models={"code": (DistinctL(2),)})
    with pytest.raises(ConfigurationError, match="ordered needs numbers or dates"):
        count_tuples(many, TREES, workspace, models={"word": (TCloseness(Fraction(1, 2), "ordered"),)})
    with pytest.raises(DataError, match="does not know 1 values"):
        count_tuples(many, TREES, workspace, models={"word": (TCloseness(Fraction(1, 2), "hierarchical", ILLNESS),)})
