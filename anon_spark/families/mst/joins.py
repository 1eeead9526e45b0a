"""Edges of weight 2 and more, which join the components of the blocks, on Spark.

Nodes are visited in batches of ascending weight. Nodes with the same attributes at the root form one sweep: tuples that
agree on all other attributes go to the same share, without codes that the sweep does not use. Each share gives a forest, and
one task selects the lightest edges of all (cycle property). It ends when few tuples are outside the largest component.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from anon_spark.columns import PREFIX
from anon_spark.engine import small_frame
from anon_spark.errors import LimitExceeded
from anon_spark.families.mst.forests import (
    Joins,
    Sweep,
    block_distance,
    lifted,
    share_of,
    spanning_forest,
    sweeps,
    swept,
)
from anon_spark.families.mst.frames import SHARE
from anon_spark.families.mst.kernels import spanning
from anon_spark.families.mst.kernels.distances import levels_of
from anon_spark.families.mst.kernels.spanning import FAR, TAIL, TAIL_PER_NODE, Walk, tail_edges, walk
from anon_spark.families.mst.shares import array_of, code_matrix, in_shares, schema_with
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.tuples import Ladder
from anon_spark.primitives.classes.frequencies import code_columns
from anon_spark.primitives.rounds import Workspace, collect_small

COMPONENTS_MAX = 8_000_000  # most components of one task
BATCH_NODES = 256  # nodes of the first batch; each later batch has twice as many
FOLD_EDGES = 4_000_000  # most edges that wait for Kruskal at a time, beside those already chosen

COMPONENT = PREFIX + "component"  # the least TID of a component of the blocks' forest
TUPLES = PREFIX + "component_tuples"
ROOT = PREFIX + "root"  # the current component that contains it
LEFT, RIGHT, WEIGHT = PREFIX + "left", PREFIX + "right", PREFIX + "weight"
AT = PREFIX + "at"
EDGES = f"{LEFT} long, {RIGHT} long, {WEIGHT} long"


def join_components(
    forest: DataFrame, components: DataFrame, ladder: Ladder, workspace: Workspace, shares: int
) -> DataFrame:
    """The edges LEFT, RIGHT, WEIGHT that make one minimum spanning tree of the components.

    forest: codes and COMPONENT of every tuple; components: COMPONENT and its number of TUPLES.
    Cost: per batch, one shuffle of tuples × sweeps, and small jobs; the components in one task.
    """
    levels = levels_of(ladder)
    order = walk(tuple(levels.heights.tolist()), levels.units)
    start, room = int(np.searchsorted(2 * order.cost, block_distance(levels))), BATCH_NODES
    state = components.select(COMPONENT, F.col(COMPONENT).alias(ROOT), TUPLES)
    tree = small_frame(forest.sparkSession, _table(_together([])))
    left, outside, largest = _sizes(state)
    if left > COMPONENTS_MAX:
        raise LimitExceeded(
            f"{left:,} groups of tuples are a whole hierarchy or more apart, at most {COMPONENTS_MAX:,} fit one task. Give "
            "the hierarchies more levels, or start them at a coarser one.",
            components=left,
        )
    while left > 1:
        alike = int(np.searchsorted(order.cost, order.cost[start], side="right")) - start
        tuples = forest.join(state.select(COMPONENT, ROOT), COMPONENT)
        if outside <= min(TAIL, TAIL_PER_NODE * alike):
            return tree.unionAll(_tail(tuples, ladder, largest))
        stop = whole_weights(order.cost, start, max(room, alike))
        batch = sweeps(Walk(order.nodes[start:stop], order.cost[start:stop]), levels.heights)
        edges = workspace.store(_lightest(_swept(tuples, batch, ladder, shares)), "edges")
        tree = tree.unionAll(edges)
        added = edges.count()
        left -= added
        if added and left > 1:
            state = workspace.store(_joined(state, edges), "components")
            _, outside, largest = _sizes(state)
        start, room = stop, 2 * room
    return tree


def whole_weights(cost: Ints, start: int, room: int) -> int:
    """The end of a batch of at most `room` nodes that does not split nodes of equal weight."""
    return int(np.searchsorted(cost, cost[start + room])) if start + room < cost.size else int(cost.size)


def edges_of(data: pa.RecordBatch | pa.Table) -> Joins:
    return Joins(array_of(data, LEFT), array_of(data, RIGHT), array_of(data, WEIGHT))


def _sizes(state: DataFrame) -> tuple[int, int, int]:
    """How many components there are, how many tuples outside the largest, and which that is."""
    by_root = state.groupBy(ROOT).agg(F.sum(TUPLES).alias(TUPLES))
    row = by_root.agg(F.count(ROOT), F.sum(TUPLES), F.max(F.struct(TUPLES, ROOT))).collect()[0]
    return row[0], row[1] - row[2][TUPLES], row[2][ROOT]


def _swept(tuples: DataFrame, batch: Sequence[Sweep], ladder: Ladder, shares: int) -> DataFrame:
    """The forest of every share of every sweep."""
    codes = code_columns(len(ladder.codes))

    def copied(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for piece in batches:
            leaves = code_matrix(piece, codes)
            for number, sweep in enumerate(batch):
                above = dict(zip(codes, lifted(leaves, ladder, sweep.bottom), strict=True))
                share = number * shares + share_of(leaves, ladder, sweep.top, shares)
                yield pa.RecordBatch.from_pydict({**above, ROOT: piece.column(ROOT), SHARE: share})

    def connected(table: pa.Table) -> pa.Table:
        sweep = batch[int(array_of(table, SHARE)[0]) // shares]
        alike = table.group_by([*codes, ROOT], use_threads=False).aggregate([])  # many agree, further up
        return _table(swept(sweep, code_matrix(alike, codes), ladder, array_of(alike, ROOT)))

    narrow = tuples.select(*codes, ROOT)
    copies = narrow.mapInArrow(copied, schema_with(narrow, {SHARE: LongType()}))
    what = "agree one level below the roots when some hierarchies are left out"
    return in_shares(copies, len(batch) * shares, connected, EDGES, what)


def _lightest(candidates: DataFrame) -> DataFrame:
    """Kruskal over the candidates, in one task."""

    def choose(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chosen, waiting = _together([]), []
        for batch in batches:
            waiting.append(edges_of(batch))
            if sum(edges.weight.size for edges in waiting) > FOLD_EDGES:
                chosen, waiting = spanning_forest(_together([chosen, *waiting]))[0], []
        yield from _table(spanning_forest(_together([chosen, *waiting]))[0]).to_batches()

    return candidates.repartition(1).mapInArrow(choose, EDGES)  # coalesce(1) would also run the sweeps in this task


def _joined(state: DataFrame, edges: DataFrame) -> DataFrame:
    """The components after edges are added."""

    def rooted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _, names, roots = spanning_forest(_together([edges_of(batch) for batch in batches]))
        yield pa.RecordBatch.from_pydict({ROOT: names, LEFT: roots})

    roots = edges.repartition(1).mapInArrow(rooted, f"{ROOT} long, {LEFT} long")
    return state.join(roots, ROOT, "left").select(COMPONENT, F.coalesce(LEFT, ROOT).alias(ROOT), TUPLES)


def _tail(tuples: DataFrame, ladder: Ladder, largest: int) -> DataFrame:
    """The edges of the few tuples outside the largest component, by their distances to all others and to each other."""
    codes, levels = code_columns(len(ladder.codes)), levels_of(ladder)
    what = "Tuples outside the largest component"
    table = collect_small(tuples.where(F.col(ROOT) != largest).select(*codes, ROOT), TAIL, what)
    outside, names = code_matrix(table, codes), array_of(table, ROOT)

    def approach(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        near = np.full(names.size, FAR, dtype=np.int64)
        for batch in batches:
            inside = np.ones(batch.num_rows, dtype=np.bool_)
            near = np.minimum(near, spanning.nearest(levels, code_matrix(batch, codes), inside, outside)[0])
        yield pa.RecordBatch.from_pydict({AT: np.arange(near.size), WEIGHT: near})

    reached = tuples.where(F.col(ROOT) == largest).select(*codes).mapInArrow(approach, f"{AT} long, {WEIGHT} long")
    best = collect_small(reached.groupBy(AT).agg(F.min(WEIGHT).alias(WEIGHT)).orderBy(AT), TAIL, what)
    near, near_to = array_of(best, WEIGHT), np.full(names.size, largest, dtype=np.int64)
    return small_frame(tuples.sparkSession, _table(Joins(*tail_edges(levels, outside, names, names, near, near_to))))


def _table(edges: Joins) -> pa.Table:
    return pa.table({LEFT: pa.array(edges.left), RIGHT: pa.array(edges.right), WEIGHT: pa.array(edges.weight)})


def _together(several: Sequence[Joins]) -> Joins:
    nothing = np.empty(0, dtype=np.int64)
    sides = zip(Joins(nothing, nothing, nothing), *several, strict=True)
    return Joins(*(np.concatenate(side) for side in sides))
