"""The measure of two releases of one table: candidates, common sensitive values, newcomers."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from anon_spark.auditing.reading.values import private
from anon_spark.columns import ROWS
from anon_spark.engine import gathered, not_broadcast, runs_in_one_task
from anon_spark.model.republication import Republication
from anon_spark.pending import Pending, together
from anon_spark.risk.republication.covering import CLASS, TUPLE
from anon_spark.risk.republication.versions import (
    HOLDER,
    PUBLISHED,
    SEEN,
    SIDE,
    TIMES,
    UNIT,
    Keep,
    Version,
    numbered_values,
    value_columns,
    with_classes,
)

_OLDER, _NEWER = "older", "newer"
_BOTH, _FRESH, _ALIKE = private("both"), private("fresh"), private("alike")


def as_it_is(frame: DataFrame, name: str) -> DataFrame:
    """Keeps nothing: what is read twice is computed twice."""
    return frame


def republication(
    older: Version,
    newer: Version,
    person: str | None,
    sensitive: Sequence[str],
    read: Sequence[str],
    k: int,
    nulls: str = "value",
    keep: Keep = as_it_is,
) -> Republication:
    """What both releases tell together; see `Republication`.

    person: the column of persons; without it people are rows, matched by their content in the columns `read`. A person with
    several rows (full domain) has the classes of all of them. nulls: what the runs did with a null quasi-identifier. keep: writes
    a frame that is read several times.
    Guarantee: people are alike iff the sets of their classes are equal in both releases. Values are read as the audit reads them;
    rows that a policy drops have no class. The same numbers for any partitions, up to collisions of 64-bit hashes.
    Cost: of either table and release two scans; shuffles of distinct tuples, of people, of pairs of tuple and covering class, and
    of pairs of class and sensitive value. With `keep` four writes and one job; one row reaches the driver.
    """
    covered = keep(older.covered(nulls), "republication-covered"), newer.covered(nulls)
    units = older.units(person, read), newer.units(person, read)
    values = keep(numbered_values(older, newer, sensitive), "republication-values") if sensitive else None
    held = []
    for side, (version, which) in enumerate(((older, _OLDER), (newer, _NEWER))):
        several = person is not None and version.levels is not None
        of_side = None if values is None else values.where(F.col(SIDE) == side).drop(SIDE)
        classes = with_classes(units[side], covered[side], several, of_side, len(sensitive))
        held.append(keep(classes, f"republication-{which}-classes"))
    pairs = _pairs([_seen(*side, person is not None) for side in zip(units, held, (older, newer), strict=True)])
    sums = _sums(_with_values(pairs, held, len(sensitive)), k, len(sensitive))
    counted = together(
        Pending.of(sums, lambda rows: rows[0]),
        Pending.of(_unexplained(older, covered[0]), lambda rows: int(rows[0][0])),
    )
    return counted.then(lambda found: _numbers(found[0], found[1], k, person is None, sensitive)).get()


def _numbers(sums: Row, unexplained: int, k: int, by_content: bool, sensitive: Sequence[str]) -> Republication:
    return Republication(
        k=k,
        by_content=by_content,
        compared=sums["compared"],
        hidden=sums["hidden"],
        least_candidates=sums["least"],
        few_candidates=sums["few"],
        one_value={name: sums[f"one_{at}"] for at, name in enumerate(sensitive)},
        newcomers=sums["newcomers"],
        hidden_newcomers=sums["hidden_newcomers"],
        least_newcomers=sums["least_newcomers"],
        few_newcomers=sums["few_newcomers"],
        unexplained=unexplained,
    )


# -- steps ----------------------------------------------------------------------------------------------------------


def _seen(units: DataFrame, held: DataFrame, version: Version, persons: bool) -> DataFrame:
    """UNIT, SEEN (null: no class) and TIMES, each unit once. Cost: one join of people and holders of classes."""
    sets = not_broadcast(held.select(HOLDER, SEEN))
    if persons and version.levels is not None:
        known = gathered(units, runs_in_one_task()).select(UNIT, TIMES).distinct()
        joined = known.join(sets, F.col(UNIT) == F.col(HOLDER), "left")
    else:
        joined = units.join(sets, F.col(TUPLE) == F.col(HOLDER), "left")
    return joined.select(UNIT, SEEN, TIMES)


def _pairs(sides: Sequence[DataFrame]) -> DataFrame:
    """People by the sets of their classes in either release: _OLDER, _NEWER, _BOTH of both tables and _FRESH of the newer only.

    _ALIKE: how many of the newer only have the same classes there.
    """
    nothing, zero = F.lit(None).cast("long"), F.lit(0).cast("long")
    older, newer = sides
    parts = [
        older.select(UNIT, F.col(SEEN).alias(_OLDER), nothing.alias(_NEWER), F.col(TIMES).alias(_BOTH), zero.alias(_FRESH)),
        newer.select(UNIT, nothing.alias(_OLDER), F.col(SEEN).alias(_NEWER), zero.alias(_BOTH), F.col(TIMES).alias(_FRESH)),
    ]
    small = runs_in_one_task()
    people = gathered(parts[0].unionByName(parts[1]), small).groupBy(UNIT).agg(
        F.max(_OLDER).alias(_OLDER), F.max(_NEWER).alias(_NEWER), F.sum(_BOTH).alias(_BOTH), F.sum(_FRESH).alias(_FRESH)
    )
    stayed = F.least(_BOTH, _FRESH)
    pairs = people.select(_OLDER, _NEWER, stayed.alias(_BOTH), (F.col(_FRESH) - stayed).alias(_FRESH)).groupBy(_OLDER, _NEWER)
    summed = pairs.agg(F.sum(_BOTH).alias(_BOTH), F.sum(_FRESH).alias(_FRESH))
    return summed.withColumn(_ALIKE, F.sum(_FRESH).over(Window.partitionBy(_NEWER)))


def _with_values(pairs: DataFrame, held: Sequence[DataFrame], sensitive: int) -> DataFrame:
    """Append for each sensitive column how many values both sets of classes show. Cost: two joins by set."""
    names = value_columns(sensitive)
    if not names:
        return pairs
    for side, frame in zip((_OLDER, _NEWER), held, strict=True):
        sets = frame.groupBy(SEEN).agg(*(F.first(name).alias(f"{name}_{side}") for name in names))
        known = not_broadcast(sets.withColumnRenamed(SEEN, f"{SEEN}_{side}"))
        pairs = gathered(pairs.join(known, F.col(side) == F.col(f"{SEEN}_{side}"), "left"), runs_in_one_task())
    common = [F.size(F.array_intersect(f"{name}_{_OLDER}", f"{name}_{_NEWER}")).alias(name) for name in names]
    return pairs.select(_OLDER, _NEWER, _BOTH, _FRESH, _ALIKE, *common)


def _sums(pairs: DataFrame, k: int, sensitive: int) -> DataFrame:
    """One row of totals. A literal k is no value of a record."""
    arrived = F.isnotnull(_NEWER)
    seen = F.isnotnull(_OLDER) & arrived
    here, fresh = F.col(_BOTH) > 0, F.col(_FRESH) > 0
    ones = [_total(seen & (F.col(name) == 1), _BOTH).alias(f"one_{at}") for at, name in enumerate(value_columns(sensitive))]
    return pairs.agg(
        _total(seen, _BOTH).alias("compared"),
        _total(~seen, _BOTH).alias("hidden"),
        F.min(F.when(seen & here, F.col(_BOTH))).alias("least"),
        _total(seen & (F.col(_BOTH) < k), _BOTH).alias("few"),
        *ones,
        _total(arrived, _FRESH).alias("newcomers"),
        _total(~arrived, _FRESH).alias("hidden_newcomers"),
        F.min(F.when(arrived & fresh, F.col(_ALIKE))).alias("least_newcomers"),
        _total(arrived & (F.col(_ALIKE) < k), _FRESH).alias("few_newcomers"),
    )


def _total(condition: Column, name: str) -> Column:
    return F.coalesce(F.sum(F.when(condition, F.col(name))), F.lit(0)).cast("long")


def _unexplained(version: Version, covered: DataFrame) -> DataFrame:
    """Published rows in classes that do not follow from the source: full domain, other counts; local, too few rows below."""
    below = covered.groupBy(CLASS).agg(F.sum(ROWS).alias(ROWS))
    joined = version.classes().select(CLASS, PUBLISHED).join(not_broadcast(below), CLASS, "left")
    there = F.coalesce(F.col(ROWS), F.lit(0))
    wrong = there < F.col(PUBLISHED) if version.levels is None else there != F.col(PUBLISHED)
    return joined.agg(_total(wrong, PUBLISHED).alias("unexplained"))
