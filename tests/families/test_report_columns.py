"""Columns and crowds of a report do not depend on whether the driver holds the tuples or they are in files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anon_spark.model.facts import LookUpFacts
from anon_spark.primitives.classes import held
from tests.town import ROWS, Town, people


@pytest.mark.long
@pytest.mark.parametrize("family", ["lattice", "mst"])
def test_the_same_columns_from_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    here, there = (Town.founded(spark, tmp_path / name, people()) for name in ("here", "there"))
    changes = {"family": family, "privacy__suppression": 0.0}
    by_driver = here.run(**changes).facts
    monkeypatch.setattr(held, "MOST_CELLS", 0)
    by_files = there.run(**changes).facts

    assert isinstance(by_driver, LookUpFacts) and isinstance(by_files, LookUpFacts)
    assert by_files.distributions == by_driver.distributions and by_files.crowds == by_driver.crowds
    assert {shown.column for shown in by_driver.distributions} == {"age", "sex", "city", "disease", "weight"}
    for shown in by_driver.distributions:
        others = 0 if shown.others is None else shown.others.after
        assert sum(count.after for count in shown.labels) + others + shown.wider == ROWS == shown.rows_before
        assert all(count.after >= 5 for count in shown.labels)
