"""The description of a release as a table: written once, with any character, on the newest release only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.io.description import OURS, describe, description_of
from anon_spark.io.publication import Output, Published, begin, output_for_run, publish, withdraw
from anon_spark.io.tables import history, sql_name

NOTHING = Output(None, None)
TEXT = f"{OURS}: it's \"quoted\", `so`, \\ and \\' and \\u0041; ${{spark.app.name}} ' -- größer, 三"


def numbers(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, 1, 1).selectExpr("id", "id AS Comment")


def run(number: int) -> dict[str, Any]:
    return {"run_id": f"run-{number}"}


def in_detail(spark: SparkSession, table: str) -> str | None:
    """What Delta itself says."""
    detail = spark.sql(f"DESCRIBE DETAIL {sql_name(table)}").first()
    assert detail is not None
    return detail["description"]  # type: ignore[no-any-return]


def test_a_table_by_path_gets_its_description_once(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "release")
    publish(numbers(spark, 3), table, run(1), NOTHING)
    assert description_of(spark, table) is None

    for _ in range(2):
        describe(spark, table, 0, TEXT)
    assert in_detail(spark, table) == TEXT == description_of(spark, table)
    assert [row["operation"] for row in history(spark, table, 9)] == ["SET TBLPROPERTIES", "WRITE"]
    assert output_for_run(spark, table) == Output(1, Published(0, run(1), 1, ()))  # no foreign change

    # the next release keeps it, also with other columns, and another promise replaces it
    texts = numbers(spark, 5).selectExpr("string(id) AS id")
    assert publish(texts, table, run(2), output_for_run(spark, table)) == 2
    assert description_of(spark, table) == TEXT
    describe(spark, table, 2, f"{OURS}, promising more.")
    assert in_detail(spark, table) == f"{OURS}, promising more." and len(history(spark, table, 9)) == 4


def test_a_later_release_and_texts_of_others_are_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "release")
    publish(numbers(spark, 3), table, run(1), NOTHING)
    publish(numbers(spark, 4), table, run(2), output_for_run(spark, table))
    describe(spark, table, 0, TEXT)  # by a run that was overtaken
    assert description_of(spark, table) is None and len(history(spark, table, 9)) == 2

    spark.sql(f"COMMENT ON TABLE {sql_name(table)} IS 'Ask the data office.'").collect()
    describe(spark, table, 1, TEXT)
    assert in_detail(spark, table) == "Ask the data office."
    spark.sql(f"COMMENT ON TABLE {sql_name(table)} IS NULL").collect()
    describe(spark, table, 1, TEXT)
    assert in_detail(spark, table) == TEXT


@pytest.mark.long
def test_a_release_that_is_withdrawn_leaves_the_description_of_the_one_before(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "release")
    publish(numbers(spark, 3), table, run(1), NOTHING)
    describe(spark, table, 0, TEXT)
    before = output_for_run(spark, table)
    withdraw(spark, table, publish(numbers(spark, 4), table, run(2), before), before)
    assert in_detail(spark, table) == TEXT and spark.read.format("delta").load(table).count() == 3
    assert output_for_run(spark, table) == Output(3, Published(0, run(1), 3, ()))


@pytest.mark.long
def test_a_table_of_the_catalog_is_described_alike(spark: SparkSession) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS town_description")
    table = "town_description.release"
    begun = begin(numbers(spark, 2), table, "run-1", NOTHING)
    version = publish(numbers(spark, 2), table, run(1), begun)
    describe(spark, table, version, TEXT)
    assert in_detail(spark, table) == TEXT == description_of(spark, table)
    assert publish(numbers(spark, 3), table, run(2), output_for_run(spark, table)) == version + 2
    assert in_detail(spark, table) == TEXT
