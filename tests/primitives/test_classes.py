"""Distinct tuples and class counts on Spark: every way of counting is the same, every value meets its leaf."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import MULTIPLICITY, PERSONS, ROWS, TUPLES
from anon_spark.errors import ConfigurationError, DataError, HierarchyError, LimitExceeded
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.model.lattice import Node
from anon_spark.primitives.classes import Frequencies, count_tuples, counting, held
from anon_spark.primitives.classes.arrays import travel_bytes
from anon_spark.primitives.classes.counting import ArrayCounting, marginals
from anon_spark.primitives.classes.distributed import DistributedCounting
from anon_spark.primitives.classes.frequencies import Stored, code_columns
from anon_spark.primitives.rounds import Workspace
from tests.families.lattice.tables import KernelCounting, Row, general_loss, ladder, tuple_table

COUNTING = import_module("anon_spark.primitives.classes.counting")  # its package has a function of that name
BUDGET = 9
TREES: dict[str, Hierarchy] = {
    "age": Hierarchy.intervals(20, 43, [4, 12]),
    "city": Hierarchy.from_levels([(f"c{n}", f"r{n // 3}", "*") for n in range(6)]),
    "sex": Hierarchy.from_levels([("f", "*"), ("m", "*")]),
}
NODES: list[Node] = [(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1), (2, 1, 0), (2, 1, 1), (3, 2, 1), (2, 0, 0)]


@pytest.fixture(scope="module")
def workspace(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root: Path = tmp_path_factory.mktemp("classes")
    with Workspace(spark, str(root)) as found:
        yield found
    assert list(root.iterdir()) == []  # nothing of what was stored survives


# --- the ways of counting --------------------------------------------------------------------------------------------


def people() -> tuple[list[Row], list[str | None], list[int]]:
    """120 rows: one person with twenty of them, several with a few, and a class column with a null among its values."""
    draw = np.random.default_rng(2)
    rows: list[Row] = [
        (str(20 + int(draw.triangular(0, 2, 24))), f"c{int(draw.triangular(0, 1, 6))}", "fm"[int(draw.integers(0, 2))])
        for _ in range(120)
    ]
    labels: list[str | None] = [("x", "y", None)[int(n)] for n in draw.choice(3, 120, p=[0.5, 0.4, 0.1])]
    persons = [0] * 20 + [int(n) for n in draw.integers(1, 60, 100)]
    return rows, labels, persons


def people_frame(spark: SparkSession, partitions: int) -> DataFrame:
    rows, labels, persons = people()
    age, city, sex = zip(*rows, strict=True)
    table = pa.table({"age": [int(str(n)) for n in age], "city": city, "sex": sex, "class": labels, "id": persons})
    return spark.createDataFrame(table).repartition(partitions)


@pytest.fixture
def in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few the tuples are, the driver does not hold them."""
    monkeypatch.setattr(held, "MOST_CELLS", 0)


