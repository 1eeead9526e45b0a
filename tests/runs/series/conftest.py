"""The series that the tests of this folder begin with."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.event_log import EventLog
from tests.runs.series.growing import Series, table_of
from tests.runs.series.village import FIRST, VILLAGE, Begun
from tests.town import Town


@pytest.fixture(scope="session")
def begun_series(spark: SparkSession, event_log: EventLog, tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """The first increment of the village. Whoever changes it works on a copy."""
    series = Series(Town.founded(spark, tmp_path_factory.mktemp("series") / "town", table_of(FIRST)), VILLAGE)
    mark = event_log.mark()
    assert series.run(FIRST).status == "published"
    return Begun(series, event_log.read_text(since=mark))
