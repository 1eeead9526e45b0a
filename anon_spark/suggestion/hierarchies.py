"""A hierarchy for a column, from its profile: intervals, dates, a mask, value and '*', or a level table to edit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from anon_spark.config import HierarchySpec
from anon_spark.io.hierarchies import load_hierarchy
from anon_spark.model.hierarchy import Hierarchy, Rule, canonical_number
from anon_spark.model.hierarchy.builders import frequency_rows, prefix_rows
from anon_spark.suggestion.profile import ColumnProfile

FEW_VALUES = 30  # up to which value and '*' is enough
DATE_UNITS = ("month", "year", "decade")
WHOLE_RANGE = 100_000  # numbers of a domain, above which intervals begin with ranges
CODES = 0.9  # share of values that are codes, from which they are grouped by their first characters
RARE_ROWS, RARE_SHARE, COMMON_SHARE = 10, 0.001, 0.01
ANY = "*"

Rows = Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class SuggestedHierarchy:
    """A hierarchy as a job file names it; `rows`: its level table, where it needs one. why: for the job file's comment."""

    key: Mapping[str, Any]
    why: str
    rows: Rows | None = None

    def build(self) -> Hierarchy | Rule:
        """The hierarchy itself; a rule where the values complete it."""
        if self.rows is not None:
            return Hierarchy.from_levels(self.rows)
        return load_hierarchy(HierarchySpec.model_validate(dict(self.key)))


def suggested_hierarchy(column: ColumnProfile) -> SuggestedHierarchy | None:
    """A hierarchy for a quasi-identifier; None where none is in sight: too many words."""
    if column.is_day:
        return SuggestedHierarchy({"date": list(DATE_UNITS)}, "the day, then month, year and decade")
    if column.is_postal:
        mask = {"keep": "left", "length": column.longest}
        return SuggestedHierarchy({"mask": mask}, f"digits are masked from the right: {_masked(column.longest)}")
    if column.is_number and column.least is not None and column.greatest is not None:
        return _of_numbers(column)
    if column.distinct <= FEW_VALUES:
        return SuggestedHierarchy({"top": True}, f"{column.distinct} values: each as it is, or *")
    if not column.values:
        return None
    if column.is_mixed:
        return _level_table(_mixed_rows(column), "numbers in ranges, words beside them")
    if column.share(column.other_day) >= CODES:
        return _level_table(_day_rows(column.values), "the day, then year and decade")
    if column.share(column.code) >= CODES:
        lengths = [length for length in (3, 1) if length < column.longest]
        return _level_table(prefix_rows(column.values, lengths), "codes by their first characters")
    return _level_table(_frequency_rows(column), "rare values together; better groups are yours to make")


def _level_table(rows: Rows, why: str) -> SuggestedHierarchy:
    return SuggestedHierarchy({}, f"{why}; edit the file to group them as readers need it", rows)


def _masked(length: int) -> str:
    shown = "13051"[:length].ljust(length, "7")
    return f"{shown} → {shown[:-1]}* → {shown[:-2]}** …"


# -- numbers ----------------------------------------------------------------------------------------------------------


