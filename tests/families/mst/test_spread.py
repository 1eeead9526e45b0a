"""However the work is spread over tasks, the partition is that of one process."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import ROWS
from anon_spark.errors import DataError
from anon_spark.families.mst import spread
from anon_spark.families.mst.assignment import assign
from anon_spark.families.mst.frames import SHARE, VALUES, in_every_share, leaf_columns, level_columns, lists_of
from anon_spark.families.mst.partition import Settings, partition
from anon_spark.primitives.classes import Frequencies
from anon_spark.primitives.classes.frequencies import code_columns
from anon_spark.primitives.encoding import Dictionary
from anon_spark.primitives.rounds import Workspace
from tests.families.mst.tables import FLAT, Arrays, Case, arrays_of, case_of, crowd
from tests.often import often

STATISTICS = ("weights", "tau", "kept", "small", "identical", "rows_kept", "merge", "rounds")


def counted(spark: SparkSession, case: Case, arrays: Arrays, partitions: int) -> tuple[Frequencies, DataFrame | None]:
    """The distinct tuples of a case as the family's fit counts them, and their sensitive values."""
    names = code_columns(len(arrays.codes))
    columns: dict[str, Any] = {name: pa.array(column) for name, column in zip(names, arrays.codes, strict=True)}
    frame = spark.createDataFrame(pa.table({**columns, ROWS: pa.array(arrays.rows)})).repartition(partitions)
    nothing = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
    dictionaries = tuple(Dictionary(str(at), of, "string", [], *nothing, 0) for at, of in enumerate(case.hierarchies))
    size, rows = arrays.rows.size, int(arrays.rows.sum())
    frequencies = Frequencies(dictionaries, frame, None, size, rows, None, 0, 0, 0)
    if arrays.values is None:
        return frequencies, None
    lists = {f"{VALUES}{at}": lists_of(arrays.values[:, at]) for at in range(arrays.values.shape[1])}
    return frequencies, spark.createDataFrame(pa.table({**columns, **lists}))


def diverse(case: Case, columns: int) -> Case:
    """With sensitive values, mostly one, of which each class needs two."""
    random = Random(0)
    values = [tuple(random.choice([0, 0, 0, 1, 2]) for _ in range(columns)) for _ in case.rows]
    return Case(case.hierarchies, case.rows, case.k, 2, values)


CASES: dict[str, tuple[Case, dict[str, Any]]] = {
    "rounds all the way": (crowd(0, 24), {"merge": "rounds", "merge_local_max": 1}),
    "the last classes by one task": (crowd(1, 400), {"merge": "rounds", "merge_local_max": 60}),
    "diverse": (diverse(crowd(2), 2), {"merge": "rounds", "merge_local_max": 60}),
    "blocks, then rounds": (crowd(3), {"merge": "rounds", "merge_local_max": 60, "local_max": 10}),
    "blocks, then greedy, diverse": (diverse(crowd(4), 1), {"merge": "greedy", "local_max": 10}),
    "a leftover": (case_of([FLAT], [(leaf,) for leaf in "aabbcc"] + [("d",)], 2), {"local_max": 1}),
    "nothing is too small": (case_of([FLAT], [("a",)] * 4 + [("b",)] * 4, 2), {"local_max": 1}),
}


@pytest.mark.parametrize("name", often(CASES, {"diverse", "blocks, then rounds"}))
def test_spread_over_tasks_or_in_one_process(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(spread, "SHARE_CLASSES", 60)  # two to four shares
    case, options = CASES[name]
    arrays, settings = arrays_of(case), Settings(case.k, case.l, **options)
    expected = partition(arrays.codes, arrays.rows, case.hierarchies, settings, arrays.values)
    frequencies, values = counted(spark, case, arrays, 1 + len(name) % 7)
    with Workspace(spark) as workspace:
        found = assign(frequencies, settings, workspace, values)
        table = found.frame.select(*leaf_columns(len(arrays.codes)), *level_columns(len(arrays.codes)), ROWS).toArrow()
    truth = np.concatenate([arrays.codes.T, expected.levels[expected.class_of], arrays.rows[:, None]], axis=1)
    assert Counter(zip(*table.to_pydict().values(), strict=True)) == Counter(map(tuple, truth.tolist()))
    for statistic in STATISTICS:
        assert found.statistics[statistic] == expected.statistics[statistic], statistic


@pytest.mark.long
def test_a_table_that_is_one_class_too_small_is_refused(spark: SparkSession) -> None:
    case = Case(crowd(0).hierarchies, crowd(0).rows[:8], 5, 2, [(0,)] * 8)
    with Workspace(spark) as workspace, pytest.raises(DataError, match="one class that is too small"):
        frequencies, values = counted(spark, case, arrays_of(case), 2)
        assign(frequencies, Settings(5, 2, local_max=1), workspace, values)


@pytest.mark.parametrize("shares", [1, 2, 7])
def test_every_share_is_a_partition_of_its_own(spark: SparkSession, shares: int) -> None:
    spread_out = in_every_share(spark.range(5), shares).withColumn("partition", F.spark_partition_id()).collect()
    assert Counter(row[SHARE] for row in spread_out) == dict.fromkeys(range(shares), 5)
    assert len({(row[SHARE], row["partition"]) for row in spread_out}) == len({row["partition"] for row in spread_out})
