"""Chunks of a large table that a task can cut into blocks: halved repeatedly along the attribute that gains most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.arrays import each_once
from anon_spark.columns import LINK, PREFIX
from anon_spark.families.relational_transaction.kernels.relation import own_penalties
from anon_spark.families.relational_transaction.records import Attributes, Floats, Records
from anon_spark.kernels.classes import Ints
from anon_spark.primitives.rounds import collect_small
from anon_spark.primitives.tasks import number_lists

CHUNK = PREFIX + "chunk"  # as in a binary heap: the halves of chunk c are 2 c and 2 c + 1
CHUNK_RECORDS = 2**18
BUCKETS = 1_024  # of a number between the least and the greatest of its chunk
MOST_CHUNKS = 1_000_000
MOST_DEPTH = 40


@dataclass(frozen=True)
class Cut:
    """Records whose value of an attribute is at least `border` go to the upper half; attribute -1: by a bit of the rank.

    largest: the records of the larger half, at most.
    """

    attribute: int
    border: float
    largest: int


def in_chunks(records: Records, least: int) -> tuple[DataFrame, int]:
    """The records with CHUNK; each has at most CHUNK_RECORDS of them.

    A number is cut at a border of its buckets, a category between children of the chunk's node, where the halves are closest
    in size. The attribute is the one whose penalty falls most. Halves have at least `least` records.
    Returns also how many chunks there are.
    Guarantee: depends on the values alone, never on partitions. Cost: two jobs over the quasi-identifiers for each doubling of
    the table beyond CHUNK_RECORDS; none for smaller tables.
    """
    if records.rows <= CHUNK_RECORDS:
        return records.narrow.withColumn(CHUNK, F.lit(1).cast("long")), 1
    attributes, cuts, largest = records.attributes, dict[int, Cut](), records.rows
    while largest > CHUNK_RECORDS:
        values = _chunked(records.narrow.select(LINK, *attributes.columns), attributes, cuts)
        ranges = _ranges(values, attributes)
        found = _cuts(values, attributes, ranges, least) if ranges else {}
        cuts |= found
        largest = max((cut.largest for cut in found.values()), default=0)
    return _chunked(records.narrow, attributes, cuts), len(cuts) + 1


def chunk_order(chunk: int) -> int:
    """Sort key of a chunk: the halves of a chunk are neighbours."""
    depth = chunk.bit_length() - 1
    return (chunk - (1 << depth)) << (MOST_DEPTH - depth)


@dataclass(frozen=True)
class Span:
    """A chunk that is too large: its records, and the least and greatest value of each attribute."""

    rows: int
    lo: Floats
    hi: Floats


def _ranges(frame: DataFrame, attributes: Attributes) -> dict[int, Span]:
    bounds = [F.min(name) for name in attributes.columns] + [F.max(name) for name in attributes.columns]
    sized = frame.groupBy(CHUNK).agg(F.count(F.lit(1)).alias("rows"), *bounds).where(F.col("rows") > CHUNK_RECORDS)
    table, count = collect_small(sized, MOST_CHUNKS, "Chunks"), len(attributes.names)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return {row[0]: Span(row[1], np.array(row[2 : 2 + count]), np.array(row[2 + count :])) for row in rows}


def _borders(attributes: Attributes, span: Span, at: int) -> Floats:
    """Starts of the buckets of an attribute; the first is its least value."""
    lo, hi = float(span.lo[at]), float(span.hi[at])
    hierarchy, leaf_at = attributes.hierarchies[at], attributes.leaf_at[at]
    if hierarchy is None or leaf_at is None:
        return np.linspace(lo, hi, BUCKETS, endpoint=False) if hi > lo else np.array([lo])
    codes = hierarchy.codes[:, leaf_at[int(lo) : int(hi) + 1]]  # level × position
    level = int(np.flatnonzero((codes == codes[:, :1]).all(axis=1))[0])
    if level == 0:
        return np.array([lo])
    return lo + np.flatnonzero(np.diff(codes[level - 1], prepend=-1)).astype(np.float64)


def _cuts(frame: DataFrame, attributes: Attributes, ranges: Mapping[int, Span], least: int) -> dict[int, Cut]:
    """The cut of each large chunk. Cost: one job; buckets × attributes × large chunks reach the driver."""
    borders = {chunk: [_borders(attributes, span, at) for at in range(len(attributes.names))] for chunk, span in ranges.items()}

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            chunks = np.asarray(batch.column(0))
            for chunk in each_once(chunks).tolist():
                if chunk not in borders:
                    continue
                in_chunk = chunks == chunk
                values = [np.asarray(batch.column(1 + at))[in_chunk] for at in range(len(attributes.names))]
                counts = [_in_buckets(part, border) for part, border in zip(values, borders[chunk], strict=True)]
                size = len(counts)
                columns = [pa.array([chunk] * size), pa.array(range(size), pa.int32()), _rows(counts)]
                yield pa.RecordBatch.from_arrays(columns, names=[CHUNK, "at", "counts"])

    counted = frame.select(CHUNK, *attributes.columns).mapInArrow(work, f"{CHUNK} long, at int, counts array<int>")
    summed = (
        counted.select(CHUNK, "at", F.posexplode("counts").alias("bucket", "rows"))
        .groupBy(CHUNK, "at", "bucket")
        .agg(F.sum("rows").alias("rows"))
    )
    table = collect_small(summed, MOST_CHUNKS * 10, "Buckets of values")
    rows_by_bucket = {
        chunk: [np.zeros(border.size, dtype=np.int64) for border in bounds] for chunk, bounds in borders.items()
    }
    for chunk, at, bucket, rows in zip(*(column.to_pylist() for column in table.columns), strict=True):
        rows_by_bucket[chunk][at][bucket] = rows
    return {chunk: _best(attributes, ranges[chunk], borders[chunk], rows_by_bucket[chunk], least) for chunk in ranges}


def _in_buckets(values: Floats, borders: Floats) -> Ints:
    return np.bincount(np.searchsorted(borders, values, side="right") - 1, minlength=borders.size)


def _rows(counts: list[Any]) -> Any:
    offsets = np.concatenate([[0], np.cumsum([part.size for part in counts])])
    return number_lists(offsets, np.concatenate(counts).astype(np.int32))


def _best(attributes: Attributes, span: Span, borders: list[Floats], counts: list[Ints], least: int) -> Cut:
    """The cut of the attribute whose penalty falls most, nearest to the middle."""
    best, drop = Cut(-1, 0.0, span.rows), -1.0
    for at, (border, rows) in enumerate(zip(borders, counts, strict=True)):
        below = np.cumsum(rows)[:-1]  # if the upper half begins at border[1:]
        allowed = np.flatnonzero((below >= least) & (span.rows - below >= least))
        if not allowed.size:
            continue
        place = int(allowed[np.argmin(np.abs(2 * below[allowed] - span.rows))])
        lo, hi = np.tile(span.lo, (3, 1)), np.tile(span.lo, (3, 1))  # single values, except in this attribute
        hi[0, at] = span.hi[at]
        hi[1, at] = np.nextafter(border[place + 1], -np.inf) if attributes.hierarchies[at] is None else border[place + 1] - 1
        lo[2, at], hi[2, at] = border[place + 1], span.hi[at]
        whole, lower, upper = own_penalties(attributes.relation, lo, hi)
        share = below[place] / span.rows
        if whole - share * lower - (1 - share) * upper > drop:
            best = Cut(at, float(border[place + 1]), int(max(below[place], span.rows - below[place])))
            drop = float(whole - share * lower - (1 - share) * upper)
    return best


def _chunked(frame: DataFrame, attributes: Attributes, cuts: Mapping[int, Cut]) -> DataFrame:
    """The frame with CHUNK, after all these cuts."""
    names = frame.columns
    values, link = [names.index(name) for name in attributes.columns], names.index(LINK)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            chunks = np.empty(batch.num_rows, dtype=np.int64)
            waiting = [(1, np.arange(batch.num_rows))]
            while waiting:
                chunk, rows = waiting.pop()
                cut = cuts.get(chunk)
                if cut is None or not rows.size:
                    chunks[rows] = chunk
                    continue
                if cut.attribute < 0:  # another bit on every depth: the same bit would divide them only once
                    upper = (np.asarray(batch.column(link))[rows] >> (chunk.bit_length() - 1)) & 1 == 1
                else:
                    upper = np.asarray(batch.column(values[cut.attribute]))[rows] >= cut.border
                waiting += [(2 * chunk, rows[~upper]), (2 * chunk + 1, rows[upper])]
            yield batch.append_column(CHUNK, pa.array(chunks))

    return frame.mapInArrow(work, T.StructType([*frame.schema.fields, T.StructField(CHUNK, T.LongType())]))
