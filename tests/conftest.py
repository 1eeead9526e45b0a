"""One Spark session per test process, an event log to search for escaped values, and the path to real data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from anon_spark.machine.kernels import listed
from anon_spark.spark_session import make_session
from jobs.kernels import asked_for
from tests.event_log import EventLog
from tests.published import published, published_once  # noqa: F401 - fixtures

ROOT = Path(__file__).resolve().parent.parent
# for minutes of small queries: half the CPU of the default; room for all code, which is else thrown out and compiled again
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"

settings.register_profile(
    "anon-spark",
    deadline=None,
    max_examples=25,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("anon-spark")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--adult",
        metavar="PATH",
        default=os.environ.get("ANON_SPARK_DATA"),
        help="folder that holds adult/adult.data.gz (also: environment variable ANON_SPARK_DATA)",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a Spark session or a cluster, so that `make check` can leave it out; files that compile kernels go first.

    The kernels are kept on disk. Otherwise every worker of Spark would compile them for itself.
    """
    for item in items:
        if {"spark", "cluster"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.spark)
    with_spark = {item.path for item in items if item.get_closest_marker("spark")}
    items.sort(key=lambda item: (item.get_closest_marker("compiles") is None, item.path in with_spark))


@pytest.fixture(scope="session")
def adult(request: pytest.FixtureRequest) -> Path:
    """Path of adult.data.gz; the test is skipped when no folder with it was given."""
    folder = request.config.getoption("--adult")
    if not folder:
        pytest.skip("needs the Adult data: pytest --adult PATH, or ANON_SPARK_DATA=PATH (PATH/adult/adult.data.gz)")
    path = Path(folder).expanduser().resolve() / "adult" / "adult.data.gz"
    if not path.is_file():
        pytest.skip("needs the Adult data: the folder given has no adult/adult.data.gz")
    return path


@pytest.fixture(scope="session")
def session_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the suite's session keeps its event log, warehouse and derby files."""
    folder = tmp_path_factory.mktemp("session")
    for name in ("events", "warehouse", "derby"):
        (folder / name).mkdir()
    return folder


@pytest.fixture(scope="session")
def spark(session_folder: Path) -> Iterator[SparkSession]:
    """Local Spark with Delta: two cores, tasks retried up to four times, two shuffle partitions, UTC."""
    # Python workers import the package and the tests' own modules by name
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    session = make_session(
        "anon-spark tests",
        {
            "spark.master": "local[2,4]",
            "spark.driver.memory": "2g",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            # a fifth of the suite went into compiling queries that run once; the end-to-end tests run them compiled
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM takes 10,000 tasks otherwise
            "spark.sql.warehouse.dir": str(session_folder / "warehouse"),
            "spark.driver.extraJavaOptions": f"{SHORT_LIVED} -Dderby.system.home={session_folder / 'derby'}",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (session_folder / "events").as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def event_log(spark: SparkSession, session_folder: Path) -> EventLog:
    """The session's event log: `event_log.read_text()`, or only what is new since `event_log.mark()`."""
    return EventLog(spark, session_folder / "events")


@pytest.fixture(autouse=True)
def kernels_compiled_at_set_up(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test with Spark compiles is in the list of what set-up compiles, so that a user never waits for it."""
    if "spark" not in request.fixturenames:
        yield
        return
    before = asked_for()
    yield
    unlisted = {name: kinds - before[name] - set(listed().get(name, ())) for name, kinds in asked_for().items()}
    assert {name: kinds for name, kinds in unlisted.items() if kinds} == {}, "write the list anew with jobs/kernels.py"


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    """An empty folder for `workdir=` and `work:`, apart from a test's inputs and outputs in tmp_path."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
