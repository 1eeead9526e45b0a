"""A series does not depend on how its input is stored: the same rows in the same increments, whatever the partitions."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anon_spark.io import tables
from anon_spark.runs.preparation import RUN_KEY
from anon_spark.runs.run import run
from tests.oracle.series_oracle import Books
from tests.runs.series.growing import COLUMNS, FAMILIES, Growth, Series, table_of

PARTITIONS = (1, 2, 7)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_partitions_do_not_matter(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    """Also where the input is too large for one task; the salt is another one in each series."""
    monkeypatch.setenv(RUN_KEY, "planted-run-key")
    monkeypatch.setitem(tables.SMALL_BYTES, "delta", 0)
    growth, versions = Growth(Random(family), several=FAMILIES[family].several), []
    for event in ("begin", "joiners"):
        growth.grow(event, Books(COLUMNS))
        versions.append(list(growth.rows))
    releases: list[Any] = []
    for partitions in PARTITIONS:
        series = Series.founded(spark, tmp_path / str(partitions), family)
        for rows in versions:
            frame = spark.createDataFrame(table_of(rows)).repartition(partitions)
            frame.write.format("delta").mode("overwrite").save(str(series.town.folder / "people"))
            report = run(series.prepared())
            series.book(rows, report)
            assert not report.for_release
        releases.append([repr(row) for row in series.release()])
    assert releases[0] and releases[1:] == releases[:1] * 2
