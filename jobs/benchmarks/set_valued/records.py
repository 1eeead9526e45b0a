"""Tables of item sets as arrays: read, sampled, copied with changes, put into Gray order and cut as the family does."""

from __future__ import annotations

import gzip
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anon_spark.errors import ConfigurationError
from anon_spark.families.set_valued.block import Settings
from anon_spark.families.set_valued.kernels.segments import (
    block_starts,
    eligible_starts,
    segment_starts,
    steps_between,
)
from anon_spark.kernels.bitmaps import Sets, sets_of, taken
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.samples.baskets import baskets
from jobs.reproductions.set_valued.cahd import gray_order

CHESS, T10 = "Chess", "T10I4D100K"
FILES = {CHESS: "fimi/chess.dat", T10: "fimi/T10I4D100K.dat.gz"}
T10_ROWS = 20_000  # the first ones
BASKET_ROWS = 3_000
LABELS, LABEL_SEED = 470, 1
REPLACED, COPY_SEED = 0.05, 2


class ItemSets(NamedTuple):
    """The items of record r are codes[offsets[r] : offsets[r + 1]], ascending in the order of the universe."""

    name: str
    offsets: Ints
    codes: Ints

    @property
    def records(self) -> int:
        return self.offsets.size - 1

    @property
    def sets(self) -> Sets:
        return sets_of(self.offsets, self.codes)

    def rows(self, first: int, last: int) -> ItemSets:
        """Some consecutive records."""
        begin, end = self.offsets[first], self.offsets[last]
        return ItemSets(self.name, self.offsets[first : last + 1] - begin, self.codes[begin:end])

    def frame(self, spark: SparkSession) -> DataFrame:
        """A column `items` of array<string>: the numbers of the items."""
        names = pa.array(self.codes, pa.int64()).cast(pa.string())
        lists: Any = pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), names)
        return spark.createDataFrame(pa.table({"items": lists}))


class Block(NamedTuple):
    """Records in Gray order that make a ring of their own: their sets, where segments begin, and their ranks."""

    number: int
    first: int
    sets: Sets
    starts: Ints

    @property
    def records(self) -> int:
        return self.sets.offsets.size - 1


def tables(spark: SparkSession, data: Path | None) -> list[ItemSets]:
    """Chess and the first rows of T10I4D100K below the folder; without one, a sample of baskets."""
    if data is None:
        return [basket_table(spark, BASKET_ROWS)]
    return [read_lists(data, CHESS), read_lists(data, T10, T10_ROWS)]


def read_lists(data: Path, name: str, rows: int | None = None) -> ItemSets:
    """The first rows of a table of the FIMI repository: a line per record, items as numbers."""
    path = data / FILES[name]
    if not path.exists():
        raise ConfigurationError(f"--data: {FILES[name]} is not below the folder.")
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        lists = [np.unique(np.array(line.split(), dtype=np.int64)) for line in islice(lines, rows)]
    said = name if rows is None else f"{name}, the first {rows:,} rows"
    return ItemSets(said, offsets_of(lists), np.concatenate(lists))


def basket_table(spark: SparkSession, rows: int) -> ItemSets:
    """The sample of the package; names of items have one length, so their order is that of texts."""
    lists: Any = baskets(spark, rows).select("items").toArrow().column(0).combine_chunks()
    offsets = lists.offsets.to_numpy().astype(np.int64)
    names = np.asarray(lists.flatten().to_numpy(zero_copy_only=False), dtype=str)
    return ItemSets(f"{rows:,} synthetic baskets", offsets, np.unique(names, return_inverse=True)[1].astype(np.int64))


def copied(table: ItemSets, times: int) -> ItemSets:
    """The table, followed by copies in which each item is replaced with probability 0.05 by one the record lacks.

    A larger number of copies begins with the smaller. Cost: a draw for each record.
    """
    draw = np.random.default_rng(COPY_SEED)
    universe = np.unique(table.codes)
    records = np.split(table.codes, table.offsets[1:-1])
    lists = list(records)
    for _ in range(times - 1):
        for items in records:
            lost = draw.random(items.size) < REPLACED
            lacking = np.setdiff1d(universe, items, assume_unique=True)
            gained = draw.choice(lacking, min(int(lost.sum()), lacking.size), replace=False)
            lists.append(np.sort(np.concatenate([items[~lost], gained])))
    return ItemSets(f"{table.name}, {times}×", offsets_of(lists), np.concatenate(lists))


def drawn_labels(records: int, seed: int = LABEL_SEED) -> Codes:
    """470 labels, the one of rank r with a probability proportional to 1 / √r; numbered without gaps."""
    weights = np.arange(1, LABELS + 1) ** -0.5
    drawn = np.random.default_rng(seed).choice(LABELS, records, p=weights / weights.sum())
    return np.unique(drawn, return_inverse=True)[1].astype(np.int32)


def in_gray_order(table: ItemSets) -> tuple[ItemSets, Ints]:
    """The table in Gray order, and where its records stood before."""
    order = gray_order(table.sets)
    ordered = taken(table.sets, order)
    return ItemSets(table.name, ordered.offsets, ordered.codes[ordered.items]), order


def blocks_of(ordered: ItemSets, settings: Settings, labels: Codes | None = None) -> list[Block]:
    """Segments and blocks of a table in Gray order, merged where labels would be too frequent in one."""
    numbers = np.unique(ordered.codes, return_inverse=True)[1].astype(np.int32)
    starts = segment_starts(steps_between(ordered.offsets, numbers), *settings.segment)
    firsts = block_starts(starts, ordered.records, settings.block_records)
    if labels is not None:
        merged = eligible_starts(firsts, labels.astype(np.int64), settings.spacing)
        if merged is None:
            raise ConfigurationError(f"{ordered.name}: a label is too frequent for l = {settings.degree}.")
        firsts = merged
    borders = [*firsts.tolist(), ordered.records]
    inside = np.split(starts, np.searchsorted(starts, firsts[1:]))
    return [
        Block(number, first, ordered.rows(first, last).sets, own - first)
        for number, ((first, last), own) in enumerate(zip(pairwise(borders), inside, strict=True))
    ]


def joined(ordered: ItemSets, one: Block, other: Block) -> Block:
    """Two blocks that follow each other as one."""
    sets = ordered.rows(one.first, other.first + other.records).sets
    return Block(one.number, one.first, sets, np.concatenate([one.starts, other.starts + one.records]))


def offsets_of(lists: list[Ints]) -> Ints:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum([items.size for items in lists], dtype=np.int64)])
