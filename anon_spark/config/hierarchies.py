"""Hierarchies in a job file. Files are not opened here; `io` does that from `HierarchySpec.source()`."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from anon_spark.config.locations import base_of, checked_table, resolve_file
from anon_spark.config.spec import Number, Spec, Text
from anon_spark.errors import did_you_mean

Kind = Literal["levels", "edges", "intervals", "mask", "date", "top"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_SEPARATORS = {"levels": ";", "edges": ","}
UNITS = ("week", "month", "quarter", "year", "decade", "century")


class IntervalsSpec(Spec):
    """Intervals of growing width, anchored at the start of the domain."""

    start: Number = Field(alias="from", description="Least value of the domain; every interval is anchored here.")
    stop: Number = Field(alias="to", description="Greatest value of the domain; the last interval is clipped to it.")
    widths: Annotated[tuple[Number, ...], Field(strict=False)] = Field(
        description="Width of the intervals on each level, each a multiple of the one before; * is added on top.")
    exact: bool = Field(default=True, description="Level 0 holds the whole numbers themselves; false: the first width.")

    @model_validator(mode="after")
    def _nested(self) -> IntervalsSpec:
        if not self.widths and not self.exact:
            raise ValueError("widths needs at least one entry with exact: false")
        if self.start >= self.stop:
            raise ValueError("from should be below to")
        if any(width <= 0 for width in self.widths):
            raise ValueError("widths should be above 0")
        if any(wide <= narrow or wide % narrow for narrow, wide in pairwise(self.widths)):
            raise ValueError("widths should ascend, each a multiple of the one before")
        if self.exact and not all(isinstance(number, int) for number in (self.start, self.stop, *self.widths)):
            raise ValueError("from, to and widths should be whole numbers; for others say exact: false")
        if self.exact and self.widths[:1] == (1,):
            raise ValueError("a width of 1 repeats the values themselves; begin with 2 or more")
        return self


class MaskSpec(Spec):
    """Characters replaced one by one: 13051 → 1305* → 130** → …"""

    keep: Literal["left", "right"] = Field(default="left", description="The end that is kept longest.")
    length: int | None = Field(default=None, ge=1, description="Length of the values; default: the longest one found.")
    alphabet: int = Field(default=10, ge=2, description="How many characters each place can hold, for the loss.")


def _day(value: object) -> object:
    """A calendar day, as YAML reads it or as text; a time of day is refused."""
    if isinstance(value, str):
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            pass
    if isinstance(value, datetime.datetime) or not isinstance(value, datetime.date):
        raise ValueError("should be a day, such as 1970-01-01")
    return value


Day = Annotated[datetime.date, BeforeValidator(_day)]


class DateSpec(Spec):
    """Calendar units above the day."""

    levels: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        description=f"Calendar units from fine to coarse: {', '.join(UNITS)}; a week nests in none of the others.")
    start: Day | None = Field(default=None, alias="from", description="First day; default: found in the data.")
    stop: Day | None = Field(default=None, alias="to", description="Last day; default: found in the data.")

    @model_validator(mode="before")
    @classmethod
    def _list_of_units(cls, data: Any) -> Any:
        return {"levels": data} if isinstance(data, list | tuple) else data

    @field_validator("levels")
    @classmethod
    def _ascending(cls, levels: tuple[str, ...]) -> tuple[str, ...]:
        if not levels:
            raise ValueError("needs at least one unit")
        for unit in levels:
            if unit not in UNITS:
                hint = " The day is level 0 already." if unit == "day" else did_you_mean(unit, UNITS)
                raise ValueError(f"should be units among {', '.join(UNITS)}.{hint}")
        if "week" in levels and len(levels) > 1:
            raise ValueError("a week nests in no other unit; use week alone")
        if any(UNITS.index(fine) >= UNITS.index(coarse) for fine, coarse in pairwise(levels)):
            raise ValueError("units should go from fine to coarse, each once")
        return levels

    @model_validator(mode="after")
    def _domain(self) -> DateSpec:
        if (self.start is None) != (self.stop is None):
            raise ValueError("from and to go together")
        if self.start is not None and self.stop is not None and self.start > self.stop:
            raise ValueError("from should not be after to")
        return self


@dataclass(frozen=True)
class LevelsSource:
    """A level table: one row per value, its ancestors behind it, `*` last."""

    location: str
    sep: str
    header: bool
    format: Literal["delta", "parquet"] | None   # None: a text file; else a table, path or catalog name

    @property
    def is_table(self) -> bool:
        """Whether Spark reads it, rather than the driver a text file."""
        return self.format is not None


@dataclass(frozen=True)
class EdgesSource:
    """A text file with one child–parent pair per line."""

    location: str
    sep: str
    header: bool


@dataclass(frozen=True)
class TopSource:
    """The value, then `*`: no file, no rule to complete."""


Source = LevelsSource | EdgesSource | IntervalsSpec | MaskSpec | DateSpec | TopSource


def _with_separator(data: Any) -> Any:
    """A hierarchy of an unchecked job, with the usual separator of its kind of file."""
    if not isinstance(data, Mapping | HierarchySpec):
        raise ValueError(f"needs a hierarchy, one of: {', '.join(KINDS)}")
    if isinstance(data, Mapping) and data.get("format") is None and data.get("sep") is None:
        kind = next((kind for kind in _SEPARATORS if data.get(kind) is not None), None)
        return {**data, "sep": _SEPARATORS[kind]} if kind else data
    return data


class HierarchySpec(Spec):
    """The hierarchy of one column: exactly one of levels, edges, intervals, mask, date, top."""

    format: Literal["delta", "parquet"] | None = Field(
        default=None, description="With levels: it is a table of this format (path or catalog name), not a text file.")
    levels: Text | None = Field(default=None, description="Level table, one row per value: value;g1;…;*")
    edges: Text | None = Field(default=None, description="Text file of child,parent pairs.")
    intervals: IntervalsSpec | None = Field(default=None, description="Intervals of a number, of growing width.")
    mask: MaskSpec | None = Field(default=None, description="Characters replaced by * one after the other.")
    date: DateSpec | None = Field(
        default=None, description="Calendar units from fine to coarse, as a list, or with levels, from and to.")
    top: Literal[True] | None = Field(default=None, description="The value, then *: a hierarchy without a file.")
    sep: str | None = Field(
        default=None, min_length=1, max_length=1,
        description="Separator of the file; default: a semicolon for levels, a comma for edges.")
    header: bool = Field(default=False, description="The first line of the file holds names, not values.")

    @model_validator(mode="before")
    @classmethod
    def _section_with_separator(cls, data: Any) -> Any:
        return _with_separator(data)

    @field_validator("levels", "edges")
    @classmethod
    def _resolved(cls, location: str | None, info: ValidationInfo) -> str | None:
        if location is None:
            return None
        if info.data.get("format"):
            return checked_table(location, info)
        base = base_of(info)
        return resolve_file(location, base) if base else location

    @model_validator(mode="after")
    def _exactly_one(self) -> HierarchySpec:
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            message = f"has {' and '.join(kinds)}; keep one" if kinds else f"needs one of: {', '.join(KINDS)}"
            raise ValueError(message)
        if self.format and self.levels is None:
            raise ValueError("format goes with levels only")
        if self.model_fields_set & {"sep", "header"} and (self.format or kinds[0] not in ("levels", "edges")):
            raise ValueError("sep and header go with a text file of levels or edges only")
        return self

    @property
    def kind(self) -> Kind:
        """Which of KINDS it is."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    def source(self) -> Source:
        """The source of the hierarchy; one type per kind, so that a reader can match on it."""
        if self.levels is not None:
            return LevelsSource(self.levels, self.sep or ";", self.header, self.format)
        if self.edges is not None:
            return EdgesSource(self.edges, self.sep or ",", self.header)
        return self.intervals or self.mask or self.date or TopSource()


