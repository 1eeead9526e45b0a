"""A town of twenty people, its honest release by brute force, and the frames of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anon_spark.model.hierarchy import Hierarchy

Row = tuple[Any, ...]
NAMES = ("age", "zip", "disease", "weight")
KINDS = (pa.int32(), pa.string(), pa.string(), pa.float64())
PUBLISHED = (pa.string(), pa.string(), pa.string(), pa.float64())
QUASI = ["age", "zip"]
KEPT = ["disease", "weight"]
ZIPS = ("13051", "13052", "13068", "14850")

# ages 20 to 24 and 25 to 29, three zip codes: classes of 6, 5, 4, 3 rows, and 2 that are suppressed for k = 3
PEOPLE: list[Row] = [
    *((20 + at % 5, "13051", ("flu", "cold", "asthma")[at % 3], 60.0 + at) for at in range(6)),
    *((25 + at % 5, "13052", "flu", 70.5 + at) for at in range(5)),
    *((21 + at % 3, "14850", ("flu", None)[at % 2], 80.25) for at in range(4)),
    *((26 + at, "14850", "cold", None) for at in range(3)),
    (22, "13068", "cold", 50.0),
    (23, "13068", "flu", 51.0),
]


def recoding(zip_level: int = 1) -> dict[str, tuple[Hierarchy, int]]:
    """Ages in fives, zip codes without their last digits: [20, 24] and 1305*."""
    return {"age": (Hierarchy.intervals(20, 29, [5]), 1), "zip": (Hierarchy.mask(ZIPS), zip_level)}


def recoded(rows: Sequence[Row], levels: Mapping[str, tuple[Hierarchy, int]]) -> list[Row]:
    """Every row with its quasi-identifiers climbed in plain Python; a row with an unseen value is left out."""
    published = []
    for row in rows:
        leaves = [None if value is None else h.leaf_of(value) for value, (h, _) in zip(row, levels.values(), strict=False)]
        if any(leaf is None and value is not None for leaf, value in zip(leaves, row, strict=False)):
            continue
        labels = [
            ("*" if level == h.height else None) if leaf is None else h.labels[level][int(h.codes[level, leaf])]
            for leaf, (h, level) in zip(leaves, levels.values(), strict=True)
        ]
        published.append((*labels, *row[len(labels) :]))
    return published


def honest(rows: Sequence[Row] = PEOPLE, k: int = 3) -> list[Row]:
    """The release: recoded, classes below k left out."""
    climbed = recoded(rows, recoding())
    sizes = Counter(row[:2] for row in climbed)
    return [row for row in climbed if sizes[row[:2]] >= k]


def frame(
    spark: SparkSession,
    rows: Sequence[Row],
    names: Sequence[str] = NAMES,
    kinds: Sequence[pa.DataType] = PUBLISHED,
    partitions: int | None = None,
) -> DataFrame:
    """A small frame of rows."""
    columns = [[row[at] for row in rows] for at in range(len(names))]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    made = spark.createDataFrame(pa.Table.from_arrays(arrays, names=list(names)))
    return made if partitions is None else made.repartition(partitions)


def town(spark: SparkSession, rows: Sequence[Row] = PEOPLE, partitions: int | None = None) -> DataFrame:
    """The source table."""
    return frame(spark, rows, NAMES, KINDS, partitions)
