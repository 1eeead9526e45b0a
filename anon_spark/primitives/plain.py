"""Tables without column metadata, such as comments, value lists and default values."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import quoted


def without_metadata(df: DataFrame) -> DataFrame:
    """The same rows and columns, with empty metadata on every column and on every field inside structs, arrays and maps.

    Metadata holds texts about the source (a comment, the values of a category, a default), which no recoding looks at.
    Guarantee: names, types and values are unchanged; a char or varchar column is a plain text. Cost: none, a projection.
    """
    columns = []
    for field in df.schema.fields:
        kind, column = bare(field.dataType), F.col(quoted(field.name))
        # an alias drops the metadata of the column, a cast that inside its type
        columns.append((column if kind == field.dataType else column.cast(kind)).alias(field.name, metadata={}))
    return df.select(*columns)


def with_comments(df: DataFrame, comments: Mapping[str, str]) -> DataFrame:
    """The same rows and columns, with a comment as the metadata of each column that has one. Cost: none, a projection."""
    columns = [
        F.col(quoted(name)).alias(name, metadata={"comment": comments[name]}) if name in comments else F.col(quoted(name))
        for name in df.columns
    ]
    return df.select(*columns)


def bare_schema(schema: T.StructType) -> T.StructType:
    """A schema without metadata on any level."""
    return T.StructType([T.StructField(field.name, bare(field.dataType), field.nullable) for field in schema.fields])


def bare(kind: T.DataType) -> T.DataType:
    """A type without metadata on the fields inside it."""
    if isinstance(kind, T.StructType):
        return bare_schema(kind)
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(bare(kind.elementType), kind.containsNull)
    if isinstance(kind, T.MapType):
        return T.MapType(bare(kind.keyType), bare(kind.valueType), kind.valueContainsNull)
    return kind
