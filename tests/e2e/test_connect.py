"""Every family plans, runs and audits on Spark Connect, where there is no RDD, no Spark context and no JVM at hand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from anon_spark import workers
from anon_spark.machine import delta
from anon_spark.machine.java import ensure_java
from jobs.cluster import SHORT_LIVED, end
from tests.e2e.connected import STEPS
from tests.e2e.families import JOBS

ROOT = Path(__file__).resolve().parents[2]
ROWS = 150
PATIENCE = 1200.0  # seconds
RUN_KEY = "planted-run-key-of-connect"
SETTINGS = {  # of the server, which is a process of its own and reads them from a file
    delta.EXTENSIONS: delta.EXTENSION,
    delta.CATALOG: delta.CATALOG_CLASS,
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.python.daemon.module": workers.MODULE,
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def test_every_family_plans_runs_and_audits(tmp_path: Path) -> None:
    for name in ("conf", "events", "tables"):
        (tmp_path / name).mkdir()
    settings = SETTINGS | {
        delta.JARS: ",".join(map(str, delta.jar_files())),
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }
    (tmp_path / "conf" / "spark-defaults.conf").write_text("\n".join(f"{name} {text}" for name, text in settings.items()))
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    ours |= {
        "JAVA_HOME": str(ensure_java()),
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(tmp_path / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_REMOTE": "local[2]",
        "ANON_SPARK_RUN_KEY": RUN_KEY,
    }
    script = ROOT / "tests" / "e2e" / "connected.py"
    command = [sys.executable, str(script), str(tmp_path / "tables"), str(ROWS)]
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("w") as stdout, err.open("w") as stderr:
        started = subprocess.Popen(command, cwd=tmp_path, env=ours, stdout=stdout, stderr=stderr, start_new_session=True)
        try:
            code = started.wait(PATIENCE)
        finally:
            end(started)  # the client and the server it started

    told = out.read_text()
    said = told.splitlines()
    assert code == 0, told[-3000:] + err.read_text()[-3000:]
    ended = re.findall(r"^(\w+ \w+ \d) after [\d.]+ s$", told, re.MULTILINE)
    assert ended == [f"{job} {step} 0" for job in JOBS for step in STEPS], told[-3000:]
    outcomes = [line.split(":")[0] for line in said if line.startswith(("published: ", "verified: "))]
    assert outcomes == ["published", "verified"] * len(JOBS)
    assert "risk: True" in said
    assert "FAILED" not in told
    assert list((tmp_path / "tables").glob("*work/*")) == []
    (log,) = (tmp_path / "events").iterdir()  # a small table is in the plan that the client sends: is it in the log, too?
    text = log.read_text(errors="replace")
    assert RUN_KEY not in text and "ConnectOperationStarted" in text
