"""Class counts of a batch of lattice nodes: the interface of counting, and counting over arrays sent with tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import NODE, ROWS
from anon_spark.engine import small_frame
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.models import NOTHING, Conditions
from anon_spark.kernels.tuples import STATS, Ladder, TupleTable, evaluate_nodes, group
from anon_spark.model.lattice import Node
from anon_spark.model.node_stats import NodeStats
from anon_spark.primitives.classes.frequencies import Frequencies, code_columns
from anon_spark.primitives.rounds import collect_small

DRIVER_WORK = 2**25  # nodes × tuples below which the driver counts a batch: a job would cost more
TASK_WORK = 2**24
MOST_TASKS = 256


class Counting(Protocol):
    """Evaluates batches of nodes of one table at one suppression budget."""

    def evaluate(self, nodes: Sequence[Node]) -> list[NodeStats]:
        """Statistics of the nodes, in their order, each with those at smaller k."""

    def large_classes(self, node: Node, k: int) -> DataFrame:
        """Codes, on the node's levels, of the classes with at least k persons (or rows) that keep the conditions."""

    @property
    def conditions(self) -> Conditions:
        """What classes must keep besides their size."""

    def under(self, conditions: Conditions) -> Counting:
        """The same table counted under other conditions, which are some of its own."""


def marginals(frequencies: Frequencies) -> tuple[tuple[int, ...], ...]:
    """Per attribute and level, the loss weight of all rows. Cost: at most one job, one row per code on the driver."""
    return tuple(
        tuple(
            int(np.dot(by_leaf, hierarchy.weights[level][hierarchy.codes[level]]))
            for level in range(hierarchy.height + 1)
        )
        for by_leaf, hierarchy in zip(_rows_by_leaf(frequencies), frequencies.hierarchies, strict=True)
    )


def _rows_by_leaf(frequencies: Frequencies) -> list[Ints]:
    """Rows of each leaf of each attribute, from the dictionaries unless a policy dropped rows."""
    if frequencies.dropped_nulls == frequencies.dropped_unseen == 0:
        return [dictionary.rows_by_leaf() for dictionary in frequencies.dictionaries]
    if frequencies.held is not None:
        held = frequencies.held.table
        by_leaf = [np.zeros(hierarchy.leaf_count, dtype=np.int64) for hierarchy in frequencies.hierarchies]
        for of_leaf, codes in zip(by_leaf, held.codes, strict=True):
            np.add.at(of_leaf, codes, held.rows)
        return by_leaf
    codes = code_columns(len(frequencies.hierarchies))
    exploded = frequencies.files.frame.select(F.posexplode_outer(F.array(*codes)).alias("attribute", "code"), ROWS)
    by_code = exploded.groupBy("attribute", "code").agg(F.sum(ROWS))
    leaves = sum(hierarchy.leaf_count for hierarchy in frequencies.hierarchies)
    counts = collect_small(by_code, leaves, "Values of all quasi-identifiers")
    attribute, code, rows = (np.asarray(counts.column(index).to_numpy()) for index in range(3))
    by_attribute = []
    for position, hierarchy in enumerate(frequencies.hierarchies):
        of_attribute = np.zeros(hierarchy.leaf_count, dtype=np.int64)
        of_attribute[code[attribute == position]] = rows[attribute == position]
        by_attribute.append(of_attribute)
    return by_attribute


class ArrayCounting:
    """Counting over arrays in the closure of a task; the driver counts a small batch without a job."""

    def __init__(
        self, spark: SparkSession, table: TupleTable, ladder: Ladder, budget: int, conditions: Conditions = NOTHING
    ) -> None:
        self._spark, self._table, self._ladder, self._budget = spark, table, ladder, budget
        self._conditions = conditions

    @property
    def conditions(self) -> Conditions:
        return self._conditions

    def evaluate(self, nodes: Sequence[Node]) -> list[NodeStats]:
        work = len(nodes) * self._table.size
        if work <= DRIVER_WORK:
            return to_stats(nodes, evaluate_nodes(self._table, self._ladder, nodes, self._budget, self._conditions))
        tasks = min(len(nodes), MOST_TASKS, -(-work // TASK_WORK))
        return to_stats(nodes, self._in_tasks(nodes, max(2, tasks)))

    def under(self, conditions: Conditions) -> ArrayCounting:
        table = self._table if conditions else replace(self._table, sensitive=(), population=None)
        return ArrayCounting(self._spark, table, self._ladder, self._budget, conditions)

    def large_classes(self, node: Node, k: int) -> DataFrame:
        grouping = group(self._table, self._ladder, node, self._conditions)
        large = grouping.representatives[grouping.members(self._conditions) >= k]
        columns = {}
        for attribute, code in enumerate(code_columns(len(node))):
            steps = self._ladder.climb(attribute, self._table.base[attribute], node[attribute])
            columns[code] = pa.array(steps[self._table.codes[attribute][large]], pa.int32())
        return small_frame(self._spark, pa.table(columns))

    def _in_tasks(self, nodes: Sequence[Node], tasks: int) -> Ints:
        """Similar nodes share a task, so that they share its roll-ups."""
        wide_first = sorted(range(len(self._table.base)), key=lambda a: -self._ladder.cardinality(a, 0))
        order = sorted(range(len(nodes)), key=lambda index: [nodes[index][a] for a in wide_first])
        shares = [part.tolist() for part in np.array_split(np.array(order), tasks)]
        codes = [
            row.astype(np.min_scalar_type(self._ladder.cardinality(attribute, level)))
            for attribute, (row, level) in enumerate(zip(self._table.codes, self._table.base, strict=True))
        ]
        narrow = self._table.with_codes(np.zeros((0, 0), dtype=np.int32))
        ladder, budget, conditions = Ladder(self._ladder.codes, self._ladder.weights), self._budget, self._conditions.portable()

        def evaluate(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
            table = narrow.with_codes(np.array(codes, dtype=np.int32))
            for batch in batches:
                for share in batch.column(0).to_numpy():
                    members = shares[int(share)]
                    stats = evaluate_nodes(table, ladder, [nodes[index] for index in members], budget, conditions)
                    place, *counts = stats.T
                    columns = [pa.array(np.array(members)[place]), *map(pa.array, counts)]
                    yield pa.RecordBatch.from_arrays(columns, names=names)

        names = [NODE, "which", *STATS, *(f"w{position}" for position in range(len(self._table.base)))]
        schema = ", ".join(f"{name} bigint" for name in names)
        table = self._spark.range(0, tasks, 1, tasks).mapInArrow(evaluate, schema).toArrow()
        rows = np.array([table.column(index).to_numpy() for index in range(len(names))]).T
        return np.asarray(rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))], dtype=np.int64)


def to_stats(nodes: Sequence[Node], rows: Ints) -> list[NodeStats]:
    """The kernel's rows, of each node by ascending k, as one NodeStats per node."""
    fixed = 2 + len(STATS)
    curves: list[tuple[list[NodeStats], list[NodeStats]]] = [([], []) for _ in nodes]
    for row in rows.tolist():
        curves[row[0]][row[1]].append(NodeStats.of(nodes[row[0]], row[2:fixed], row[fixed:]))
    return [replace(_of_curve(curve), bound=_of_curve(bound) if bound else None) for curve, bound in curves]


def _of_curve(curve: Sequence[NodeStats]) -> NodeStats:
    *lower, stats = curve
    return replace(stats, lower=tuple(lower))
