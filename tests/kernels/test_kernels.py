"""The compiled loops against dictionaries: grouping of any width, k, sums, persons and class values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from anon_spark.kernels import tuples as kernel
from anon_spark.kernels.classes import group_dense, group_hashed, largest_k
from anon_spark.kernels.tuples import STATS, Ladder, TupleTable, evaluate_node, evaluate_nodes, group, roll_up
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.lattice import Node
from tests.families.lattice.tables import Case, ladder, tuple_table

pytestmark = pytest.mark.compiles


def wide_ladder(cardinalities: Sequence[int]) -> Ladder:
    """Levels: the code, its half, one; enough leaves that keys of all attributes together need more than 64 bits."""
    domains = {n: np.arange(n, dtype=np.int32) for n in cardinalities}
    codes = {n: np.stack([leaves, leaves // 2, leaves * 0]) for n, leaves in domains.items()}
    weights = {n: tuple(np.arange(int(at.max()) + 1, dtype=np.int64) for at in code) for n, code in codes.items()}
    return Ladder(tuple(codes[n] for n in cardinalities), tuple(weights[n] for n in cardinalities))


def same_partition(inverse: NDArray[np.int32], labels: Sequence[object]) -> bool:
    """Whether two tuples share a class exactly when they share a label."""
    pairs = set(zip(inverse.tolist(), labels, strict=True))
    return len(pairs) == len(set(inverse.tolist())) == len(set(labels))


@pytest.mark.parametrize(
    ("cardinalities", "segments"),
    [
        ([7], 1),
        ([200, 200], 1),  # 40,000 keys: a dense table
        ([50_000, 60_000], 2),  # 2⁶² holds both: two segments, one hash
        ([2**18] * 5, 5),  # 90 bits: keys are grouped in between, or the first attributes would be shifted out
        ([2, 2**18, 4, 2**18, 2, 2**18, 2**18, 8], 4),
    ],
)
@pytest.mark.parametrize("level", [0, 1])
def test_classes_of_any_width_are_those_of_a_dictionary(cardinalities: list[int], segments: int, level: int) -> None:
    steps = wide_ladder(cardinalities)
    node = (level,) * len(cardinalities)
    draw = np.random.default_rng(len(cardinalities))
    # few distinct values, at both ends of each domain, so that tuples differ in one attribute and classes collide
    columns = [draw.choice([0, 1, n // 2, n - 2, n - 1], 3000) for n in cardinalities]
    columns[-1] = np.minimum(columns[-1] + draw.integers(0, 2, 3000), cardinalities[-1] - 1)
    codes = np.array(columns, dtype=np.int32)
    table = TupleTable((0,) * len(cardinalities), codes, draw.integers(1, 9, 3000))

    found = group(table, steps, node)

    labels = list(zip(*(codes >> level).tolist(), strict=True))
    assert same_partition(found.inverse, labels)
    counted: Counter[object] = Counter()
    for label, rows in zip(labels, table.rows.tolist(), strict=True):
        counted[label] += rows
    assert [counted[labels[at]] for at in found.representatives.tolist()] == found.rows.tolist()
    if level == 0:
        assert len(kernel._segments(steps, node)) == segments


def test_keys_that_hash_into_the_same_slot_stay_apart() -> None:
    """Multiples of 2⁵⁸ share their low bits, neighbours their high ones; probing goes round the end of the table."""
    apart, near, high = [n * 2**58 for n in range(16)], list(range(16)), [2**62 - 1 - n for n in range(32)]
    keys = np.array([*apart, *near, *high, *reversed(apart), *reversed(high)], dtype=np.int64)
    inverse, representatives = group_hashed(keys)
    assert same_partition(inverse, keys.tolist())
    assert keys[representatives].tolist() == list(dict.fromkeys(keys.tolist()))


def test_dense_and_hashed_grouping_agree() -> None:
    keys = np.random.default_rng(3).integers(0, 50, 400)
    for one, other in zip(group_dense(keys, 50), group_hashed(keys), strict=True):
        assert one.tolist() == other.tolist()


def test_everything_on_the_top_is_one_class() -> None:
    steps = wide_ladder([2**18] * 5)
    table = TupleTable((0,) * 5, np.array([range(4)] * 5, dtype=np.int32), np.array([1, 2, 3, 4]))
    found = group(table, steps, (2,) * 5)
    assert (found.inverse.tolist(), found.rows.tolist()) == ([0, 0, 0, 0], [10])


# --- k -----------------------------------------------------------------------------------------------------------


def k_by_definition(persons: Sequence[int], rows: Sequence[int], budget: int) -> int:
    """min{ i : rows in classes of at most i persons > budget }."""
    for size in sorted(persons):
        if sum(r for p, r in zip(persons, rows, strict=True) if p <= size) > budget:
            return size
    raise AssertionError("the budget covers the table")


@pytest.mark.parametrize(
    ("persons", "budget", "k"),
    [
        ([1, 2, 3, 4], 0, 1),
        ([1, 2, 3, 4], 1, 2),
        ([1, 2, 3, 4], 2, 2),  # the class of two does not fit the budget together with that of one
        ([1, 2, 3, 4], 3, 3),
        ([2, 2, 2, 4], 5, 2),  # classes of one size move together
        ([2, 2, 2, 4], 6, 4),
        ([5], 4, 5),
        ([3, 3], 5, 3),
    ],
)
def test_k_is_the_size_of_the_smallest_class_that_stays(persons: list[int], budget: int, k: int) -> None:
    sizes = np.array(persons, dtype=np.int64)
    assert largest_k(sizes, sizes, budget) == k == k_by_definition(persons, persons, budget)


@pytest.mark.parametrize("scale", [1, 5_000])  # small budgets are counted by size, large ones by sorting
def test_k_by_both_ways_is_the_definition(scale: int) -> None:
    draw = np.random.default_rng(scale)
    sorting = 0
    for _ in range(200):
        persons = draw.integers(1, 8, draw.integers(1, 30)) * scale
        rows = persons + draw.integers(0, 4, persons.size) * scale  # some persons have several rows
        most = int(rows.sum()) // scale
        budget = int(draw.integers(0, most)) * scale + int(draw.integers(-1, 1))  # at a step of the sum or just below
        budget = max(0, budget)
        sorting += budget > 4 * persons.size + 1024
        assert largest_k(persons, rows, budget) == k_by_definition(persons.tolist(), rows.tolist(), budget)
    assert (sorting > 100) == (scale > 1)


# --- nodes -------------------------------------------------------------------------------------------------------


def example(persons: bool, classes: bool, eta: int = 9) -> Case:
    draw = np.random.default_rng(5)
    trees = [
        Hierarchy.intervals(0, 30, [2, 6, 12]),
        Hierarchy.from_levels([(f"v{n}", f"g{n // 2}", f"h{n // 4}", "*") for n in range(9)]).with_null(),
        Hierarchy.from_levels([("a", "*"), ("b", "*"), ("c", "*")]),
    ]
    leaves = [[*tree.keys, *([None] if tree.has_null else [])] for tree in trees]
    rows = [tuple(keys[int(draw.triangular(0, 0, len(keys)))] for keys in leaves) for _ in range(160)]
    return Case(
        trees, rows, eta,
        [str(value) for value in draw.integers(0, 3, 160)] if classes else None,
        [int(value) for value in draw.integers(0, 40, 160)] if persons else None,
    )  # fmt: skip


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("eta", [0, 9, 120])
def test_a_batch_with_roll_ups_counts_as_node_by_node(persons: bool, classes: bool, eta: int) -> None:
    case = example(persons, classes, eta)
    table, steps = tuple_table(case.rows, case.hierarchies, case.classes, case.persons), ladder(case.hierarchies)
    nodes = [tuple(row) for row in np.random.default_rng(1).permutation(case.lattice.nodes()).tolist()]
    batch = evaluate_nodes(table, steps, nodes, eta)
    alone = [[at, *row] for at, node in enumerate(nodes) for row in evaluate_node(table, steps, node, eta).tolist()]
    assert batch.tolist() == alone
    assert batch.shape[1] == 2 + len(STATS) + 3


def test_a_batch_may_repeat_a_node_and_may_be_empty() -> None:
    case = example(True, True)
    table, steps = tuple_table(case.rows, case.hierarchies, case.classes, case.persons), ladder(case.hierarchies)
    one = evaluate_node(table, steps, (1, 1, 0), 99).tolist()
    assert len(one) > 1
    nine = evaluate_nodes(table, steps, [(1, 1, 0)] * 9, 99).tolist()
    assert nine == [[at, *row] for at in range(9) for row in one]
    assert evaluate_nodes(table, steps, [], 9).shape == (0, 2 + len(STATS) + 3)


@pytest.mark.parametrize("nodes", [[(0, 0, 0), (1, 1, 1), (3, 2, 1)], [(0, 0, 0), (2, 1, 0), (4, 3, 1)]])
def test_rolling_up_in_steps_ends_where_one_step_ends(nodes: list[Node]) -> None:
    case = example(True, True)
    steps = ladder(case.hierarchies)
    low = high = tuple_table(case.rows, case.hierarchies, case.classes, case.persons)
    for _, above in pairwise(nodes):
        high = roll_up(high, steps, above)
    low = roll_up(low, steps, nodes[-1])

    def content(table: TupleTable) -> dict[tuple[int, ...], tuple[object, ...]]:
        assert table.persons is not None
        assert table.class_counts is not None
        keys = [tuple(column) for column in table.codes.T.tolist()]
        return dict(zip(keys, zip(table.rows, table.persons, map(tuple, table.class_counts), strict=True), strict=True))

    assert content(low) == content(high)
    assert low.rows.sum() == len(case.rows)
    assert len(content(low)) == low.size


def test_persons_are_counted_once_per_class_however_many_rows_they_have() -> None:
    case = example(True, True)
    assert case.persons is not None
    assert case.classes is not None
    table, steps = tuple_table(case.rows, case.hierarchies, case.classes, case.persons), ladder(case.hierarchies)
    for node in [(0, 0, 0), (2, 1, 0), (3, 2, 1), (4, 3, 1)]:
        people: dict[tuple[int, ...], set[Hashable]] = defaultdict(set)
        labels: dict[tuple[int, ...], Counter[Hashable]] = defaultdict(Counter)
        for row, person, label in zip(case.rows, case.persons, case.classes, strict=True):
            leaves = [tree.leaf_of(value) for tree, value in zip(case.hierarchies, row, strict=True)]
            climbed = zip(case.hierarchies, node, leaves, strict=True)
            key = tuple(int(tree.codes[level][leaf]) for tree, level, leaf in climbed)
            people[key].add(person)
            labels[key][label] += 1
        found = group(table, steps, node)
        codes = [steps.climb(at, 0, level)[table.codes[at]] for at, level in enumerate(node)]
        keys = [tuple(int(code[at]) for code in codes) for at in found.representatives]
        assert found.persons.tolist() == [len(people[key]) for key in keys]
        assert found.majority.tolist() == [max(labels[key].values()) for key in keys]
        assert found.rows.tolist() == [sum(labels[key].values()) for key in keys]


def test_the_totals_of_a_node_by_hand() -> None:
    """Classes of 1, 2, 3 and 4 rows at budget 3: nothing goes, one row goes, three rows go, each with its weight."""
    flat = [Hierarchy.from_levels([(value, "*") for value in "abcd"]), Hierarchy.intervals(0, 9, [2])]
    rows: list[tuple[str | None, ...]] = [(value, str(n)) for n, value in enumerate("abbcccdddd")]
    table = tuple_table(rows, flat, list("xxxyyxyyyy"))
    found = evaluate_node(table, ladder(flat), (0, 2), 3)
    assert STATS == ("k", "suppressed", "classes", "squares", "all_squares", "majority", "all_majority")
    assert found[:, 1 : 1 + len(STATS)].tolist() == [
        [1, 0, 4, 30, 30, 9, 9],
        [2, 1, 3, 29, 30, 8, 9],
        [3, 3, 2, 25, 30, 6, 9],
    ]
    assert found[:, 1 + len(STATS) :].tolist() == [[0, 0], [0, 9], [0, 27]]  # a leaf loses 0 of 3, the root 9 of 9
    assert evaluate_node(table, ladder(flat), (0, 2), 2).tolist() == found[:2].tolist()
