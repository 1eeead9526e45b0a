"""Frequent values of columns that are published as they are: rows before and after, for the pictures of a report.

A value of fewer than k rows (persons, where they may have several rows) of the release never reaches the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType, VariantType

from anon_spark.auditing.reading.values import content_hash, exact, quoted
from anon_spark.columns import PREFIX
from anon_spark.engine import gathered
from anon_spark.model.facts import LabelCount
from anon_spark.pending import Pending

_COLUMN, _VALUE, _BEFORE, _AFTER, _WHO, _PLACE = (
    PREFIX + name for name in ("column", "value", "before", "after", "who", "place")
)
UNCOUNTED = (ArrayType, BinaryType, MapType, StructType, VariantType)


def frequent_values_to_be(
    source: DataFrame,
    release: DataFrame,
    columns: Sequence[str],
    k: int,
    most: int,
    person: str | None = None,
    only_after: Sequence[str] = (),
    small: bool = False,
) -> Pending[Mapping[str, list[LabelCount]]]:
    """The most frequent values of each column as texts, the most frequent first; columns that are no texts or numbers lack.

    release: with the column `person` if persons may have several rows. only_after: columns of the release that the source has in
    another form; their rows before are 0. small: both tables are in one task.
    Cost: one scan of both tables and one groupBy of a value per cell; at most `most` rows per column reach the driver.
    """
    named = [name for name in (*columns, *only_after) if not isinstance(release.schema[name].dataType, UNCOUNTED)]
    if not named:
        return Pending.known({})
    sides = [_cells(release, named, named, F.lit(1), person)]
    there = [name for name in named if name not in only_after]
    if there:
        sides.append(_cells(source, there, named, F.lit(0), person))
    cells = gathered(sides[0] if len(sides) == 1 else sides[0].unionByName(sides[1]), small)
    after = F.count_if(F.col(_AFTER) == 1)
    people = after if person is None else F.count_distinct(F.when(F.col(_AFTER) == 1, F.col(_WHO)))
    counted = cells.groupBy(_COLUMN, _VALUE).agg(
        F.count_if(F.col(_AFTER) == 0).alias(_BEFORE), after.alias(_AFTER), people.alias(_WHO)
    )
    by_rows = Window.partitionBy(_COLUMN).orderBy(F.desc(_AFTER), F.asc_nulls_first(_VALUE))
    frequent = counted.where(F.col(_WHO) >= k).withColumn(_PLACE, F.row_number().over(by_rows)).where(F.col(_PLACE) <= most)

    def found(rows: Sequence[Row]) -> Mapping[str, list[LabelCount]]:
        ordered = sorted(rows, key=lambda row: (row[_COLUMN], row[_PLACE]))
        return {
            name: [LabelCount(row[_VALUE], row[_BEFORE], row[_AFTER]) for row in ordered if row[_COLUMN] == at]
            for at, name in enumerate(named)
        }

    return Pending.of(frequent.select(_COLUMN, _VALUE, _BEFORE, _AFTER, _PLACE), found)


def _cells(frame: DataFrame, columns: Sequence[str], named: Sequence[str], side: Column, person: str | None) -> DataFrame:
    """A row for every value of the columns, with the number of its column."""
    values = [
        F.struct(F.lit(named.index(name)).alias(_COLUMN), F.col(quoted(name)).cast("string").alias(_VALUE)) for name in columns
    ]
    who = F.lit(0).cast("bigint") if person is None else content_hash([exact(frame, person)])
    return frame.select(side.alias(_AFTER), who.alias(_WHO), F.inline_outer(F.array(*values)))
