"""Brute force for the lattice family: one node, the whole front, and POkA exactly as its pseudocode stands.

Written from the specification alone, in plain Python with exact fractions, and slow on purpose: it shares nothing with
the package, so that the package can be compared with it. Rows are tuples of leaf values. A level table is a dict from
leaf value to its labels on the levels 0..H; a numeric attribute is a `LevelTable` that also carries interval bounds.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

Leaf = Hashable
Node = tuple[int, ...]
Interval = tuple[Fraction, Fraction]


class LevelTable(dict[Leaf, list[Any]]):
    """Leaf value → labels g0..gH; numeric: `bounds`, leaf value → closed interval on each level (None: a null leaf)."""

    def __init__(self, levels: Mapping[Any, Sequence[Any]], bounds: Mapping[Any, list[Interval | None]] | None = None):
        super().__init__({leaf: list(labels) for leaf, labels in levels.items()})
        self.bounds = bounds


class ClassSize(NamedTuple):
    rows: int
    persons: int  # distinct persons, or rows again when no person ids are given


class Evaluation(NamedTuple):
    k: int
    loss: Fraction
    n_sup: int
    classes: dict[tuple[Any, ...], ClassSize]  # before suppression, by generalized tuple


class Point(NamedTuple):
    node: Node
    k: int
    loss: Fraction


Evaluate = Callable[[Node], tuple[int, Fraction]]


def level_table(hierarchy: Any) -> LevelTable:
    """The level table of a Hierarchy, keyed by its leaf texts (the null leaf by None)."""
    leaves: list[Leaf] = [*hierarchy.keys, *([None] if hierarchy.has_null else [])]
    depth = range(hierarchy.height + 1)
    for level in depth:
        labels = hierarchy.labels[level]
        if len(set(labels)) != len(labels):
            raise ValueError(f"level {level} has {len(labels) - len(set(labels))} labels shared by different codes")
    codes, texts = hierarchy.codes, hierarchy.labels
    levels = {leaf: [texts[at][codes[at][code]] for at in depth] for code, leaf in enumerate(leaves)}
    if hierarchy.bounds is None:
        return LevelTable(levels)

    def interval(level: int, code: int) -> Interval | None:
        low, high = (float(side[codes[level][code]]) for side in hierarchy.bounds[level])
        return None if low != low else (Fraction(repr(low)), Fraction(repr(high)))

    return LevelTable(levels, {leaf: [interval(at, code) for at in depth] for code, leaf in enumerate(leaves)})


def cell_loss(table: Mapping[Any, Sequence[Any]], leaf: Leaf, level: int) -> Fraction:
    """Iyengar's loss of one cell: leaves of the *domain* below the label, or the length of its interval."""
    height = len(table[leaf]) - 1
    bounds = getattr(table, "bounds", None)
    if bounds is not None:
        spans = [spans[height] for spans in bounds.values() if spans[height] is not None]
        domain = max(high for _, high in spans) - min(low for low, _ in spans)
        if level == height:
            return Fraction(int(domain > 0))
        span = bounds[leaf][level]
        return Fraction(0) if span is None or domain == 0 else (span[1] - span[0]) / domain
    below = sum(labels[level] == table[leaf][level] for labels in table.values())
    return Fraction(below - 1, len(table) - 1) if len(table) > 1 else Fraction(0)


def evaluate_node(
    rows: Sequence[tuple[Leaf, ...]],
    level_tables: Sequence[Mapping[Any, Sequence[Any]]],
    node: Node,
    eta: int | None = None,
    loss: str = "glm",
    class_column: Sequence[Hashable] | None = None,
    person: Sequence[Hashable] | None = None,
) -> Evaluation:
    """k, loss and suppressed rows of one node; `class_column` and `person` hold one value per row.

    A class is as large as its distinct persons (rows when `person` is None); suppression and losses count rows.
    GLM and CM are shares in [0, 1], DM is its integer. `eta` counts rows, default a hundredth of them.
    """
    total = len(rows)
    eta = total // 100 if eta is None else eta
    if not 0 <= eta < total:
        raise ValueError(f"eta must be at least 0 and below the {total} rows")
    members = _members(rows, level_tables, node)
    classes = {label: _size(index, person) for label, index in members.items()}
    rows_of_size = Counter[int]()
    for size in classes.values():
        rows_of_size[size.persons] += size.rows
    sizes = sorted(rows_of_size)
    cumulated = itertools.accumulate(rows_of_size[size] for size in sizes)
    k = next(size for size, rows_so_far in zip(sizes, cumulated, strict=True) if rows_so_far > eta)
    kept = [index for label, index in members.items() if classes[label].persons >= k]
    n_sup = total - sum(map(len, kept))
    return Evaluation(k, _loss(rows, level_tables, node, kept, loss, class_column), n_sup, classes)


