"""The equivalence classes of a release, as a reader of the table sees them; several verifiers use them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.reading.values import exact, hashed, private, quoted
from anon_spark.columns import PERSONS, ROWS

MARK = private("mark")


def published_classes(
    release: DataFrame, columns: Sequence[str], person: str | None = None, unchanged: Sequence[str] = ()
) -> DataFrame:
    """One row per equivalence class: its published values, ROWS, MARK (the sum of the marks of its rows), and PERSONS
    when a person column is named.

    Guarantee: null is a value, NaN equals NaN, text is compared byte by byte, nothing is concatenated. A row whose
    person is null counts as a row, for no person.
    Cost: one shuffle of partial counts by columns (a second one, by columns and person, with a person); no action.
    """
    keys = [exact(release, name).alias(name) for name in columns]
    names = [F.col(quoted(name)) for name in columns]
    sums = [F.count(F.lit(1)).alias(ROWS), F.sum(MARK).alias(MARK)]
    marked = [*keys, mark(release, unchanged).alias(MARK)]
    if person is None:
        return release.select(*marked).groupBy(*names).agg(*sums)
    visits = release.select(*marked, exact(release, person).alias(PERSONS)).groupBy(*names, F.col(PERSONS)).agg(*sums)
    totals = [F.sum(ROWS).alias(ROWS), F.sum(MARK).alias(MARK), F.count(PERSONS).alias(PERSONS)]
    return visits.groupBy(*names).agg(*totals)


def mark(frame: DataFrame, unchanged: Sequence[str]) -> Column:
    """A 32-bit hash per row: sums of them stay inside a long for 2 · 10^9 rows, also under ANSI."""
    return hashed(frame, unchanged).bitwiseAND(F.lit(0xFFFFFFFF).cast("long"))
