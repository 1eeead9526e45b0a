"""Two releases together: the measure against an attacker by brute force, on many small tables in one plan."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing.reading.extents import Extent
from anon_spark.engine import in_one_task
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.republication import Republication
from anon_spark.risk.republication import covering
from anon_spark.risk.republication.measure import republication
from anon_spark.risk.republication.versions import Version
from tests.event_log import EventLog
from tests.oracle.republication_oracle import Numbers, Release, by_content, by_person, on_any_level, on_levels

CASES = [str(case) for case in range(12)]
AGES = {age: (f"{age:.0f}", "[20, 21]" if age < 22 else "[22, 23]", "*") for age in (20.0, 21.0, 22.0, 23.0)}
JOBS = {"nurse": ("nurse", "health", "*"), "cook": ("cook", "cook", "*"), "smith": ("smith", "craft", "*")}
HIERARCHIES = {
    "case": Hierarchy.from_levels([(case, "*") for case in CASES]),
    "age": Hierarchy.intervals(20, 23, [2]).with_null(),
    "job": Hierarchy.from_levels(list(JOBS.values())).with_null(),
}
NAMES, SENSITIVE = list(HIERARCHIES), ["disease", "dose"]
TEXTS: list[tuple[str, pa.DataType]] = [(name, pa.string()) for name in ("who", "case", "job", "disease", "age")]
SOURCE = pa.schema([*TEXTS[:2], ("age", pa.float64()), *TEXTS[2:4], ("dose", pa.float64())])
RELEASE = pa.schema([TEXTS[1], TEXTS[4], *TEXTS[2:4], ("dose", pa.float64())])
NAN = math.nan

Person = tuple[str | None, float | None, str | None, str | None, float | None]  # who, age, job, disease, dose
Label = tuple[str | None, str | None, str | None, float | None]  # age, job, disease, dose


@dataclass(frozen=True)
class Case:
    """Two small tables and what was published of each."""

    older: list[Person]
    newer: list[Person]
    older_shown: list[Label]
    newer_shown: list[Label]


diseases, doses = st.sampled_from(["flu", "cold", None]), st.sampled_from([0.0, -0.0, 1.5, NAN, None])
values = (st.sampled_from([*AGES, NAN, None, 99.0]), st.sampled_from([*JOBS, None, "pilot"]), diseases, doses)
people = st.lists(st.tuples(st.sampled_from(["ann", "Ann", "bob", "cid", "dan", None]), *values), max_size=7)
of_ages = st.sampled_from(["20", "21", "[20, 21]", "[22, 23]", "*", None, "?"])
of_jobs = st.sampled_from(["nurse", "cook", "health", "craft", "*", None])
labels = st.lists(st.tuples(of_ages, of_jobs, diseases, doses), max_size=6)
cases = st.lists(st.builds(Case, people, people, labels, labels), min_size=6, max_size=len(CASES))
few = settings(max_examples=2, phases=(Phase.explicit, Phase.reuse, Phase.generate))  # an example is a plan of many tables


def paths(nulls: str) -> list[dict[Any, tuple[Any, ...]]]:
    """By value its labels; null has its own label below the root, where it is a value."""
    null = {None: (None, None, "*")} if nulls == "value" else {}
    return [{case: (case, "*") for case in CASES}, AGES | null, JOBS | null]


def plain(value: Any) -> Any:
    """NaN is null."""
    return None if value != value else value


def told(found: Sequence[Numbers]) -> Numbers:
    """The numbers of tables that have nothing in common, as those of one table."""
    least = [one.least for one in found if one.least is not None]
    fresh = [one.newcomers_least for one in found if one.newcomers_least is not None]
    names = ("compared", "hidden", "below", "newcomers", "newcomers_hidden", "newcomers_below")
    sums = {name: sum(getattr(one, name) for one in found) for name in names}
    ones = tuple(map(sum, zip(*(one.one_value for one in found), strict=True)))
    return Numbers(**sums, least=min(least, default=None), one_value=ones, newcomers_least=min(fresh, default=None))


def as_numbers(found: Republication) -> Numbers:
    return Numbers(
        found.compared, found.hidden, found.least_candidates, found.few_candidates, tuple(found.one_value.values()),
        found.newcomers, found.hidden_newcomers, found.least_newcomers, found.few_newcomers,
    )  # fmt: skip


def release_of(case: str, rows: list[Person], shown: list[Label], covers: Any) -> Release:
    """What the attacker sees; contents are told apart as they are written, values as they are read."""
    people = [(who, (case, plain(age), job), (disease, repr(dose), repr(age))) for who, age, job, disease, dose in rows]
    return Release(people, [((case, age, job), (disease, plain(dose))) for age, job, disease, dose in shown], covers)


def expected(given_cases: Sequence[Case], nulls: str, levels: Sequence[Sequence[int]] | None, persons: bool, k: int) -> Numbers:
    found = []
    for name, case in zip(CASES, given_cases, strict=False):
        covers = [on_any_level(paths(nulls))] * 2 if levels is None else [on_levels(paths(nulls), one) for one in levels]
        older = release_of(name, case.older, case.older_shown, covers[0])
        newer = release_of(name, case.newer, case.newer_shown, covers[1])
        found.append((by_person if persons else by_content)(older, newer, k, 2))
    return told(found)


def unexplained(given_cases: Sequence[Case], nulls: str, levels: Sequence[int] | None) -> int:
    """Rows of the older releases in classes that hold more rows than their table has for them; full domain: other counts."""
    covers, rows = on_any_level(paths(nulls)) if levels is None else on_levels(paths(nulls), levels), 0
    for name, case in zip(CASES, given_cases, strict=False):
        older = release_of(name, case.older, case.older_shown, covers)
        for shown, published in Counter(labels for labels, _ in older.shown).items():
            there = sum(covers(shown, known) for _, known, _ in older.rows)
            rows += published if there < published or (levels is not None and there != published) else 0
    return rows


def frames(spark: SparkSession, given_cases: Sequence[Case], which: str, partitions: int = 1) -> tuple[DataFrame, DataFrame]:
    """The tables of all cases as one, and the releases."""
    rows = [(who, name, *more) for name, case in zip(CASES, given_cases, strict=False) for who, *more in getattr(case, which)]
    rows = [(None if row[0] is None else f"{row[1]} {row[0]}", *row[1:]) for row in rows]
    shown = [
        (name, *label) for name, case in zip(CASES, given_cases, strict=False) for label in getattr(case, f"{which}_shown")
    ]
    made = []
    for schema, content in ((SOURCE, rows), (RELEASE, shown)):
        columns = [pa.array([row[at] for row in content], kind, from_pandas=False) for at, kind in enumerate(schema.types)]
        made.append(spark.createDataFrame(pa.table(columns, schema=schema)).repartition(partitions))
    return made[0], made[1]


def measured(
    spark: SparkSession,
    given_cases: Sequence[Case],
    nulls: str,
    levels: Sequence[Sequence[int]] | None,
    persons: bool,
    k: int,
    small: bool = True,
    partitions: int = 1,
) -> Republication:
    versions = []
    for at, which in enumerate(("older", "newer")):
        source, release = frames(spark, given_cases, which, partitions)
        of_levels = None if levels is None else dict(zip(NAMES, levels[at], strict=True))
        versions.append(Version(source, release, HIERARCHIES, 100, of_levels))
    who, read, (older, newer) = "who" if persons else None, [*NAMES, *SENSITIVE], versions
    with in_one_task(small):
        return republication(older, newer, who, SENSITIVE, read, k, nulls)


def one_row_each(given_cases: Sequence[Case]) -> list[Case]:
    """Local recodings are made of tables in which every person has one row."""
    first = [[{row[0]: row for row in reversed(rows)} for rows in (case.older, case.newer)] for case in given_cases]
    return [
        Case(list(older.values()), list(newer.values()), case.older_shown, case.newer_shown)
        for case, (older, newer) in zip(given_cases, first, strict=True)
    ]


@pytest.mark.parametrize(("nulls", "persons"), [("value", True), ("suppress", False)])
@given(given_cases=cases, levels=st.tuples(*[st.tuples(st.just(0), st.integers(0, 2), st.integers(0, 2))] * 2))
@few
def test_full_domain_is_as_brute_force_says(
    spark: SparkSession, nulls: str, persons: bool, given_cases: list[Case], levels: list[tuple[int, int, int]]
) -> None:
    found = measured(spark, given_cases, nulls, levels, persons, 2)

    assert as_numbers(found) == expected(given_cases, nulls, levels, persons, 2)
    assert found.unexplained == unexplained(given_cases, nulls, levels[0])


@pytest.mark.parametrize(("nulls", "persons"), [("value", True), ("suppress", False)])
@given(given_cases=cases)
@few
def test_local_recoding_is_as_brute_force_says(spark: SparkSession, nulls: str, persons: bool, given_cases: list[Case]) -> None:
    tables = one_row_each(given_cases) if persons else given_cases
    found = measured(spark, tables, nulls, None, persons, 2)

    assert as_numbers(found) == expected(tables, nulls, None, persons, 2)
    assert found.unexplained == unexplained(tables, nulls, None)


SOME: list[Case] = [
    Case(
        [(f"p{at}", 20.0 + at % 4, list(JOBS)[at % 3], ("flu", "cold")[at % 2], float(at % 2)) for at in range(30)],
        [(f"p{at}", 20.0 + at % 4, list(JOBS)[at % 3], ("flu", "cold")[at % 2], float(at % 2)) for at in range(3, 36)],
        [("[20, 21]", "*", "flu", 0.0), ("*", "health", "cold", 1.0), ("*", "craft", None, 1.0), ("22", "cook", "flu", None)] * 2,
        [("*", "health", "cold", 1.0), ("[22, 23]", "*", "flu", 0.0), ("20", "*", "flu", 0.0), ("21", "*", "cold", 1.0)] * 2,
    )
]


@pytest.mark.long
def test_partitions_do_not_matter(spark: SparkSession, event_log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covering, "TUPLES_AT_ONCE", 30)  # several parts of tuples and of classes
    monkeypatch.setattr(covering, "CLASSES_AT_ONCE", 40)
    since = event_log.mark()

    first, *others = (measured(spark, SOME, "value", None, True, 3, False, partitions) for partitions in (1, 2, 7))
    assert others == [first, first] and as_numbers(first) == expected(SOME, "value", None, True, 3)
    assert first.few_candidates and any(first.one_value.values()) and first.few_newcomers and first.hidden

    levels = [(0, 1, 1), (0, 2, 0)]
    one, other = (measured(spark, SOME, "value", levels, False, 3, False, at) for at in (1, 7))
    assert one == other and as_numbers(one) == expected(SOME, "value", levels, False, 3)
    logged = event_log.read_text(since)
    assert not any(value in logged for value in ("smith", "cold", "craft"))


def test_ends_of_classes_cover_the_numbers_between(spark: SparkSession) -> None:
    """Of extents the class [20, 22] covers 21 and not 23, [, ] everything, null only null."""
    ages = HIERARCHIES["age"]
    rows = [("a", 20.0), ("b", 21.0), ("c", 22.0), ("d", 23.0), ("e", None), ("f", 23.0)]
    source = spark.createDataFrame(rows, "who string, age double")
    older = spark.createDataFrame([("[20, 22]",), ("[20, 21]",), ("[23, 23]",)], "age string")
    newer = spark.createDataFrame([("[, ]",), (None,), ("[21, 22]",), ("[0, 9]",), ("?",)], "age string")
    extents = {"age": Extent(ages, False)}
    before, after = (Version(source, release, {"age": ages}, 6, None, extents) for release in (older, newer))

    with in_one_task(True):
        found = republication(before, after, "who", [], ["age"], 2)

    # a: [20,22] and [20,21]; b: the same and [21,22] later; c: [20,22] alone; d and f: [23,23]; e: nothing in the older one
    assert (found.compared, found.hidden, found.least_candidates, found.few_candidates) == (5, 1, 1, 3)
    assert found.one_value == {} and found.newcomers == 0


def test_texts_that_a_collation_holds_equal_are_one_value(spark: SparkSession) -> None:
    schema = "who string, job string collate UTF8_LCASE, disease string collate UTF8_LCASE"
    source = spark.createDataFrame([("a", "cook", "flu"), ("b", "smith", "flu"), ("c", "COOK", "flu")], schema)
    older = spark.createDataFrame([("*", "flu"), ("*", "Cold")], "job string, disease string collate UTF8_LCASE")
    newer = spark.createDataFrame([("*", "FLU"), ("*", "other")], "job string, disease string collate UTF8_LCASE")
    jobs = {"job": HIERARCHIES["job"]}
    before, after = (Version(source, release, jobs, 3) for release in (older, newer))

    with in_one_task(True):
        found = republication(before, after, "who", ["disease"], ["job", "disease"], 2)

    assert found.one_value == {"disease": 2} and found.hidden == 1  # no hierarchy knows COOK


def test_shares_of_nobody_are_none() -> None:
    nobody = Republication(2, False, 0, 3, None, 0, {"disease": 0}, 0, 0, None, 0)
    some = Republication(2, True, 10, 0, 1, 2, {"disease": 3}, 4, 0, 1, 1)

    assert nobody.worst == 0 and (some.few_candidates_share, some.few_newcomers_share, some.worst) == (0.2, 0.25, 0.3)
    assert some.numbers()["one_value_shares"] == {"disease": 0.3} and some.numbers()["few_candidates"] == 2
