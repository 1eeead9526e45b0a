"""Calendar days and the units above them: week, or month, quarter, year, decade, century."""

from __future__ import annotations

from datetime import date, timedelta

from anon_spark.errors import HierarchyError
from anon_spark.model.hierarchy.coding import ROOT, categorical, encode
from anon_spark.model.hierarchy.hierarchy import Hierarchy
from anon_spark.model.hierarchy.rules import DateRule

MAX_DAYS = 1_000_000


def build_dates(rule: DateRule) -> Hierarchy:
    """One leaf per day from start to stop. Units cut by the domain keep their name; their weight counts days inside."""
    start, stop = date.fromisoformat(str(rule.start)), date.fromisoformat(str(rule.stop))
    count = (stop - start).days + 1
    if count > MAX_DAYS:
        raise HierarchyError(f"date: {count:,} days are more than {MAX_DAYS:,}. Give a shorter domain.", leaves=count)
    days = [start + timedelta(days=step) for step in range(count)]
    keys = [day.isoformat() for day in days]
    columns = [keys, *([label(unit, day) for day in days] for unit in rule.units), [ROOT] * count]
    codes, labels = encode(columns)
    return categorical("date", keys, codes, labels, rule=rule)


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
