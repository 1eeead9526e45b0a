"""Blocks in tasks: the published fields of each slot, and the private graph behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from anon_spark.columns import (
    BASE,
    BLOCK,
    CHOSEN,
    DRAW,
    LINK,
    MAX_ERRORS,
    PART,
    PREFIX,
    ROUND,
    SLOT,
    SLOTS,
    TAKEN,
    UNCERTAIN,
)
from anon_spark.errors import DataError, LimitExceeded
from anon_spark.families.set_valued.block import Settings, arrange, draw
from anon_spark.families.set_valued.kernels import graphs
from anon_spark.families.set_valued.kernels.graphs import Graph
from anon_spark.families.set_valued.records import BEGINS, CODES, LABEL, VALUE, Records
from anon_spark.kernels.bitmaps import Words, items_of, sets_of
from anon_spark.kernels.classes import Ints
from anon_spark.primitives.blocks import joined_blocks, numbers_in
from anon_spark.primitives.rounds import Workspace
from anon_spark.primitives.tasks import Task, as_expected, in_groups, lists_of, number_lists

KIND = PREFIX + "kind"  # which order the block has
SIZE = PREFIX + "size"  # items of the original
FLIPS = PREFIX + "flips"  # items in which the original differs from the bases of its slots, summed
STEPS = PREFIX + "steps"  # steps of the walks, on the first row of a block
BLOCK_MAX = 100_000  # records of a block: all pairwise distances are computed


def recode_blocks(
    blocked: DataFrame, records: Records, settings: Settings, key: str, workspace: Workspace
) -> DataFrame:
    """One row per rank of each block: its original (LINK, SLOTS, TAKEN, PART) and its slot (SLOT and what is published).

    A block whose labels cannot be spaced is merged with a neighbour and tried again, up to BLOCK_MAX records; with
    `truth: shift` the second attempt may order records by their labels alone.
    Cost: one shuffle, one task call per block.
    """
    while True:
        _refuse_large(blocked)
        work = _recode(records, settings, key)
        stored = workspace.store(in_groups(blocked, BLOCK, work, _schema(records), costly=True), "slots")
        failed = stored.where(F.col(SLOT).isNull()).select(BLOCK)
        if failed.isEmpty():
            return stored
        numbers = numbers_in(blocked, BLOCK)
        if len(numbers) > 1:
            joined = joined_blocks(blocked, BLOCK, numbers, set(numbers_in(failed, BLOCK)))
            blocked = workspace.store(joined, "merged-blocks")
        elif settings.strides or not settings.shifts:
            raise DataError("The sensitive values are too few, or too often the same, to be spread. Lower l.")
        settings = replace(settings, strides=settings.shifts)


def _refuse_large(blocked: DataFrame) -> None:
    """Refuse blocks that are too large: a block is one task with quadratic cost. Cost: one job."""
    largest = blocked.groupBy(BLOCK).count().agg(F.max("count")).collect()[0][0]
    if largest > BLOCK_MAX:
        raise LimitExceeded(
            f"A block of {largest:,} records, at most {BLOCK_MAX:,} are recoded together. Lower l, or the number of "
            "records of a block.",
            records=int(largest),
        )


def edges_of(slots: DataFrame) -> DataFrame:
    """The private graph, for the audit: LINK, BLOCK, SLOT, ROUND, CHOSEN, PART."""
    exploded = slots.select(LINK, BLOCK, PART, TAKEN, F.posexplode(SLOTS).alias(ROUND, SLOT))
    return exploded.select(LINK, BLOCK, SLOT, ROUND, (F.col(ROUND) == F.col(TAKEN)).alias(CHOSEN), PART)


def drawn_again(slots: DataFrame, settings: Settings, keys: Sequence[str], blocks: int | None = None) -> DataFrame:
    """Fresh assignments of the same graph, one per key: LINK, BLOCK, SLOT, DRAW. None of them is the published one.

    blocks: how many there are, if known. Cost: one shuffle; per key one walk in each block; a count of blocks if not given.
    """

    def work(table: pa.Table) -> pa.Table:
        table = table.sort_by(SLOT)
        block, kind = table.column(BLOCK)[0].as_py(), table.column(KIND)[0].as_py()
        graph = Graph(*lists_of(table, SLOTS), _array(table, PART, np.int32))
        links, parts = table.column(LINK), []
        for number, key in enumerate(keys):
            taken = draw(graph, settings, key, block, kind).slots
            blocks, numbers = pa.array([block] * taken.size), pa.array([number] * taken.size, pa.int32())
            columns = [links, blocks, pa.array(taken, pa.int32()), numbers]
            parts.append(pa.Table.from_arrays(columns, names=[LINK, BLOCK, SLOT, DRAW]))
        return pa.concat_tables(parts)

    needed = slots.select(LINK, BLOCK, SLOT, SLOTS, PART, KIND)
    return in_groups(needed, BLOCK, work, f"{LINK} long, {BLOCK} long, {SLOT} int, {DRAW} int", blocks)


def _recode(records: Records, settings: Settings, key: str) -> Task:
    universe = pa.array(records.universe, pa.string())
    schema = _schema(records)

    def work(table: pa.Table) -> pa.Table:
        table = table.sort_by(LINK)
        block = table.column(BLOCK)[0].as_py()
        offsets, codes = lists_of(table, CODES)
        sets = sets_of(offsets, codes.astype(np.int64))
        labels = None
        if settings.l is not None:
            labels = np.unique(table.column(LABEL).to_numpy(), return_inverse=True)[1].astype(np.int32)
        arranged = arrange(sets, np.flatnonzero(_array(table, BEGINS, bool)), labels, settings, key, block)
        if arranged is None:
            nothing = {name: [block if name == BLOCK else None] for name in schema.names}
            return pa.Table.from_pydict(nothing, to_arrow_schema(schema))
        graph, fields, ringed = arranged.graph, arranged.fields, arranged.sets
        drawn = draw(graph, settings, key, block, arranged.kind)
        by_round = np.lexsort((drawn.rounds, np.repeat(np.arange(graph.part.size), np.diff(graph.offsets))))
        flipped = graphs.flips_by_edge(ringed, graph, fields.base)
        holder = np.empty(drawn.slots.size, dtype=np.int64)
        holder[drawn.slots] = np.arange(drawn.slots.size)  # the original whose label a slot carries
        steps = np.zeros(holder.size, dtype=np.int64)
        steps[0] = drawn.steps
        columns: dict[str, Any] = {
            LINK: table.column(LINK).take(arranged.order),
            BLOCK: np.full(holder.size, block, dtype=np.int64),
            SLOT: np.arange(holder.size, dtype=np.int32),
            PART: graph.part,
            SLOTS: number_lists(graph.offsets, graph.slots[by_round]),
            TAKEN: drawn.chosen[graph.part].astype(np.int32),
            KIND: [arranged.kind] * holder.size,
            SIZE: np.diff(ringed.offsets).astype(np.int32),
            FLIPS: np.add.reduceat(flipped, graph.offsets[:-1]),
            STEPS: steps,
            BASE: _items(fields.base, ringed.codes, universe),
            UNCERTAIN: _items(fields.uncertain, ringed.codes, universe),
            MAX_ERRORS: fields.errors.astype(np.int32),
        }
        if VALUE in table.column_names:
            columns[VALUE] = table.column(VALUE).take(arranged.order[holder])
        return as_expected(pa.table(columns), schema)

    return work


def _schema(records: Records) -> T.StructType:
    longs, ints = T.LongType(), T.IntegerType()
    names = T.ArrayType(T.StringType())
    kinds: dict[str, T.DataType] = {
        LINK: longs, BLOCK: longs, SLOT: ints, PART: ints, SLOTS: T.ArrayType(ints), TAKEN: ints, KIND: T.StringType(),
        SIZE: ints, FLIPS: longs, STEPS: longs, BASE: names, UNCERTAIN: names, MAX_ERRORS: ints,
    }  # fmt: skip
    if VALUE in records.frame.columns:
        kinds[VALUE] = records.frame.schema[VALUE].dataType
    return T.StructType([T.StructField(name, kind) for name, kind in kinds.items()])


def _array(table: pa.Table, name: str, kind: Any) -> Any:
    return np.asarray(table.column(name)).astype(kind)


def _items(bitmaps: Words, codes: Ints, universe: Any) -> Any:
    """Bitmaps over some items (by their codes) as lists of names, sorted."""
    offsets, items = items_of(bitmaps)
    names = universe.take(pa.array(codes))
    by_name = np.asarray(pc.sort_indices(names)).astype(np.int64)
    place = np.empty_like(by_name)
    place[by_name] = np.arange(by_name.size)
    row = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    keys = np.sort(row * by_name.size + place[items])  # by row, then by name
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), names.take(pa.array(by_name[keys % max(1, by_name.size)])))
