"""What is left of the relations of records after a cut and its disassociations."""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.families.tree.kernels.trees import NONE, Trees
from anon_spark.kernels.classes import Codes


@compiled
def kept_relations(trees: Trees, image: Codes, top: int, published: Trees) -> tuple[int, int]:
    """How many relations of the records are still there in the published ones, and how many there are.

    A relation of a record is a pair of values, one above the other, on one path or several. published: the same records,
    recoded. A relation whose values became one label, or the label of everything, is lost.
    """
    kept, relations = 0, 0
    known = np.zeros(16, dtype=np.int64)
    for record in range(trees.offsets.size - 1):
        begin, count = trees.offsets[record], 0
        for at in range(begin, trees.offsets[record + 1]):
            above = trees.parents[at]
            while above != NONE:
                if count == known.size:
                    known = np.concatenate((known, known))
                known[count] = np.int64(trees.labels[begin + above]) * image.size + trees.labels[at]
                count += 1
                above = trees.parents[begin + above]
        own = np.sort(known[:count])
        for place in range(count):
            if place > 0 and own[place] == own[place - 1]:
                continue
            relations += 1
            upper, lower = image[own[place] // image.size], image[own[place] % image.size]
            kept += upper != top and upper != lower and is_above(published, record, upper, lower)
    return kept, relations


@inner
def is_above(trees: Trees, record: int, upper: int, lower: int) -> bool:
    """Whether a record has a node with the one label above a node with the other."""
    begin = trees.offsets[record]
    for at in range(begin, trees.offsets[record + 1]):
        if trees.labels[at] == lower:
            above = trees.parents[at]
            while above != NONE:
                if trees.labels[begin + above] == upper:
                    return True
                above = trees.parents[begin + above]
    return False
