"""A run in a process of its own that is told to stop, or killed: what it says, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.town import JOB, Town, people

pytestmark = [pytest.mark.e2e, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 240
ASKED = {"privacy__k": 3, "lattice": {"choose": {"node": [1, 1, 1]}}}


def started(town: Town, temporary: Path) -> subprocess.Popen[str]:
    """A run in a process group of its own, stopped nowhere yet; its private local files lie in `temporary`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "anon_spark.cli", "run", town.job_file(**ASKED), "--quiet"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, cwd=town.folder, start_new_session=True, **pipes)


def at_work(town: Town, running: subprocess.Popen[str]) -> None:
    """Wait until personal data lie in the working folder."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and running.poll() is None:
        if any((town.folder / JOB["work"]).glob("anon-spark-*/0*")):
            return
        time.sleep(0.02)
    raise AssertionError(f"the run was never at work: {running.communicate()}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_nothing_private(spark: SparkSession, tmp_path: Path, number: signal.Signals) -> None:
    town = Town.founded(spark, tmp_path / "town", people(4_000))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    running = started(town, temporary)
    try:
        at_work(town, running)
        if number == signal.SIGKILL:
            os.killpg(running.pid, number)
        else:
            running.send_signal(number)
        _, err = running.communicate(timeout=120)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()

    assert town.versions == 0
    if number == signal.SIGKILL:  # what is left is encrypted or in folders of the user alone; the next run removes it
        (private,) = temporary.glob("anon-spark-*")
        (session,) = private.glob("anon-spark-*")
        assert {path.stat().st_mode & 0o077 for path in (private, session)} == {0}
        texts = (path.read_bytes() for path in temporary.rglob("*") if path.is_file() and path.suffix != ".jar")
        assert not any(b"Inhabitant-" in text for text in texts)
        (left,) = (town.folder / "work").iterdir()
        assert left.stat().st_mode & 0o077 == 0
        report = town.run(**ASKED)
        assert report.status == "published" and any("1 working folders" in told for told in report.warnings)
    else:
        assert running.returncode == 1
        told = [line for line in err.splitlines() if not line.startswith("WARNING")]  # of the JVM, at its start
        assert told == ["anon-spark: stopped. A release is published as a whole or not at all."]
        (row,) = town.runs
        assert (row.status, row.message) == ("failed", "Stopped before anything was published.")
        assert not list(temporary.glob("anon-spark-*/*"))
    assert list((town.folder / "work").iterdir()) == []
