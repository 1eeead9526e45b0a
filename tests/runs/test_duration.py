"""What a plan says of the time of a run."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest
from pyspark.sql import SparkSession

from anon_spark import engine
from anon_spark.families.registry import NAMES
from anon_spark.runs.duration import CORES, MEASURED, expectation, expected_seconds, spoken


def test_every_family_has_measured_sizes_in_order() -> None:
    assert set(MEASURED) == set(NAMES)
    for points in MEASURED.values():
        assert len(points) > 1 and list(points) == sorted(points) and points[0][1] < points[-1][1]


@pytest.mark.parametrize("family", MEASURED)
def test_the_measured_sizes_are_given_back_and_others_lie_between(family: str) -> None:
    points = MEASURED[family]
    for rows, seconds in points:
        assert expected_seconds(family, rows, CORES) == pytest.approx(seconds)
    for (few, short), (many, long) in pairwise(points):
        assert short < expected_seconds(family, (few + many) // 2, CORES) < long
    rows, seconds = points[-1]
    assert expected_seconds(family, 10 * rows, CORES) == pytest.approx(10 * seconds)
    assert expected_seconds(family, 1, CORES) == points[0][1]


def test_more_cores_shorten_all_but_the_least() -> None:
    (_, least), *_, (rows, seconds) = MEASURED["set_valued"]
    assert expected_seconds("set_valued", rows, 10 * CORES) == pytest.approx(least + (seconds - least) / 10)
    assert expected_seconds("set_valued", 1, 10 * CORES) == least


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1, "about 10 seconds"),
        (44, "about 40 seconds"),
        (100, "about 2 minutes"),
        (3_700, "about 62 minutes"),
        (8_000, "about 2 hours"),
    ],
)
def test_times_are_told_in_the_unit_of_people(seconds: float, text: str) -> None:
    assert spoken(seconds) == text


def test_a_session_tells_how_many_tasks_it_runs(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = spark.sparkContext.defaultParallelism
    assert expectation("lattice", 30_000, spark).endswith(f"on this session, which runs {tasks} tasks at a time")

    def told(**settings: str) -> int | None:
        monkeypatch.setattr(engine, "setting", lambda spark, name, default: settings.get(name.rpartition(".")[2], default))
        return engine.tasks_at_once(spark)

    assert [told(master=text) for text in ("local", "local[3]", "local[4,2]")] == [1, 3, 4]
    assert told(master="local[*]") == os.cpu_count() and told(master="local-cluster[2,1,1024]") is None
    assert told(master="yarn", instances="5", cores="4") == 20 and told(master="yarn", cores="4") is None
    assert expectation("lattice", 30_000, spark).endswith(f"on {CORES} cores")
