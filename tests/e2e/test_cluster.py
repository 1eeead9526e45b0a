"""Jobs through spark-submit on a real standalone cluster: two separate workers, a small driver, nothing left behind."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.cluster import Cluster, Submitted, standalone_cluster
from tests.e2e.families import founded, write_tables

ROOT = Path(__file__).resolve().parents[2]
ROWS = 800
SMALL_DRIVER = {"spark.driver.memory": "1g", "spark.driver.maxResultSize": "64m"}
INTERPRETED = {  # compiling queries that run once is most of the work; `make long` runs other jobs as Spark does by default
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job files of all families, and the table of the first."""
    return founded(spark, tmp_path_factory.mktemp("census"), ROWS, ["census"])


def submitted(cluster: Cluster, folder: Path, *options: str, job: str = "job.yaml", **conf: str) -> Submitted:
    """`spark-submit jobs/run.py job.yaml …`, with a driver that can hold no rows."""
    return cluster.submit(ROOT / "jobs" / "run.py", str(folder / job), *options, conf=SMALL_DRIVER | conf)


@pytest.fixture(scope="module")
def several(cluster: Cluster, folder: Path, spark: SparkSession) -> Submitted:
    """The jobs of all other families, one after the other in one application."""
    write_tables(spark, folder, ROWS, ["baskets", "patients", "orders"])
    jobs = [str(folder / f"{name}.yaml") for name in ("local", "baskets", "patients", "orders")]
    return cluster.submit(ROOT / "tests" / "e2e" / "several.py", *jobs, conf=SMALL_DRIVER)


def logged(cluster: Cluster, table: DataFrame, *columns: str) -> set[str]:
    """Values of a table that a log of the driver, the daemons or an executor holds."""
    values = {str(value) for name in columns for (value,) in table.select(name).distinct().collect() if value is not None}
    logs = [path.read_bytes() for path in cluster.logs.rglob("*") if path.is_file()]
    assert len(values) > len(columns) and len(logs) > 5
    return {value for value in values if any(value.encode() in log for log in logs)}


