"""Hierarchies of sensitive columns: what stands for each value on each level, looked up by the audit's own recoding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing.reading.completion import completed
from anon_spark.auditing.reading.recode import KEPT, UNSEEN, Climb, with_codes
from anon_spark.auditing.reading.sensitive import NUMBER, POSITION, VALUE, WholeValues
from anon_spark.auditing.reading.spread import Ints
from anon_spark.auditing.reading.values import plain_type, private
from anon_spark.columns import ROWS
from anon_spark.engine import small_frame
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.model.hierarchy import Hierarchy, Rule


def levels_of(
    spark: SparkSession, values: WholeValues, trees: Sequence[tuple[int, Hierarchy | Rule]]
) -> list[Ints]:
    """For each tree an array [level, value number], without the top level: equal numbers are one label.

    trees: position of a sensitive column, and its hierarchy.
    Guarantee: a rule is built from the values of the whole table. Null is a leaf directly below the root. A value that its
    hierarchy does not know is a DataError.
    Cost: none without trees; else one job, and two for each rule, on at most MOST_VALUES values per column.
    """
    if not trees:
        return []
    for at in {position for position, _ in trees}:
        if plain_type(values.kinds[at]) != values.kinds[at]:
            raise ConfigurationError(
                f"Column {values.columns[at]} has a collation: texts that it holds equal may have different places in a "
                "hierarchy. Cast it to a plain text."
            )
    table = small_frame(spark, values.numbered())
    hierarchies = [_complete(table, position, values.columns[position], tree) for position, tree in trees]
    raw, leaf, status = ([private(f"{what}_{at}") for at in range(len(trees))] for what in ("raw", "leaf", "status"))
    climbed = with_codes(
        table.select(
            POSITION,
            NUMBER,
            ROWS,
            *(F.col(f"{VALUE}{position}").alias(raw[at]) for at, (position, _) in enumerate(trees)),
            *(F.lit(KEPT).alias(name) for name in status),
        ),
        [Climb(raw[at], leaf[at], hierarchy, 0, status[at]) for at, hierarchy in enumerate(hierarchies)],
    )
    rows = climbed.collect()
    return [
        _levels(rows, position, values.columns[position], hierarchies[at], leaf[at], status[at])
        for at, (position, _) in enumerate(trees)
    ]


def _complete(table: DataFrame, position: int, name: str, tree: Hierarchy | Rule) -> Hierarchy:
    column = table.where(F.col(POSITION) == position).select(F.col(f"{VALUE}{position}").alias(name))
    return completed(column, {name: tree}, "value")[name]


def _levels(rows: Sequence[Row], position: int, name: str, hierarchy: Hierarchy, leaf: str, status: str) -> Ints:
    of_column = sorted((row for row in rows if row[POSITION] == position), key=lambda row: int(row[NUMBER]))
    unseen = [row for row in of_column if row[status] & UNSEEN]
    if unseen:
        raise DataError(
            f"Column {name}: the hierarchy of its distance does not know {len(unseen)} values, in "
            f"{sum(row[ROWS] for row in unseen)} rows. Add them.",
            values=len(unseen),
            rows=sum(row[ROWS] for row in unseen),
        )
    leaves = np.array([row[leaf] for row in of_column], dtype=np.int64)
    # a null has the leaf -1: the last column, with a label of its own on every level
    below_top = [np.append(hierarchy.codes[level], hierarchy.cardinality(level)) for level in range(hierarchy.height)]
    return np.array([labels[leaves] for labels in below_top], dtype=np.int64).reshape(len(below_top), leaves.size)
