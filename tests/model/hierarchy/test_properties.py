"""Random trees: whatever is built is nested, consistent, monotone and survives storage."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.model.hierarchy import Hierarchy, canonical_number


@st.composite
def forests(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Edges of a random tree below '*': node n hangs below an earlier node."""
    size = draw(st.integers(1, 30))
    parents = [draw(st.integers(-1, number - 1)) for number in range(size)]
    return [(f"n{child}", "*" if parent < 0 else f"n{parent}") for child, parent in enumerate(parents)]


def leaf_sets(edges: list[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """Leaves below each node, by brute force."""
    parents = {parent for _, parent in edges}
    above = dict(edges)
    found: dict[str, set[str]] = {}
    for leaf in (child for child, _ in edges if child not in parents):
        here = leaf
        found.setdefault(here, set()).add(leaf)
        while here in above:
            here = above[here]
            found.setdefault(here, set()).add(leaf)
    return {node: frozenset(leaves) for node, leaves in found.items()}


def assert_sound(hierarchy: Hierarchy) -> None:
    top = hierarchy.height
    assert (hierarchy.codes[0] == np.arange(hierarchy.leaf_count)).all()
    assert (hierarchy.codes[top] == 0).all()
    assert hierarchy.labels[top] == ("*",)
    for level in range(top + 1):
        assert sorted(set(hierarchy.codes[level].tolist())) == list(range(hierarchy.cardinality(level)))
        assert len(set(hierarchy.labels[level])) == hierarchy.cardinality(level)
        assert (hierarchy.weights[level] >= 0).all()
        assert (hierarchy.weights[level] <= hierarchy.weight_total).all()
    for level in range(top):
        below, above = hierarchy.codes[level], hierarchy.codes[level + 1]
        assert len(set(zip(below.tolist(), above.tolist(), strict=True))) == hierarchy.cardinality(level)
        for table in (hierarchy.weights, hierarchy.leaves_below):
            assert (table[level][below] <= table[level + 1][above]).all()
    assert int(hierarchy.weights[top][0]) == hierarchy.weight_total
    assert Hierarchy.from_dict(json.loads(json.dumps(hierarchy.to_dict()))) == hierarchy


@settings(max_examples=150, deadline=None)
@given(forests())
def test_random_trees(edges: list[tuple[str, str]]) -> None:
    tree = Hierarchy.from_edges(edges)
    assert_sound(tree)
    assert_sound(tree.with_null())
    assert tree.ambiguous_labels() == []  # padding never makes a label mean two things
    expected = leaf_sets(edges)
    shown = set()
    for level in range(tree.height + 1):
        for code, label in enumerate(tree.labels[level]):
            inside = frozenset(tree.keys[leaf] for leaf in np.flatnonzero(tree.codes[level] == code))
            assert inside == expected[str(label)]
            assert tree.leaves_below[level][code] == len(inside)
            shown.add(label)
    assert shown == set(expected)  # every node of the tree is on some level
    for leaf, key in enumerate(tree.keys):
        assert tree.leaf_of(key) == leaf
    # the ragged level table of the same paths is the same hierarchy
    above = dict(edges)
    rows = []
    for key in tree.keys:
        row = [key]
        while row[-1] in above:
            row.append(above[row[-1]])
        rows.append(row)
    assert Hierarchy.from_levels(rows) == tree
    assert Hierarchy.from_levels(tree.rows()) == tree
    assert len(tree.tree(max_lines=20).splitlines()) <= 22


@settings(max_examples=100, deadline=None)
@given(st.integers(-50, 50), st.integers(0, 80), st.lists(st.integers(2, 4), max_size=4), st.booleans())
def test_random_intervals(start: int, span: int, factors: list[int], nulls: bool) -> None:
    widths = np.cumprod(factors).tolist()
    numbers = Hierarchy.intervals(start, start + span, widths)
    assert_sound(numbers.with_null() if nulls else numbers)
    assert numbers.bounds is not None
    for value in range(start - 1, start + span + 2):
        leaf = numbers.leaf_of(value)
        assert (leaf is not None) == (start <= value <= start + span)
        for level, (low, high) in enumerate(numbers.bounds):
            if leaf is not None:
                assert low[numbers.codes[level, leaf]] <= value <= high[numbers.codes[level, leaf]]


@settings(max_examples=100, deadline=None)
@given(
    st.decimals(-100, 100, places=2), st.integers(1, 500), st.integers(1, 50), st.lists(st.integers(2, 3), max_size=3),
    st.lists(st.decimals(-110, 110, places=3), max_size=20),
)  # fmt: skip
def test_random_bins(start: Decimal, span: int, width: int, factors: list[int], values: list[Decimal]) -> None:
    widths = [Decimal(int(step)) / 10 for step in np.cumprod([width, *factors])]
    stop = start + Decimal(span) / 10
    grid = Hierarchy.intervals(start, stop, widths, exact=False)
    assert_sound(grid.with_null())
    for value in [*values, start, stop]:
        leaf = grid.leaf_of(value)
        if not start <= value <= stop:
            assert leaf is None
            continue
        assert leaf is not None
        low = Fraction(start) + leaf * Fraction(widths[0])
        assert low <= Fraction(value)
        assert Fraction(value) < low + Fraction(widths[0]) or value == stop


@given(st.text("0123456789.+-eE ", max_size=8), st.decimals(allow_nan=False, allow_infinity=False, places=4))
def test_canonical_numbers_are_exact(text: str, number: Decimal) -> None:
    spelled = canonical_number(text)
    if spelled is not None:
        assert Fraction(spelled) == Fraction(text.strip())
        assert canonical_number(spelled) == spelled
    written = canonical_number(str(number))
    assert written is None or Fraction(written) == Fraction(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_has_a_spelling(number: float) -> None:
    written = canonical_number(str(number))
    assert written is not None
    assert float(written) == number


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab1 ", max_size=5), min_size=1), st.sampled_from(["left", "right"]))
def test_random_masks(values: list[str], keep: str) -> None:
    if any(values):
        masked = Hierarchy.mask(values, keep=keep)
        assert_sound(masked)
        assert masked.height == max(map(len, values))
