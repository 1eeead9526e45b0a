"""The numbers that a leaf stands for, for columns that are published as the extent of a class."""

from __future__ import annotations

import numpy as np

from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy.hierarchy import Hierarchy
from anon_spark.model.hierarchy.table import Counts


def ends_of(hierarchy: Hierarchy, rounded: bool = False) -> tuple[Counts, Counts]:
    """The least and the greatest number of each leaf: the leaf's own, or rounded, those of the label above it.

    The null leaf has none. A leaf that is no whole number raises.
    """
    try:
        numbers = np.array([int(key) for key in hierarchy.keys], dtype=np.int64)
    except (ValueError, OverflowError):
        raise ConfigurationError(
            "publish: an extent needs a hierarchy whose values are all whole numbers, such as intervals without exact: false."
        ) from None
    if not rounded:
        return numbers, numbers
    if hierarchy.height < 2:
        raise ConfigurationError("publish: a rounded extent needs a level below the root, whose labels it is rounded to.")
    above = hierarchy.codes[1, : numbers.size]
    size = int(hierarchy.codes[1].max()) + 1
    low, high = np.full(size, np.iinfo(np.int64).max), np.full(size, np.iinfo(np.int64).min)
    np.minimum.at(low, above, numbers)
    np.maximum.at(high, above, numbers)
    return low[above], high[above]
