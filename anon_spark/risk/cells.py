"""How risk reads cells: quoted names, text byte by byte, hashes in which a null is a value."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from anon_spark.errors import ConfigurationError, did_you_mean


def cell(frame: DataFrame, name: str) -> Column:
    """A column by its literal name; a collated text is read as bytes, as a reader of the table sees it."""
    if name not in frame.columns:
        raise ConfigurationError(f"Columns not found: {name}.{did_you_mean(name, frame.columns)}")
    column = F.col("`" + name.replace("`", "``") + "`")
    return column.cast(StringType()) if isinstance(frame.schema[name].dataType, StringType) else column


def content_hash(columns: Sequence[Column]) -> Column:
    """64-bit hash of some cells of a row in which a null counts."""
    return F.xxhash64(*(part for column in columns for part in (F.isnull(column), column)))
