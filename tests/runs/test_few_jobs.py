"""Small tables cost few jobs: results are collected together, small frames are joined in the task of the rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing.release.content import contents_to_be, copy_check
from anon_spark.engine import beside, crossed, gathered, in_one_task, small_frame
from anon_spark.errors import GuaranteeViolated
from anon_spark.pending import Pending, together
from anon_spark.primitives.rounds import Workspace
from tests.event_log import EventLog
from tests.town import Town, people


def numbers(spark: SparkSession, *values: int) -> DataFrame:
    return gathered(small_frame(spark, pa.table({"n": pa.array(values, pa.int64())})), True)


def jobs(log: EventLog, since: int) -> int:
    return log.read_text(since).count('"Event":"SparkListenerJobStart"')


def test_results_of_several_frames_take_one_job(spark: SparkSession, event_log: EventLog) -> None:
    total = Pending.of(numbers(spark, 1, 2).agg(F.sum("n").alias("a b.c")), lambda rows: rows[0]["a b.c"])
    ordered = Pending.of(numbers(spark, 3, 1, 2).sortWithinPartitions("n"), lambda rows: [row.n for row in rows])
    nothing = Pending.of(numbers(spark).select(F.col("n").alias("m")), len)
    mark = event_log.mark()

    found = together(total, Pending.known("known"), together(ordered, nothing), total.then(lambda value: value + 1)).get()

    assert found == (3, "known", ([1, 2, 3], 0), 4)
    assert jobs(event_log, mark) == 1


@pytest.mark.parametrize("small", [True, False])
def test_a_small_frame_is_joined_alike_in_either_way(spark: SparkSession, event_log: EventLog, small: bool) -> None:
    known = small_frame(spark, pa.table({"k": pa.array([1, 2], pa.int64()), "text": ["one", "two"]}))
    rows = numbers(spark, 1, 2, 2, 7)
    mark = event_log.mark()
    with in_one_task(small):
        joined = rows.join(beside(known), F.col("n") == F.col("k"), "left").select("n", "text")
        twice = crossed(rows, known.select("k"))
    found = {tuple(row) for row in joined.collect()}
    assert jobs(event_log, mark) == (1 if small else 2)
    assert found == {(1, "one"), (2, "two"), (7, None)} and joined.count() == 4
    assert sorted(map(tuple, twice.collect())) == sorted((n, k) for n in (1, 2, 2, 7) for k in (1, 2))


def test_a_copy_of_the_input_must_have_its_rows(spark: SparkSession) -> None:
    source = numbers(spark, 1, 2, 2)
    contents = contents_to_be(source, ["n"])
    assert copy_check(source, None).get() == ([], [])
    for copy, passed in (((2, 1, 2), True), ((1, 2), False), ((1, 2, 3), False), ((1, 1, 2), False)):
        (verdict,), read = copy_check(numbers(spark, *copy), contents).get()
        assert (verdict.name, verdict.passed, verdict.violations) == ("input", passed, int(not passed))
        assert read == contents.get()


def test_a_copy_that_lost_a_row_ends_the_run(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    town, store = Town.founded(spark, tmp_path / "town", people()), Workspace.store

    def losing(self: Workspace, frame: DataFrame, name: str) -> DataFrame:
        return store(self, frame.where(F.monotonically_increasing_id() > 0) if name == "input" else frame, name)

    monkeypatch.setattr(Workspace, "store", losing)
    with pytest.raises(GuaranteeViolated) as caught:
        town.run()
    assert caught.value.facts["checks"] == ["input"]
    assert town.versions == 0
