"""Utility loss and relative error of the family relational_transaction on frames; the synthetic patients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise
from random import Random
from typing import Any, ClassVar

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX
from anon_spark.errors import ConfigurationError, DataError, LimitExceeded
from anon_spark.metrics import relative_error as module
from anon_spark.metrics.relative_error import KINDS, Workload, draw_workload, relative_error
from anon_spark.metrics.utility_loss import utility_loss
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.samples.patients import (
    COLUMNS,
    DOMAINS,
    MEDICATIONS,
    QUASI_IDENTIFIERS,
    SENSITIVE_DIAGNOSES,
    patients,
    patients_hierarchies,
)
from tests.oracle import rt_oracle as oracle

Items = Sequence[Sequence[str]]
ROWS = 4000

# --- utility loss ---------------------------------------------------------------------------------------------------

FIGURES = {  # the transactions of Figure 2: what is published, UL
    "2a": ("E F BD", "E F BD", "BCF DE", "BCF DE", "AEF", "AEF", 0.5075),
    "2d": ("E F ABD", "E F ABD", "BCF DE", "BCF DE", "E", "F ABD", 0.2606),
}


def table_of(spark: SparkSession, rows: Sequence[Items], name: str) -> DataFrame:
    return spark.createDataFrame([(list(map(list, row)),) for row in rows], f"`{name}` array<array<string>>")


@pytest.mark.parametrize("figure", FIGURES)
def test_utility_loss_of_the_figures(spark: SparkSession, figure: str) -> None:
    *texts, expected = FIGURES[figure]
    rows = [[list(item) for item in str(text).split()] for text in texts]
    found = utility_loss(table_of(spark, rows, "codes"), "codes", 6)
    assert found.ul == pytest.approx(float(str(expected)), abs=5e-5)
    assert found.ul == pytest.approx(
        float(oracle.ul_of_table([[tuple(item) for item in row] for row in rows])), rel=1e-15
    )
    assert (found.rows, found.empty, found.largest) == (6, 0, max(len(item) for row in rows for item in row))


def test_utility_loss_of_any_size(spark: SparkSession) -> None:
    """Rows without items, without a list, with items far beyond the range of a double; not monotone."""
    names = [f"i{number}" for number in range(3000)]
    draw = Random(5)
    rows: list[list[list[str]]] = [[], [names[:1200], names[1200:2900]], [names[:70], names[70:72]], [names[5:6]]]
    for _ in range(40):
        cuts = sorted(draw.sample(range(1, 90), draw.randint(1, 4)))
        rows.append([names[low:high] for low, high in pairwise(cuts)])
    frame = table_of(spark, rows, "a b").unionByName(spark.createDataFrame([(None,)], "`a b` array<array<string>>"))
    found = utility_loss(frame.repartition(3), "a b", 3000)
    groups = [[tuple(item) for item in row] for row in [*rows, []]]
    assert found.ul == pytest.approx(float(oracle.ul_of_table(groups)), rel=1e-14)
    assert found.log2_ul_dom == pytest.approx(oracle.log2_ul_dom(groups, 3000), rel=1e-13)
    assert (found.rows, found.largest, found.empty) == (45, 1700, sum(not row for row in groups))
    single = [len(item) == 1 for row in groups for item in row]
    assert found.kept == pytest.approx(sum(single) / len(single)) and 0 < found.kept < 1
    assert found == utility_loss(frame.coalesce(1), "a b", 3000)
    finer, coarser = (utility_loss(table_of(spark, [row], "x"), "x", 6).ul for row in (["ac", "bd"], ["ace", "bdf"]))
    assert (round(finer, 4), round(coarser, 4)) == (0.4, 0.2222)


def test_utility_loss_of_too_many_sizes_is_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    release = spark.createDataFrame([([["a"], ["b", "c"]],)], "items array<array<string>>")
    monkeypatch.setattr("anon_spark.metrics.utility_loss.MOST_SIZES", 3)
    assert utility_loss(release, "items", 3).rows == 1
    monkeypatch.setattr("anon_spark.metrics.utility_loss.MOST_SIZES", 2)
    with pytest.raises(LimitExceeded, match="more than 2"):
        utility_loss(release, "items", 3)


def test_utility_loss_of_nothing(spark: SparkSession) -> None:
    plain = utility_loss(table_of(spark, [["a", "b"], []], "x"), "x", 2)
    assert plain == (0.0, None, 2, 1, 1, 1.0)
    with pytest.raises(DataError, match="without rows"):
        utility_loss(table_of(spark, [["ab"]], "x").limit(0), "x", 2)
    with pytest.raises(ConfigurationError, match="domain is 2, but a generalized item stands for 3 items"):
        utility_loss(table_of(spark, [["abc"]], "x"), "x", 2)
    with pytest.raises(ConfigurationError, match="not found: y"):
        utility_loss(table_of(spark, [["abc"]], "x"), "y", 3)


# --- relative error -------------------------------------------------------------------------------------------------

TREE = [("de", "west", "*"), ("fr", "west", "*"), ("pl", "east", "*"), ("cz", "east", "*"), ("us", "us", "*")]
SENSITIVE, ITEMS = "s", PREFIX + "all_items"


class Release:
    """A random table, its clusters by brute force, and both as frames: an int and a double range, a category."""

    relational: ClassVar[dict[str, Hierarchy | None]] = {
        "age": None,
        "height": None,
        "home country": Hierarchy.from_levels(TREE),
    }

    def __init__(self, spark: SparkSession, size: int = 80, k: int = 4) -> None:
        draw = Random(11)
        self.schema = oracle.Schema([oracle.Number(0, 99), oracle.Number(1, 3), oracle.Category(TREE)])
        self.records = [
            oracle.Record(
                rid,
                (draw.randrange(0, 99, 3), draw.randrange(4, 12) / 4, draw.choice(TREE)[0]),
                frozenset(draw.choices("abcdefgh", (9, 8, 5, 4, 3, 2, 1, 1), k=draw.randint(0, 4))),
                frozenset(SENSITIVE if rid % 9 == 0 else ""),
            )
            for rid in range(size)
        ]
        clusters = oracle.initial_clusters([self.records], self.schema, k, [lambda left: left // 2])
        published = oracle.rfirst(clusters, oracle.by_sets(k, 2))
        self.rows = [published[record.rid] for record in self.records]
        columns = "age int, height double, `home country` string, items array<string>"
        self.source = spark.createDataFrame(
            [
                (*record.values, [*record.items, *record.sensitive, *sorted(record.items)[:1]])
                for record in self.records
            ],
            columns,
        )
        shown = "age struct<lo:int,hi:int>, height struct<lo:double,hi:double>, `home country` string"
        self.release = spark.createDataFrame(
            [(*self.schema.labels(row.cells), sorted(map(list, row.items))) for row in self.rows],
            f"{shown}, codes array<array<string>>",
        )

    def are(self, workload: Workload, mode: str) -> dict[tuple[int, int], float]:
        asked = [(query.kind, oracle.Query(dict(query.values), frozenset(query.items))) for query in workload.queries]
        return {
            kind: float(
                oracle.are(self.records, self.rows, [query for of, query in asked if of == kind], self.schema, mode)
            )
            for kind in workload.kinds
        }


@pytest.fixture(scope="module")
def made(spark: SparkSession) -> Release:
    return Release(spark)


@pytest.fixture(scope="module")
def workload(made: Release) -> Workload:
    return draw_workload(made.source, made.relational, "items", [SENSITIVE], queries=30)


def test_queries_are_made_of_rows(made: Release, workload: Workload) -> None:
    assert Counter(query.kind for query in workload.queries) == dict.fromkeys(KINDS, 30)
    assert workload.kinds == KINDS
    for query in workload.queries:
        assert (len(query.values), len(query.items)) == query.kind
        assert SENSITIVE not in query.items and list(query.items) == sorted(set(query.items))
        assert oracle.actual(made.records, oracle.Query(dict(query.values), frozenset(query.items))) >= 1
    # all attributes and many rows take part
    assert {at for query in workload.queries for at, _ in query.values} == {0, 1, 2}
    assert len({query for query in workload.queries if query.kind == (2, 0)}) > 25


def test_relative_error_is_that_of_brute_force(made: Release, workload: Workload) -> None:
    source = made.source.repartition(3).withColumnRenamed("items", ITEMS)  # one set of several columns has our name
    found = relative_error(source, made.release, workload, made.relational, ITEMS, "codes")
    assert found.queries == dict.fromkeys(KINDS, 30)
    for mode in ("sets", "uniform"):
        expected = made.are(workload, mode)
        assert getattr(found, mode) == pytest.approx(expected, rel=1e-11) and min(expected.values()) > 0.05
    assert found.sets[2, 0] == found.uniform[2, 0] and found.sets[0, 2] != found.uniform[0, 2]
    assert found == relative_error(
        made.source.coalesce(1), made.release.repartition(4), workload, made.relational, "items", "codes"
    )


def test_a_release_without_loss_has_no_error(made: Release, workload: Workload) -> None:
    same = made.source.select(
        *(F.struct(F.col(name).alias("lo"), F.col(name).alias("hi")).alias(name) for name in ("age", "height")),
        "home country",
        F.transform(F.array_distinct("items"), lambda item: F.array(item)).alias("items"),  # noqa: PLW0108
    )
    found = relative_error(made.source, same, workload, made.relational, "items")
    assert found.sets == found.uniform == dict.fromkeys(KINDS, 0.0)
    items = Workload(((0, 2),), tuple(query for query in workload.queries if query.kind == (0, 2)))
    fewer = relative_error(made.source, same.where("age.lo > 40"), items, made.relational, "items")
    assert min(fewer.sets.values()) > 0.1


def test_the_workload_depends_on_rows_and_seed_alone(made: Release, workload: Workload) -> None:
    shuffled = made.source.repartition(5, "height").withColumn("items", F.reverse("items"))
    assert draw_workload(shuffled, made.relational, "items", [SENSITIVE], queries=30) == workload
    other = draw_workload(made.source, made.relational, "items", [SENSITIVE], queries=30, seed=2)
    assert len(set(other.queries) & set(workload.queries)) < 45


def test_equal_rows_are_drawn_as_often_as_they_are(spark: SparkSession) -> None:
    often = [(1, ["a"])] * 90 + [(2, ["b"])] * 10
    frame = spark.createDataFrame(often, "number int, items array<string>")
    drawn = draw_workload(frame, {"number": None}, "items", kinds=[(1, 0)], queries=60).queries
    assert 2 <= sum(query.values == ((0, 2.0),) for query in drawn) <= 10


def test_kinds_drawn_together_are_those_drawn_alone(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(number, [f"a{number}", "b"] if number % 20 == 0 else ["b"]) for number in range(400)]  # few rows have two items
    frame = spark.createDataFrame(rows, "number int, items array<string>")
    drawn = []
    for more in (1, 4, 1_000):
        monkeypatch.setattr(module, "MORE", more)
        drawn.append(draw_workload(frame, {"number": None}, "items", kinds=[(1, 0), (0, 2), (1, 1)], queries=5))
    assert drawn[0] == drawn[1] == drawn[2] and len(set(drawn[0].queries)) == 15


@pytest.mark.long
def test_kinds_that_no_row_allows(spark: SparkSession) -> None:
    rows = [(1, None), (2, ["s", None]), (3, ["a"]), (4, ["a", "s", "a"])]
    frame = spark.createDataFrame(rows, "number int, items array<string>")
    workload = draw_workload(frame, {"number": None}, "items", ["s"], queries=5)
    assert Counter(query.kind for query in workload.queries) == {(1, 1): 5}  # of two rows, again and again
    assert {query.values for query in workload.queries} <= {((0, 3.0),), ((0, 4.0),)}
    shown = "number struct<lo:int,hi:int>, items array<array<string>>"
    whole = spark.createDataFrame([(Row(lo=1, hi=4), [["a", "b"]])] * 4, shown)
    found = relative_error(frame, whole, workload, {"number": None}, "items")
    assert found.queries == {(2, 0): 0, (0, 2): 0, (1, 1): 5}
    # four rows, each with the number by 1/4; a by 2/3 or 1/2; true: 1
    assert found.sets == {(1, 1): pytest.approx(1 / 3)} and found.uniform == {(1, 1): pytest.approx(1 / 2)}
    # a query of another table that no row answers is left out
    assert relative_error(frame.limit(0), whole, workload, {"number": None}, "items").sets == {}
    assert draw_workload(frame, {"number": None}, "items", kinds=[(2, 0)]).queries == ()
    with pytest.raises(ConfigurationError, match="none was given"):
        draw_workload(frame, {}, "items")


def test_nulls_bins_and_numbers_with_a_hierarchy(spark: SparkSession) -> None:
    trees: dict[str, Hierarchy | None] = {
        "city": Hierarchy.from_levels([("x", "*"), ("y", "*")]).with_null(),
        "size": Hierarchy.intervals(0, 4, [1, 2], exact=False),
        "age": Hierarchy.intervals(0, 3, [2]),
    }
    bins, ages = trees["size"], trees["age"]
    assert bins is not None and ages is not None
    source = spark.createDataFrame(
        [("x", 0.5, 0, ["a"]), (None, 0.75, 1, ["a"]), ("y", 3.5, 3, ["a"]), (None, 1.0, 1, [])],
        "city string, size double, age int, items array<string>",
    )
    release = spark.createDataFrame(
        [(city, bins.labels[level][code], ages.labels[1][age], [["a"]])
         for city, level, code, age in [("*", 1, 0, 0), (None, 1, 0, 0), ("*", 0, 3, 1), (None, 1, 0, 0)]],
        "city string, size string, age string, items array<array<string>>",
    )  # fmt: skip
    keys = {"city": (None, "x"), "size": (0, 3), "age": (1, 3)}
    single = [module.Query((1, 0), ((at, key),), ()) for at, name in enumerate(trees) for key in keys[name]]
    found = relative_error(source, release, Workload(((1, 0),), tuple(single)), trees, "items")
    # true 2, 1 | 2, 1 | 2, 1; estimated 2 + 2/3, 2/3 | 3/2, 1 | 3/2, 1/2
    errors = [1 / 3, 1 / 3, 1 / 4, 0, 1 / 4, 1 / 2]
    assert found.sets == {(1, 0): pytest.approx(sum(errors) / 6)} and found.queries == {(1, 0): 6}


def test_ends_of_ranges_are_bounded(made: Release, workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENDS", 5)
    with pytest.raises(LimitExceeded, match="Different ends of ranges: more than 5"):
        relative_error(made.source, made.release, workload, made.relational, "items", "codes")


# --- patients -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> list[Any]:
    return patients(spark, ROWS, partitions=2).collect()


def test_patients_have_the_promised_shape(spark: SparkSession, people: list[Any]) -> None:
    kinds = ("bigint", "string", "int", "int", "int", "int", "string", "array<string>", "array<string>", "int")
    assert patients(spark, 1).dtypes == list(zip(COLUMNS, kinds, strict=True))
    assert len({row["person_id"] for row in people}) == ROWS
    for name, (low, high) in DOMAINS.items():
        values = {row[name] for row in people}
        assert low == min(values) and max(values) <= high and len(values) > (high - low) / 200
    trees = patients_hierarchies()
    assert {row["race"] for row in people} == set(trees["race"].keys)
    assert set(QUASI_IDENTIFIERS) < set(COLUMNS) and not any(tree.ambiguous_labels() for tree in trees.values())
    assert all(row[name] == sorted(set(row[name])) for row in people for name in ("diagnoses", "medications"))
    assert {item for row in people for item in row["diagnoses"]} <= set(trees["diagnoses"].keys)
    assert {item for row in people for item in row["medications"]} <= set(MEDICATIONS.split())


def test_diagnoses_are_like_those_of_patients(people: list[Any]) -> None:
    sizes = [len(row["diagnoses"]) for row in people]
    assert 3.5 < sum(sizes) / ROWS < 4.3 and min(sizes) == 1 and 10 < max(sizes) <= 17
    assert 0.2 < sizes.count(1) / ROWS < 0.35
    often = Counter(item for row in people for item in row["diagnoses"])
    assert 350 < len(often) <= 599 and 0.08 < max(often.values()) / ROWS < 0.3
    drugs = sum(len(row["medications"]) for row in people) / ROWS
    assert 1 < drugs < 2.5
    for code, share in SENSITIVE_DIAGNOSES.items():
        assert 0.3 * share < often[code] / ROWS < 2 * share
    # the old have more of them, and other ones
    old = [row["diagnoses"] for row in people if row["birth_year"] <= 1950]
    young = [row["diagnoses"] for row in people if row["birth_year"] > 1987]
    assert sum(map(len, old)) / len(old) > 1.5 * sum(map(len, young)) / len(young)
    assert sum("401" in codes for codes in old) / len(old) > 5 * sum("401" in codes for codes in young) / len(young)


def test_diagnoses_go_together(people: list[Any]) -> None:
    """Of the frequent pairs many are far more frequent than chance has them."""
    often = Counter(item for row in people for item in row["diagnoses"])
    pairs = Counter(pair for row in people for pair in combinations(row["diagnoses"], 2))
    lifts = [times * ROWS / (often[one] * often[other]) for (one, other), times in pairs.most_common(100)]
    assert sum(lift > 3 for lift in lifts) > 30


def test_patients_depend_on_number_and_seed_only(spark: SparkSession, people: list[Any]) -> None:
    assert patients(spark, 300, partitions=7).collect() == people[:300]
    other = patients(spark, 300, seed=2).collect()
    assert sum(one["diagnoses"] == two["diagnoses"] for one, two in zip(people, other, strict=False)) < 15


def test_patients_without_diagnoses(spark: SparkSession) -> None:
    rows = patients(spark, 1000, empty=0.2).collect()
    none = [row for row in rows if not row["diagnoses"]]
    assert 0.15 < len(none) / 1000 < 0.25 and not any(row["medications"] for row in none)
    for empty in (1.0, -0.1):
        with pytest.raises(ConfigurationError, match="patients: empty"):
            patients(spark, 5, empty=empty)
    with pytest.raises(ConfigurationError, match="patients: rows"):
        patients(spark, -1)
