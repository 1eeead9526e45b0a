"""Tables of many columns: Spark's plans do not grow with every combination of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anon_spark.families.registry import parse_job
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run


@pytest.mark.long
@pytest.mark.parametrize("family", ["lattice", "mst"])
def test_eighteen_quasi_identifiers_are_released(family: str, spark: SparkSession, tmp_path: Path) -> None:
    """In a session of ours: with Spark's defaults the simulated look-up infers 2^18 conditions, which ended a driver of 1g."""
    names = [f"c{at}" for at in range(18)]
    values = [F.concat(F.lit("v"), ((F.col("id") / 8).cast("long") % (at % 3 + 2)).cast("string")) for at in range(18)]
    table = spark.range(400).select(*(value.alias(name) for value, name in zip(values, names, strict=True)))
    table.write.format("delta").save(str(tmp_path / "table"))
    (tmp_path / "levels.csv").write_text("".join(f"v{at};*\n" for at in range(4)), encoding="utf-8")
    asked = {
        "anon_spark": 1,
        "family": family,
        "input": {"table": "./table"},
        "columns": {"quasi_identifiers": {name: {"levels": "levels.csv"} for name in names}},
        "privacy": {"k": 4},
        "output": {"table": "./release", "runs": "./runs"},
    }
    assert run(prepare(parse_job(asked, tmp_path), spark)).status == "published"
