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


@pytest.mark.long
def test_while_people_wait_the_release_is_handed_over_as_it_is(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    everybody = people(100)
    town = Town.founded(spark, tmp_path / "town", everybody.slice(0, 3))
    series = {"output__mode": "append", "output__ledger": "./ledger", "columns__person": "person_id", "columns__keep": []}
    arguments = [town.job_file(**series), "--hand-over", "nightly_series"]
    try:
        assert main(arguments) == 0
        assert "3 people are new, fewer than 5" in capsys.readouterr().out
        assert not spark.catalog.tableExists("nightly_series")  # there is nothing to hand over

        town.write(everybody.slice(0, 99))
        assert main(arguments) == 0
        assert "handed over: nightly_series" in capsys.readouterr().out
        assert spark.table("nightly_series").count() == town.release.count() > 0

        spark.sql("DELETE FROM nightly_series")
        town.write(everybody)
        assert main(arguments) == 0
        assert spark.table("nightly_series").exceptAll(town.release).isEmpty()
        assert spark.table("nightly_series").count() == town.release.count()
    finally:
        spark.sql("DROP TABLE IF EXISTS nightly_series")
