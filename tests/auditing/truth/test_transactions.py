"""Truthfulness of relational values and items: an honest release, every way it can lie, and what a current one shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing import (
    RowAccount,
    Verdict,
    verify_kkm,
    verify_rows,
    verify_transactions,
    verify_transactions_covered,
)
from anon_spark.auditing.truth.transaction_records import LeaveOut
from anon_spark.columns import LINK
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.ranges import FreeRange
from tests.auditing.town import Row, frame
from tests.event_log import EventLog
from tests.often import often

AGE, CITY, FOOD, DRUGS, WEIGHT = "age", "ci.ty", "fo.od", "drugs", "weight"
ITEMS, SECRETS = "transactions", "transactions_sensitive"
TEXTS = pa.list_(pa.string())
RANGE = pa.struct([("lo", pa.int32()), ("hi", pa.int32())])
SOURCE: dict[str, Any] = {AGE: pa.int32(), CITY: pa.string(), FOOD: TEXTS, DRUGS: TEXTS, WEIGHT: pa.float64()}
STAGED: dict[str, Any] = {
    AGE: RANGE, CITY: pa.string(), ITEMS: pa.list_(TEXTS), SECRETS: TEXTS, WEIGHT: pa.float64(), LINK: pa.int64(),
}  # fmt: skip
CITIES = Hierarchy.from_levels([("Athens", "Greece", "*"), ("Patras", "Greece", "*"), ("Rome", "Italy", "*")])
HIV = {DRUGS: ["hiv"]}
BREAD, MILK, TEA, A, B = (f"{FOOD}.bread", f"{FOOD}.milk", f"{FOOD}.tea", f"{DRUGS}.a", f"{DRUGS}.b")

PEOPLE: list[Row] = [
    (20, "Athens", ["milk", "bread"], ["a"], 60.0),
    (24, "Patras", ["bread", "milk", "milk"], [], 61.5),  # an item twice is once
    (21, "Athens", ["milk"], ["hiv", "a"], None),
    (30, "Rome", [], ["b", "a"], 70.0),
    (39, None, ["tea"], ["b"], 71.0),  # no city is a city
    (33, "Rome", ["tea"], [], 71.0),
    (40, None, [], ["hiv"], 80.0),
    (40, None, [], [], float("nan")),
]
CLASSES = [({"lo": 20, "hi": 24}, "Greece")] * 3 + [({"lo": 30, "hi": 39}, "*")] * 3 + [({"lo": 40, "hi": 40}, None)] * 2
FIRST, SECOND = [[A], sorted([BREAD, MILK])], [sorted([A, B, TEA])]
LISTS = [FIRST, FIRST[1:], FIRST, SECOND, SECOND, SECOND, [], []]
ROWS: list[Row] = [
    (*place, lists, [f"{DRUGS}.hiv"] if "hiv" in person[3] else [], person[4], link)
    for link, (place, lists, person) in enumerate(zip(CLASSES, LISTS, PEOPLE, strict=True))
]


@dataclass(frozen=True)
class Case:
    """The source, the records as they were read (with a link at the end), the staged rows."""

    source: list[Row]
    linked: list[Row]
    staged: list[Row]

    def frames(self, spark: SparkSession, partitions: int | None = None) -> tuple[DataFrame, DataFrame, DataFrame]:
        source = frame(spark, self.source, list(SOURCE), list(SOURCE.values()), partitions)
        linked = frame(spark, self.linked, [*SOURCE, LINK], [*SOURCE.values(), pa.int64()], partitions)
        return source, linked, frame(spark, self.staged, list(STAGED), list(STAGED.values()), partitions)


HONEST = Case(PEOPLE, [(*person, link) for link, person in enumerate(PEOPLE)], ROWS)


def linked_verdict(
    spark: SparkSession, case: Case, nulls: Any = "value", partitions: int | None = None, age: FreeRange | None = None
) -> tuple[Verdict, RowAccount]:
    source, linked, staged = case.frames(spark, partitions)
    relational = {AGE: age, CITY: CITIES}
    return verify_transactions(source, staged, relational, [FOOD, DRUGS], ITEMS, HIV, SECRETS, [WEIGHT], linked, nulls)


def current_verdict(
    spark: SparkSession, case: Case, nulls: Any = "value", age: FreeRange | None = None, words: Sequence[str] = ()
) -> tuple[Verdict, RowAccount]:
    source, _, staged = case.frames(spark)
    release, relational, lists = staged.drop(LINK), {AGE: age, CITY: CITIES}, [FOOD, DRUGS]
    return verify_transactions_covered(source, release, relational, lists, ITEMS, HIV, SECRETS, [WEIGHT], nulls, words)


def changed(rows: list[Row], at: int, **cells: Any) -> list[Row]:
    """One row with other cells, given by their position (c0, c1, …)."""
    row = tuple(cells.get(f"c{place}", cell) for place, cell in enumerate(rows[at]))
    return [*rows[:at], row, *rows[at + 1 :]]


def rows(at: int, **cells: Any) -> Case:
    return replace(HONEST, staged=changed(ROWS, at, **cells))


def counted(verdict: Verdict) -> dict[str, int]:
    return {kind: number for kind, number in verdict.facts.items() if number and kind not in ("records", "classes", "items")}


def test_an_honest_release_passes(spark: SparkSession, event_log: EventLog) -> None:
    since = event_log.mark()
    for partitions in (1, 7):
        found, account = linked_verdict(spark, HONEST, partitions=partitions)
        assert found.require().checked == 8 and counted(found) == {} and found.name == "truthfulness"
        assert account == RowAccount(8, 8, 0, 0, 0, 0) and verify_rows(account, 0, {"suppressed": 0}).passed
    found, account = current_verdict(spark, HONEST)
    assert found.require().checked == 3 + 5 and account.balance == 0 and "Necessary conditions only" in found.detail
    assert verify_kkm(HONEST.frames(spark)[2], [AGE, CITY], ITEMS, 2, 2).passed
    assert "hiv" not in event_log.read_text(since)


def greeks(**cells: Any) -> Case:
    """All three rows of the first class."""
    staged = ROWS
    for at in range(3):
        staged = changed(staged, at, **cells)
    return replace(HONEST, staged=staged)


LIES: list[tuple[str, int, Case]] = [
    ("label", 3, greeks(c1="Italy")),  # not above Athens
    ("label", 3, greeks(c1="Atlantis")),
    ("label", 3, greeks(c1=None)),
    ("label", 1, greeks(c1="Athens")),  # one is from Patras
    ("label", 1, rows(7, c1="Rome")),  # no city, and not Rome
    ("uncovered", 1, rows(0, c2=[[A], [BREAD]])),
    ("ambiguous", 1, rows(0, c2=[[A], [BREAD, MILK], [MILK, TEA]])),
    ("idle", 1, rows(0, c2=[[A], [BREAD, MILK], [TEA]])),
    ("idle", 1, rows(7, c2=[[A]])),
    ("sensitive", 1, rows(0, c3=[f"{DRUGS}.hiv"])),
    ("sensitive", 1, rows(2, c3=[])),
    ("sensitive", 1, rows(2, c3=["hiv"])),
    ("sensitive", 1, rows(2, c3=None)),
    ("altered", 1, rows(0, c4=61.0)),
    ("altered", 1, rows(2, c4=0.0)),
]


@pytest.mark.parametrize("half", [0, 1])
def test_each_lie_is_caught_alone(spark: SparkSession, half: int) -> None:
    """Many lies in one table: each has its own copy of the eight records."""
    source: list[Row] = []
    linked: list[Row] = []
    staged: list[Row] = []
    lies = LIES[half::2]
    for copy, (_, _, case) in enumerate(lies):
        source += case.source
        linked += [(*row[:-1], row[-1] + 10 * copy) for row in case.linked]
        staged += [(*row[:-1], row[-1] + 10 * copy) for row in case.staged]
    found, _ = linked_verdict(spark, Case(source, linked, staged))
    expected = Counter[str]()
    for kind, number, _ in lies:
        expected[kind] += number
    assert counted(found) == expected
    assert found.violations == expected.total() and found.checked == 8 * len(lies)
    with pytest.raises(GuaranteeViolated, match="records") as raised:
        found.require()
    assert "Athens" not in str(raised.value) and "milk" not in str(raised.value)


WITHOUT_TEA = replace(  # two records have it
    HONEST, staged=changed(changed(changed(ROWS, 3, c2=[[A, B]]), 4, c2=[[A, B]]), 5, c2=[])
)


LEFT_OUT: dict[str, tuple[Case, LeaveOut | None, dict[str, int], dict[str, int]]] = {  # what both verdicts count
    "within the share": (WITHOUT_TEA, LeaveOut(3, 2 / 12), {}, {}),  # of 12 occurrences
    "beyond the share": (WITHOUT_TEA, LeaveOut(3, 1.9 / 12), {"beyond": 1}, {"beyond": 1}),
    "k records have it": (WITHOUT_TEA, LeaveOut(2, 1.0), {"uncovered": 2}, {"seldom": 1}),
    "not allowed": (WITHOUT_TEA, None, {"uncovered": 2}, {"seldom": 1}),
    "of one row only": (
        replace(WITHOUT_TEA, staged=changed(WITHOUT_TEA.staged, 4, c2=[[A, B, TEA]])),
        LeaveOut(3, 1.0),
        {"uncovered": 1},
        {"seldom": 1},
    ),
    "another item instead": (
        replace(WITHOUT_TEA, staged=changed(WITHOUT_TEA.staged, 4, c2=[[A, B], [B]])),
        LeaveOut(3, 1.0),
        {"ambiguous": 1},
        {},
    ),
    "nothing": (HONEST, LeaveOut(3, 1.0), {}, {}),
}


OFTEN = {"within the share", "beyond the share", "k records have it", "of one row only"}


@pytest.mark.parametrize("name", often(LEFT_OUT, OFTEN))
def test_rare_items_may_be_left_out(spark: SparkSession, name: str) -> None:
    """Everywhere, each of fewer than k records, together within the share."""
    case, leave_out, *expected = LEFT_OUT[name]
    source, linked, staged = case.frames(spark)
    given: dict[str, Any] = {"relational": {AGE: None, CITY: CITIES}, "transactions": [FOOD, DRUGS], "items": ITEMS}
    given |= {"sensitive_items": HIV, "sensitive": SECRETS, "unchanged": [WEIGHT]}
    given |= {} if leave_out is None else {"leave_out": leave_out}
    truth, _ = verify_transactions(source, staged, linked=linked, **given)
    covered, _ = verify_transactions_covered(source, staged.drop(LINK), **given)
    assert [counted(truth), counted(covered)] == expected
    assert [truth.passed, covered.passed] == [not faults for faults in expected]


@pytest.mark.long
def test_faults_of_ranges(spark: SparkSession) -> None:
    tight = {"lo": 20, "hi": 23}
    found, _ = linked_verdict(spark, replace(HONEST, staged=[(tight, *row[1:]) if row[-1] < 3 else row for row in ROWS]))
    assert counted(found) == {"range": 1, "loose": 1}  # 24 is outside, and nobody is 23
    wide = {"lo": 19, "hi": 24}
    found, _ = linked_verdict(spark, replace(HONEST, staged=[(wide, *row[1:]) if row[-1] < 3 else row for row in ROWS]))
    assert counted(found) == {"loose": 1} and found.violations == 1 and "1 ranges of classes" in found.detail
    found, _ = linked_verdict(spark, rows(7, c0=None))
    assert counted(found) == {"range": 1, "loose": 1}


def test_faults_of_links(spark: SparkSession) -> None:
    found, account = linked_verdict(spark, replace(HONEST, staged=ROWS[:-1]))
    assert counted(found) == {"unlinked": 1} and account.balance == 1
    found, account = linked_verdict(spark, replace(HONEST, staged=[*ROWS, ROWS[-1]]))
    assert counted(found) == {"repeated": 1} and account.balance == -1
    found, _ = linked_verdict(spark, replace(HONEST, staged=changed(ROWS, 7, c5=None)))
    assert counted(found) == {"unlinked": 2, "repeated": 1}
    swapped = changed(changed(ROWS, 0, c5=3), 3, c5=0)  # two rows exchanged
    found, _ = linked_verdict(spark, replace(HONEST, staged=swapped))
    assert counted(found) == {"range": 2, "label": 1, "uncovered": 2, "idle": 1, "altered": 2, "loose": 2}
    assert found.violations == 2 + 2


@pytest.mark.long
def test_the_records_are_those_of_the_source(spark: SparkSession) -> None:
    other = replace(HONEST, linked=changed(HONEST.linked, 6, c3=["hiv", "hiv"]))  # as a set the same
    assert linked_verdict(spark, other)[0].passed
    person: Row = (25, "Athens", ["milk"], [], 1.0)
    found, account = linked_verdict(spark, replace(HONEST, source=[*PEOPLE, person]))
    assert counted(found) == {"other_records": 1} and account.balance == 1 and "8 records, the source has 9" in found.detail
    found, _ = linked_verdict(spark, replace(HONEST, source=[*PEOPLE[1:], (20, "Patras", *PEOPLE[0][2:])]))
    assert counted(found) == {"other_records": 1} and "their content differs" in found.detail
    holes = replace(HONEST, source=changed(PEOPLE, 0, c2=["milk", None, "bread"]))
    assert counted(linked_verdict(spark, holes)[0]) == {"holes": 1}
    assert not linked_verdict(spark, Case([], [], []))[0]


@pytest.mark.long
def test_policies_drop_rows(spark: SparkSession) -> None:
    dropped: list[Row] = [
        (None, "Rome", ["tea"], [], 1.0), (30, "Rome", None, [], 1.0), (30, None, ["tea"], None, 1.0), (99, None, [], [], 1.0),
        (30, "Oslo", [], [], 1.0), (99, "Rome", [], [], 1.0), (99, "Oslo", ["tea"], ["a"], None),
    ]  # fmt: skip
    known = [row for row in range(8) if PEOPLE[row][1] is not None]
    kept = Case(
        [*(PEOPLE[at] for at in known), *dropped],
        [HONEST.linked[at] for at in known],
        [({"lo": 30, "hi": 33}, *ROWS[at][1:]) if at in (3, 5) else ROWS[at] for at in known],
    )
    for find in (linked_verdict, current_verdict):
        found, account = find(spark, kept, nulls="suppress", age=FreeRange((0, 60)))
        assert found.passed and account == RowAccount(12, 5, 0, 4, 3, 0) and account.balance == 0
        found, account = find(spark, kept, nulls="suppress")  # 99 is as good as any
        assert not found and account == RowAccount(12, 5, 0, 4, 2, 0)
        found, account = find(spark, kept)
        assert not found and account.dropped_nulls == 0


STANDING: dict[str, list[Row]] = {  # each on another row of the source
    "unknown_labels": changed(ROWS, 0, c1="Atlantis")[:1],
    "outside": [
        *changed(ROWS, 1, c0={"lo": 19, "hi": 24})[1:2],
        *changed(ROWS, 3, c0={"lo": 24, "hi": 20})[3:4],
        *changed(ROWS, 4, c0={"lo": 24, "hi": 41})[4:5],
        *changed(ROWS, 5, c0=None)[5:6],
    ],
    "unknown_items": changed(ROWS, 2, c2=[[A], [BREAD, MILK, "caviar"], [f"{DRUGS}.hiv"]])[2:3],
    "": ROWS[6:],
}


@pytest.mark.long
def test_faults_of_a_current_release(spark: SparkSession) -> None:
    found, account = current_verdict(spark, replace(HONEST, staged=[row for of in STANDING.values() for row in of]))
    assert counted(found) == {"unknown_labels": 1, "outside": 4, "unknown_items": 2} and account.balance == 0
    assert found.violations == 7 and found.checked == 7 + 5 and not found  # classes, items
    words = ["caviar", f"{DRUGS}.hiv"]  # of a hierarchy: rows may hold what nobody has, and still nothing sensitive
    known = current_verdict(spark, replace(HONEST, staged=STANDING["unknown_items"]), words=words)[0]
    assert known.facts["unknown_items"] == 1
    found, account = current_verdict(spark, replace(HONEST, staged=[*ROWS, ROWS[-1]]))
    assert counted(found) == {"totals": 1} and account.balance == -1
    assert counted(current_verdict(spark, rows(0, c4=61.0))[0]) == {"altered": 1}
    assert counted(current_verdict(spark, rows(0, c3=[f"{DRUGS}.hiv"]))[0]) == {"altered": 1}
    fewer = rows(0, c2=[[A], [BREAD]])  # milk is held by two rows, and bought by three
    assert counted(current_verdict(spark, fewer)[0]) == {"seldom": 1}
    holes = replace(fewer, source=changed(PEOPLE, 0, c2=["milk", None, "bread"]))
    assert counted(current_verdict(spark, holes)[0]) == {"seldom": 1, "holes": 1}


@pytest.mark.long
def test_what_a_current_release_cannot_show(spark: SparkSession) -> None:
    swapped = replace(HONEST, staged=changed(changed(ROWS, 0, c2=SECOND), 3, c2=FIRST))  # items of two rows exchanged
    assert current_verdict(spark, swapped)[0].passed and not linked_verdict(spark, swapped)[0]
    assert not current_verdict(spark, Case([], [], []))[0]
    unseen = replace(HONEST, source=[*PEOPLE, (30, "Oslo", [], [], 1.0)], staged=[*ROWS, ROWS[-1]])
    assert current_verdict(spark, unseen)[0].facts["totals"] == 1


@pytest.mark.long
def test_one_column_keeps_its_names(spark: SparkSession) -> None:
    source = frame(spark, [(1, ["x", "y"]), (2, ["x"])] * 2, ["n", "items"], [pa.int64(), TEXTS])
    people = frame(spark, [(1, ["x", "y"], 0), (2, ["x"], 1), (1, ["x", "y"], 2), (2, ["x"], 3)], ["n", "items", LINK],
                   [pa.int64(), TEXTS, pa.int64()])  # fmt: skip
    ends = pa.struct([("lo", pa.int64()), ("hi", pa.int64())])
    shown = frame(spark, [({"lo": 1, "hi": 2}, [["x", "y"]], at) for at in range(4)], ["n", "items", LINK],
                  [ends, pa.list_(TEXTS), pa.int64()])  # fmt: skip
    found, _ = verify_transactions(source, shown, {"n": None}, ["items"], "items", {}, None, [], people)
    assert found.passed and verify_transactions_covered(source, shown, {"n": None}, ["items"], "items", {}, None, [])[0].passed
    other = shown.withColumn("n", shown["n"].cast("struct<lo:double,hi:double>"))
    found, _ = verify_transactions(source, other, {"n": None}, ["items"], "items", {}, None, [], people)
    assert found.violations == 1 and "another type" in found.detail and "n" in found.detail
    refused: list[tuple[Any, Any, Any, Any, Any, Any]] = [
        ({"n": CITIES}, ["items"], "n", {}, None, []),
        ({"n": None}, [], "items", {}, None, []),
        ({"n": None}, ["items"], "items", {"items": ["y"]}, None, []),
        ({"n": None}, ["items"], "items", {"other": ["y"]}, "items", []),
        ({"n": None}, ["items"], "items", {}, None, ["weight"]),
    ]
    for arguments in refused:
        with pytest.raises(ConfigurationError):
            verify_transactions(source, shown, *arguments, linked=people)
    with pytest.raises(ConfigurationError, match="struct<lo,hi>"):
        bare = shown.withColumn("n", shown["n"]["lo"])
        verify_transactions(source, bare, {"n": None}, ["items"], "items", {}, None, [], people)
