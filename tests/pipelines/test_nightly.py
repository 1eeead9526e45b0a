"""The nightly pipeline: publishes, hands over the verified version, and says by its exit code why it did not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipelines.nightly import main
from tests.town import Town, people


@pytest.mark.long
def test_a_release_is_published_and_handed_over(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    town = Town.founded(spark, tmp_path / "town", people(rows=120))
    assert main([town.job_file(), "--hand-over", "nightly_release"]) == 0
    assert "handed over: nightly_release" in capsys.readouterr().out
    try:
        assert spark.table("nightly_release").exceptAll(town.release).isEmpty()
        spark.sql("DELETE FROM nightly_release")
        assert main([town.job_file(), "--hand-over", "nightly_release"]) == 0  # the same rows: nothing new, handed over again
        assert spark.table("nightly_release").count() == town.release.count()
        assert main([town.job_file(privacy__k=10_000)]) == 3
        assert "no release tonight" in capsys.readouterr().err
        assert main([town.job_file(columns__keep=["nothing"])]) == 2
    finally:
        spark.sql("DROP TABLE nightly_release")