def curve(
    rows: Sequence[tuple[Leaf, ...]],
    level_tables: Sequence[Mapping[Any, Sequence[Any]]],
    node: Node,
    eta: int,
    loss: str = "glm",
    class_column: Sequence[Hashable] | None = None,
    person: Sequence[Hashable] | None = None,
) -> list[Point]:
    """The node at every single k: the rows of all classes below k are left out, as long as they are at most eta."""
    members = _members(rows, level_tables, node).values()
    points = []
    for k in range(1, len(rows) + 1):
        kept = [index for index in members if _size(index, person).persons >= k]
        if len(rows) - sum(map(len, kept)) <= eta:
            points.append(Point(node, k, _loss(rows, level_tables, node, kept, loss, class_column)))
    return points


def _members(
    rows: Sequence[tuple[Leaf, ...]], level_tables: Sequence[Mapping[Any, Sequence[Any]]], node: Node
) -> dict[tuple[Any, ...], list[int]]:
    """The rows of each class, by generalized tuple."""
    members: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        members[tuple(t[v][at] for t, v, at in zip(level_tables, row, node, strict=True))].append(index)
    return members


def _size(index: Sequence[int], person: Sequence[Hashable] | None) -> ClassSize:
    return ClassSize(len(index), len({person[i] for i in index}) if person is not None else len(index))


def _loss(
    rows: Sequence[tuple[Leaf, ...]],
    level_tables: Sequence[Mapping[Any, Sequence[Any]]],
    node: Node,
    kept: Sequence[Sequence[int]],
    loss: str,
    class_column: Sequence[Hashable] | None,
) -> Fraction:
    """What is lost when the classes `kept` are published on the node and all other rows are suppressed."""
    total = len(rows)
    n_sup = total - sum(map(len, kept))
    if loss == "glm":
        values = [Counter(rows[i][at] for index in kept for i in index) for at in range(len(node))]
        cells = sum(
            (n * cell_loss(table, leaf, level))
            for table, level, counts in zip(level_tables, node, values, strict=True)
            for leaf, n in counts.items()
        )
        return (Fraction(cells) + n_sup * len(node)) / (total * len(node))
    if loss == "dm":
        return Fraction(sum(len(index) ** 2 for index in kept) + total * n_sup)
    if loss == "cm" and class_column is not None:
        minority = sum(len(index) - max(Counter(class_column[i] for i in index).values()) for index in kept)
        return Fraction(n_sup + minority, total)
    raise ValueError("loss must be glm, dm, or cm with a class column")


def lattice_nodes(heights: Sequence[int]) -> list[Node]:
    """All nodes, in lexicographic order."""
    return list(itertools.product(*(range(height + 1) for height in heights)))


def dominates(one: Point, other: Point) -> bool:
    """No worse in both, better in one; a larger k and a smaller loss are better."""
    return (one.k >= other.k and one.loss < other.loss) or (one.k > other.k and one.loss <= other.loss)


def nondominated(points: Iterable[Point], min_k: int = 2) -> list[Point]:
    """The smallest node of every undominated (k, loss) with k ≥ min_k, by decreasing k."""
    smallest: dict[tuple[int, Fraction], Node] = {}
    for point in points:
        value = (point.k, point.loss)
        smallest[value] = min(point.node, smallest.get(value, point.node))
    best = [Point(node, k, loss) for (k, loss), node in smallest.items()]
    front = [p for p in best if p.k >= min_k and not any(dominates(q, p) for q in best)]
    return sorted(front, key=lambda p: -p.k)


def exhaustive_front(heights: Sequence[int], evaluate: Evaluate, min_k: int = 2) -> list[Point]:
    """The true front: every node evaluated. Sorted by (k desc, loss asc) only losses that fall are kept."""
    points = sorted((Point(n, *evaluate(n)) for n in lattice_nodes(heights)), key=lambda p: (-p.k, p.loss, p.node))
    front: list[Point] = []
    for point in points:
        if point.k >= min_k and (not front or point.loss < front[-1].loss):
            front.append(point)
    return front


