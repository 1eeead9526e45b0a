"""Working with a release: its rows, what its labels stand for as numbers, and counts with bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, mul
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import PREFIX, quoted
from anon_spark.errors import ConfigurationError, did_you_mean
from anon_spark.io.publication import output_of, read_back
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.primitives.look_ups import LookUp, with_found

LO, HI = "lo", "hi"
ANY = "*"
EVEN = 0.5  # share of a label of which nothing is known
WEIGHT = PREFIX + "weight_"  # + position
_RANGE = r"^\[(-?[0-9.]+), (-?[0-9.]+)[\])]$"

Condition = object  # a value, or (least, greatest) of a number


@dataclass(frozen=True)
class Counted:
    """How many rows fit: at least and at most, and the number to expect if values are spread evenly within their labels."""

    least: int
    expected: float
    most: int


class _Fit(NamedTuple):
    """Whether a row fits a condition: surely, possibly, and with what share of its label."""

    surely: Column
    possibly: Column
    share: Column


@dataclass(frozen=True)
class Release:
    """A release at one version, with helpers for analysts.

    frame: its rows; metadata: what its commit says of the run; hierarchies: of its columns, where you gave them.
    """

    frame: DataFrame
    table: str
    version: int
    metadata: Mapping[str, Any]
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)

    @property
    def family(self) -> str:
        return str(self.metadata.get("family"))

    def lower(self, column: str) -> Column:
        """The least number that a row's label of a column stands for; null for `*` and null."""
        return self._ends(column)[0]

    def upper(self, column: str) -> Column:
        """The greatest number; of a half-open range [33, 38) its end 38."""
        return self._ends(column)[1]

    def midpoint(self, column: str) -> Column:
        """The middle of a row's range, for means and plots."""
        low, high = self._ends(column)
        return (low + high) / 2

    def weight(self, column: str, least: float, greatest: float) -> Column:
        """The share of a row's range that lies between two numbers, both included; null where the range is not known."""
        low, high = self._ends(column)
        inside = F.least(high, F.lit(float(greatest))) - F.greatest(low, F.lit(float(least)))
        width = high - low
        point = F.when((low >= float(least)) & (low <= float(greatest)), F.lit(1.0)).otherwise(F.lit(0.0))
        part = F.greatest(F.lit(0.0), F.least(F.lit(1.0), inside / width))
        return F.when(F.isnull(width), F.lit(None)).when(width == 0, point).otherwise(part)

    def count(self, **conditions: Condition) -> Counted:
        """Rows that fit all conditions, as in count(age=(30, 45), city="Bonn"): at least, expected, at most.

        A condition is a value, or (least, greatest) of a number. Of a column whose hierarchy you gave to `read_release`, every
        label is known; else a range is read from its text, another label is taken as a value, and `*` may be anything.
        Guarantee: the number of published records that fit lies between least and most (families lattice and mst; of others use
        `anon_spark.count` and the queries in the documentation). The expectation is no promise. Cost: one job.
        """
        if self.family not in ("lattice", "mst"):
            raise ConfigurationError(f"count: the labels of family {self.family} need their own queries: see docs/downstream.md.")
        if not conditions:
            raise ConfigurationError("count: name at least one column with a value, or with (least, greatest).")
        frame, fits = self._fits(conditions)
        row = frame.agg(
            F.count_if(reduce(and_, (fit.surely for fit in fits))).alias("least"),
            F.coalesce(F.sum(reduce(mul, (fit.share for fit in fits))), F.lit(0.0)).alias("expected"),
            F.count_if(reduce(and_, (fit.possibly for fit in fits))).alias("most"),
        ).first()
        assert row is not None, "an aggregate has one row"
        return Counted(int(row["least"]), float(row["expected"]), int(row["most"]))

    def _fits(self, conditions: Mapping[str, Condition]) -> tuple[DataFrame, list[_Fit]]:
        """How each row fits each condition. A null is no value, so it fits none."""
        look_ups: list[LookUp] = []
        fits = []
        for name, wanted in conditions.items():
            hierarchy = self.hierarchies.get(name)
            if hierarchy is not None and self._is_label(name) and hierarchy.kind != "bins":
                shares = _shares(hierarchy, wanted)
                at = f"{WEIGHT}{len(look_ups)}"
                look_ups.append(LookUp(F.col(quoted(name)), list(shares), list(shares.values()), at))
                known, there = F.col(at), F.isnotnull(F.col(quoted(name)))
                share = F.coalesce(known, F.when(there, F.lit(EVEN)), F.lit(0.0))
                fits.append(_Fit(known == 1, F.coalesce(known > 0, there), share))
            elif isinstance(wanted, tuple):
                fits.append(self._in_range(name, *_two(name, wanted)))
            else:
                value = F.col(quoted(self._known(name))).cast("string")
                same, unknown = value == str(wanted), value == ANY
                share = F.when(unknown, F.lit(EVEN)).when(same, F.lit(1.0)).otherwise(F.lit(0.0))
                fits.append(_Fit(same & ~unknown, same | unknown, share))
        return with_found(self.frame, look_ups, pa.float64()), fits

    def _in_range(self, name: str, least: float, greatest: float) -> _Fit:
        low, high = self._ends(name)
        shown = quoted(name if name in self.frame.columns else f"{name}_{LO}")
        anything = F.isnull(low) & F.isnotnull(F.col(shown))  # `*`, or a word
        surely = (low >= least) & (high <= greatest)
        possibly = ((high >= least) & (low <= greatest)) | anything
        share = F.when(anything, F.lit(EVEN)).otherwise(F.coalesce(self.weight(name, least, greatest), F.lit(0.0)))
        return _Fit(surely, possibly, share)

    def _is_label(self, name: str) -> bool:
        return name in self.frame.columns and isinstance(self.frame.schema[name].dataType, T.StringType)

    def _ends(self, name: str) -> tuple[Column, Column]:
        if f"{name}_{LO}" in self.frame.columns and name not in self.frame.columns:
            return F.col(quoted(f"{name}_{LO}")).cast("double"), F.col(quoted(f"{name}_{HI}")).cast("double")
        column = F.col(quoted(self._known(name)))
        kind = self.frame.schema[name].dataType
        if isinstance(kind, T.StructType):
            return column[LO].cast("double"), column[HI].cast("double")
        if not isinstance(kind, T.StringType):
            return column.cast("double"), column.cast("double")
        is_range = column.rlike(_RANGE)
        ends = (
            F.when(is_range, F.regexp_extract(column, _RANGE, side).try_cast("double")).otherwise(column.try_cast("double"))
            for side in (1, 2)
        )
        low, high = ends
        return low, high

    def _known(self, name: str) -> str:
        if name not in self.frame.columns:
            hint = did_you_mean(name, self.frame.columns)
            raise ConfigurationError(f"Columns not found: {name}.{hint} The release has: {', '.join(self.frame.columns)}.")
        return name


