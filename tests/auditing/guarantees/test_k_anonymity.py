"""Planted classes below k, and classes that only look like it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing import verify, verify_k_anonymity
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from anon_spark.model.guarantee import KAnonymity
from tests.auditing.town import QUASI, Row, frame, honest

TEXT = pa.string()


def table(spark: SparkSession, rows: Sequence[Row], kinds: Sequence[pa.DataType] | None = None) -> DataFrame:
    names = ["a", "b", "person"][: len(rows[0])]
    return frame(spark, rows, names, kinds or [TEXT] * len(names))


def test_exactly_k_passes_and_one_less_fails(spark: SparkSession) -> None:
    release = table(spark, [("x", "u")] * 3 + [("y", "u")] * 4)
    passed = verify_k_anonymity(release, ["a", "b"], 3)  # pitfall 19: a class of exactly k is large enough
    assert passed.passed and (passed.violations, passed.checked) == (0, 2)
    failed = verify_k_anonymity(release, ["a", "b"], 4)  # pitfall 5: a whole small group that nobody looked at
    assert not failed.passed and (failed.violations, failed.checked) == (1, 2)
    assert failed.facts["smallest"] == 3 and failed.facts["rows_in_violation"] == 3
    assert failed.frame is not None and [tuple(row)[:2] for row in failed.frame.collect()] == [("x", "u")]
    with pytest.raises(GuaranteeViolated) as raised:
        failed.require()
    assert "'x'" not in str(raised.value) and "1 of 2 classes" in str(raised.value)


def test_null_is_a_class_of_its_own_in_every_column(spark: SparkSession) -> None:
    rows = [("x", "c")] * 3 + [(None, "c")]  # pitfalls 1 and 3: [1, 1, 1, NaN], alone and beside a constant column
    alone = verify_k_anonymity(table(spark, rows), ["a"], 2)
    beside = verify_k_anonymity(table(spark, rows), ["a", "b"], 2)
    assert [alone.facts["smallest"], beside.facts["smallest"]] == [1, 1]
    assert not alone.passed and not beside.passed
    nulls = verify_k_anonymity(table(spark, [("x", None)] * 2 + [(None, "x")] * 2 + [(None, None)] * 2), ["a", "b"], 2)
    assert nulls.passed and nulls.checked == 3


def test_nan_is_one_value(spark: SparkSession) -> None:
    rows = [(float("nan"), "c"), (-float("nan"), "c"), (0.0, "c"), (-0.0, "c")]
    verdict = verify_k_anonymity(table(spark, rows, [pa.float64(), TEXT]), ["a", "b"], 2)
    assert verdict.passed and verdict.checked == 2


def test_classes_are_not_joined_texts(spark: SparkSession) -> None:
    rows = [("x:y", "z"), ("x", "y:z"), ("x:y", "z"), ("x", "y:z"), ("NULL", "z"), (None, "z")]  # pitfalls 8 and 4
    verdict = verify_k_anonymity(table(spark, rows), ["a", "b"], 2)
    assert (verdict.checked, verdict.violations) == (4, 2)


def test_suppressed_rows_left_in_the_table_are_a_class(spark: SparkSession) -> None:
    rows = [("x", "u")] * 3 + [("*", "*")] * 2  # pitfall 12
    assert not verify_k_anonymity(table(spark, rows), ["a", "b"], 3).passed


def test_collated_texts_are_told_apart(spark: SparkSession) -> None:
    release = table(spark, [("x", "u"), ("X", "u")]).withColumn("a", F.collate("a", "UTF8_LCASE"))
    assert release.groupBy("a").count().count() == 1
    verdict = verify_k_anonymity(release, ["a", "b"], 2)
    assert (verdict.checked, verdict.violations) == (2, 2)


def test_one_person_with_many_rows_counts_once(spark: SparkSession) -> None:
    rows: list[Row] = [("x", "u", "anna")] * 5 + [("y", "u", "anna"), ("y", "u", "berta"), ("y", "u", "berta")]
    rows += [("z", "u", None)] * 4 + [("z", "u", "carla")]  # a row of nobody protects nobody
    release = table(spark, rows)
    assert verify_k_anonymity(release, ["a", "b"], 2).passed
    verdict = verify_k_anonymity(release, ["a", "b"], 2, person="person")
    assert not verdict.passed and (verdict.violations, verdict.checked) == (2, 3)
    assert verdict.facts["unit"] == "persons" and verdict.facts["rows"] == 13


def test_an_empty_release_is_not_passed(spark: SparkSession) -> None:
    verdict = verify_k_anonymity(table(spark, [("x", "u")]).where("a = 'none'"), ["a", "b"], 2)
    assert not verdict.passed and verdict.violations == 0 and "empty" in verdict.detail


def test_the_histogram_never_starts_below_k(spark: SparkSession) -> None:
    sizes = {"p": 2, "q": 3, "r": 5, "s": 6, "t": 12, "u": 25}
    release = table(spark, [(name, "c") for name, size in sizes.items() for _ in range(size)])
    verdict = verify_k_anonymity(release, ["a", "b"], 3)
    assert verdict.facts["histogram"] == [(3, 5, 2, 8), (6, 11, 1, 6), (12, 23, 1, 12), (24, 47, 1, 25)]
    assert verdict.facts["average"] == sum(sizes.values()) / len(sizes)


def test_verify_takes_guarantees_and_column_names_literally(spark: SparkSession) -> None:
    odd = frame(spark, [("x", "u")] * 2, ["a.b", "c`d"], [TEXT, TEXT])
    assert verify(odd, KAnonymity(2, ["a.b", "c`d"])).require().checked == 1
    both = verify(odd, KAnonymity(2, ["a.b"]), KAnonymity(3, ["c`d"]))
    assert not both.passed and both.violations == 1
    with pytest.raises(ConfigurationError, match=r"Did you mean: a\.b"):
        verify(odd, KAnonymity(2, ["ab"]))
    with pytest.raises(ConfigurationError, match="at least one guarantee"):
        verify(odd)


def test_partitions_do_not_matter(spark: SparkSession) -> None:
    found = [verify_k_anonymity(frame(spark, honest(), partitions=at), QUASI, 4, "weight") for at in (1, 2, 7)]
    assert found[0].violations > 0
    assert all((verdict.facts, verdict.detail) == (found[0].facts, found[0].detail) for verdict in found)
