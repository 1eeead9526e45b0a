"""Look-ups of texts: the same in joins and in Arrow, for the audit and for the families."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing.reading import look_ups as audited
from anon_spark.engine import gathered, in_one_task, small_frame
from anon_spark.primitives import look_ups as fitted

TEXTS = ["a", "A", "a ", "", None, "é", "unknown", "a"]


def rows(spark: SparkSession) -> DataFrame:
    table: dict[str, Any] = {"text.0": pa.array(TEXTS, pa.string()), "n": pa.array(range(len(TEXTS)), pa.int64())}
    return gathered(small_frame(spark, pa.table(table)), True)


def found(module: Any, frame: DataFrame, small: bool) -> DataFrame:
    text = F.col("`text.0`")
    one = module.LookUp(text, ["a", "A", "", "é"], [["x"], ["y", "z"], [], ["é"]], "first 1")
    other = module.LookUp(F.col("n").cast("string"), ["0", "3"], [["zero"], None], "second")
    with in_one_task(small):
        looked_up: DataFrame = module.with_found(frame, [one, other], pa.list_(pa.string()))
        return looked_up


@pytest.mark.parametrize("module", [audited, fitted], ids=["audit", "families"])
def test_both_ways_find_the_same(spark: SparkSession, module: Any) -> None:
    first = {"a": ["x"], "A": ["y", "z"], "": [], "é": ["é"]}
    expected = [(text, n, first.get(text or "?"), ["zero"] if n == 0 else None) for n, text in enumerate(TEXTS)]
    expected[3] = ("", 3, [], None)
    for small in (True, False):
        frame = found(module, rows(spark), small)
        assert frame.columns == ["text.0", "n", "first 1", "second"]
        assert sorted(map(tuple, frame.collect()), key=lambda row: row[1]) == expected
        assert module.with_found(rows(spark), [], pa.string()).columns == ["text.0", "n"]


@pytest.mark.parametrize("module", [audited, fitted], ids=["audit", "families"])
def test_a_kept_column_may_have_a_type_that_arrow_lacks(spark: SparkSession, module: Any) -> None:
    kept: Callable[[DataFrame], DataFrame] = lambda frame: frame.withColumn("span", F.make_interval(months=F.col("n")))  # noqa: E731
    frame = found(module, kept(rows(spark)), True)
    assert frame.select("first 1").where(F.isnotnull("first 1")).count() == 5
