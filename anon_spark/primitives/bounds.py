"""Labels of numbers and dates as their two bounds, for columns that are published as a range or as two columns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.columns import SHOWN_HIGH, SHOWN_LOW, quoted
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.primitives.look_ups import LookUp, with_found

EXACT = T.DecimalType(38, 18)
BITS: Mapping[type[T.DataType], int] = {T.ByteType: 7, T.ShortType: 15, T.IntegerType: 31, T.LongType: 63}  # of the value


def bounds_of(hierarchy: Hierarchy) -> dict[str, tuple[Any, Any]]:
    """The least and the greatest value of every label, on all levels: whole numbers, decimals of bins, days."""
    found: dict[str, tuple[Any, Any]] = {}
    lows, highs = _leaf_bounds(hierarchy)
    for level in range(hierarchy.height + 1):
        codes = hierarchy.codes[level, : len(lows)]
        for code, label in enumerate(hierarchy.labels[level]):
            members = np.flatnonzero(codes == code)
            if label is not None and len(members) and label not in found:
                found[label] = (lows[members[0]], highs[members[-1]])
    return found


def _leaf_bounds(hierarchy: Hierarchy) -> tuple[list[Any], list[Any]]:
    """The bounds of the leaves in their order, which is that of the values."""
    if hierarchy.kind == "bins":
        grid = hierarchy.bins
        assert grid is not None, "a hierarchy of bins has them"
        starts = [grid.start + grid.width * place for place in range(grid.count)]
        return starts, [*starts[1:], grid.stop]
    if hierarchy.kind == "date":
        days = [date.fromisoformat(key) for key in hierarchy.keys]
        return days, days
    numbers = [int(key) for key in hierarchy.keys]
    return numbers, numbers


def bound_type(hierarchy: Hierarchy, source: T.DataType) -> T.DataType:
    """The type of the bounds: that of the source where it holds them all, else one that does; days for dates."""
    if hierarchy.kind == "date":
        return T.DateType()
    numbers = [Decimal(end) for pair in bounds_of(hierarchy).values() for end in pair]
    if isinstance(source, (T.FloatType, T.DoubleType)):
        return T.DoubleType()
    if any(number != number.to_integral_value() for number in numbers):
        return EXACT
    bits = BITS.get(type(source))
    return source if bits is not None and all(-(2**bits) <= number < 2**bits for number in numbers) else T.LongType()


def with_bounds(labelled: DataFrame, hierarchies: Mapping[str, Hierarchy], kinds: Mapping[str, T.DataType]) -> DataFrame:
    """Append SHOWN_LOW and SHOWN_HIGH of each column named, from its label; null for null. kinds: their types.

    Cost: one broadcast, two joins per column; no action.
    """
    look_ups = []
    for place, (name, hierarchy) in enumerate(hierarchies.items()):
        known = bounds_of(hierarchy)
        for end, side in enumerate((SHOWN_LOW, SHOWN_HIGH)):
            found = [str(pair[end]) for pair in known.values()]
            look_ups.append(LookUp(F.col(quoted(name)), list(known), found, f"{side}{place}"))
    found_all = with_found(labelled, look_ups, pa.string())
    typed = {
        f"{side}{place}": F.col(f"{side}{place}").cast(kinds[name]).alias(f"{side}{place}")
        for place, name in enumerate(hierarchies) for side in (SHOWN_LOW, SHOWN_HIGH)
    }  # fmt: skip
    return found_all.select(*(typed.get(name, F.col(quoted(name))) for name in found_all.columns))
