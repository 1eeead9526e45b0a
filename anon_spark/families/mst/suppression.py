"""Suppression after refinement: whole tuples are left out where that lowers the loss, up to a budget of rows (decision M-15)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import LEVEL, PREFIX, ROWS
from anon_spark.families.mst.frames import leaf_columns, level_columns
from anon_spark.families.mst.kernels.losses import Tuples, classes_from, full_weight, taken
from anon_spark.families.mst.kernels.outliers import STAYS, outliers
from anon_spark.families.mst.refinement import (
    Refining,
    Step,
    classes_by_node,
    in_each_block,
    in_held_blocks,
    matrix_of,
    schema_with,
)
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.primitives.rounds import Workspace, collect_small

STEP = PREFIX + "step"  # in which a tuple would be left out of its class
GROUP = PREFIX + "group"  # steps that are taken together, or not at all: the greater, the more they gain per row
GROUP_BITS = 6  # steps of about the same gain are in one of 64 groups, by their class
GAIN_BITS = 16  # of the 32 bits of a number, sign and exponent included: gains that differ by less than 1 % count as equal
MOST_GROUPS = 1_000_000


def without_outliers(assigned: DataFrame, blocks: int, refining: Refining, workspace: Workspace) -> DataFrame:
    """Leaves, levels and ROWS of the tuples; a tuple that is left out has null levels.

    assigned: also has BLOCK (VALUES, COUNTS). Guarantee: at most `refining.budget` rows are left out; what stays of every class
    has k rows and l values and keeps the models; the loss, in which a row that is left out costs 1 per attribute, is never higher
    than before.
    Cost: two passes over the blocks, one small job between them; its groups reach the driver.
    """
    # 1. in each class, what could be left out and what it would gain per row
    schema = schema_with(assigned, dict.fromkeys((STEP, GROUP), "int"))
    marked = workspace.store(in_each_block(assigned, blocks, marking(refining), schema), "outliers")
    # 2. the groups of greatest gain that the budget has room for
    candidates = marked.where(F.col(STEP) > STAYS).groupBy(GROUP).agg(F.sum(ROWS).alias(ROWS))
    counted = collect_small(candidates, MOST_GROUPS, "Groups of tuples that could be left out")
    chosen = within_budget(counted.column(GROUP).to_numpy(), counted.column(ROWS).to_numpy(), refining.budget)
    # 3. the classes without them
    count = len(refining.hierarchies)
    kept = [*leaf_columns(count), *level_columns(count), ROWS]
    if not chosen.size:
        return marked.select(*kept)
    schema = schema_with(marked, {})
    return workspace.store(in_each_block(marked, blocks, leaving_out(refining, chosen), schema).select(*kept), "assignment")


def held_without_outliers(spark: SparkSession, assigned: pa.Table, refining: Refining) -> pa.Table:
    """As `without_outliers`, of tuples that the driver holds."""
    marked = in_held_blocks(spark, assigned, marking(refining), dict.fromkeys((STEP, GROUP), "int"))
    step, group, rows = (marked.column(name).to_numpy() for name in (STEP, GROUP, ROWS))
    groups, place = np.unique(group[step > STAYS], return_inverse=True)
    sums = np.zeros(groups.size, dtype=np.int64)
    np.add.at(sums, place, rows[step > STAYS])
    chosen = within_budget(groups, sums, refining.budget)
    return in_held_blocks(spark, marked, leaving_out(refining, chosen), {}) if chosen.size else marked


def marking(refining: Refining) -> Step:
    """The tuples of one block → the same with STEP and GROUP."""

    def mark(table: pa.Table) -> pa.Table:
        step, group = steps_of(refining, table)
        return table.append_column(STEP, pa.array(step)).append_column(GROUP, pa.array(group))

    return mark


def leaving_out(refining: Refining, chosen: Ints) -> Step:
    """The marked tuples of one block → the same with their levels after the chosen steps; null if they are left out."""
    levels = level_columns(len(refining.hierarchies))

    def leave_out(table: pa.Table) -> pa.Table:
        level, stays = levels_without(refining, table, chosen)
        for name, column in zip(levels, level.T, strict=True):
            table = table.set_column(table.column_names.index(name), name, pa.array(column, pa.int32(), mask=~stays))
        return table

    return leave_out


def left_out(assigned: DataFrame) -> int:
    """How many rows are left out. Cost: one small job."""
    counted = assigned.where(F.col(f"{LEVEL}0").isNull()).agg(F.sum(ROWS)).first()
    return int(counted[0] or 0) if counted is not None else 0


def steps_of(refining: Refining, table: pa.Table) -> tuple[Codes, Codes]:
    """The step of each tuple of a block in which it would be left out (STAYS: never), and its group."""
    tuples, order, class_of, count = _classes(refining, table)
    levels, weights = refining.levels()
    classes = classes_from(levels, weights, tuples, class_of, count, count)
    price = full_weight(levels, refining.rows)
    step_of, gain = outliers(levels, weights, tuples, classes, refining.k, price)
    height = gain.astype(np.float32).view(np.int32) >> (32 - GAIN_BITS)  # the bits of positive numbers sort like them
    group = (height << GROUP_BITS) + class_of % (1 << GROUP_BITS)
    step, of_group = np.empty_like(step_of), np.empty_like(step_of)
    step[order], of_group[order] = step_of, group
    return step, of_group


def within_budget(groups: Ints, rows: Ints, budget: int) -> Ints:
    """The groups that are taken, by decreasing number, as far as the budget allows; one that is too large is passed over."""
    chosen = []
    for at in np.argsort(-groups.astype(np.int64), kind="stable").tolist():
        if rows[at] <= budget:
            budget -= int(rows[at])
            chosen.append(int(groups[at]))
    return np.array(chosen, dtype=np.int64)


def levels_without(refining: Refining, table: pa.Table, chosen: Ints) -> tuple[Codes, NDArray[np.bool_]]:
    """The levels of the tuples of a block after the chosen steps, and which tuples stay; of the others, levels mean nothing."""
    tuples, order, class_of, count = _classes(refining, table)
    step = table.column(STEP).to_numpy()[order]
    refused = (step > STAYS) & ~np.isin(table.column(GROUP).to_numpy()[order], chosen)
    first_refused = np.full(count, np.iinfo(np.int32).max, dtype=np.int32)  # a step is only taken after all before it
    np.minimum.at(first_refused, class_of[refused], step[refused])
    stays = (step == STAYS) | (step >= first_refused[class_of])
    levels, weights = refining.levels()
    rest = taken(tuples, np.flatnonzero(stays).astype(np.int32))
    classes = classes_from(levels, weights, rest, class_of[stays], count, count)
    level, staying = np.empty_like(tuples.leaf), np.empty(step.size, dtype=np.bool_)
    level[order], staying[order] = classes.level[class_of], stays
    return level, staying


def _classes(refining: Refining, table: pa.Table) -> tuple[Tuples, Ints, Codes, int]:
    """The tuples of a block in order, where each stood in the table, its class, and how many classes there are."""
    count = len(refining.hierarchies)
    leaf, level = matrix_of(table, leaf_columns(count)), matrix_of(table, level_columns(count))
    rows = table.column(ROWS).to_numpy().astype(np.int64)
    return classes_by_node(refining, leaf, level, rows, refining.sensitive_in(table))
