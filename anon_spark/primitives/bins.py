"""Bins of numbers by Spark expressions, for columns with too many distinct values for a dictionary.

Numbers and borders are scaled by 10 ** BORDER_DIGITS and rounded down. So every comparison and division is between
whole numbers, exact for any number of digits. Which texts are numbers: docs/values.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import PREFIX, quoted
from anon_spark.engine import crossed, small_frame
from anon_spark.model.hierarchy import BinGrid
from anon_spark.model.hierarchy.values import BORDER_DIGITS, MAX_DIGITS, NUMBER

OUTSIDE = -1  # bin index of values that are no number of the domain
WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)

_SCALED = T.DecimalType(38, 0)
_BORDER = PREFIX + "border "
_PART = PREFIX + "part "
_SPELLED = r"\A" + NUMBER + r"\z"
_ZERO = "0"


def with_bins(df: DataFrame, grids: Mapping[str, BinGrid]) -> DataFrame:
    """Replace each value by the index of its bin, OUTSIDE if it has none; null and NaN become null. No action."""
    if not grids:
        return df
    kept = [F.col(quoted(name)) for name in df.columns if name not in grids]
    wide = crossed(df, _border_frame(df.sparkSession, grids))
    for at, name in enumerate(grids):
        if isinstance(df.schema[name].dataType, (T.FractionalType, T.StringType)):
            wide = _with_parts(wide, name, at)
    return wide.select(*kept, *(_index(wide, name, at, grid).alias(name) for at, (name, grid) in enumerate(grids.items())))


def _border_frame(spark: SparkSession, grids: Mapping[str, BinGrid]) -> DataFrame:
    """Start, stop and width of every grid as one row to join, so that no border is a literal in the plan."""
    borders = {
        f"{_BORDER}{part} {at}": pa.array([_scaled(getattr(grid, part))], pa.decimal128(38, 0))
        for at, grid in enumerate(grids.values())
        for part in ("start", "stop", "width")
    }
    return small_frame(spark, pa.table(borders))


def _scaled(border: Decimal) -> Decimal:
    return Decimal(int(Fraction(border) * 10**BORDER_DIGITS))


def _with_parts(df: DataFrame, name: str, at: int) -> DataFrame:
    """Append sign, digits (no zeros in front) and shift of a text: digits times ten to the shift is the scaled number.

    Null where the text is no number.
    """
    column, kind = F.col(quoted(name)), df.schema[name].dataType
    if isinstance(kind, T.FloatType):
        column = column.cast("double")
    text = F.make_valid_utf8(column.cast(T.StringType()))
    split = F.split(F.when(text.rlike(_SPELLED), F.regexp_replace(text, _SPELLED, "$1,$2,$3,$4")), ",")
    parts = df.withColumn(_part("text", at), split)
    sign, whole, fraction, exponent = (F.col(_part("text", at))[place] for place in range(4))
    power = F.when(exponent == "", F.lit(0)).otherwise(exponent.try_cast("int")) - F.length(fraction)
    digits = F.when(F.length(whole) + F.length(fraction) > 0, F.concat(whole, fraction))
    parts = parts.select(
        "*",
        sign.alias(_part("sign", at)),
        F.ltrim(digits, F.lit(_ZERO)).alias(_part("digits", at)),
        power.alias(_part("power", at)),
    )
    digits, power = F.col(_part("digits", at)), F.col(_part("power", at))
    kept = F.length(F.rtrim(digits, F.lit(_ZERO)))
    written = kept + F.abs(power + F.length(digits) - kept)  # digits of the plain spelling
    return parts.withColumn(_part("digits", at), F.when((kept == 0) | (written <= MAX_DIGITS), digits))


def _index(df: DataFrame, name: str, at: int, grid: BinGrid) -> Column:
    start, stop, width = (F.col(f"{_BORDER}{part} {at}") for part in ("start", "stop", "width"))
    column, kind = F.col(quoted(name)), df.schema[name].dataType
    there, exact = F.isnotnull(column), F.lit(True)
    if isinstance(kind, WHOLE):
        number = (column.cast("decimal(19,0)") * F.lit(Decimal(10**BORDER_DIGITS))).cast(_SCALED)
    elif isinstance(kind, (T.FractionalType, T.StringType)):
        number, exact = _floor(at)
        there = there & ~F.isnan(column) if isinstance(kind, (T.FloatType, T.DoubleType)) else there
    else:
        return F.when(there, F.lit(OUTSIDE).cast("bigint"))  # truth values, days and moments are no numbers
    inside = (number >= start) & ((number < stop) | ((number == stop) & exact))
    index = F.least(F.call_function("div", number - start, width), F.lit(grid.count - 1).cast("bigint"))
    return F.when(there, F.coalesce(F.when(inside, index), F.lit(OUTSIDE).cast("bigint")))


def _floor(at: int) -> tuple[Column, Column]:
    """The scaled number rounded down, and whether it was whole; null beyond all borders."""
    digits, shift = F.col(_part("digits", at)), F.col(_part("power", at)) + BORDER_DIGITS
    size = F.length(digits) + shift  # digits of the whole number
    head = F.substring(digits, F.lit(1), F.greatest(size, F.lit(0)))
    rest = F.rtrim(F.substring(digits, F.greatest(size, F.lit(0)) + 1, F.length(digits)), F.lit(_ZERO))
    filled = F.rpad(head, F.least(size, F.lit(2 * BORDER_DIGITS)), _ZERO)
    whole = F.when((digits == "") | (size <= 0), F.lit(_ZERO)).when(size <= 2 * BORDER_DIGITS, filled).try_cast(_SCALED)
    exact = F.length(rest) == 0
    below_zero = -whole - F.when(exact, F.lit(0)).otherwise(F.lit(1))
    return F.when(F.col(_part("sign", at)) == "-", below_zero.cast(_SCALED)).otherwise(whole), exact


def _part(part: str, at: int) -> str:
    return f"{_PART}{part} {at}"
