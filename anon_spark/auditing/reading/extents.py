"""Extents as the audit reads them: published ends as one text, the ends that a class must show, and the label above them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from anon_spark.auditing.reading.labels import Labels, Path, with_paths
from anon_spark.auditing.reading.values import HI, LO, private, quoted
from anon_spark.engine import beside, small_frame
from anon_spark.model.hierarchy import Hierarchy, ends_of

_KEY, _LEAF, _LOWER, _UPPER = (private(name) for name in ("end", "end_leaf", "lower_path", "upper_path"))
UNREADABLE = "?"  # no text of an extent, and no label that a hierarchy of whole numbers has


@dataclass(frozen=True)
class Extent:
    """How a column is published as an extent: by the numbers of a hierarchy's leaves, or rounded to its first labels."""

    hierarchy: Hierarchy
    rounded: bool


Extents = Mapping[str, Extent]  # quasi-identifier → how; others are published as labels


def as_text(low: Column, high: Column) -> Column:
    """Two ends as one text, so that extents are compared like labels; null ends are empty."""
    ends = (F.coalesce(end.cast("string"), F.lit("")) for end in (low, high))
    first, last = ends
    return F.concat(F.lit("["), first, F.lit(", "), last, F.lit("]"))


def with_texts(release: DataFrame, extents: Extents) -> DataFrame:
    """A release whose extents are texts; a column that is not struct<lo,hi> of whole numbers is one unreadable text."""
    columns = []
    for name in release.columns:
        column = F.col(quoted(name))
        if name in extents:
            text = as_text(column[LO], column[HI]) if _is_extent(release, name) else F.lit(UNREADABLE)
            column = F.when(F.isnotnull(column), text).alias(name)
        columns.append(column)
    return release.select(*columns)


def with_labels(release: DataFrame, extents: Extents) -> DataFrame:
    """A release with the label in place of each extent: the lowest one above both ends, the root for null ends.

    An end that is no leaf, or a low end above the high one, gives an unreadable label.
    """
    frame = release
    for name, extent in extents.items():
        if not _is_extent(release, name):
            frame = frame.withColumn(name, F.lit(UNREADABLE))
            continue
        labels, root = Labels.of(extent.hierarchy), extent.hierarchy.labels[-1][0]
        column = F.col(quoted(name))
        for end, path in ((LO, _LOWER), (HI, _UPPER)):
            frame = with_paths(_with_leaf(frame, column[end], extent.hierarchy), [Path(labels, _LEAF, path)]).drop(_LEAF)
        common = F.filter(F.arrays_zip(F.col(_LOWER), F.col(_UPPER)), lambda both: both[_LOWER] == both[_UPPER])
        shown = F.when(column[LO] <= column[HI], F.get(common, F.lit(0))[_LOWER])
        shown = F.when(F.isnull(column[LO]) & F.isnull(column[HI]), F.lit(root)).otherwise(shown)
        shown = F.when(F.isnotnull(column), F.coalesce(shown, F.lit(UNREADABLE)))
        columns = [shown.alias(name) if other == name else F.col(quoted(other)) for other in release.columns]
        frame = frame.select(*columns)
    return frame


def with_ends(frame: DataFrame, leaf: str, extent: Extent, low: str, high: str) -> DataFrame:
    """Append the ends of a leaf; null for the null leaf."""
    lows, highs = ends_of(extent.hierarchy, extent.rounded)
    ends = pa.table({_KEY: pa.array(range(lows.size), pa.int64()), low: pa.array(lows), high: pa.array(highs)})
    known = beside(small_frame(frame.sparkSession, ends))
    return frame.join(known, F.col(leaf) == F.col(_KEY), "left").drop(_KEY)


def _with_leaf(frame: DataFrame, number: Column, hierarchy: Hierarchy) -> DataFrame:
    numbers, _ = ends_of(hierarchy)
    leaves = pa.table({_KEY: pa.array(numbers), _LEAF: pa.array(range(numbers.size), pa.int64())})
    known = beside(small_frame(frame.sparkSession, leaves))
    return frame.join(known, number == F.col(_KEY), "left").drop(_KEY)


def _is_extent(release: DataFrame, name: str) -> bool:
    kind = release.schema[name].dataType
    return isinstance(kind, StructType) and {field.name: field.dataType for field in kind} == {LO: LongType(), HI: LongType()}
