"""The Spark session of every job, with Delta. The library itself never makes one.

Under spark-submit its settings are used and never overridden. Without spark-submit the session is `local[*]`, with the
jars that set-up left in the environment, so it starts without network.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from anon_spark import workers
from anon_spark.errors import ConfigurationError
from anon_spark.machine import delta
from anon_spark.machine.gateway import keep_functions
from anon_spark.machine.java import ensure_java
from anon_spark.machine.signals import catch_signals_again
from anon_spark.machine.stderr import without_noise
from anon_spark.primitives.stores import Store, discard, private_folder, sweep, user_root

MASTER = "spark.master"
NAME = "spark.app.name"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
DAEMON = "spark.python.daemon.module"
LOCAL_DIR = "spark.local.dir"
LOCAL_DIRS = "SPARK_LOCAL_DIRS"  # wins over the setting
CATALOG, WAREHOUSE = "spark.sql.catalogImplementation", "spark.sql.warehouse.dir"
CLUSTER = {"spark.log.level": "WARN"}  # at INFO Delta writes the least and greatest values of small tables into the driver's log
WIDE = {"spark.sql.constraintPropagation.enabled": "false"}
"""From a condition on a hash of n renamed columns Spark infers 2^n: with 18 quasi-identifiers that ends a driver of 1g."""
BRIEF = {
    # only the fast compiler of the JVM, whose code cache is then small by default, and one collector of garbage: most of the
    # processor time of a small run is compilation
    JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",  # makes a job of every shuffle, and plans again after each
}
"""Settings of a local session that is there for one small table: they cost less than they save only there."""
_LATER = 10  # times the usual number of calls, or of rounds of a loop, before the JVM compiles a method again, for speed
LASTING = {
    JAVA_OPTIONS: f"-XX:Tier4InvocationThreshold={5_000 * _LATER} -XX:Tier4MinInvocationThreshold={600 * _LATER} "
    f"-XX:Tier4CompileThreshold={15_000 * _LATER} -XX:Tier4BackEdgeThreshold={40_000 * _LATER} "
    "-XX:+UseParallelGC",  # the usual collector works beside the tasks, on their cores
}
"""Settings of any other session whose JVM starts here. Every plan is new code, and most of it runs for a second or two: with the
usual settings a third of the processor time of a run of a million records is compilation."""
QUIET = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'machine' / 'quiet.properties').as_uri()}"


def make_session(app_name: str, options: Mapping[str, str] | None = None, brief: bool = False) -> SparkSession:
    """The session to run a job in: the one that exists, else what spark-submit gives, else local Spark with Delta.

    `options` are Spark settings; they win over our defaults, never over settings of spark-submit. brief: whether a new local
    session will read one small table and end; it starts faster and is slower on large ones.
    Guarantee: a session that reads and writes Delta, or a ConfigurationError that says what is missing.
    Cost: about 5 s for a new local session, nothing for one that exists.
    """
    silence_query_errors()
    existing = SparkSession.getActiveSession()
    if existing is not None:
        return existing
    if "SPARK_REMOTE" in os.environ:  # Spark Connect: the server owns every setting
        return SparkSession.builder.appName(app_name).getOrCreate()
    submitted = given_settings()
    settings = resolve(submitted, app_name, session_options(options or {}, brief))
    if is_local(settings):
        os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers run on this machine: same interpreter
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # a cluster may name its own
    if under_spark_submit():
        require_delta()
        if is_local(settings):
            settings = with_private_files(settings)  # the JVM runs already: its own temporary folder stays
    else:
        ensure_java()
        settings = delta.with_jars(settings)
        if is_local(settings):
            settings[JAVA_OPTIONS] = " ".join(filter(None, [QUIET, settings.get(JAVA_OPTIONS)]))
            settings.setdefault(DAEMON, workers.MODULE)  # local workers can import this package
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else Spark warns about the host's name
            settings = with_private_files(settings)
    builder: Any = SparkSession.builder
    for name, value in settings.items():
        if submitted.get(name) != value:
            builder = builder.config(name, value)
    with nullcontext() if under_spark_submit() else without_noise():
        session: SparkSession = builder.getOrCreate()
    keep_functions(SparkContext._jvm)
    catch_signals_again()
    return session


def with_private_files(settings: Mapping[str, str]) -> dict[str, str]:
    """`settings` with a private folder for shuffle and temporary files of a local session, unless somebody gave one.

    Guarantee: only the user can look into the folder; it is removed at the end of the program, and what a killed program
    left is removed here, by the next one.
    """
    if LOCAL_DIR in settings or LOCAL_DIRS in os.environ:
        return dict(settings)
    root = Store.of(str(user_root()))
    sweep(root)
    folder = Path(private_folder(root).path)
    atexit.register(_end_session, folder)
    temporary = f"-Djava.io.tmpdir={folder}"
    forgotten = {} if settings.get(CATALOG) == "hive" else {WAREHOUSE: str(folder / "warehouse")}  # a catalog without a memory
    options = " ".join(filter(None, [settings.get(JAVA_OPTIONS), temporary]))
    return {**forgotten, **settings, LOCAL_DIR: str(folder), JAVA_OPTIONS: options}


def _end_session(folder: Path) -> None:
    """Stop the session, if there is one, then remove its folder."""
    with suppress(Exception):  # its JVM may be gone already
        session = SparkSession.getActiveSession()
        if session is not None:
            session.stop()
    discard(folder)


def silence_query_errors() -> None:
    """Keep pyspark from writing texts of query errors to stderr: they may hold values of records.

    Nothing is lost: the error carries its text.
    """
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def session_options(options: Mapping[str, str], brief: bool) -> dict[str, str]:
    """`options` with those of a brief session or a lasting one; under spark-submit without them: its JVM runs already."""
    ours = BRIEF if brief else LASTING
    return {**({} if under_spark_submit() else ours), **options}


def resolve(submitted: Mapping[str, str], app_name: str, options: Mapping[str, str]) -> dict[str, str]:
    """All settings of a new session: those of spark-submit, then `options`, then our defaults. Pure."""
    settings = {MASTER: "local[*]", NAME: app_name, **options, **submitted}
    ours = local_settings() if is_local(settings) else CLUSTER
    return delta.with_delta(WIDE | ours | settings)


def is_local(settings: Mapping[str, str]) -> bool:
    """Whether driver and workers are one process on this machine."""
    return settings[MASTER] == "local" or settings[MASTER].startswith("local[")


def local_settings() -> dict[str, str]:
    """Defaults that suit one machine and would be wrong on a cluster."""
    return {
        "spark.driver.memory": "4g",  # driver and executors are one process: this is all the memory there is
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",  # the jobs show their own progress
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # a look at the stack for every column: a tenth of a small run
        "spark.io.encryption.enabled": "true",  # shuffle files hold raw values
        "spark.sql.codegen.cache.maxEntries": "1000",  # 100 by default: a second run would compile its plans again
        "spark.sql.shuffle.partitions": str(max(4, os.cpu_count() or 1)),
        "spark.databricks.delta.snapshotPartitions": "1",  # 50 by default: seconds per commit on a small machine
    }


def under_spark_submit() -> bool:
    """Whether spark-submit started this process; its JVM then already runs and waits for us."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def given_settings() -> dict[str, str]:
    """The settings of spark-submit, its properties file and spark-defaults; empty without spark-submit."""
    if not under_spark_submit():
        return {}
    SparkContext._ensure_initialized()  # connects to the JVM that holds the settings
    return dict(SparkConf().getAll())


def require_delta() -> None:
    """Refuse a spark-submit without Delta's jars: they cannot be added once its JVM runs."""
    jvm: Any = SparkContext._jvm
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(delta.EXTENSION)
    except Exception as error:
        raise ConfigurationError(
            f"spark-submit has no Delta Lake on its class path. Add to it: --packages {delta.coordinate()}"
        ) from error