def listing(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@pytest.mark.long
def test_run_publishes_a_verified_release(cluster: Cluster, folder: Path, spark: SparkSession) -> None:
    done = submitted(cluster, folder, "--quiet", **INTERPRETED)

    assert done.exit_code == 0, done.out[-3000:] + done.err[-3000:]
    assert f"published: {folder}/release version 0" in done.out
    release = spark.read.format("delta").load(str(folder / "release"))
    assert release.columns == ["age", "marital", "disease", "weight"]
    sizes = Counter(tuple(row) for row in release.select("age", "marital").collect())
    assert min(sizes.values()) >= 10 and sum(sizes.values()) >= 0.99 * ROWS
    (row,) = spark.read.format("delta").load(str(folder / "runs")).collect()
    assert (row.status, row.output_version) == ("published", 0)
    assert "PUBLISHED" in (folder / "census.html").read_text()
    assert listing(folder / "work") == []
    # both workers took part
    assert all(list((cluster.logs / f"work-{number}").glob("app-*/*")) for number in (0, 1))
    source = spark.read.format("delta").load(str(folder / "census"))
    assert logged(cluster, source, "name", "marital", "disease") == set()


@pytest.mark.long
def test_run_publishes_a_verified_local_recoding(several: Submitted, folder: Path, spark: SparkSession) -> None:
    assert several.exit_code == 0, several.out[-3000:] + several.err[-3000:]
    assert f"published: {folder}/local version 0" in several.out and "FAILED" not in several.out
    passed = [line.split()[1] for line in several.out.splitlines() if line.startswith("  passed  ")]
    assert passed[:5] == ["columns:", "10-anonymity:", "truthfulness:", "row", "row"]
    release = spark.read.format("delta").load(str(folder / "local"))
    sizes = Counter(tuple(row) for row in release.select("age", "marital").collect())
    assert min(sizes.values()) >= 10 and sum(sizes.values()) == ROWS  # nothing is suppressed
    assert {age.startswith("[") for age, _ in sizes} == {True, False}  # ages and intervals side by side
    (run,) = spark.read.format("delta").load(str(folder / "local_runs")).collect()
    assert (run.family, run.status, run.output_version) == ("mst", "published", 0)
    assert listing(folder / "local_work") == []


@pytest.mark.long
def test_run_publishes_a_verified_nonreciprocal_recoding(several: Submitted, folder: Path, spark: SparkSession) -> None:
    assert several.exit_code == 0, several.out[-3000:] + several.err[-3000:]
    assert f"published: {folder}/basket_release version 0" in several.out and "FAILED" not in several.out
    release = spark.read.format("delta").load(str(folder / "basket_release"))
    assert release.columns == ["base", "uncertain", "max_errors", "religion"] and release.count() == ROWS
    own = spark.read.format("delta").load(str(folder / "baskets"))
    labels = [sorted(table.groupBy("religion").count().collect()) for table in (own, release)]
    assert labels[0] == labels[1]  # they moved, none was lost
    (run,) = spark.read.format("delta").load(str(folder / "basket_runs")).collect()
    assert (run.family, run.status) == ("set_valued", "published")
    assert listing(folder / "basket_work") == []


@pytest.mark.long
def test_run_publishes_values_and_items_within_a_bound(several: Submitted, folder: Path, spark: SparkSession) -> None:
    assert several.exit_code == 0, several.out[-3000:] + several.err[-3000:]
    assert f"published: {folder}/patient_release version 0" in several.out and "FAILED" not in several.out
    release = spark.read.format("delta").load(str(folder / "patient_release"))
    rows = release.select("birth_year", "income").collect()
    assert len(rows) == ROWS and min(Counter(rows).values()) >= 10
    (run,) = spark.read.format("delta").load(str(folder / "patient_runs")).collect()
    assert (run.family, run.status) == ("relational_transaction", "published")
    assert listing(folder / "patient_work") == []


@pytest.mark.long
def test_run_publishes_nested_records(several: Submitted, folder: Path, spark: SparkSession) -> None:
    assert several.exit_code == 0, several.out[-3000:] + several.err[-3000:]
    assert f"published: {folder}/order_release version 0" in several.out and "FAILED" not in several.out
    paths = [row.paths for row in spark.read.format("delta").load(str(folder / "order_release")).collect()]
    nations = Counter(nation for row in paths for nation in {path[0].value for path in row})
    assert len(paths) == ROWS and min(nations.values()) >= 10 and len(nations) > 1
    (run,) = spark.read.format("delta").load(str(folder / "order_runs")).collect()
    assert (run.family, run.status) == ("tree", "published")
    assert listing(folder / "order_work") == []


@pytest.mark.long
def test_logs_of_the_other_families_hold_no_value(
    several: Submitted, cluster: Cluster, folder: Path, spark: SparkSession
) -> None:
    for table, column in (("baskets", "religion"), ("patients", "name"), ("orders", "nation")):
        assert logged(cluster, spark.read.format("delta").load(str(folder / table)), column) == set()


@pytest.mark.long
def test_cluster_needs_a_place_for_work(cluster: Cluster, folder: Path) -> None:
    before = listing(folder)

    done = submitted(cluster, folder, "--set", "work=", "--set", "output.table=./other")

    assert done.exit_code == 2, done.out[-3000:] + done.err[-3000:]
    assert "anon-spark: On a cluster the private working directory must be named: give `work:` in the job file" in done.out
    assert listing(folder) == before


@pytest.mark.long
def test_spark_submit_without_delta_says_what_to_add(cluster: Cluster, folder: Path) -> None:
    before = listing(folder)

    done = submitted(cluster, folder, **{"spark.jars": ""})

    assert done.exit_code == 2, done.out[-3000:] + done.err[-3000:]
    assert "anon-spark: spark-submit has no Delta Lake on its class path. Add to it: --packages io.delta:delta-spark_" in done.out
    assert "Traceback" not in done.out
    assert listing(folder) == before


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_cluster_ends_its_processes(tmp_path: Path) -> None:
    with standalone_cluster(tmp_path, workers=1):
        assert processes_naming(tmp_path)

    assert processes_naming(tmp_path) == []


def processes_naming(folder: Path) -> list[int]:
    """Processes whose command line or working directory is in `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
            if str(folder) in command or os.readlink(process / "cwd").startswith(str(folder)):
                found.append(int(process.name))
        except OSError:  # ended meanwhile, or not ours
            continue
    return found
