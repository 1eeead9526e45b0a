"""MSTK on the distinct tuples that one process holds: tree, split, merge. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from time import perf_counter
from typing import Any, Literal

import numpy as np

from anon_spark.families.mst.merge import merge_greedy, merge_in_rounds, take_leftover
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.dendrogram import Dendrogram, Leaves, dendrogram, inconsistent, split
from anon_spark.kernels.distances import Levels, generalized, levels_of
from anon_spark.kernels.neighbours import Classes
from anon_spark.kernels.spanning import Edges, spanning_tree
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.hierarchy.values import number_key
from anon_spark.primitives.classes.arrays import ladder_of

MERGE_EXACT_MAX = 10_000

Merge = Literal["auto", "greedy", "rounds"]


@dataclass(frozen=True)
class Settings:
    """What decides the partition: the guarantee, how small classes are merged, and whether duplicates count in τ."""

    k: int
    l: int | None = None  # noqa: E741 - the literature's name
    merge: Merge = "auto"
    zero_edges: Literal["include", "exclude"] = "include"
    merge_exact_max: int = MERGE_EXACT_MAX

    def way(self, small: int) -> Literal["greedy", "rounds"]:
        """How this many small classes are merged."""
        if self.merge == "auto":
            return "greedy" if small <= self.merge_exact_max else "rounds"
        return self.merge


@dataclass(frozen=True)
class Partition:
    """Classes of tuples: the class of each tuple, and per class its levels, one member's leaves and its rows."""

    class_of: Codes
    levels: Codes
    leaves: Codes
    sizes: Ints
    statistics: dict[str, Any]


def partition(
    codes: Codes,
    rows: Ints,
    hierarchies: Sequence[Hierarchy],
    settings: Settings,
    values: Codes | None = None,
) -> Partition:
    """Partition distinct tuples (attributes × tuples of leaf codes, in any order) into classes of at least k rows.

    values: up to l distinct sensitive values per tuple and column (tuples × columns × l, -1 for none).
    Guarantee: deterministic and independent of the order of tuples; every class has k rows and, with l, that many
    distinct values in every column. The caller makes sure that the whole table has.
    Cost: see the kernels; about 140 bytes per tuple.
    """
    order = lexicographic(codes, hierarchies)  # from here on a tuple's number is its rank, and the identity of ties
    codes, rows = np.ascontiguousarray(codes[:, order]), rows[order]
    kept_values = np.empty((rows.size, 0, 0), dtype=np.int32) if values is None else values[order]
    ladder = ladder_of(hierarchies)
    levels = levels_of(ladder)
    started = perf_counter()
    # 1. minimum spanning tree, as a dendrogram
    edges = spanning_tree(codes, ladder)
    tree = dendrogram(leaves_of(rows, kept_values, settings), edges)
    grown = perf_counter()
    # 2. recursive cut
    groups = split(tree, settings.k)
    kept, small = (classes_of(tree, nodes, codes, levels, kept_values) for nodes in (groups.kept, groups.small))
    cut = perf_counter()
    # 3. merge what is too small
    way = settings.way(small.size.size)
    merged = merge_greedy(small, levels, settings.k) if way == "greedy" else merge_in_rounds(small, levels, settings.k)
    classes, number = take_leftover(kept, merged, levels)
    statistics = {
        **tree_statistics(rows, edges, levels, settings),
        "kept": int(groups.kept.size),
        "small": int(groups.small.size),
        "identical": int(groups.identical),
        "rows_kept": int(kept.size.sum()),
        "merge": way,
        "rounds": merged.rounds,
        "seconds": {"tree": grown - started, "split": cut - grown, "merge": perf_counter() - cut},
    }
    class_of = np.empty(rows.size, dtype=np.int32)
    nodes = np.concatenate([groups.kept, groups.small])
    class_of[order] = class_of_tuple(tree, nodes, number)
    return Partition(class_of, classes.level, classes.leaf, classes.size, statistics)


def lexicographic(codes: Codes, hierarchies: Sequence[Hierarchy]) -> Ints:
    """The tuples in the order of their values: numbers numerically, other values by code point, null last."""
    ranks = [leaf_ranks(hierarchy)[codes[at]] for at, hierarchy in enumerate(hierarchies)]
    return np.lexsort(ranks[::-1])


def leaf_ranks(hierarchy: Hierarchy) -> Ints:
    """Where each leaf stands among the leaves."""
    numbers = [number_key(key) for key in hierarchy.keys]
    if hierarchy.kind == "bins":
        sorted_leaves = list(range(len(hierarchy.keys)))
    elif all(number is not None for number in numbers):
        sorted_leaves = sorted(range(len(numbers)), key=lambda leaf: (float(str(numbers[leaf])), leaf))
    else:
        sorted_leaves = sorted(range(len(numbers)), key=lambda leaf: hierarchy.keys[leaf])
    ranks = np.arange(hierarchy.leaf_count, dtype=np.int64)
    ranks[sorted_leaves] = np.arange(len(sorted_leaves))
    return ranks


def leaves_of(rows: Ints, values: Codes, settings: Settings) -> Leaves:
    """Equal rows are joined by edges of weight 0, which count in mean and deviation unless they are excluded."""
    zero = rows - 1 if settings.zero_edges == "include" else np.zeros_like(rows)
    nothing = np.zeros_like(rows)
    return Leaves(rows, zero, nothing, nothing, values)


def classes_of(tree: Dendrogram, nodes: Ints, codes: Codes, levels: Levels, values: Codes) -> Classes:
    """The generalized class of each dendrogram node; its identity is the smallest member."""
    level, leaf, ident = generalized(levels, codes, tree.order, tree.first[nodes], tree.last[nodes])
    return Classes(level, leaf, tree.sums.rows[nodes], ident, tree.sums.values[nodes])


def class_of_tuple(tree: Dendrogram, nodes: Ints, number: Codes) -> Codes:
    """The class of each tuple, from the class of the dendrogram node it is in; together the nodes hold all leaves."""
    by_place = np.argsort(tree.first[nodes])
    width = (tree.last - tree.first)[nodes][by_place]
    found = np.empty(tree.order.size, dtype=np.int32)
    found[tree.order] = np.repeat(number[by_place], width)
    return found


def tree_statistics(rows: Ints, edges: Edges, levels: Levels, settings: Settings) -> dict[str, Any]:
    """τ of the whole tree (in HDist, where a whole hierarchy is 1 up and 1 down), and how often each weight occurs."""
    zero = int((rows - 1).sum())
    weights, counts = np.unique(edges.weight, return_counts=True)
    histogram = ({0: zero} if zero else {}) | dict(zip(weights.tolist(), counts.tolist(), strict=True))
    counted = {weight: count for weight, count in histogram.items() if weight or settings.zero_edges == "include"}
    number = sum(counted.values())
    total = sum(weight * count for weight, count in counted.items())
    squares = sum(weight * weight * count for weight, count in counted.items())
    variance = (number * squares - total * total) / (number * (number - 1)) if number > 1 else 0.0
    tau = (total / number + sqrt(variance)) / int(levels.units[0] * levels.heights[0]) if number else 0.0
    isolates = bool(weights.size) and inconsistent(int(weights[0]), number, total, squares)
    return {"weights": histogram, "tau": tau, "tau_below_min_weight": isolates}
