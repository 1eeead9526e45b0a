"""Assessments against brute force: crowds, sets of columns, wildcards, sensitive columns; wherever tuples are held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anon_spark import assess
from anon_spark.assessment import RiskFacts
from anon_spark.assessment.tuples import HELD_BYTES
from anon_spark.errors import ConfigurationError, DataError
from tests.assessment.tables import GOLDEN, QUASI, SENSITIVE, frame, golden, people
from tests.event_log import EventLog
from tests.oracle import risk_oracle as oracle

HELD, SPREAD = HELD_BYTES, 0


def test_golden_table(spark: SparkSession) -> None:
    facts = assess(golden(spark), quasi=["class"], sensitive=["salary", "disease"]).facts

    assert (facts.look_up.highest, facts.look_up.average, facts.look_up.marketer) == (1 / 3, 0.25, 0.25)
    assert (facts.look_up.unique_rows, facts.look_up.classes, facts.people) == (0, 3, 12)
    assert facts.look_up.above == {0.05: 1.0, 0.1: 1.0, 0.2: 7 / 12}  # a class of five is not above 0.2
    salary, disease = facts.disclosure
    assert (disease.least_l, disease.c_2, disease.c_3, disease.values, disease.lacking_classes) == (2, 2.0, None, 3, 2)
    assert disease.entropy_l == pytest.approx(1.889882, abs=1e-6)
    assert (disease.t_equal, disease.beta, disease.delta) == pytest.approx((0.333333, 1.0, 0.693147), abs=1e-6)
    assert disease.t_ordered is None
    assert salary.t_ordered == pytest.approx(0.343750, abs=1e-6)
    assert (disease.below_3_rows, disease.one_value_rows) == (8, 0)


@pytest.mark.parametrize("held_bytes", [HELD, SPREAD], ids=["held", "spread"])
@pytest.mark.parametrize("person", [None, "person"])
def test_agrees_with_brute_force(spark: SparkSession, person: str | None, held_bytes: int) -> None:
    rows = people(7 if person else 3)
    facts = assess(frame(spark, rows), QUASI, SENSITIVE, person, held_bytes=held_bytes).facts

    tuples = [row[1:5] for row in rows]
    persons = [row[0] for row in rows] if person else list(range(len(rows)))
    _same_look_up(facts, tuples, persons)
    _same_sets(facts, tuples, persons, most=4)
    _same_disclosure(facts, tuples, rows)
    assert facts.null_rows == sum(None in row for row in tuples)
    if person is None:
        sizes = oracle.agreeing(tuples)
        expected = oracle.look(sizes, oracle.classes(tuples, range(4)))
        assert facts.wildcards is not None
        assert facts.wildcards.unique_rows == expected.unique_rows
        assert facts.wildcards.average == pytest.approx(float(expected.average))
        assert facts.wildcards.highest == float(expected.highest)
    else:
        assert facts.wildcards is None
        assert any("wildcards" in text for text in facts.left_out)


def test_a_population_table_is_counted(spark: SparkSession) -> None:
    rows = people(3)
    everybody = [*rows, *people(4), *rows[:7]]
    facts = assess(frame(spark, rows), QUASI, population=frame(spark, everybody), sets=False).facts
    there = Counter(row[1:5] for row in everybody)
    crowds = [there[row[1:5]] for row in rows]
    found = facts.counted_population
    assert found is not None and facts.population is None
    assert (found.size, found.unique) == (len(everybody), sum(size == 1 for size in there.values()))
    assert (found.unique_rows, found.highest_chance) == (crowds.count(1), 1 / min(crowds))
    assert found.average_chance == pytest.approx(sum(1 / size for size in crowds) / len(crowds))
    lacking = frame(spark, [row for row in everybody if row[1:5] != rows[0][1:5]])
    with pytest.raises(DataError, match=r"population: \d+ of \d+ rows have quasi-identifiers that nobody there has"):
        assess(frame(spark, rows), QUASI, population=lacking, sets=False)
    with pytest.raises(DataError, match="nobody there has"):
        assess(frame(spark, rows), QUASI, population=lacking.limit(0), sets=False)
    other = frame(spark, everybody).withColumn(QUASI[0], F.struct(F.lit(1)))
    with pytest.raises(ConfigurationError, match=f"population: column {QUASI[0]} is struct"):
        assess(frame(spark, rows), QUASI, population=other)


def test_partitions_and_place_change_nothing(spark: SparkSession) -> None:
    rows = people(11)
    one, *others = (
        assess(frame(spark, rows, partitions), QUASI, SENSITIVE, "person", 0.1, held_bytes=held_bytes).facts
        for partitions, held_bytes in ((1, HELD), (2, SPREAD), (7, HELD))
    )

    assert [other == one for other in others] == [True, True]


def test_more_than_twelve_columns(spark: SparkSession) -> None:
    columns = [f"c{at}" for at in range(13)]
    rows = [tuple((row * (at + 3)) % (at + 2) for at in range(13)) for row in range(25)]
    df = spark.createDataFrame(rows, ", ".join(f"{name} int" for name in columns))

    facts = [assess(df, columns, held_bytes=held_bytes).facts for held_bytes in (HELD, SPREAD)]

    assert facts[0] == facts[1]
    assert facts[0].column_sets is not None
    assert not facts[0].column_sets.complete
    assert any("three columns" in text for text in facts[0].left_out)
    _same_sets(facts[0], rows, range(len(rows)), most=3)


def test_many_sensitive_values_leave_models_out(spark: SparkSession) -> None:
    df = spark.range(1200).select((F.col("id") % 3).alias("group"), F.col("id").cast("double").alias("salary"))

    page = assess(df, ["group"], ["salary"])

    (salary,) = page.facts.disclosure
    assert (salary.values, salary.t_equal, salary.t_ordered, salary.beta, salary.delta) == (None,) * 5
    assert (salary.least_l, salary.c_2) == (400, 1 / 399)
    assert salary.entropy_l == pytest.approx(400)
    assert any("salary" in text and "1,000" in text and "Bin" in text for text in page.warnings)


def test_dates_are_ordered_and_nan_is_null(spark: SparkSession) -> None:
    rows = [("a", "2020-01-01", float("nan")), ("a", "2020-01-02", None), ("b", "2019-12-31", 1.0), ("b", "2019-12-30", 2.0)]
    df = spark.createDataFrame(rows, "group string, day string, amount double").withColumn("day", F.col("day").cast("date"))

    day, amount = assess(df, ["group"], ["day", "amount"]).facts.disclosure

    expected = oracle.disclosed([row[0] for row in rows], [row[1] for row in rows], sorted(row[1] for row in rows))
    assert day.t_ordered == pytest.approx(max(one["ordered"] for one in expected.values()))
    assert (amount.values, amount.least_l, amount.one_value_rows) == (3, 1, 2)


def test_values_of_nested_and_odd_types(spark: SparkSession) -> None:
    rows = [([1, None], (1, 2), 0.0), ([None, 1], (1, 2), -0.0), ([1, None], (1, None), 0.0), ([1, None], (1, 2), 0.0)]
    df = spark.createDataFrame(rows, "items array<int>, range struct<lo: int, hi: int>, weight double")

    facts = assess(df, ["items", "range", "weight"]).facts

    assert (facts.look_up.classes, facts.look_up.unique_rows) == (3, 2)
    assert facts.column_sets is not None
    assert facts.column_sets.of(["weight"]).classes == 1


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no quasi-identifier": ({"quasi": []}, ConfigurationError, "quasi: name at least one column"),
    "a text for a list": ({"quasi": "class"}, ConfigurationError, "quasi: give a list of columns"),
    "unknown column": ({"quasi": ["clas"]}, ConfigurationError, "Columns not found: clas. Did you mean: class?"),
    "column twice": ({"quasi": ["class", "class"]}, ConfigurationError, "quasi: class is named twice"),
    "two roles": ({"quasi": ["class"], "sensitive": ["class"]}, ConfigurationError, "sensitive: class is in quasi already"),
    "person is known": ({"quasi": ["class"], "person": "class"}, ConfigurationError, "person: class is in quasi"),
    "population 0": ({"quasi": ["class"], "population": 0}, ConfigurationError, "population: must be above 0"),
    "population below 0": ({"quasi": ["class"], "population": -5}, ConfigurationError, "population: must be above 0"),
    "half a person": ({"quasi": ["class"], "population": 12.5}, ConfigurationError, "population: a number of people is whole"),
    "population a text": ({"quasi": ["class"], "population": "all"}, ConfigurationError, "population: give the fraction"),
    "population too small": ({"quasi": ["class"], "population": 11}, DataError, "11 people are fewer than the 12 of the table"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_refuses(spark: SparkSession, fault: str) -> None:
    arguments, kind, message = WRONG[fault]

    with pytest.raises(kind) as refused:
        assess(golden(spark), **arguments)

    assert message in str(refused.value)
    assert not any(value in str(refused.value) for _, _, value in GOLDEN)


def test_refuses_what_holds_no_people(spark: SparkSession) -> None:
    with pytest.raises(DataError, match="The table is empty") as empty:
        assess(golden(spark).limit(0), ["class"])
    with pytest.raises(DataError, match="person disease: 12 rows have no person"):
        assess(golden(spark).withColumn("disease", F.lit(None).cast("string")), ["class"], person="disease")
    with pytest.raises(ConfigurationError, match="a map or variant has no equality"):
        assess(golden(spark).select(F.create_map("class", "salary").alias("m")), ["m"])
    with pytest.raises(ConfigurationError, match="a Spark DataFrame is needed, not list"):
        assess([("A", 4)], ["class"])  # type: ignore[arg-type]
    assert empty.value.exit_code == 3


def test_no_value_reaches_the_event_log(spark: SparkSession, event_log: EventLog) -> None:
    secret = [("qqsecretqq", "wwsecretww"), ("qqsecretqq", "eesecretee"), ("rrsecretrr", "eesecretee")]
    df = spark.createDataFrame(secret, "city string, disease string")
    since = event_log.mark()

    for held_bytes in (HELD, SPREAD):
        assess(df, ["city"], ["disease"], held_bytes=held_bytes)

    text = event_log.read_text(since)
    assert text
    assert [value for row in secret for value in row if value in text] == []


def _same_look_up(facts: RiskFacts, tuples: Sequence[Any], persons: Sequence[Any]) -> None:
    expected = oracle.look(oracle.crowds(tuples, persons, range(len(tuples[0]))), oracle.classes(tuples, range(len(tuples[0]))))
    found = facts.look_up
    assert (found.classes, found.smallest_class, found.unique_rows) == (expected.classes, expected.smallest, expected.unique_rows)
    assert found.highest == float(expected.highest)
    assert found.average == pytest.approx(float(expected.average))
    assert found.above == {limit: pytest.approx(float(share)) for limit, share in expected.above.items()}
    assert sum(found.crowds) == len(tuples)


def _same_sets(facts: RiskFacts, tuples: Sequence[Any], persons: Sequence[Any], most: int) -> None:
    sets = facts.column_sets
    assert sets is not None
    names = facts.quasi
    chosen_sets = oracle.subsets(len(names), most)
    assert len(sets.sets) == len(chosen_sets)
    for chosen in chosen_sets:
        found = sets.of([names[at] for at in chosen])
        unique = sum(size == 1 for size in oracle.crowds(tuples, persons, chosen))
        assert (found.classes, found.unique_rows) == (oracle.classes(tuples, chosen), unique)
        assert found.distinctness == found.classes / len(tuples)
        assert found.separation == pytest.approx(float(oracle.separation(tuples, chosen)))
    least = oracle.least_sets(tuples, persons, len(names), most)
    least = {values: sets_of for values, sets_of in least.items() if sets_of}
    assert sets.least.uniques == len(least)
    assert sets.least.by_number == Counter(len(sets_of) for sets_of in least.values())
    assert sets.least.by_size == Counter(min(map(len, sets_of)) for sets_of in least.values())
    assert sets.least.by_column == {
        name: sum(any(at in one for one in sets_of) for sets_of in least.values()) for at, name in enumerate(names)
    }
    for smallest in sets.smallest():
        above = [one for one in sets.sets if one.unique_share > smallest.share]
        assert smallest.number == sum(len(one.columns) == smallest.columns for one in above)
        assert smallest.columns == min((len(one.columns) for one in above), default=None)


def _same_disclosure(facts: RiskFacts, tuples: Sequence[Any], rows: Sequence[Any]) -> None:
    for found, at in zip(facts.disclosure, (5, 6), strict=True):
        values = [row[at] for row in rows]
        order = sorted(set(values), key=lambda value: (value is None, value if value is not None else 0))
        expected = list(oracle.disclosed(tuples, values, order).values())
        worst = {name: max(one[name] for one in expected) for name in ("c_2", "c_3", "t", "ordered", "beta", "delta")}
        assert found.least_l == min(one["l"] for one in expected)
        assert found.entropy_l == pytest.approx(min(one["entropy"] for one in expected))
        assert [found.c_2 or float("inf"), found.c_3 or float("inf")] == pytest.approx([worst["c_2"], worst["c_3"]])
        assert (found.t_equal, found.beta, found.delta) == pytest.approx((worst["t"], worst["beta"], worst["delta"]))
        assert found.t_ordered == (pytest.approx(worst["ordered"]) if found.column == "salary" else None)
        assert found.lacking_classes == sum(one["lacks"] for one in expected)
        assert found.one_value_rows == sum(one["rows"] for one in expected if one["l"] == 1)
