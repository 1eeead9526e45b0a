"""Columns that must not be there, and rows whose order tells where they came from."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

from anon_spark.auditing import verify_columns, verify_metadata, verify_order
from anon_spark.columns import KEY, LINK, ORDER
from anon_spark.errors import ConfigurationError
from anon_spark.primitives.plain import without_metadata
from tests.auditing.town import NAMES, QUASI, frame, honest

COLUMNS = ["group", "disease"]


@pytest.mark.parametrize(
    ("columns", "allowed", "forbidden"),
    [
        ([*NAMES, "education_num"], NAMES, []),  # pitfall 9: a column nobody asked for
        ([*NAMES, "ssn"], [*NAMES, "ssn"], ["ssn"]),  # an identifier, even when it is listed
        ([*NAMES, "SSN"], [*NAMES, "SSN"], ["ssn"]),
        ([*NAMES, LINK], [*NAMES, LINK], []),
        ([*NAMES, ORDER], NAMES, []),
        ([*NAMES, "_anon_class_size"], [*NAMES, "_anon_class_size"], []),
        (NAMES[:3], NAMES, []),
        (NAMES[::-1], NAMES, []),
        ([*NAMES, "age"], NAMES, []),
    ],
)
def test_a_column_too_many_too_few_or_out_of_place(
    spark: SparkSession, columns: list[str], allowed: list[str], forbidden: list[str]
) -> None:
    release = spark.range(1).select(*(F.lit("x").alias(name) for name in columns))
    verdict = verify_columns(release, list(allowed), forbidden)
    assert not verdict.passed and verdict.violations > 0


def test_the_columns_that_were_asked_for_pass_and_quasi_identifiers_are_texts(spark: SparkSession) -> None:
    release = frame(spark, honest())
    assert verify_columns(release, list(NAMES), ["ssn"], QUASI).passed
    numbers = release.withColumn("age", F.lit(33))
    assert not verify_columns(numbers, list(NAMES), ["ssn"], QUASI).passed


@pytest.fixture(scope="module")
def key(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(pa.table({KEY: ["a key of these tests"]}))


def rows_of(spark: SparkSession, rows: int) -> DataFrame:
    """A release whose sensitive values follow each other, one null among them."""
    group = F.when(F.col("id") % 7 != 0, F.concat(F.lit("group "), F.col("id") % 7)).alias("group")
    return spark.range(rows, numPartitions=1).select(group, F.format_string("%06d", "id").alias("disease"))


def in_keyed_order(release: DataFrame, key: DataFrame, files: int) -> DataFrame:
    """What a writer does: rows by their keyed hash, files by it too."""
    parts = [part for name in COLUMNS for part in (F.isnull(name), F.col(name))]
    keyed = release.crossJoin(key).withColumn(ORDER, F.xxhash64(KEY, *parts))
    return keyed.repartition(files, ORDER).sortWithinPartitions(ORDER).drop(KEY)


def stored(release: DataFrame, path: Path) -> DataFrame:
    release.select(*COLUMNS).write.option("parquet.block.size", 4096).option("parquet.page.size", 1024).parquet(str(path))
    return release.sparkSession.read.parquet(str(path))


def test_keyed_order_passes_in_files_and_in_chunks_of_files(spark: SparkSession, key: DataFrame, tmp_path: Path) -> None:
    release = stored(in_keyed_order(rows_of(spark, 4000), key, 3), tmp_path / "release")
    verdict = verify_order(release, key, COLUMNS)
    assert verdict.passed and verdict.checked == 4000 and verdict.facts["files"] == 3, verdict.detail
    setting, before = "spark.sql.files.maxPartitionBytes", spark.conf.get("spark.sql.files.maxPartitionBytes")
    try:
        spark.conf.set(setting, "6000")
        chunked = verify_order(spark.read.parquet(str(tmp_path / "release")), key, COLUMNS)
    finally:
        spark.conf.set(setting, before or "128m")
    assert chunked.passed and chunked.checked == 4000 and chunked.facts["chunks"] > 3
    other = spark.createDataFrame(pa.table({KEY: ["another key"]}))
    assert not verify_order(release, other, COLUMNS).passed


def test_source_order_and_order_by_class_fail(spark: SparkSession, key: DataFrame, tmp_path: Path) -> None:
    rows = rows_of(spark, 60)
    source_order = verify_order(stored(rows, tmp_path / "source"), key, COLUMNS)  # pitfall 17
    by_class = verify_order(stored(rows.orderBy("group", "disease"), tmp_path / "class"), key, COLUMNS)
    assert not source_order.passed and not by_class.passed
    assert 10 < source_order.violations < 50 and 10 < by_class.violations < 50


def test_a_descent_between_two_chunks_of_a_file_is_found(spark: SparkSession, key: DataFrame, tmp_path: Path) -> None:
    ordered = in_keyed_order(rows_of(spark, 400), key, 1).select(*COLUMNS).toArrow()
    turned = pa.concat_tables([ordered.slice(200), ordered.slice(0, 200)])  # two row groups, each ascending
    pq.write_table(turned, tmp_path / "turned.parquet", row_group_size=200)
    half = str((tmp_path / "turned.parquet").stat().st_size // 2 + 1)
    setting, before = "spark.sql.files.maxPartitionBytes", spark.conf.get("spark.sql.files.maxPartitionBytes")
    try:
        for size, chunks in ((half, 2), ("128m", 1)):
            spark.conf.set(setting, size)
            verdict = verify_order(spark.read.parquet(str(tmp_path)), key, COLUMNS)
            assert (verdict.facts["chunks"], verdict.violations, verdict.passed) == (chunks, 1, False)
    finally:
        spark.conf.set(setting, before or "128m")


def test_a_frame_without_files_has_no_order_to_check(spark: SparkSession, key: DataFrame) -> None:
    with pytest.raises(ConfigurationError, match="read back from its files"):
        verify_order(rows_of(spark, 3), key, COLUMNS)


def test_metadata_is_refused_wherever_it_stands_and_its_text_is_not_repeated(spark: SparkSession) -> None:
    note = {"comment": "Planted-note"}
    inside = StructType([StructField("x", StringType(), True, note)])
    kinds = [StringType(), inside, ArrayType(inside), MapType(StringType(), ArrayType(inside)), MapType(inside, StringType())]
    fields = [StructField(f"c{at}", kind, True, {} if at else note) for at, kind in enumerate(kinds)]
    release = spark.createDataFrame([], StructType(fields))
    for verdict in (verify_columns(release, release.columns), verify_metadata(release)):
        assert not verdict.passed and verdict.violations == 5 and "Planted-note" not in str(verdict)
    plain = without_metadata(release)
    assert verify_columns(plain, release.columns).passed and verify_metadata(plain).passed
    assert plain.columns == release.columns and plain.dtypes == release.dtypes
