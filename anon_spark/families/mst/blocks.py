"""The spanning tree and its cut for more distinct tuples than one task can hold: first inside blocks, then between them.

The result is that of `partition` up to the cut. The driver sees counts, the histogram of weights and a few tuples of
the tail; one task holds the components that remain when all edges lighter than 2 are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, IntegerType, LongType

from anon_spark.columns import PREFIX, ROWS
from anon_spark.families.mst.forests import (
    block_distance,
    block_node,
    cut_above,
    cut_inside,
    grown,
    share_of,
)
from anon_spark.families.mst.frames import HEAD, SHARE, TID
from anon_spark.families.mst.joins import COMPONENT, TUPLES, WEIGHT, edges_of, join_components
from anon_spark.families.mst.kernels.dendrogram import NOT_CUT, Leaves, links, members_of
from anon_spark.families.mst.kernels.distances import levels_of
from anon_spark.families.mst.partition import Settings, leaf_ranks, leaves_of, weight_statistics
from anon_spark.families.mst.shares import (
    array_of,
    code_matrix,
    in_shares,
    schema_with,
    shares_of,
    with_arrays,
)
from anon_spark.kernels.tuples import Ladder
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.lattice import MOST_NODES
from anon_spark.primitives.classes.arrays import ladder_of
from anon_spark.primitives.classes.frequencies import code_columns
from anon_spark.primitives.packing import packed
from anon_spark.primitives.rounds import Workspace, collect_small

KEPT = PREFIX + "kept"  # whether a tuple's part of the cut is large enough to be a class
PLACE = PREFIX + "place"  # position of a tuple in the chain of its component
STAYS = PREFIX + "stays"  # the greatest weight that is not cut inside a component
ALIKE = "agree one level below the root of every hierarchy"
ALIKE = "agree one level below the root of every hierarchy"
SUMS = [PREFIX + "component_" + name for name in ("rows", "edges", "total", "squares")]  # as in Leaves


def number_tuples(frame: DataFrame, hierarchies: Sequence[Hierarchy], workspace: Workspace) -> DataFrame:
    """Store the distinct tuples with TID: numbers in the order of their values, attribute by attribute.

    Cost: one sort over all tasks, one write.
    """
    codes, ranks = code_columns(len(hierarchies)), [f"{PREFIX}rank_{at}" for at in range(len(hierarchies))]
    rank_of = [leaf_ranks(hierarchy).astype(np.int32) for hierarchy in hierarchies]

    def ranked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            arrays = [rank_table[row] for rank_table, row in zip(rank_of, code_matrix(batch, codes), strict=True)]
            yield with_arrays(batch, dict(zip(ranks, arrays, strict=True)))

    words = packed(ranks, [hierarchy.leaf_count for hierarchy in hierarchies])
    ordered = frame.mapInArrow(ranked, schema_with(frame, dict.fromkeys(ranks, IntegerType()))).orderBy(*words)
    return workspace.store(ordered.select(*frame.columns, F.monotonically_increasing_id().alias(TID)), "numbered")


def cut_in_blocks(
    numbered: DataFrame, tuples: int, hierarchies: Sequence[Hierarchy], settings: Settings, workspace: Workspace
) -> tuple[DataFrame, dict[str, Any]]:
    """So many tuples, as `number_tuples` stored them, with HEAD and KEPT of their part of the cut; and its statistics.

    Guarantee: the parts and numbers of `partition`, however the tuples are spread.
    Cost: nodes lighter than 2 × tuples, divided by blocks; for heavier ones see `join_components`; two shuffles more.
    """
    ladder, attributes = ladder_of(hierarchies), code_columns(len(hierarchies))
    shares = shares_of(tuples)
    # 1. edges lighter than 2: inside blocks
    forest = workspace.store(_grown(numbered, ladder, settings, shares), "forest")
    components = forest.where(F.col(TUPLES).isNotNull())
    # 2. heavier edges: between the components of that forest
    edges = join_components(forest.select(*attributes, COMPONENT), components, ladder, workspace, shares)
    # 3. cut the tree of components, then inside single components
    above = workspace.store(_cut_components(components, edges, settings), "components-cut")
    parts = workspace.store(_cut_tuples(forest.join(above, COMPONENT), numbered, settings, shares), "parts")
    whole = block_distance(levels_of(ladder)) // 2
    tree = weight_statistics(_histogram(numbered, forest, edges), whole, settings.zero_edges == "include")
    return parts, tree | _cut_statistics(parts, settings.k)


def _grown(numbered: DataFrame, ladder: Ladder, settings: Settings, shares: int) -> DataFrame:
    """Each tuple's COMPONENT (its least tuple), and the component as a chain: PLACE, and WEIGHT of the link before.

    The row of the least tuple also carries the sums of its component.
    """
    codes, node = code_columns(len(ladder.codes)), block_node(levels_of(ladder))

    def shared(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield with_arrays(batch, {SHARE: share_of(code_matrix(batch, codes), ladder, node, shares)})

    def grow(table: pa.Table) -> pa.Table:
        leaves = leaves_of(array_of(table, ROWS), settings)
        tree, tids = grown(code_matrix(table, codes), ladder, leaves), array_of(table, TID)
        roots = tree.roots.astype(np.int64)
        members, begin = members_of(tree, roots)  # equal to tree.order
        width = np.diff(begin, append=members.size)
        component, place, root, weight = (np.empty(members.size, dtype=np.int64) for _ in range(4))
        component[members] = np.repeat(np.minimum.reduceat(tids[members], begin), width)
        place[members], root[members], weight[members] = np.arange(members.size), np.repeat(roots, width), links(tree)
        elsewhere = tids != component
        sums: dict[str, Any] = {TUPLES: pa.array((tree.last - tree.first)[root], mask=elsewhere)}
        for name, totals in zip(SUMS, tree.sums, strict=True):
            sums[name] = pa.array(np.asarray(totals)[root], mask=elsewhere)
        grown_table: pa.Table = with_arrays(table, {COMPONENT: component, PLACE: place, WEIGHT: weight, **sums})
        return grown_table

    blocks = numbered.mapInArrow(shared, schema_with(numbered, {SHARE: LongType()}))
    new: dict[str, DataType] = dict.fromkeys([COMPONENT, PLACE, WEIGHT, TUPLES, *SUMS], LongType())
    return in_shares(blocks, shares, grow, schema_with(blocks, new), ALIKE)


def _cut_components(components: DataFrame, edges: DataFrame, settings: Settings) -> DataFrame:
    """Per component HEAD and KEPT if it belongs to a part of several, else the greatest weight that STAYS in it.

    Cost: all components in one task.
    """

    def cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(list(batches))
        is_leaf = table.column(COMPONENT).is_valid()
        leaves = table.filter(is_leaf)
        names = array_of(leaves, COMPONENT)
        rows, counts, total, squares = (array_of(leaves, name) for name in SUMS)
        joins = edges_of(table.filter(table.column(WEIGHT).is_valid()))
        parts, stays = cut_above(names, Leaves(rows, counts, total, squares), joins, settings.k)
        yield pa.RecordBatch.from_pydict({COMPONENT: names, HEAD: parts.head, KEPT: parts.kept, STAYS: stays})

    both = components.select(COMPONENT, *SUMS).unionByName(edges, allowMissingColumns=True)
    return both.repartition(1).mapInArrow(cut, f"{COMPONENT} long, {HEAD} long, {KEPT} boolean, {STAYS} long")


def _cut_tuples(cut: DataFrame, numbered: DataFrame, settings: Settings, shares: int) -> DataFrame:
    """HEAD and KEPT of every tuple: those of its component, or from the cut inside the component."""
    columns = numbered.columns

    def inside(table: pa.Table) -> pa.Table:
        stays, head, kept = array_of(table, STAYS), array_of(table, HEAD), array_of(table, KEPT)
        order = np.argsort(array_of(table, PLACE))
        order = order[stays[order] != NOT_CUT]
        if order.size:
            leaves = leaves_of(array_of(table, ROWS)[order], settings)
            tids, weight = array_of(table, TID)[order], array_of(table, WEIGHT)[order]
            head[order], kept[order] = cut_inside(tids, leaves, weight, stays[order], settings.k)
        cut_table: pa.Table = with_arrays(table.select(columns), {HEAD: head, KEPT: kept})
        return cut_table

    needed = cut.select(*columns, SHARE, PLACE, WEIGHT, HEAD, KEPT, STAYS)
    return in_shares(needed, shares, inside, schema_with(numbered, {HEAD: LongType(), KEPT: BooleanType()}), ALIKE)


def _histogram(numbered: DataFrame, forest: DataFrame, edges: DataFrame) -> dict[int, int]:
    """How often each weight occurs in the tree of all rows."""
    weights = forest.where(F.col(WEIGHT) > 0).select(WEIGHT).unionAll(edges.select(WEIGHT))
    zero = numbered.select(F.lit(0).cast("long").alias(WEIGHT), (F.col(ROWS) - 1).alias(ROWS))
    summed = weights.withColumn(ROWS, F.lit(1).cast("long")).unionAll(zero).groupBy(WEIGHT).agg(F.sum(ROWS).alias(ROWS))
    table = collect_small(summed.where(F.col(ROWS) > 0).orderBy(WEIGHT), MOST_NODES, "Weights of the spanning tree")
    return dict(zip(array_of(table, WEIGHT).tolist(), array_of(table, ROWS).tolist(), strict=True))


def _cut_statistics(parts: DataFrame, k: int) -> dict[str, Any]:
    """Counts of parts. A kept tuple of 2k rows or more is a part of identical rows."""
    kept, is_head = F.col(KEPT), F.col(TID) == F.col(HEAD)
    counts = parts.agg(
        F.count_if(kept & is_head).alias("kept"),
        F.count_if(~kept & is_head).alias("small"),
        F.count_if(kept & (F.col(ROWS) >= 2 * k)).alias("identical"),
        F.coalesce(F.sum(F.when(kept, F.col(ROWS))), F.lit(0)).alias("rows_kept"),
    )
    return dict(counts.collect()[0].asDict())
