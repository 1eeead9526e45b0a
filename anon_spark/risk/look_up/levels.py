"""The labels of a hierarchy by level and the leaves below them: which published label covers which value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anon_spark.auditing.reading.item_sets import Marks
from anon_spark.model.hierarchy import Hierarchy

CELLS_AT_ONCE = 2_000_000  # published rows or classes times sampled records that are compared in one step

Leaves = NDArray[np.int32]


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
