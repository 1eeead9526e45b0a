"""The profile of a table: what each column holds. Private: it contains values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import PREFIX, quoted
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.suggestion import patterns
from anon_spark.suggestion.cells import PLACE, TEXT, Leaf, cells, leaves_of

MOST_LISTED = 20_000  # distinct values of one column that reach the driver
MOST_LISTED_IN_ALL = 400_000
NUMBERS = (T.NumericType,)
DAYS = (T.DateType, T.TimestampType, T.TimestampNTZType)
ROWS, LISTS = PREFIX + "rows", PREFIX + "lists_"  # the last: + place


@dataclass(frozen=True)
class ColumnProfile:
    """What a column, or a field inside one, holds.

    rows: values counted, nulls included (a field inside arrays has more or fewer than the table has rows); unique: values that
    one row alone has; the counts of forms (spaced, whole, …) are of rows; least, greatest: of numbers; first_day, last_day: of
    days; values: every distinct value with its rows, where they are few enough, else empty.
    """

    leaf: Leaf
    rows: int = 0
    nulls: int = 0
    distinct: int = 0
    unique: int = 0
    most: int = 0
    shortest: int = 0
    longest: int = 0
    spaced: int = 0
    whole: int = 0
    number: int = 0
    digits: int = 0
    leading_zero: int = 0
    day: int = 0
    other_day: int = 0
    code: int = 0
    identifying: Mapping[str, int] = field(default_factory=dict)
    least: float | None = field(default=None, repr=False)
    greatest: float | None = field(default=None, repr=False)
    first_day: str | None = field(default=None, repr=False)
    last_day: str | None = field(default=None, repr=False)
    values: Mapping[str, int] = field(default_factory=dict, repr=False)
    null_lists: int = 0  # of an array: rows without one

    @property
    def name(self) -> str:
        return self.leaf.name

    @property
    def filled(self) -> int:
        """Rows with a value."""
        return self.rows - self.nulls

    @property
    def unique_share(self) -> float:
        """The share of rows whose value nobody else has."""
        return self.unique / self.rows if self.rows else 0.0

    @property
    def null_share(self) -> float:
        return self.nulls / self.rows if self.rows else 0.0

    def share(self, count: int) -> float:
        """The share of a count among the rows with a value."""
        return count / self.filled if self.filled else 0.0

    @property
    def is_text(self) -> bool:
        return isinstance(self.leaf.kind, T.StringType)

    @property
    def is_number(self) -> bool:
        """Whether all values are numbers, also where they are stored as text, and no code such as 01067 is among them."""
        if isinstance(self.leaf.kind, NUMBERS):
            return True
        return self.is_text and self.filled > 0 and self.number == self.filled and not self.leading_zero

    @property
    def is_whole(self) -> bool:
        if isinstance(self.leaf.kind, T.IntegralType):
            return True
        return self.is_number and self.whole == self.filled

    @property
    def is_day(self) -> bool:
        if isinstance(self.leaf.kind, DAYS):
            return True
        return self.is_text and self.filled > 0 and self.day == self.filled

    @property
    def is_mixed(self) -> bool:
        """Whether most values are numbers and some are words."""
        return self.is_text and not self.is_number and 0.5 < self.share(self.number) < 1 and not self.leading_zero

    @property
    def is_postal(self) -> bool:
        """Whether all values are texts of as many digits, four to six, as postal codes are."""
        return (
            self.is_text and self.filled > 0 and self.digits == self.filled
            and self.shortest == self.longest and 4 <= self.longest <= 6
        )  # fmt: skip

    @property
    def case_variants(self) -> int:
        """Distinct values that another one equals apart from case and outer spaces; 0 where values are not listed."""
        return len(self.values) - len({value.strip().lower() for value in self.values})

    def frequent(self, number: int = 5) -> list[tuple[str, int]]:
        """The most frequent values with their rows."""
        return sorted(self.values.items(), key=lambda entry: (-entry[1], entry[0]))[:number]


@dataclass(frozen=True)
class TableProfile:
    """The profile of all columns; rows: of the table."""

    rows: int
    columns: Sequence[ColumnProfile]

    def of(self, name: str) -> ColumnProfile:
        return next(column for column in self.columns if column.name == name)


def profile(df: DataFrame) -> TableProfile:
    """The profile of a table. Cost: two reads of it and one shuffle of its distinct values each.

    Guarantee: counts are exact. At most MOST_LISTED_IN_ALL values reach the driver.
    """
    leaves = leaves_of(df.schema)
    if not any(leaf.is_readable for leaf in leaves):
        raise ConfigurationError("The table has no column that can be read: no text, number, date or truth value.")
    counted = cells(df, leaves).groupBy(PLACE, TEXT).agg(F.count(F.lit(1)).alias(ROWS))
    lists = {place: leaf.path[0] for place, leaf in enumerate(leaves) if leaf.is_items}
    without = [F.count(F.when(F.col(quoted(name)).isNull(), 1)).alias(f"{LISTS}{place}") for place, name in lists.items()]
    rows = df.groupBy(F.lit(-1).alias(PLACE)).agg(F.count(F.lit(1)).alias(ROWS), *without)
    summed = counted.groupBy(PLACE).agg(*_sums())
    found = {row[PLACE]: row for row in summed.unionByName(rows, allowMissingColumns=True).collect()}
    if -1 not in found or not found[-1][ROWS]:
        raise DataError("The table is empty: there is nothing to look at.", rows=0)
    columns = [_profile(leaf, found.get(place)) for place, leaf in enumerate(leaves)]
    for place in lists:
        columns[place] = replace(columns[place], null_lists=found[-1][f"{LISTS}{place}"])
    listed = _listed(columns)
    values: dict[int, dict[str, int]] = {place: {} for place in listed}
    if listed:
        texts = counted.where(F.col(PLACE).isin(listed) & F.col(TEXT).isNotNull())
        for row in texts.collect():
            values[row[PLACE]][row[TEXT]] = row[ROWS]
    return TableProfile(
        int(found[-1][ROWS]),
        [replace(column, values=values.get(place, {})) for place, column in enumerate(columns)],
    )


def _listed(columns: Sequence[ColumnProfile]) -> list[int]:
    """The columns whose values are listed: the fewest values first, no column whose values are nearly all unique."""
    small = sorted(
        (column.distinct, place) for place, column in enumerate(columns)
        if 0 < column.distinct <= MOST_LISTED and (column.unique_share < 0.5 or column.distinct <= 50)
    )  # fmt: skip
    places, total = [], 0
    for distinct, place in small:
        total += distinct
        if total <= MOST_LISTED_IN_ALL:
            places.append(place)
    return places


def _sums() -> list[Column]:
    text, rows = F.col(TEXT), F.col(ROWS)

    def of(condition: Column) -> Column:
        return F.coalesce(F.sum(F.when(condition, rows)), F.lit(0))

    def like(pattern: str) -> Column:
        return of(F.trim(text).rlike(pattern))

    number, day = F.trim(text).rlike(patterns.NUMBER), text.rlike(patterns.DAY)
    phone = F.trim(text).rlike(patterns.IDENTIFYING[patterns.PHONE]) & ~F.trim(text).rlike(patterns.SIGNED_PHONE)
    phone = phone & ~F.trim(text).rlike(patterns.OTHER_DAY) & ~day & ~number
    identifying = [
        of(phone if what == patterns.PHONE else F.trim(text).rlike(pattern)).alias(f"{PREFIX}pattern_{place}")
        for place, (what, pattern) in enumerate(patterns.IDENTIFYING.items())
    ]
    return [
        F.sum(rows).alias(ROWS),
        of(text.isNull()).alias("nulls"),
        F.count(text).alias("distinct"),
        F.count(F.when((rows == 1) & text.isNotNull(), 1)).alias("unique"),
        F.max(F.when(text.isNotNull(), rows)).alias("most"),
        F.min(F.length(text)).alias("shortest"),
        F.max(F.length(text)).alias("longest"),
        of(text != F.trim(text)).alias("spaced"),
        like(patterns.WHOLE).alias("whole"),
        like(patterns.NUMBER).alias("number"),
        like(patterns.DIGITS).alias("digits"),
        like(patterns.LEADING_ZERO).alias("leading_zero"),
        of(day).alias("day"),
        like(patterns.OTHER_DAY).alias("other_day"),
        like(patterns.CODE).alias("code"),
        F.min(F.when(number, text.try_cast("double"))).alias("least"),
        F.max(F.when(number, text.try_cast("double"))).alias("greatest"),
        F.min(F.when(day, F.substring(text, 1, 10))).alias("first_day"),
        F.max(F.when(day, F.substring(text, 1, 10))).alias("last_day"),
        *identifying,
    ]


def _profile(leaf: Leaf, row: Row | None) -> ColumnProfile:
    if row is None:
        return ColumnProfile(leaf)
    counts = row.asDict()
    names = ("nulls", "distinct", "unique", "most", "shortest", "longest", "spaced", "whole", "number", "digits",
             "leading_zero", "day", "other_day", "code", "least", "greatest", "first_day", "last_day")
    known = {name: counts[name] for name in names if counts[name] is not None}
    identifying = {
        what: counts[f"{PREFIX}pattern_{place}"]
        for place, what in enumerate(patterns.IDENTIFYING)
        if counts[f"{PREFIX}pattern_{place}"]
    }
    return ColumnProfile(leaf, rows=counts[ROWS], identifying=identifying, **known)
