"""What a table holds, as one short text that does not depend on the order of its rows or on how they are stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from anon_spark.audit.values import AS_TEXT, exact, require_columns

_SALTS = (1, 2)  # of two 64-bit hashes, whose sums are compared


def content_of(frame: DataFrame, columns: Sequence[str]) -> str:
    """A digest of the rows of some columns.

    Guarantee: equal for the same multiset of rows (names, types and nulls included) in any order, files and partitions;
    different for others but for a chance of about 2^-128 by accident. It is no secret: whoever holds it can check a guess about
    the whole table, so it must not be published for a source. Cost: one job, one scan; one row reaches the driver.
    """
    require_columns(frame, columns, "table")
    parts = [part for name in columns for part in _parts(frame, name)]
    sums = [F.coalesce(F.sum(F.xxhash64(F.lit(salt), *parts).cast("decimal(20,0)")), F.lit(0)) for salt in _SALTS]
    found = frame.agg(F.count(F.lit(1)), *sums).collect()[0]
    named = [[name, frame.schema[name].dataType.simpleString()] for name in columns]
    return sha256(json.dumps([named, *(str(int(value)) for value in found)]).encode()).hexdigest()


def _parts(frame: DataFrame, name: str) -> list[Column]:
    """A value and whether it is null; nested values as text, so that nulls inside count."""
    value, kind = exact(frame, name), frame.schema[name].dataType
    nested = isinstance(kind, (ArrayType, StructType, MapType, VariantType))
    return [F.isnull(value), F.to_json(F.struct(_ordered(value, kind).alias("v")), AS_TEXT) if nested else value]


def _ordered(value: Column, kind: DataType) -> Column:
    """A map as its sorted entries: maps have no order."""
    if isinstance(kind, MapType):
        return F.array_sort(F.map_entries(value))
    return value
