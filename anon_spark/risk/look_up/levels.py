"""The labels of a hierarchy by level and the leaves below them: which published label covers which value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon_spark.auditing.reading.item_sets import Marks
from anon_spark.model.hierarchy import Hierarchy, ends_of

CELLS_AT_ONCE = 2_000_000  # published rows or classes times sampled records that are compared in one step

Leaves = NDArray[np.int32]


class Covering(Protocol):
    """What an attack asks of a column: the leaf of a known value, published labels as numbers, and which of them cover it."""

    def leaf(self, value: object) -> int: ...

    def numbers(self, labels: pa.ChunkedArray[pa.StringScalar]) -> Any: ...

    def covering(self, numbers: Any, leaves: Leaves) -> Marks: ...


@dataclass(frozen=True, eq=False)
class Levels:
    """The place of each label of a hierarchy, and the labels of the leaves by level.

    texts: every label once, null too; levels and codes: its place, the highest if padding repeats it (for the same
    leaves, or at the root), and after the last one a place that no leaf has; table: code by level and leaf, where null
    and, after it, the unknown value are leaves too.
    """

    hierarchy: Hierarchy
    texts: pa.StringArray
    levels: Leaves
    codes: Leaves
    table: Leaves

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> Levels:
        """Cost: one pass over all labels, no Spark."""
        whole = hierarchy.with_null()
        places = {
            name: (level, code) for level, names in enumerate(whole.labels) for code, name in enumerate(names)
        }  # ascending: the highest level stays
        nowhere = (0, -2)
        levels, codes = np.array([*places.values(), nowhere], dtype=np.int32).T
        unknown = np.full((whole.height + 1, 1), -1, dtype=np.int32)
        unknown[-1] = 0
        return cls(whole, pa.array(list(places), pa.string()), levels, codes, np.hstack([whole.codes, unknown]))

    def leaf(self, value: object) -> int:
        """Leaf of a source value; NaN is missing, too."""
        leaf = self.hierarchy.leaf_of(None if value != value else value)
        return self.hierarchy.leaf_count if leaf is None else leaf

    def numbers(self, labels: pa.ChunkedArray[pa.StringScalar]) -> Leaves:
        """Position of published labels among the texts, -1 for a text that is no label."""
        positions = pc.index_in(labels, value_set=self.texts)
        return np.asarray(positions.fill_null(-1).to_numpy(), dtype=np.int32)

    def covering(self, numbers: Leaves, leaves: Leaves) -> Marks:
        """[label, leaf]: whether the label is the leaf's or lies above it."""
        distinct, back = np.unique(numbers, return_inverse=True)
        at = self.table[self.levels[distinct][:, None], leaves[None, :]]
        return np.asarray(at == self.codes[distinct][:, None])[back]


_ENDS = re.compile(r"\[(-?\d*), (-?\d*)\]")


@dataclass(frozen=True, eq=False)
class EndsOfClasses:
    """A column whose published labels are texts of two ends, such as [21, 27]: they cover the numbers from one to the other.

    values: the number of each leaf, then of null and of the unknown value, which have none. [, ] covers everything; null covers
    null; any other text covers nothing.
    """

    hierarchy: Hierarchy
    values: NDArray[np.float64]

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> EndsOfClasses:
        """Cost: one pass over the leaves, no Spark."""
        whole = hierarchy.with_null()
        return cls(whole, np.append(ends_of(whole)[0].astype(np.float64), [np.nan, np.nan]))

    def leaf(self, value: object) -> int:
        """Leaf of a source value; NaN is missing, too."""
        leaf = self.hierarchy.leaf_of(None if value != value else value)
        return self.hierarchy.leaf_count if leaf is None else leaf

    def numbers(self, labels: pa.ChunkedArray[pa.StringScalar]) -> NDArray[np.float64]:
        """Low end, high end, and 1 for null or 2 for ends that cover everything, of each label."""
        known: dict[str | None, tuple[float, float, float]] = {None: (np.nan, np.nan, 1)}
        found = []
        for text in labels.to_pylist():
            if text not in known:
                ends = _ENDS.fullmatch(str(text))
                if ends is None or (ends[1] == "") != (ends[2] == ""):
                    known[text] = (np.nan, np.nan, 0)
                else:
                    known[text] = (np.nan, np.nan, 2) if ends[1] == "" else (float(ends[1]), float(ends[2]), 0)
            found.append(known[text])
        return np.array(found, dtype=np.float64).reshape(-1, 3)

    def covering(self, numbers: NDArray[np.float64], leaves: Leaves) -> Marks:
        """[label, leaf]: whether the number of the leaf lies between the ends."""
        value, null = self.values[leaves][None, :], leaves[None, :] == self.hierarchy.leaf_count - 1
        low, high, other = (numbers[:, [at]] for at in range(3))
        return np.asarray(((low <= value) & (value <= high)) | ((other == 1) & null) | (other == 2))
