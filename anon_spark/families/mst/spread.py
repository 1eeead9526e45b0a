"""Merging in many tasks: the rounds of merge.py on frames of classes, for more small classes than one task can merge.

In a round each task holds all small classes (about 100 bytes each) and finds the neighbours of its share. Then the classes
of a bucket meet in one task, which finds the pairs. As soon as few classes are left, one task merges them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
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
    whole,
)
from anon_spark.families.mst.kernels import distances, merging
from anon_spark.families.mst.kernels.distances import Levels, in_runs, levels_of
from anon_spark.families.mst.kernels.merging import merge_into, mutual_pairs
from anon_spark.families.mst.kernels.neighbours import Classes, Neighbours, neighbours, plan
from anon_spark.families.mst.kernels.spanning import walk
from anon_spark.families.mst.merge import WHOLE_TABLE_TOO_SMALL, merge_greedy, merge_in_rounds
from anon_spark.families.mst.partition import Settings
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.progress import Progress
from anon_spark.primitives.classes.arrays import ladder_of
from anon_spark.primitives.classes.frequencies import code_columns
from anon_spark.primitives.rounds import Workspace

MEMBERS = PREFIX + "members"  # the heads of the parts that a class was merged from
STATE = PREFIX + "state"
ROUNDS = PREFIX + "rounds"
DISTANCE, AT_NODE, BUCKET = PREFIX + "distance", PREFIX + "at_node", PREFIX + "bucket_"
KEPT, SMALL, LEFT_OVER = "kept", "small", "left over"
SHARE_CLASSES, MOST_SHARES = 100_000, 16

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class SpreadMerge:
    """The third step of MSTK on frames.

    Guarantee: the classes are those of `merge_in_rounds`, however the work is spread. Leaves are numbered by runs
    here. Cost: per round two shuffles of the small classes, one of them times the number of shares.
    """

    hierarchies: Sequence[Hierarchy]
    settings: Settings
    workspace: Workspace
    progress: Progress | None = None

    def assign(self, parted: DataFrame) -> tuple[DataFrame, dict[str, Any]]:
        """Leaves, levels and ROWS of each tuple of a frame with code columns, ROWS and HEAD; statistics of merging."""
        # 1. one class per part
        parts = self.workspace.store(parted.repartition(HEAD).mapInArrow(self._generalize(), self._schema), "parts")
        small = parts.where(F.col(STATE) == SMALL)
        count = active = small.count()
        way = self.settings.way(count)
        merged = [parts.where(F.col(STATE) == KEPT)]
        # 2. rounds, until one task can merge the rest
        rounds = 0
        while way == "rounds" and active > self.settings.merge_local_max:
            rounds += 1
            met = self.workspace.store(self._round(small, active), f"round-{rounds}")
            merged.append(met.where(F.col(STATE) == KEPT))
            small = met.where(F.col(STATE) == SMALL)
            active = small.count()
            if self.progress is not None:
                self.progress(count - active, count, "small classes merged")
        last = small.coalesce(1).mapInArrow(self._finish(way), f"{self._schema}, {ROUNDS} int")
        last = self.workspace.store(last, "last-classes")
        more = last.agg(F.max(ROUNDS)).first()
        merged.append(last.drop(ROUNDS))
        # 3. a leftover joins the closest class
        classes = self._with_leftover(reduce(DataFrame.union, merged))
        heads = classes.select(F.explode(MEMBERS).alias(HEAD), *level_columns(len(self.hierarchies)))
        codes = code_columns(len(self.hierarchies))
        leaves = [F.col(code).alias(leaf) for code, leaf in zip(codes, leaf_columns(len(codes)), strict=True)]
        assigned = parted.select(*codes, ROWS, HEAD).join(heads, HEAD).select(*leaves, *level_columns(len(codes)), ROWS)
        last_rounds = more[0] if more is not None and more[0] is not None else 0
        return assigned, {"merge": way, "rounds": rounds + last_rounds if way == "rounds" else None}

    def _round(self, small: DataFrame, active: int) -> DataFrame:
        """The small classes after all pairs of mutual nearest neighbours are merged."""
        shares = min(MOST_SHARES, max(2, active // SHARE_CLASSES))
        words = [f"{BUCKET}{word}" for word in range(len(self._plan.factors))]
        near = in_every_share(small.select(*self._columns.names), shares).mapInArrow(
            self._search(words, shares),
            f"{IDENT} long, {DISTANCE} long, {AT_NODE} int, " + ", ".join(f"{word} long" for word in words),
        )
        met = small.join(near, IDENT).repartition(AT_NODE, *words)
        return met.mapInArrow(self._pair(), self._schema)

    def _with_leftover(self, classes: DataFrame) -> DataFrame:
        """The classes, with a leftover class joined to the closest other one."""
        columns, levels = self._columns, self._levels
        left = classes.where(F.col(STATE) == LEFT_OVER).select(*columns.names).limit(1).toArrow()
        if not left.num_rows:
            return classes
        others = classes.where(F.col(STATE) == KEPT).select(*columns.names)
        nearest = others.mapInArrow(self._nearest(columns.classes_of(left)), f"{columns.schema}, {DISTANCE} long")
        first = nearest.orderBy(DISTANCE, SIZE, IDENT).limit(1).toArrow()
        if not first.num_rows:
            raise GuaranteeUnreachable(WHOLE_TABLE_TOO_SMALL, classes=0)
        both = columns.classes_of(first) + columns.classes_of(left)
        idents = both.ident.copy()
        merge_into(levels, *both, 0, 1)
        names = level_columns(len(self.hierarchies))
        new = {f"{name}_new": pa.array([both.level[0, at]] * 2, pa.int32()) for at, name in enumerate(names)}
        moved = small_frame(classes.sparkSession, pa.table({IDENT: pa.array(idents, pa.int64()), **new}))
        joined = classes.join(beside(moved), IDENT, "left")
        changed = [F.coalesce(F.col(f"{name}_new"), F.col(name)).alias(name) for name in names]
        return joined.select(MEMBERS, *changed)

    @property
    def _columns(self) -> ClassColumns:
        return ClassColumns(len(self.hierarchies))

    @property
    def _schema(self) -> str:
        return f"{self._columns.schema}, {MEMBERS} array<long>, {STATE} string"

    @property
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
            state = np.where(size >= k, KEPT, SMALL)
            members = pa.ListArray.from_arrays(pa.array(np.arange(size.size + 1), pa.int32()), pa.array(classes.ident))
            yield from _batches([*columns.arrays_of(classes), members, pa.array(state)], [*columns.names, MEMBERS, STATE])

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
            arrays = map(pa.array, (classes.ident[queries], near.distance, near.node, *keys.T))
            yield from _batches([*arrays], [IDENT, DISTANCE, AT_NODE, *words])

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
            merging.merge_pairs(levels, *classes, left, right)
            partner = np.full(classes.size.size, -1)
            partner[left] = right
            kept = np.delete(np.arange(partner.size), right)
            classes = classes.take(kept)
            state = np.where(classes.size >= k, KEPT, SMALL)
            members = _joined(table.column(MEMBERS).combine_chunks(), kept, partner[kept])
            yield from _batches([*columns.arrays_of(classes), members, pa.array(state)], [*columns.names, MEMBERS, STATE])

        return work

    def _finish(self, way: str) -> Task:
        columns, levels, k = self._columns, self._levels, self.settings.k
        merge = merge_greedy if way == "greedy" else merge_in_rounds

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            table = whole(batches)
            if table is None:
                return
            classes, number, leftover, rounds = merge(columns.classes_of(table), levels, k)
            state = np.where(number == (-1 if leftover is None else leftover), LEFT_OVER, KEPT)
            members, counted = table.column(MEMBERS).combine_chunks(), np.full(number.size, rounds or 0)
            arrays = columns.arrays_of(classes.take(number.astype(np.int64)))
            arrays += [members, pa.array(state), pa.array(counted, pa.int32())]
            yield from _batches(arrays, [*columns.names, MEMBERS, STATE, ROUNDS])

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

    @property
    def _plan(self) -> Any:
        levels = self._levels
        return plan(walk(tuple(levels.heights.tolist()), levels.units), levels)


def _joined(lists: Any, kept: Any, partner: Any) -> Any:
    """The list of each kept row, followed by that of its partner if it has one (else -1)."""
    both = np.stack([kept, partner], axis=1).ravel()
    there = both >= 0
    taken = lists.take(pa.array(both[there]))
    length = np.zeros(both.size, dtype=np.int64)
    length[there] = pc.list_value_length(taken).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(length.reshape(-1, 2).sum(axis=1))])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), taken.flatten())


def _batches(arrays: Sequence[Any], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    yield from pa.Table.from_arrays(list(arrays), names=list(names)).to_batches(max_chunksize=100_000)
