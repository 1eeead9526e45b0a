"""Classes of a new batch of rows that do not keep l distinct values or the models, whose rows are then left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import ROWS, quoted
from anon_spark.families.mst.frames import LABEL, VALUES
from anon_spark.families.mst.sensitive import counted_value
from anon_spark.model.guarantee.models import Models
from anon_spark.primitives.classes.sensitive import failing_classes, stored_values, text_columns


def in_diverse_classes(released: DataFrame, names: Sequence[str], least: Mapping[str, int]) -> DataFrame:
    """The rows of classes with enough values of the sensitive columns. names: of the labels; least: values by column.

    Cost: one shuffle of (class, value) pairs.
    """
    values = [counted_value(released, name).alias(f"{VALUES}{at}") for at, name in enumerate(least)]
    classes = released.select(*map(quoted, names), *values).groupBy(*map(quoted, names))
    counts = [
        (F.count_distinct(value) + F.max(F.isnull(value).cast("long"))).alias(value)
        for value in (f"{VALUES}{at}" for at in range(len(values)))
    ]
    enough = reduce(and_, (F.col(f"{VALUES}{at}") >= most for at, most in enumerate(least.values())))
    diverse = classes.agg(*counts).where(enough)
    same = [F.col("t." + quoted(name)).eqNullSafe(F.col("c." + quoted(name))) for name in names]
    return released.alias("t").join(diverse.alias("c"), same, "left_semi")


def failing_labels(labelled: DataFrame, names: Sequence[str], models: Models, df: DataFrame) -> DataFrame:
    """The labels of classes that fail a model. labelled: all rows in scope, by whose values shares are counted.

    Cost: one job for the values of the sensitive columns; then, lazily, three shuffles of (class, value) pairs.
    """
    keys = [f"{LABEL}{at}" for at in range(len(names))]  # names that need no quotes
    labels = [F.col(quoted(name)).alias(key) for name, key in zip(names, keys, strict=True)]
    rows = labelled.select(*labels, F.lit(1).cast("bigint").alias(ROWS), *text_columns(df, models))
    values, columns = stored_values(rows, keys, models, df)
    failing = failing_classes(values, keys, columns)
    return failing.select(*(F.col(key).alias(name) for name, key in zip(names, keys, strict=True)))
