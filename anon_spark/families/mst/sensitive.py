"""Sensitive values of distinct tuples: up to l distinct ones as hashes, and rows of each value where columns have models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import ROWS, quoted
from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.mst.frames import CODE, COUNT, COUNTS, HASHES, VALUES
from anon_spark.families.mst.models import offsets_of
from anon_spark.kernels.histograms import Histograms
from anon_spark.kernels.models import SensitiveColumn
from anon_spark.primitives.classes.held import DROPPED, HASH, Held, tuple_hash
from anon_spark.primitives.classes.sensitive import COLUMN, VALUE

# --- distinct values --------------------------------------------------------------------------------------------------------


def counted_value(frame: DataFrame, name: str) -> Column:
    """A sensitive value as l counts it: null and NaN are one value."""
    value = F.col(quoted(name))
    return F.when(~F.isnan(value), value) if isinstance(frame.schema[name].dataType, (T.FloatType, T.DoubleType)) else value


def distinct_values_of(coded: DataFrame, codes: Sequence[str], least: Mapping[str, int]) -> DataFrame:
    """Per tuple and sensitive column up to `least` distinct values, as hashes; columns with fewer in all are refused.

    Two values with the same hash count as one, so a class may look less diverse than it is, never more.
    Cost: one small job for each column.
    """
    for name, most in least.items():
        count = coded.select(counted_value(coded, name).alias("value")).distinct().limit(most).count()
        refuse_few_values(name, count, most)
    return coded.groupBy(*codes).agg(*_few_values(coded, least))


def held_distinct_values(
    keyed: DataFrame, names: Sequence[str], held: Held, least: Mapping[str, int]
) -> dict[str, Any]:
    """As `distinct_values_of`, for the tuples that the driver holds, in their order. Cost: one job."""
    found = keyed.groupBy(tuple_hash(names).alias(HASH)).agg(*_few_values(keyed, least)).toArrow()
    place = held.tuple_of[np.searchsorted(held.hashes, found.column(HASH).to_numpy())]
    columns: dict[str, Any] = {}
    for position, (name, most) in enumerate(least.items()):
        by_tuple: list[set[int]] = [set() for _ in range(held.table.size)]
        for at, values in zip(place.tolist(), found.column(f"{VALUES}{position}").to_pylist(), strict=True):
            if at != DROPPED:
                by_tuple[at].update(values)
        refuse_few_values(name, len(set().union(*by_tuple)), most)
        columns[f"{VALUES}{position}"] = pa.array([sorted(values)[:most] for values in by_tuple], pa.list_(pa.int32()))
    return columns


def refuse_few_values(name: str, count: int, least: int) -> None:
    """Refuse a sensitive column with fewer values than every class must have."""
    if count < least:
        raise GuaranteeUnreachable(
            f"Column {name} has {count} distinct values, l = {least} asks for more. Lower l.", values=count
        )


def _few_values(frame: DataFrame, least: Mapping[str, int]) -> list[Column]:
    """Of each sensitive column up to so many distinct values, as hashes."""

    def hashed(name: str) -> Column:
        value = counted_value(frame, name)
        return F.pmod(F.xxhash64(F.isnull(value), value), F.lit(HASHES)).cast("int")

    return [
        F.slice(F.array_sort(F.collect_set(hashed(name))), 1, most).alias(f"{VALUES}{position}")
        for position, (name, most) in enumerate(least.items())
    ]


# --- rows of each value -----------------------------------------------------------------------------------------------------


def counted_values_of(values: DataFrame, codes: Sequence[str], columns: Sequence[SensitiveColumn]) -> DataFrame:
    """COUNTS of each tuple. values: the codes, COLUMN, VALUE and ROWS, each value once. Cost: one shuffle of the values."""
    offsets = F.array(*(F.lit(int(first)) for first in offsets_of(columns)[:-1]))
    number = (F.element_at(offsets, F.col(COLUMN) + 1) + F.col(VALUE)).cast("int")
    return with_counts(values.select(*codes, number.alias(CODE), F.col(ROWS).alias(COUNT)), codes)


def summed_counts(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """COUNTS of each key, from those of rows with the key. Cost: two shuffles of the values."""
    each = frame.select(*keys, F.inline(COUNTS))
    return with_counts(each.groupBy(*keys, CODE).agg(F.sum(COUNT).alias(COUNT)), keys)


def with_counts(each: DataFrame, keys: Sequence[str]) -> DataFrame:
    """COUNTS of each key, in the order of the values. each: keys, CODE and COUNT."""
    return each.groupBy(*keys).agg(F.array_sort(F.collect_list(F.struct(CODE, COUNT))).alias(COUNTS))


def held_counts(by_column: Sequence[Histograms], columns: Sequence[SensitiveColumn]) -> Any:
    """COUNTS of the tuples that the driver holds, in their order. No Spark."""
    offsets = offsets_of(columns)
    owner = np.concatenate([np.repeat(np.arange(of.size), np.diff(of.starts)) for of in by_column])
    code = np.concatenate([of.values + first for of, first in zip(by_column, offsets[:-1], strict=True)])
    rows = np.concatenate([of.counts for of in by_column])
    order = np.lexsort((code, owner))
    starts = np.searchsorted(owner[order], np.arange(by_column[0].size + 1))
    entries: Any = pa.StructArray.from_arrays([pa.array(code[order].astype(np.int32)), pa.array(rows[order])], [CODE, COUNT])
    offsets_of_lists: Any = pa.array(starts.astype(np.int32))
    return pa.ListArray.from_arrays(offsets_of_lists, entries)
