"""Frequent values before and after: counted by brute force, never a value of fewer than k rows or persons."""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anon_spark.columns import ROWS
from anon_spark.engine import small_frame
from anon_spark.families.crowds import crowds_to_be, frequent_items_to_be
from anon_spark.model.facts import LabelCount
from anon_spark.pending import together
from anon_spark.risk.look_up.frequent import frequent_values_to_be

K = 4


def table(rows: int, seed: int) -> pa.Table:
    draw = Random(seed)
    return pa.table(
        {
            "a b.c": [draw.choice(["x", "y", "z", None, ""]) for _ in range(rows)],
            "n": pa.array([draw.randint(0, 12) for _ in range(rows)], pa.int64()),
            "lists": [["i"]] * rows,
            "person": [draw.randint(0, rows // 3) for _ in range(rows)],
        }
    )


@pytest.mark.parametrize("small", [True, False])
def test_counts_are_those_of_brute_force(spark: SparkSession, small: bool) -> None:
    source, release = table(60, 1), table(50, 2)
    frames = (small_frame(spark, source), small_frame(spark, release))

    found = frequent_values_to_be(*frames, ["a b.c", "lists"], K, 3, only_after=["n"], small=small).get()

    assert set(found) == {"a b.c", "n"}  # a list is no value to be shown
    for name in found:
        texts = ([None if v is None else str(v) for v in side.column(name).to_pylist()] for side in (source, release))
        before, after = map(Counter, texts)
        order = sorted((v for v in after if after[v] >= K), key=lambda v: (-after[v], v is not None, v or ""))
        assert found[name] == [LabelCount(v, 0 if name == "n" else before[v], after[v]) for v in order[:3]]


def test_a_value_of_few_persons_is_not_named(spark: SparkSession) -> None:
    persons = [7 if at % 2 == 0 else at for at in range(20)]
    frame = small_frame(spark, pa.table({"v": ["one", "many"] * 10, "person": persons}))

    by_rows, by_persons = together(
        frequent_values_to_be(frame, frame, ["v"], K, 9), frequent_values_to_be(frame, frame, ["v"], K, 9, person="person")
    ).get()

    assert [count.label for count in by_rows["v"]] == ["many", "one"]
    assert by_persons["v"] == [LabelCount("many", 10, 10)]


def test_items_and_crowds(spark: SparkSession) -> None:
    rows: dict[str, list[list[str] | None]] = {
        "items": [["a", "b", "b"], ["a"], ["a", "c"], ["b"], []],
        "others": [None, ["b"], ["d", "d"], ["d"], []],
    }
    release = small_frame(spark, pa.table(rows))
    source = small_frame(spark, pa.table({"items": [["a"], ["b"], ["d"]]}))
    lists = [(source, [source["items"]]), (release, [release["items"], release["others"]])]
    tuples = small_frame(spark, pa.table({ROWS: pa.array([1, 1, 3, 4, 9], pa.int64())}))

    items, (by_size, alone) = together(frequent_items_to_be(lists, (1, 2), 2), crowds_to_be(tuples, 2)).get()

    assert items == [("a", (1, 3, 0)), ("b", (1, 2, 1)), ("d", (1, 0, 2))]
    assert by_size == {-1: 2, 0: 3, 1: 4, 2: 9} and alone == 2
