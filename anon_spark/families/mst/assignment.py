"""The levels of every distinct tuple: the partition as a frame, made in one task or in many."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, ROWS, quoted
from anon_spark.engine import small_frame
from anon_spark.errors import DataError
from anon_spark.families.mst.blocks import cut_in_blocks, number_tuples
from anon_spark.families.mst.frames import COUNTS, HEAD, TID, VALUES, leaf_columns, level_columns, whole
from anon_spark.families.mst.partition import Settings, cut_tree, merge_small, ranks_and_heads
from anon_spark.families.mst.refinement import (
    BLOCK,
    Refining,
    Sensitive,
    blocks_of,
    in_held_blocks,
    refine_blocks,
    refined_levels,
    refinement,
    with_blocks,
)
from anon_spark.families.mst.spread import SpreadMerge
from anon_spark.families.mst.suppression import held_without_outliers, left_out, without_outliers
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.tuples import TupleTable
from anon_spark.model.progress import Progress
from anon_spark.primitives.classes import Frequencies
from anon_spark.primitives.classes.frequencies import code_columns
from anon_spark.primitives.rounds import Workspace

NOTE = PREFIX + "note"  # one row of the result carries the statistics instead of a tuple
LEFT_OUT = -1


@dataclass(frozen=True)
class Assignment:
    """The levels of every distinct tuple: columns LEAF and LEVEL of each attribute, and ROWS; with statistics of the fit.

    A tuple that is left out of the release has null levels. levels: the same where the driver holds the tuples, in their
    order there: tuples × attributes, -1 for one that is left out.
    """

    frame: DataFrame
    statistics: dict[str, Any]
    levels: Codes | None = None


def assign(
    frequencies: Frequencies,
    settings: Settings,
    workspace: Workspace,
    values: DataFrame | pa.Table | None,
    progress: Progress | None = None,
) -> Assignment:
    """Partition the distinct tuples. values: per tuple, with l up to l hashes of each sensitive column, with models COUNTS.

    Tuples that the driver holds are partitioned there, with values in the order of the tuples.

    Tree, cut and merging look at k alone; the refinement, in blocks of neighbouring classes, keeps k and reaches l and models.
    Guarantee: the same partition whether one task makes it or many.
    Cost: up to `settings.local_max` tuples in one task, about 140 bytes each; above, blocks and shares (blocks.py), and
    above `settings.merge_local_max` small classes merging in rounds (spread.py).
    """
    count = len(frequencies.hierarchies)
    codes = code_columns(count)
    leaves = [F.col(code).alias(leaf) for code, leaf in zip(codes, leaf_columns(count), strict=True)]
    names = [] if values is None else values.column_names if isinstance(values, pa.Table) else values.columns
    distinct = [name for name in names if name.startswith(VALUES)]
    held = [*distinct, *(name for name in names if name == COUNTS)]
    refining = Refining(
        frequencies.hierarchies,
        frequencies.rows,
        settings.k,
        settings.l,
        len(distinct),
        settings.sweeps,
        settings.visits,
        settings.block_tuples,
        settings.divided_max,
        settings.budget,
        settings.least,
        [column.portable() for column in settings.models],
    )
    if frequencies.held is not None:
        assert not isinstance(values, DataFrame), "the values of held tuples are held, too"
        return _assigned_here(frequencies.held.table, values, refining, settings, workspace)
    assert not isinstance(values, pa.Table), "the values of stored tuples are a frame"
    frame = frequencies.files.frame.select(*codes, ROWS)
    # 1. all in one task, if it is not too much
    if frequencies.tuples <= settings.local_max:
        whole_frame = frame if values is None else frame.join(values, codes)
        parted, statistics = _in_one_task(whole_frame, refining, settings, workspace)
        if "merge" in statistics:
            assigned = parted.select(*leaves, *level_columns(count), ROWS, *held, BLOCK)
            return _refined(assigned, statistics, refining, workspace)
    else:
        started = perf_counter()
        numbered = number_tuples(frame, frequencies.hierarchies, workspace)
        parted, statistics = cut_in_blocks(numbered, frequencies.tuples, frequencies.hierarchies, settings, workspace)
        statistics = {**statistics, "seconds": {"tree": perf_counter() - started}}
    # 2. else merging, and the division into blocks, over many
    started = perf_counter()
    merging = SpreadMerge(frequencies.hierarchies, settings, workspace, progress)
    assigned, merged = merging.assign(parted.select(*codes, ROWS, HEAD))
    assigned = workspace.store(assigned, "merged")
    statistics |= {**merged, "seconds": {**statistics["seconds"], "merge": perf_counter() - started}}
    if not refining.needed:
        return Assignment(assigned, statistics)
    if values is not None:
        assigned = assigned.join(values.select(*leaves, *held), leaf_columns(count))
    divided = workspace.store(with_blocks(assigned, frequencies.tuples, refining), "blocks")
    last = divided.agg(F.max(BLOCK)).first()
    assert last is not None, "an aggregate has one row"
    return _refined(divided, {**statistics, "blocks": last[0] + 1}, refining, workspace)


def _assigned_here(
    tuples: TupleTable, values: pa.Table | None, refining: Refining, settings: Settings, workspace: Workspace
) -> Assignment:
    """The assignment of tuples that the driver holds. Cost: no job, or one per step where there are many blocks."""
    leaves, levels = leaf_columns(len(refining.hierarchies)), level_columns(len(refining.hierarchies))
    rows, names = pa.array(tuples.rows), [] if values is None else values.column_names
    held = [] if values is None else values.columns
    made = _cut_and_merged(tuples.codes, tuples.rows, values, refining, replace(settings, merge_local_max=tuples.size))
    arrays = [*(pa.array(codes) for codes in tuples.codes), *(pa.array(made.level[:, at]) for at in range(len(levels)))]
    places = pa.array(np.arange(tuples.size))
    assigned = pa.Table.from_arrays(
        [*arrays, rows, *held, pa.array(made.block), places], names=[*leaves, *levels, ROWS, *names, BLOCK, TID]
    )
    statistics, blocks = made.statistics, made.statistics.get("blocks", 0)
    if blocks:
        started = perf_counter()
        assigned = in_held_blocks(workspace.spark, assigned, refinement(refining), {})
        statistics = {**statistics, "seconds": {**statistics["seconds"], "refine": perf_counter() - started}}
    if refining.budget:
        started = perf_counter()
        assigned = held_without_outliers(workspace.spark, assigned, refining)
        missing = assigned.column(levels[0]).is_null().to_numpy()
        statistics = {
            **statistics,
            "suppressed": int(assigned.column(ROWS).to_numpy()[missing].sum()),
            "seconds": {**statistics["seconds"], "suppress": perf_counter() - started},
        }
    assigned = assigned.sort_by(TID).select([*leaves, *levels, ROWS])
    nowhere: Any = pa.scalar(LEFT_OUT, pa.int32())
    found = np.stack([assigned.column(name).fill_null(nowhere).to_numpy() for name in levels], axis=1)
    statistics = {**statistics, "blocks": max(1, blocks) if refining.needed else None}
    return Assignment(small_frame(workspace.spark, assigned), statistics, found.astype(np.int32))


def _refined(assigned: DataFrame, statistics: dict[str, Any], refining: Refining, workspace: Workspace) -> Assignment:
    """The assignment, refined in blocks unless it is already (blocks: 0), or need not be; outliers left out."""
    started = perf_counter()
    blocks = statistics.get("blocks", 0)
    if blocks:
        assigned = workspace.store(refine_blocks(assigned, blocks, refining), "assignment")
        statistics = {**statistics, "seconds": {**statistics["seconds"], "refine": perf_counter() - started}}
    if refining.budget:
        started = perf_counter()
        assigned = without_outliers(assigned, blocks, refining, workspace)
        statistics = {
            **statistics,
            "suppressed": left_out(assigned),
            "seconds": {**statistics["seconds"], "suppress": perf_counter() - started},
        }
    kept = [*leaf_columns(len(refining.hierarchies)), *level_columns(len(refining.hierarchies)), ROWS]
    return Assignment(assigned.select(*kept), {**statistics, "blocks": max(1, blocks) if refining.needed else None})


class Parted(NamedTuple):
    """Tuples after the cut (rank and head), and with levels and blocks if small parts could be merged, too."""

    rank: Ints
    head: Ints
    level: Codes
    block: Codes
    statistics: dict[str, Any]


def _cut_and_merged(
    leaf: Codes, rows: Ints, values: pa.Table | None, refining: Refining, settings: Settings
) -> Parted:
    """Cut the tree of the tuples and merge small parts, unless they are too many; the statistics tell which.

    A table of one block is refined here (blocks: 0 in the statistics): another job would cost more.
    """
    cut = cut_tree(leaf, rows, refining.hierarchies, settings)
    rank, head = ranks_and_heads(cut)
    block = np.zeros(rows.size, dtype=np.int32)
    if not settings.is_local(cut.groups.small.size):
        return Parted(rank, head, np.zeros((rows.size, len(leaf)), dtype=np.int32), block, cut.statistics)
    parts = merge_small(cut, settings)
    statistics, level = parts.statistics, parts.levels[parts.class_of].astype(np.int32)
    if refining.needed:
        started = perf_counter()
        sensitive = Sensitive(np.zeros((rows.size, 0, 0), dtype=np.int32))
        if values is not None:
            sensitive = refining.sensitive_in(values)
        block = blocks_of(refining, leaf.T, level, sensitive)
        if block.max() == 0:
            level = refined_levels(refining, leaf.T, level, rows, sensitive)
        statistics = {
            **statistics,
            "blocks": int(block.max() + 1) if block.max() else 0,
            "seconds": {**statistics["seconds"], "refine": perf_counter() - started},
        }
    return Parted(rank, head, level, block, statistics)


def _in_one_task(
    frame: DataFrame, refining: Refining, settings: Settings, workspace: Workspace
) -> tuple[DataFrame, dict[str, Any]]:
    """The frame with TID and HEAD, and with levels and BLOCK if one task could also merge; the statistics tell which."""
    codes, levels = code_columns(len(refining.hierarchies)), level_columns(len(refining.hierarchies))
    names = [TID, HEAD, *levels, BLOCK, NOTE]

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = whole(batches)
        if table is None:
            return
        leaf = np.array([table.column(name).to_numpy() for name in codes], dtype=np.int32)
        rows = table.column(ROWS).to_numpy().astype(np.int64)
        made = _cut_and_merged(leaf, rows, table, refining, settings)
        note = pa.array([json.dumps(made.statistics)])
        noted = [pa.nulls(1, field.type) for field in table.schema] + [pa.nulls(1, pa.int64())] * 2
        noted += [pa.nulls(1, pa.int32())] * (len(levels) + 1)
        schema = [*table.column_names, *names]
        yield pa.RecordBatch.from_arrays([*noted, note], names=schema)
        added: list[Any] = [pa.array(made.rank), pa.array(made.head)]
        added += [pa.array(made.level[:, position]) for position in range(len(levels))]
        added += [pa.array(made.block), pa.nulls(rows.size, pa.string())]
        done = pa.Table.from_arrays([*table.columns, *added], names=schema)
        yield from done.to_batches(max_chunksize=100_000)

    kinds = ["long", "long", *["int"] * (len(levels) + 1), "string"]
    fields = [f"{quoted(field.name)} {field.dataType.simpleString()}" for field in frame.schema]
    more = [f"`{name}` {kind}" for name, kind in zip(names, kinds, strict=True)]
    stored = workspace.store(frame.coalesce(1).mapInArrow(work, ", ".join([*fields, *more])), "cut")
    note = stored.where(F.col(NOTE).isNotNull()).select(NOTE).first()
    if note is None:
        raise DataError("The table is empty: there is nothing to release.", rows=0)
    statistics = json.loads(note[0])
    statistics["weights"] = {int(weight): count for weight, count in statistics["weights"].items()}
    return stored.where(F.col(NOTE).isNull()).drop(NOTE), statistics
