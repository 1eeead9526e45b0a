"""Tables for the tests of the family mst: the paper's Table 1, Adult with its six attributes, random small ones.

Rows are tuples of leaf values as the oracle takes them; `as_arrays` turns them into what the package takes.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from anon_spark.model.hierarchy import Hierarchy
from tests.oracle.mst_oracle import Levels, LevelTable, Row, Spans

# --- the paper's Table 1 ---------------------------------------------------------------------------------------------

TABLE_1: list[Row] = [
    ("21", "M", "13051"), ("26", "M", "13053"), ("33", "F", "13063"), ("37", "F", "13068"),
    ("45", "M", "14851"), ("48", "F", "14856"), ("50", "M", "14865"),
]  # fmt: skip
AGE_BANDS = {"[20-30]": ("[20-40]", "21 26"), "[31-40]": ("[20-40]", "33 37"), "[41-50]": ("[41-60]", "45 48 50")}
TABLE_1_LEVELS: list[LevelTable] = [
    [(age, band, wide, "*") for band, (wide, ages) in AGE_BANDS.items() for age in ages.split()],
    [("M", "*"), ("F", "*")],
    [(row[2], row[2][:4] + "*", row[2][:3] + "**", "*") for row in TABLE_1],
]
TABLE_1_SPANS: list[Spans | None] = [
    {"[20-30]": (20, 30), "[31-40]": (31, 40), "[41-50]": (41, 50), "[20-40]": (20, 40), "[41-60]": (41, 60)}
    | {"*": (20, 60)},
    None,
    None,
]

# --- one attribute, one decision each -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """Rows of one attribute ("a*3 b": a three times, b once) and their classes: (tuples, level, rows)."""

    table: LevelTable
    written: str
    k: int
    expected: set[tuple[str, int, int]]
    small: int  # classes in G1 after the cut
    zero_edges: str = "include"

    @property
    def rows(self) -> list[Row]:
        parts = [(part.split("*") + ["1"])[:2] for part in self.written.split()]
        return [(leaf,) for leaf, times in parts for _ in range(int(times))]

    @property
    def classes(self) -> set[tuple[frozenset[Row], Levels, int]]:
        return {(frozenset((leaf,) for leaf in text.split()), (level,), rows) for text, level, rows in self.expected}


FLAT: LevelTable = [(leaf, "*") for leaf in "fedcba"]
PAIRS: LevelTable = [(f"{group}{at}", group, "*") for group in "dcba" for at in "4321"]
PADDED: LevelTable = [("a1", "a", "*"), ("a2", "a", "*"), ("x", "x", "*")]  # as ragged rows (x, *) come to be
DEEP: LevelTable = [(leaf, f"{leaf}'", f"{leaf}''", leaf[0], "*") for leaf in ("a1", "a2", "b1")]
THREE: LevelTable = [
    (leaf, group, wide, "*") for wide, groups in {"V": ("abc", "de"), "W": ("xy",)}.items() for group in groups
    for leaf in group
]  # fmt: skip
EXAMPLES = {
    "M-3: exactly k rows": Example(PAIRS, "a1 a2 b1 b2", 2, {("a1 a2", 1, 2), ("b1 b2", 1, 2)}, 0),
    "M-5: uniform weights": Example(FLAT, "a b c d e f", 2, {("a b", 1, 2), ("c d", 1, 2), ("e f", 1, 2)}, 6),
    # weights 1, 1, 1, 2, 2, 2 have τ = 2.048: nothing lies above it, so all of weight 2 go
    "M-5: nothing above τ": Example(
        PAIRS, "a1 a2 b1 b2 c1 c2 d1", 2, {("a1 a2 d1", 2, 3), ("b1 b2", 1, 2), ("c1 c2", 1, 2)}, 1
    ),
    "M-5: identical rows": Example(FLAT, "a*5", 2, {("a", 0, 5)}, 0),
    "n = k": Example(FLAT, "a b c", 3, {("a b c", 1, 3)}, 0),
    "n = 2k - 1": Example(FLAT, "a b c d e", 3, {("a b c d e", 1, 5)}, 0),
    "M-7: odd leftover": Example(FLAT, "a b c d e", 2, {("a b e", 1, 3), ("c d", 1, 2)}, 5),
    "M-7: leftover joins identical rows": Example(FLAT, "a*4 b", 2, {("a b", 1, 5)}, 1),
    "padded hierarchy": Example(PADDED, "a1 a2 x*2", 2, {("a1 a2", 1, 2), ("x", 0, 2)}, 0),
    # weights 0, 0, 0, 1, 1, 1, 1, 2, 3 have mean 1 and s 1: the edge of weight τ = 2 stays
    "strictly above τ": Example(THREE, "a b c d e x*4 y", 3, {("a b c d e", 2, 5), ("x y", 1, 5)}, 0),
    "M-1: zero edges count": Example(DEEP, "a1*22 a2 b1*12", 12, {("a1", 0, 22), ("a2 b1", 4, 13)}, 1),
    "M-1: zero edges left out": Example(DEEP, "a1*22 a2 b1*12", 12, {("a1 a2", 3, 23), ("b1", 0, 12)}, 0, "exclude"),
}

# All nearest pairs are equally far. Greedy takes the smallest ids, (a1, b) with (b1, b), and the others are a pair too.
# In rounds the three of b1 meet at (0, 1), which comes before (2, 0), and the first two of them are a pair.
TWO_WAYS: list[Row] = [("b1", "c"), ("b1", "b"), ("a1", "b"), ("b1", "a")]
TWO_WAYS_LEVELS: list[LevelTable] = [PAIRS, FLAT]
BY_GREEDY = {
    (frozenset({("a1", "b"), ("b1", "b")}), (2, 0), 2),
    (frozenset({("b1", "a"), ("b1", "c")}), (0, 1), 2),
}
BY_ROUNDS = {
    (frozenset({("b1", "a"), ("b1", "b")}), (0, 1), 2),
    (frozenset({("a1", "b"), ("b1", "c")}), (2, 1), 2),
}


# --- Adult: age, workclass, sex, education, race, occupation --------------------------------------------------------------

ADULT_COLUMNS = (0, 1, 9, 3, 8, 6)
AGES = range(17, 91)
GROUPS: Sequence[Mapping[tuple[str, ...], str]] = (  # labels above a group of leaves, nearest first → the leaves
    {
        ("Private", "Non-government"): "Private",
        ("Self-employed", "Non-government"): "Self-emp-not-inc Self-emp-inc",
        ("Government", "Government"): "Federal-gov Local-gov State-gov",
        ("Unpaid", "Unpaid"): "Without-pay",
    },
    {(): "Male Female"},
    {
        ("Primary", "Below-HS", "No-degree"): "Preschool 1st-4th 5th-6th 7th-8th",
        ("Some-secondary", "Below-HS", "No-degree"): "9th 10th 11th 12th",
        ("HS-grad", "HS-or-college", "No-degree"): "HS-grad",
        ("College", "HS-or-college", "No-degree"): "Some-college Assoc-voc Assoc-acdm",
        ("Bachelors", "Degree", "Degree"): "Bachelors",
        ("Graduate", "Degree", "Degree"): "Masters Prof-school Doctorate",
    },
    {("White",): "White", ("Non-white",): "Black Asian-Pac-Islander Amer-Indian-Eskimo Other"},
    {
        ("White-collar",): "Exec-managerial Prof-specialty Adm-clerical Sales Tech-support",
        ("Blue-collar",): "Craft-repair Machine-op-inspct Handlers-cleaners Transport-moving Farming-fishing",
        ("Service",): "Other-service Priv-house-serv Protective-serv Armed-Forces",
    },
)


def read_adult(path: Path) -> list[Row]:
    """The complete rows of adult.data.gz, reduced to the six attributes; ages of two digits sort as numbers do."""
    with gzip.open(path, "rt") as lines:
        cells = [[value.strip() for value in line.split(",")] for line in lines if "," in line]
    return [tuple(row[at] for at in ADULT_COLUMNS) for row in cells if "?" not in row]


def band(age: int, width: int) -> tuple[int, int]:
    """The interval of a width, anchored at 15 and clipped to the domain, that holds an age."""
    low = 15 + (age - 15) // width * width
    return max(low, AGES[0]), min(low + width - 1, AGES[-1])


def adult_levels() -> list[LevelTable]:
    ages = [(str(age), *("[{}, {}]".format(*band(age, width)) for width in (5, 10, 40)), "*") for age in AGES]
    others = [[(leaf, *above, "*") for above, leaves in of.items() for leaf in leaves.split()] for of in GROUPS]
    return [ages, *others]


def adult_spans() -> list[Spans | None]:
    bands = {band(age, width) for age in AGES for width in (5, 10, 40)}
    return [{f"[{low}, {high}]": (low, high) for low, high in bands} | {"*": (AGES[0], AGES[-1])}] + [None] * 5


ADULT_CUTS = {  # k: classes in G, of which identical rows, classes in G1, rows in G
    3: (3293, 1003, 7824, 20182), 6: (1510, 366, 7744, 15807), 9: (930, 150, 7432, 13259), 12: (660, 64, 7040, 11770),
    15: (514, 29, 6659, 10921), 18: (386, 17, 6405, 9684), 21: (309, 9, 6247, 8898),
}  # fmt: skip
ADULT_GREEDY = {  # k: IL, DM, equivalence classes, classes
    3: (0.146763, 256892, 6089, 6167), 6: (0.270185, 343488, 3327, 3424), 9: (0.359737, 456478, 2276, 2393),
    12: (0.422640, 568864, 1756, 1845), 15: (0.483854, 693450, 1428, 1497), 18: (0.524789, 850880, 1172, 1250),
    21: (0.569942, 999048, 994, 1072),
}  # fmt: skip
ADULT_ROUNDS = {  # k: IL, DM, equivalence classes, classes, rounds
    3: (0.147964, 256346, 6121, 6183, 16), 6: (0.271021, 342674, 3340, 3435, 17),
    9: (0.358259, 460604, 2263, 2394, 19), 12: (0.425393, 572152, 1751, 1845, 19),
    15: (0.471457, 689548, 1429, 1493, 21), 18: (0.519417, 852546, 1170, 1247, 24),
    21: (0.559802, 997946, 995, 1072, 22),
}  # fmt: skip
ADULT_WEIGHTS = {  # sixths → edges
    0: 16793, 3: 7328, 4: 530, 6: 3545, 7: 184, 8: 170, 9: 1123, 10: 62, 11: 35, 12: 302, 13: 19, 14: 9, 15: 44,
    16: 7, 18: 9, 20: 1,
}  # fmt: skip


# --- what the package takes and gives -------------------------------------------------------------------------------------


def level_table(hierarchy: Hierarchy) -> LevelTable:
    """The oracle's form of a hierarchy; leaves of numeric ones are numbers, so that they sort numerically."""
    table = list(hierarchy.rows())
    return [(int(row[0]), *row[1:]) for row in table] if hierarchy.kind == "number" else table


