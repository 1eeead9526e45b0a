"""MSTK in one process: tree, split and merge of distinct tuples. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np

from anon_spark.families.mst.kernels.dendrogram import Dendrogram, Groups, Leaves, dendrogram, inconsistent, split
from anon_spark.families.mst.kernels.distances import Levels, generalized, levels_of
from anon_spark.families.mst.kernels.neighbours import Classes
from anon_spark.families.mst.kernels.spanning import Edges, spanning_tree
from anon_spark.families.mst.merge import merge_greedy, merge_in_rounds, take_leftover
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.models import SensitiveColumn
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.hierarchy.values import number_key
from anon_spark.primitives.classes.arrays import ladder_of

LOCAL_MAX = 8_000_000
MERGE_EXACT_MAX = 10_000
MERGE_LOCAL_MAX = 500_000
BLOCK_TUPLES = 4_000

Merge = Literal["auto", "greedy", "rounds"]


@dataclass(frozen=True)
class Settings:
    """Settings of a fit: the guarantee, how small classes are merged, whether duplicates count in τ, refinement.

    One task handles up to `local_max` tuples and `merge_local_max` small classes; the result does not depend on these. It
    depends on `block_tuples`: classes in different blocks do not exchange tuples; above `divided_max` tuples, blocks are coarser.
    """

    k: int
    l: int | None = None  # noqa: E741 - the literature's name
    merge: Merge = "rounds"
    zero_edges: Literal["include", "exclude"] = "include"
    sweeps: int = 0  # of the refinement
    visits: int = 2  # of a class in one sweep
    local_max: int = LOCAL_MAX
    merge_exact_max: int = MERGE_EXACT_MAX
    merge_local_max: int = MERGE_LOCAL_MAX
    block_tuples: int = BLOCK_TUPLES
    divided_max: int = LOCAL_MAX
    budget: int = 0  # rows that may be left out
    least: tuple[int, ...] = ()  # distinct values of each sensitive column in a class, where not all need l
    models: tuple[SensitiveColumn, ...] = ()

    def way(self, small: int) -> Literal["greedy", "rounds"]:
        """How this many small classes are merged."""
        if self.merge == "auto":
            return "greedy" if small <= self.merge_exact_max else "rounds"
        return self.merge

    def is_local(self, small: int) -> bool:
        """Whether one task merges this many small classes; greedy merging cannot be divided."""
        return self.way(small) == "greedy" or small <= self.merge_local_max


class Cut(NamedTuple):
    """The tuples in lexicographic order, the tree over them, and where its recursive cut ended."""

    order: Ints
    codes: Codes
    levels: Levels
    tree: Dendrogram
    groups: Groups
    statistics: dict[str, Any]


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
) -> Partition:
    """Partition distinct tuples (attributes × tuples of leaf codes, in any order) into classes of at least k rows.

    Guarantee: deterministic and independent of the order of tuples; every class has k rows. The caller ensures this for
    the whole table.
    Cost: see the kernels; about 140 bytes per tuple.
    """
    return merge_small(cut_tree(codes, rows, hierarchies, settings), settings)


def cut_tree(
    codes: Codes, rows: Ints, hierarchies: Sequence[Hierarchy], settings: Settings
) -> Cut:
    """Steps 1 and 2: the minimum spanning tree as a dendrogram, and its recursive cut."""
    order = lexicographic(codes, hierarchies)  # from here on a tuple's number is its rank, and the identity of ties
    codes, rows = np.ascontiguousarray(codes[:, order]), rows[order]
    ladder = ladder_of(hierarchies)
    levels = levels_of(ladder)
    started = perf_counter()
    edges = spanning_tree(codes, ladder)
    tree = dendrogram(leaves_of(rows, settings), edges)
    grown = perf_counter()
    groups = split(tree, settings.k)
    statistics = {
        **tree_statistics(rows, edges, levels, settings),
        "kept": int(groups.kept.size),
        "small": int(groups.small.size),
        "identical": int(groups.identical),
        "rows_kept": int(tree.sums.rows[groups.kept].sum()),
        "seconds": {"tree": grown - started, "split": perf_counter() - grown},
    }
    return Cut(order, codes, levels, tree, groups, statistics)


def merge_small(cut: Cut, settings: Settings) -> Partition:
    """Step 3: merge the parts that are too small."""
    started = perf_counter()
    kept, small = (classes_of(cut, nodes) for nodes in (cut.groups.kept, cut.groups.small))
    way = settings.way(small.size.size)
    merge = merge_greedy if way == "greedy" else merge_in_rounds
    merged = merge(small, cut.levels, settings.k)
    classes, number = take_leftover(kept, merged, cut.levels)
    statistics = {
        **cut.statistics,
        "merge": way,
        "rounds": merged.rounds,
        "seconds": {**cut.statistics["seconds"], "merge": perf_counter() - started},
    }
    class_of = np.empty(cut.order.size, dtype=np.int32)
    nodes = np.concatenate([cut.groups.kept, cut.groups.small])
    class_of[cut.order] = class_of_tuple(cut.tree, nodes, number)
    return Partition(class_of, classes.level, classes.leaf, classes.size, statistics)


def ranks_and_heads(cut: Cut) -> tuple[Ints, Ints]:
    """The rank of each tuple, in the order given, and the least rank in its part."""
    nodes = np.concatenate([cut.groups.kept, cut.groups.small])
    rank, head = np.empty(cut.order.size, dtype=np.int64), np.empty(cut.order.size, dtype=np.int64)
    rank[cut.order] = np.arange(cut.order.size)
    head[cut.order] = class_of_tuple(cut.tree, nodes, classes_of(cut, nodes).ident)
    return rank, head


def lexicographic(codes: Codes, hierarchies: Sequence[Hierarchy]) -> Ints:
    """The tuples in the order of their values: numbers numerically, other values by code point, null last."""
    ranks = [leaf_ranks(hierarchy)[codes[at]] for at, hierarchy in enumerate(hierarchies)]
    return np.lexsort(ranks[::-1])


def leaf_ranks(hierarchy: Hierarchy) -> Ints:
    """The rank of each leaf among the leaves."""
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


def leaves_of(rows: Ints, settings: Settings) -> Leaves:
    """The tuples as leaves of the tree. Equal rows are joined by edges of weight 0, which count in τ unless excluded."""
    zero = rows - 1 if settings.zero_edges == "include" else np.zeros_like(rows)
    nothing = np.zeros_like(rows)
    return Leaves(rows, zero, nothing, nothing)


def classes_of(cut: Cut, nodes: Ints) -> Classes:
    """The generalized class of each dendrogram node; its identity is the smallest member."""
    tree = cut.tree
    level, leaf, ident = generalized(cut.levels, cut.codes, tree.order, tree.first[nodes], tree.last[nodes])
    return Classes(level, leaf, tree.sums.rows[nodes], ident)


def class_of_tuple(tree: Dendrogram, nodes: Ints, number: Codes | Ints) -> Codes:
    """The class of each tuple, from the class of its dendrogram node; together the nodes hold all leaves."""
    by_place = np.argsort(tree.first[nodes])
    width = (tree.last - tree.first)[nodes][by_place]
    class_of = np.empty(tree.order.size, dtype=np.int32)
    class_of[tree.order] = np.repeat(number[by_place], width)
    return class_of


def tree_statistics(rows: Ints, edges: Edges, levels: Levels, settings: Settings) -> dict[str, Any]:
    """The histogram of weights, equal rows included, and the threshold τ."""
    zero = int((rows - 1).sum())
    weights, counts = np.unique(edges.weight, return_counts=True)
    histogram = ({0: zero} if zero else {}) | dict(zip(weights.tolist(), counts.tolist(), strict=True))
    return weight_statistics(histogram, int(levels.units[0] * levels.heights[0]), settings.zero_edges == "include")


def weight_statistics(histogram: dict[int, int], whole: int, zero_edges: bool) -> dict[str, Any]:
    """τ of a tree (in HDist, where a whole hierarchy is 1 up and 1 down) from how often each weight occurs."""
    counted = {weight: count for weight, count in histogram.items() if weight or zero_edges}
    number = sum(counted.values())
    total = sum(weight * count for weight, count in counted.items())
    squares = sum(weight * weight * count for weight, count in counted.items())
    variance = (number * squares - total * total) / (number * (number - 1)) if number > 1 else 0.0
    tau = (total / number + sqrt(variance)) / whole if number else 0.0
    positive = [weight for weight in histogram if weight]
    isolates = bool(positive) and inconsistent(min(positive), number, total, squares)
    return {"weights": histogram, "tau": tau, "tau_below_min_weight": isolates}
