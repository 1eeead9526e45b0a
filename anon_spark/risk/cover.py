"""Link attack on a local recoding: every published class that could hold the person, on whatever levels it stands."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, ROWS
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.risk.cells import cell, content_hash
from anon_spark.risk.link import error_of_ratio, squares

_PERSON, _CHUNK, _SIZE = PREFIX + "known", PREFIX + "chunk", PREFIX + "size"
_CANDIDATES, _SMALLEST = PREFIX + "candidates", PREFIX + "smallest"
_MET = (_PERSON, ROWS, _CANDIDATES, _SMALLEST)  # a sampled tuple and some classes
_SPREAD = 64  # how many more tuples than needed may pass the hash filter; the smallest hashes of them are kept
CLASSES_AT_ONCE = 200_000  # classes that meet the sample in one worker, about
CELLS_AT_ONCE = 2_000_000  # classes times sampled tuples that are compared in one step

Leaves = npt.NDArray[np.int32]
Cover = npt.NDArray[np.bool_]


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
) -> CoverRisk:
    """Simulate the attack: find all published rows that are true of the known values of sampled rows, pick one.

    hierarchies: quasi-identifier → hierarchy; tuples: most tuples to sample; rows: how many the source has, when known.
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
    names = list(hierarchies)
    rows = source.count() if rows is None else rows
    levels = [Levels.of(hierarchy) for hierarchy in hierarchies.values()]
    labels = [f"{PREFIX}label_{at}" for at in range(len(names))]
    leaves = ", ".join(f"{PREFIX}{at} int" for at in range(len(names)))
    chunks = 1 + rows // CLASSES_AT_ONCE
    persons = (
        _sample(source, names, tuples, rows)
        .mapInArrow(_leaves(levels), f"{_PERSON} long, {leaves}, {ROWS} long")
        .withColumn(_CHUNK, F.explode(F.sequence(F.lit(0), F.lit(chunks - 1))))
    )
    classes = (
        release.select(*(cell(release, name).cast("string").alias(label) for name, label in zip(names, labels, strict=True)))
        .groupBy(*labels)
        .agg(F.count(F.lit(1)).alias(_SIZE))
        .withColumn(_CHUNK, F.pmod(content_hash([F.col(label) for label in labels]), F.lit(chunks)).cast("int"))
    )
    found = _success(
        persons.groupBy(_CHUNK)
        .cogroup(classes.groupBy(_CHUNK))
        .applyInArrow(_attack(levels), ", ".join(f"{name} long" for name in _MET))
    ).collect()[0]
    sampled = found["rows"]
    # rounded: sums of doubles depend on their order in the last digits
    expected = {name: float(f"{found[name] / sampled:.12g}") if sampled else 0.0 for name in ("after", "class")}
    return CoverRisk(
        tuples=found["tuples"],
        rows=sampled,
        found=found["found"],
        before_expected=found["tuples"] / sampled if sampled else 0.0,
        before_worst=found["before_worst"],
        after_expected=expected["after"],
        after_worst=found["after_worst"],
        class_expected=expected["class"],
        class_worst=found["class_worst"],
        after_error=error_of_ratio(found, found["after"]),
    )


@dataclass(frozen=True, eq=False)
class Levels:
    """Where each label of a hierarchy stands, and what the leaves are called there.

    texts: every label once, null too; levels and codes: its place, the highest if padding repeats it (for the same
    leaves, or at the root), and after the last one a place that no leaf has; table: code by level and leaf, where null
    and, after it, the unknown value are leaves too.
    """

    hierarchy: Hierarchy
    texts: pa.StringArray
    levels: Leaves
    codes: Leaves
    table: Leaves

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> Levels:
        """Cost: one pass over all labels, no Spark."""
        whole = hierarchy.with_null()
        places = {
            name: (level, code) for level, names in enumerate(whole.labels) for code, name in enumerate(names)
        }  # ascending: the highest level stays
        nowhere = (0, -2)
        levels, codes = np.array([*places.values(), nowhere], dtype=np.int32).T
        unknown = np.full((whole.height + 1, 1), -1, dtype=np.int32)
        unknown[-1] = 0
        return cls(whole, pa.array(list(places), pa.string()), levels, codes, np.hstack([whole.codes, unknown]))

    def leaf(self, value: object) -> int:
        """Leaf of a source value; NaN is missing, too."""
        leaf = self.hierarchy.leaf_of(None if value != value else value)
        return self.hierarchy.leaf_count if leaf is None else leaf

    def numbers(self, labels: pa.ChunkedArray[pa.StringScalar]) -> Leaves:
        """Position of published labels among the texts, -1 for a text that is no label."""
        found = pc.index_in(labels, value_set=self.texts)
        return np.asarray(found.fill_null(-1).to_numpy(), dtype=np.int32)

    def covering(self, numbers: Leaves, leaves: Leaves) -> Cover:
        """[label, leaf]: whether the label is the leaf's or lies above it."""
        distinct, back = np.unique(numbers, return_inverse=True)
        at = self.table[self.levels[distinct][:, None], leaves[None, :]]
        return np.asarray(at == self.codes[distinct][:, None])[back]


