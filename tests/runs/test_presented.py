"""Columns published as bounds: their values, the check of them, faults that it must find, and the audit afterwards."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.auditing.reading.bounds import bounds_check, ends_of_label, with_labels
from anon_spark.columns import SHOWN_HIGH, SHOWN_LOW
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from anon_spark.families.registry import parse_job
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.primitives.bounds import bound_type, bounds_of, with_bounds
from anon_spark.runs.audit import audit
from tests.town import JOB, Town, people

AGE = {"intervals": {"from": 20, "to": 59, "widths": [10, 20]}}
HIERARCHIES = {
    "whole numbers": Hierarchy.intervals(-5, 24, [10, 20]),
    "bins": Hierarchy.intervals(0, "2.5", ["0.5", "1"], exact=False),
    "days": Hierarchy.dates(["month", "quarter", "year", "decade", "century"], "2019-11-20", "2021-02-03"),
    "weeks": Hierarchy.dates(["week"], "2020-12-20", "2021-01-20"),
}


@pytest.mark.parametrize("name", HIERARCHIES)
def test_the_audit_reads_the_bounds_of_a_label_as_the_run_writes_them(name: str) -> None:
    hierarchy = HIERARCHIES[name]
    for label, (low, high) in bounds_of(hierarchy).items():
        read = ends_of_label(hierarchy, label)
        if hierarchy.kind == "date":
            assert read == (low.isoformat(), high.isoformat()), label
        else:
            assert tuple(map(Fraction, read)) == (Fraction(low), Fraction(high)), label


def test_a_label_stands_for_the_values_below_it() -> None:
    ends = bounds_of(HIERARCHIES["whole numbers"])
    assert ends["7"] == (7, 7) and ends["[5, 14]"] == (5, 14) and ends["*"] == (-5, 24)
    assert bounds_of(HIERARCHIES["days"])["2020"] == (datetime.date(2020, 1, 1), datetime.date(2020, 12, 31))
    assert bounds_of(HIERARCHIES["days"])["2019"] == (datetime.date(2019, 11, 20), datetime.date(2019, 12, 31))


@pytest.mark.parametrize(
    ("hierarchy", "source", "expected"),
    [
        ("whole numbers", T.IntegerType(), T.IntegerType()), ("whole numbers", T.StringType(), T.LongType()),
        ("whole numbers", T.DoubleType(), T.DoubleType()), ("bins", T.IntegerType(), T.DecimalType(38, 18)),
        ("days", T.TimestampType(), T.DateType()),
    ],
)  # fmt: skip
def test_bounds_have_the_type_of_the_source_where_it_holds_them(hierarchy: str, source: Any, expected: Any) -> None:
    assert bound_type(HIERARCHIES[hierarchy], source) == expected


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"mask": {"length": 5}, "publish": "range"}, "goes with intervals or dates"),
        ({"date": ["month"], "publish": "bounds"}, "needs their domain"),
        ({"publish": "range"}, "goes with intervals or dates, not with top"),
    ],
)
def test_bounds_need_numbers_or_dates_with_a_domain(spec: dict[str, Any], fault: str, tmp_path: Path) -> None:
    job = {**JOB, "columns": {**JOB["columns"], "quasi_identifiers": {"age": spec}}}
    with pytest.raises(ConfigurationError, match=fault):
        parse_job(job, tmp_path)


def test_two_columns_must_not_meet_another_one(tmp_path: Path) -> None:
    columns = {**JOB["columns"], "quasi_identifiers": {"age": {**AGE, "publish": "bounds"}}, "keep": ["age_lo"]}
    with pytest.raises(ConfigurationError, match="age_lo is a column already"):
        parse_job({**JOB, "columns": columns}, tmp_path)


@pytest.mark.parametrize(
    ("family", "how"),
    [
        ("lattice", "range"),
        pytest.param("mst", "bounds", marks=pytest.mark.long),
        pytest.param("lattice", "bounds", marks=pytest.mark.long),
        pytest.param("mst", "range", marks=pytest.mark.long),
    ],
)
def test_a_release_shows_the_bounds_and_keeps_its_promise(spark: SparkSession, tmp_path: Path, family: str, how: str) -> None:
    ages = [None if number % 19 == 0 else 20 + (number * 7 + number // 40) % 40 for number in range(200)]
    town = Town.founded(spark, tmp_path / "town", people(age=ages))
    changes = {"family": family, "columns__quasi_identifiers__age": {**AGE, "publish": how}, "columns__keep": []}
    report = town.run(**changes)
    release = town.release
    if how == "range":
        assert release.schema["age"].dataType.simpleString() == "struct<lo:bigint,hi:bigint>"
        low, high = F.col("age.lo"), F.col("age.hi")
    else:
        assert release.columns == ["age_lo", "age_hi", "sex", "city", "disease"]
        low, high = F.col("age_lo"), F.col("age_hi")
    assert release.where(low > high).isEmpty() and not release.where(low.isNotNull()).isEmpty()
    assert any(check.name == "bounds" and check.passed for check in report.checks)
    assert all(verdict.passed for verdict in audit(town.job(**changes), spark))


def test_wrong_bounds_are_found(spark: SparkSession) -> None:
    hierarchy = HIERARCHIES["whole numbers"]
    labels = spark.createDataFrame([("7",), ("[5, 14]",), ("*",), (None,)], "age string")
    shown = with_bounds(labels, {"age": hierarchy}, {"age": T.IntegerType()})
    columns = [F.col(f"{SHOWN_LOW}0").alias("age_lo"), F.col(f"{SHOWN_HIGH}0").alias("age_hi")]
    assert bounds_check(shown, {"age": "bounds"}, {"age": hierarchy}, columns).get().passed
    for wrong in (
        [columns[1].alias("age_lo"), columns[0].alias("age_hi")],
        [F.col(f"{SHOWN_LOW}0").alias("age_lo"), (F.col(f"{SHOWN_HIGH}0") + 1).alias("age_hi")],
        [F.coalesce(F.col(f"{SHOWN_LOW}0"), F.lit(0)).alias("age_lo"), columns[1]],
    ):
        verdict = bounds_check(shown, {"age": "bounds"}, {"age": hierarchy}, wrong).get()
        assert not verdict.passed and verdict.violations
        with pytest.raises(GuaranteeViolated):
            verdict.require()


def test_labels_come_back_from_bounds(spark: SparkSession) -> None:
    hierarchy = HIERARCHIES["bins"]
    labels = spark.createDataFrame([("[0, 0.5)",), ("[2, 2.5]",), ("*",), (None,)], "x string")
    shown = with_bounds(labels, {"x": hierarchy}, {"x": T.DoubleType()})
    published = shown.select(F.col(f"{SHOWN_LOW}0").alias("x_lo"), F.col(f"{SHOWN_HIGH}0").alias("x_hi"))
    again = with_labels(published, {"x": "bounds"}, {"x": hierarchy}, None)
    assert sorted(str(row.x) for row in again.collect()) == sorted(str(row.x) for row in labels.collect())
    strange = spark.createDataFrame([(0.1, 0.5)], "x_lo double, x_hi double")
    assert with_labels(strange, {"x": "bounds"}, {"x": hierarchy}, None).first()["x"] == "?"  # type: ignore[index]
