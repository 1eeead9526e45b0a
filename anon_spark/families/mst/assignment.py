"""Which levels every distinct tuple gets: the partition as a frame, made in one task or spread over many."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import LEAF, LEVEL, PREFIX, ROWS, quoted
from anon_spark.errors import DataError, LimitExceeded
from anon_spark.families.mst.partition import Settings, partition
from anon_spark.kernels.classes import Codes
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.primitives.classes import Frequencies
from anon_spark.primitives.classes.frequencies import code_columns
from anon_spark.primitives.rounds import Workspace

LOCAL_MAX = 8_000_000
NOTE = PREFIX + "note"  # one row of the result carries the statistics instead of a tuple
VALUES = PREFIX + "values_"
HASHES = 2**31


@dataclass(frozen=True)
class Assignment:
    """The levels of every distinct tuple: columns LEAF and LEVEL of each attribute, and ROWS; how it came about."""

    frame: DataFrame
    statistics: dict[str, Any]


def leaf_columns(count: int) -> list[str]:
    return [f"{LEAF}{position}" for position in range(count)]


def level_columns(count: int) -> list[str]:
    return [f"{LEVEL}{position}" for position in range(count)]


def assign(frequencies: Frequencies, settings: Settings, workspace: Workspace, values: DataFrame | None) -> Assignment:
    """Partition the distinct tuples; with l, `values` holds up to l hashes of each sensitive column per tuple.

    Cost: all distinct tuples in one task, about 140 bytes each.
    """
    if frequencies.tuples > LOCAL_MAX:
        raise LimitExceeded(
            f"{frequencies.tuples:,} distinct tuples, at most {LOCAL_MAX:,} are partitioned. Round a column, or start "
            "its hierarchy at a coarser level.",
            tuples=frequencies.tuples,
        )
    codes = code_columns(len(frequencies.hierarchies))
    frame = frequencies.frame.select(*codes, ROWS)
    if values is not None:
        frame = frame.join(values, codes)
    stored = workspace.store(_in_one_task(frame, frequencies.hierarchies, settings), "assignment")
    note = stored.where(F.col(NOTE).isNotNull()).select(NOTE).first()
    if note is None:
        raise DataError("The table is empty: there is nothing to release.", rows=0)
    return Assignment(stored.where(F.col(NOTE).isNull()).drop(NOTE), json.loads(note[0]))


def sensitive_values(coded: DataFrame, codes: Sequence[str], sensitive: Sequence[str], most: int) -> DataFrame:
    """Per tuple and sensitive column up to `most` distinct values, as hashes.

    Two values with one hash count as one: a class may so look less diverse than it is, never more.
    """

    def hashed(name: str) -> Column:
        return F.pmod(F.xxhash64(F.isnull(quoted(name)), F.col(quoted(name))), F.lit(HASHES)).cast("int")

    kept = [
        F.slice(F.array_sort(F.collect_set(hashed(name))), 1, most).alias(f"{VALUES}{position}")
        for position, name in enumerate(sensitive)
    ]
    return coded.groupBy(*codes).agg(*kept)


def _in_one_task(frame: DataFrame, hierarchies: Sequence[Hierarchy], settings: Settings) -> DataFrame:
    count = len(hierarchies)
    names = [*leaf_columns(count), *level_columns(count)]
    columns = sum(name.startswith(VALUES) for name in frame.columns)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = list(batches)
        if not found:
            return
        table = pa.Table.from_batches(found)
        codes = np.array([table.column(position).to_numpy() for position in range(count)], dtype=np.int32)
        rows = table.column(count).to_numpy().astype(np.int64)
        values = _values(table, count + 1, columns, settings.l) if settings.l is not None else None
        parts = partition(codes, rows, hierarchies, settings, values)
        levels = parts.levels[parts.class_of]
        nothing: list[Any] = [pa.nulls(1, pa.int32())] * (2 * count) + [pa.nulls(1, pa.int64())]
        schema = [*names, ROWS, NOTE]
        yield pa.RecordBatch.from_arrays([*nothing, pa.array([json.dumps(parts.statistics)])], names=schema)
        for first in range(0, rows.size, 100_000):
            last = min(first + 100_000, rows.size)
            arrays = [pa.array(codes[position, first:last]) for position in range(count)]
            arrays += [pa.array(levels[first:last, position].astype(np.int32)) for position in range(count)]
            notes = pa.nulls(last - first, pa.string())
            yield pa.RecordBatch.from_arrays([*arrays, pa.array(rows[first:last]), notes], names=schema)

    kinds = ", ".join(f"`{name}` int" for name in names)
    return frame.coalesce(1).mapInArrow(work, f"{kinds}, `{ROWS}` long, `{NOTE}` string")


def _values(table: pa.Table, first: int, columns: int, most: int) -> Codes:
    """Lists of hashes as one array, -1 where a list is shorter."""
    values = np.full((table.num_rows, columns, most), -1, dtype=np.int32)
    for column in range(columns):
        lists: Any = table.column(first + column).combine_chunks()
        offsets = lists.offsets.to_numpy()
        flat = lists.values.to_numpy()
        length = np.diff(offsets)
        row = np.repeat(np.arange(table.num_rows), length)
        place = np.arange(offsets[0], offsets[-1]) - np.repeat(offsets[:-1], length)
        values[row, column, place] = flat[offsets[0] : offsets[-1]]
    return values