@pytest.fixture(scope="module")
def aggregated(spark: SparkSession, workspace: Workspace) -> dict[str, Frequencies]:
    """The table in files, with everything and with nothing, from other partitions; the two between leave out a column."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held, "MOST_CELLS", 0)
        rows = count_tuples(people_frame(spark, 1), TREES, workspace)
        both = count_tuples(people_frame(spark, 7), TREES, workspace, person="id", class_column="class")
    codes, (frame, sets) = code_columns(len(TREES)), (both.files.frame, both.files.sets)
    persons = frame.groupBy(*codes).agg(F.sum(ROWS).alias(ROWS), F.sum(PERSONS).alias(PERSONS))
    return {
        "rows": rows,
        "both": both,
        "persons": replace(both, stored=Stored(persons, sets), class_values=0),
        "classes": replace(both, stored=Stored(frame.drop(PERSONS)), persons=None),
    }


Counted = tuple[str, Frequencies, KernelCounting]


@pytest.fixture(params=["rows", "persons", "classes", "both"])
def counted(request: pytest.FixtureRequest, aggregated: dict[str, Frequencies]) -> Counted:
    """What is counted, the aggregate, and its twin in plain Python."""
    what: str = request.param
    rows, labels, persons = people()
    trees = list(TREES.values())
    table = tuple_table(
        rows, trees, labels if what in ("classes", "both") else None, persons if what in ("persons", "both") else None
    )
    return what, aggregated[what], KernelCounting(table, ladder(trees), BUDGET)


def test_totals_and_marginals(aggregated: dict[str, Frequencies]) -> None:
    rows, labels, persons = people()
    plain, both = aggregated["rows"], aggregated["both"]
    assert (plain.rows, plain.tuples, plain.persons, plain.class_values) == (120, len(set(rows)), None, 0)
    assert (both.rows, both.tuples) == (120, len(set(rows)))
    assert (both.persons, both.class_values) == (len(set(persons)), len(set(labels)))
    assert marginals(plain) == marginals(both) == general_loss(rows, list(TREES.values())).marginals


def test_a_person_with_many_rows_is_one_set_of_tuples(aggregated: dict[str, Frequencies]) -> None:
    rows, _, persons = people()
    sets = aggregated["both"].files.sets
    assert sets is not None
    found = sets.select(F.size(TUPLES), MULTIPLICITY).collect()
    tuples_of: dict[int, set[Row]] = defaultdict(set)
    for row, person in zip(rows, persons, strict=True):
        tuples_of[person].add(row)
    several = Counter(frozenset(tuples) for tuples in tuples_of.values() if len(tuples) > 1)
    assert sorted(tuple(row) for row in found) == sorted((len(tuples), n) for tuples, n in several.items())
    assert max(len(tuples) for tuples in several) > 9


def large_classes(twin: KernelCounting, node: Node, k: int) -> list[tuple[int, ...]]:
    """Codes of the classes of at least k persons (or rows), person by person."""
    rows, _, persons = people()
    members: dict[tuple[int, ...], set[int]] = defaultdict(set)
    for at, row in enumerate(rows):
        leaves = [tree.leaf_of(value) for tree, value in zip(TREES.values(), row, strict=True)]
        climbs = zip(TREES.values(), node, leaves, strict=True)
        key = tuple(int(tree.codes[level][leaf]) for tree, level, leaf in climbs)
        members[key].add(at if twin.table.persons is None else persons[at])
    found = sorted(key for key, who in members.items() if len(who) >= k)
    assert 0 < len(found) < len(members)
    return found


def codes_of(frame: DataFrame) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_counting_on_the_driver_and_in_tasks(
    counted: Counted, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    what, frequencies, twin = counted
    way = counting(frequencies, BUDGET, workspace)
    assert isinstance(way, ArrayCounting)
    expected = twin.evaluate(NODES)
    assert way.evaluate(NODES) == expected
    assert codes_of(way.large_classes((1, 1, 0), 5)) == large_classes(twin, (1, 1, 0), 5)
    monkeypatch.setattr(COUNTING, "DRIVER_WORK", 0)
    monkeypatch.setattr(COUNTING, "TASK_WORK", 200)  # several tasks
    if what == "both":
        assert way.evaluate(NODES) == expected
        assert way.evaluate(NODES[:1]) == expected[:1]  # for one node the second task has nothing to do


@pytest.mark.parametrize("what", ["rows", "persons", "classes", "both"])
@pytest.mark.parametrize("small", [False, True])
def test_tuples_that_the_driver_holds_are_the_same(
    what: str, small: bool, spark: SparkSession, aggregated: dict[str, Frequencies]
) -> None:
    rows, labels, persons = people()
    of_class, of_person = what in ("classes", "both"), what in ("persons", "both")
    options: dict[str, Any] = {"class_column": "class" if of_class else None, "person": "id" if of_person else None}
    with Workspace(spark, small=small) as place:
        found = count_tuples(people_frame(spark, 1 if small else 3), TREES, place, **options)
        assert found.held is not None and found.stored is None
        counts = [(one.tuples, one.rows, one.persons, one.class_values) for one in (found, aggregated[what])]
        assert counts[0] == counts[1] and marginals(found) == marginals(aggregated[what])
        trees = list(TREES.values())
        table = tuple_table(rows, trees, labels if of_class else None, persons if of_person else None)
        way = counting(found, BUDGET, place)
        assert way.evaluate(NODES) == KernelCounting(table, ladder(trees), BUDGET).evaluate(NODES)


def test_a_person_whose_rows_are_dropped_is_nobody(spark: SparkSession, workspace: Workspace) -> None:
    """Of three persons one has rows that a policy drops only, one has two tuples and one of them dropped."""
    rows = [(20, "c0", 1), (21, "c1", 2), (19, "c0", 2), (44, "c0", 3)]
    frame = spark.createDataFrame(rows, "age int, city string, id int")
    found = count_tuples(frame, POLICY_TREES, workspace, on_unseen="suppress", person="id")
    assert found.held is not None and found.held.table.persons is not None
    assert (found.persons, found.rows, found.held.table.persons.tolist(), found.held.table.sets) == (2, 2, [1, 1], None)


def test_tuples_with_one_hash_are_not_held(spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "tuple_hash", lambda names: F.xxhash64(F.lit(0)))
    found = count_tuples(people_frame(spark, 2), TREES, workspace)
    assert found.held is None and found.files.frame.count() == found.tuples == len(set(people()[0]))


def test_distributed_counting(counted: Counted, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    what, frequencies, twin = counted
    if what in ("persons", "classes"):
        some_roll_ups_travel(frequencies, twin, workspace, steps=1 if what == "persons" else 2)
        return
    monkeypatch.setattr("anon_spark.primitives.classes.distributed.SHUFFLED_ROWS", 2 * frequencies.tuples)
    way = counting(frequencies, BUDGET, workspace, travel_limit=0)
    assert isinstance(way, DistributedCounting)
    nodes = {"rows": [(0, 0, 1), (0, 0, 0), (0, 0, 1)], "both": [(0, 0, 1), (1, 1, 0)]}[what]  # three of one: two jobs
    assert way.evaluate(nodes) == twin.evaluate(nodes)
    assert all(anchor.arrays is None for anchor in way._anchors.values())
    if what == "both":
        assert list(way._anchors) == [(0, 0, 0), (1, 1, 0)]
        assert codes_of(way.large_classes((1, 1, 0), 5)) == large_classes(twin, (1, 1, 0), 5)


def some_roll_ups_travel(
    frequencies: Frequencies, twin: KernelCounting, workspace: Workspace, steps: int
) -> None:
    """A limit between the sizes: the table itself does not travel, what is rolled up from it, in steps, does."""
    members = 0 if twin.table.sets is None else len(twin.table.sets.members)
    whole = travel_bytes(frequencies.tuples, twin.ladder, (0, 0, 0), frequencies.class_values, members)
    way = counting(frequencies, BUDGET, workspace, travel_limit=whole - 1)
    assert isinstance(way, DistributedCounting)
    nodes = [(1, 1, 0), (1, 1, 1), (2, 1, 1), (2, 1, 0)][: 2 * steps]
    assert way.evaluate(nodes) == twin.evaluate(nodes)
    travels = [(node, anchor.arrays is not None) for node, anchor in way._anchors.items()]
    assert travels == [((0, 0, 0), False), ((1, 1, 0), True), ((2, 1, 0), True)][: 1 + steps]


# --- values and their leaves -----------------------------------------------------------------------------------------

NUMBERS = Hierarchy.intervals(-5, 60, [11])
BINS = Hierarchy.intervals(0, 1, ["0.1", "0.5"], exact=False)
LETTERS = Hierarchy.from_levels([("a", "small", "*"), ("A", "large", "*"), ("é", "small", "*")])
DAYS = Hierarchy.dates(["month", "year"])
SPELLED = Hierarchy.from_levels([("33", "x", "*"), ("0", "y", "*"), ("0.5", "y", "*")])

# name: (type, hierarchy, [(value, text of its leaf)]); null has the leaf None
VALUES: dict[str, tuple[str, Hierarchy | Rule, list[tuple[Any, str | None]]]] = {
    "whole": ("int", NUMBERS, [(33, "33"), (0, "0"), (-5, "-5"), (60, "60"), (None, None)]),
    "double": ("double", NUMBERS, [(33.0, "33"), (-0.0, "0"), (0.0, "0"), (float("nan"), None), (None, None)]),
    "decimal": ("decimal(10,2)", NUMBERS, [(Decimal("33.00"), "33"), (Decimal("-5"), "-5"), (Decimal(0), "0")]),
    "spelled": ("string", NUMBERS, [("33.00", "33"), ("33", "33"), ("+3.3e1", "33"), ("-0", "0")]),
    "text.double": ("double", SPELLED, [(33.0, "33"), (-0.0, "0"), (0.5, "0.5"), (float("nan"), None)]),
    "text int": ("bigint", SPELLED, [(33, "33"), (0, "0")]),
    "b`ins": ("double", BINS, [
        (0.0, "[0, 0.1)"), (-0.0, "[0, 0.1)"), (0.1, "[0.1, 0.2)"), (0.3, "[0.3, 0.4)"), (0.1 + 0.2, "[0.3, 0.4)"),
        (3 * 0.3, "[0.8, 0.9)"), (1.0, "[0.9, 1]"), (0.999999999999, "[0.9, 1]"), (float("nan"), None),
    ]),
    "bins (text), decimal": ("string", BINS, [("0.30", "[0.3, 0.4)"), ("3e-1", "[0.3, 0.4)"), ("1", "[0.9, 1]")]),
    "bins decimal": ("decimal(20,12)", BINS, [(Decimal("0.299999999999"), "[0.2, 0.3)"), (Decimal("0.7"), "[0.7, 0.8)")]),
    "letters": ("string collate UTF8_LCASE", LETTERS, [("a", "a"), ("A", "A"), ("é", "é"), ("A", "A"), (None, None)]),
    "zip": ("string", Hierarchy.mask(), [("13051", "13051"), ("1305", "1305"), (None, None)]),
    "day": ("date", DAYS, [(date(2020, 2, 29), "2020-02-29"), (date(2020, 3, 1), "2020-03-01")]),
    "moment": ("timestamp", DAYS, [(datetime(2020, 2, 29, 23, 59, 59), "2020-02-29"), (None, None)]),
    "day text": ("string", DAYS, [("2020-02-29", "2020-02-29"), ("2020-03-01 10:00:00", "2020-03-01")]),
    "truth": ("boolean", Hierarchy.from_levels([("true", "*"), ("false", "*")]), [(True, "true"), (False, "false")]),
}  # fmt: skip
SIZE = 9


def column(name: str) -> list[Any]:
    """The values of a column over and over, so that all columns are equally long."""
    found = VALUES[name][2]
    return [found[at % len(found)] for at in range(SIZE)]


@pytest.fixture(scope="module")
def typed(spark: SparkSession) -> DataFrame:
    """Nine rows, numbered, with a column of every type."""
    plain = [("string" if kind.startswith("string") else kind) for kind, _, _ in VALUES.values()]
    fields = [T.StructField(name, T._parse_datatype_string(kind)) for name, kind in zip(VALUES, plain, strict=True)]
    schema = T.StructType([T.StructField("row", T.IntegerType()), *fields])
    rows = zip(range(SIZE), *([value for value, _ in column(name)] for name in VALUES), strict=True)
    frame = spark.createDataFrame(list(rows), schema)
    return frame.withColumn("letters", F.collate("letters", "UTF8_LCASE"))


@pytest.mark.usefixtures("in_files")
def test_every_value_meets_its_leaf(typed: DataFrame, workspace: Workspace) -> None:
    """33, 33.0, 33.00 and "33.00" are one leaf; -0.0 is 0; NaN is null; 'a' and 'A' stay apart; edges belong upwards."""
    trees: dict[str, Hierarchy | Rule] = {"row": Hierarchy.intervals(0, SIZE - 1, [])}
    trees |= {name: tree for name, (_, tree, _) in VALUES.items()}
    found = count_tuples(typed, trees, workspace)
    codes = [row.asDict() for row in found.files.frame.drop(ROWS).collect()]
    assert found.rows == len(codes) == SIZE
    by_row = {row[code_columns(1)[0]]: list(row.values())[1:] for row in codes}
    for at, name in enumerate(VALUES):
        labels = found.hierarchies[at + 1].labels[0]
        assert [labels[by_row[row][at]] for row in range(SIZE)] == [leaf for _, leaf in column(name)], name
        assert found.hierarchies[at + 1].has_null == any(leaf is None for _, leaf in column(name)), name
    assert (found.dropped_nulls, found.dropped_unseen) == (0, 0)


def test_every_value_meets_its_leaf_on_the_driver(typed: DataFrame, workspace: Workspace) -> None:
    trees: dict[str, Hierarchy | Rule] = {"row": Hierarchy.intervals(0, SIZE - 1, [])}
    trees |= {name: tree for name, (_, tree, _) in VALUES.items()}
    found = count_tuples(typed, trees, workspace)
    assert found.held is not None
    by_row = {int(codes[0]): codes[1:] for codes in found.held.table.codes.T}
    for at, name in enumerate(VALUES):
        labels = found.hierarchies[at + 1].labels[0]
        assert [labels[by_row[row][at]] for row in range(SIZE)] == [leaf for _, leaf in column(name)], name
        assert found.hierarchies[at + 1].has_null == any(leaf is None for _, leaf in column(name)), name


# --- policies --------------------------------------------------------------------------------------------------------

HOLES = [  # age, city: what the policies make of it
    (20, "c0"), (20, "c0"), (21, "c1"),
    (None, "c0"), (20, None), (None, None),
    (19, "c0"), (44, "c1"), (20, "C0"), (20, " c0"), (44, "nowhere"),
    (None, "nowhere"), (19, None),
]  # fmt: skip
POLICY_TREES = {name: TREES[name] for name in ("age", "city")}


@pytest.fixture(scope="module")
def holes(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(HOLES, "age int, city string")


def test_unseen_values_are_an_error_that_counts_and_does_not_name_them(holes: DataFrame, workspace: Workspace) -> None:
    with pytest.raises(DataError) as error:
        count_tuples(holes, POLICY_TREES, workspace)
    assert "age: 2 values in 4 rows" in str(error.value)
    assert "city: 3 values in 4 rows" in str(error.value)
    assert error.value.facts == {"unseen": {"age": (2, 4), "city": (3, 4)}}
    assert not any(value in str(error.value) for value in ("44", "C0", "nowhere"))


@pytest.mark.parametrize("most", [0, 1_000])
@pytest.mark.parametrize(
    ("nulls", "kept", "by_null", "by_unseen"), [("value", 6, 0, 7), ("suppress", 3, 5, 5)], ids=["value", "suppress"]
)
def test_dropped_rows_are_counted_once(
    nulls: str,
    kept: int,
    by_null: int,
    by_unseen: int,
    most: int,
    holes: DataFrame,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A row with a dropped null and an unseen value counts as null; nothing is lost on the way."""
    monkeypatch.setattr(held, "MOST_CELLS", most)
    found = count_tuples(holes, POLICY_TREES, workspace, nulls=nulls, on_unseen="suppress")
    assert (found.rows, found.dropped_nulls, found.dropped_unseen) == (kept, by_null, by_unseen)
    assert found.rows + found.dropped_nulls + found.dropped_unseen == len(HOLES)
    rows = found.held.table.rows.tolist() if found.held else [row[ROWS] for row in found.files.frame.collect()]
    assert sum(rows) == kept and (found.held is None) == (most == 0)
    assert [tree.has_null for tree in found.hierarchies] == [nulls == "value"] * 2
    seen: list[Row] = [
        (None if age is None else str(age), city)
        for age, city in HOLES
        if (nulls == "value" or None not in (age, city)) and age not in (19, 44) and city in (None, "c0", "c1")
    ]
    assert marginals(found) == general_loss(seen, found.hierarchies).marginals


