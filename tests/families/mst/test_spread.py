"""However the work is spread over tasks, the partition is that of one process."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import ROWS
from anon_spark.errors import DataError
from anon_spark.families.mst import spread
from anon_spark.families.mst.assignment import assign
from anon_spark.families.mst.frames import SHARE, VALUES, in_every_share, leaf_columns, level_columns, share_keys
from anon_spark.families.mst.merge import ended_in
from anon_spark.families.mst.partition import Settings, partition
from anon_spark.io.causes import known_cause
from anon_spark.primitives.classes import Frequencies
from anon_spark.primitives.classes.frequencies import Stored, code_columns
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
    frequencies = Frequencies(dictionaries, size, rows, None, 0, 0, 0, stored=Stored(frame))
    if arrays.values is None:
        return frequencies, None
    lists = {
        f"{VALUES}{at}": pa.array([row[row >= 0].tolist() for row in arrays.values[:, at]], pa.list_(pa.int32()))
        for at in range(arrays.values.shape[1])
    }
    return frequencies, spark.createDataFrame(pa.table({**columns, **lists}))


def diverse(case: Case, columns: int) -> Case:
    """With sensitive values, mostly one, of which each class needs two."""
    random = Random(0)
    values = [tuple(random.choice([0, 0, 0, 1, 2]) for _ in range(columns)) for _ in case.rows]
    return Case(case.hierarchies, case.rows, case.k, 2, values)


CASES: dict[str, tuple[Case, dict[str, Any]]] = {
    "rounds all the way": (crowd(0, 24), {"merge": "rounds", "merge_local_max": 1}),
    "the last classes by one task": (crowd(1, 400), {"merge": "rounds", "merge_local_max": 60}),
    "blocks, then rounds": (crowd(3), {"merge": "rounds", "merge_local_max": 60, "local_max": 10}),
    "a leftover": (case_of([FLAT], [(leaf,) for leaf in "aabbcc"] + [("d",)], 2), {"local_max": 1}),
    "nothing is too small": (case_of([FLAT], [("a",)] * 4 + [("b",)] * 4, 2), {"local_max": 1}),
}


def assigned(frequencies: Frequencies, values: DataFrame | None, settings: Settings) -> tuple[Counter[Any], dict[str, Any]]:
    """Leaves, levels and rows of every tuple, and the statistics."""
    with Workspace(frequencies.files.frame.sparkSession) as workspace:
        found = assign(frequencies, settings, workspace, values)
        count = len(frequencies.hierarchies)
        table = found.frame.select(*leaf_columns(count), *level_columns(count), ROWS).toArrow()
    return Counter(zip(*table.to_pydict().values(), strict=True)), found.statistics


@pytest.mark.parametrize("name", often(CASES, set()))
def test_spread_over_tasks_or_in_one_process(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(spread, "SHARE_CLASSES", 60)  # two to four shares
    case, options = CASES[name]
    arrays, settings = arrays_of(case), Settings(case.k, **options)
    expected = partition(arrays.codes, arrays.rows, case.hierarchies, settings)
    found, statistics = assigned(*counted(spark, case, arrays, 1 + len(name) % 7), settings)
    truth = np.concatenate([arrays.codes.T, expected.levels[expected.class_of], arrays.rows[:, None]], axis=1)
    assert found == Counter(map(tuple, truth.tolist()))
    for statistic in STATISTICS:
        assert statistics[statistic] == expected.statistics[statistic], statistic


REFINED: dict[str, tuple[Case, dict[str, Any]]] = {
    "several blocks": (crowd(2), {"sweeps": 2, "block_tuples": 60}),
    "several blocks, diverse": (diverse(crowd(2), 2), {"sweeps": 2, "block_tuples": 60}),
    "only made diverse": (diverse(crowd(4), 1), {"block_tuples": 100}),
    "one block": (diverse(crowd(5, 60), 1), {"sweeps": 1}),
}


@pytest.mark.parametrize("name", often(REFINED, {"several blocks, diverse"}))
def test_refined_alike_by_one_task_or_many(spark: SparkSession, name: str) -> None:
    case, options = REFINED[name]
    arrays = arrays_of(case)
    expected, statistics = assigned(*counted(spark, case, arrays, 1), Settings(case.k, case.l, "rounds", **options))
    assert (statistics["blocks"] > 1) == (name != "one block")
    divided = Settings(case.k, case.l, "rounds", local_max=1, merge_local_max=60, **options)
    found, statistics_divided = assigned(*counted(spark, case, arrays, 7), divided)
    assert found == expected and statistics_divided["blocks"] == statistics["blocks"]
    check_kept(case, expected)


@pytest.mark.long
@pytest.mark.parametrize("name", REFINED)
def test_too_many_tuples_for_one_task_are_divided_by_values_further_up(spark: SparkSession, name: str) -> None:
    case, options = REFINED[name]
    arrays = arrays_of(case)
    coarse = Settings(case.k, case.l, "rounds", local_max=1, divided_max=arrays.rows.size // 2, **options)
    found, _ = assigned(*counted(spark, case, arrays, 2), coarse)
    check_kept(case, found)


def check_kept(case: Case, found: Counter[Any]) -> None:
    """k rows and l values in every class, all tuples there."""
    count, place = len(case.hierarchies), [{row[0]: code for code, row in enumerate(table)} for table in case.tables]
    node_of = {row[:count]: row[count:-1] for row in found}
    classes: dict[Any, list[int]] = {}
    for at, row in enumerate(case.rows):
        leaf = tuple(of[value] for of, value in zip(place, row, strict=True))
        nodes = zip(case.hierarchies, node_of[leaf], leaf, strict=True)
        label = tuple((level, int(of.codes[level, code])) for of, level, code in nodes)
        classes.setdefault(label, []).append(at)
    assert sum(row[-1] for row in found) == len(case.rows)
    for members in classes.values():
        assert len(members) >= case.k
        for column in range(len(case.sensitive[0]) if case.sensitive else 0):
            assert case.sensitive is not None and case.l is not None
            assert len({case.sensitive[at][column] for at in members}) >= case.l


@pytest.mark.long
def test_a_table_that_is_one_class_too_small_is_refused(spark: SparkSession) -> None:
    case = Case(crowd(0).hierarchies, crowd(0).rows[:8], 5, 2, [(0,)] * 8)
    frequencies, values = counted(spark, case, arrays_of(case), 2)
    with Workspace(spark) as workspace, pytest.raises(PySparkException) as raised:
        assign(frequencies, Settings(5, 2, local_max=1), workspace, values)
    cause = known_cause(raised.value)  # what a run says of it
    assert isinstance(cause, DataError) and "one class that is too small" in str(cause)


@pytest.mark.parametrize("shares", [1, 2, 7])
def test_every_share_is_a_partition_of_its_own(spark: SparkSession, shares: int) -> None:
    copies = in_every_share(spark.range(5), share_keys(spark, shares))
    spread_out = copies.withColumn("partition", F.spark_partition_id()).collect()
    assert Counter(row[SHARE] for row in spread_out) == dict.fromkeys(range(shares), 5)
    assert len({(row[SHARE], row["partition"]) for row in spread_out}) == len({row["partition"] for row in spread_out})


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40))
def test_classes_are_followed_to_where_they_ended(merges: list[tuple[int, int]]) -> None:
    home = {ident: ident for ident in range(0, 62, 2)}  # by definition: a merge moves all that the other class holds
    into = dict(home)
    for first, second in merges:
        kept, gone = sorted([home[2 * first], home[2 * second]])
        into[gone] = kept
        home = {ident: kept if of == gone else of for ident, of in home.items()}
    ident, targets = (np.array(list(side), dtype=np.int64) for side in (into, into.values()))
    assert ident[ended_in(ident, targets)].tolist() == list(home.values())
    for strange in (1, 61, 62, -1):
        with pytest.raises(ValueError, match="not there"):
            ended_in(ident, np.append(targets[:-1], strange))
