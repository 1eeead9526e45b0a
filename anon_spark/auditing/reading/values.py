"""Columns as the audit reads them: by quoted name, byte for byte, and hashed with null as a value."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from anon_spark.columns import PREFIX
from anon_spark.errors import ConfigurationError, did_you_mean

LO, HI = "lo", "hi"  # the fields of a published range

_AS_TEXT = {  # how nested values become JSON: every null, every digit, the same text in every session
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def quoted(name: str) -> str:
    """A column name that Spark takes literally, dots and backticks included."""
    return "`" + name.replace("`", "``") + "`"


def private(name: str) -> str:
    """A name no user column can have."""
    return PREFIX + name


def require_columns(frame: DataFrame, names: Sequence[str], where: str) -> None:
    """Raise one ConfigurationError that names all columns a frame lacks. Cost: none, reads the schema."""
    missing = [name for name in names if name not in frame.columns]
    if missing:
        hints = ", ".join(f"{name}.{did_you_mean(name, frame.columns)}" for name in missing)
        raise ConfigurationError(f"Columns not found in the {where}: {hints}", missing=len(missing))


def plain_type(kind: DataType) -> DataType:
    """A type without collations: texts are compared byte by byte."""
    if isinstance(kind, StringType):
        return StringType()
    if isinstance(kind, ArrayType):
        return ArrayType(plain_type(kind.elementType), kind.containsNull)
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, plain_type(f.dataType), f.nullable) for f in kind.fields])
    return kind


def shape(kind: DataType) -> DataType:
    """A type without metadata and without what it says of nulls: two columns of one shape hold the same values."""
    if isinstance(kind, ArrayType):
        return ArrayType(shape(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(shape(kind.keyType), shape(kind.valueType))
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, shape(field.dataType)) for field in kind.fields])
    return kind


def exact(frame: DataFrame, name: str) -> Column:
    """A column in which two values are equal only when they are the same bytes.

    Guarantee: a collated text ('a' = 'A') is compared as UTF8_BINARY, also inside arrays and structs: a reader of the
    release tells them apart, so they are two classes. A name that the frame lacks raises.
    """
    if name not in frame.schema.names:
        raise ConfigurationError(f"Columns not found: {name}.{did_you_mean(name, frame.columns)}")
    kind = frame.schema[name].dataType
    plain = plain_type(kind)
    return F.col(quoted(name)) if plain == kind else F.col(quoted(name)).cast(plain)


def hashed(frame: DataFrame, names: Sequence[str]) -> Column:
    """64-bit hash of some columns of a row.

    Guarantee: null is hashed as a value (xxhash64 alone skips it), so (null, x) and (x, null) differ. Arrays, structs
    and maps are hashed through their text, nulls inside included. -0.0 is not 0.0: a reader tells them apart.
    """
    parts = [part for name in names for part in hashable(frame, name)]
    return F.xxhash64(*parts) if parts else F.lit(0).cast("long")


def hashable(frame: DataFrame, name: str) -> list[Column]:
    """The parts of a value that a hash must cover: whether it is null, nested values as text, a zero with its sign."""
    value, kind = exact(frame, name), frame.schema[name].dataType
    if isinstance(kind, MapType):
        value = F.array_sort(F.map_entries(value))
    if isinstance(kind, (ArrayType, StructType, MapType, VariantType)):
        return [F.isnull(value), F.to_json(F.struct(value.alias("v")), _AS_TEXT)]
    zero = [F.when(value == 0, value.cast("string"))] if isinstance(kind, (FloatType, DoubleType)) else []
    return [F.isnull(value), value, *zero]


def content_hash(columns: Sequence[Column]) -> Column:
    """64-bit hash of plain values, in which a null counts. Samples are chosen by it: another hash would choose others.

    It says less than `hashed`: 0.0 is -0.0, and nulls inside a list are not seen.
    """
    return F.xxhash64(*with_nulls(columns))


def with_nulls(columns: Sequence[Column]) -> list[Column]:
    """The parts of plain values that a hash must cover, so that (null, x) and (x, null) differ."""
    return [part for column in columns for part in (F.isnull(column), column)]


def same(first: Column, second: Column) -> Column:
    """Whether two values are the same to a reader: equal, null with null, and written alike (-0.0 is not 0.0)."""
    return first.eqNullSafe(second) & first.cast("string").eqNullSafe(second.cast("string"))


def not_comparable(kind: DataType) -> bool:
    """Whether values of a type have no equality: maps and variants, also inside arrays and structs."""
    if isinstance(kind, ArrayType):
        return not_comparable(kind.elementType)
    if isinstance(kind, StructType):
        return any(not_comparable(part.dataType) for part in kind.fields)
    return isinstance(kind, (MapType, VariantType))
