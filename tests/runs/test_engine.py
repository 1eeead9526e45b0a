"""What differs between places to run: empty small tables, settings that may not be read, packages that are not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from anon_spark.columns import ROWS
from anon_spark.engine import runs_here, setting, small_frame
from anon_spark.errors import ConfigurationError, LimitExceeded
from anon_spark.primitives import ranking
from anon_spark.primitives.classes import arrays
from anon_spark.primitives.classes.frequencies import Stored, code_columns
from anon_spark.primitives.rounds import Workspace, usable

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = """
import importlib.metadata, sys
found = importlib.metadata.version
def version(name):
    if name in ("pyspark", "delta-spark"):
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)
importlib.metadata.version = version
sys.modules["delta"] = None  # an import of it fails
import anon_spark.cli, anon_spark.commands, anon_spark.machine.delta, anon_spark.runs.software
told = anon_spark.runs.software.versions()
assert sorted(told) == ["anon-spark", "pyspark"] and told["pyspark"][0] == "4", told
anon_spark.machine.delta.spark_line = lambda: "4.1"
assert anon_spark.machine.delta.coordinate() == "io.delta:delta-spark_4.1_2.13:4.4.0"
"""


def test_a_table_without_rows_keeps_its_types(spark: SparkSession) -> None:
    kinds = pa.schema([("a", pa.int32()), ("b", pa.list_(pa.string())), ("c", pa.decimal128(36, 18))])

    frame = small_frame(spark, kinds.empty_table())

    assert frame.schema.simpleString() == "struct<a:int,b:array<string>,c:decimal(36,18)>" and frame.collect() == []


def managed() -> SparkSession:
    """A session of a platform that lets no setting be read."""

    def get(name: str, default: str | None = None) -> str:
        raise AnalysisException(f"[CONFIG_NOT_AVAILABLE] Configuration {name} is not available.")

    return cast(SparkSession, SimpleNamespace(conf=SimpleNamespace(get=get)))


def test_settings_that_may_not_be_read_have_their_default(spark: SparkSession) -> None:
    assert setting(managed(), "spark.sql.shuffle.partitions", "7") == "7"
    assert setting(spark, "spark.sql.shuffle.partitions", "7") == "2"
    assert runs_here(spark) and not runs_here(managed())
    with pytest.raises(ConfigurationError, match="the private working directory must be named"):
        usable(managed(), None)


def test_what_reaches_the_driver_has_a_bound(spark: SparkSession, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "MOST_PARTITIONS", 1)
    with Workspace(spark, str(workdir)) as workspace, pytest.raises(LimitExceeded, match="Partitions of a sort: more than 1,"):
        ranking.ranked(spark.range(4), ["id"], workspace)
    monkeypatch.setattr(arrays, "MOST_TUPLES", 2)
    frame = small_frame(spark, pa.table({name: [1, 2, 3] for name in (*code_columns(1), ROWS)}))
    ladder: Any = SimpleNamespace(cardinality=lambda attribute, level: 9)
    with pytest.raises(LimitExceeded, match="Distinct tuples that are counted at once: more than 2,"):
        arrays.load_table(Stored(frame), ladder, (0,), 0, 0)


def test_package_works_where_spark_and_delta_are_the_platforms_own() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
