"""Calendar days and the units above them: week, or month, quarter, year, decade, century."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, Self

from anon_spark.errors import HierarchyError, did_you_mean
from anon_spark.model.hierarchy.coding import ROOT, categorical, encode
from anon_spark.model.hierarchy.table import LevelTable
from anon_spark.model.hierarchy.values import calendar_day

UNITS = ("week", "month", "quarter", "year", "decade", "century")  # finest first; a week nests in none of the others
MAX_DAYS = 1_000_000


@dataclass(frozen=True)
class Dates:
    """Days, then coarser and coarser units. Without start and stop the domain is still open."""

    units: tuple[str, ...]
    start: str | date | None = None
    stop: str | date | None = None

    def __post_init__(self) -> None:
        units = tuple(self.units)
        for unit in units:
            if unit not in UNITS:
                hint = did_you_mean(str(unit), UNITS)
                raise HierarchyError(f"date: unknown unit. Use some of {', '.join(UNITS)}.{hint}")
        if not units or ("week" in units and len(units) > 1):
            raise HierarchyError("date: give at least one unit; a week lies in no month or year and must stand alone.")
        ranks = [UNITS.index(unit) for unit in units]
        if any(above <= below for below, above in pairwise(ranks)):
            raise HierarchyError(f"date: units must become coarser and coarser, in the order {', '.join(UNITS[1:])}.")
        if (self.start is None) != (self.stop is None):
            raise HierarchyError("date: give both start and stop, or neither.")
        days = [None if day is None else calendar_day(day) for day in (self.start, self.stop)]
        if self.start is not None and (None in days or str(days[1]) < str(days[0])):
            raise HierarchyError("date: start and stop must be dates like 2020-03-01, and stop not before start.")
        object.__setattr__(self, "units", units)
        object.__setattr__(self, "start", days[0])
        object.__setattr__(self, "stop", days[1])

    @property
    def complete(self) -> bool:
        """Whether the domain is fixed."""
        return self.start is not None

    def fitted(self, values: Iterable[str]) -> Self:
        """The dates with a domain: an open one covers the whole coarsest units from the first to the last value."""
        if self.complete:
            return self
        days = [day for day in map(calendar_day, values) if day is not None]
        if not days:
            raise HierarchyError("date: no value is a date like 2020-03-01. Check the column, or give start and stop.")
        start, stop = whole_units(self.units[-1], date.fromisoformat(min(days)), date.fromisoformat(max(days)))
        return replace(self, start=start, stop=stop)

    def table(self, values: Iterable[str]) -> LevelTable:
        """One leaf per day from start to stop, whatever values occur.

        Units cut by the domain keep their name; their weight counts days inside.
        """
        start, stop = date.fromisoformat(str(self.start)), date.fromisoformat(str(self.stop))
        count = (stop - start).days + 1
        if count > MAX_DAYS:
            raise HierarchyError(
                f"date: {count:,} days are more than {MAX_DAYS:,}. Give a shorter domain.", leaves=count
            )
        days = [start + timedelta(days=step) for step in range(count)]
        keys = [day.isoformat() for day in days]
        columns = [keys, *([label(unit, day) for day in days] for unit in self.units), [ROOT] * count]
        codes, labels = encode(columns)
        return categorical("date", keys, codes, labels)

    def to_dict(self) -> dict[str, Any]:
        """The dates as plain JSON values."""
        return {"rule": "date", "units": list(self.units), "start": self.start, "stop": self.stop}


def label(unit: str, day: date) -> str:
    """Name of the unit a day lies in: 2020-W10, 2020-03, 2020-Q1, 2020, 2020s, 1900-1999."""
    if unit == "week":
        year, week, _ = day.isocalendar()  # weeks begin on Monday and belong to the year of their Thursday
        return f"{year:04d}-W{week:02d}"
    if unit == "month":
        return f"{day.year:04d}-{day.month:02d}"
    if unit == "quarter":
        return f"{day.year:04d}-Q{(day.month + 2) // 3}"
    if unit == "year":
        return f"{day.year:04d}"
    if unit == "decade":
        return f"{day.year // 10 * 10:04d}s"
    century = day.year // 100 * 100
    return f"{century:04d}-{century + 99:04d}"


def whole_units(unit: str, first: date, last: date) -> tuple[date, date]:
    """First day of the unit around `first`, last day of the unit around `last`, within the years 1 to 9999."""
    if unit == "week":
        start = first.toordinal() - first.weekday()
        stop = last.toordinal() - last.weekday() + 6
        return date.fromordinal(max(start, 1)), date.fromordinal(min(stop, date.max.toordinal()))
    months = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}[unit]
    start = (first.year * 12 + first.month - 1) // months * months
    stop = (last.year * 12 + last.month - 1) // months * months + months  # the month after the last one
    begin = date.min if start < 12 else date(start // 12, start % 12 + 1, 1)
    end = date.max if stop >= 120_000 else date(stop // 12, stop % 12 + 1, 1) - timedelta(days=1)
    return begin, end
