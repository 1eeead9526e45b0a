"""Query error and counts of the family set_valued on frames; the synthetic baskets."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.errors import ConfigurationError, DataError
from anon_spark.families.set_valued.queries import Answer, Query, count, counts
from anon_spark.metrics.query_error import Workload, distinct_items, draw_queries, query_error
from anon_spark.samples.baskets import COLUMNS, RELIGIONS, baskets
from tests.oracle import nonreciprocal_oracle as oracle

TABLE_1 = [
    frozenset(at for at in range(1, 5) if text[at - 1] == "1")
    for text in ("1100", "0110", "1101", "0111", "1110", "1011")
]
RING = [TABLE_1[at] for at in (1, 3, 2, 0, 4, 5)]  # Gray-TSP order
ROWS = 4000


# --- query error ----------------------------------------------------------------------------------------------------


def test_query_error(spark: SparkSession) -> None:
    bases = [slot.base for slot in oracle.published(RING, oracle.ring_graph(6, 3))]
    source = spark.createDataFrame([(sorted(record),) for record in RING], "items array<int>")
    staged = spark.createDataFrame([(sorted(base),) for base in bases], "base array<int>")
    items = distinct_items(source, "items")
    assert items == [1, 2, 3, 4]
    workload = Workload(draw_queries(items, 20, 2, seed=3), draw_queries(items, 15, 1, seed=4))

    found = query_error(source.repartition(2), staged, workload)

    present = [oracle.Query(frozenset(map(int, query))) for query in workload.present]
    absent = [oracle.Query(frozenset(), frozenset(map(int, query))) for query in workload.absent]
    expected = [float(oracle.mean_query_error(RING, bases, kind)) for kind in (present, absent)]
    assert found == pytest.approx(expected) and min(expected) > 0
    with pytest.raises(DataError, match="without rows"):
        query_error(source.limit(0), staged, workload)


# --- counts on a release --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def release(spark: SparkSession) -> DataFrame:
    """Table 3 of the paper, with the labels that a shift by one moves."""
    slots = oracle.published(RING, oracle.ring_graph(6, 3))
    labels = oracle.published_labels(["C", "B", "M", "C", "B", "M"], [1, 2, 3, 4, 5, 0])
    rows = [([f"i{at}" for at in sorted(of.base)], [f"i{at}" for at in sorted(of.dist)], of.t) for of in slots]
    columns = "base array<string>, uncertain array<string>, max_errors int, label string"
    return spark.createDataFrame([(*row, label) for row, label in zip(rows, labels, strict=True)], columns).repartition(
        2
    )


def test_counts(release: DataFrame) -> None:
    asked = [Query(["i1", "i2"]), Query(["i4"], ["i1"]), Query(absent=["i3", "i4"]), Query(), Query(["i9"])]
    slots = oracle.published(RING, oracle.ring_graph(6, 3))
    wanted = [oracle.Query(*(frozenset(int(str(item)[1:]) for item in items) for items in query)) for query in asked]

    table = counts(release, asked)

    assert list(table.columns) == ["present", "absent", "estimate", "lower", "upper"]
    assert table["present"].tolist() == [list(query.present) for query in asked]
    for found, query in zip(table.itertuples(), wanted, strict=True):
        expected = oracle.answer(slots, query)
        assert (found.lower, found.upper) == expected[:2]
        assert found.estimate == pytest.approx(float(expected.estimate))
        assert expected.lower <= sum(map(query.matches, RING)) <= expected.upper
    assert table["upper"].tolist()[-2:] == [6, 0]


def test_count_of_one_query_and_of_a_label(release: DataFrame) -> None:
    labelled = count(release.where("label = 'B'"), ["i4"])  # true of r4 (0111) among r4 and r5
    slots = oracle.published(RING, oracle.ring_graph(6, 3))
    expected = oracle.answer([slots[2], slots[5]], oracle.Query(frozenset({4})))
    assert labelled == pytest.approx((float(expected.estimate), expected.lower, expected.upper))
    assert expected.lower <= 1 <= expected.upper <= 2
    assert count(release.where("label = 'Z'"), ["i1"]) == Answer(0.0, 0, 0)
    with pytest.raises(ConfigurationError, match="list of one"):
        count(release, "i1")
    with pytest.raises(ConfigurationError, match="not found: uncertain"):
        count(release.drop("uncertain"))


# --- baskets --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collected(spark: SparkSession) -> list[tuple[int, list[str], str]]:
    return [tuple(row) for row in baskets(spark, ROWS, partitions=2).collect()]


def test_baskets_have_the_promised_shape(spark: SparkSession, collected: list[tuple[int, list[str], str]]) -> None:
    assert baskets(spark, 1).dtypes == list(zip(COLUMNS, ("bigint", "array<string>", "string"), strict=True))
    sizes = [len(items) for _, items, _ in collected]
    assert 9 < sum(sizes) / ROWS < 11
    assert min(sizes) >= 1 and max(sizes) < 40
    assert all(items == sorted(set(items)) for _, items, _ in collected)
    often = Counter(item for _, items, _ in collected for item in items)
    assert 780 < len(often) <= 870 and all(item.startswith("item 1") and len(item) == 9 for item in often)
    assert max(often.values()) / ROWS < 0.15
    labels = Counter(label for _, _, label in collected)
    assert set(labels) == set(RELIGIONS) and max(labels.values()) / ROWS < 0.12 and min(labels.values()) / ROWS > 0.02
    assert len({person for person, _, _ in collected}) == ROWS


def test_items_of_baskets_depend_on_each_other(collected: list[tuple[int, list[str], str]]) -> None:
    """Some pairs of items come together far more often than chance would have it, so that similar records exist."""
    often = Counter(item for _, items, _ in collected for item in items)
    pairs = Counter((one, other) for _, items, _ in collected for one in items for other in items if one < other)
    lifted = sum(
        times for (one, other), times in pairs.items() if times > 5 * often[one] * often[other] / ROWS and times > 5
    )
    assert lifted > 0.15 * sum(pairs.values())


def test_baskets_do_not_depend_on_partitions(spark: SparkSession, collected: list[tuple[int, list[str], str]]) -> None:
    assert [tuple(row) for row in baskets(spark, 300, partitions=7).collect()] == collected[:300]
    other = [tuple(row) for row in baskets(spark, 300, seed=2).collect()]
    assert sum(one[1] == two[1] for one, two in zip(collected, other, strict=False)) < 5


def test_wide_and_empty_baskets(spark: SparkSession) -> None:
    rows = baskets(spark, 2000, universe=100_000, empty=0.1).collect()
    sizes = [len(row["items"]) for row in rows]
    assert 0.08 < sizes.count(0) / 2000 < 0.12
    assert 8 < sum(sizes) / 2000 < 10.5
    assert len({item for row in rows for item in row["items"]}) > 9000
    for wrong in ({"empty": 1.0}, {"universe": 0}, {"rows": -1}):
        with pytest.raises(ConfigurationError, match=f"baskets: {next(iter(wrong))}"):
            baskets(spark, **{"rows": 5, **wrong})  # type: ignore[arg-type]