Presented = Literal["range", "bounds"]


class QuasiIdentifierSpec(HierarchySpec):
    """A quasi-identifier with its hierarchy, and how its labels are published; `{}` is short for `{top: true}`."""

    publish: Literal["label", "range", "bounds"] | None = Field(
        default=None,
        description="label (default): one of the hierarchy; range: its bounds as struct<lo,hi>; bounds: as two columns, "
        "<name>_lo and <name>_hi. Of intervals, and of dates with from and to.")

    @model_validator(mode="before")
    @classmethod
    def _section_with_separator(cls, data: Any) -> Any:
        if data is None or isinstance(data, Mapping):
            named = dict(data or {})
            if all(named.get(kind) is None for kind in KINDS) and not {"format", "sep", "header"} & named.keys():
                named["top"] = True
            data = named
        return _with_separator(data)

    @model_validator(mode="after")
    def _bounds_of_numbers(self) -> QuasiIdentifierSpec:
        if self.presented is None or self.intervals is not None:
            return self
        if self.date is None:
            raise ValueError(f"publish: {self.presented} goes with intervals or dates, not with {self.kind}")
        if self.date.start is None:
            raise ValueError(f"publish: {self.presented} of dates needs their domain: date: {{levels: …, from: …, to: …}}")
        return self

    @property
    def presented(self) -> Presented | None:
        """How labels are replaced by their bounds; None where they are not."""
        return self.publish if self.publish == "range" or self.publish == "bounds" else None
