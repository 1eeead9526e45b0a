"""A recoded table as counts that determine every measure, under local or full-domain recoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anon_spark.errors import AnonSparkError
from anon_spark.metrics.average_size import average_size
from anon_spark.metrics.cells import Ints, exact_dot
from anon_spark.metrics.certainty import certainty_penalty
from anon_spark.metrics.discernibility import discernibility
from anon_spark.metrics.glm import general_loss
from anon_spark.metrics.information_loss import information_loss
from anon_spark.model.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class Recoded:
    """Counts of a release under local or full-domain recoding.

    `rows_by_node[attribute][level][code]`: published rows that show the node; `rows`: of the input; `squares` and
    `classes`: Σ|E|² and number of the published equivalence classes.
    Guarantee: every attribute accounts for rows - suppressed > 0 rows.
    """

    hierarchies: tuple[Hierarchy, ...]
    rows_by_node: tuple[tuple[Ints, ...], ...]
    rows: int
    suppressed: int
    squares: int
    classes: int

    def __post_init__(self) -> None:
        published = self.rows - self.suppressed
        _require(self.suppressed >= 0 and published > 0, f"{self.suppressed} of {self.rows} rows suppressed")
        _require(0 < self.classes <= published, f"{self.classes} classes of {published} rows")
        # bounds: classes of equal size, one class
        _require(published**2 <= self.squares * self.classes, f"squares {self.squares} of {self.classes} classes")
        _require(self.squares <= published**2, f"squares {self.squares} of {published} rows")
        _require(
            len(self.rows_by_node) == len(self.hierarchies) > 0,
            f"{len(self.rows_by_node)} columns of counts for {len(self.hierarchies)} hierarchies",
        )
        for position, (hierarchy, levels) in enumerate(zip(self.hierarchies, self.rows_by_node, strict=True)):
            sizes = [hierarchy.cardinality(level) for level in range(hierarchy.height + 1)]
            _require([len(counts) for counts in levels] == sizes, f"attribute {position}: counts of other levels")
            _require(all((counts >= 0).all() for counts in levels), f"attribute {position}: negative counts")
            counted = sum(int(counts.sum()) for counts in levels)
            _require(counted == published, f"attribute {position}: {counted} rows, published {published}")

    @classmethod
    def of_classes(
        cls,
        hierarchies: Sequence[Hierarchy],
        levels: npt.ArrayLike,
        leaves: npt.ArrayLike,
        sizes: npt.ArrayLike,
        suppressed: int = 0,
    ) -> Recoded:
        """From classes (rows of `levels` and `leaves`: any leaf below the node that the class shows) and their sizes.

        Guarantee: classes that show the same labels are one equivalence class, as in the published table; a label that
        padding repeats for the same leaves is one label, counted on its lowest level. Labels must be unambiguous
        (`Hierarchy.ambiguous_labels`). Cost: for each attribute a sort of one integer per class.
        """
        levels, leaves, sizes = (np.asarray(array, dtype=np.int64) for array in (levels, leaves, sizes))
        shape = (len(sizes), len(hierarchies))
        _require(levels.shape == leaves.shape == shape, f"levels {levels.shape}, leaves {leaves.shape}, not {shape}")
        _require(bool((sizes > 0).all()), "a class without rows")
        merged = np.zeros(len(sizes), dtype=np.int64)  # number of the published tuple of each class, up to this attribute
        rows_by_node = []
        for hierarchy, level, leaf in zip(hierarchies, levels.T, leaves.T, strict=True):
            inside = (level >= 0) & (level <= hierarchy.height) & (leaf >= 0) & (leaf < hierarchy.leaf_count)
            _require(bool(inside.all()), "a level or leaf outside the hierarchy")
            level = lowest_levels(hierarchy, level, leaf)
            starts = np.cumsum([0, *(hierarchy.cardinality(at) for at in range(hierarchy.height + 1))])
            shown = starts[level] + hierarchy.codes[level, leaf]
            counts = np.zeros(starts[-1], dtype=np.int64)
            np.add.at(counts, shown, sizes)
            rows_by_node.append(tuple(np.split(counts, starts[1:-1])))
            merged = np.unique(merged * starts[-1] + shown, return_inverse=True)[1]
        together = np.zeros(int(merged.max(initial=-1)) + 1, dtype=np.int64)
        np.add.at(together, merged, sizes)
        rows = int(sizes.sum()) + suppressed
        squares = exact_dot(together, together)
        return cls(tuple(hierarchies), tuple(rows_by_node), rows, suppressed, squares, together.size)


def summary(recoded: Recoded, k: int) -> dict[str, float]:
    """The measures of a release: il and ncp of its published rows; glm, dm and cavg charge suppressed rows as well."""
    hierarchies, rows_by_node = recoded.hierarchies, recoded.rows_by_node
    return {
        "il": float(information_loss(hierarchies, rows_by_node)),
        "glm": float(general_loss(hierarchies, rows_by_node, recoded.suppressed)),
        "ncp": float(certainty_penalty(hierarchies, rows_by_node)),
        "dm": float(discernibility(recoded.squares, recoded.rows, recoded.suppressed)),
        "cavg": float(average_size(recoded.rows, recoded.classes, k)),
    }


def lowest_levels(hierarchy: Hierarchy, levels: Ints, leaves: Ints) -> Ints:
    """The lowest level on which the node above each leaf has the same label and leaves: undoes padding."""
    known: dict[tuple[str | None, int], int] = {}
    shown = np.empty(hierarchy.codes.shape, dtype=np.int64)
    for level, codes in enumerate(hierarchy.codes):
        nodes = zip(hierarchy.labels[level], np.bincount(codes).tolist(), strict=True)
        # nested: of two nodes above one leaf, those with as many leaves have the same leaves
        shown[level] = np.array([known.setdefault(node, len(known)) for node in nodes])[codes]
    shown_node = shown[levels, leaves]
    lowest = levels.copy()
    for level in range(hierarchy.height - 1, -1, -1):
        lowest[(level < levels) & (shown[level, leaves] == shown_node)] = level
    return lowest


def _require(holds: bool, fault: str) -> None:
    if not holds:
        raise AnonSparkError(f"Counts of a recoded table do not fit together: {fault}.")
