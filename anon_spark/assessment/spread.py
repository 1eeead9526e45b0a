"""Distinct tuples that are too many for the driver: the same counts by distributed aggregation, with equal results.

Sets of columns are counted in rounds, one for each column: the round of a column has the sets in which it is the highest, on
the tuples without the columns above it. Tuples that agree in that column share a task, so every class of these sets is in one
task, which walks them with the kernel that the driver uses for few tuples. All rounds are one job. Columns with many values come
last, so that the largest round has the smallest shares; a value of the widest column that most tuples have makes one large task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.arrays import each_once
from anon_spark.assessment.column_sets import Counted, largest_set
from anon_spark.assessment.held import HeldTuples, dense, digested, moved
from anon_spark.assessment.reading import NAMELESS, OWNER, hash_columns, null_pattern
from anon_spark.assessment.sizes import Sizes
from anon_spark.columns import NODE, PERSONS, PREFIX, ROWS, TUPLES
from anon_spark.kernels.column_sets import Entries, branch
from anon_spark.primitives.rounds import collect_small

MOST_SIZES = 1_000_000  # distinct sizes of classes: fewer than the root of twice the rows
MOST_PATTERNS = 16  # of nulls
TASK_TUPLES = 1_000_000
MOST_TASKS = 1_000
FULL, OTHERS, PIVOT, KIND, NUMBER = (PREFIX + name for name in ("full", "others", "pivot", "kind", "number"))
SUMS = [PREFIX + name for name in ("classes", "unique", "squares")]
OF_SET, OF_RECORD, BY_NUMBER, BY_SIZE, BY_COLUMN = range(5)  # what a row of numbers is about


@dataclass(frozen=True, eq=False)
class SpreadTuples:
    """The frame of distinct tuples, computed anew by each job, and the columns in order of their values in a sample."""

    frame: DataFrame
    order: list[int]
    people: int
    nameless: int
    null_rows: int
    class_sizes: Sizes

    @classmethod
    def of(cls, frame: DataFrame, sample: HeldTuples, persons: bool) -> SpreadTuples:
        """Cost: one job, which counts the sizes of all classes; a second one counts persons."""
        distinct = [each_once(hashes).size for hashes in sample.hashes]
        names = hash_columns(len(distinct))
        classes = frame.groupBy(*names).agg(*(F.sum(name).alias(name) for name in (ROWS, PERSONS, NAMELESS)))
        with_null = F.when(null_pattern(names) != 0, F.col(ROWS)).otherwise(F.lit(0))
        sums = [F.count(F.lit(1)).alias(NUMBER), F.sum(ROWS).alias(ROWS), F.sum(NAMELESS), F.sum(with_null)]
        by_size = collect_small(classes.groupBy(PERSONS).agg(*sums), MOST_SIZES, "Distinct sizes of classes")
        sizes, number, rows, nameless, nulls = (np.asarray(by_size.column(at).to_numpy()).astype(np.int64) for at in range(5))
        by_value = sorted(range(len(distinct)), key=lambda at: (distinct[at], at))
        order = np.argsort(sizes)
        counted = Sizes(sizes[order], number[order], rows[order])
        people = _people(frame) if persons else counted.total_rows
        return cls(frame, by_value, people, int(nameless.sum()), int(nulls.sum()), counted)

    def sizes(self) -> Sizes:
        return self.class_sizes

    def column_sets(self) -> Counted:
        """Every set of columns. Cost: one job, four shuffles; of each tuple at most one entry per column."""
        columns = len(self.order)
        names, most, order = hash_columns(columns), largest_set(columns), self.order
        tasks = min(MOST_TASKS, max(2, -(-self.class_sizes.total_classes * columns // TASK_TUPLES)))
        pivot = F.element_at(F.array(*names), F.col(NODE) + 1)
        rolled = self._rolled_up(names).withColumn(PIVOT, pivot).repartition(tasks, NODE, PIVOT)

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            held = [batch for batch in batches if batch.num_rows]
            if held:
                yield from rounds_of(pa.Table.from_batches(held), columns, most, order)

        numbers = [KIND, NUMBER, *SUMS, TUPLES]
        counted = rolled.drop(PIVOT).mapInArrow(work, ", ".join(f"{name} bigint" for name in numbers))
        sums = [F.sum(name).alias(name) for name in SUMS]
        of_each = counted.groupBy(KIND, NUMBER).agg(*sums, F.collect_list(TUPLES).alias(TUPLES))

        def digest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield digest_of(batch, columns)

        final = of_each.mapInArrow(digest, ", ".join(f"{name} bigint" for name in numbers[:-1]))
        table = final.groupBy(KIND, NUMBER).agg(*sums).toArrow()  # a row per set, and per number of sets, size and column
        return _counted(table)

    def with_wildcards(self) -> Sizes | None:
        """As of tuples that are held; None with more than MOST_PATTERNS patterns of nulls. Cost: two jobs, three shuffles."""
        names = hash_columns(len(self.order))
        tuples = self.frame.withColumn(NODE, null_pattern(names))
        patterns = [int(row[0]) for row in tuples.select(NODE).distinct().limit(MOST_PATTERNS + 1).collect()]
        if len(patterns) > MOST_PATTERNS:
            return None
        key, hidden, other = PREFIX + "key", PREFIX + "hidden", PREFIX + "other"

        def each(theirs: int) -> Column:
            """The key on which a tuple and the tuples of another pattern are compared: columns that neither lacks."""
            lacking = F.col(NODE).bitwiseOR(F.lit(theirs))
            parts = [
                F.when(F.shiftright(lacking, at).bitwiseAND(F.lit(1)) == 0, F.col(name)).otherwise(F.lit(0))
                for at, name in enumerate(names)
            ]
            hashed = reduce(lambda one, next_one: one.bitwiseXOR(next_one), parts)
            return F.struct(lacking.alias(hidden), F.lit(theirs).cast("bigint").alias(other), hashed.alias(key))

        pairs = F.array(*(each(theirs) for theirs in patterns))
        asked = tuples.select(F.xxhash64(*names).alias(FULL), ROWS, NODE, F.inline_outer(pairs))
        offered = asked.select(hidden, F.col(NODE).alias(other), key, FULL, ROWS).distinct()  # a tuple once for each key
        supply = offered.groupBy(hidden, other, key).agg(F.sum(ROWS).alias(PERSONS))
        met = asked.join(supply, [hidden, other, key])
        agreeing = met.groupBy(FULL).agg(F.sum(PERSONS).alias(PERSONS), F.max(ROWS).alias(ROWS))
        sums = [F.count(F.lit(1)).alias(NUMBER), F.sum(ROWS).alias(ROWS)]
        by_size = collect_small(agreeing.groupBy(PERSONS).agg(*sums), MOST_SIZES, "Distinct sizes of classes")
        sizes, classes, rows = (np.asarray(by_size.column(at).to_numpy()).astype(np.int64) for at in range(3))
        at = np.argsort(sizes)
        return Sizes(sizes[at], classes[at], rows[at])

    def _rolled_up(self, names: list[str]) -> DataFrame:
        """The tuples of every round: NODE, the columns up to that of the round in the order of the rounds, and their records."""
        ordered = [names[at] for at in self.order]
        none = F.lit(0).cast("bigint")
        rounds = [
            F.struct(
                F.lit(top).alias(NODE),
                *((F.col(ordered[at]) if at <= top else none).alias(name) for at, name in enumerate(names)),
            )
            for top in range(len(names))
        ]
        exploded = self.frame.select(
            F.inline_outer(F.array(*rounds)), OWNER, ROWS, PERSONS, F.xxhash64(*names).alias(FULL)
        )
        sums = [F.sum(ROWS).alias(ROWS), F.sum(PERSONS).alias(PERSONS), F.min(FULL).alias(FULL)]
        sums.append(F.collect_set(F.when(F.col(OWNER) != 0, F.col(FULL))).alias(OTHERS))
        rolled = exploded.groupBy(NODE, *names, OWNER).agg(*sums)
        return rolled.withColumn(PERSONS, F.when(F.col(OWNER) == 0, F.col(PERSONS)).otherwise(F.lit(1).cast("bigint")))


def _people(frame: DataFrame) -> int:
    """Distinct persons: those with one tuple are counted there, the others by their hashes."""
    single = F.coalesce(F.sum(F.when(F.col(OWNER) == 0, F.col(PERSONS))), F.lit(0))
    several = F.count_distinct(F.when(F.col(OWNER) != 0, F.col(OWNER)))
    one, more = frame.agg(single, several).collect()[0]
    return int(one) + int(more)


def rounds_of(table: pa.Table, columns: int, most: int, order: list[int]) -> Iterator[pa.RecordBatch]:
    """The sets of all rounds in one task: counts of each set, and records with their least sets of the round."""
    numbers = {name: np.asarray(table.column(name).to_numpy()).astype(np.int64) for name in table.column_names if name != OTHERS}
    others = table.column(OTHERS)
    for top in np.unique(numbers[NODE]).tolist():
        places = np.flatnonzero(numbers[NODE] == top)
        places = places[np.argsort(numbers[OWNER][places], kind="stable")]
        codes = [dense(numbers[name][places], first=0) for name in hash_columns(columns)[: top + 1]]
        entries = Entries(
            np.array(codes, dtype=np.int32),
            tuple(int(column.max()) + 1 for column in codes),
            numbers[ROWS][places],
            numbers[PERSONS][places],
            dense(numbers[OWNER][places]),
        )
        for counts in branch(entries, top, most):
            mask = moved(counts.mask, order)
            yield _batch([OF_SET], [mask], [counts.classes], [counts.unique_rows], [counts.squares], [None])
            if counts.least.size:
                at = places[counts.least]
                alone = numbers[OWNER][at] == 0
                several: Any = others.take(pa.array(at[~alone])).combine_chunks()
                records = np.concatenate([numbers[FULL][at[alone]], np.asarray(several.flatten(), dtype=np.int64)])
                none = np.zeros(records.size, dtype=np.int64)
                yield _batch(none + OF_RECORD, records, none, none, none, none + mask)


def digest_of(batch: pa.RecordBatch, columns: int) -> pa.RecordBatch:
    """Counts of sets as they are; records with their lists of sets as numbers of records by what `digested` tells."""
    kinds = batch.column(0).to_numpy()
    of_set = pa.array(kinds == OF_SET)
    counts = [np.asarray(column.filter(of_set)).astype(np.int64) for column in batch.columns[:5]]
    lists: Any = batch.column(5).filter(pa.array(kinds == OF_RECORD))
    sizes = np.diff(lists.offsets.to_numpy())
    records, masks = np.repeat(np.arange(sizes.size), sizes), np.asarray(lists.flatten(), dtype=np.int64)
    told = []
    if sizes.size:
        for kind, by in zip((BY_NUMBER, BY_SIZE, BY_COLUMN), digested(records, masks, columns), strict=True):
            told += [(kind, key, number, 0, 0) for key, number in by.items()]
    more = np.array(told, dtype=np.int64).reshape(-1, 5).T
    return pa.RecordBatch.from_arrays(
        [pa.array(np.concatenate(both)) for both in zip(counts, more, strict=True)], names=[KIND, NUMBER, *SUMS]
    )


def _batch(*columns: Iterable[int | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(column, pa.int64()) for column in columns], names=[KIND, NUMBER, *SUMS, TUPLES])


def _counted(table: pa.Table) -> Counted:
    sets: dict[int, tuple[int, int, int]] = {}
    told: dict[int, dict[int, int]] = {BY_NUMBER: {}, BY_SIZE: {}, BY_COLUMN: {}}
    for kind, number, *sums in zip(*(table.column(at).to_pylist() for at in range(5)), strict=True):
        if kind == OF_SET:
            sets[number] = tuple(sums)
        else:
            told[kind][number] = sums[0]
    return Counted(sets, told[BY_NUMBER], told[BY_SIZE], told[BY_COLUMN])
