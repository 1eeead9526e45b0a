"""The cluster the end-to-end tests run on is real: separate workers, Delta, Python workers; nothing stays behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster, standalone_cluster

SCRIPT = Path(__file__).with_name("delta_round_trip.py")

pytestmark = pytest.mark.e2e


def test_spark_submit_writes_and_reads_delta(cluster: Cluster, tmp_path: Path) -> None:
    done = cluster.submit(SCRIPT, str(tmp_path / "table"))

    assert done.exit_code == 0, done.err[-3000:]
    assert f"{cluster.master} rows=1000 workers=2" in done.out


def test_spark_submit_without_delta_says_what_to_add(cluster: Cluster, tmp_path: Path) -> None:
    done = cluster.submit(SCRIPT, str(tmp_path / "table"), conf={"spark.jars": ""})

    assert done.exit_code != 0
    assert "--packages io.delta:delta-spark_" in done.out  # spark-submit joins the script's two streams
    assert not (tmp_path / "table").exists()


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
