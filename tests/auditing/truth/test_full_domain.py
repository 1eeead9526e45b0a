"""Releases that are not the source recoded: each fault is planted in an honest release of twenty rows."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing import RowAccount, verify_recoding, verify_rows
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from tests.auditing.town import KEPT, PEOPLE, Row, frame, honest, recoded, recoding, town
from tests.event_log import EventLog


def changed(rows: list[Row], at: int, **cells: object) -> list[Row]:
    """The rows with some cells of one row replaced."""
    names = ("age", "zip", "disease", "weight")
    copy = list(rows)
    copy[at] = tuple(cells.get(name, value) for name, value in zip(names, copy[at], strict=True))
    return copy


def swapped(rows: list[Row]) -> list[Row]:
    """The diseases of the first and the last class exchanged, in one row each."""
    last = len(rows) - 1
    return changed(changed(rows, 0, disease=rows[last][2]), last, disease=rows[0][2])


def test_an_honest_release_passes_and_every_row_is_accounted_for(spark: SparkSession) -> None:
    verdict, account = verify_recoding(town(spark), frame(spark, honest()), recoding(), KEPT)
    assert verdict.passed and verdict.checked == 4, verdict.detail
    assert account == RowAccount(20, 18, 2, 0, 0, 1)
    assert verify_rows(account, 2, {"suppressed": 2}).passed
    assert verdict.facts["source_tuples"] == len({row[:2] for row in PEOPLE})
    alone = [row for row in PEOPLE if [other[:2] for other in PEOPLE].count(row[:2]) == 1]
    assert verdict.facts["source_unique"] == len(alone)


FAULTS: dict[str, tuple[Callable[[list[Row]], list[Row]], str, int]] = {
    "a class published in part": (lambda rows: rows[1:], "partial", 1),
    "a row too many": (lambda rows: [*rows, rows[0]], "excess", 1),
    "a value that is no ancestor": (lambda rows: changed(rows, 0, zip="1485*"), "partial", 2),
    "a raw value": (lambda rows: changed(rows, 0, age="20"), "invented", 2),
    "another level": (lambda rows: changed(rows, 0, zip="130**"), "invented", 2),
    "an invented null": (lambda rows: changed(rows, 0, age=None), "invented", 2),
    "a suppressed row as stars": (lambda rows: [*rows, ("*", "*", "flu", 51.0)], "invented", 1),
    "a changed sensitive value": (lambda rows: changed(rows, 0, disease="cancer"), "altered", 1),
    "sensitive values swapped between classes": (swapped, "altered", 2),
    "a null filled and a value nulled": (lambda rows: changed(rows, -1, disease=None, weight=1.0), "altered", 1),
    "a sensitive null filled": (lambda rows: changed(rows, 12, disease="flu"), "altered", 1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(spark: SparkSession, fault: str) -> None:
    plant, kind, violations = FAULTS[fault]
    verdict, account = verify_recoding(town(spark), frame(spark, plant(honest())), recoding(), KEPT)
    assert not verdict.passed and verdict.violations == violations, verdict.detail
    assert verdict.facts[kind] > 0
    if len(plant(honest())) != len(honest()):
        assert not verify_rows(account, 2, {}).passed
    assert not any(value in verdict.detail for value in ("flu", "cancer", "1305", "[20"))


def test_the_frame_of_a_fault_shows_the_classes_and_one_job_finds_them(spark: SparkSession) -> None:
    verdict, _ = verify_recoding(town(spark), frame(spark, honest()[1:]), recoding(), KEPT)
    assert verdict.frame is not None
    assert [tuple(row) for row in verdict.frame.collect()] == [("[20, 24]", "1305*", 6, 5)]


NULLS: list[Row] = [
    *PEOPLE,
    *((None, "14850", "flu", 1.0 + at) for at in range(3)),
    (None, "99999", "flu", 2.0),  # a null and an unseen value
    (24, "99999", "cold", 3.0),
]


def test_nulls_are_a_value_or_dropped_and_unseen_values_are_counted_apart(spark: SparkSession) -> None:
    source = town(spark, NULLS)
    as_value = [*honest(), *recoded(NULLS[20:23], recoding())]
    verdict, account = verify_recoding(source, frame(spark, as_value), recoding(), KEPT, "value")
    assert verdict.passed and account == RowAccount(25, 21, 2, 0, 2, 1), verdict.detail
    verdict, account = verify_recoding(source, frame(spark, honest()), recoding(), KEPT, "suppress")
    assert verdict.passed and account == RowAccount(25, 18, 2, 4, 1, 1), verdict.detail
    # pitfall 1: the policy says suppress, the rows with nulls are there all the same
    verdict, account = verify_recoding(source, frame(spark, as_value), recoding(), KEPT, "suppress")
    assert not verdict.passed and verdict.facts["invented"] == 1
    # pitfall 2: the policy says value, the rows with nulls were dropped and nobody counted them
    verdict, account = verify_recoding(source, frame(spark, honest()), recoding(), KEPT, "value")
    assert account.suppressed == 5
    assert not verify_rows(account, 2, {"suppressed": 2}).passed


def test_a_changed_type_and_wrong_arguments(spark: SparkSession) -> None:
    release = frame(spark, honest()).withColumn("weight", F.col("weight").cast("string"))
    verdict, _ = verify_recoding(town(spark), release, recoding(), KEPT)
    assert not verdict.passed and "weight" in verdict.detail
    with pytest.raises(ConfigurationError, match="Did you mean: disease"):
        verify_recoding(town(spark), release, recoding(), ["disese"])
    with pytest.raises(ConfigurationError, match="Level 9"):
        verify_recoding(town(spark), release, {"zip": (recoding()["zip"][0], 9)}, KEPT)
    with pytest.raises(ConfigurationError, match="at least one quasi-identifier"):
        verify_recoding(town(spark), release, {}, KEPT)


def test_nested_unchanged_values_are_compared_nulls_included(spark: SparkSession) -> None:
    hierarchy = {"g": (Hierarchy.from_levels([("x", "*"), ("y", "*")]), 1)}
    kinds = [pa.string(), pa.list_(pa.string())]
    source = frame(spark, [("x", ["a", None]), ("y", [])], ["g", "items"], kinds)
    same = frame(spark, [("*", []), ("*", ["a", None])], ["g", "items"], kinds)
    moved = frame(spark, [("*", []), ("*", [None, "a"])], ["g", "items"], kinds)
    assert verify_recoding(source, same, hierarchy, ["items"])[0].passed
    assert verify_recoding(source, moved, hierarchy, ["items"])[0].facts["altered"] == 1


def test_a_null_that_changes_places_with_a_value_is_seen(spark: SparkSession) -> None:
    hierarchy = {"g": (Hierarchy.from_levels([("x", "*"), ("y", "*")]), 1)}
    names, kinds = ["g", "left", "right"], [pa.string()] * 3  # of equal types: a hash that skips nulls cannot tell
    source = frame(spark, [("x", None, "s"), ("y", None, None)], names, kinds)
    release = frame(spark, [("*", "s", None), ("*", None, None)], names, kinds)
    assert verify_recoding(source, release, hierarchy, names[1:])[0].facts["altered"] == 1


def test_partitions_do_not_matter_and_no_value_reaches_the_log(spark: SparkSession, event_log: EventLog) -> None:
    since = event_log.mark()
    found = [
        verify_recoding(town(spark, NULLS, at), frame(spark, honest()[2:], partitions=at), recoding(), KEPT)
        for at in (1, 2, 7)
    ]
    assert all((dict(v.facts), account) == (dict(found[0][0].facts), found[0][1]) for v, account in found)
    logged = event_log.read_text(since)
    assert "asthma" not in logged and "1305*" not in logged
    alone = re.findall(r"(?:[^\w.\"-]|\\\")13051(?![\w.-])", re.sub(r'"[A-Z][\w ]*":"?\d+', "", logged))
    assert not alone  # digits of a longer number, of a file's name or of a metric are no value
