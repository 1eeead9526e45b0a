"""The cut of the family mst by the kernels in one piece: what the cut in pieces must give."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from anon_spark.families.mst.kernels.dendrogram import dendrogram, split
from anon_spark.families.mst.kernels.distances import levels_of
from anon_spark.families.mst.kernels.spanning import spanning_tree
from anon_spark.families.mst.partition import Settings, class_of_tuple, leaves_of, lexicographic, tree_statistics
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.tuples import Ladder
from anon_spark.primitives.classes.arrays import ladder_of
from tests.families.mst.tables import Case
from tests.oracle.mst_oracle import Row


class Tuples(NamedTuple):
    """Distinct tuples in lexicographic order."""

    codes: Codes
    rows: Ints
    ladder: Ladder


class Cut(NamedTuple):
    """Of each tuple, in lexicographic order, the rank of the first tuple of its part and whether the part is kept."""

    heads: list[int]
    kept: list[bool]
    statistics: dict[str, Any]


def tuples_of(case: Case) -> Tuples:
    members: dict[Row, list[int]] = defaultdict(list)
    for at, row in enumerate(case.rows):
        members[row].append(at)
    place = [{leaf[0]: code for code, leaf in enumerate(table)} for table in case.tables]
    codes = np.array([[of[row[at]] for row in members] for at, of in enumerate(place)], dtype=np.int32)
    order = lexicographic(codes, case.hierarchies)
    rows = np.array([len(same) for same in members.values()], dtype=np.int64)
    return Tuples(np.ascontiguousarray(codes[:, order]), rows[order], ladder_of(case.hierarchies))


def cut_in_one_piece(tuples: Tuples, settings: Settings) -> Cut:
    edges = spanning_tree(tuples.codes, tuples.ladder)
    tree = dendrogram(leaves_of(tuples.rows, settings), edges)
    groups = split(tree, settings.k)
    nodes = np.concatenate([groups.kept, groups.small])
    part = class_of_tuple(tree, nodes, np.arange(nodes.size, dtype=np.int32))
    heads = [int(np.flatnonzero(part == number)[0]) for number in part]
    statistics = tree_statistics(tuples.rows, edges, levels_of(tuples.ladder), settings) | {
        "kept": groups.kept.size,
        "small": groups.small.size,
        "identical": groups.identical,
        "rows_kept": int(tree.sums.rows[groups.kept].sum()),
    }
    return Cut(heads, (part < groups.kept.size).tolist(), statistics)
