"""Uniqueness: how many rows are alone on some columns, of one table or before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.reading.values import content_hash, exact
from anon_spark.columns import PREFIX, ROWS
from anon_spark.pending import Pending

_SET, _HASH, _FIRST, _LAST = (PREFIX + name for name in ("set", "hash", "first", "last"))


@dataclass(frozen=True)
class Uniqueness:
    """Rows of a table, distinct tuples of its quasi-identifiers, and rows whose tuple nobody shares."""

    rows: int
    tuples: int
    unique: int

    @property
    def share(self) -> float:
        """Share of rows that are unique; 0 for an empty table."""
        return self.unique / self.rows if self.rows else 0.0

    @property
    def expected_success(self) -> float:
        """Chance to pick the right row for a random person whose quasi-identifiers are known: tuples over rows."""
        return self.tuples / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class UniquenessRisk:
    """Uniqueness on the raw quasi-identifiers of the source and on the published ones of the release."""

    before: Uniqueness
    after: Uniqueness


def uniqueness(source: DataFrame, release: DataFrame, columns: Sequence[str]) -> UniquenessRisk:
    """Measure uniqueness before and after.

    Null is a value. Cost: one job, one scan and one groupBy with map-side counts per table; two rows reach the driver.
    (The audit's truthfulness check counts the same of the source on its way: `Uniqueness(account.source,
    facts["source_tuples"], facts["source_unique"])` saves this job.)
    """
    side = PREFIX + "side"
    measured = {
        row[side]: Uniqueness(row["rows"], row["tuples"], row["unique"])
        for row in _counted(source, columns)
        .withColumn(side, F.lit("before"))
        .unionByName(_counted(release, columns).withColumn(side, F.lit("after")))
        .collect()
    }
    return UniquenessRisk(measured["before"], measured["after"])


def unique_rows(
    frame: DataFrame, column_sets: Sequence[Sequence[str]], person: str | None = None
) -> list[Uniqueness]:
    """Uniqueness of one table on each of several sets of columns.

    person: a column by which a row is also unique where all rows that share its values are one person's.
    Null is a value. Guarantee: up to collisions of a 64-bit hash, which can only hide that two rows differ. Cost: one job, one
    scan and one groupBy with map-side counts for all sets together; a row per set reaches the driver; none without sets.
    """
    return unique_rows_to_be(frame, column_sets, person).get()


def unique_rows_to_be(
    frame: DataFrame, column_sets: Sequence[Sequence[str]], person: str | None = None
) -> Pending[list[Uniqueness]]:
    """As `unique_rows`, its counts not collected yet."""
    if not column_sets:
        return Pending.known([])
    hashes = (content_hash([exact(frame, name) for name in names]) for names in column_sets)
    sets = F.array(*(F.struct(F.lit(at).alias(_SET), hashed.alias(_HASH)) for at, hashed in enumerate(hashes)))
    who = F.lit(0) if person is None else content_hash([exact(frame, person)])
    groups = frame.select(who.alias(_FIRST), F.inline_outer(sets)).groupBy(_SET, _HASH).agg(
        F.count(F.lit(1)).alias(ROWS), F.min(_FIRST).alias(_FIRST), F.max(_FIRST).alias(_LAST)
    )
    alone = F.col(ROWS) == 1 if person is None else F.col(_FIRST) == F.col(_LAST)
    counted = groups.groupBy(_SET).agg(
        F.sum(ROWS).alias("rows"),
        F.count(F.lit(1)).alias("tuples"),
        F.coalesce(F.sum(F.when(alone, F.col(ROWS))), F.lit(0)).alias("unique"),
    )

    def measured(rows: Sequence[Row]) -> list[Uniqueness]:
        by_set = {row[_SET]: Uniqueness(row["rows"], row["tuples"], row["unique"]) for row in rows}
        return [by_set.get(at, Uniqueness(0, 0, 0)) for at in range(len(column_sets))]

    return Pending.of(counted, measured)


def _counted(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    keys = [exact(frame, name).alias(f"{PREFIX}{at}") for at, name in enumerate(columns)]
    tuples = frame.select(*keys).groupBy(*(f"{PREFIX}{at}" for at in range(len(keys)))).agg(F.count(F.lit(1)).alias(ROWS))
    return tuples.agg(
        F.coalesce(F.sum(ROWS), F.lit(0)).alias("rows"),
        F.count(F.lit(1)).alias("tuples"),
        F.count(F.when(F.col(ROWS) == 1, F.lit(1))).alias("unique"),
    )
