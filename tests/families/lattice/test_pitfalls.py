"""Faults seen in published anonymization software, each on a table made for it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark import Hierarchy, LatticeAnonymizer
from anon_spark.errors import DataError
from anon_spark.model.hierarchy import Rule
from anon_spark.primitives.ordering import key_frame, shuffled


def counted(release: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in release.collect())


def test_pitfall_3_nan_is_one_class_with_and_without_a_constant_column(spark: SparkSession) -> None:
    table = spark.createDataFrame(pa.table({"x": [1.0, 1.0, 1.0, float("nan")], "same": ["c"] * 4}))
    flat: dict[str, Hierarchy | Rule] = {name: Hierarchy.from_levels([(v, "*")]) for name, v in (("x", "1"), ("same", "c"))}
    both = LatticeAnonymizer(k=2, quasi_identifiers=flat).fit(table)
    alone = LatticeAnonymizer(k=2, quasi_identifiers={"x": flat["x"]}).fit(table)
    assert [(point.node, point.k) for point in both.points] == [((1, 0), 4)]  # the lone NaN forbids level 0
    assert [(point.node, point.k) for point in alone.points] == [((1,), 4)]


def test_pitfalls_4_8_10_13_19_classes_are_told_apart_and_exactly_k_is_enough(spark: SparkSession) -> None:
    """Texts that look like null, parts that join to the same text, edges of intervals; every class has exactly k rows."""
    one = [None, "NULL", "null", "", "2147483646", "a:b", "a", "*"]
    edges = {"[-15, -11]": (-15, -13, -11), "[-10, -6]": (-10, -8, -6), "[20, 24]": (20, 22, 24), "[25, 29]": (25, 29, 29)}
    classes = [(text, "c" if text == "a:b" else "b:c", span) for text in one for span in edges]
    rows = [(text, two, number) for text, two, span in classes for number in edges[span]]
    table = spark.createDataFrame(rows, "one string, two string, number int").repartition(3)
    trees: dict[str, Hierarchy | Rule] = {
        "one": Hierarchy.from_levels([(text, f"group of {text}") for text in one if text]),
        "two": Hierarchy.from_levels([("c", "*"), ("b:c", "*")]),
        "number": Hierarchy.intervals(-15, 29, [5, 15]),
    }
    recoding = LatticeAnonymizer(
        k=3, quasi_identifiers=trees, choose={"node": [0, 0, 1]}, on_unseen="suppress"
    ).fit(table)  # fmt: skip
    kept = [label for label in classes if label[0] != ""]  # the empty text is an unseen value, not a null
    assert (recoding.k, recoding.chosen.suppressed, recoding.chosen.classes) == (3, 0, len(kept))
    assert counted(recoding.transform(table)) == Counter(dict.fromkeys(kept, 3))


def test_pitfall_5_a_table_smaller_than_k_is_refused_and_nothing_stays_behind(
    spark: SparkSession, workdir: Path
) -> None:
    table = spark.createDataFrame(pa.table({"x": ["a", "a"]}))
    with pytest.raises(DataError, match="k = 5 is more than the 2 rows"):
        flat = Hierarchy.from_levels([("a", "*")])
        LatticeAnonymizer(k=5, quasi_identifiers={"x": flat}, workdir=str(workdir)).fit(table)
    assert list(workdir.iterdir()) == []


def test_pitfall_11_a_mask_made_of_some_values_masks_others_too_in_the_fit_and_later(spark: SparkSession) -> None:
    """The domain of a mask is every text of its length: fit and transform must not disagree about a value."""
    table = spark.createDataFrame(pa.table({"zip": ["11", "11", "12", "12", "31", "31", "315"]}))
    some = Hierarchy.mask(["11", "12"])
    recoding = LatticeAnonymizer(k=2, quasi_identifiers={"zip": some}, on_unseen="suppress").fit(table)
    assert recoding.statistics.rows == 6  # the longer one is outside the domain
    assert counted(recoding.transform(table)) == Counter({("11",): 2, ("12",): 2, ("31",): 2})


def test_pitfall_17_order_depends_on_content_and_key_alone(spark: SparkSession) -> None:
    """Also where Spark takes different texts for equal, as 'a' and 'A' under a collation."""
    rows = [(n % 5, "aA"[n % 2], n % 3) for n in range(60)]
    columns = ["q", "s", "w"]

    def ordered(content: list[tuple[int, str, int]], key: str, partitions: int) -> list[tuple[Any, ...]]:
        frame = spark.createDataFrame(pa.table(dict(zip(columns, zip(*content, strict=True), strict=True))))
        frame = frame.withColumn("s", F.collate("s", "UTF8_LCASE")).repartition(partitions)
        return [tuple(row) for row in shuffled(frame, key_frame(spark, key), columns).collect()]

    one = ordered(rows, "Zqkey", 2)
    assert ordered(rows[::-1], "Zqkey", 7) == one
    assert ordered(rows, "another key", 2) != one
    assert sorted(one) == sorted(rows)
    assert one not in (rows, sorted(rows))
