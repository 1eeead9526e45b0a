"""Ranks in the order of a hash: those of a plain sort, however the rows come and wherever they are sorted."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anon_spark.columns import LINK
from anon_spark.engine import small_frame
from anon_spark.primitives.ranking import ranked_by_hash
from anon_spark.primitives.rounds import Workspace


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_ranks_are_those_of_a_sort(spark: SparkSession, partitions: int) -> None:
    draw = Random(3)
    hashes = [-(2**63), 2**63 - 1, -1, 0, 1, 1, *(draw.randrange(-(2**63), 2**63) for _ in range(300))]
    rows = [(number, one, draw.randrange(-9, 9) * 10 + number % 10) for number, one in enumerate(hashes)]
    frame = small_frame(spark, pa.table({name: [row[at] for row in rows] for at, name in enumerate(("row", "first", "then"))}))
    with Workspace(spark) as workspace:
        found = ranked_by_hash(frame.repartition(partitions), "first", "then", workspace)
        assert sorted(found.columns) == sorted([LINK, "row"])
        ranks = {row["row"]: row[LINK] for row in found.collect()}
    ordered = sorted(rows, key=lambda row: row[1:])
    assert ranks == {row[0]: rank for rank, row in enumerate(ordered)}