@dataclass(frozen=True)
class Case:
    """A table with its hierarchies; sensitive: one tuple of values per row, of which each class needs l."""

    hierarchies: list[Hierarchy]
    rows: list[Row]
    k: int
    l: int | None = None  # noqa: E741 - the l of l-diversity
    sensitive: list[Row] | None = None

    @property
    def tables(self) -> list[LevelTable]:
        return [level_table(hierarchy) for hierarchy in self.hierarchies]


def case_of(tables: Sequence[LevelTable], rows: Sequence[Row], k: int) -> Case:
    return Case([Hierarchy.from_levels(table) for table in tables], list(rows), k)


@dataclass(frozen=True)
class Partitioned:
    """What `partition` said, in the terms of the oracle."""

    found: Any
    classes: list[tuple[frozenset[Row], Levels, int]]  # tuples, levels, rows
    published: list[tuple[Row, Levels, int]]  # leaf tuple, levels, rows

    @property
    def shape(self) -> set[tuple[frozenset[Row], Levels, int]]:
        return set(self.classes)

    @property
    def statistics(self) -> dict[str, Any]:
        return dict(self.found.statistics)


class Arrays(NamedTuple):
    """The distinct tuples of a case as the package takes them."""

    tuples: list[Row]
    codes: NDArray[np.int32]
    rows: NDArray[np.int64]
    values: NDArray[np.int32] | None


