"""Persons as texts that stay the same from run to run, whatever the session and the partitions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import quoted
from anon_spark.errors import ConfigurationError


def person_type(kind: T.DataType) -> str | None:
    """What kind of values persons are; types of one kind write equal persons alike. None: a type that cannot be compared.

    Whole numbers of any width are one kind. A decimal's scale is part of its kind, because it is part of its text.
    """
    if isinstance(kind, T.IntegralType):
        return "whole number"
    if isinstance(kind, T.StringType):
        return "text"
    if isinstance(kind, T.DecimalType):
        return "whole number" if kind.scale == 0 else f"number with {kind.scale} decimals"
    return "date" if isinstance(kind, T.DateType) else "bytes" if isinstance(kind, T.BinaryType) else None


def require_person_type(df: DataFrame, person: str) -> str:
    """The kind of the persons of a table; refuses types whose text may differ from run to run."""
    found = person_type(df.schema[person].dataType)
    if found is None:
        raise ConfigurationError(
            f"columns.person {person} is {df.schema[person].dataType.simpleString()}: with output.mode: append persons are "
            "recognised from run to run, so give whole numbers, texts, decimals, dates or bytes."
        )
    return found


def as_text(df: DataFrame, person: str) -> Column:
    """A person as text, null where there is none; texts are taken byte by byte, whatever their collation."""
    kind, column = df.schema[person].dataType, F.col(quoted(person))
    if isinstance(kind, T.BinaryType):
        return F.hex(column)
    return column.cast(T.StringType())