def _of_numbers(column: ColumnProfile) -> SuggestedHierarchy | None:
    assert column.least is not None and column.greatest is not None
    least, greatest = column.least, column.greatest
    if not math.isfinite(least) or not math.isfinite(greatest) or least == greatest:
        return SuggestedHierarchy({"top": True}, "one number: as it is, or *") if least == greatest else None
    if column.is_whole and column.distinct <= 12 and greatest - least < 100:
        return SuggestedHierarchy({"top": True}, f"{column.distinct} numbers: each as it is, or *")
    span = greatest - least
    if column.is_whole and span <= WHOLE_RANGE:
        first = 5 if 20 <= span <= 200 else max(2, int(_nice(span / 20)))
        widths = _widths(first, span)
        start, stop = _rounded(int(least), int(greatest), widths[min(1, len(widths) - 1)])
        numbers = {"from": start, "to": stop, "widths": widths}
        return SuggestedHierarchy({"intervals": numbers}, "the number, then wider and wider ranges")
    first_bin = _nice(span / 100)
    widths_of_bins = _widths(first_bin, span)
    step = Decimal(str(widths_of_bins[min(2, len(widths_of_bins) - 1)]))
    low = (Decimal(str(least)) / step).to_integral_value("ROUND_FLOOR") * step
    high = ((Decimal(str(greatest)) / step).to_integral_value("ROUND_FLOOR") + 1) * step
    low = Decimal(0) if 0 <= least <= greatest / 2 else low
    bins = {"from": _plain(low), "to": _plain(high), "widths": [_plain(Decimal(str(width))) for width in widths_of_bins]}
    return SuggestedHierarchy({"intervals": {**bins, "exact": False}}, "ranges, wider and wider")


def _nice(number: float) -> float:
    """The greatest of 1, 2 or 5 times a power of ten that is not above a number."""
    power = 10.0 ** math.floor(math.log10(number)) if number > 0 else 1.0
    factor = next(factor for factor in (5, 2, 1) if factor * power <= number * (1 + 1e-9) or factor == 1)
    nice = factor * power
    return int(nice) if nice >= 1 else float(f"{nice:.0e}")


def _widths(first: float, span: float) -> list[Any]:
    """Widths that nest, from the first up to about half of the span: doubled, over a long way in steps of 5 and 2."""
    factors = [2] if span / first <= 30 else [5, 2] if str(first).strip("0.").startswith(("1", "2")) else [2, 5]
    widths, exact = [first], Decimal(str(first))
    while len(widths) < 6:
        exact *= factors[(len(widths) - 1) % len(factors)]
        if float(exact) > span * 0.6:
            break
        widths.append(_plain(exact))
    return widths


def _rounded(least: int, greatest: int, width: int) -> tuple[int, int]:
    """Ends rounded outwards to whole ranges, so that they tell no value; from 0 on where the numbers begin near it."""
    start = 0 if 0 <= least <= greatest / 2 else least // width * width
    return start, start + ((greatest - start) // width + 1) * width - 1


def _plain(number: Decimal) -> Any:
    return int(number) if number == number.to_integral_value() else float(number)


# -- level tables -----------------------------------------------------------------------------------------------------


def _mixed_rows(column: ColumnProfile) -> Rows:
    """Numbers in ranges; words stand for themselves up to '*'."""
    numbers = {value: Decimal(text) for value in column.values if (text := canonical_number(value)) is not None}
    span = float(max(numbers.values()) - min(numbers.values()))
    width = Decimal(str(5 if 20 <= span <= 200 else max(1, _nice(max(span, 1) / 20))))
    rows: list[tuple[str, ...]] = []
    for value in sorted(column.values):
        if value not in numbers:
            rows.append((value, value, value, ANY))
            continue
        labels = []
        for wide in (width, width * 2):
            start = (numbers[value] / wide).to_integral_value("ROUND_FLOOR") * wide
            labels.append(f"[{_plain(start)}, {_plain(start + wide)})")
        rows.append((value, *labels, ANY))
    return rows


def _day_rows(values: Mapping[str, int]) -> Rows:
    """Dates such as 31.12.1980: their last four digits are the year, whatever the order of day and month is."""
    rows = []
    for value in sorted(values):
        year = value.strip()[-4:]
        if not year.isdigit():
            rows.append((value, value, value, ANY))
        else:
            rows.append((value, year, f"{year[:3]}0s", ANY))
    return rows


def _frequency_rows(column: ColumnProfile) -> Rows:
    rare = max(RARE_ROWS, math.ceil(column.filled * RARE_SHARE))
    common = math.ceil(column.filled * COMMON_SHARE)
    return frequency_rows(column.values, [rare, common] if common > rare else [rare])
