"""The grammar of numbers and days in docs/values.md, in the audit's own Spark expressions.

Nothing is shared with the Python code by which a family reads values (model/hierarchy/values.py): the corpus in
tests/auditing/reading/test_spelling.py holds both to the same answers.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    FloatType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

DECIMALS = 18  # of a border of bins; as many digits stand before its point at most
BORDER = DecimalType(2 * DECIMALS, DECIMALS)

_SPACE = r"[ \t\n\x0B\f\r]*"
_NUMBER = rf"\A{_SPACE}([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{{1,6}}))?{_SPACE}\z"
_CANONICAL = r"\A-?(0|[1-9][0-9]{0,99})(\.[0-9]{0,99}[1-9])?\z"  # nearly every text is spelled so
_DAY = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9][ -~]*)?\z"
_MOST_DIGITS = 400
FLOOR, BEYOND = "floor", "beyond"
_SIGN, _DIGITS, _FRACTION, _POWER = "sign", "digits", "fraction", "power"


def plain_text(value: Column, kind: DataType) -> Column:
    """A value as text, compared byte by byte; invalid UTF-8 becomes U+FFFD."""
    text = value.cast(StringType())
    return F.make_valid_utf8(text) if isinstance(kind, StringType) else text


def number_text(value: Column, kind: DataType) -> Column:
    """The one plain spelling of the number a value is ('33' for 33.00 and 3.3e1), null if it is none.

    Guarantee: exact, nothing is rounded; a float is the double it equals, a double the decimal it is printed as.
    Cost: one regular expression for a plain spelling, five more for another.
    """
    if not isinstance(kind, (NumericType, StringType)):
        return F.lit(None).cast("string")
    return _let(plain_text(value.cast("double") if isinstance(kind, FloatType) else value, kind), _respelled)


def floor_of(number: Column) -> Column:
    """The floor of a plain spelling, for bins: struct of FLOOR, the number cut down to DECIMALS, and whether it lies BEYOND that.

    FLOOR is null where the number has more digits before the point than any border has.
    """
    return _let(number, _floored)


def _let(value: Column, then: Callable[[Column], Column]) -> Column:
    """`then` of a value that is computed once: else Spark repeats the expression at each use, and plans explode."""
    return F.transform(F.array(value), then)[0]


def _respelled(text: Column) -> Column:
    def part(group: int) -> Column:
        return F.regexp_extract(text, _NUMBER, group)

    exponent = F.coalesce(F.nullif(part(4), F.lit("")).try_cast("int"), F.lit(0))
    parts = F.struct(
        part(1).alias(_SIGN), F.concat(part(2), part(3)).alias(_DIGITS), (exponent - F.length(part(3))).alias(_POWER)
    )
    is_plain = text.rlike(_CANONICAL) & (text != "-0")
    return F.when(is_plain, text).when(text.rlike(_NUMBER), _let(parts, _assembled))


def _assembled(parts: Column) -> Column:
    """The number of a sign, digits and a power of ten, without zeros at the ends of the digits."""
    digits, zero = parts[_DIGITS], F.lit("0")
    kept = F.rtrim(F.ltrim(digits, zero), zero)
    trailing = F.length(digits) - F.length(F.rtrim(digits, zero))
    trimmed = F.struct(parts[_SIGN].alias(_SIGN), kept.alias(_DIGITS), (parts[_POWER] + trailing).alias(_POWER))
    # a sign, a point or an exponent alone is no number
    return F.when(F.length(digits) > 0, _let(trimmed, _written))


def _written(parts: Column) -> Column:
    digits, power = parts[_DIGITS], parts[_POWER]
    size, none = F.length(digits), F.lit(0)
    whole = F.concat(digits, F.repeat(F.lit("0"), F.greatest(none, power)))
    mixed = F.concat(F.substring(digits, F.lit(1), size + power), F.lit("."), F.substring(digits, size + power + 1, size))
    small = F.concat(F.lit("0."), F.repeat(F.lit("0"), F.greatest(none, -power - size)), digits)
    written = F.when(power >= 0, whole).when(size + power > 0, mixed).otherwise(small)
    signed = F.concat(parts[_SIGN], written)
    return F.when(size == 0, F.lit("0")).when(size + F.abs(power) <= _MOST_DIGITS, F.ltrim(signed, F.lit("+")))


def _floored(number: Column) -> Column:
    point = F.instr(number, ".")
    fraction = F.when(point > 0, F.substring(number, point + 1, F.length(number))).otherwise(F.lit(""))
    whole = F.substring_index(F.ltrim(number, F.lit("-")), ".", 1)
    return _let(F.struct(F.startswith(number, F.lit("-")).alias(_SIGN), whole.alias(_DIGITS), fraction.alias(_FRACTION)), _cut)


def _cut(parts: Column) -> Column:
    whole, fraction = parts[_DIGITS], parts[_FRACTION]
    cut = F.concat(whole, F.lit("."), F.rpad(F.substring(fraction, 1, DECIMALS), DECIMALS, "0"))
    nearer_zero = F.when(F.length(whole) <= DECIMALS, cut).try_cast(BORDER)
    more = F.length(fraction) > DECIMALS
    step = F.when(more, F.lit("0." + "0" * (DECIMALS - 1) + "1")).otherwise(F.lit("0")).cast(BORDER)
    floor = F.when(parts[_SIGN], (-nearer_zero - step).try_cast(BORDER)).otherwise(nearer_zero)
    return F.struct(floor.alias(FLOOR), more.alias(BEYOND))


def day_text(value: Column, kind: DataType) -> Column:
    """The calendar day a value shows, as ISO text; null when it shows none."""
    if isinstance(kind, (DateType, TimestampType, TimestampNTZType)):
        return value.cast("date").cast("string")
    if isinstance(kind, StringType):
        text = plain_text(value, kind)
        return F.when(text.rlike(_DAY), F.substring(text, 1, 10))
    return F.lit(None).cast("string")
