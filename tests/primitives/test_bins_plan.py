"""A column of bins is read by a plan of bounded size: an exploded array must not be written out again as a filter."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.model.hierarchy import Hierarchy
from anon_spark.primitives import encoding
from anon_spark.primitives.encoding import dictionaries, with_keys
from anon_spark.primitives.rounds import collect_small

MOST_CHARACTERS = 50_000  # about 10,000 now; 588,000 where the filter was written out


def test_the_plan_of_a_column_of_bins_stays_small(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def measured(frame: DataFrame, most: int, what: str) -> object:
        sizes.append(len(frame._jdf.queryExecution().optimizedPlan().toString()))
        return collect_small(frame, most, what)

    monkeypatch.setattr(encoding, "collect_small", measured)
    hierarchies = {"dose": Hierarchy.intervals("0", "10", ["0.1", "1"], exact=False)}
    frame = spark.createDataFrame([(0.05,), (9.99,), (None,)], "dose double")
    (found,) = dictionaries(with_keys(frame, hierarchies), hierarchies, "value", {"dose"})
    assert int(found.rows.sum()) == 2 and found.null_rows == 1
    assert sizes and max(sizes) < MOST_CHARACTERS