@pytest.mark.parametrize("most", [0, 1_000])
def test_what_cannot_be_counted(
    most: int, spark: SparkSession, holes: DataFrame, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "MOST_CELLS", most)

    def count(frame: DataFrame, trees: dict[str, Hierarchy | Rule], **options: Any) -> None:
        count_tuples(frame, trees, workspace, **options)

    with pytest.raises(DataError, match="empty"):
        count(holes.limit(0), {"age": TREES["age"]})
    with pytest.raises(DataError, match="drop every row"):
        count(holes.where("age IS NULL"), {"age": TREES["age"]}, nulls="suppress")
    with pytest.raises(DataError, match=r"columns.person age: 3 rows have no person"):
        count(holes, {"city": TREES["city"]}, person="age", on_unseen="suppress")
    with pytest.raises(ConfigurationError, match=r"columns.quasi_identifiers.ages: a column of type array<int>"):
        count(holes.select(F.array("age").alias("ages")), {"ages": TREES["age"]})
    with pytest.raises(HierarchyError, match="listed before with other parents"):
        clash = Hierarchy.from_levels([("20", "x", "*"), ("20.0", "y", "*")])
        count(holes, {"age": clash})


@pytest.mark.usefixtures("in_files")
def test_too_many_values_for_the_driver_are_refused(
    holes: DataFrame, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anon_spark.primitives.encoding.MOST_VALUES", 3)
    with pytest.raises(LimitExceeded, match=r"Distinct values of the quasi-identifiers .*: more than 3"):
        count_tuples(holes, POLICY_TREES, workspace)
