"""Sensitive values, counted: of a whole table, and by class of a release.

Null is a value, one and the same with NaN; 0.0 is -0.0; texts that their collation holds equal are one value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, DoubleType, FloatType

from anon_spark.auditing.reading.spread import UNKNOWN, Whole
from anon_spark.auditing.reading.values import exact, not_comparable, plain_type, private, quoted
from anon_spark.columns import ROWS
from anon_spark.engine import beside, gathered, runs_in_one_task, small_frame
from anon_spark.errors import ConfigurationError, LimitExceeded
from anon_spark.model.guarantee.models import MOST_VALUES

POSITION, VALUE, ENTRIES = private("position"), private("value_"), private("entries")  # VALUE: + position of the column
NUMBER = private("number")  # of a value, among those of its column

_KNOWN = private("known_")


@dataclass(frozen=True)
class WholeValues:
    """The distinct values of sensitive columns in a whole table, ascending by column and value, null last, with their rows.

    table: POSITION of the column, its value (VALUE + position; the other columns are null), ROWS.
    """

    columns: tuple[str, ...]
    kinds: tuple[DataType, ...]
    table: pa.Table

    def of(self, position: int) -> pa.Table:
        """The rows of one column."""
        return self.table.filter(pc.equal(self.table[POSITION], pa.scalar(position, pa.int32())))

    def whole(self, position: int) -> Whole:
        """The spread of one column; the numbers of its values are their places."""
        return Whole(self.of(position)[ROWS].to_numpy().astype(np.int64))

    def numbered(self) -> pa.Table:
        """The table with the number of each value."""
        numbers = [np.arange(self.of(position).num_rows) for position in range(len(self.columns))]
        return self.table.append_column(NUMBER, pa.array(np.concatenate(numbers), pa.int32()))


def whole_values(frame: DataFrame, columns: Sequence[str], kinds: Sequence[DataType]) -> WholeValues:
    """Count the values of sensitive columns. kinds: their types in the release, which decide what is equal.

    Guarantee: at most MOST_VALUES values of each column, else LimitExceeded.
    Cost: one job, one shuffle of distinct values, each row once per column before map-side aggregation; the values reach the
    driver, and are in no plan.
    """
    counted = _counted(gathered(frame, runs_in_one_task()), [], columns, kinds)
    values = [F.col(f"{VALUE}{at}").cast(plain_type(kind)).alias(f"{VALUE}{at}") for at, kind in enumerate(kinds)]
    order = [F.asc_nulls_last(f"{VALUE}{at}") for at in range(len(kinds))]
    limited = counted.select(POSITION, *values, ROWS).orderBy(POSITION, *order).limit(len(kinds) * MOST_VALUES + 1)
    found = WholeValues(tuple(columns), tuple(kinds), limited.toArrow())
    for position, name in enumerate(columns):
        if found.of(position).num_rows > MOST_VALUES:
            raise LimitExceeded(
                f"Column {name} has more than {MOST_VALUES} distinct values, too many for a model of attribute disclosure. "
                "Bin it first: numbers by intervals, dates by month or year, texts by a coarser code.",
                most=MOST_VALUES,
            )
    return found


def class_entries(release: DataFrame, quasi: Sequence[str], values: WholeValues) -> DataFrame:
    """One row per class and sensitive column: the published values (`key_column`), POSITION, and ENTRIES, a list of
    (number of a value, rows).

    Guarantee: classes are told apart as `published_classes` does. A value that the whole table lacks has the number UNKNOWN.
    Cost: two shuffles of distinct pairs (class, value), each row once per column before map-side aggregation; one broadcast.
    """
    counted = _counted(gathered(release, runs_in_one_task()), quasi, values.columns, values.kinds)
    known = small_frame(release.sparkSession, values.numbered()).select(
        F.col(POSITION).alias(f"{_KNOWN}{POSITION}"),
        *(F.col(f"{VALUE}{at}").cast(kind).alias(f"{_KNOWN}{at}") for at, kind in enumerate(values.kinds)),
        NUMBER,
    )
    same = [F.col(f"{VALUE}{at}").eqNullSafe(F.col(f"{_KNOWN}{at}")) for at in range(len(values.kinds))]
    joined = counted.join(beside(known), reduce(and_, same, F.col(POSITION) == F.col(f"{_KNOWN}{POSITION}")), "left")
    entry = F.struct(F.coalesce(NUMBER, F.lit(UNKNOWN)).alias(NUMBER), F.col(ROWS))
    keys = [key_column(at) for at in range(len(quasi))]
    return joined.groupBy(*keys, POSITION).agg(F.collect_list(entry).alias(ENTRIES))


def key_column(at: int) -> str:
    """The name of a published value in `class_entries`."""
    return private(f"key_{at}")


def countable(frame: DataFrame, name: str) -> DataType:
    """The type of a sensitive column; raises if its values have no equality, or Arrow no type for them."""
    kind = frame.schema[name].dataType
    counted_value(frame, name)
    try:
        to_arrow_type(plain_type(kind))
    except PySparkTypeError:
        raise ConfigurationError(f"Column {name}: values of type {kind.simpleString()} cannot be counted. Cast it.") from None
    return kind


def counted_value(frame: DataFrame, name: str, kind: DataType | None = None) -> Column:
    """A sensitive value as it is counted: NaN as null. kind: the type that says what is equal, default the column's."""
    there, value = frame.schema[name].dataType, F.col(quoted(name))
    kind = there if kind is None else kind
    if not_comparable(kind):
        raise ConfigurationError(f"Column {name}: a map or variant has no equality to count by. Turn it into an array or a text.")
    if kind != there:
        value = value.cast(kind)
    return F.when(~F.isnan(value), value) if isinstance(kind, (DoubleType, FloatType)) else value


def _counted(frame: DataFrame, quasi: Sequence[str], columns: Sequence[str], kinds: Sequence[DataType]) -> DataFrame:
    """ROWS by class, POSITION of a sensitive column, and its value; the values of the other columns are null."""
    names = [f"{VALUE}{at}" for at in range(len(columns))]
    keys = [exact(frame, name).alias(key_column(at)) for at, name in enumerate(quasi)]
    values = [counted_value(frame, name, kind).alias(at) for name, kind, at in zip(columns, kinds, names, strict=True)]
    positions = F.explode(F.array(*(F.lit(at) for at in range(len(columns))))).alias(POSITION)
    each = [F.when(F.col(POSITION) == at, F.col(name)).alias(name) for at, name in enumerate(names)]
    shown = [key_column(at) for at in range(len(quasi))]
    cells = frame.select(*keys, *values, positions).select(*shown, POSITION, *each)
    return cells.groupBy(*shown, POSITION, *names).agg(F.count(F.lit(1)).alias(ROWS))
