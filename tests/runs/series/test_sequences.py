"""Random sequences of inputs, by all families: every increment is verified, and the oracle's books say the same."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from anon_spark.runs.audit import audit
from tests.runs.series.growing import FAMILIES, Growth, Series

SEEDS = 3


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("family", FAMILIES)
def test_everybody_is_published_once_or_waits(spark: SparkSession, tmp_path: Path, family: str, seed: int) -> None:
    draw = Random(f"{family} {seed}")
    series = Series.founded(spark, tmp_path / "town", family)
    growth = Growth(draw, series.kind.several)
    events = ["few", "alike", "joiners", draw.choice(["again", "gone"])]
    draw.shuffle(events)
    for event in ["begin", *events]:
        growth.grow(event, series.books)
        report = series.run(growth.rows)
        assert report.series is not None
    books = series.books
    assert sum(number.published > 0 for number in books.numbers) >= 3
    assert books.waited - books.waiting  # somebody waited, and was published later or has gone
    job = series.town.job(**series.kind.changes)
    assert [str(verdict) for verdict in audit(job, spark) if not verdict.passed] == []
