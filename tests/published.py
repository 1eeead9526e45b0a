"""One published release that all pipeline and command line tests look at; whoever changes it works on a copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anon_spark.report import RunReport
from anon_spark.runs.preparation import RUN_KEY
from tests.event_log import EventLog
from tests.town import Town, crowded, people

TEST_KEY = "planted-run-key"
ASKED: dict[str, Any] = {  # what the published job says beside the town's own
    "input__version": 0,
    "columns__person": "person_id",
    "columns__keep": ["weight", "city_code"],
    "nulls": "suppress",
    "on_unseen": "suppress",
}


@dataclass(frozen=True)
class PublishedTown:
    """A town after one run, with the run's report and what Spark logged meanwhile."""

    town: Town
    report: RunReport
    logged: str


@pytest.fixture(scope="session")
def published_once(spark: SparkSession, event_log: EventLog, tmp_path_factory: pytest.TempPathFactory) -> PublishedTown:
    """Version 0 of the town's people, published with a test key, while fifty others are in version 1."""
    town = Town.founded(spark, tmp_path_factory.mktemp("published") / "town", crowded())
    town.write(people(rows=50))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(RUN_KEY, TEST_KEY)
        mark = event_log.mark()
        report = town.run(**ASKED)
    return PublishedTown(town, report, event_log.read_text(since=mark))


@pytest.fixture
def published(published_once: PublishedTown, monkeypatch: pytest.MonkeyPatch) -> Iterator[PublishedTown]:
    """The published town, its job file as it was run, in the environment it was run in."""
    published_once.town.job_file(**ASKED)
    monkeypatch.setenv(RUN_KEY, TEST_KEY)
    yield published_once
    published_once.town.job_file(**ASKED)