def arrays_of(case: Case, seed: int | None = None) -> Arrays:
    """The distinct tuples in order of appearance, or shuffled by a seed."""
    members: dict[Row, list[int]] = defaultdict(list)
    for at, row in enumerate(case.rows):
        members[row].append(at)
    tuples = list(members)
    if seed is not None:
        tuples = [tuples[at] for at in np.random.default_rng(seed).permutation(len(tuples))]
    place = [{row[0]: code for code, row in enumerate(table)} for table in case.tables]
    codes = np.array([[of[row[at]] for row in tuples] for at, of in enumerate(place)], dtype=np.int32)
    rows = np.array([len(members[row]) for row in tuples], dtype=np.int64)
    return Arrays(tuples, codes, rows, _values(case, [members[row] for row in tuples]))


def partitioned(case: Case, merge: str = "auto", zero_edges: str = "include", seed: int | None = None) -> Partitioned:
    """Run the package on the distinct tuples of a case, in order of appearance or shuffled by a seed."""
    from anon_spark.families.mst.partition import Settings, partition

    tuples, codes, rows, _ = arrays_of(case, seed)
    options: Any = {"merge": merge, "zero_edges": zero_edges}
    found = partition(codes, rows, case.hierarchies, Settings(k=case.k, **options))

    classes: dict[int, set[Row]] = defaultdict(set)
    for row, number in zip(tuples, found.class_of.tolist(), strict=True):
        classes[number].add(row)
    count = len(found.sizes)
    assert sorted(classes) == list(range(count)), "class numbers are 0, 1, 2, … and no class is empty"
    leaves = [[row[0] for row in table] for table in case.tables]
    levels = [tuple(map(int, row)) for row in found.levels]
    sizes = [int(size) for size in found.sizes]
    chosen = [tuple(leaves[at][code] for at, code in enumerate(row)) for row in found.leaves.tolist()]
    assert len(levels) == len(chosen) == count
    return Partitioned(
        found,
        [(frozenset(classes[at]), levels[at], sizes[at]) for at in range(count)],
        list(zip(chosen, levels, sizes, strict=True)),
    )