def read_release(spark: SparkSession, table: str, hierarchies: Mapping[str, Hierarchy] | None = None) -> Release:
    """The current release of a table (path or catalog name), with helpers for analysts.

    hierarchies: those of its columns, for counts on groups of values. Raises where the table is no release of anon-spark, or was
    changed by others since. Cost: metadata only.
    """
    output = output_of(spark, table)
    if output.release is None:
        raise ConfigurationError(f"{table}: nothing is published there.")
    if output.release.changes:
        raise ConfigurationError(f"{table}: others changed it since it was published. Read it with Spark if you trust that.")
    version = output.release.version
    return Release(read_back(spark, table, version), table, version, output.release.metadata, dict(hierarchies or {}))


def _two(name: str, wanted: tuple[Any, ...]) -> tuple[float, float]:
    if len(wanted) != 2 or not all(isinstance(end, int | float) for end in wanted):
        raise ConfigurationError(f"count: {name} should be a value, or (least, greatest) of a number.")
    return float(wanted[0]), float(wanted[1])


def _shares(hierarchy: Hierarchy, wanted: Condition) -> dict[str, float]:
    """Of every label the share of its values that fit; a label on several levels has the same values on them."""
    if isinstance(wanted, tuple):
        least, greatest = _two("a column", wanted)
        fits = np.array([_between(key, least, greatest) for key in hierarchy.keys], dtype=np.float64)
    else:
        leaf = hierarchy.leaf_of(wanted)
        fits = np.zeros(len(hierarchy.keys))
        if leaf is not None and leaf < len(fits):
            fits[leaf] = 1.0
    shares: dict[str, float] = {}
    for level in range(hierarchy.height + 1):
        codes = hierarchy.codes[level, : len(fits)]
        size = len(hierarchy.labels[level])
        sums, numbers = np.bincount(codes, fits, size), np.bincount(codes, minlength=size)
        for label, total, number in zip(hierarchy.labels[level], sums, numbers, strict=True):
            if label is not None and number:
                shares.setdefault(label, float(total / number))
    return shares


def _between(key: str, least: float, greatest: float) -> bool:
    try:
        return least <= float(key) <= greatest
    except ValueError:
        return False
