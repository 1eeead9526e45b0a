"""Frequent subtrees of nested records on every level of generalization.

A subtree is a set of label paths from the record's root that holds the beginning of each (induced, anchored at the root,
which is no node); a record contains it if it has all its paths. On level i every label stands for its ancestor there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import LINK, PREFIX, ROWS, quoted
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.metrics.path_dependence import UNKNOWN, LabelReading, refuse_unknown
from anon_spark.model.tree import Forest
from anon_spark.primitives.rounds import Workspace, collect_small
from anon_spark.primitives.tables import require_columns
from anon_spark.primitives.tasks import BatchTask, lists_of, number_lists
from jobs.reproductions.tree import subtrees
from jobs.reproductions.tree.subtrees import MOST_SETS, ROOT, Paths, Projection, Trie, frequent_paths, frequent_sets

MAX_NODES = 20
TASK_RECORDS = 10_000

SOURCE, SHOWN = PREFIX + "source", PREFIX + "shown"  # labels of a record's paths, each path begun by a complement
ITEMS, LOST, BROKEN, VISIBLE = (PREFIX + name for name in ("items", "lost", "broken", "visible"))
ROW_SCHEMA = ", ".join(f"{name} array<int>" for name in (ITEMS, LOST, BROKEN, VISIBLE))

UNKNOWN_LABELS = PREFIX + "unknown"  # how many labels of a record the forest does not have

_KEY, _NODE = PREFIX + "key", PREFIX + "node"

Path = tuple[str, ...]

# Tasks call compiled functions through their module: one that is pickled by itself is compiled again in every worker.


@dataclass(frozen=True, eq=False)
class Subtrees:
    """The frequent subtrees of all levels, as nodes of a trie of path numbers, and how many records contain each.

    capped: whether larger ones than `max_nodes` were left uncounted.
    """

    paths: Paths = field(repr=False)
    trie: Trie = field(repr=False)
    supports: Ints = field(repr=False)
    capped: bool

    @property
    def levels(self) -> Codes:
        """The level of each subtree."""
        return self.paths.levels[self.trie.items]

    def summed(self, values: Ints) -> Ints:
        """By subtree the sum over its paths of a value by path."""
        found = values[self.trie.items].astype(np.int64)
        for node, base in enumerate(self.trie.bases.tolist()):
            if base != ROOT:
                found[node] += found[base]
        return found

    def named(self, forest: Forest) -> dict[tuple[int, frozenset[Path]], int]:
        """(level, label paths) → support."""
        written = list[Path]()
        for label, parent in zip(self.paths.labels.tolist(), self.paths.parents.tolist(), strict=True):
            written.append((*(() if parent == ROOT else written[parent]), forest.labels[label]))
        sets = list[frozenset[Path]]()
        for base, item in zip(self.trie.bases.tolist(), self.trie.items.tolist(), strict=True):
            sets.append((frozenset() if base == ROOT else sets[base]) | {written[item]})
        return {
            (level, of): support
            for level, of, support in zip(self.levels.tolist(), sets, self.supports.tolist(), strict=True)
        }


def frequent_subtrees(
    records: DataFrame,
    forest: Forest,
    minsup: float = 0.01,
    max_nodes: int = MAX_NODES,
    column: str = "paths",
    workspace: Workspace | None = None,
) -> Subtrees:
    """The subtrees in at least minsup · |D| records on the levels 0 … h - 1, up to `max_nodes` nodes.

    workspace: where records are kept as numbers meanwhile; default: a temporary one.
    Guarantee: exact; the same for any partitioning. Cost: one rewrite as numbers, one as paths, one job per length of a path
    and one per size of a subtree; a task takes for each record the time of the subtrees it contains.
    """
    own = workspace or Workspace(records.sparkSession)
    try:
        coded = own.store(coded_paths(records, forest, column, SOURCE), "labels")
        rows, unknown = coded.agg(F.count(F.lit(1)), F.sum(UNKNOWN_LABELS)).collect()[0]
        if not rows:
            raise DataError("Frequent subtrees of a table without rows are not defined.")
        refuse_unknown(int(unknown), column)
        least = least_support(minsup, rows)
        projection = projection_of(forest)
        paths, supports = counted_paths(coded, projection, least)
        linked = coded.withColumn(SHOWN, F.array().cast("array<int>"))
        return mined(own.store(path_rows(linked, projection, paths), "paths"), paths, supports, least, max_nodes)
    finally:
        if workspace is None:
            own.close()


def least_support(minsup: float, rows: int) -> int:
    """The least number of records that is minsup · rows."""
    if not 0 < minsup <= 1:
        raise ConfigurationError(f"minsup = {minsup} is no share of the records. Give a number above 0, at most 1.")
    return max(1, ceil(Fraction(repr(minsup)) * rows))  # 0.07 of 100 is 7, not 7.000000000000001


def projection_of(forest: Forest) -> Projection:
    """The forest on the levels 0 … h - 1."""
    images = np.vstack([forest.at_level(level) for level in range(forest.height)])
    return Projection(images, forest.parents, forest.levels, forest.height)


def coded_paths(frame: DataFrame, forest: Forest, column: str, name: str) -> DataFrame:
    """LINK where there is one, the labels of each record's paths as numbers, and how many the forest does not have."""
    require_columns(frame, [column])
    reading = LabelReading.of(forest)
    others = [LINK] if LINK in frame.columns else []
    schema = ", ".join([*(f"{one} long" for one in others), f"{name} array<int>", f"{UNKNOWN_LABELS} long"])

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            paths = reading(batch.column(0))
            codes = np.maximum(paths.labels, 0)
            begins = paths.path_offsets[:-1][np.diff(paths.path_offsets) > 0]
            codes[begins] = ~codes[begins]
            offsets = paths.path_offsets[paths.row_offsets]
            unknown = np.concatenate([[0], np.cumsum(paths.labels == UNKNOWN)])[offsets]
            arrays = [*batch.columns[1:], number_lists(offsets, codes), pa.array(np.diff(unknown), pa.int64())]
            yield pa.RecordBatch.from_arrays(arrays, names=[*others, name, UNKNOWN_LABELS])

    return frame.select(quoted(column), *others).mapInArrow(work, schema)


