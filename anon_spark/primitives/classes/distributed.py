"""Counting by distributed aggregation with roll-up, for frequency tables too large to be sent with tasks.

Nodes are evaluated from *anchors*: the table rolled up on its two widest attributes only. An anchor is aggregated
once, from the smallest anchor below it, and stored. If it is small enough to be sent with tasks, its nodes are counted over
arrays. Only nodes of large anchors are counted by shuffling.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from anon_spark.arrays import each_once
from anon_spark.columns import CLASS, MULTIPLICITY, NODE, PERSONS, POPULATION, PREFIX, ROWS, SET, TUPLES
from anon_spark.engine import beside
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.models import NOTHING, Conditions
from anon_spark.kernels.tuples import BOUND, UNDER, Ladder, TupleTable, group
from anon_spark.model.lattice import Node, below_or_equal
from anon_spark.model.node_stats import NodeStats
from anon_spark.primitives.classes.arrays import load_table, travel_bytes
from anon_spark.primitives.classes.counting import ArrayCounting, to_stats
from anon_spark.primitives.classes.frequencies import Frequencies, Stored, code_columns
from anon_spark.primitives.classes.population import kept_in_population
from anon_spark.primitives.classes.sensitive import COLUMN, REMOVED, VALUE, failing_classes
from anon_spark.primitives.generalize import climbed
from anon_spark.primitives.rounds import Workspace

SHUFFLED_ROWS = 50_000_000  # tuples × nodes of one job
ANCHOR_ATTRIBUTES = 2
ALL_PERSONS = PREFIX + "all_persons"  # also of classes that fail a condition
_FAILS = PREFIX + "fails"


@dataclass(frozen=True)
class Anchor:
    """A stored roll-up; `arrays` if it is small enough to be sent with tasks."""

    node: Node
    files: Stored
    tuples: int
    arrays: ArrayCounting | None


class DistributedCounting:
    """Batches of nodes by aggregation over stored roll-ups. Cost: one to three jobs per anchor and batch."""

    def __init__(
        self,
        frequencies: Frequencies,
        ladder: Ladder,
        budget: int,
        workspace: Workspace,
        travel_limit: int,
        conditions: Conditions = NOTHING,
    ) -> None:
        self._ladder, self._budget, self._workspace, self._conditions = ladder, budget, workspace, conditions
        self._travel_limit = travel_limit
        self._class_values = frequencies.class_values
        self._codes = code_columns(len(ladder.codes))
        bottom = (0,) * len(ladder.codes)
        files = frequencies.files
        sets = None if files.sets is None else _exploded(files.sets)
        self._anchors = {bottom: Anchor(bottom, replace(files, sets=sets), frequencies.tuples, None)}
        widest = sorted(range(len(ladder.codes)), key=lambda attribute: -ladder.cardinality(attribute, 0))
        self._widest = frozenset(widest[:ANCHOR_ATTRIBUTES])

    @property
    def conditions(self) -> Conditions:
        return self._conditions

    def evaluate(self, nodes: Sequence[Node]) -> list[NodeStats]:
        by_anchor: dict[Node, list[Node]] = defaultdict(list)
        for node in nodes:
            by_anchor[tuple(level if a in self._widest else 0 for a, level in enumerate(node))].append(node)
        by_node: dict[Node, NodeStats] = {}
        for place in sorted(by_anchor):
            anchor, members = self._anchor(place), by_anchor[place]
            if anchor.arrays is not None:
                by_node.update((stats.node, stats) for stats in anchor.arrays.evaluate(members))
                continue
            share = max(1, SHUFFLED_ROWS // anchor.tuples)
            for first in range(0, len(members), share):
                part = members[first : first + share]
                by_node.update((stats.node, stats) for stats in self._by_shuffle(anchor, part))
        return [by_node[node] for node in nodes]

    def under(self, conditions: Conditions) -> DistributedCounting:
        """Counts the same stored roll-ups; those that were loaded as arrays are counted anew under the conditions."""
        other = copy(self)
        other._conditions = conditions
        other._anchors = {
            place: replace(anchor, arrays=None if anchor.arrays is None else anchor.arrays.under(conditions))
            for place, anchor in self._anchors.items()
        }
        return other

    def large_classes(self, node: Node, k: int) -> DataFrame:
        anchor = self._anchors[(0,) * len(node)]
        return self._classes(anchor, [node]).where(F.col(PERSONS) >= k).select(*self._codes)

    def _anchor(self, place: Node) -> Anchor:
        if place not in self._anchors:
            below = (anchor for anchor in self._anchors.values() if below_or_equal(anchor.node, place))
            source = min(below, key=lambda anchor: (anchor.tuples, anchor.node))
            self._anchors[place] = self._rolled_up(source, place)
        return self._anchors[place]

    def _rolled_up(self, source: Anchor, place: Node) -> Anchor:
        def lifted(frame: DataFrame) -> DataFrame:
            return climbed(frame, self._codes, self._ladder, source.node, place)

        files = source.files
        groups = [*self._codes, *([CLASS] if self._class_values else [])]
        counts = [name for name in (ROWS, PERSONS, POPULATION) if name in files.frame.columns]
        frame = self._workspace.store(lifted(files.frame).groupBy(*groups).agg(*_sums(counts)), "rollup")
        sets, values, members, entries = None, None, 0, 0
        if files.sets is not None:
            sets = self._workspace.store(lifted(files.sets).distinct(), "rollup-sets")
            members = sets.count()
        if files.values is not None:
            by_value = lifted(files.values).groupBy(*self._codes, COLUMN, VALUE).agg(*_sums([ROWS]))
            values = self._workspace.store(by_value, "rollup-values")
            entries = values.count()
        tuples = frame.select(*self._codes).distinct().count() if self._class_values else frame.count()
        arrays = None
        if travel_bytes(tuples, self._ladder, place, self._class_values, members, entries) <= self._travel_limit:
            loaded = Stored(frame, _collected(sets, self._codes), values)
            table = load_table(loaded, self._ladder, place, self._class_values, len(self._conditions.columns))
            arrays = ArrayCounting(frame.sparkSession, table, self._ladder, self._budget, self._conditions)
        return Anchor(place, Stored(frame, sets, values), tuples, arrays)

    def _by_shuffle(self, anchor: Anchor, nodes: Sequence[Node]) -> list[NodeStats]:
        classes = self._workspace.store(self._classes(anchor, nodes), "classes")
        under = self._curves(classes, len(nodes), UNDER)
        if self._conditions.is_monotone(self._budget):
            return to_stats(nodes, under)
        return to_stats(nodes, np.concatenate([under, self._curves(self._parted(classes), len(nodes), BOUND)]))

    def _parted(self, classes: DataFrame) -> DataFrame:
        """Classes without the rows that must go at least, and these rows as classes of no person that are not counted."""
        gone = F.col(REMOVED)
        fewer = F.greatest(gone - (F.col(ROWS) - F.col("majority")), F.lit(0))
        parts = {name: F.when(gone > 0, gone * F.expr(f"{name} div {ROWS}")).otherwise(0) for name in self._weights}
        always = {ROWS: gone, "squares": gone * F.col(ROWS), "majority": fewer, **parts}
        rest = {name: (F.col(name) - column).alias(name) for name, column in always.items()}
        kept = classes.select(NODE, F.col(ALL_PERSONS).alias(PERSONS), "one", *rest.values())
        none = [F.lit(0).cast("bigint").alias(name) for name in (PERSONS, "one")]
        removed = classes.where(gone > 0).select(NODE, *none, *(column.alias(name) for name, column in always.items()))
        return kept.unionByName(removed)

    def _curves(self, classes: DataFrame, nodes: int, which: int) -> Ints:
        """The kernel's rows of every node. Cost: one job over the stored classes."""
        size = F.col(PERSONS)
        # 1. k of each node: the smallest size at which the rows of classes up to it exceed the budget
        up_to = Window.partitionBy(NODE).orderBy(PERSONS).rangeBetween(Window.unboundedPreceding, Window.currentRow)
        by_size = classes.groupBy(NODE, PERSONS).agg(F.sum(ROWS).alias(ROWS))
        covered = by_size.withColumn("covered", F.sum(ROWS).over(up_to)).where(F.col("covered") > self._budget)
        k = covered.groupBy(NODE).agg(F.min(PERSONS).alias("k"))
        # 2. sums of the classes of each size below that k, and of all larger ones together
        judged = classes.join(beside(k), NODE).withColumn("size", F.least(size, "k"))
        totals = judged.groupBy(NODE, "size").agg(*_sums([ROWS, "one", "squares", "majority", *self._weights]))
        table = totals.orderBy(NODE, "size").toArrow()  # per node of the batch one row for each k that the budget allows
        rows = np.array([table.column(index).to_numpy() for index in range(table.num_columns)]).T.astype(np.int64)
        return np.concatenate([_curve(rows[rows[:, 0] == node], which) for node in range(nodes)])

    @property
    def _weights(self) -> list[str]:
        """Columns of the loss weights."""
        return [f"w{a}" for a in range(len(self._codes))]

    def _classes(self, anchor: Anchor, nodes: Sequence[Node]) -> DataFrame:
        """Rows, persons, majority and loss weights of every class of every node.

        A class that fails the conditions has no PERSONS; ALL_PERSONS has them of every class. REMOVED: see `least_removed`.
        """
        counted = self._counted(anchor, nodes).withColumns(
            {ALL_PERSONS: F.col(PERSONS), "squares": F.col(ROWS) * F.col(ROWS), "one": F.lit(1).cast("bigint"), REMOVED: F.lit(0)}
        )
        if POPULATION in counted.columns:
            kept = kept_in_population(self._conditions.map_k, self._conditions.presence)
            there = kept_in_population(self._conditions.map_k, None)
            persons = F.when(kept, F.col(PERSONS)).otherwise(F.lit(0))
            counted = counted.withColumns({PERSONS: persons, REMOVED: F.when(there, F.lit(0)).otherwise(F.col(ROWS))})
        if anchor.files.values is None or not self._conditions.columns:
            return counted
        keys = [NODE, *self._codes]
        by_value = anchor.files.values.mapInArrow(
            _climbed_values(self._ladder, anchor.node, nodes, self._codes), _schema([*keys, COLUMN, VALUE], [ROWS])
        )
        failing = failing_classes(by_value, keys, self._conditions.columns).withColumnRenamed(REMOVED, _FAILS)
        joined = counted.join(failing, keys, "left")
        persons = F.when(F.col(_FAILS).isNotNull(), F.lit(0)).otherwise(F.col(PERSONS))
        return joined.withColumns({PERSONS: persons, REMOVED: F.greatest(REMOVED, _FAILS)}).drop(_FAILS)  # null is skipped

    def _counted(self, anchor: Anchor, nodes: Sequence[Node]) -> DataFrame:
        has_persons = PERSONS in anchor.files.frame.columns
        others = [POPULATION] if POPULATION in anchor.files.frame.columns else []
        weights = [*others, *self._weights]
        keys = [NODE, *self._codes]
        per_value = anchor.files.frame.mapInArrow(
            _partial_classes(self._ladder, anchor.node, nodes, self._codes, anchor.files.frame.columns),
            _schema([*keys, CLASS], [ROWS, PERSONS, *weights]),
        )
        if not self._class_values:
            counted = (
                per_value.groupBy(*keys).agg(*_sums([ROWS, PERSONS, *weights])).withColumn("majority", F.col(ROWS))
            )
        else:
            by_value = per_value.groupBy(*keys, CLASS).agg(*_sums([ROWS, PERSONS, *weights]))
            counted = by_value.groupBy(*keys).agg(*_sums([ROWS, PERSONS, *weights]), F.max(ROWS).alias("majority"))
        if not has_persons:
            return counted.withColumn(PERSONS, F.col(ROWS))
        if anchor.files.sets is None:
            return counted
        touched = anchor.files.sets.mapInArrow(
            _climbed_members(self._ladder, anchor.node, nodes, self._codes),
            _schema(keys, [MULTIPLICITY], [SET]),
        ).distinct()
        several = touched.groupBy(*keys).agg(F.sum(MULTIPLICITY).alias(MULTIPLICITY))
        joined = counted.join(several, keys, "left")
        return joined.withColumn(PERSONS, F.col(PERSONS) + F.coalesce(MULTIPLICITY, F.lit(0))).drop(MULTIPLICITY)


