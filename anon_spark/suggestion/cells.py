"""Every value of a table as a text with the place it comes from, also the values inside structs and arrays.

So all columns are profiled by one aggregation, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import PREFIX, quoted

PLACE, TEXT = PREFIX + "place", PREFIX + "text"
UNREADABLE = (T.BinaryType, T.MapType, T.VariantType, T.NullType, T.CalendarIntervalType, T.DayTimeIntervalType)


@dataclass(frozen=True)
class Leaf:
    """A column, or a field inside one. path: dotted from the column on; arrays: how many arrays lie around it."""

    path: tuple[str, ...]
    kind: T.DataType
    arrays: int = 0

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def is_column(self) -> bool:
        """Whether it is a plain column: no array, no struct around it."""
        return len(self.path) == 1 and not self.arrays

    @property
    def is_items(self) -> bool:
        """Whether it is a column that is an array of plain values."""
        return len(self.path) == 1 and self.arrays == 1

    @property
    def is_readable(self) -> bool:
        return not isinstance(self.kind, UNREADABLE)


def leaves_of(schema: T.StructType) -> list[Leaf]:
    """All leaves of a table, in their order."""
    return [leaf for field in schema.fields for leaf in _below((field.name,), field.dataType, 0)]


def _below(path: tuple[str, ...], kind: T.DataType, arrays: int) -> Iterator[Leaf]:
    if isinstance(kind, T.ArrayType):
        yield from _below(path, kind.elementType, arrays + 1)
    elif isinstance(kind, T.StructType):
        for field in kind.fields:
            yield from _below((*path, field.name), field.dataType, arrays)
    else:
        yield Leaf(path, kind, arrays)


def cells(df: DataFrame, leaves: list[Leaf]) -> DataFrame:
    """PLACE (number of the leaf) and TEXT of every value; a value inside an empty array does not exist. No action."""
    parts = [
        _cells(F.col(quoted(leaf.path[0])), df.schema[leaf.path[0]].dataType, leaf.path[1:], place)
        for place, leaf in enumerate(leaves)
        if leaf.is_readable
    ]
    every = parts[0] if len(parts) == 1 else F.concat(*parts)
    return df.select(F.explode(every).alias(TEXT)).select(f"{TEXT}.*")


def _cells(value: Column, kind: T.DataType, path: tuple[str, ...], place: int) -> Column:
    """The values at a path as an array of (PLACE, TEXT)."""
    if isinstance(kind, T.ArrayType):
        inner = kind.elementType
        each = F.transform(F.filter(value, lambda element: element.isNotNull()), _step(inner, path, place))
        return F.coalesce(F.flatten(each), _none())
    if isinstance(kind, T.StructType):
        field = kind[path[0]]
        return _cells(value.getField(path[0]), field.dataType, path[1:], place)
    return F.array(F.struct(F.lit(place).alias(PLACE), _text(value, kind).alias(TEXT)))


def _step(kind: T.DataType, path: tuple[str, ...], place: int) -> Callable[[Column], Column]:
    return lambda element: _cells(element, kind, path, place)


def _none() -> Column:
    return F.expr(f"array_repeat(named_struct('{PLACE}', 0, '{TEXT}', CAST(NULL AS STRING)), 0)")


def _text(value: Column, kind: T.DataType) -> Column:
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return F.when(~F.isnan(value), (value + F.lit(0.0)).cast("string"))
    if isinstance(kind, T.StringType):
        return F.make_valid_utf8(F.collate(value, "UTF8_BINARY") if kind.collation != "UTF8_BINARY" else value)
    return value.cast("string")
