"""Catalog names in a metastore that outlives the process: what one process publishes, the next one recognises and audits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anon_spark import workers
from anon_spark.machine import delta
from anon_spark.machine.java import ensure_java
from anon_spark.samples.census import census_hierarchies
from anon_spark.samples.level_tables import write_level_tables
from jobs.cluster import SHORT_LIVED, SPARK_HOME, environment
from tests.e2e.families import JOB

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = "{table: ./release, runs: ./runs, report: census.html}"
JOBS = {  # input, output and run log by names of two and of three parts
    "two": ("town.census", "{table: town.release, runs: spark_catalog.town.runs}"),
    "three": ("spark_catalog.town.census", "{table: spark_catalog.town.second, runs: town.runs}"),
}

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def submitted(folder: Path, *arguments: str) -> str:
    """What a process with Hive's embedded metastore says; it must succeed."""
    ensure_java()
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "spark.driver.extraJavaOptions": f"{SHORT_LIVED} -Dderby.system.home={folder}",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        delta.JARS: ",".join(map(str, delta.jar_files())),
        "spark.python.daemon.module": workers.MODULE,
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command = [str(SPARK_HOME / "bin/spark-submit"), "--master", "local[2]", *options, "tests/e2e/cataloged.py"]
    ours = environment() | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, *arguments], cwd=ROOT, env=ours, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_next_process_recognises_and_audits_a_release_by_name(tmp_path: Path, spark: SparkSession) -> None:
    write_level_tables(tmp_path / "hierarchies", census_hierarchies())
    for name, (table, output) in JOBS.items():
        text = JOB.replace("{table: ./census}", f"{{table: {table}}}").replace(OUTPUT, output)
        (tmp_path / f"{name}.yaml").write_text(text)
    files = [str(tmp_path / f"{name}.yaml") for name in JOBS]

    first = submitted(tmp_path, "run", "--found", *files)
    again = submitted(tmp_path, "run", *files)
    audited = submitted(tmp_path, "audit", *files)

    names = ("town.release", "spark_catalog.town.second")  # a table of the catalog begins with an empty version
    assert [f"\npublished: {name} version 1\n" in first for name in names] == [True, True]
    assert [f"already published: {name} version 1\n" in again for name in names] == [True, True]
    assert [f"verified: {name}\n" in audited for name in names] == [True, True] and "FAILED" not in audited
    # the tables are where the catalog keeps its own, and one log has all runs
    runs = spark.read.format("delta").load(str(tmp_path / "warehouse" / "town.db" / "runs")).orderBy("started").collect()
    assert [(run.output_table, run.status, run.output_version) for run in runs] == [
        (name, status, 1) for status in ("published", "already_published") for name in names
    ]
    assert not any((ROOT / "spark-warehouse").glob("*")) and not (ROOT / "metastore_db").exists()
