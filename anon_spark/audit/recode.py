"""The audit's own recoding: distinct source values climb a hierarchy through joins built here from the bare hierarchy.

Nothing is shared with the code that makes the release. A value finds its leaf as `Hierarchy.leaf_of` defines it, by
Spark expressions: numbers as exact decimals, days as ISO text, everything else byte by byte. Keys, labels and bin
borders travel as joined frames, never as literals of a plan.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from anon_spark.audit.values import private
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy

KEPT, NULL, UNSEEN = 0, 1, 2  # bits of a tuple's status: nothing wrong, holds a null, holds an unseen value

_NUMBER = DecimalType(38, 18)
_BORDER = DecimalType(36, 18)  # two digits less: the difference of two of them is exact
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9].*)?$"
_KEY, _LABEL, _KNOWN = private("key"), private("label"), private("known")
_START, _STOP, _WIDTH, _LAST = private("start"), private("stop"), private("width"), private("last")


def is_null(value: Column, kind: DataType) -> Column:
    """Whether a value is missing: null, or NaN in a floating column."""
    return F.isnull(value) | F.isnan(value) if isinstance(kind, (DoubleType, FloatType)) else F.isnull(value)


def with_label(frame: DataFrame, raw: str, label: str, status: str, hierarchy: Hierarchy, level: int) -> DataFrame:
    """Append `label`, the value of `raw` climbed to `level`, and set the bit NULL or UNSEEN of `status` where it has none.

    A null keeps the null label below the top and becomes the root label there; what its bit means, the caller decides.
    Guarantee: one row in, one row out; `raw` is consumed. Cost: one broadcast join with the hierarchy; no action.
    """
    if not 0 <= level <= hierarchy.height:
        raise ConfigurationError(f"Level {level} does not exist: the hierarchy has levels 0 to {hierarchy.height}.")
    kind = frame.schema[raw].dataType
    value = F.col(raw)
    missing = is_null(value, kind)
    names = hierarchy.labels[level]
    codes = hierarchy.codes[level]
    top = F.lit(hierarchy.labels[level][0]) if level == hierarchy.height else F.lit(None).cast("string")

    if hierarchy.kind == "bins":
        frame, key = _bin(frame, value, kind, hierarchy)
        keys: list[tuple[Any, int]] = [(leaf, leaf) for leaf in range(len(hierarchy.keys))]
        key_type: pa.DataType = pa.int64()
    elif hierarchy.kind == "number" or (hierarchy.kind == "text" and isinstance(kind, NumericType)):
        numbers = [(Decimal(text), leaf) for text, leaf in hierarchy.dictionary(True)]
        if isinstance(kind, IntegralType):
            key, key_type = value.cast("long"), pa.int64()
            keys = [(int(number), leaf) for number, leaf in numbers if number == int(number) and abs(number) < 2**63]
        else:
            key, key_type = _number(value, kind), pa.decimal128(38, 18)
            keys = [(number, leaf) for number, leaf in numbers if _fits(number)]
    else:
        key, key_type = (_day(value, kind) if hierarchy.kind == "date" else value.cast(StringType())), pa.string()
        keys = list(hierarchy.dictionary(False))

    known = frame.sparkSession.createDataFrame(
        pa.table(
            {
                _KEY: pa.array([found for found, _ in keys], key_type),
                _LABEL: pa.array([names[codes[leaf]] for _, leaf in keys], pa.string()),
                _KNOWN: pa.array([True] * len(keys), pa.bool_()),
            }
        )
    )
    key_of_row = private("key_of_row")
    joined = frame.withColumn(key_of_row, key).join(F.broadcast(known), F.col(key_of_row) == F.col(_KEY), "left")
    fault = F.when(missing, F.lit(NULL)).when(F.isnull(_KNOWN), F.lit(UNSEEN)).otherwise(F.lit(KEPT))
    kept = [F.col(name) for name in frame.columns if name not in (raw, status, _START, _STOP, _WIDTH, _LAST)]
    return joined.select(*kept, F.when(missing, top).otherwise(F.col(_LABEL)).alias(label), F.col(status).bitwiseOR(fault).alias(status))


def _fits(number: Decimal) -> bool:
    """Whether a number is a decimal(38, 18) without rounding."""
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -18 and abs(number) < Decimal(10) ** 20


def _plain(value: Column, kind: DataType) -> Column:
    """A number or text in the form Spark reads as an exact decimal: a float as the double it stands for."""
    if isinstance(kind, FloatType):
        return value.cast("double")
    return value.cast(StringType()) if isinstance(kind, StringType) else value


def _number(value: Column, kind: DataType) -> Column:
    """A value as an exact decimal; null when it is no number or has more digits than the type."""
    if not isinstance(kind, (NumericType, StringType)):
        return F.lit(None).cast(_NUMBER)
    plain = _plain(value, kind)
    number = plain.try_cast(_NUMBER)
    # a rounded value is another value: what differs as a double has lost digits
    return F.when(number.cast("double") == plain.try_cast("double"), number)


def _day(value: Column, kind: DataType) -> Column:
    """The calendar day a value shows, as ISO text; null when it is none."""
    if isinstance(kind, (DateType, TimestampType, TimestampNTZType)):
        return value.cast("date").cast("string")
    if isinstance(kind, StringType):
        text = value.cast(StringType())
        return F.when(text.rlike(_DAY), F.substring(text, 1, 10))
    return F.lit(None).cast("string")


def _bin(frame: DataFrame, value: Column, kind: DataType, hierarchy: Hierarchy) -> tuple[DataFrame, Column]:
    """The number of the half-open bin a value falls in, by exact decimal division; the last bin is closed."""
    grid = hierarchy.bins
    if grid is None:
        raise ConfigurationError("The hierarchy is of kind bins but carries no bins. Build it with Hierarchy.intervals.")
    borders = pa.table(
        {
            _START: pa.array([grid.start], pa.decimal128(36, 18)),
            _STOP: pa.array([grid.stop], pa.decimal128(36, 18)),
            _WIDTH: pa.array([grid.width], pa.decimal128(36, 18)),
            _LAST: pa.array([grid.count - 1], pa.int64()),
        }
    )
    number = private("number")
    known = isinstance(kind, (NumericType, StringType))
    frame = frame.crossJoin(F.broadcast(frame.sparkSession.createDataFrame(borders)))
    as_number = _plain(value, kind).try_cast(_BORDER) if known else F.lit(None).cast(_BORDER)
    offset = F.expr(f"(`{number}` - `{_START}`) div `{_WIDTH}`")
    inside = (F.col(number) >= F.col(_START)) & (F.col(number) <= F.col(_STOP))
    return frame.withColumn(number, as_number), F.when(inside, F.least(offset, F.col(_LAST)))
