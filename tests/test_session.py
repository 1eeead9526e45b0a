"""The suite's own session: Delta works in it, and its event log shows what a plan says."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from zipimport import zipimporter

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anon_spark.spark_session import BRIEF, LASTING, resolve, session_options
from tests.event_log import EventLog


def test_delta_round_trip_with_time_travel(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    spark.range(3).write.format("delta").save(table)
    spark.range(5).write.format("delta").mode("overwrite").save(table)

    assert spark.read.format("delta").load(table).count() == 5
    assert spark.read.format("delta").option("versionAsOf", 0).load(table).count() == 3


def test_event_log_shows_literals_and_hides_joined_rows(spark: SparkSession, event_log: EventLog) -> None:
    mark = event_log.mark()
    rows = spark.createDataFrame([("hidden-value",)], "name string")
    rows.where(F.col("name") == F.lit("shown-literal")).collect()

    text = event_log.read_text(since=mark)

    assert "shown-literal" in text
    assert "hidden-value" not in text


def archives(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many archives this worker looks for modules in."""
    for _ in batches:
        read = sum(isinstance(finder, zipimporter) for finder in sys.path_importer_cache.values())
        yield pa.RecordBatch.from_pydict({"archives": [read]})


def test_workers_read_no_archives(spark: SparkSession) -> None:
    """Each would be read again before every task."""
    (found,) = spark.range(1).mapInArrow(archives, "archives long").collect()
    assert found.archives == 0


def test_no_conditions_are_inferred_in_our_sessions(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.constraintPropagation.enabled") == "false"
    for master in ("local[2]", "spark://127.0.0.1:7077"):
        assert resolve({"spark.master": master}, "wide", {})["spark.sql.constraintPropagation.enabled"] == "false"


def test_a_brief_session_starts_fast_and_yields_to_other_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    def settings(brief: bool, **options: str) -> dict[str, str]:
        return resolve({}, "brief", session_options(options, brief))

    assert settings(True)["spark.sql.adaptive.enabled"] == "false"
    assert "TieredStopAtLevel=1" in settings(True)["spark.driver.extraJavaOptions"]
    assert settings(False).items() >= LASTING.items()
    assert "spark.sql.adaptive.enabled" not in settings(False)
    assert settings(False, **{"spark.driver.extraJavaOptions": "-Dmine"})["spark.driver.extraJavaOptions"] == "-Dmine"
    assert settings(True, **{"spark.sql.adaptive.enabled": "true"})["spark.sql.adaptive.enabled"] == "true"
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # spark-submit's JVM runs already
    assert not set(BRIEF) & set(settings(True)) and not set(LASTING) & set(settings(False))
