"""The spanning tree as a single-linkage dendrogram, and MSTK's recursive cut as one walk over it.

Removing all edges heavier than a threshold leaves the largest dendrogram nodes that are no heavier, whatever tree was
built; so the cut depends on weights only, never on ties.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled
from anon_spark.families.mst.kernels.spanning import FAR, Edges
from anon_spark.kernels.classes import Codes, Ints

NOT_CUT = -1


class Leaves(NamedTuple):
    """Sums of each leaf for the walk: its rows, and number, sum and sum of squares of the edges inside it."""

    rows: Ints
    edges: Ints
    total: Ints
    squares: Ints


class Dendrogram(NamedTuple):
    """Leaves 0 … n-1, then one node per edge; the same sums as for leaves, and the leaves of each node as an interval.

    `order` lists the leaves so that those of a node are order[first[node] : last[node]].
    """

    left: Codes
    right: Codes
    weight: Ints  # 0 for leaves
    sums: Leaves
    first: Ints
    last: Ints
    order: Codes
    roots: Codes


class Groups(NamedTuple):
    """The result of the walk: nodes large enough (`kept`) and nodes that must be merged (`small`)."""

    kept: Ints
    small: Ints
    identical: int  # of `kept`: larger than 2k - 1 because all their tuples are equal


def dendrogram(leaves: Leaves, edges: Edges) -> Dendrogram:
    """Build from edges by ascending weight; a forest has several roots. Cost: linear."""
    left, right, weight, rows, counts, total, squares, roots = link(*leaves, *edges)
    first, last, order = lay_out(leaves.rows.size, left, right, roots)
    sums = Leaves(rows, counts, total, squares)
    return Dendrogram(left, right, weight, sums, first, last, order, roots)


def inconsistent(weight: int, edges: int, total: int, squares: int) -> bool:
    """Whether a weight lies above mean + sample standard deviation, decided in integers."""
    above = edges * weight - total
    return above > 0 and above * above * (edges - 1) > edges * (edges * squares - total * total)


def threshold(heaviest: int, edges: int, total: int, squares: int) -> int:
    """The greatest weight that stays when a tree is cut: below the inconsistent ones, else below the heaviest."""
    if not inconsistent(heaviest, edges, total, squares):
        return heaviest - 1
    low, high = 0, heaviest  # weights up to low stay, from high on they are cut
    while high - low > 1:
        middle = (low + high) // 2
        if inconsistent(middle, edges, total, squares):
            high = middle
        else:
            low = middle
    return low


def split(tree: Dendrogram, k: int, start: Ints | None = None) -> Groups:
    """Walk down from the roots, cutting every subtree of at least 2k rows until its parts are small or identical.

    A subtree with fewer than k rows must be merged. With `start` the walk begins at those nodes.
    Cost: every node once; one threshold in exact integers per subtree that is cut.
    """
    kept: list[Ints] = []
    small: list[Ints] = []
    identical = 0
    stack = [tree.roots.astype(np.int64) if start is None else start]
    while stack:
        fine, poor, large, same = classified(stack.pop(), k, tree.sums)
        kept.append(fine)
        small.append(poor)
        identical += same
        stack.extend(components(tree.left, tree.right, tree.weight, node, heaviest_kept(tree, node)) for node in large)
    return Groups(np.concatenate(kept), np.concatenate(small), identical)


def split_above(tree: Dendrogram, k: int) -> tuple[Groups, Ints]:
    """The same walk over a tree whose leaves are trees: a leaf that is cut off is not judged here.

    Returns the groups of several leaves, and for every other leaf the greatest weight that stays inside it; NOT_CUT for
    the leaves of groups.
    """
    kept: list[Ints] = []
    small: list[Ints] = []
    stays = np.full(tree.order.size, NOT_CUT, dtype=np.int64)
    stack = [(tree.roots.astype(np.int64), int(FAR))]
    while stack:
        nodes, heaviest = stack.pop()
        alone = nodes < stays.size
        stays[nodes[alone]] = heaviest
        fine, poor, large, _ = classified(nodes[~alone], k, tree.sums)
        kept.append(fine)
        small.append(poor)
        for node in large:
            heaviest = heaviest_kept(tree, node)
            stack.append((components(tree.left, tree.right, tree.weight, node, heaviest), heaviest))
    return Groups(np.concatenate(kept), np.concatenate(small), 0), stays


def heaviest_kept(tree: Dendrogram, node: int) -> int:
    """The threshold of a subtree, from its own sums."""
    numbers = (int(sums[node]) for sums in (tree.sums.edges, tree.sums.total, tree.sums.squares))
    return threshold(int(tree.weight[node]), *numbers)


def members_of(tree: Dendrogram, nodes: Ints) -> tuple[Codes, Ints]:
    """The leaves of the nodes, one node after the other, and where each node's begin."""
    width = (tree.last - tree.first)[nodes]
    begin = np.cumsum(width) - width
    return tree.order[np.arange(width.sum()) + np.repeat(tree.first[nodes] - begin, width)], begin


