"""A real standalone Spark cluster on 127.0.0.1, for benchmarks and end-to-end tests: a master and one-core workers.

Unlike `local[*]` and `local-cluster`, driver, executors and Python workers share no memory here, so what a job
forgets to ship, or collects though it should not, shows.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from anon_spark import workers
from anon_spark.machine.delta import jar_files
from anon_spark.machine.java import ensure_java
from anon_spark.spark_session import DAEMON

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 60
STOP_SECONDS = 10
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # JVMs that live for seconds: 40 % less CPU than the default


@dataclass(frozen=True)
class Submitted:
    """What a spark-submit left behind."""

    exit_code: int
    out: str
    err: str


@dataclass(frozen=True)
class Cluster:
    """A running cluster: hand `master` to spark-submit, or let `submit` do it."""

    master: str  # spark://127.0.0.1:port
    logs: Path  # master.log, worker-0.log, ...; executors' own below work-0, work-1, ...

    def submit(
        self, script: Path, *arguments: str, conf: Mapping[str, str] | None = None, timeout: float = 600
    ) -> Submitted:
        """Run `spark-submit script arguments` on this cluster, with Delta's jars; its driver has 1g unless told."""
        settings = {
            "spark.driver.memory": "1g",
            "spark.executor.memory": "1g",
            "spark.driver.extraJavaOptions": SHORT_LIVED,
            "spark.executor.extraJavaOptions": SHORT_LIVED,
            "spark.jars": ",".join(map(str, jar_files())),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            DAEMON: workers.MODULE,
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "1",
            **(conf or {}),
        }
        options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        command = [str(SPARK_HOME / "bin/spark-submit"), "--master", self.master, *options, str(script), *arguments]
        out, err = self.logs / "submit.out", self.logs / "submit.err"  # files: a pipe nobody reads would fill up
        with out.open("w") as stdout, err.open("w") as stderr:
            submitted = subprocess.Popen(
                command, env=environment(), stdout=stdout, stderr=stderr, start_new_session=True, cwd=self.logs
            )
            try:
                code = submitted.wait(timeout)
            finally:
                end(submitted)
        return Submitted(code, out.read_text(), err.read_text())


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2, memory: str = "1g") -> Iterator[Cluster]:
    """Start a master and `workers` one-core workers, wait until all are registered; end exactly these processes.

    Logs and the workers' directories go to `folder`. Cost: about 5 s to start.
    """
    ensure_java()
    with ExitStack() as running:
        # port 0: the master picks a free one and says which
        master_log = folder / "master.log"
        running.enter_context(
            daemon("master.Master", ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"], master_log)
        )
        (master,) = wait_for(r"Starting Spark master at (spark://\S+)", master_log)
        for number in range(workers):
            options = ["--host", "127.0.0.1", "--cores", "1", "--memory", memory, "--webui-port", "0"]
            options += ["--work-dir", str(folder / f"work-{number}"), master]
            running.enter_context(daemon("worker.Worker", options, folder / f"worker-{number}.log"))
        wait_for(r"(Registering worker) ", master_log, count=workers)
        yield Cluster(master, folder)


@contextmanager
def daemon(name: str, options: list[str], log: Path) -> Iterator[None]:
    """Run one of Spark's daemons in a process group of its own, and end that group."""
    command = [str(SPARK_HOME / "bin/spark-class"), f"org.apache.spark.deploy.{name}", *options]
    with log.open("w") as output:
        started = subprocess.Popen(
            command, env=environment(), stdout=output, stderr=subprocess.STDOUT, start_new_session=True, cwd=log.parent
        )
    try:
        yield
    finally:
        end(started)


def end(started: subprocess.Popen[bytes]) -> None:
    """Terminate the process group of `started`, then kill what is left of it; no other process is touched."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(started.pid, how)
        except ProcessLookupError:  # the whole group is gone
            break
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and group_lives(started):
            time.sleep(0.05)
    started.wait()


def group_lives(started: subprocess.Popen[bytes]) -> bool:
    """Whether any process of the group is left (reaping the leader, which would else stay as a zombie)."""
    started.poll()
    try:
        os.killpg(started.pid, 0)
    except ProcessLookupError:
        return False
    return True


def environment() -> dict[str, str]:
    """The environment of every process started here: this interpreter, this Spark, loopback only, small heaps."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return ours | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
        "SPARK_NO_DAEMONIZE": "1",
    }


def wait_for(pattern: str, log: Path, count: int = 1) -> list[str]:
    """The first group of `pattern`, as soon as it has matched `count` times in `log`."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        found: list[str] = re.findall(pattern, log.read_text(errors="replace"))
        if len(found) >= count:
            return found
        time.sleep(0.1)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise TimeoutError(f"Not seen {count} times within {START_SECONDS} s: {pattern}\n{tail}")