@dataclass(frozen=True)
class PokaResult:
    visited: list[Point]
    nondominated: list[Point]
    evaluated: set[Node]


def poka(
    heights: Sequence[int],
    evaluate: Evaluate,
    d: int | str | None = None,
    refine: bool = True,
    k_stop: int = 2,
) -> PokaResult:
    """The search, recursively, as the pseudocode stands: P-2 to P-5 and P-9 applied, `refine=False` leaves out P-4."""
    top = tuple(heights)
    bottom = (0,) * len(top)
    cache: dict[Node, tuple[int, Fraction]] = {}

    def seen(node: Node) -> Point:
        if node not in cache:
            cache[node] = evaluate(node)
        return Point(node, *cache[node])

    def below(node: Node) -> list[Node]:
        return [(*node[:i], n - 1, *node[i + 1 :]) for i, n in enumerate(node) if n > 0]

    def above(node: Node) -> list[Node]:
        return [(*node[:i], n + 1, *node[i + 1 :]) for i, n in enumerate(node) if n < top[i]]

    def better(one: Point | None, other: Point | None) -> Point | None:
        known = [p for p in (one, other) if p is not None]
        return min(known, key=lambda p: (-p.k, p.loss, p.node), default=None)

    def same_k(start: Point) -> list[Point]:
        """Everything in SG(start) that is connected to it through nodes of its k, itself included."""
        reached, waiting = {start}, [start]
        while waiting:
            for child in map(seen, below(waiting.pop().node)):
                if child.k == start.k and child not in reached:
                    reached.add(child)
                    waiting.append(child)
        return list(reached)

    def refined(point: Point) -> Point:
        return min(same_k(point), key=lambda p: (p.loss, p.node)) if refine else point

    def depth_of(node: Node) -> int:
        if d == "best":
            return max(1, *node)
        if d == "worst":
            return max(1, sum(node) - min(node))
        return int(d) if d is not None else -(-sum(top) // len(top))

    def search(base: Point, accept: Callable[[Point], bool]) -> Point | None:
        depth = depth_of(base.node)
        depth_memo: dict[Node, Point | None] = {}  # both memos live for one top-level call
        height_memo: dict[tuple[Node, bool], Point | None] = {}

        def distance(node: Node) -> int:
            return sum(base.node) - sum(node)

        def in_sg(node: Node) -> bool:
            return all(n <= b for n, b in zip(node, base.node, strict=True))

        def depth_search(node: Node) -> Point | None:
            if node not in depth_memo:
                best: Point | None = None
                for child in below(node):
                    if distance(child) == depth or child == bottom:
                        use = distance(child) == 1 and accept(seen(child))
                        best = better(best, height_search(child, use))
                    else:
                        best = better(best, depth_search(child))
                depth_memo[node] = best
            return depth_memo[node]

        def height_search(node: Node, use: bool) -> Point | None:
            if (node, use) not in height_memo:
                best = seen(node) if use else None
                for child in above(node):
                    if in_sg(child) and distance(child) > 1:
                        best = better(best, height_search(child, False))
                    elif accept(seen(child)):
                        best = better(best, height_search(child, True))
                height_memo[node, use] = best
            return height_memo[node, use]

        return depth_search(base.node)

    def forced(base: Point) -> Point | None:
        lower: Point | None = None
        for child in map(seen, below(base.node)):
            lower = better(lower, child) if child.k < base.k else lower
        if lower is None:
            for child in (seen(n) for p in same_k(base) for n in below(p.node)):
                lower = better(lower, child) if child.k < base.k else lower
        return lower

    def next_base(base: Point) -> Point | None:
        def lower(point: Point) -> bool:
            return point.k < base.k and point.loss < base.loss

        def not_higher(point: Point) -> bool:
            return point.k < base.k and point.loss <= base.loss

        return search(base, lower) or search(base, not_higher) or forced(base)

    found = [refined(seen(top))]
    while found[-1].k > k_stop:
        step = next_base(found[-1])
        if step is None:
            break
        found.append(refined(step))
    return PokaResult(found, nondominated(found), set(cache))