ArrowStep = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def _partial_classes(
    ladder: Ladder, base: Node, nodes: Sequence[Node], codes: Sequence[str], columns: Sequence[str]
) -> ArrowStep:
    weights = [f"w{a}" for a in range(len(codes))]

    def count(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows == 0:
                continue
            matrix = np.array([batch.column(code).to_numpy() for code in codes], dtype=np.int32)
            rows = batch.column(ROWS).to_numpy().astype(np.int64)
            persons = batch.column(PERSONS).to_numpy().astype(np.int64) if PERSONS in columns else rows
            population = batch.column(POPULATION).to_numpy().astype(np.int64) if POPULATION in columns else None
            values = batch.column(CLASS).to_numpy() if CLASS in columns else np.zeros(len(rows), dtype=np.int32)
            for value in each_once(values):
                same = values == value
                mine = None if population is None else population[same]
                table = TupleTable(base, np.ascontiguousarray(matrix[:, same]), rows[same], persons[same], population=mine)
                for index, node in enumerate(nodes):
                    grouping = group(table, ladder, node)
                    classes = _climb(ladder, base, node, table.codes[:, grouping.representatives])
                    losses = [ladder.weights[a][level][classes[a]] * grouping.rows for a, level in enumerate(node)]
                    size = len(grouping.rows)
                    of_population = [] if grouping.population is None else [pa.array(grouping.population)]
                    yield pa.RecordBatch.from_arrays(
                        [
                            pa.array(np.full(size, index, dtype=np.int32)),
                            *(pa.array(row.astype(np.int32)) for row in classes),
                            pa.array(np.full(size, value, dtype=np.int32)),
                            pa.array(grouping.rows),
                            pa.array(grouping.persons),
                            *of_population,
                            *(pa.array(loss) for loss in losses),
                        ],
                        names=[NODE, *codes, CLASS, ROWS, PERSONS, *([POPULATION] if of_population else []), *weights],
                    )

    return count


def _climbed_members(ladder: Ladder, base: Node, nodes: Sequence[Node], codes: Sequence[str]) -> ArrowStep:
    def climb(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            matrix = np.array([batch.column(code).to_numpy() for code in codes], dtype=np.int32)
            for index, node in enumerate(nodes):
                classes = _climb(ladder, base, node, matrix)
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array(np.full(batch.num_rows, index, dtype=np.int32)),
                        *(pa.array(row.astype(np.int32)) for row in classes),
                        batch.column(MULTIPLICITY),
                        batch.column(SET),
                    ],
                    names=[NODE, *codes, MULTIPLICITY, SET],
                )

    return climb


