"""Checks of an increment of a series: planted differences between input, ledger, increment and published rows are found."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing.release.series import entered_check, increment_check, once_each_check
from anon_spark.auditing.verdict import Verdict
from tests.auditing.town import frame
from tests.oracle.series_oracle import ledger_hash

SALT = "0f5a-salt"
SOURCE = [(1, "Aldorf"), (2, "Aldorf"), (2, "Bexley"), (3, "Carden"), (4, "Carden")]  # 1 is published already
INCREMENT = SOURCE[1:]
HELD = SOURCE[1:4]  # 4 waits


def hashes(spark: SparkSession, persons: list[Any]) -> DataFrame:
    return frame(spark, [(ledger_hash(SALT, person),) for person in persons], ["hash"], [pa.binary()], 3)


def rows(spark: SparkSession, content: list[tuple[Any, Any]]) -> DataFrame:
    return frame(spark, content, ["who?", "city"], [pa.int64(), pa.string()], 3)


INCREMENTS: dict[str, tuple[list[Any], list[tuple[Any, Any]]]] = {  # who is published, and the rows of the increment
    "somebody in it is published": ([1, 3], INCREMENT),
    "a row of a published person": ([1], SOURCE),
    "a row is missing": ([1], INCREMENT[1:]),
    "one of several rows is missing": ([1], [INCREMENT[0], *INCREMENT[2:]]),
    "a row is there twice": ([1], [*INCREMENT, INCREMENT[0]]),
    "another value": ([1], [(2, "Dunmore"), *INCREMENT[1:]]),
    "another person": ([1], [(5, "Aldorf"), *INCREMENT[1:]]),
    "two rows changed places": ([1], [(3, "Aldorf"), (2, "Bexley"), (2, "Carden"), (4, "Carden")]),
    "it is empty": ([1], []),
    "the ledger was forgotten": ([], INCREMENT),
}


def test_an_increment_has_the_rows_of_those_who_were_not_published(spark: SparkSession) -> None:
    """Whoever was published, also some who are not in the input any more, and some who are twice in the ledger."""

    def judged(published: list[Any], increment: list[tuple[Any, Any]]) -> tuple[Verdict, str]:
        return increment_check(rows(spark, SOURCE), "who?", SALT, hashes(spark, published), rows(spark, increment)).get()

    verdict, digest = judged([1, 77, 1], INCREMENT[::-1])
    assert verdict.passed and digest == judged([1], INCREMENT)[1]
    for fault, (published, increment) in INCREMENTS.items():
        verdict, _ = judged(published, increment)
        assert not verdict.passed and verdict.violations, fault
        assert "does not have the rows" in verdict.detail
    salted = increment_check(rows(spark, SOURCE), "who?", "another salt", hashes(spark, [1]), rows(spark, INCREMENT)).get()
    assert not salted[0].passed


ENTRIES: dict[str, tuple[list[Any], list[tuple[Any, Any]], int, str]] = {  # who is entered; held and published rows; what is said
    "somebody twice": ([2, 3, 3], HELD, 3, "not those of the published rows"),
    "somebody is missing": ([2], HELD, 3, "not those of the published rows"),
    "somebody who waits": ([2, 3, 4], HELD, 3, "not those of the published rows"),
    "somebody else": ([2, 4], HELD, 3, "not those of the published rows"),
    "nobody": ([], HELD, 3, "not those of the published rows"),
    "more rows are published": ([2, 3], HELD, 4, "the release has 4 rows, the people in it have 3"),
    "fewer rows are published": ([2, 3], HELD, 2, "the release has 2 rows, the people in it have 3"),
    "a row of nobody": ([2, 3], [*HELD, (None, "Carden")], 4, "1 published rows have no person"),
}


def test_the_people_of_the_published_rows_are_entered(spark: SparkSession) -> None:
    def judged(entered: list[Any], held: list[tuple[Any, Any]], published: int, salt: str = SALT) -> Verdict:
        return entered_check(rows(spark, held), "who?", salt, hashes(spark, entered), published).get()

    passed = judged([3, 2], HELD, 3)
    assert passed.passed and passed.facts == {"persons": 2} and "2 persons of 3 published rows" in passed.detail
    for fault, (entered, held, published, words) in ENTRIES.items():
        failed = judged(entered, held, published)
        assert not failed.passed and failed.violations, fault
        assert words in failed.detail, fault
    assert not judged([2, 3], HELD, 3, "another salt").passed


def test_nobody_is_twice_in_a_ledger(spark: SparkSession) -> None:
    passed = once_each_check(hashes(spark, [1, 2, 3]), sealed=True).get()
    assert passed.passed and passed.facts == {"persons": 3}
    twice = once_each_check(hashes(spark, [1, 2, 3, 2, 2, 1]), sealed=True).get()
    assert not twice.passed and "2 persons were published in several increments" in twice.detail
    edited = once_each_check(hashes(spark, [1, 2, 3]), sealed=False).get()
    assert not edited.passed and "it was edited" in edited.detail
    assert once_each_check(hashes(spark, []), sealed=True).get().passed


@pytest.mark.long
def test_persons_of_every_kind_are_hashed_by_their_definition(spark: SparkSession) -> None:
    """Whole numbers of any width alike, texts as they are, bytes as hexadecimal digits."""
    kinds: list[tuple[Any, pa.DataType, str]] = [
        (7001, pa.int32(), "7001"), (7001, pa.int64(), "7001"), (-1, pa.int8(), "-1"), ("7001", pa.string(), "7001"),
        (" Ä'ö😀 ", pa.string(), " Ä'ö😀 "), ("", pa.string(), ""), (Decimal("7001"), pa.decimal128(20, 0), "7001"),
        (Decimal("1.50"), pa.decimal128(5, 2), "1.50"), (b"\x00\xab", pa.binary(), "00AB"),
        (date(2020, 2, 29), pa.date32(), "2020-02-29"),
    ]  # fmt: skip
    for value, kind, text in kinds:
        held = frame(spark, [(value,)], ["who"], [kind])
        assert entered_check(held, "who", SALT, hashes(spark, [text]), 1).get().passed, (value, kind)
