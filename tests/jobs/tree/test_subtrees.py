"""Frequent subtrees and what a release loses of them, against brute force over label paths: arrays only, no Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.errors import LimitExceeded
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.tree import Forest, NodeType, TreeSchema
from jobs.reproductions.tree import subtrees as kernel
from jobs.reproductions.tree.frequent_subtrees import Subtrees, projection_of
from jobs.reproductions.tree.multi_level import _distances, _Losses
from jobs.reproductions.tree.subtrees import (
    Paths,
    Rows,
    Trie,
    add_losses,
    add_supports,
    frequent_paths,
    frequent_sets,
    longer_paths,
    rows_of,
)
from tests.oracle import tree_example as example
from tests.oracle import tree_oracle as oracle

pytestmark = pytest.mark.long  # tools of benchmarks and methods of papers: nothing that a release depends on

Path = tuple[str, ...]
Tree = frozenset[Path]

# heights 3, 2 and 1; h4 and ds are padded; the last label of each row is the root of its node type
TABLES: dict[str, list[Path]] = {
    "h": [("h1", "ha", "hx", "h"), ("h2", "ha", "hx", "h"), ("h3", "hb", "hx", "h"), ("h4", "h4", "hy", "h")],
    "d": [("d1", "da", "d"), ("d2", "da", "d"), ("d3", "ds", "d"), ("d4", "d4", "d")],
    "t": [("t1", "t"), ("t2", "t")],
}
HEIGHT = 4
CHAIN = {row[0]: row for rows in TABLES.values() for row in rows}
LEVEL = {label: min(row.index(label) for row in CHAIN.values() if label in row) for label in chain(*CHAIN.values())}
TYPE_OF = {label: name for name, rows in TABLES.items() for row in rows for label in row}


def forest() -> Forest:
    names = list(TABLES)
    schema = TreeSchema(tuple(NodeType(name, name, parent) for name, parent in zip(names, [None, *names], strict=False)))
    return Forest.of(schema, {name: Hierarchy.from_levels([(*row[:-1], "*") for row in rows]) for name, rows in TABLES.items()})


FOREST = forest()

# --- brute force ----------------------------------------------------------------------------------------------------------


def closed(paths: Iterable[Path]) -> Tree:
    return frozenset(path[:end] for path in paths for end in range(1, len(path) + 1))


def above(label: str) -> Path:
    """The label and all above it."""
    if label == "*":
        return ("*",)
    row = next(row for row in CHAIN.values() if label in row)
    return (*dict.fromkeys(row[LEVEL[label] :]), "*")


def on_level(label: str, level: int) -> str:
    """The ancestor on a level; above it a label stays, the root of a node type stays on every level."""
    if label == "*" or LEVEL[label] >= level:
        return label
    row = next(row for row in CHAIN.values() if label in row)
    return row[min(level, len(row) - 1)]


def projected(tree: Tree, level: int) -> Tree:
    return frozenset(tuple(on_level(label, level) for label in path) for path in tree)


def subtrees(tree: Tree) -> Iterator[Tree]:
    def parts(base: Path) -> list[Tree]:
        below = [path for path in tree if path[:-1] == base]
        choices = [[frozenset[Path](), *(part | {path} for part in parts(path))] for path in below]
        return [frozenset[Path]().union(*choice) for choice in product(*choices)]

    return (part for part in parts(()) if part)


def frequent(trees: Sequence[Tree], least: int, max_nodes: int = 99) -> dict[Tree, int]:
    found = Counter(part for tree in trees for part in subtrees(tree))
    return {part: rows for part, rows in found.items() if rows >= least and len(part) <= max_nodes}


def relations(tree: Tree) -> set[tuple[str, str]]:
    return {(label, path[-1]) for path in tree for label in path[:-1]}


def distance(part: Tree, level: int, shown: Tree) -> Fraction:
    """dtree of a subtree on a level to one published record."""
    after = projected(shown, level)
    labels = {path[-1] for path in after}

    def image(label: str) -> str | None:
        return next((one for one in above(label) if one in labels), None)

    raised = Fraction(0)
    for path in part:
        where = image(path[-1])
        level_of = HEIGHT if where == "*" else LEVEL[where] if where else None
        raised += 1 if level_of is None else Fraction(max(0, level_of - level), HEIGHT)
    pairs = [(upper, path[-1]) for path in part for upper in path[:-1]]
    broken = sum((image(upper), image(lower)) not in relations(after) for upper, lower in pairs)
    return raised / len(part) / 2 + (Fraction(broken, len(pairs)) / 2 if pairs else 0)


# --- the kernels on lists -------------------------------------------------------------------------------------------------


def coded(trees: Sequence[Tree], forest: Forest) -> tuple[Ints, Codes]:
    """Labels of the paths that no other continues, each path begun by a complement."""
    offsets, codes = [0], list[int]()
    for tree in trees:
        for path in sorted(tree):
            if not any(other[:-1] == path for other in tree):
                numbers = [forest.number(label) for label in path]
                codes += [~numbers[0], *numbers[1:]]
        offsets.append(len(codes))
    return np.array(offsets), np.array(codes, dtype=np.int32)


def mined(
    before: Sequence[Tree], after: Sequence[Tree], least: int, max_nodes: int = 99, forest: Forest = FOREST
) -> tuple[Subtrees, Rows]:
    source, projection = coded(before, forest), projection_of(forest)

    def count_paths(paths: Paths, depth: int) -> tuple[Ints, Ints]:
        keys, rows = np.unique(longer_paths(*source, projection, paths, depth), return_counts=True)
        return keys[rows >= least], rows[rows >= least]

    paths, supports = frequent_paths(projection, count_paths)
    rows = rows_of(*source, *coded(after, forest), projection, paths)

    def count_sets(trie: Trie, last: int) -> Ints:
        counts = np.zeros(trie.items.size, dtype=np.int64)
        add_supports(trie, rows.offsets, rows.items, counts)
        return counts[-last:]

    found = frequent_sets(paths, supports, count_sets, least, max_nodes)
    return Subtrees(paths, found.trie, found.supports, found.is_capped), rows


def lost_in(found: Subtrees, rows: Rows) -> _Losses:
    lost, broken, shown = np.zeros((3, found.supports.size), dtype=np.int64)
    add_losses(found.trie, rows, lost, broken)
    add_supports(found.trie, rows.shown_offsets, rows.shown, shown)
    return _Losses(lost, broken, shown)


def a_tree(draw: Random, labels: dict[str, list[str]], paths: int) -> Tree:
    found = []
    for _ in range(draw.randint(1, paths)):
        path = tuple(draw.choice(labels[name]) for name in TABLES if draw.random() < 0.7)
        found.append(path or (draw.choice(labels["h"]),))
    return closed(found)


LEAVES = {name: [row[0] for row in rows] for name, rows in TABLES.items()}
NODES = {name: sorted(label for label in TYPE_OF if TYPE_OF[label] == name) for name in TABLES}


def published_of(draw: Random, tree: Tree) -> Tree:
    """Some labels raised, each record its own way; some paths gone, some parts moved to the root, some all `*` or nothing."""
    kind = draw.random()
    if kind < 0.1:
        return closed([("*",)]) if kind < 0.05 else frozenset()
    raised = {label: draw.choice(above(label)[:-1]) for path in tree for label in path}
    paths = [tuple(raised[label] for label in path) for path in tree if draw.random() < 0.9]
    return closed(path[draw.randrange(len(path)) :] if draw.random() < 0.2 else path for path in paths)


@given(st.integers(0, 10**6), st.integers(3, 12), st.integers(1, 4))
def test_frequent_subtrees_and_losses(seed: int, records: int, least: int) -> None:
    draw = Random(seed)
    before = [a_tree(draw, LEAVES, 3) for _ in range(records)]
    after = [published_of(draw, tree) if draw.random() < 0.8 else tree for tree in before]
    found, rows = mined(before, after, least)
    expected = {
        (level, part): support
        for level in range(HEIGHT)
        for part, support in frequent([projected(tree, level) for tree in before], least).items()
    }
    assert found.named(FOREST) == expected and not found.capped
    losses = lost_in(found, rows)
    distances, shown = _distances(found, losses, HEIGHT), losses.shown
    for (level, part), away, visible in zip(found.named(FOREST), distances, shown.tolist(), strict=True):
        held = [distance(part, level, to) for tree, to in zip(before, after, strict=True) if part <= projected(tree, level)]
        assert away == pytest.approx(float(sum(held) / len(held)), abs=1e-12)
        assert visible == sum(part <= projected(to, level) for to in after)


@pytest.mark.parametrize("max_nodes", [2, 99])
def test_figure_4(max_nodes: int) -> None:
    """Two relations disassociated, one node type and a half generalized: ML² and dML² of the family's oracle."""
    dgh, minsup = example.DGH, 0.5
    forest = Forest.of(
        TreeSchema(tuple(NodeType(name, name) for name in dgh.tables)),
        {name: Hierarchy.from_levels([(*row[:-1], "*") for row in rows]) for name, rows in dgh.tables.items()},
    )
    before, after = example.RECORDS, example.FIGURE_4_PUBLISHED
    found, rows = mined(before, after, 2, max_nodes, forest)
    losses = lost_in(found, rows)
    kept = int(np.count_nonzero(losses.shown >= 2))
    assert 1 - kept / losses.shown.size == pytest.approx(float(oracle.ml2(before, after, dgh, minsup, max_nodes)), rel=1e-12)
    away = oracle.dml2(before, after, example.FIGURE_4, dgh, minsup, max_nodes)
    assert np.mean(_distances(found, losses, forest.height)) == pytest.approx(float(away), rel=1e-12) and 0 < away < 1
    assert 0 < kept < losses.shown.size and found.capped == (max_nodes == 2)


