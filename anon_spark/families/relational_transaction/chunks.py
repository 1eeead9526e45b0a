"""Chunks of a large table that a task can cut into blocks: halved repeatedly along the attribute that gains most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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

CHUNK = PREFIX + "chunk"  # as in a binary heap: the halves of chunk c are 2 c and 2 c + 1
CHUNK_RECORDS = 2**18
BUCKETS = 1_024  # of a number between the least and the greatest of its chunk
MOST_CHUNKS = 1_000_000
MOST_HELD = 1_000_000  # buckets of which a task holds the counts
FEW_BUCKETS = 2**18  # of which also the least and greatest values reach the driver: those of 64 chunks with four numbers
LEAST, GREATEST = PREFIX + "least_", PREFIX + "greatest_"  # + position
MOST_DEPTH = 40


@dataclass(frozen=True)
class Cut:
    """Records whose value of an attribute is at least `border` go to the upper half; attribute -1: by a bit of the rank."""

    attribute: int
    border: float


@dataclass(frozen=True)
class Span:
    """A chunk that is too large: its records, and the least and greatest value of each attribute."""

    rows: int
    lo: Floats
    hi: Floats


class Buckets(NamedTuple):
    """The records of a chunk by bucket of one attribute: how many, and the least and greatest value of every attribute, or of
    none."""

    rows: Ints
    lo: Floats
    hi: Floats

    @classmethod
    def empty(cls, buckets: int, attributes: int) -> Buckets:
        shape = buckets, attributes
        return cls(np.zeros(buckets, dtype=np.int64), np.full(shape, np.inf), np.full(shape, -np.inf))

    def add(self, bucket: Ints, values: Sequence[Floats]) -> None:
        """Count records, given by the buckets they are in and by their values."""
        self.rows[:] += np.bincount(bucket, minlength=self.rows.size)
        order = np.argsort(bucket.astype(np.int16 if self.rows.size < 2**15 else np.int64), kind="stable")
        first = np.flatnonzero(np.diff(bucket[order], prepend=-1))
        found = bucket[order][first]
        for at, column in enumerate(values):
            self.lo[found, at] = np.minimum(self.lo[found, at], np.minimum.reduceat(column[order], first))
            self.hi[found, at] = np.maximum(self.hi[found, at], np.maximum.reduceat(column[order], first))

    def span(self, buckets: slice) -> Span:
        """What neighbouring buckets hold together."""
        return Span(int(self.rows[buckets].sum()), self.lo[buckets].min(axis=0), self.hi[buckets].max(axis=0))


def in_chunks(records: Records, least: int) -> tuple[DataFrame, int]:
    """The records with CHUNK; each has at most CHUNK_RECORDS of them.

    A number is cut at a border of its buckets, a category between children of the chunk's node, where the halves are closest
    in size. The attribute is the one whose penalty falls most. Halves have at least `least` records.
    Returns also how many chunks there are.
    Guarantee: depends on the values alone, never on partitions. Cost: a job over the quasi-identifiers for each doubling of the
    table beyond CHUNK_RECORDS, and one more; none for smaller tables.
    """
    if records.rows <= CHUNK_RECORDS:
        return records.narrow.withColumn(CHUNK, F.lit(1).cast("long")), 1
    attributes, cuts = records.attributes, dict[int, Cut]()
    values = records.narrow.select(LINK, *attributes.columns)
    spans = _spans(_chunked(values, attributes, cuts), attributes)
    while spans:
        found = _cuts(_chunked(values, attributes, cuts), attributes, spans, least)
        cuts |= {chunk: cut for chunk, (cut, _) in found.items()}
        halves = {2 * chunk + upper: span for chunk, (_, both) in found.items() for upper, span in enumerate(both)}
        if len(halves) == 2 * len(found):
            spans = {chunk: span for chunk, span in halves.items() if span.rows > CHUNK_RECORDS}
        else:
            spans = _spans(_chunked(values, attributes, cuts), attributes)
    return _chunked(records.narrow, attributes, cuts), len(cuts) + 1


def chunk_order(chunk: int) -> int:
    """Sort key of a chunk: the halves of a chunk are neighbours."""
    depth = chunk.bit_length() - 1
    return (chunk - (1 << depth)) << (MOST_DEPTH - depth)


def _spans(frame: DataFrame, attributes: Attributes) -> dict[int, Span]:
    """The chunks that are too large. Cost: one job."""
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


def _cuts(
    frame: DataFrame, attributes: Attributes, spans: Mapping[int, Span], least: int
) -> dict[int, tuple[Cut, tuple[Span, ...]]]:
    """The cut of each large chunk, and its halves where there are few buckets. Cost: one job; buckets × attributes × large
    chunks reach the driver."""
    count = len(attributes.names)
    borders = {chunk: [_borders(attributes, span, at) for at in range(count)] for chunk, span in spans.items()}
    ends = count if sum(border.size for parts in borders.values() for border in parts) <= FEW_BUCKETS else 0
    lows, highs = ([f"{name}{at}" for at in range(ends)] for name in (LEAST, GREATEST))

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: dict[tuple[int, int], Buckets] = {}
        for batch in batches:
            chunks = np.asarray(batch.column(0))
            for chunk in each_once(chunks).tolist():
                if chunk not in borders:
                    continue
                in_chunk = chunks == chunk
                values = [np.asarray(batch.column(1 + at))[in_chunk] for at in range(count)]
                for at, (part, border) in enumerate(zip(values, borders[chunk], strict=True)):
                    if (chunk, at) not in held:
                        held[chunk, at] = Buckets.empty(border.size, ends)
                    held[chunk, at].add(np.searchsorted(border, part, side="right") - 1, values[:ends])
            if sum(part.rows.size for part in held.values()) > MOST_HELD:
                yield _counts(held, [*lows, *highs])
                held.clear()
        if held:
            yield _counts(held, [*lows, *highs])

    fields = [f"{CHUNK} long", "at int", "bucket int", "rows long", *(f"{name} double" for name in (*lows, *highs))]
    counted = frame.select(CHUNK, *attributes.columns).mapInArrow(work, ", ".join(fields))
    bounds = [*(F.min(name).alias(name) for name in lows), *(F.max(name).alias(name) for name in highs)]
    summed = counted.groupBy(CHUNK, "at", "bucket").agg(F.sum("rows").alias("rows"), *bounds)
    table = collect_small(summed, MOST_CHUNKS * 10, "Buckets of values").sort_by([(CHUNK, "ascending"), ("at", "ascending")])
    bucket, rows = (np.asarray(table.column(name)) for name in ("bucket", "rows"))
    lo, hi = (np.array([np.asarray(table.column(name)) for name in names]).reshape(-1, rows.size).T for names in (lows, highs))
    places = np.asarray(table.column(CHUNK)) * count + np.asarray(table.column("at"))  # ascending
    found = {}
    for chunk, span in spans.items():
        parts = [Buckets.empty(border.size, ends) for border in borders[chunk]]
        for at, part in enumerate(parts):
            mine = slice(*np.searchsorted(places, [chunk * count + at, chunk * count + at + 1]))
            part.rows[bucket[mine]], part.lo[bucket[mine]], part.hi[bucket[mine]] = rows[mine], lo[mine], hi[mine]
        found[chunk] = _best(attributes, span, borders[chunk], parts, least)
    return found


def _counts(held: Mapping[tuple[int, int], Buckets], bounds: Sequence[str]) -> pa.RecordBatch:
    """A row for each bucket that has records."""
    filled = [np.flatnonzero(part.rows) for part in held.values()]
    sizes = [found.size for found in filled]
    chunk, at = (np.repeat([key[side] for key in held], sizes) for side in (0, 1))
    rows, lo, hi = (
        np.concatenate([part[side][found] for part, found in zip(held.values(), filled, strict=True)]) for side in range(3)
    )
    columns = [chunk, at.astype(np.int32), np.concatenate(filled).astype(np.int32), rows, *lo.T.copy(), *hi.T.copy()]
    return pa.RecordBatch.from_arrays(list(map(pa.array, columns)), names=[CHUNK, "at", "bucket", "rows", *bounds])


def _best(
    attributes: Attributes, span: Span, borders: list[Floats], buckets: list[Buckets], least: int
) -> tuple[Cut, tuple[Span, ...]]:
    """The cut of the attribute whose penalty falls most, nearest to the middle, and its halves; no halves if none has a cut."""
    best, halves, drop = Cut(-1, 0.0), tuple[Span, ...](), -1.0
    for at, (border, part) in enumerate(zip(borders, buckets, strict=True)):
        below = np.cumsum(part.rows)[:-1]  # if the upper half begins at border[1:]
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
            best, drop = Cut(at, float(border[place + 1])), float(whole - share * lower - (1 - share) * upper)
            if part.lo.size:
                halves = part.span(slice(0, place + 1)), part.span(slice(place + 1, None))
    return best, halves


def _chunked(frame: DataFrame, attributes: Attributes, cuts: Mapping[int, Cut]) -> DataFrame:
    """The frame with CHUNK, after all these cuts."""
    if not cuts:
        return frame.withColumn(CHUNK, F.lit(1).cast("long"))
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
