"""Link attack on a local recoding: every published class that could hold the person, on whatever levels it stands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.reading.sampling import TUPLE, chunk_of, every_chunk, sampled_tuples, tuple_columns
from anon_spark.auditing.reading.values import content_hash, private
from anon_spark.columns import ROWS
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.pending import Pending
from anon_spark.risk.look_up.chances import error_of_ratio, sampled_sums, squares
from anon_spark.risk.look_up.classes import SIZE, label_columns, published_sizes
from anon_spark.risk.look_up.levels import CELLS_AT_ONCE, Covering, EndsOfClasses, Levels

CLASSES_AT_ONCE = 200_000  # classes that meet the sample in one worker, about

_CHUNK, _CANDIDATES, _SMALLEST = private("chunk"), private("candidates"), private("smallest")
_MET = (TUPLE, ROWS, _CANDIDATES, _SMALLEST)  # a sampled tuple and some classes


@dataclass(frozen=True)
class CoverRisk:
    """Success of the attack on a sample of source rows, as chances between 0 and 1.

    tuples and rows: sampled quasi-identifier tuples and the source rows that have them; found: how many of these rows
    have a covering class (all, unless rows were left out of the release); before: with the raw table; after: one of all
    rows in covering classes is picked; class: the attacker somehow knows the class, and it is the smallest covering one.
    expected: for a random sampled row; worst: for the least protected one. A row without a covering class cannot be
    linked.
    """

    tuples: int
    rows: int
    found: int
    before_expected: float
    before_worst: float
    after_expected: float
    after_worst: float
    class_expected: float
    class_worst: float
    after_error: float | None = field(default=None, compare=False)  # standard error of after_expected, over tuples


def cover_attack(
    source: DataFrame,
    release: DataFrame,
    hierarchies: Mapping[str, Hierarchy],
    tuples: int = 1000,
    rows: int | None = None,
    extents: Collection[str] = (),
) -> CoverRisk:
    """Simulate the attack: find all published rows that are true of the known values of sampled rows, pick one.

    hierarchies: quasi-identifier → hierarchy; tuples: most tuples to sample; rows: how many the source has, when known;
    extents: columns whose labels are texts of two ends, which cover the numbers between them.
    A class covers a tuple iff each of its labels is the value or lies above it. Null is a value with a label of its own;
    the root covers everything, also values that the hierarchy does not know; any other unknown text covers nothing. A
    class below k that covers a sampled tuple shows as class_worst above 1/k, a row that escaped generalization is one.
    Rows are what is counted: persons with several rows are at higher risk than stated.
    Guarantee: the sample is chosen by content (whole tuples), so the numbers do not depend on partitions. Labels must be
    unambiguous (`Hierarchy.ambiguous_labels`).
    Cost: one job (and a count if `rows` is not given): one scan of the source, one scan and groupBy of the release, one
    more shuffle of its classes; the sample is sent to each chunk of classes, and compared in blocks, in Arrow; one row
    reaches the driver.
    """
    rows = source.count() if rows is None else rows
    return cover_attack_to_be(source, release, hierarchies, rows, tuples, extents).get()


def cover_attack_to_be(
    source: DataFrame,
    release: DataFrame,
    hierarchies: Mapping[str, Hierarchy],
    rows: int,
    tuples: int = 1000,
    extents: Collection[str] = (),
    classes: DataFrame | None = None,
) -> Pending[CoverRisk]:
    """As `cover_attack`, its sums not collected yet. rows: how many the source has, about; the sample hangs on it.

    classes: those of the release with their ROWS, where they are counted already.
    """
    names = list(hierarchies)
    levels = [
        EndsOfClasses.of(hierarchy) if name in extents else Levels.of(hierarchy) for name, hierarchy in hierarchies.items()
    ]
    leaves = ", ".join(f"{name} int" for name in tuple_columns(len(names)))
    chunks = 1 + rows // CLASSES_AT_ONCE
    persons = (
        sampled_tuples(source, names, tuples, rows)
        .mapInArrow(_leaves(levels), f"{TUPLE} long, {leaves}, {ROWS} long")
        .withColumn(_CHUNK, every_chunk(chunks))
    )
    labels = [F.col(name) for name in label_columns(len(names))]
    sizes = published_sizes(release, names, classes).withColumn(_CHUNK, chunk_of(content_hash(labels), chunks))
    sums = _success(
        persons.groupBy(_CHUNK)
        .cogroup(sizes.groupBy(_CHUNK))
        .applyInArrow(_attack(levels), ", ".join(f"{name} long" for name in _MET))
    )
    return Pending.of(sums, lambda found: _risk(found[0]))


def _risk(sums: Row) -> CoverRisk:
    sampled = sums["rows"]
    # rounded: sums of doubles depend on their order in the last digits
    expected = {name: float(f"{sums[name] / sampled:.12g}") if sampled else 0.0 for name in ("after", "class")}
    return CoverRisk(
        tuples=sums["tuples"],
        rows=sampled,
        found=sums["found"],
        before_expected=sums["tuples"] / sampled if sampled else 0.0,
        before_worst=sums["before_worst"],
        after_expected=expected["after"],
        after_worst=sums["after_worst"],
        class_expected=expected["class"],
        class_worst=sums["class_worst"],
        after_error=error_of_ratio(sums, sums["after"]),
    )


def _leaves(levels: Sequence[Covering]) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """Sampled tuples: values → leaves."""

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            person, *values, rows = batch.columns
            leaves = [
                pa.array([attribute_levels.leaf(value) for value in column.to_pylist()], pa.int32())
                for attribute_levels, column in zip(levels, values, strict=True)
            ]
            yield pa.RecordBatch.from_arrays([person, *leaves, rows], names=batch.schema.names)

    return encode


def _attack(levels: Sequence[Covering]) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """The sample and some classes → per sampled tuple its rows, the candidates and the smallest class among these.

    Cost: classes times tuples, of which CELLS_AT_ONCE are held at a time.
    """

    def attack(persons: pa.Table, classes: pa.Table) -> pa.Table:
        classes = classes.sort_by(SIZE)
        sizes = classes[SIZE].to_numpy()
        columns = zip(levels, label_columns(len(levels)), strict=True)
        labels = [of_column.numbers(classes[name]) for of_column, name in columns]
        leaves = [persons[name].to_numpy() for name in tuple_columns(len(levels))]
        candidates, smallest = np.zeros((2, len(persons)), dtype=np.int64)
        step = max(1, CELLS_AT_ONCE // max(1, len(persons)))
        for start in range(0, len(sizes), step):
            block = slice(start, start + step)
            covering = np.ones((len(sizes[block]), len(persons)), dtype=np.bool_)
            for attribute_levels, numbers, known in zip(levels, labels, leaves, strict=True):
                covering &= attribute_levels.covering(numbers[block], known)
            candidates += sizes[block] @ covering
            first = sizes[block][covering.argmax(axis=0)]  # the smallest covering class, because sizes ascend
            smallest = np.where((smallest == 0) & covering.any(axis=0), first, smallest)
        met = persons.select([TUPLE, ROWS]).append_column(_CANDIDATES, pa.array(candidates))
        return met.append_column(_SMALLEST, pa.array(smallest, mask=smallest == 0))

    return attack


def _success(met: DataFrame) -> DataFrame:
    """One row of sums and extremes, from what the chunks of classes hold for each tuple."""
    persons = met.groupBy(TUPLE).agg(
        F.max(ROWS).alias(ROWS), F.sum(_CANDIDATES).alias(_CANDIDATES), F.min(_SMALLEST).alias(_SMALLEST)
    )
    covered_once = F.isnotnull(_SMALLEST)
    after, known_class = (F.when(covered_once, 1 / F.col(name)) for name in (_CANDIDATES, _SMALLEST))
    return persons.agg(
        *sampled_sums(covered_once),
        F.coalesce(F.sum(F.col(ROWS) * after), F.lit(0.0)).alias("after"),
        F.coalesce(F.max(after), F.lit(0.0)).alias("after_worst"),
        F.coalesce(F.sum(F.col(ROWS) * known_class), F.lit(0.0)).alias("class"),
        F.coalesce(F.max(known_class), F.lit(0.0)).alias("class_worst"),
        *squares(F.coalesce(after, F.lit(0.0))),
    )
