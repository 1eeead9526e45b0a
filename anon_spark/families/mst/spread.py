"""Merging in many tasks: the rounds of merge.py on frames of classes, for more small classes than one task can merge.

In a round each task holds all small classes (about 100 bytes each) and finds the neighbours of its share. Then the classes
of a bucket meet in one task, which finds the pairs. As soon as few classes are left, one task merges them.

A class carries no list of what it was merged from. Each merge leaves a row that says into which class the other one went, and
at the end one task follows these rows from every part to its class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, ROWS
from anon_spark.engine import beside, small_frame
from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.mst.frames import (
    HEAD,
    IDENT,
    SHARE,
    SIZE,
    ClassColumns,
    in_every_share,
    leaf_columns,
    level_columns,
    share_keys,
    whole,
)
from anon_spark.families.mst.kernels import distances, merging
from anon_spark.families.mst.kernels.distances import Levels, in_runs, levels_of
from anon_spark.families.mst.kernels.merging import merge_into, mutual_pairs
from anon_spark.families.mst.kernels.neighbours import Classes, Neighbours, neighbours, plan
from anon_spark.families.mst.kernels.spanning import walk
from anon_spark.families.mst.merge import WHOLE_TABLE_TOO_SMALL, ended_in, merge_greedy, merge_in_rounds
from anon_spark.families.mst.partition import Settings
from anon_spark.kernels.classes import Ints
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.progress import Progress
from anon_spark.primitives.classes.arrays import ladder_of
from anon_spark.primitives.classes.frequencies import code_columns
from anon_spark.primitives.rounds import Workspace

INTO = PREFIX + "into"  # the class that a class went into; itself, if it is still there
STATE = PREFIX + "state"
ROUNDS = PREFIX + "rounds"
DISTANCE, AT_NODE, BUCKET = PREFIX + "distance", PREFIX + "at_node", PREFIX + "bucket_"
KEPT, SMALL, LEFT_OVER, MERGED = "kept", "small", "left over", "merged"
SHARE_CLASSES, MOST_SHARES = 100_000, 16

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class SpreadMerge:
    """The third step of MSTK on frames.

    Guarantee: the classes are those of `merge_in_rounds`, however the work is spread. Leaves are numbered by runs
    here. Cost: per round one job with two shuffles of the small classes, one of them times the number of shares; at the end
    one task holds a row for each part that was small.
    """

    hierarchies: Sequence[Hierarchy]
    settings: Settings
    workspace: Workspace
    progress: Progress | None = None

    def assign(self, parted: DataFrame) -> tuple[DataFrame, dict[str, Any]]:
        """Leaves, levels and ROWS of each tuple of a frame with code columns, ROWS and HEAD; statistics of merging."""
        # 1. one class per part
        parts, active = self._counted(parted.repartition(HEAD).mapInArrow(self._generalize(), self._schema), "parts")
        count, way, small = active, self.settings.way(active), parts
        # 2. rounds, until one task can merge the rest
        rounds: list[str] = []
        shares = min(MOST_SHARES, max(2, count // SHARE_CLASSES))
        keys = share_keys(parts.sparkSession, shares) if active > self.settings.merge_local_max else []
        while way == "rounds" and active > self.settings.merge_local_max:
            rounds.append(f"round-{len(rounds) + 1}")
            small, active = self._counted(self._round(small.where(F.col(STATE) == SMALL), keys), rounds[-1])
            if self.progress is not None:
                self.progress(count - active, count, "small classes merged")
        last = small.where(F.col(STATE) == SMALL).coalesce(1).mapInArrow(self._finish(way), f"{self._schema}, {ROUNDS} int")
        ended = Observation("last")
        outcome = [F.max(ROUNDS).alias(ROUNDS), F.count_if(F.col(STATE) == LEFT_OVER).alias(LEFT_OVER)]
        last = self.workspace.store(last.observe(ended, *outcome), "last-classes")
        # 3. a leftover joins the closest class
        once_small = self.workspace.stored_together([*rounds, "last-classes"], parts.schema)
        classes = [frame.where(F.col(STATE) != SMALL) for frame in (parts, once_small)]
        at_once, later = self._with_leftover(*classes) if ended.get[LEFT_OVER] else classes
        # 4. every part gets the levels of the class that it ended in
        names = level_columns(len(self.hierarchies))
        schema = f"{HEAD} long, " + ", ".join(f"{name} int" for name in names)
        heads = later.select(IDENT, INTO, *names).coalesce(1).mapInArrow(self._followed(), schema)
        heads = heads.unionAll(at_once.select(F.col(IDENT).alias(HEAD), *names))
        codes = code_columns(len(self.hierarchies))
        leaves = [F.col(code).alias(leaf) for code, leaf in zip(codes, leaf_columns(len(codes)), strict=True)]
        assigned = parted.select(*codes, ROWS, HEAD).join(heads, HEAD).select(*leaves, *names, ROWS)
        return assigned, {"merge": way, "rounds": len(rounds) + (ended.get[ROUNDS] or 0) if way == "rounds" else None}

    def _counted(self, classes: DataFrame, name: str) -> tuple[DataFrame, int]:
        """The classes, stored, and how many of them are small. Cost: one job."""
        counted = Observation(name)
        stored = self.workspace.store(classes.observe(counted, F.count_if(F.col(STATE) == SMALL).alias(SMALL)), name)
        return stored, int(counted.get[SMALL])

    def _round(self, small: DataFrame, keys: Sequence[int]) -> DataFrame:
        """The small classes after all pairs of mutual nearest neighbours are merged, and what they were merged from."""
        words = [f"{BUCKET}{word}" for word in range(len(self._plan.factors))]
        near = in_every_share(small.select(*self._columns.names), keys).mapInArrow(
            self._search(words, len(keys)),
            f"{self._columns.schema}, {DISTANCE} long, {AT_NODE} int, " + ", ".join(f"{word} long" for word in words),
        )
        return near.repartition(AT_NODE, *words).mapInArrow(self._pair(), self._schema)

    def _with_leftover(self, at_once: DataFrame, later: DataFrame) -> list[DataFrame]:
        """Classes that were large enough at once, and later: with the leftover class joined to the closest other one."""
        columns, levels = self._columns, self._levels
        left = later.where(F.col(STATE) == LEFT_OVER).select(*columns.names).limit(1).toArrow()
        others = at_once.unionAll(later).where(F.col(STATE) == KEPT).select(*columns.names)
        nearest = others.mapInArrow(self._nearest(columns.classes_of(left)), f"{columns.schema}, {DISTANCE} long")
        first = nearest.orderBy(DISTANCE, SIZE, IDENT).limit(1).toArrow()
        if not first.num_rows:
            raise GuaranteeUnreachable(WHOLE_TABLE_TOO_SMALL, classes=0)
        both = columns.classes_of(first) + columns.classes_of(left)
        idents = both.ident.copy()
        merge_into(levels, *both, 0, 1)
        names = level_columns(len(self.hierarchies))
        new = {f"{name}_new": pa.array([both.level[0, at]] * 2, pa.int32()) for at, name in enumerate(names)}
        moved = small_frame(later.sparkSession, pa.table({IDENT: pa.array(idents, pa.int64()), **new}))
        changed = [F.coalesce(F.col(f"{name}_new"), F.col(name)).alias(name) for name in names]
        return [part.join(beside(moved), IDENT, "left").select(IDENT, INTO, *changed) for part in (at_once, later)]

    @cached_property
    def _columns(self) -> ClassColumns:
        return ClassColumns(len(self.hierarchies))

    @property
    def _schema(self) -> str:
        return f"{self._columns.schema}, {INTO} long, {STATE} string"

    @cached_property
    def _levels(self) -> Levels:
        return in_runs(levels_of(ladder_of(self.hierarchies))).levels

    # Tasks: functions of plain values, so that they are sent without this object.

    def _generalize(self) -> Task:
        columns, k, count = self._columns, self.settings.k, len(self.hierarchies)
        levels, place, _ = in_runs(levels_of(ladder_of(self.hierarchies)))

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            table = whole(batches)
            if table is None:
                return
            codes = np.array([table.column(name).to_numpy() for name in code_columns(count)], dtype=np.int32)
            leaf = place[levels.offsets[:, None] + codes]
            head = table.column(HEAD).to_numpy()
            order = np.argsort(head, kind="stable").astype(np.int32)
            first = np.flatnonzero(np.diff(head[order], prepend=-1))
            last = np.append(first[1:], head.size)
            level, of_one, _ = distances.generalized(levels, leaf, order, first, last)
            size = np.add.reduceat(table.column(ROWS).to_numpy()[order], first)
            classes = Classes(level, of_one, size, head[order][first])
            yield from _classes(columns, classes, classes.ident, np.where(size >= k, KEPT, SMALL))

        return work

    def _search(self, words: Sequence[str], shares: int) -> Task:
        columns, levels, nodes = self._columns, self._levels, self._plan

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            table = whole(batches)
            if table is None:
                return
            share = table.column(SHARE)[0].as_py()
            classes = columns.classes_of(table)
            queries = np.array_split(np.argsort(classes.ident), shares)[share]
            near = neighbours(classes, levels, nodes, queries)
            keys = merging.bucket_keys(levels, nodes.nodes, nodes.factors, classes.leaf[queries], near.node)
            found = map(pa.array, (near.distance, near.node, *keys.T))
            yield from _batches([*columns.arrays_of(classes.take(queries)), *found], [*columns.names, DISTANCE, AT_NODE, *words])

        return work

    def _pair(self) -> Task:
        columns, levels, nodes, k = self._columns, self._levels, self._plan, self.settings.k

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            table = whole(batches)
            if table is None:
                return
            classes = columns.classes_of(table)
            near = Neighbours(table.column(DISTANCE).to_numpy(), table.column(AT_NODE).to_numpy().astype(np.int32))
            left, right = mutual_pairs(classes, levels, nodes, near)
            before = classes.ident.copy()
            merging.merge_pairs(levels, *classes, left, right)
            gone = np.maximum(before[left], before[right])  # the pair has the lesser name
            there = classes.take(np.delete(np.arange(before.size), right))
            rows = there + classes.take(left)._replace(ident=gone)
            into = np.concatenate([there.ident, classes.ident[left]])
            state = np.concatenate([np.where(there.size >= k, KEPT, SMALL), np.full(gone.size, MERGED)])
            yield from _classes(columns, rows, into, state)

        return work

    def _finish(self, way: str) -> Task:
        columns, levels, k = self._columns, self._levels, self.settings.k
        merge = merge_greedy if way == "greedy" else merge_in_rounds

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            table = whole(batches)
            if table is None:
                return
            small = columns.classes_of(table)
            classes, number, leftover, rounds = merge(small, levels, k)
            is_class = classes.ident[number] == small.ident
            state = np.where(is_class, np.where(number == (-1 if leftover is None else leftover), LEFT_OVER, KEPT), MERGED)
            rows = classes.take(number.astype(np.int64))
            counted = {ROUNDS: pa.array(np.full(number.size, rounds or 0), pa.int32())}
            yield from _classes(columns, rows._replace(ident=small.ident), rows.ident, state, counted)

        return work

    def _nearest(self, left: Classes) -> Task:
        columns, levels = self._columns, self._levels

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            table = whole(batches)
            if table is None:
                return
            classes = columns.classes_of(table) + left
            cost, query, others = distances.generality(levels, classes.level), table.num_rows, np.arange(table.num_rows)
            best = np.array([merging.nearest_class(levels, *classes[:4], cost, query, others)])
            distance = np.empty(1, dtype=np.int64)
            merging.prices(levels, *classes[:3], cost, query, best, distance)
            yield from _batches([*columns.arrays_of(classes.take(best)), pa.array(distance)], [*columns.names, DISTANCE])

        return work

    def _followed(self) -> Task:
        names = level_columns(len(self.hierarchies))

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            table = whole(batches)
            if table is None:
                return
            table = table.sort_by(IDENT)
            ident, into = (table.column(name).to_numpy() for name in (IDENT, INTO))
            root = ended_in(ident, into)
            levels = [table.column(name).to_numpy()[root] for name in names]
            yield from _batches([pa.array(ident), *map(pa.array, levels)], [HEAD, *names])

        return work

    @cached_property
    def _plan(self) -> Any:
        levels = self._levels
        return plan(walk(tuple(levels.heights.tolist()), levels.units), levels)


def _classes(
    columns: ClassColumns, classes: Classes, into: Ints, state: Any, more: Mapping[str, Any] | None = None
) -> Iterator[pa.RecordBatch]:
    named = {INTO: pa.array(into, pa.int64()), STATE: pa.array(state, pa.string()), **(more or {})}
    yield from _batches([*columns.arrays_of(classes), *named.values()], [*columns.names, *named])


def _batches(arrays: Sequence[Any], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    yield from pa.Table.from_arrays(list(arrays), names=list(names)).to_batches(max_chunksize=100_000)