def links(tree: Dendrogram) -> Ints:
    """The tree as a chain: for the leaves in `order`, the weight at which each is joined with the one before it, or 0.

    The chain has the same weights, and removing the heavy ones leaves the same parts.
    """
    weight = np.zeros(tree.order.size, dtype=np.int64)
    inner = np.arange(tree.order.size, tree.weight.size)
    weight[tree.first[tree.right[inner]]] = tree.weight[inner]
    return weight


def chain(weight: Ints) -> Edges:
    """The edges of a chain, by ascending weight."""
    joined = np.flatnonzero(weight)
    by_weight = joined[np.argsort(weight[joined], kind="stable")].astype(np.int32)
    return Edges(by_weight - 1, by_weight, weight[by_weight])


@compiled
def link(
    leaf_rows: Ints,
    leaf_edges: Ints,
    leaf_total: Ints,
    leaf_squares: Ints,
    edge_left: Codes,
    edge_right: Codes,
    edge_weight: Ints,
) -> tuple[Codes, Codes, Ints, Ints, Ints, Ints, Ints, Codes]:
    """One node per edge, its sums added up from its two parts."""
    leaves, nodes = leaf_rows.size, leaf_rows.size + edge_left.size
    left, right = np.full(nodes, -1, dtype=np.int32), np.full(nodes, -1, dtype=np.int32)
    weight = np.zeros(nodes, dtype=np.int64)
    rows, counts = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    total, squares = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    rows[:leaves], counts[:leaves], total[:leaves], squares[:leaves] = leaf_rows, leaf_edges, leaf_total, leaf_squares
    parent = np.arange(nodes).astype(np.int32)
    for edge in range(edge_left.size):
        node = leaves + edge
        a, b = edge_left[edge], edge_right[edge]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        parent[a], parent[b] = node, node
        w = edge_weight[edge]
        left[node], right[node], weight[node] = a, b, w
        rows[node] = rows[a] + rows[b]
        counts[node] = counts[a] + counts[b] + 1
        total[node] = total[a] + total[b] + w
        squares[node] = squares[a] + squares[b] + w * w
    root_count = 0
    roots = np.empty(nodes, dtype=np.int32)
    for node in range(nodes):
        if parent[node] == node:
            roots[root_count] = node
            root_count += 1
    return left, right, weight, rows, counts, total, squares, roots[:root_count]


@compiled
def lay_out(leaves: int, left: Codes, right: Codes, roots: Codes) -> tuple[Ints, Ints, Codes]:
    """The interval of leaves of every node, from the roots down."""
    nodes = left.size
    width = np.ones(nodes, dtype=np.int64)
    for node in range(leaves, nodes):
        width[node] = width[left[node]] + width[right[node]]
    first = np.zeros(nodes, dtype=np.int64)
    position = 0
    for at in range(roots.size):
        first[roots[at]] = position
        position += width[roots[at]]
    for node in range(nodes - 1, leaves - 1, -1):
        first[left[node]] = first[node]
        first[right[node]] = first[node] + width[left[node]]
    order = np.empty(leaves, dtype=np.int32)
    for leaf in range(leaves):
        order[first[leaf]] = leaf
    return first, first + width, order


@compiled
def classified(nodes: Ints, k: int, sums: Leaves) -> tuple[Ints, Ints, Ints, int]:
    """Nodes that are classes, that are too small, and that must be cut; and how many classes are identical rows."""
    kept, small, large = np.empty_like(nodes), np.empty_like(nodes), np.empty_like(nodes)
    kept_count, small_count, large_count, identical = 0, 0, 0, 0
    for position in range(nodes.size):
        node = nodes[position]
        if sums.rows[node] < k:
            small[small_count] = node
            small_count += 1
        elif sums.rows[node] < 2 * k or sums.total[node] == 0:
            kept[kept_count] = node
            kept_count += 1
            identical += sums.rows[node] >= 2 * k
        else:
            large[large_count] = node
            large_count += 1
    return kept[:kept_count], small[:small_count], large[:large_count], identical


@compiled
def components(left: Codes, right: Codes, weight: Ints, node: int, heaviest: int) -> Ints:
    """The parts of a node when all edges above `heaviest` are removed."""
    parts = np.empty(16, dtype=np.int64)
    count = 0
    stack = np.empty(16, dtype=np.int64)
    stack[0], depth = node, 1
    while depth > 0:
        depth -= 1
        at = stack[depth]
        if weight[at] <= heaviest:  # leaves weigh 0
            if count == parts.size:
                parts = np.concatenate((parts, np.empty_like(parts)))
            parts[count] = at
            count += 1
            continue
        if depth + 2 > stack.size:
            stack = np.concatenate((stack, np.empty_like(stack)))
        stack[depth], stack[depth + 1] = left[at], right[at]
        depth += 2
    return parts[:count]
