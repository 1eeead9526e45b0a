"""Refinement of a partition on frames: blocks of neighbouring classes, one task each (decisions M-11 to M-14)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.arrays import each_once
from anon_spark.columns import PREFIX, ROWS
from anon_spark.engine import small_frame
from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.mst.frames import COUNTS, VALUES, histograms_in, leaf_columns, level_columns, values_of, whole
from anon_spark.families.mst.kernels.counts import UNCOUNTED, counts_taken
from anon_spark.families.mst.kernels.distances import Levels, levels_of
from anon_spark.families.mst.kernels.division import divided
from anon_spark.families.mst.kernels.keeping import is_class
from anon_spark.families.mst.kernels.losses import Tuples, classes_from, node_weights
from anon_spark.families.mst.kernels.refinement import refined
from anon_spark.families.mst.merge import WHOLE_TABLE_TOO_SMALL
from anon_spark.families.mst.models import counts_of, kept_exactly
from anon_spark.families.mst.sensitive import summed_counts
from anon_spark.families.mst.shares import code_matrix
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.histograms import Histograms
from anon_spark.kernels.models import SensitiveColumn
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.primitives.classes.arrays import ladder_of

Step = Callable[[pa.Table], pa.Table]

BLOCK = PREFIX + "block"
MOST_TASKS = 10_000
BLOCKS_PER_TASK = 4  # a block takes tenths of a second, about as much as starting a task
TUPLES = PREFIX + "tuples"
CELL = PREFIX + "cell_"  # + position: a leaf that stands for all below the same value some levels up
LEAST_BLOCK = 24  # tuples that a block may have at least, in multiples of k


class Sensitive(NamedTuple):
    """The sensitive values of tuples: up to l distinct ones (as in Tuples), and the rows of each where columns have models."""

    values: Codes
    histograms: Histograms | None = None


class Refining(NamedTuple):
    """What a refinement needs to know beside the tuples; rows: of the whole table.

    sensitive: how many columns need l distinct values; least: by column, where not all need l; models: of columns.
    """

    hierarchies: Sequence[Hierarchy]
    rows: int
    k: int
    l: int | None  # noqa: E741 - the literature's name
    sensitive: int
    sweeps: int  # 0: classes are only made diverse
    visits: int
    block_tuples: int
    divided_max: int
    budget: int = 0  # rows that may be left out
    least: Sequence[int] = ()
    models: Sequence[SensitiveColumn] = ()

    @property
    def needed(self) -> bool:
        """Whether there is anything to do."""
        return self.sweeps > 0 or self.l is not None or self.budget > 0 or bool(self.models)

    @property
    def distinct(self) -> Sequence[int]:
        """How many distinct values a class needs, by column."""
        return self.least or (self.l or 0,) * self.sensitive

    def levels(self) -> tuple[Levels, Ints]:
        """The hierarchies as arrays, and the weights of their nodes."""
        levels = levels_of(ladder_of(self.hierarchies))
        return levels, node_weights(levels, self.rows)

    def sensitive_in(self, table: pa.Table) -> Sensitive:
        """The sensitive values of the rows of a table."""
        return Sensitive(values_of(table, self.distinct), histograms_in(table) if self.models else None)

    def in_order(self, leaf: Codes, rows: Ints, sensitive: Sensitive) -> tuple[Tuples, Ints]:
        """The tuples in the order of their leaves, whatever theirs was, and where each stood before."""
        order = np.lexsort(leaf.T[::-1])
        counts = UNCOUNTED
        if sensitive.histograms is not None:
            counts = counts_taken(counts_of(self.models, sensitive.histograms), order.astype(np.int32))
        values = np.ascontiguousarray(sensitive.values[order])
        return Tuples(np.ascontiguousarray(leaf[order]), rows[order], values, counts), order


def blocks_of(refining: Refining, leaf: Codes, level: Codes, sensitive: Sensitive, counts: Ints | None = None) -> Codes:
    """The block of each tuple (tuples × attributes), whatever their order; counts: how many tuples each stands for.

    A block has at least k tuples, if all together have, and as a whole keeps l and the models.
    """
    tuples, order = refining.in_order(leaf, np.ones(len(leaf), dtype=np.int64) if counts is None else counts, sensitive)
    block = np.empty(order.size, dtype=np.int32)
    most = max(refining.block_tuples, LEAST_BLOCK * refining.k)
    block[order] = divided(*refining.levels(), tuples, np.ascontiguousarray(level[order]), most)
    return block


def matrix_of(data: pa.RecordBatch | pa.Table, columns: Sequence[str]) -> Codes:
    """Columns of codes as an array rows × columns."""
    return np.ascontiguousarray(code_matrix(data, columns).T)


def nodes_of(levels: Levels, leaf: Codes, level: Codes) -> Ints:
    """The node of each attribute: its level and its value there, as one number."""
    at = level.astype(np.int64) * levels.leaves
    return at + levels.codes[levels.starts + at + leaf]


def refined_levels(refining: Refining, leaf: Codes, level: Codes, rows: Ints, sensitive: Sensitive) -> Codes:
    """The levels of the tuples of one block (tuples × attributes) after refinement, whatever their order.

    Tuples with the same values on their levels are one class. Guarantee: every class has k rows and l values, and by exact
    arithmetic keeps the models.
    """
    levels, weights = refining.levels()
    tuples, order, before, count = classes_by_node(refining, leaf, level, rows, sensitive)
    class_of = refined(levels, weights, tuples, before, count, refining.k, refining.sweeps, refining.visits)
    numbers, number = np.unique(class_of, return_inverse=True)
    classes = classes_from(levels, weights, tuples, number.astype(np.int32), numbers.size, numbers.size)
    uncounted = tuples._replace(counts=UNCOUNTED)
    large = all(is_class(uncounted, classes, number, refining.k) for number in range(numbers.size))
    if not large or not kept_exactly(refining.models, tuples.counts, number.astype(np.int32), numbers.size).all():
        raise GuaranteeUnreachable(WHOLE_TABLE_TOO_SMALL, classes=0)
    after = np.empty_like(level)
    after[order] = classes.level[number]
    return after


def classes_by_node(
    refining: Refining, leaf: Codes, level: Codes, rows: Ints, sensitive: Sensitive
) -> tuple[Tuples, Ints, Codes, int]:
    """The tuples of a block in order, where each stood before, its class, and how many classes there are.

    Tuples with the same values on their levels are one class.
    """
    tuples, order = refining.in_order(leaf, rows, sensitive)
    nodes = nodes_of(refining.levels()[0], leaf, level)[order]
    distinct, number = np.unique(nodes, axis=0, return_inverse=True)
    return tuples, order, number.reshape(-1).astype(np.int32), len(distinct)


def refine_blocks(assigned: DataFrame, blocks: int, refining: Refining) -> DataFrame:
    """A frame of leaves, levels, ROWS, BLOCK (VALUES, COUNTS) with the levels of the tuples after refinement."""
    return in_each_block(assigned, blocks, refinement(refining), schema_with(assigned, {}))


def refinement(refining: Refining) -> Step:
    """The tuples of one block → the same with the levels after refinement."""
    count = len(refining.hierarchies)
    leaves, levels = leaf_columns(count), level_columns(count)

    def step(table: pa.Table) -> pa.Table:
        leaf, level = matrix_of(table, leaves), matrix_of(table, levels)
        rows = table.column(ROWS).to_numpy().astype(np.int64)
        after = refined_levels(refining, leaf, level, rows, refining.sensitive_in(table))
        for name, column in zip(levels, after.T, strict=True):
            table = table.set_column(table.column_names.index(name), name, pa.array(column, pa.int32()))
        return table

    return step


def in_each_block(assigned: DataFrame, blocks: int, step: Step, schema: str) -> DataFrame:
    """The tuples of each block after a step. Cost: one shuffle of the distinct tuples; a task takes some blocks in turn."""
    tasks = min(max(1, -(-blocks // BLOCKS_PER_TASK)), MOST_TASKS)
    return assigned.repartition(tasks, BLOCK).groupBy(BLOCK).applyInArrow(step, schema)


def in_held_blocks(spark: SparkSession, tuples: pa.Table, step: Step, new: dict[str, str]) -> pa.Table:
    """As `in_each_block`, of tuples that the driver holds: few blocks here, more of them in tasks. new: columns that come in."""
    number = tuples.column(BLOCK).to_numpy()
    blocks = each_once(number)
    if blocks.size <= BLOCKS_PER_TASK:
        return pa.concat_tables([step(tuples.filter(pa.array(number == block))) for block in blocks])
    frame = small_frame(spark, tuples)
    return in_each_block(frame, blocks.size, step, schema_with(frame, new)).toArrow()


def with_blocks(assigned: DataFrame, tuples: int, refining: Refining) -> DataFrame:
    """A frame of leaves, levels, ROWS (VALUES, COUNTS) with the BLOCK of each tuple.

    Cost: one task that sees all tuples, or if they are too many, the distinct tuples on higher levels: as many levels up as it
    takes, one job each.
    """
    count = len(refining.hierarchies)
    leaves = leaf_columns(count)
    if tuples <= refining.divided_max:
        schema = schema_with(assigned, {BLOCK: "int"})
        return assigned.coalesce(1).mapInArrow(_divide(refining, [*assigned.columns], leaves), schema)
    cells = [f"{CELL}{position}" for position in range(count)]
    levels = [F.max(name).alias(name) for name in level_columns(count)]
    held = [
        F.slice(F.array_sort(F.array_distinct(F.flatten(F.collect_list(name)))), 1, most).alias(name)
        for name, most in ((f"{VALUES}{column}", most) for column, most in enumerate(refining.distinct))
    ]
    for up in range(1, max(hierarchy.height for hierarchy in refining.hierarchies) + 1):
        known = assigned.mapInArrow(_with_cells(refining, cells, up), schema_with(assigned, dict.fromkeys(cells, "int")))
        found = known.groupBy(*cells).agg(F.count(F.lit(1)).alias(TUPLES), *levels, *held)
        if found.count() <= refining.divided_max:
            break
    if refining.models:
        found = found.join(summed_counts(known.select(*cells, COUNTS), cells), cells)
    schema = schema_with(found.select(*cells), {BLOCK: "int"})
    numbered = found.coalesce(1).mapInArrow(_divide(refining, cells, cells), schema)
    return known.join(numbered, cells).drop(*cells)


Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _with_cells(refining: Refining, cells: Sequence[str], up: int) -> Task:
    """The first leaf of each tuple's value so many levels up, or at the root."""
    leaves = leaf_columns(len(cells))

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = []
        for hierarchy in refining.hierarchies:
            codes = hierarchy.codes[min(up, hierarchy.height)]
            first.append(np.unique(codes, return_index=True)[1].astype(np.int32)[codes])
        for batch in batches:
            added = [pa.array(table[row]) for table, row in zip(first, code_matrix(batch, leaves), strict=True)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], names=[*batch.schema.names, *cells])

    return work


def _divide(refining: Refining, kept: Sequence[str], leaves: Sequence[str]) -> Task:
    levels = level_columns(len(leaves))

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = whole(batches)
        if table is None:
            return
        counts = table.column(TUPLES).to_numpy() if TUPLES in table.column_names else None
        block = blocks_of(refining, matrix_of(table, leaves), matrix_of(table, levels), refining.sensitive_in(table), counts)
        done = pa.Table.from_arrays([*(table.column(name) for name in kept), pa.array(block)], names=[*kept, BLOCK])
        yield from done.to_batches(max_chunksize=100_000)

    return work


def schema_with(frame: DataFrame, new: dict[str, str]) -> str:
    fields = [f"`{field.name}` {field.dataType.simpleString()}" for field in frame.schema]
    return ", ".join([*fields, *(f"`{name}` {kind}" for name, kind in new.items())])
