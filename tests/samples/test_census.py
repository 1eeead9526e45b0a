"""The synthetic census: the same table however it is cut, inside its hierarchies, and of the shape it promises."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.errors import ConfigurationError
from anon_spark.samples.census import COLUMNS, NULLABLE, QUASI_IDENTIFIERS, census, census_hierarchies
from anon_spark.samples.draws import GRAIN, alias_table

ROWS = 3000


def collected(table: DataFrame) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in table.collect()), key=repr)


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> DataFrame:
    """Made once, in two partitions, with nulls and repeated persons."""
    table = census(spark, ROWS, nulls=0.05, repeat_persons=0.3, partitions=2)
    return spark.createDataFrame(table.toArrow())


@pytest.mark.parametrize("partitions", [1, 7])
def test_partitions_do_not_matter(spark: SparkSession, people: DataFrame, partitions: int) -> None:
    table = census(spark, ROWS, nulls=0.05, repeat_persons=0.3, partitions=partitions)
    assert table.rdd.getNumPartitions() == partitions
    assert collected(table) == collected(people)


def test_seed_and_length(spark: SparkSession) -> None:
    short, longer, other = (collected(census(spark, n, seed)) for n, seed in ((200, 1), (300, 1), (200, 2)))
    assert set(short) < set(longer)
    assert len(set(short) & set(other)) < 5


def test_columns(people: DataFrame) -> None:
    types = dict(people.dtypes)
    assert tuple(people.columns) == COLUMNS
    assert {name: types.pop(name) for name in ("person_id", "age", "education_num", "weight")} == {
        "person_id": "bigint",
        "age": "int",
        "education_num": "int",
        "weight": "int",
    }
    assert set(types.values()) == {"string"}


def test_hierarchies_cover_every_value(spark: SparkSession) -> None:
    hierarchies = census_hierarchies()
    assert tuple(hierarchies) == QUASI_IDENTIFIERS
    rows = census(spark, 20_000).select(*QUASI_IDENTIFIERS).distinct().collect()
    for at, (name, hierarchy) in enumerate(hierarchies.items()):
        values = {row[at] for row in rows}
        assert all(hierarchy.leaf_of(value) is not None for value in values), name
        assert len(values) > 0.9 * hierarchy.leaf_count, name  # rare leaves occur as well


def test_hierarchies_have_the_shape_of_the_regression() -> None:
    hierarchies = census_hierarchies()
    assert {name: [h.cardinality(level) for level in range(h.height + 1)] for name, h in hierarchies.items()} == {
        "age": [74, 25, 13, 7, 4, 2, 1],
        "workclass": [7, 4, 3, 1],
        "education": [16, 6, 3, 1],
        "marital": [7, 3, 2, 1],
        "race": [5, 1],
        "sex": [2, 1],
        "country": [41, 11, 4, 2, 1],
        "salary": [2, 1],
    }
    assert not any(hierarchy.ambiguous_labels() for hierarchy in hierarchies.values())


def test_nulls_only_where_promised(people: DataFrame) -> None:
    rows = people.collect()
    missing = {name: sum(row[name] is None for row in rows) / len(rows) for name in COLUMNS}
    assert {name for name, share in missing.items() if share} == set(NULLABLE)
    assert all(0.03 < missing[name] < 0.07 for name in NULLABLE)


def test_repeated_persons_keep_what_a_person_keeps(people: DataFrame) -> None:
    rows = people.collect()
    answers = Counter(row.person_id for row in rows)
    assert 0.25 < 1 - len(answers) / len(rows) < 0.35
    assert max(answers.values()) > 3
    kept = {(row.person_id, row.name, row.sex, row.race, row.education) for row in rows}
    assert len(kept) == len(answers)
    assert len({(row.person_id, row.workclass, row.marital, row.salary) for row in rows}) > len(answers)


@pytest.mark.long
def test_tuples_grow_far_more_slowly_than_rows(spark: SparkSession) -> None:
    distinct = {n: census(spark, n).select(*QUASI_IDENTIFIERS).distinct().count() for n in (3_000, 30_000)}
    assert 10_000 < distinct[30_000] < 13_500
    assert distinct[30_000] < 6 * distinct[3_000]


@pytest.mark.parametrize("wrong", [{"nulls": 1.0}, {"nulls": -0.1}, {"repeat_persons": 2.0}])
def test_shares_out_of_range_are_refused(spark: SparkSession, wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="must be at least 0 and below 1"):
        census(spark, 10, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="rows"):
        census(spark, -1)


@pytest.mark.parametrize("weights", [[1], [1, 0], [5, 1, 1, 0, 3], [9100, 200, 1], [2, 2, 2], [1, 2, 3, 4, 5, 6, 7]])
def test_alias_table_gives_every_value_its_share(weights: list[int]) -> None:
    share, other = alias_table(weights)
    weight = Counter[int]()
    for slot, (own, alias) in enumerate(zip(share, other, strict=True)):
        weight[slot] += own
        weight[alias] += GRAIN - own
    for value, expected in enumerate(weights):
        assert abs(weight[value] / GRAIN / len(weights) - expected / sum(weights)) < len(weights) / GRAIN