@pytest.mark.parametrize("max_nodes", [1, 2, 4, 99])
def test_cap(max_nodes: int) -> None:
    draw = Random(5)
    trees = [a_tree(draw, LEAVES, 4) for _ in range(40)]
    found, _ = mined(trees, trees, 4, max_nodes)
    everything, _ = mined(trees, trees, 4)
    largest = max(len(part) for _, part in everything.named(FOREST))
    assert found.named(FOREST) == {
        (level, part): support for (level, part), support in everything.named(FOREST).items() if len(part) <= max_nodes
    }
    assert largest > 4 and found.capped == (max_nodes < largest)


def test_candidates() -> None:
    """Exactly the sets all of whose parts are frequent, each once, on one level."""
    draw, asked = Random(5), Counter[tuple[int, Tree]]()
    trees = [a_tree(draw, LEAVES, 4) for _ in range(40)]
    source, projection = coded(trees, FOREST), projection_of(FOREST)

    def count_paths(paths: Paths, depth: int) -> tuple[Ints, Ints]:
        keys, rows = np.unique(longer_paths(*source, projection, paths, depth), return_counts=True)
        return keys[rows >= 4], rows[rows >= 4]

    paths, supports = frequent_paths(projection, count_paths)
    rows = rows_of(*source, *source, projection, paths)

    def count_sets(trie: Trie, last: int) -> Ints:
        counts = np.zeros(trie.items.size, dtype=np.int64)
        add_supports(trie, rows.offsets, rows.items, counts)
        asked.update([*Subtrees(paths, trie, counts, False).named(FOREST)][-last:])
        return counts[-last:]

    found = frequent_sets(paths, supports, count_sets, 4, 99)
    known = set(Subtrees(paths, found.trie, found.supports, False).named(FOREST))
    single = {(level, path) for level, part in known for path in part}
    expected = set[tuple[int, Tree]]()
    for level, part in known:
        for other, path in single:
            whole = part | {path}
            ends = [end for end in whole if all(longer[:-1] != end for longer in whole)]
            is_closed = len(path) == 1 or path[:-1] in part
            if other == level and path not in part and is_closed and all((level, whole - {end}) in known for end in ends):
                expected.add((level, whole))
    assert set(asked) == expected and set(asked.values()) == {1}
    assert set(asked) > {(level, part) for level, part in known if len(part) > 1}


def test_many_children() -> None:
    """Enough labels below the root that they are looked up by halves, and sets of one size that are adjacent in the trie."""
    draw = Random(7)
    trees = [closed((draw.choice(NODES["h"]), draw.choice(LEAVES["d"])) for _ in range(9)) for _ in range(30)]
    found, _ = mined(trees, trees, 4, 3)
    expected = {
        (level, part): support
        for level in range(HEIGHT)
        for part, support in frequent([projected(tree, level) for tree in trees], 4, 3).items()
    }
    assert len(expected) > 400 and found.named(FOREST) == expected


def test_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "MOST_SETS", 20)
    draw = Random(5)
    trees = [a_tree(draw, LEAVES, 4) for _ in range(40)]
    with pytest.raises(LimitExceeded, match="Raise minsup or lower max_nodes"):
        mined(trees, trees, 4)


def test_nothing_frequent() -> None:
    found, rows = mined([closed([("h1", "d1")])], [frozenset()], 2)
    assert found.named(FOREST) == {} and rows.items.size == 0 and rows.offsets.tolist() == [0] * (HEIGHT + 1)
