"""One release and the table behind it, as an attacker with two releases reads them: tuples, classes and who is in which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from anon_spark.auditing.reading.extents import Extents
from anon_spark.auditing.reading.recode import KEPT, STATUS, Climb, with_codes, with_labels, with_scope
from anon_spark.auditing.reading.sensitive import counted_value
from anon_spark.auditing.reading.values import content_hash, exact, hashed, private, require_columns
from anon_spark.columns import ROWS
from anon_spark.engine import gathered, not_broadcast, runs_in_one_task
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.risk.look_up.classes import label_columns
from anon_spark.risk.republication.covering import CLASS, TUPLE, covering_classes, leaf_columns

HOLDER, SEEN = private("holder"), private("seen")  # who holds classes: a tuple or a person; a hash of the set of its classes
PUBLISHED = private("published_rows")
UNIT, TIMES = private("unit"), private("times")  # a person, or the content of a row; how many rows have it

_RAW, _VALUE, _CODE = private("raw_"), private("value_"), private("code_")  # + position
SIDE = private("side")

Keep = Callable[[DataFrame, str], DataFrame]  # writes a frame that is read several times, and reads it back


@dataclass(frozen=True)
class Version:
    """A release with labels, and the rows that it was made from.

    release: quasi-identifiers as texts; hierarchies: complete, by quasi-identifier; levels: of a full-domain recoding, None for
    a local one; extents: columns that show the ends of their classes, in the release as texts; rows: how many the source has,
    about.
    """

    source: DataFrame
    release: DataFrame
    hierarchies: Mapping[str, Hierarchy]
    rows: int
    levels: Mapping[str, int] | None = None
    extents: Extents = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return list(self.hierarchies)

    def classes(self) -> DataFrame:
        """CLASS, its labels (`label_columns`) and its rows, PUBLISHED. Cost: one shuffle of partial counts."""
        labels = label_columns(len(self.names))
        counted = self._shown().groupBy(*labels).agg(F.count(F.lit(1)).alias(PUBLISHED))
        return counted.withColumn(CLASS, _class_hash(labels))

    def covered(self, nulls: str) -> DataFrame:
        """TUPLE, CLASS and ROWS for every tuple of the source that the run worked on, and every class that covers it.

        Full domain: the class is that of the tuple's labels on the levels, if it is published. Cost: see `covering_classes`.
        """
        tuples, raw = self._tuples(), [f"{_RAW}{at}" for at in range(len(self.names))]
        if self.levels is not None:
            labels = label_columns(len(raw))
            climbs = [
                Climb(raw[at], labels[at], hierarchy, int(self.levels[name]))
                for at, (name, hierarchy) in enumerate(self.hierarchies.items())
            ]
            kept = with_scope(with_labels(tuples, climbs), nulls).where(F.col(STATUS) == KEPT)
            shown = not_broadcast(self.classes().select(CLASS))
            return kept.select(TUPLE, _class_hash(labels).alias(CLASS), ROWS).join(shown, CLASS, "left_semi")
        leaves = leaf_columns(len(raw))
        climbs = [Climb(raw[at], leaves[at], hierarchy, 0) for at, hierarchy in enumerate(self.hierarchies.values())]
        kept = with_scope(with_codes(tuples, climbs), nulls).where(F.col(STATUS) == KEPT)
        codes = [  # below 0: null, which is one more leaf
            F.when(F.col(leaf) < 0, F.lit(len(hierarchy.keys))).otherwise(F.col(leaf)).alias(leaf)
            for leaf, hierarchy in zip(leaves, self.hierarchies.values(), strict=True)
        ]
        known = kept.select(TUPLE, *codes, ROWS)
        return covering_classes(known, self.classes(), self.hierarchies, list(self.extents), self.rows)

    def units(self, person: str | None, read: Sequence[str]) -> DataFrame:
        """UNIT, its TUPLE and TIMES: every person with each of its tuples, or the contents of rows and how often they are there.

        read: the columns that make the content. A row without a person is nobody's.
        """
        known = hashed(self.source, self.names).alias(TUPLE)
        if person is None:
            rows = self.source.select(hashed(self.source, read).alias(UNIT), known)
        else:
            rows = self.source.select(exact(self.source, person).alias(UNIT), known).where(F.isnotnull(UNIT))
        grouped = gathered(rows, runs_in_one_task()).groupBy(UNIT, TUPLE)
        return grouped.agg((F.lit(1).cast("long") if person is not None else F.count(F.lit(1))).alias(TIMES))

    def values(self, sensitive: Sequence[str], side: int) -> DataFrame:
        """CLASS with the sensitive values of its rows, each once (`value_columns`), and the number of this release."""
        return self._shown(
            [counted_value(self.release, name).alias(f"{_VALUE}{at}") for at, name in enumerate(sensitive)]
        ).select(
            F.lit(side).alias(SIDE), _class_hash(label_columns(len(self.names))).alias(CLASS),
            *(f"{_VALUE}{at}" for at in range(len(sensitive))),
        )  # fmt: skip

    def _tuples(self) -> DataFrame:
        """TUPLE, its raw values, ROWS and STATUS. Cost: one shuffle of distinct tuples."""
        require_columns(self.source, self.names, "source")
        raw = [exact(self.source, name).alias(f"{_RAW}{at}") for at, name in enumerate(self.names)]
        rows = gathered(self.source.select(hashed(self.source, self.names).alias(TUPLE), *raw), runs_in_one_task())
        counted = rows.groupBy(TUPLE, *(f"{_RAW}{at}" for at in range(len(raw)))).agg(F.count(F.lit(1)).alias(ROWS))
        return counted.withColumn(STATUS, F.lit(KEPT))

    def _shown(self, more: Sequence[Column] = ()) -> DataFrame:
        require_columns(self.release, self.names, "release")
        labels = zip(self.names, label_columns(len(self.names)), strict=True)
        shown = [exact(self.release, name).cast("string").alias(label) for name, label in labels]
        return gathered(self.release.select(*shown, *more), runs_in_one_task())


def _class_hash(labels: Sequence[str]) -> Column:
    return content_hash([F.col(label) for label in labels])


# -- sensitive values ---------------------------------------------------------------------------------------------------


def value_columns(count: int) -> list[str]:
    """The names of the sets of sensitive values, by position of the column: each an array of numbers, ascending."""
    return [private(f"values_{at}") for at in range(count)]


def numbered_values(older: Version, newer: Version, sensitive: Sequence[str]) -> DataFrame:
    """SIDE, CLASS and `value_columns` of both releases (0: the older one); equal values have the same number.

    Null is a value, one and the same with NaN; 0.0 is -0.0; texts that their collation holds equal are one value.
    Cost: for each column one shuffle of distinct pairs of class and value.
    """
    sides = [version.values(sensitive, side) for side, version in enumerate((older, newer))]
    both = sides[0].unionByName(sides[1])
    sets = []
    for at, column in enumerate(value_columns(len(sensitive))):
        value = f"{_VALUE}{at}"
        pairs = gathered(both, runs_in_one_task()).select(SIDE, CLASS, value).distinct()
        # of equal values that are written differently the least hash is the number of all
        number = F.min(hashed(pairs, [value])).over(Window.partitionBy(value))
        numbered = pairs.select(SIDE, CLASS, number.alias(_CODE))
        sets.append(numbered.groupBy(SIDE, CLASS).agg(F.sort_array(F.collect_set(_CODE)).alias(column)))
    return reduce(lambda one, other: one.join(not_broadcast(other), [SIDE, CLASS]), sets)


# -- classes of a person ------------------------------------------------------------------------------------------------


def with_classes(units: DataFrame, covered: DataFrame, several: bool, values: DataFrame | None, sensitive: int) -> DataFrame:
    """HOLDER, SEEN and `value_columns`: a tuple, or a person with several rows, and the set of its classes.

    values: the sensitive values of each class, if there are sensitive columns.
    Guarantee: equal sets have the same SEEN, different ones differ, up to a 64-bit hash. Cost: shuffles of pairs of holder and
    class.
    """
    held, small = covered.select(F.col(TUPLE).alias(HOLDER), CLASS), runs_in_one_task()
    if several:
        of_people = gathered(units.join(not_broadcast(covered.select(TUPLE, CLASS)), TUPLE), small)
        held = of_people.select(F.col(UNIT).alias(HOLDER), CLASS).distinct()
    names = value_columns(sensitive)
    if values is not None:  # after a join Spark forgets that it was one partition
        held = gathered(held, small).join(not_broadcast(values), CLASS, "left")
    sets = [F.array_distinct(F.flatten(F.collect_list(name))).alias(name) for name in names]
    return gathered(held, small).groupBy(HOLDER).agg(F.bit_xor(CLASS).alias(SEEN), *sets)
