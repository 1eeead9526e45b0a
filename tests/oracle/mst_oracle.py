"""Brute force for the family mst: spanning tree, recursive cut and both ways of merging, exactly as the rules stand.

Written from the specification alone and slow on purpose: it shares nothing with the package. A level table is a list of
tuples (value, g1, …, '*'), a row a tuple of leaf values that sort as their ids do (numbers numerically, texts by code
point). Distances are integers over the least common multiple of the heights. What Adult needs faster has a NumPy twin.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import lcm, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = tuple[Any, ...]
LevelTable = Sequence[tuple[Any, ...]]
Levels = tuple[int, ...]  # one level per attribute
Edge = tuple[int, int, int]  # weight, two rows
Spans = Mapping[Any, tuple[int, int]]  # label of a numeric attribute → its closed interval; a leaf has length 0
Ints = NDArray[np.int64]


# --- §2: level tables and distances --------------------------------------------------------------------------------


class Trees:
    """The level tables of all attributes."""

    def __init__(self, tables: Sequence[LevelTable]) -> None:
        self.paths = [{row[0]: row for row in table} for table in tables]
        self.heights = tuple(len(table[0]) - 1 for table in tables)
        self.scale = lcm(*self.heights)  # Λ
        self.units = [self.scale // height for height in self.heights]
        for paths, height in zip(self.paths, self.heights, strict=True):
            assert height >= 1 and all(len(path) == height + 1 and path[-1] == "*" for path in paths.values())

    def common_levels(self, one: Row, other: Row) -> Levels:
        """Per attribute the smallest level at which the two values agree."""
        return tuple(
            next(level for level, pair in enumerate(zip(paths[u], paths[v], strict=True)) if pair[0] == pair[1])
            for paths, u, v in zip(self.paths, one, other, strict=True)
        )

    def g(self, levels: Levels) -> int:
        """How general a node is: the GE from a leaf tuple, times Λ."""
        return sum(level * unit for level, unit in zip(levels, self.units, strict=True))

    def weight(self, one: Row, other: Row) -> int:
        """HDist of two leaf tuples, times Λ."""
        return 2 * self.g(self.common_levels(one, other))

    def hdist(self, one: Row, other: Row) -> Fraction:
        return Fraction(self.weight(one, other), self.scale)

    def ge(self, below: Levels, above: Levels) -> Fraction:
        return Fraction(self.g(above) - self.g(below), self.scale)

    def generalize(self, row: Row, levels: Levels) -> Row:
        return tuple(paths[value][level] for paths, value, level in zip(self.paths, row, levels, strict=True))

    def common_tables(self) -> list[Ints]:
        """Per attribute the common level of every two leaves, in the order of the level table."""
        tables = []
        for paths in self.paths:
            labels = [list(level) for level in zip(*paths.values(), strict=True)]
            codes = np.array([[labels[at].index(label) for label in level] for at, level in enumerate(labels)])
            agree = codes[:, :, None] == codes[:, None, :]
            tables.append(agree.argmax(axis=0))
        return tables

    def leaf_codes(self, rows: Sequence[Row]) -> Ints:
        """attributes × rows: where in its level table each value stands."""
        places = [{leaf: at for at, leaf in enumerate(paths)} for paths in self.paths]
        return np.array([[place[row[at]] for row in rows] for at, place in enumerate(places)], dtype=np.int64)


@dataclass(frozen=True)
class Group:
    """A class: its distinct tuples, its rows, the smallest id of its tuples, GenClass."""

    tuples: frozenset[Row]
    rows: int
    id: int
    levels: Levels

    @property
    def leaf(self) -> Row:
        return next(iter(self.tuples))


def gen_class(tuples: Iterable[Row], trees: Trees) -> Levels:
    """GenClass: per attribute the smallest level at which all tuples agree."""
    first, *others = tuples
    levels = [trees.common_levels(first, other) for other in others]
    return tuple(max(column) for column in zip(*levels, strict=True)) if levels else (0,) * len(first)


def join(one: Group, other: Group, trees: Trees) -> Levels:
    """Levels of the closest common generalization of two representatives."""
    between = trees.common_levels(one.leaf, other.leaf)
    return tuple(max(levels) for levels in zip(one.levels, other.levels, between, strict=True))


def cdist(one: Group, other: Group, trees: Trees) -> int:
    """CDist, times Λ."""
    above = trees.g(join(one, other, trees))
    return one.rows * (above - trees.g(one.levels)) + other.rows * (above - trees.g(other.levels))


def union(one: Group, other: Group, trees: Trees) -> Group:
    levels = join(one, other, trees)
    return Group(one.tuples | other.tuples, one.rows + other.rows, min(one.id, other.id), levels)


# --- spanning trees ------------------------------------------------------------------------------------------------


def kruskal(rows: Sequence[Row], trees: Trees) -> list[Edge]:
    """A minimum spanning tree of the complete graph over all rows, duplicates included."""
    found, tree_of = [], list(range(len(rows)))
    edges = sorted((trees.weight(rows[i], rows[j]), i, j) for i, j in combinations(range(len(rows)), 2))
    for weight, i, j in edges:
        if tree_of[i] != tree_of[j]:
            found.append((weight, i, j))
            old, new = tree_of[j], tree_of[i]
            tree_of = [new if tree == old else tree for tree in tree_of]
    return found


def prim(rows: Sequence[Row], trees: Trees) -> list[Edge]:
    """The same for many rows: Prim over the distinct tuples, each copy hangs on the first one by an edge of weight 0."""
    first: dict[Row, int] = {}
    copies = [(0, first.setdefault(row, at), at) for at, row in enumerate(rows) if first.setdefault(row, at) != at]
    where, codes = list(first.values()), trees.leaf_codes(list(first))
    tables = [2 * unit * common for unit, common in zip(trees.units, trees.common_tables(), strict=True)]
    nearest, parent = np.full(len(first), np.iinfo(np.int64).max), np.zeros(len(first), np.int64)
    outside = np.ones(len(first), bool)
    found, current = [], 0
    for _ in range(len(first) - 1):
        outside[current] = False
        weight = np.sum([table[code[current]][code] for table, code in zip(tables, codes, strict=True)], axis=0)
        closer = outside & (weight < nearest)
        nearest[closer], parent[closer] = weight[closer], current
        current = int(np.where(outside, nearest, np.iinfo(np.int64).max).argmin())
        found.append((int(nearest[current]), where[int(parent[current])], where[current]))
    return found + copies


# --- §2: inflexion threshold, in exact numbers -----------------------------------------------------------------------


def spread(weights: Iterable[int]) -> tuple[Fraction, Fraction]:
    """Mean and *sample* variance."""
    count = Counter(weights)
    edges = sum(count.values())
    mean = Fraction(sum(weight * times for weight, times in count.items()), edges)
    squares = sum(((weight - mean) * (weight - mean) * times for weight, times in count.items()), Fraction(0))
    return mean, squares / max(edges - 1, 1)


def inconsistent(weights: Sequence[int]) -> set[int]:
    """The weights that lie strictly above mean + standard deviation; no square root is taken."""
    mean, variance = spread(weights)
    return {weight for weight in weights if weight > mean and (weight - mean) ** 2 > variance}


def tau(weights: Sequence[int], trees: Trees) -> float:
    """The threshold as a distance."""
    mean, variance = spread(weights)
    return (float(mean) + sqrt(variance)) / trees.scale


# --- §3: split -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    """What split leaves: G and G1, and how many of G are oversize classes of identical rows."""

    kept: list[Group]
    small: list[Group]
    identical: int


def components(members: Sequence[int], edges: Sequence[Edge]) -> Iterator[tuple[list[int], list[Edge]]]:
    """Connected components with the edges inside them."""
    neighbours: dict[int, list[int]] = defaultdict(list)
    for _, i, j in edges:
        neighbours[i].append(j)
        neighbours[j].append(i)
    part_of: dict[int, int] = {}
    for start in members:
        if start not in part_of:
            part_of[start], waiting = start, [start]
            while waiting:
                for row in neighbours[waiting.pop()]:
                    if row not in part_of:
                        part_of[row] = start
                        waiting.append(row)
    parts: dict[int, tuple[list[int], list[Edge]]] = {start: ([], []) for start in dict.fromkeys(part_of.values())}
    for row in members:
        parts[part_of[row]][0].append(row)
    for edge in edges:
        parts[part_of[edge[1]]][1].append(edge)
    yield from parts.values()


def split(
    rows: Sequence[Row],
    edges: Sequence[Edge],
    trees: Trees,
    k: int,
    zero_edges: str = "include",
) -> Cut:
    """Cut the tree recursively."""
    rank = {row: at for at, row in enumerate(sorted(set(rows)))}
    kept, small, identical = list[Group](), list[Group](), list[Group]()

    def group(members: Sequence[int]) -> Group:
        tuples = frozenset(rows[at] for at in members)
        return Group(tuples, len(members), min(rank[row] for row in tuples), gen_class(tuples, trees))

    def visit(members: Sequence[int], inside: Sequence[Edge]) -> None:
        found = group(members)
        positive = [weight for weight, _, _ in inside if weight > 0]
        if len(members) < k:
            small.append(found)
        elif len(members) <= 2 * k - 1:
            kept.append(found)
        elif not positive:
            kept.append(found)
            identical.append(found)
        else:
            weights = positive if zero_edges == "exclude" else [weight for weight, _, _ in inside]
            heavy = inconsistent(weights) or {max(weights)}
            for part in components(members, [edge for edge in inside if edge[0] not in heavy]):
                visit(*part)

    visit(range(len(rows)), edges)
    return Cut(kept, small, len(identical))


# --- §3: merge, and M-9 -------------------------------------------------------------------------------------------------

Nearest = Callable[[Sequence[Group], Trees], list[tuple[int, Levels]]]


def merge_greedy(small: Sequence[Group], trees: Trees, k: int) -> tuple[list[Group], list[Group]]:
    """G2 and what is left of G1 (at most one class): the nearest pair is merged until none is left."""
    active, done = list(small), list[Group]()

    def order(pair: tuple[Group, Group]) -> tuple[int, int, int, int]:
        a, b = pair
        return cdist(a, b, trees), a.rows + b.rows, min(a.id, b.id), max(a.id, b.id)

    while len(active) >= 2:
        a, b = min(combinations(active, 2), key=order)
        active = [group for group in active if group is not a and group is not b]
        merged = union(a, b, trees)
        (done if merged.rows >= k else active).append(merged)
    return done, active


def nearest_neighbours(active: Sequence[Group], trees: Trees) -> list[tuple[int, Levels]]:
    """D(a) and v_a of every class: the join with a nearest class, the first such in the order (g, lexicographic).

    Only joins attain D(a): above its join with b, a node costs a more and b no less.
    """
    found = []
    for a in active:
        joins = [(cdist(a, b, trees), trees.g(join(a, b, trees)), join(a, b, trees)) for b in active if b is not a]
        distance, _, levels = min(joins)
        found.append((distance, levels))
    return found


def merge_rounds(
    small: Sequence[Group],
    trees: Trees,
    k: int,
    nearest: Nearest = nearest_neighbours,
) -> tuple[list[Group], list[Group], int]:
    """G2, what is left of G1, and the number of rounds."""
    active, done, rounds = list(small), list[Group](), 0
    while len(active) >= 2:
        rounds += 1
        buckets: dict[tuple[Levels, Row], list[tuple[int, int, int, int, Group]]] = defaultdict(list)
        for a, (distance, levels) in zip(active, nearest(active, trees), strict=True):
            val = a.rows * (trees.g(levels) - trees.g(a.levels))
            buckets[levels, trees.generalize(a.leaf, levels)].append((val, a.rows, a.id, distance, a))
        waiting, active = list[Group](), list[Group]()
        for bucket in buckets.values():
            queue = sorted(bucket, key=lambda entry: entry[:3])
            while queue:
                val, _, _, distance, a = queue.pop(0)
                if queue and val + queue[0][0] == distance == queue[0][3]:
                    merged = union(a, queue.pop(0)[4], trees)
                    (done if merged.rows >= k else active).append(merged)
                else:
                    waiting.append(a)
        assert len(waiting) < sum(map(len, buckets.values())), "at least one pair per round"
        active += waiting
    return done, active, rounds


def absorb(valid: Sequence[Group], left: Sequence[Group], trees: Trees) -> list[Group]:
    """M-7: the one class that is left joins the nearest valid one."""
    if not left:
        return list(valid)
    (x,) = left
    y = min(valid, key=lambda group: (cdist(group, x, trees), group.rows, group.id))
    return [union(y, x, trees) if group is y else group for group in valid]


@dataclass(frozen=True)
class Result:
    cut: Cut
    weights: list[int]
    classes: list[Group]
    rounds: int | None


def mstk(
    rows: Sequence[Row],
    tables: Sequence[LevelTable],
    k: int,
    merge: str = "greedy",
    zero_edges: str = "include",
) -> Result:
    """The whole algorithm, by the slow functions only (a spanning tree by Kruskal over all pairs of rows)."""
    if k < 2 or len(rows) < k:
        raise ValueError("k must be at least 2 and at most the number of rows")
    trees = Trees(tables)
    edges = kruskal(rows, trees)
    cut = split(rows, edges, trees, k, zero_edges)
    rounds = None
    if merge == "greedy":
        done, left = merge_greedy(cut.small, trees, k)
    else:
        done, left, rounds = merge_rounds(cut.small, trees, k)
    return Result(cut, [weight for weight, _, _ in edges], absorb([*cut.kept, *done], left, trees), rounds)


# --- the same at the size of Adult ----------------------------------------------------------------------------------------


class Field:
    """Classes as arrays: distances and joins from one class to all others at once."""

    def __init__(self, groups: Sequence[Group], trees: Trees) -> None:
        self.units = np.array(trees.units)
        self.common = trees.common_tables()
        self.leaf = trees.leaf_codes([group.leaf for group in groups])
        self.levels = np.array([group.levels for group in groups]).T.copy()
        self.rows = np.array([group.rows for group in groups])
        self.ids = np.array([group.id for group in groups])
        self.g = self.units @ self.levels

    def joins(self, a: int) -> Ints:
        between = np.stack([table[leaf[a]][leaf] for table, leaf in zip(self.common, self.leaf, strict=True)])
        joins: Ints = np.maximum(np.maximum(between, self.levels), self.levels[:, a, None])
        return joins

    def cdist(self, a: int, joins: Ints) -> Ints:
        above = self.units @ joins
        distance: Ints = self.rows[a] * (above - self.g[a]) + self.rows * (above - self.g)
        return distance

    def put(self, a: int, group: Group) -> None:
        """The class of slot a has grown; its leaf still is one of its leaves."""
        self.levels[:, a], self.rows[a], self.ids[a] = group.levels, group.rows, group.id
        self.g[a] = self.units @ self.levels[:, a]


def nearest_by_array(active: Sequence[Group], trees: Trees) -> list[tuple[int, Levels]]:
    """`nearest_neighbours`, vectorized."""
    field, found = Field(active, trees), []
    for a in range(len(active)):
        joins = field.joins(a)
        distance = field.cdist(a, joins)
        distance[a] = np.iinfo(np.int64).max
        least = int(distance.min())
        nodes = {tuple(map(int, node)) for node in joins[:, distance == least].T}
        found.append((least, min(nodes, key=lambda node: (trees.g(node), node))))
    return found


def greedy_by_array(small: Sequence[Group], trees: Trees, k: int) -> tuple[list[Group], list[Group]]:
    """`merge_greedy`, with the best partner of every class remembered and looked up anew when that partner is gone."""
    groups, done = list(small), list[Group]()
    if len(groups) < 2:
        return done, groups
    field, never = Field(groups, trees), np.iinfo(np.int64).max
    alive = np.ones(len(groups), bool)
    sizes, ids = 2 * max(2 * k, int(field.rows.max())) + 1, int(field.ids.max()) + 1
    assert 2 * sizes * field.units.sum() * max(trees.heights) * sizes * ids**2 < never

    def order(a: int) -> Ints:
        """(CDist, rows, smaller id, larger id) of all pairs with a as one integer."""
        key: Ints = field.cdist(a, field.joins(a)) * sizes + field.rows + field.rows[a]
        key = (key * ids + np.minimum(field.ids, field.ids[a])) * ids + np.maximum(field.ids, field.ids[a])
        key[~alive] = key[a] = never
        return key

    best, partner = np.full(len(groups), never), np.full(len(groups), -1)

    def look(a: int) -> None:
        key = order(a)
        partner[a] = key.argmin()
        best[a] = key[partner[a]]

    for a in range(len(groups)):
        look(a)
    while alive.sum() >= 2:
        a = int(best.argmin())
        b = int(partner[a])
        merged = union(groups[a], groups[b], trees)
        alive[b], best[b] = False, never
        stale = np.flatnonzero(alive & ((partner == a) | (partner == b)))
        if merged.rows >= k:
            alive[a], best[a] = False, never
            done.append(merged)
        else:
            groups[a] = merged
            field.put(a, merged)
            key = order(a)
            closer = alive & (key < best)
            best[closer], partner[closer] = key[closer], a
            look(a)
        for other in stale:
            if alive[other]:
                look(int(other))
    return done, [groups[a] for a in np.flatnonzero(alive)]


# --- metrics.md §3: what is published -------------------------------------------------------------------------------------


Published = Iterable[tuple[Row, Levels, int]]  # a leaf tuple, its levels, how many rows


def published(groups: Iterable[Group]) -> list[tuple[Row, Levels, int]]:
    return [(group.leaf, group.levels, group.rows) for group in groups]


def equivalence_classes(classes: Published, trees: Trees) -> Counter[Row]:
    """Rows of each published tuple; two classes that received the same labels are one."""
    size = Counter[Row]()
    for leaf, levels, rows in classes:
        size[trees.generalize(leaf, levels)] += rows
    return size


def discernibility(sizes: Mapping[Row, int]) -> int:
    return sum(rows**2 for rows in sizes.values())


def average_class_size(sizes: Mapping[Row, int], k: int) -> Fraction:
    return Fraction(sum(sizes.values()), len(sizes) * k)


def information_loss(classes: Published, trees: Trees, spans: Sequence[Spans | None]) -> Fraction:
    """IL: the length of the published interval, or the leaves beside the first over all leaves; mean over rows."""
    lost, total = Fraction(0), 0
    losses = [cell_losses(trees, at, span) for at, span in enumerate(spans)]
    for leaf, levels, rows in classes:
        lost += rows * sum(loss[cell] for loss, cell in zip(losses, zip(leaf, levels, strict=True), strict=True))
        total += rows
    return lost / total


def cell_losses(trees: Trees, attribute: int, span: Spans | None) -> dict[tuple[Any, int], Fraction]:
    """The loss of every (leaf, level) of one attribute."""
    paths = trees.paths[attribute]
    if span is None:
        below = [Counter(path[level] for path in paths.values()) for level in range(trees.heights[attribute] + 1)]
        return {
            (leaf, at): Fraction(below[at][label] - 1, len(paths))
            for leaf, path in paths.items()
            for at, label in enumerate(path)
        }
    low, high = span["*"]

    def length(label: Any) -> int:
        return span[label][1] - span[label][0]

    return {
        (leaf, at): Fraction(length(label) if at else 0, high - low)
        for leaf, path in paths.items()
        for at, label in enumerate(path)
    }


# --- §6: the full-domain opponent -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FullDomain:
    node: Levels
    k: int
    loss: Fraction
    dm: int
    classes: int


def full_domain(rows: Sequence[Row], trees: Trees, spans: Sequence[Spans | None]) -> list[FullDomain]:
    """Every node of the lattice without suppression: the k it reaches, IL, DM, equivalence classes."""
    counted = Counter(rows)
    count = np.array(list(counted.values()))
    columns = []  # attribute, level → codes of the distinct tuples
    for at, paths in enumerate(trees.paths):
        tables = []
        for level in range(trees.heights[at] + 1):
            code = {label: number for number, label in enumerate(dict.fromkeys(path[level] for path in paths.values()))}
            tables.append((np.array([code[paths[row[at]][level]] for row in counted]), len(code)))
        columns.append(tables)
    marginal = []
    for at, span in enumerate(spans):
        losses, values = cell_losses(trees, at, span), Counter(row[at] for row in rows)
        levels = range(trees.heights[at] + 1)
        marginal.append(
            [sum((losses[value, level] * n for value, n in values.items()), Fraction(0)) for level in levels]
        )
    found = []
    for node in product(*(range(height + 1) for height in trees.heights)):
        key = np.zeros(len(count), np.int64)
        for tables, level in zip(columns, node, strict=True):
            codes, cardinality = tables[level]
            key = key * cardinality + codes
        _, class_of = np.unique(key, return_inverse=True)
        size = np.bincount(class_of, count).astype(np.int64)
        loss = sum((of[level] for of, level in zip(marginal, node, strict=True)), Fraction(0)) / len(rows)
        found.append(FullDomain(node, int(size.min()), loss, int((size**2).sum()), len(size)))
    return found
