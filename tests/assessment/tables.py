"""Small tables for the tests of assessments."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

GOLDEN = [
    ("A", 4, "flu"), ("A", 4, "flu"), ("A", 3, "cold"), ("A", 5, "hiv"),
    ("B", 6, "flu"), ("B", 11, "cold"), ("B", 8, "cold"), ("B", 8, "cold"), ("B", 6, "flu"),
    ("C", 7, "hiv"), ("C", 9, "flu"), ("C", 10, "flu"),
]  # fmt: skip

QUASI = ["age", "sex", "zip.code", "`job`"]  # names that Spark's parser would take apart
SENSITIVE = ["salary", "disease"]
SCHEMA = "person string, age int, sex string, `zip.code` string, ```job``` double, salary int, disease string"


def golden(spark: SparkSession, partitions: int = 1) -> DataFrame:
    """The 12 rows of the specification."""
    return spark.createDataFrame(GOLDEN, "class string, salary int, disease string").repartition(partitions)


def people(seed: int, rows: int = 60, nulls: float = 0.1) -> list[tuple[Any, ...]]:
    """Rows of SCHEMA: persons with one to three rows, and nulls in every column but the person's."""
    draw = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if draw.random() < nulls else value

    made = []
    for at in range(rows):
        person = f"p{draw.randrange(rows) if at % 3 == 0 else at}"
        quasi = (draw.choice([20, 20, 30, 40, 50]), draw.choice("fm"), draw.choice("abcdefg"), draw.choice([1.5, 2.5, 0.0]))
        salary, disease = draw.choice([10, 20, 20, 30]), draw.choice(["flu", "cold", "hiv"])
        made.append((person, *map(maybe, (*quasi, salary, disease))))
    return made


def frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]], partitions: int = 2) -> DataFrame:
    return spark.createDataFrame(list(rows), SCHEMA).repartition(partitions)
