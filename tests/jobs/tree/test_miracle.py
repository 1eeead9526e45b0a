"""MiRaCle (reconstructed) against brute force over label paths: arrays only, no Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import product
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.families.tree.kernels.trees import Trees, paths_of, trees_of
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import Forest, NodeType, TreeSchema
from jobs.reproductions.tree.miracle_kernel import (
    EXACT_CHILDREN,
    Clusters,
    arrays_of,
    clustered,
    distances,
    empty_room,
    join,
)

pytestmark = pytest.mark.long  # tools of benchmarks and methods of papers: nothing that a release depends on

Path = tuple[str, ...]
Tree = frozenset[Path]

# h above d and e, d above t; heights 3, 2, 1, 2; d4 is padded
TABLES: dict[str, list[Path]] = {
    "h": [("h1", "ha", "hx", "h"), ("h2", "ha", "hx", "h"), ("h3", "hb", "hx", "h"), ("h4", "hc", "hy", "h")],
    "d": [*((f"d{at}", "da" if at < 3 else "db", "d") for at in range(12) if at != 4), ("d4", "d4", "d")],
    "t": [("t1", "t"), ("t2", "t")],
    "e": [("e1", "ea", "e"), ("e2", "ea", "e"), ("e3", "eb", "e")],
}
PARENTS = {"h": None, "d": "h", "t": "d", "e": "h"}
HEIGHT = 4
ROWS = [row for rows in TABLES.values() for row in rows]
LEVEL = {label: min(row.index(label) for row in ROWS if label in row) for row in ROWS for label in row}
TYPE_OF = {label: name for name, rows in TABLES.items() for row in rows for label in row}
FOREST = Forest.of(
    TreeSchema(tuple(NodeType(name, name, parent) for name, parent in PARENTS.items())),
    {name: Hierarchy.from_levels([(*row[:-1], "*") for row in rows]) for name, rows in TABLES.items()},
)
ARRAYS = arrays_of(FOREST)

# --- brute force ----------------------------------------------------------------------------------------------------------


def closed(paths: Iterable[Path]) -> Tree:
    return frozenset(path[:end] for path in paths for end in range(1, len(path) + 1))


def below(tree: Tree, base: Path) -> list[Path]:
    return sorted(path for path in tree if path[:-1] == base)


def nodes(tree: Tree, base: Path) -> int:
    return sum(path[: len(base)] == base for path in tree)


def common(one: str, other: str) -> str:
    rows = [next(row for row in ROWS if label in row) for label in (one, other)]
    return next(label for label in rows[0][LEVEL[one] :] if label in rows[1][LEVEL[other] :])


def merged(left: Tree, right: Tree, one: Path = (), other: Path = ()) -> tuple[int, list[Path]]:
    """Cost of the join below two nodes, and its paths from there."""
    total, paths = 0, list[Path]()
    mine, yours = below(left, one), below(right, other)
    for name in sorted({TYPE_OF[path[-1]] for path in mine + yours}):
        xs, ys = ([path for path in side if TYPE_OF[path[-1]] == name] for side in (mine, yours))
        pairs = {(x, y): merged(left, right, x, y) for x in xs for y in ys}
        costs = {}
        for (x, y), (cost, _) in pairs.items():
            level = LEVEL[common(x[-1], y[-1])]
            costs[x, y] = cost + 2 * level - LEVEL[x[-1]] - LEVEL[y[-1]]
        chosen = greedy(costs) if max(len(xs), len(ys)) > EXACT_CHILDREN else best(left, right, xs, ys, costs)
        for x, y in chosen:
            label = common(x[-1], y[-1])
            paths += [(label,), *((label, *path) for path in pairs[x, y][1])]
        total += price(left, right, xs, ys, costs, chosen)
    return total, paths


Pairs = list[tuple[Path, Path]]


def price(left: Tree, right: Tree, xs: list[Path], ys: list[Path], costs: dict[tuple[Path, Path], int], chosen: Pairs) -> int:
    gone = [nodes(left, x) for x in xs if x not in {one for one, _ in chosen}]
    gone += [nodes(right, y) for y in ys if y not in {other for _, other in chosen}]
    return sum(costs[pair] for pair in chosen) + HEIGHT * sum(gone)


def best(left: Tree, right: Tree, xs: list[Path], ys: list[Path], costs: dict[tuple[Path, Path], int]) -> Pairs:
    """The first of the cheapest matchings, if a child may stay alone, but that comes last."""
    found: tuple[int, Pairs] | None = None
    for partners in product([*ys, None], repeat=len(xs)):
        taken = [y for y in partners if y is not None]
        if len(set(taken)) == len(taken):
            chosen = [(x, y) for x, y in zip(xs, partners, strict=True) if y is not None]
            cost = price(left, right, xs, ys, costs, chosen)
            if found is None or cost < found[0]:
                found = cost, chosen
    assert found is not None
    return found[1]


def greedy(costs: dict[tuple[Path, Path], int]) -> Pairs:
    chosen: Pairs = []
    for x, y in sorted(costs, key=lambda pair: (costs[pair], pair)):
        if all(x != one and y != other for one, other in chosen):
            chosen.append((x, y))
    return chosen


def apart(left: Tree, right: Tree) -> Fraction:
    total = len(left) + len(right)
    return Fraction(merged(left, right)[0], HEIGHT * total) if total else Fraction(0)


def joined(left: Tree, right: Tree) -> Tree:
    return frozenset(merged(left, right)[1])


class Cluster(NamedTuple):
    members: list[int]
    tree: Tree

    @property
    def head(self) -> int:
        return min(self.members)

    def with_(self, members: Sequence[int], tree: Tree) -> Cluster:
        return Cluster([*self.members, *members], joined(self.tree, tree))


def clusters(
    records: Sequence[Tree], order: Sequence[int], k: int, climit: int, threshold: Fraction
) -> dict[frozenset[int], Tree]:
    opened, done = list[Cluster](), list[Cluster]()
    changed = set[int]()
    for record in order:
        near = min(opened, key=lambda one: (apart(one.tree, records[record]), one.head), default=None)
        if near and (len(opened) == climit or apart(near.tree, records[record]) <= threshold):
            opened.remove(near)
            grown = near.with_([record], records[record])
            (done if len(grown.members) == k else opened).append(grown)
        else:
            opened.append(Cluster([record], records[record]))
    while len(opened) > 1:
        opened.sort(key=lambda one: one.head)
        pairs = [(one, other) for at, one in enumerate(opened) for other in opened[at + 1 :]]
        one, other = min(pairs, key=lambda pair: (apart(pair[0].tree, pair[1].tree), pair[0].head, pair[1].head))
        opened = [left for left in opened if left is not one and left is not other]
        grown = one.with_(other.members, other.tree)
        changed |= set(grown.members)
        (done if len(grown.members) >= k else opened).append(grown)
    if opened:
        near = min(done, key=lambda one: (apart(one.tree, opened[0].tree), one.head))
        done.remove(near)
        done.append(near.with_(opened[0].members, opened[0].tree))
        changed |= set(done[-1].members)
    result = {}
    for one in done:
        tree = one.tree
        if changed & set(one.members):
            first, *others = [record for record in order if record in one.members]
            tree = records[first]
            for record in others:
                tree = joined(tree, records[record])
        result[frozenset(one.members)] = tree
    return result


# --- comparison -----------------------------------------------------------------------------------------------------------


def numbered(records: Sequence[Tree]) -> Trees:
    return trees_of([[tuple(map(FOREST.number, path)) for path in tree] for tree in records])


def named(trees: Trees, record: int) -> Tree:
    return closed(tuple(FOREST.named(path)) for path in paths_of(trees, record))


def a_tree(draw: Random, orders: int = 2, items: int = 3, labels: int = 12) -> Tree:
    found = list[Path]()
    for _ in range(draw.randint(1, orders)):
        top = (draw.choice(TABLES["h"])[0],)
        found.append(top)
        for _ in range(draw.randint(0, items)):
            path = (*top, draw.choice(TABLES["d"][:labels])[0])
            found += [path, *([(*path, draw.choice(TABLES["t"])[0])] if draw.random() < 0.6 else [])]
        found += [(*top, draw.choice(TABLES["e"])[0]) for _ in range(draw.randint(0, 2))]
    return closed(found)


def compared(left: Tree, right: Tree) -> tuple[float, Trees]:
    """The distance of two trees and their join."""
    trees = numbered([left, right])
    room, size = empty_room(trees), trees.sizes
    begins, ones = trees.offsets[:-1].copy(), np.ones(2, dtype=np.int64)
    found = Clusters(trees.labels.copy(), trees.parents.copy(), begins, size, ones, np.arange(2))
    away, nearest = distances(found, np.array([0]), 1, ARRAYS, room)
    assert nearest == 0
    join(found, 0, trees.labels[size[0] :], trees.parents[size[0] :], ARRAYS, room)
    return float(away[0]), Trees.of([0, size[0]], found.labels[: size[0]], found.parents[: size[0]])


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(0, 4))
def test_join_and_distance(seed: int, orders: int, items: int) -> None:
    draw = Random(seed)
    left, right = a_tree(draw, orders, items), a_tree(draw, orders, items)
    for one, other in ((left, right), (left, frozenset[Path]()), (frozenset[Path](), frozenset[Path]()), (left, left)):
        away, found = compared(one, other)
        assert away == float(apart(one, other)) and 0 <= away <= 1
        assert named(found, 0) == joined(one, other)
        again = numbered([named(found, 0)])
        assert found.labels.tolist() == again.labels.tolist() and found.parents.tolist() == again.parents.tolist()


def test_many_children_are_matched_greedily() -> None:
    """The cheapest pairs first, which is not always the best matching."""
    draw, differs = Random(3), 0
    for _ in range(30):
        left, right = (closed(("h1", *path) for path in paths(draw, draw.choice([3, 4, 9, 10]))) for _ in range(2))
        away, found = compared(left, right)
        assert away == float(apart(left, right)) and named(found, 0) == joined(left, right)
        differs += max(len(below(tree, ("h1",))) for tree in (left, right)) > EXACT_CHILDREN
    assert 10 < differs < 30


def paths(draw: Random, number: int) -> list[Path]:
    labels = draw.sample([row[0] for row in TABLES["d"]], number)
    return [(label, draw.choice(["t1", "t2"])) if draw.random() < 0.4 else (label,) for label in labels]


@pytest.mark.parametrize("climit", [2, 5])
@given(st.integers(0, 10**6), st.integers(6, 22), st.integers(2, 4), st.sampled_from([0.0, 0.1, 0.25]))
def test_clusters(climit: int, seed: int, count: int, k: int, threshold: float) -> None:
    draw = Random(seed)
    records = [a_tree(draw, 1, 2, 4) for _ in range(count)]
    order = draw.sample(range(count), count)
    expected = clusters(records, order, k, climit, Fraction(repr(threshold)))
    number, trees = clustered(numbered(records), np.array(order), ARRAYS, k, climit, threshold)
    members: dict[int, set[int]] = {}
    for record, home in enumerate(number.tolist()):
        members.setdefault(home, set()).add(record)
    found = {frozenset(of): named(trees, home) for home, of in members.items()}
    assert found == expected
    assert sorted(members) == list(range(trees.records)) and min(map(len, members.values())) >= k
    for of, tree in found.items():
        assert all(is_truthful(tree, records[record]) for record in of)


def is_truthful(published: Tree, original: Tree) -> bool:
    """Every published path is above one of the record."""

    def covers(above: Path, path: Path) -> bool:
        same = [*map(TYPE_OF.get, above)] == [*map(TYPE_OF.get, path)]
        return same and all(common(up, down) == up for up, down in zip(above, path, strict=True))

    return all(any(covers(above, path) for path in original) for above in published)


def test_a_planted_fault_is_no_truth() -> None:
    assert is_truthful(closed([("ha", "da")]), closed([("h1", "d1", "t1")]))
    assert not is_truthful(closed([("ha", "db")]), closed([("h1", "d1", "t1")]))


def test_joins_in_the_end() -> None:
    """Both ways out happen: two open clusters that become one of k, and a last one that joins a closed one."""
    draw, sizes = Random(1), Counter[int]()
    for count in range(8, 16):
        records = [a_tree(draw, 1, 2, 4) for _ in range(count)]
        number, _ = clustered(numbered(records), np.arange(count), ARRAYS, 3, 4, 0.05)
        sizes.update(Counter(number.tolist()).values())
    assert sizes[3] and sizes[4] and max(sizes) > 4


def test_fewer_than_k_stay_together() -> None:
    number, trees = clustered(numbered([a_tree(Random(1))] * 2), np.arange(2), ARRAYS, 3, 4, 0.05)
    assert number.tolist() == [0, 0] and named(trees, 0) == a_tree(Random(1))
