"""Hierarchies that are known as a rule before the values are: masks, and dates without a domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from anon_spark.errors import HierarchyError, did_you_mean
from anon_spark.model.hierarchy.values import calendar_day

if TYPE_CHECKING:
    from anon_spark.model.hierarchy.hierarchy import Hierarchy

UNITS = ("week", "month", "quarter", "year", "decade", "century")  # finest first; a week nests in none of the others
_INT64 = 2**63 - 1


class Rule:
    """How to build a hierarchy for values that are not known yet.

    A built hierarchy carries the completed rule, which builds the same levels and weights for any later values.
    """

    @property
    def complete(self) -> bool:
        """Whether levels and weights are fixed, whatever values come."""
        raise NotImplementedError

    def build(self, values: Iterable[str]) -> Hierarchy:
        """The hierarchy of these values; a value the rule cannot take is left out, so it is unseen."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The rule as plain JSON values."""
        raise NotImplementedError

    @staticmethod
    def from_dict(content: dict[str, Any]) -> Rule:
        """The rule a `to_dict` came from."""
        fields = dict(content)
        name = fields.pop("rule", None)
        try:
            if name == "mask":
                return MaskRule(**fields)
            if name == "date":
                return DateRule(**fields)
        except TypeError as fault:
            raise HierarchyError(f"The stored {name} rule has missing or unknown fields.") from fault
        raise HierarchyError("The stored rule is neither mask nor date. Written by a newer version?")


@dataclass(frozen=True)
class MaskRule(Rule):
    """Level l replaces l symbols by '*'; `keep` names the side that stays. The height is the length.

    The domain is every text of `length` symbols over an alphabet of that size (10: digits), whatever values occur; give
    the real size for letters, or losses are those of digits.
    """

    keep: str = "left"
    length: int | None = None
    alphabet: int = 10

    def __post_init__(self) -> None:
        if self.keep not in ("left", "right"):
            raise HierarchyError(f"mask: keep must be left or right.{did_you_mean(str(self.keep), ('left', 'right'))}")
        if not isinstance(self.alphabet, int) or not isinstance(self.length, int | None):
            raise HierarchyError("mask: alphabet and length must be whole numbers.")
        if self.alphabet < 2 or (self.length is not None and self.length < 1):
            raise HierarchyError("mask: alphabet must be at least 2 and length at least 1.")
        # room for a null leaf, and for weights as int64
        if self.length is not None and self.alphabet**self.length >= _INT64:
            raise HierarchyError(
                f"mask: {self.length} symbols over an alphabet of {self.alphabet} are more values than 64 bits count. "
                "Give a smaller length or alphabet."
            )

    @property
    def complete(self) -> bool:
        """Whether the length is fixed."""
        return self.length is not None

    def build(self, values: Iterable[str]) -> Hierarchy:
        """One leaf per distinct value of at most `length` symbols (not given: the longest value's), sorted."""
        from anon_spark.model.hierarchy.mask import build_mask

        distinct = sorted({value for value in values if value is not None})
        if self.length is None and any(distinct):
            return replace(self, length=max(map(len, distinct))).build(distinct)
        return build_mask(self, distinct)

    def to_dict(self) -> dict[str, Any]:
        return {"rule": "mask", "keep": self.keep, "length": self.length, "alphabet": self.alphabet}


@dataclass(frozen=True)
class DateRule(Rule):
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

    def build(self, values: Iterable[str]) -> Hierarchy:
        """All days of the domain; an open one becomes the whole coarsest units around the first and last value."""
        from anon_spark.model.hierarchy.dates import build_dates, whole_units

        if self.complete:
            return build_dates(self)
        days = [day for day in map(calendar_day, values) if day is not None]
        if not days:
            raise HierarchyError("date: no value is a date like 2020-03-01. Check the column, or give start and stop.")
        start, stop = whole_units(self.units[-1], date.fromisoformat(min(days)), date.fromisoformat(max(days)))
        return build_dates(replace(self, start=start, stop=stop))

    def to_dict(self) -> dict[str, Any]:
        return {"rule": "date", "units": list(self.units), "start": self.start, "stop": self.stop}


def as_rules(given: Mapping[str, Hierarchy | Rule]) -> dict[str, Hierarchy | Rule]:
    """Hierarchies; one that a rule made stands as the rule: its domain is not the values it was made of."""
    return {name: one if isinstance(one, Rule) or one.rule is None else one.rule for name, one in given.items()}


def portable(given: Mapping[str, Hierarchy | Rule], fitted: Iterable[Hierarchy]) -> dict[str, Hierarchy | Rule]:
    """Hierarchies as they apply to any table and may be kept: no value of the fitted table is in them.

    A mask has the length it was fitted with, on which its levels depend. Dates without a domain stay without one: levels and
    labels do not depend on it, and its ends would tell of the first and last value, also of rows that were not published.
    """
    kept = as_rules(given)
    return {
        name: one.rule if one.rule is not None and isinstance(one.rule, MaskRule) else kept[name]
        for name, one in zip(given, fitted, strict=True)
    }
