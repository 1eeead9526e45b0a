"""Input and score that all baselines share.

A baseline takes the hierarchies, single rows as leaf codes (rows × attributes) and k. It returns the class number of each row.
"""

from __future__ import annotations

import numpy as np

from anon_spark.errors import AnonSparkError
from anon_spark.families.mst.kernels.distances import Levels
from anon_spark.kernels.classes import Codes, Ints


def single_rows(codes: Codes, rows: Ints) -> Codes:
    """Distinct tuples (tuples × attributes) as single rows: each tuple is repeated by its number of rows."""
    return np.ascontiguousarray(np.repeat(codes, rows, axis=0))


def check_rows(leaf: Codes, k: int) -> None:
    """Raise if no k-anonymous partition exists."""
    if k < 1:
        raise AnonSparkError(f"k must be at least 1, not {k}.")
    if len(leaf) < k:
        raise AnonSparkError(f"{len(leaf)} rows cannot be {k}-anonymous. Choose k ≤ {len(leaf)}.")


def mean_loss(levels: Levels, leaf: Codes, class_of: Codes) -> float:
    """The mean GLM per cell, 0 to 1: (leaves below the node of a cell - 1) / (leaves - 1).

    The node of a cell is the least common node of its class.
    """
    order = np.argsort(class_of, kind="stable")
    starts = np.flatnonzero(np.diff(class_of[order], prepend=-1))  # where each class begins in that order
    sizes = np.diff(starts, append=class_of.size)
    total = 0.0
    for attribute, (start, width, height) in enumerate(zip(levels.starts, levels.leaves, levels.heights, strict=True)):
        if width == 1:
            continue
        table = levels.codes[start : start + width * (height + 1)].reshape(height + 1, width)
        settled = np.zeros(starts.size, dtype=np.bool_)
        for codes in table:
            members = codes[leaf[order, attribute]]
            agreed = np.minimum.reduceat(members, starts) == np.maximum.reduceat(members, starts)
            below = np.bincount(codes)[members[starts]]
            total += float(((below - 1) * sizes)[agreed & ~settled].sum() / (width - 1))
            settled |= agreed
    return total / leaf.size
