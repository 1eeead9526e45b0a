"""One row per person: several rows of one person, rows of nobody, and persons that only look alike."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anon_spark.auditing import verify_one_row_each
from anon_spark.errors import ConfigurationError
from anon_spark.families.registry import parse_job, pipeline_of
from tests.auditing.town import frame

JOB: dict[str, Any] = {
    "anon_spark": 1,
    "family": "mst",
    "input": {"table": "./people"},
    "columns": {"person": "who", "quasi_identifiers": {"age": {"intervals": {"from": 20, "to": 29, "widths": [5]}}}},
    "privacy": {"k": 3},
    "output": {"table": "./release", "runs": "./runs"},
}


def test_several_rows_and_rows_of_nobody_are_counted_apart(spark: SparkSession) -> None:
    def verdict(persons: list[str | None]) -> Any:
        return verify_one_row_each(frame(spark, [(who,) for who in persons], ["who?"], [pa.string()], 3), "who?")

    passed = verdict(["ann", "Ann", "ann ", ""])
    assert passed.passed and (passed.violations, passed.checked) == (0, 4), passed.detail
    failed = verdict(["ann", "bob", "ann", None, "cid", None, "bob", "ann", None])
    assert not failed.passed and (failed.violations, failed.checked) == (5, 3)
    assert failed.facts == {"persons": 3, "several_rows": 2, "rows_without_person": 3}
    assert failed.detail == "2 of 3 persons of the source have several rows. 3 rows of the source have no person."
    with pytest.raises(ConfigurationError, match="not found in the source: whom"):
        verify_one_row_each(frame(spark, [("ann",)], ["who"], [pa.string()]), "whom")


@pytest.mark.long
def test_audit_of_a_current_local_recoding_is_not_taken_in_by_rows_of_one_person(spark: SparkSession, tmp_path: Any) -> None:
    ages = [20, 21, 22, 25, 26, 27]
    release = frame(spark, [("[20, 24]",)] * 3 + [("[25, 29]",)] * 3, ["age"], [pa.string()])
    steps = pipeline_of(parse_job(JOB, tmp_path), None)

    def failed(persons: list[int]) -> list[str]:
        source = frame(spark, list(zip(persons, ages, strict=True)), ["who", "age"], [pa.int64(), pa.int32()])
        return [str(found) for found in steps.verify_current(source, release, {}) if not found.passed]

    assert failed([1, 2, 3, 4, 5, 6]) == []
    # three rows, one person: everything else about the release is in order
    assert failed([1, 1, 1, 4, 5, 6]) == ["persons: FAILED. 1 of 4 persons of the source have several rows."]