def counted_paths(coded: DataFrame, projection: Projection, least: int) -> tuple[Paths, Ints]:
    """The paths in at least `least` records on all levels, and in how many.

    Cost: one job per length of a path; the frequent ones reach the driver.
    """

    def count(paths: Paths, depth: int) -> tuple[Ints, Ints]:
        counted = coded.select(SOURCE).mapInArrow(_counting(projection, paths, depth), f"{_KEY} long, {ROWS} long")
        summed = counted.groupBy(_KEY).agg(F.sum(ROWS).alias(ROWS)).where(F.col(ROWS) >= least)
        found = collect_small(summed, MOST_SETS, "Frequent paths").sort_by(_KEY)
        return found.column(_KEY).to_numpy(), found.column(ROWS).to_numpy()

    return frequent_paths(projection, count)


def _counting(projection: Projection, paths: Paths, depth: int) -> BatchTask:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = subtrees.longer_paths(*lists_of(pa.Table.from_batches([batch]), SOURCE), projection, paths, depth)
            keys, rows = np.unique(found, return_counts=True)
            yield pa.RecordBatch.from_pydict({_KEY: keys, ROWS: rows})

    return work


def path_rows(linked: DataFrame, projection: Projection, paths: Paths) -> DataFrame:
    """One row per record and level: the numbers of its frequent paths, and what a release leaves of them."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            found = subtrees.rows_of(*lists_of(table, SOURCE), *lists_of(table, SHOWN), projection, paths)
            arrays = [number_lists(found.offsets, of) for of in (found.items, found.lost, found.broken)]
            arrays.append(number_lists(found.shown_offsets, found.shown))
            yield pa.RecordBatch.from_arrays(arrays, names=[ITEMS, LOST, BROKEN, VISIBLE])

    return linked.select(SOURCE, SHOWN).mapInArrow(work, ROW_SCHEMA)


def mined(rows: DataFrame, paths: Paths, path_supports: Ints, least: int, max_nodes: int) -> Subtrees:
    """The frequent subtrees in rows of path numbers, size by size. Cost: one job per size."""
    if max_nodes < 1:
        raise ConfigurationError(f"max_nodes = {max_nodes}: a subtree has one node or more.")
    found = frequent_sets(paths, path_supports, lambda trie, last: _supports(rows, trie, last, least), least, max_nodes)
    return Subtrees(paths, found.trie, found.supports, found.is_capped)


def _supports(rows: DataFrame, trie: Trie, last: int, least: int) -> Ints:
    """How many rows contain each of the last sets of a trie; 0 where fewer than `least` do."""
    before = trie.items.size - last

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts = np.zeros(trie.items.size, dtype=np.int64)
        for batch in batches:
            subtrees.add_supports(trie, *lists_of(pa.Table.from_batches([batch]), ITEMS), counts)
        met = np.flatnonzero(counts[before:])
        yield pa.RecordBatch.from_pydict({_NODE: met, ROWS: counts[before:][met]})

    counted = rows.select(ITEMS).mapInArrow(work, f"{_NODE} long, {ROWS} long")
    summed = counted.groupBy(_NODE).agg(F.sum(ROWS).alias(ROWS)).where(F.col(ROWS) >= least)
    found = collect_small(summed, last, "Subtrees")
    supports = np.zeros(last, dtype=np.int64)
    supports[found.column(_NODE).to_numpy()] = found.column(ROWS).to_numpy()
    return supports
