"""An executor that is killed in the middle of a run changes nothing of the release."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.families.registry import load_job
from anon_spark.runs.preparation import RUN_KEY, prepare
from anon_spark.runs.run import run
from anon_spark.samples.baskets import baskets
from anon_spark.samples.census import census, census_hierarchies
from anon_spark.samples.level_tables import write_level_tables
from jobs.cluster import Cluster
from tests.e2e.families import BASKETS, JOB

ROOT = Path(__file__).resolve().parents[2]
ROWS = 300
PATIENCE = 120.0  # seconds until the first stored frame of a job must be there
OUTPUTS = {"job": ("work", "release"), "baskets": ("basket_work", "basket_release")}  # its frames are made by tasks of Arrow
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


def executors(cluster: Cluster, worker: int) -> Iterator[int]:
    """Executors that a worker of this cluster has started: they run in its directory."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            place, command = os.readlink(process / "cwd"), (process / "cmdline").read_bytes()
        except OSError:  # ended meanwhile, or not ours
            continue
        if place.startswith(f"{cluster.logs}/work-{worker}/") and b"CoarseGrainedExecutorBackend" in command:
            yield int(process.name)


class Killer(Thread):
    """Kills one executor of each job as soon as the job has stored its first frame."""

    def __init__(self, cluster: Cluster, works: list[Path]) -> None:
        super().__init__(daemon=True)
        self.cluster, self.works, self.killed = cluster, works, list[int]()

    def run(self) -> None:
        for number, work in enumerate(self.works):
            until = time.monotonic() + PATIENCE
            while not list(work.glob("anon-spark-*/001-*/_SUCCESS")):
                if time.monotonic() > until:
                    return
                time.sleep(0.02)
            for pid in list(executors(self.cluster, number % 2))[:1]:
                os.kill(pid, signal.SIGKILL)
                self.killed.append(pid)


def contents(release: DataFrame) -> Counter[str]:
    return Counter(map(str, release.collect()))


def test_release_is_the_same_after_executors_were_killed(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUN_KEY, "the key of both runs")
    census(spark, ROWS).write.format("delta").save(str(tmp_path / "census"))
    baskets(spark, ROWS).write.format("delta").save(str(tmp_path / "baskets"))
    write_level_tables(tmp_path / "hierarchies", census_hierarchies())
    for name, text in (("job", JOB), ("baskets", BASKETS)):
        (tmp_path / f"{name}.yaml").write_text(text)
        calm = load_job(str(tmp_path / f"{name}.yaml"), ["output.table=./calm_" + name, "output.runs=./calm_runs", "work=./calm"])
        run(prepare(calm, spark))  # in another place, with other partitions, undisturbed

    killer = Killer(cluster, [tmp_path / work for work, _ in OUTPUTS.values()])
    killer.start()
    jobs = [str(tmp_path / f"{name}.yaml") for name in OUTPUTS]
    done = cluster.submit(ROOT / "tests" / "e2e" / "several.py", *jobs, conf=INTERPRETED)

    assert done.exit_code == 0, done.out[-3000:] + done.err[-3000:]
    assert len(killer.killed) == len(OUTPUTS)
    assert "ExecutorLostFailure" in done.err or "Lost executor" in done.err
    for name, (_, output) in OUTPUTS.items():
        released, calm_release = (
            spark.read.format("delta").load(str(tmp_path / table)) for table in (output, f"calm_{name}")
        )
        assert contents(released) == contents(calm_release)
    assert list(tmp_path.glob("*work/*")) == []
