"""Measures of a recoded table: worked values of the specification, and a plain sum over labels for everything else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_spark.errors import AnonSparkError
from anon_spark.metrics.average_size import average_size
from anon_spark.metrics.cells import Ints, exact_dot
from anon_spark.metrics.certainty import certainty_penalty
from anon_spark.metrics.discernibility import Discernibility, discernibility
from anon_spark.metrics.glm import GeneralLoss, general_loss
from anon_spark.metrics.information_loss import information_loss, information_loss_by_level
from anon_spark.metrics.recoded import Recoded, summary
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.node_stats import NodeStats
from tests.families.lattice.tables import hierarchies

Exact = dict[str, Fraction]


def exactly(recoded: Recoded, k: int) -> Exact:
    """What `summary` gives, before it becomes floats."""
    trees, rows = recoded.hierarchies, recoded.rows_by_node
    return {
        "il": information_loss(trees, rows),
        "glm": general_loss(trees, rows, recoded.suppressed),
        "ncp": certainty_penalty(trees, rows),
        "dm": Fraction(discernibility(recoded.squares, recoded.rows, recoded.suppressed)),
        "cavg": average_size(recoded.rows, recoded.classes, k),
    }


def leaf(tree: Hierarchy, value: str) -> int:
    found = tree.leaf_of(value)
    assert found is not None
    return found


def column(tree: Hierarchy, shown: Sequence[tuple[str, int]], sizes: Sequence[int]) -> Recoded:
    """One attribute; a class shows the node above a value on a level."""
    leaves = [[leaf(tree, value)] for value, _ in shown]
    return Recoded.of_classes([tree], [[level] for _, level in shown], leaves, sizes)


# --- the paper's Table 1 -----------------------------------------------------------------------------------------


def ages() -> Hierarchy:
    """[20-30], [31-40], [41-50], [51-60] → [20-40], [41-60] → '*', whose widths no builder makes."""
    numbers = range(20, 61)
    spans = [[(n, n) for n in numbers], [(20, 30), (31, 40), (41, 50), (51, 60)], [(20, 40), (41, 60)], [(20, 60)]]
    codes = [[next(i for i, (lo, hi) in enumerate(level) if lo <= n <= hi) for n in numbers] for level in spans]
    labels = [[f"[{lo}-{hi}]" for lo, hi in level] for level in spans]
    labels[0], labels[-1] = [str(n) for n in numbers], ["*"]
    return Hierarchy(
        kind="number",
        keys=tuple(labels[0]),
        codes=np.array(codes, dtype=np.int32),
        labels=tuple(tuple(names) for names in labels),
        leaves_below=tuple(np.bincount(level).astype(np.int64) for level in codes),
        weights=tuple(np.array([hi - lo for lo, hi in level], dtype=np.int64) for level in spans),
        weight_total=40,
        bounds=tuple((np.array([1.0 * lo for lo, _ in s]), np.array([1.0 * hi for _, hi in s])) for s in spans),
    )


CODES = ("13051", "13053", "13063", "13068", "14851", "14856", "14865")
TABLE_1 = [
    ages(),
    Hierarchy.from_levels([("M", "*"), ("F", "*")]),  # '*' is the paper's Person
    Hierarchy.from_levels([(code, code[:4] + "*", code[:3] + "**", "*****") for code in CODES]),
]


def table_1(classes: Sequence[tuple[tuple[int, ...], tuple[str, ...], int]]) -> Recoded:
    """Classes as levels, one member, size."""
    leaves = [[leaf(tree, value) for tree, value in zip(TABLE_1, member, strict=True)] for _, member, _ in classes]
    return Recoded.of_classes(TABLE_1, [levels for levels, _, _ in classes], leaves, [size for *_, size in classes])


FIRST, SECOND, LAST = ("21", "M", "13051"), ("33", "F", "13063"), ("45", "M", "14851")
TABLE_1B = table_1([((1, 0, 1), FIRST, 2), ((1, 0, 1), SECOND, 2), ((1, 1, 2), LAST, 3)])
TABLE_1C = table_1([((2, 1, 2), FIRST, 4), ((1, 1, 2), LAST, 3)])


@pytest.mark.parametrize(
    ("recoded", "k", "il", "dm"), [(TABLE_1B, 2, 0.650510, 17), (TABLE_1C, 3, 1.249490, 25)], ids=["1b", "1c"]
)
def test_table_1(recoded: Recoded, k: int, il: float, dm: int) -> None:
    found = summary(recoded, k)
    assert list(found) == ["il", "glm", "ncp", "dm", "cavg"]
    assert round(found["il"], 6) == il
    assert found["dm"] == dm
    assert exactly(recoded, k)["cavg"] == Fraction(7, 6)
    assert found == {name: float(value) for name, value in exactly(recoded, k).items()}


def test_table_1b_by_hand() -> None:
    """Age: 10, 9, 9 of 40; sex: 1 of 2; ZIP: 2, 2, 3 of 7 leaves."""
    found = exactly(TABLE_1B, 2)
    age = Fraction(2 * 10 + 2 * 9 + 3 * 9, 40)
    assert found["il"] == (age + Fraction(3 * 1, 2) + Fraction(2 * 1 + 2 * 1 + 3 * 2, 7)) / 7
    assert found["glm"] == (age + 3 * 1 + Fraction(2 * 1 + 2 * 1 + 3 * 2, 6)) / 21
    assert found["ncp"] == (age + 3 * 1 + Fraction(2 * 2 + 2 * 2 + 3 * 3, 7)) / 21


# --- every measure against a sum over the cells' labels ------------------------------------------------------------


@dataclass(frozen=True)
class Classes:
    trees: list[Hierarchy]
    levels: list[tuple[int, ...]]
    leaves: list[tuple[int, ...]]
    sizes: list[int]
    suppressed: int

    def recoded(self) -> Recoded:
        return Recoded.of_classes(self.trees, self.levels, self.leaves, self.sizes, self.suppressed)


@st.composite
def classes(draw: st.DrawFn) -> Classes:
    trees = [draw(hierarchies()) for _ in range(draw(st.sampled_from([1, 2, 2, 3])))]
    count = draw(st.sampled_from([1, 3, 5, 8, 12]))
    levels = st.tuples(*(st.integers(0, tree.height) for tree in trees))
    leaves = st.tuples(*(st.integers(0, tree.leaf_count - 1) for tree in trees))
    return Classes(
        trees,
        draw(st.lists(levels, min_size=count, max_size=count)),
        draw(st.lists(leaves, min_size=count, max_size=count)),
        draw(st.lists(st.integers(1, 5), min_size=count, max_size=count)),
        draw(st.integers(0, 4)),
    )


def cell(tree: Hierarchy, level: int, member: int) -> Exact:
    """Losses of one cell from the level table alone: which values share the label, on which level they stand."""
    paths: list[tuple[str | None, ...]] = list(tree.rows())
    if tree.has_null:
        paths.append((*[None] * tree.height, "*"))
    covered = [path[0] for path in paths if path[level] == paths[member][level]]
    if tree.kind == "number":
        numbers, domain = [[int(v) for v in values if v is not None] for values in (covered, tree.keys)]
        span = max(domain) - min(domain)
        share = Fraction(max(numbers) - min(numbers), span) if numbers and span else Fraction(0)
        return {"il": share, "glm": share, "ncp": share}
    several = len(covered) > 1
    return {
        "il": Fraction(len(covered) - 1, len(paths)),
        "glm": Fraction(len(covered) - 1, len(paths) - 1) if several else Fraction(0),
        "ncp": Fraction(len(covered), len(paths)) if several else Fraction(0),
    }


def by_label(table: Classes, k: int) -> Exact:
    lost = {"il": Fraction(0), "glm": Fraction(0), "ncp": Fraction(0)}
    published: Counter[tuple[str | None, ...]] = Counter()
    for levels, leaves, size in zip(table.levels, table.leaves, table.sizes, strict=True):
        places = list(zip(table.trees, levels, leaves, strict=True))
        published[tuple(tree.labels[level][tree.codes[level, at]] for tree, level, at in places)] += size
        for place in places:
            for name, loss in cell(*place).items():
                lost[name] += size * loss
    shown, width = sum(table.sizes), len(table.trees)
    rows = shown + table.suppressed
    return {
        "il": lost["il"] / shown,
        "glm": (lost["glm"] + table.suppressed * width) / (rows * width),
        "ncp": lost["ncp"] / (shown * width),
        "dm": Fraction(sum(size**2 for size in published.values()) + rows * table.suppressed),
        "cavg": Fraction(rows, len(published) * k),
    }


@given(classes(), st.integers(2, 4))
def test_measures_are_sums_over_published_labels(table: Classes, k: int) -> None:
    assert exactly(table.recoded(), k) == by_label(table, k)


@given(classes())
def test_full_domain_from_marginals(table: Classes) -> None:
    """The losses by level give what the classes of that node give."""
    node = table.levels[0]
    same_level = Recoded.of_classes(table.trees, [node] * len(table.sizes), table.leaves, table.sizes)
    by_leaf: list[Ints] = []
    for at, tree in enumerate(table.trees):
        rows = Counter[int]()
        for leaves, size in zip(table.leaves, table.sizes, strict=True):
            rows[leaves[at]] += size
        by_leaf.append(np.array([rows[code] for code in range(tree.leaf_count)], dtype=np.int64))
    levels = [information_loss_by_level(tree, rows) for tree, rows in zip(table.trees, by_leaf, strict=True)]
    assert sum(levels[at][level] for at, level in enumerate(node)) == exactly(same_level, 2)["il"]


def test_losses_of_the_lattice_family_agree() -> None:
    """Nine rows on the node (1, 0), the two of one class suppressed: GLM and DM as the search scores them."""
    trees = [Hierarchy.intervals(0, 5, [2]), Hierarchy.from_levels([("a", "*"), ("b", "*"), ("c", "*")])]
    release = Recoded.of_classes(trees, [(1, 0), (1, 0)], [(0, 0), (4, 1)], [4, 3], suppressed=2)
    stats = NodeStats((1, 0), 3, 2, 2, 4**2 + 3**2, 0, 0, 0, suppressed_weights=(2 * 1, 0))
    glm = GeneralLoss(9, (5, 2), ((0, 9 * 1, 9 * 5), (0, 9 * 2)))
    assert exactly(release, 3)["glm"] == Fraction(glm.numerator(stats), glm.denominator) == Fraction(27, 90)
    assert exactly(release, 3)["dm"] == Discernibility(9).numerator(stats) == 16 + 9 + 18


# --- what is one label ---------------------------------------------------------------------------------------------

RAGGED = Hierarchy.from_levels(
    [("a", "ab", "abc", "*"), ("b", "ab", "abc", "*"), ("c", "c", "abc", "*"), ("d", "D", "D", "*"), ("e", "*")]
)


def test_padding_is_undone() -> None:
    """c on levels 0 and 1, D on 1 and 2, e on 0 to 2 are one label each; 'd' and 'D' are two labels for one leaf."""
    shown = [("c", 0), ("c", 1), ("d", 1), ("d", 2), ("e", 0), ("e", 2), ("d", 0)]
    recoded = column(RAGGED, shown, [1, 2, 4, 8, 16, 32, 64])
    assert recoded.classes == 4
    assert recoded.squares == 3**2 + 12**2 + 48**2 + 64**2
    counted = {
        (level, RAGGED.labels[level][code]): rows
        for level, codes in enumerate(recoded.rows_by_node[0])
        for code, rows in enumerate(codes.tolist())
        if rows
    }
    assert counted == {(0, "c"): 3, (1, "D"): 12, (0, "e"): 48, (0, "d"): 64}
    assert exactly(recoded, 2)["il"] == 0


def test_a_label_that_returns_is_the_same_label() -> None:
    tree = Hierarchy.from_levels([("a", "b", "a", "*"), ("c", "c", "c", "*")])
    assert column(tree, [("a", 0), ("a", 2)], [1, 1]).classes == 1
    assert column(tree, [("a", 0), ("a", 1)], [1, 1]).classes == 2


def test_labels_meet_only_if_all_attributes_do() -> None:
    trees = [RAGGED, RAGGED]
    c, e = leaf(RAGGED, "c"), leaf(RAGGED, "e")
    together = Recoded.of_classes(trees, [(0, 1), (1, 0)], [(c, e), (c, e)], [2, 3])
    apart = Recoded.of_classes(trees, [(0, 1), (1, 0)], [(c, e), (e, c)], [2, 3])
    assert (together.classes, together.squares) == (1, 25)
    assert (apart.classes, apart.squares) == (2, 13)


# --- domains -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tree", [Hierarchy.from_levels([("a", "*")]), Hierarchy.intervals(7, 7, [])])
def test_a_domain_of_one_value_loses_nothing(tree: Hierarchy) -> None:
    found = exactly(column(tree, [(tree.keys[0], 0), (tree.keys[0], 1)], [2, 3]), 2)
    assert found["il"] == found["glm"] == found["ncp"] == 0
    assert found["dm"] == 13  # the value and '*' are two labels


def test_a_range_of_two_numbers_is_not_free() -> None:
    tree = Hierarchy.intervals(17, 22, [2])
    found = exactly(column(tree, [("19", 1), ("19", 0)], [3, 1]), 2)
    assert found["ncp"] == found["il"] == found["glm"] == Fraction(3 * 1, 4 * 5)


def test_bins_lose_at_their_leaves() -> None:
    tree = Hierarchy.intervals(0, 1, ["0.25", "0.5"], exact=False)
    found = exactly(Recoded.of_classes([tree], [[0], [1]], [[3], [0]], [3, 1]), 2)
    assert found["ncp"] == found["il"] == found["glm"] == (3 * Fraction(1, 4) + Fraction(1, 2)) / 4


def test_null_is_a_leaf_of_categories_and_no_number() -> None:
    """Two categories become three; the interval of numbers stays what it is. Null itself loses nothing."""
    sex = Hierarchy.from_levels([("M", "*"), ("F", "*")]).with_null()
    found = exactly(Recoded.of_classes([sex], [[0], [1]], [[2], [0]], [1, 1]), 2)
    assert (found["il"], found["glm"], found["ncp"]) == (Fraction(2, 3) / 2, Fraction(1, 2), Fraction(1, 2))
    age = Hierarchy.intervals(0, 9, [5]).with_null()
    found = exactly(Recoded.of_classes([age], [[0], [1], [1], [2]], [[10], [10], [0], [10]], [1, 1, 1, 1]), 2)
    assert found["il"] == found["glm"] == found["ncp"] == (0 + 0 + Fraction(4, 9) + 1) / 4
    assert found["dm"] == 2**2 + 1 + 1  # null is null on both levels


def test_counts_beyond_64_bits() -> None:
    """A mask's domain has 36¹¹ texts, a billion rows show its root; four billion rows are one class."""
    tree = Hierarchy.mask(["abcdefghijk", "lmnopqrstuv"], alphabet=36, length=11)
    rows = 4 * 10**9
    found = exactly(Recoded.of_classes([tree], [[11], [0]], [[0], [1]], [rows, 1]), 2)
    assert found["glm"] == Fraction(rows, rows + 1)
    assert found["il"] == Fraction(rows * (36**11 - 1), 36**11 * (rows + 1))
    assert found["dm"] == rows**2 + 1
    assert exact_dot(np.array([2**40, 0]), np.array([2**40, 7])) == 2**80