def _climbed_values(ladder: Ladder, base: Node, nodes: Sequence[Node], codes: Sequence[str]) -> ArrowStep:
    def climb(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            matrix = np.array([batch.column(code).to_numpy() for code in codes], dtype=np.int32)
            for index, node in enumerate(nodes):
                classes = _climb(ladder, base, node, matrix)
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array(np.full(batch.num_rows, index, dtype=np.int32)),
                        *(pa.array(row.astype(np.int32)) for row in classes),
                        *(batch.column(name) for name in (COLUMN, VALUE, ROWS)),
                    ],
                    names=[NODE, *codes, COLUMN, VALUE, ROWS],
                )

    return climb


def _climb(ladder: Ladder, base: Node, node: Node, matrix: Codes) -> list[Ints]:
    return [ladder.climb(a, base[a], level)[matrix[a]] for a, level in enumerate(node)]


def _exploded(sets: DataFrame) -> DataFrame:
    """One row per set and tuple; a set is identified by the digest of its tuples."""
    pairs = sets.select(F.md5(F.to_json(TUPLES)).alias(SET), MULTIPLICITY, F.explode(TUPLES).alias("tuple"))
    return pairs.select(SET, MULTIPLICITY, "tuple.*")


def _collected(sets: DataFrame | None, codes: Sequence[str]) -> DataFrame | None:
    if sets is None:
        return None
    return sets.groupBy(SET, MULTIPLICITY).agg(F.collect_list(F.struct(*codes)).alias(TUPLES))


def _sums(names: Sequence[str]) -> list[Column]:
    return [F.sum(name).alias(name) for name in names]


def _curve(by_size: Ints, which: int) -> Ints:
    """The kernel's rows of one node from sums by size, ascending: node, size, rows, classes, squares, majority, weights.

    A bound has none at size 0, unless it is the only one: nothing follows from it for the nodes below.
    """
    node, size, sums = by_size[:, 0], by_size[:, 1], by_size[:, 2:]
    below = np.cumsum(sums, axis=0) - sums  # of the classes that are suppressed at this size
    rows, classes, squares, majority = below[:, :4].T
    total = sums.sum(axis=0)
    kept = [rows, total[1] - classes, total[2] - squares, np.full_like(rows, total[2])]
    kept += [total[3] - majority, np.full_like(rows, total[3])]
    found = np.column_stack([node, np.full_like(node, which), size, *kept, below[:, 4:]])
    return found[1:] if which == BOUND and len(found) > 1 and size[0] == 0 else found


def _schema(ints: Sequence[str], longs: Sequence[str], texts: Sequence[str] = ()) -> str:
    parts = [(ints, "int"), (longs, "bigint"), (texts, "string")]
    return ", ".join(f"{name} {kind}" for names, kind in parts for name in names)