def _sample(source: DataFrame, names: Sequence[str], tuples: int, rows: int) -> DataFrame:
    """At most so many tuples, those with the smallest hashes: (hash, values, rows)."""
    columns = [f"{PREFIX}{at}" for at in range(len(names))]
    bits = max(0, math.floor(math.log2(max(1.0, rows / (_SPREAD * tuples)))))
    mask = F.lit((1 << bits) - 1).cast("long")
    known = source.select(*(cell(source, name).alias(column) for name, column in zip(names, columns, strict=True)))
    return (
        known.withColumn(_PERSON, content_hash([F.col(column) for column in columns]))
        .where(F.col(_PERSON).bitwiseAND(mask) == 0)
        .groupBy(_PERSON, *columns)
        .agg(F.count(F.lit(1)).alias(ROWS))
        .orderBy(_PERSON, *columns)
        .limit(tuples)
    )


def _leaves(levels: list[Levels]) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """Sampled tuples: values → leaves."""

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            person, *values, rows = batch.columns
            leaves = [
                pa.array([own.leaf(value) for value in column.to_pylist()], pa.int32())
                for own, column in zip(levels, values, strict=True)
            ]
            yield pa.RecordBatch.from_arrays([person, *leaves, rows], names=batch.schema.names)

    return encode


def _attack(levels: list[Levels]) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """The sample and some classes → per sampled tuple its rows, the candidates and the smallest class among these.

    Cost: classes times tuples, of which CELLS_AT_ONCE are held at a time.
    """

    def attack(persons: pa.Table, classes: pa.Table) -> pa.Table:
        classes = classes.sort_by(_SIZE)
        sizes = classes[_SIZE].to_numpy()
        labels = [own.numbers(classes[f"{PREFIX}label_{at}"]) for at, own in enumerate(levels)]
        leaves = [persons[f"{PREFIX}{at}"].to_numpy() for at in range(len(levels))]
        candidates, smallest = np.zeros((2, len(persons)), dtype=np.int64)
        step = max(1, CELLS_AT_ONCE // max(1, len(persons)))
        for start in range(0, len(sizes), step):
            block = slice(start, start + step)
            covering = np.ones((len(sizes[block]), len(persons)), dtype=np.bool_)
            for own, numbers, known in zip(levels, labels, leaves, strict=True):
                covering &= own.covering(numbers[block], known)
            candidates += sizes[block] @ covering
            first = sizes[block][covering.argmax(axis=0)]  # the smallest covering class, because sizes ascend
            smallest = np.where((smallest == 0) & covering.any(axis=0), first, smallest)
        met = persons.select([_PERSON, ROWS]).append_column(_CANDIDATES, pa.array(candidates))
        return met.append_column(_SMALLEST, pa.array(smallest, mask=smallest == 0))

    return attack


def _success(met: DataFrame) -> DataFrame:
    """What each chunk of classes holds for a tuple → one row of sums and extremes."""
    persons = met.groupBy(_PERSON).agg(
        F.max(ROWS).alias(ROWS), F.sum(_CANDIDATES).alias(_CANDIDATES), F.min(_SMALLEST).alias(_SMALLEST)
    )
    covered_once = F.isnotnull(_SMALLEST)
    after, known_class = (F.when(covered_once, 1 / F.col(name)) for name in (_CANDIDATES, _SMALLEST))
    return persons.agg(
        F.count(F.lit(1)).alias("tuples"),
        F.coalesce(F.sum(ROWS), F.lit(0)).alias("rows"),
        F.coalesce(F.sum(F.when(covered_once, F.col(ROWS))), F.lit(0)).alias("found"),
        F.coalesce(F.max(1 / F.col(ROWS)), F.lit(0.0)).alias("before_worst"),
        F.coalesce(F.sum(F.col(ROWS) * after), F.lit(0.0)).alias("after"),
        F.coalesce(F.max(after), F.lit(0.0)).alias("after_worst"),
        F.coalesce(F.sum(F.col(ROWS) * known_class), F.lit(0.0)).alias("class"),
        F.coalesce(F.max(known_class), F.lit(0.0)).alias("class_worst"),
        *squares(F.coalesce(after, F.lit(0.0))),
    )
