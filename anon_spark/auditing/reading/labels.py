"""The labels of a hierarchy as numbers: what a leaf is called on each level, and on which level a published label lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.reading.look_ups import LookUp, with_found
from anon_spark.auditing.reading.values import private, quoted
from anon_spark.engine import beside, small_frame
from anon_spark.model.hierarchy import Hierarchy

LONG = 2**62  # what a packed key stays below

_KEY, _FOUND, _LEVEL = private("key"), private("found"), private("found_level")


@dataclass(frozen=True, eq=False)
class Labels:
    """Every label of a hierarchy once, with a number: padding repeats a number, null is one more leaf.

    texts: the label of each number; levels: the smallest level with it (the root's: the top); numbers: [level, leaf].
    """

    texts: list[str | None]
    levels: npt.NDArray[np.int32]
    numbers: npt.NDArray[np.int32]

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> Labels:
        """Cost: one pass over all labels, no Spark."""
        whole = hierarchy.with_null()
        known: dict[str | None, int] = {}
        levels: list[int] = []
        numbers = []
        for level, names in enumerate(whole.labels):
            for name in names:
                if known.setdefault(name, len(known)) == len(levels):
                    levels.append(level)
            numbers.append(np.array([known[name] for name in names], dtype=np.int32)[whole.codes[level]])
        levels[known[whole.labels[-1][0]]] = whole.height
        return cls(list(known), np.array(levels, dtype=np.int32), np.stack(numbers))

    @property
    def null(self) -> int:
        """The number of null."""
        return self.texts.index(None)

    def paths(self) -> list[list[str | None]]:
        """The labels of every leaf, by level."""
        return [[self.texts[number] for number in of_leaf] for of_leaf in self.numbers.T.tolist()]

    def with_numbers(self, frame: DataFrame, leaf: str, path: str) -> DataFrame:
        """Append the numbers of a leaf's labels, by level; null on a level that only repeats a label."""
        repeated = self.levels[self.numbers] != np.arange(len(self.numbers))[:, None]
        values = pa.array(self.numbers.T.ravel(), pa.int32(), mask=repeated.T.ravel())
        levels, leaves = self.numbers.shape
        offsets = pa.array(np.arange(leaves + 1, dtype=np.int32) * levels)
        table = {_KEY: pa.array(range(leaves), pa.int64()), _FOUND: pa.ListArray.from_arrays(offsets, values)}
        return _joined(frame, F.col(leaf), table, {path: F.col(_FOUND)})

    def with_number(self, frame: DataFrame, text: Column, number: str, level: str, nulls: str) -> DataFrame:
        """Append number and level of a published label; null where it is none of the hierarchy."""
        at_null, of_null = (self.null, 0) if nulls == "value" else (None, None)
        table = {
            _KEY: pa.array(self.texts, pa.string()),
            _FOUND: pa.array(range(len(self.texts)), pa.int32()),
            _LEVEL: pa.array(self.levels, pa.int32()),
        }
        null = F.isnull(text)
        return _joined(
            frame,
            text,
            table,
            {
                number: F.when(null, F.lit(at_null)).otherwise(F.col(_FOUND)),
                level: F.when(null, F.lit(of_null)).otherwise(F.col(_LEVEL)),
            },
        )


class Path(NamedTuple):
    """The column `leaf` of a hierarchy's leaves, and the name of a new column with the labels of each, by level."""

    labels: Labels
    leaf: str
    name: str


def with_paths(frame: DataFrame, paths: Sequence[Path]) -> DataFrame:
    """Append the labels of leaves, by level. Cost: as `with_found`."""
    look_ups = []
    for path in paths:
        found = path.labels.paths()
        look_ups.append(LookUp(F.col(path.leaf).cast("string"), [str(leaf) for leaf in range(len(found))], found, path.name))
    return with_found(frame, look_ups, pa.list_(pa.string()))


def _joined(frame: DataFrame, key: Column, table: Mapping[str, Any], appended: Mapping[str, Column]) -> DataFrame:
    """Append what a broadcast look-up table says of a key. One row in, one row out."""
    known = beside(small_frame(frame.sparkSession, pa.table(dict(table))))
    columns = [F.col(quoted(name)) for name in frame.columns]
    joined = frame.join(known, key == F.col(_KEY), "left")
    return joined.select(*columns, *(value.alias(name) for name, value in appended.items()))


def packed(numbers: Sequence[Column], labels: Sequence[Labels]) -> list[Column]:
    """The numbers of a tuple's labels as few longs, which Spark probes much faster; null when one of them is.

    Guarantee: different tuples have different keys: each long is a number whose digits are the labels' numbers.
    """
    keys: list[Column] = []
    size = LONG
    for number, attribute_labels in zip(numbers, labels, strict=True):
        digits = len(attribute_labels.texts)
        if size * digits < LONG:
            size, keys[-1] = size * digits, keys[-1] * digits + number
        else:
            size, keys = digits, [*keys, number.cast("long")]
    return [key.alias(private(f"key_{at}")) for at, key in enumerate(keys)]