# --- faults --------------------------------------------------------------------------------------------------------


def moved(recoded: Recoded) -> tuple[Any, ...]:
    """One row more on the top level of the first attribute."""
    first, *others = recoded.rows_by_node
    return ((*first[:-1], first[-1] + 1), *others)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"rows": 8, "squares": 22}, "published 8"),
        ({"suppressed": 1}, "published 6"),
        ({"suppressed": -1, "rows": 6}, "-1 of 6 rows suppressed"),
        ({"suppressed": 7}, "7 of 7 rows suppressed"),
        ({"classes": 0}, "0 classes"),
        ({"classes": 8}, "8 classes of 7 rows"),
        ({"squares": 16}, "squares 16 of 3 classes"),  # 7 rows in 3 classes have at least 49/3
        ({"squares": 50}, "squares 50 of 7 rows"),
        ({"hierarchies": tuple(TABLE_1[:2])}, "3 columns of counts for 2"),
        ({"hierarchies": (TABLE_1[0], TABLE_1[2], TABLE_1[1])}, "attribute 1: counts of other levels"),
        ({"rows_by_node": moved(TABLE_1B)}, "attribute 0: 8 rows"),
    ],
)
def test_counts_that_do_not_fit(change: dict[str, Any], fault: str) -> None:
    with pytest.raises(AnonSparkError, match=fault):
        replace(TABLE_1B, **change)


@pytest.mark.parametrize(
    ("levels", "leaves", "sizes", "fault"),
    [
        ([[4]], [[0]], [1], "outside"),
        ([[-1]], [[0]], [1], "outside"),
        ([[0]], [[5]], [1], "outside"),
        ([[0]], [[-1]], [1], "outside"),
        ([[0]], [[0]], [0], "without rows"),
        ([[0]], [[0]], [1, 1], "not"),
        ([[0, 0]], [[0, 0]], [1], "not"),
        (np.zeros((0, 1)), np.zeros((0, 1)), [], "0 of 0 rows"),
    ],
)
def test_classes_that_do_not_fit(levels: Any, leaves: Any, sizes: Any, fault: str) -> None:
    with pytest.raises(AnonSparkError, match=fault):
        Recoded.of_classes([RAGGED], levels, leaves, sizes)