def _values(case: Case, members: Sequence[Sequence[int]]) -> NDArray[np.int32] | None:
    """tuples × columns × l: up to l distinct sensitive values of each tuple, -1 where it has fewer."""
    if case.sensitive is None or case.l is None:
        return None
    values = np.full((len(members), len(case.sensitive[0]), case.l), -1, dtype=np.int32)
    for at, rows in enumerate(members):
        for column in range(values.shape[1]):
            distinct = list(dict.fromkeys(case.sensitive[row][column] for row in rows))[: case.l]
            values[at, column, : len(distinct)] = distinct
    return values


# --- random small tables --------------------------------------------------------------------------------------------------

NAMES = ["b", "Ab", "é", "a", "Z", "ab", "0", "ß", "B", "a b", "_", "aa"]  # code points, not any alphabet, order them


@st.composite
def trees(draw: st.DrawFn, depth: int = 4) -> Hierarchy:
    """A ragged level table of at most `depth` levels above its values, listed in any order; or intervals."""
    if draw(st.sampled_from([True, False, False])):
        widths = np.cumprod(draw(st.lists(st.integers(2, 3), max_size=depth - 1))).tolist()
        start = draw(st.sampled_from([-3, 5]))  # 5 … 16 and -3 … 8: texts would sort otherwise
        return Hierarchy.intervals(start, start + draw(st.sampled_from([1, 5, 8, 11])), widths)
    groups: list[tuple[str, ...]] = [("*",)]  # paths of inner nodes to the root
    for at in range(draw(st.integers(0, 5))):
        above = draw(st.sampled_from([path for path in groups if len(path) < depth]))
        groups.append((f"group {at}", *above))
    leaves = draw(st.permutations(NAMES))[: draw(st.sampled_from([1, 2, 4, 6, 8, 12]))]
    return Hierarchy.from_levels([(leaf, *draw(st.sampled_from(groups))) for leaf in leaves])


def crowd(seed: int, count: int = 240) -> Case:
    """Some hundred rows that hardly repeat: many small classes, ties at every step of merging."""
    random = Random(seed)
    hierarchies = [
        Hierarchy.from_levels(PAIRS),
        Hierarchy.intervals(5, 16, [2, 6]),
        Hierarchy.from_levels([*[(name, "*") for name in NAMES[:2]], *[(name, "group", "*") for name in NAMES[2:5]]]),
    ]
    leaves = [[row[0] for row in level_table(tree)] for tree in hierarchies]
    rows: list[Row] = [tuple(random.choice(of) for of in leaves) for _ in range(count)]
    return Case(hierarchies, rows, 3 + seed % 7)


@st.composite
def cases(draw: st.DrawFn, most_rows: int = 24, diverse: bool = False) -> Case:
    """Up to three attributes; diverse: sensitive columns and an l that the table as a whole reaches.

    Rows come from a seed: left to itself hypothesis repeats values until hardly any class is left to merge.
    """
    hierarchies = [draw(trees()) for _ in range(draw(st.sampled_from([1, 2, 2, 3, 3, 3])))]
    count = draw(st.sampled_from([2, 3, *range(6, most_rows + 1)]))
    k = draw(st.integers(2, min(count, 7)))
    seed, repeat = draw(st.integers(0, 2**32)), draw(st.sampled_from([0.0, 0.2, 0.5, 0.8]))
    random = Random(seed)
    leaves = [[row[0] for row in level_table(tree)] for tree in hierarchies]
    rows: list[Row] = []
    for _ in range(count):
        again = rows and random.random() < repeat
        rows.append(random.choice(rows) if again else tuple(random.choice(of) for of in leaves))
    if not diverse:
        return Case(hierarchies, rows, k)
    columns, l = draw(st.integers(1, 2)), draw(st.integers(2, min(count, 4)))  # noqa: E741
    values = [list(range(l)) + [random.randrange(4) for _ in range(count - l)] for _ in range(columns)]
    for column in values:
        random.shuffle(column)
    return Case(hierarchies, rows, k, l, list(zip(*values, strict=True)))
