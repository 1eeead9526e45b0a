"""The oracle of the models against the golden table of the specification, against moved earth, and against a counterexample.

pycanon on the golden table, as the specification tells it; it is no dependency, and was not run by these tests:

| measure           | pycanon  | here                  | why they differ                                     |
| ----------------- | -------- | --------------------- | --------------------------------------------------- |
| k                 | 3        | 3                     |                                                     |
| distinct l        | 2        | 2                     |                                                     |
| entropy l         | whole    | 1.889882              | pycanon rounds down to a whole number               |
| recursive c, l=2  | whole    | above 2               | pycanon gives a whole c; any c above 2 will do      |
| t, equal          | 0.333333 | 1/3                   |                                                     |
| t, ordered        | 0.343750 | 11/32                 |                                                     |
| β                 | 1        | 1                     |                                                     |
| δ                 | finite   | none: B and C fail    | pycanon leaves out values that a class does not have |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from anon_spark.model.guarantee.models import (
    BetaLikeness,
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Model,
    RecursiveCL,
    TCloseness,
)
from anon_spark.model.hierarchy import Hierarchy
from tests.oracle.lattice_oracle import curve, nondominated
from tests.oracle.models_oracle import (
    class_counts,
    curve_with_models,
    distance,
    earth_moved,
    entropy_l,
    evaluate_with_models,
    failing_classes,
    front_with_models,
    gains,
    holds,
    least_c,
    level_ground,
    log_ratio,
    measured,
    ordered_ground,
)

GOLDEN = [
    *(("A", salary, disease) for salary, disease in ((4, "flu"), (4, "flu"), (3, "cold"), (5, "hiv"))),
    *(("B", salary, disease) for salary, disease in ((6, "flu"), (11, "cold"), (8, "cold"), (8, "cold"), (6, "flu"))),
    *(("C", salary, disease) for salary, disease in ((7, "hiv"), (9, "flu"), (10, "flu"))),
]
KEYS, SALARY, DISEASE = ([row[at] for row in GOLDEN] for at in range(3))
LEVELS = {"a": ["a", "x", "*"], "b": ["b", "x", "*"], "c": ["c", "y", "*"], "d": ["d", "y", "*"]}


def tree() -> Hierarchy:
    return Hierarchy.from_levels(list(LEVELS.values()))


def test_the_golden_table() -> None:
    expected: dict[Any, tuple[Any, ...]] = {  # distinct, entropy l, least c of l = 2 and 3, t equal, t ordered, β, δ
        "A": (3, 2.828427, 1, 2, Fraction(1, 12), Fraction(11, 32), Fraction(1, 2), 0.405465),
        "B": (2, 1.960132, Fraction(3, 2), None, Fraction(4, 15), Fraction(23, 160), Fraction(4, 5), 0.587787),
        "C": (2, 1.889882, 2, None, Fraction(1, 3), Fraction(25, 96), 1, 0.693147),
    }
    whole, salaries = Counter(DISEASE), class_counts(KEYS, SALARY)
    for key, counts in class_counts(KEYS, DISEASE).items():
        assert (
            len(counts),
            round(float(entropy_l(counts)), 6),
            least_c(counts, 2),
            least_c(counts, 3),
            distance(counts, whole, "equal"),
            distance(salaries[key], Counter(SALARY), "ordered"),
            max(gains(counts, whole).values()),
            round(float(log_ratio(counts, whole)), 6),
        ) == expected[key]
        # a value of the table is missing in B and C, so no δ will do
        assert all(holds(counts, whole, DeltaDisclosure(most)) == (key == "A") for most in (1, 1000))


def test_the_formulas_are_the_least_work_of_moving_earth() -> None:
    random = Random(5)
    for _ in range(60):
        size = random.randint(1, 4)
        whole = {value: random.randint(1, 4) for value in "abcd"[:size]}
        counts = {value: random.randint(0, 3) for value in whole} | {"a": 1}
        p, q = ([Fraction(side.get(value, 0), sum(side.values())) for value in whole] for side in (counts, whole))
        places = range(size)
        apart = [[Fraction(one != other) for other in places] for one in places]
        in_order = [[ordered_ground(one, other, size) for other in places] for one in places]
        assert earth_moved(p, q, apart) == distance(counts, whole, "equal")
        assert earth_moved(p, q, in_order) == distance(counts, whole, "ordered")
        # the mean over the levels below the top of the equal distance on that level
        by_level = []
        for level in (0, 1):
            sums: list[Counter[Any]] = []
            for side in (counts, whole):
                sums.append(Counter())
                for value, number in side.items():
                    sums[-1][LEVELS[value][level]] += number
            by_level.append(distance(sums[0], sums[1], "equal"))
        assert distance(counts, whole, "hierarchical", LEVELS) == sum(by_level) / 2
    assert [level_ground(LEVELS, "a", other) for other in ("a", "b", "c", None)] == [0, Fraction(1, 2), 1, 1]


@pytest.mark.parametrize(
    ("counts", "model", "expected"),
    [
        ({"a": 3, "b": 3}, EntropyL(2), True),  # a tie holds
        ({"a": 3, "b": 4}, EntropyL(2), False),
        ({"a": 2, "b": 1}, RecursiveCL(2, 2), False),  # 2 < 2 · 1 does not hold
        ({"a": 2, "b": 1}, RecursiveCL(2.01, 2), True),
        ({"a": 2, "b": 1}, RecursiveCL(100, 3), False),
        ({"a": 4}, TCloseness(0.5), True),
        ({"a": 4}, TCloseness(0.499), False),
        ({"a": 4}, BetaLikeness(1), True),
        ({"a": 4}, BetaLikeness(1, enhanced=True), False),  # 1 is more than ln 2
        ({"a": 9, "b": 1}, DeltaDisclosure(100), True),
        ({"a": 4}, DeltaDisclosure(100), False),
        ({"a": 1, "z": 1}, TCloseness(1), False),  # the table has no z
    ],
)
def test_single_classes(counts: dict[str, int], model: Model, expected: bool) -> None:
    assert holds(counts, {"a": 10, "b": 10}, model) == expected


def test_nothing_is_measured_where_there_is_no_number() -> None:
    assert measured({"a": 4}, {"a": 1, "b": 1}, DeltaDisclosure(1)) is None
    assert measured({"z": 4}, {"a": 1, "b": 1}, BetaLikeness(1)) is None
    assert measured({"a": 4}, {"a": 1, "b": 1}, RecursiveCL(1, 2)) is None
    assert measured({"a": 4}, {"a": 1, "b": 3}, BetaLikeness(1)) == 3.0


# -- a lattice under models -----------------------------------------------------------------------------------------------

TABLE = [{value: [value, "low" if value in "pq" else "high", "*"] for value in "pqrs"}]


def column(*groups: tuple[str, str]) -> tuple[list[tuple[str]], list[str]]:
    """Rows and sensitive values of (leaf, sensitive values as letters)."""
    rows = [(leaf,) for leaf, values in groups for _ in values]
    return rows, [value for _, values in groups for value in values]


def test_without_models_the_front_is_that_of_the_lattice() -> None:
    rows, values = column(("p", "aab"), ("q", "ab"), ("r", "a"), ("s", "abbb"))
    points = [point for level in range(3) for point in curve(rows, TABLE, (level,), 3)]
    assert front_with_models(rows, TABLE, 3, {"s": values}, {}) == nondominated(points)
    assert front_with_models(rows, TABLE, 3, {"s": values}, {}, min_k=1)[-1].k == 1


def test_classes_that_fail_are_left_out_before_small_ones() -> None:
    rows, values = column(("p", "aaaa"), ("q", "ab"), ("r", "ab"), ("s", "aabb"))
    models: dict[str, Sequence[Model]] = {"s": [DistinctL(2)]}
    assert [point.k for point in curve_with_models(rows, TABLE, (0,), 4, {"s": values}, models)] == [1, 2]
    assert [point.k for point in curve_with_models(rows, TABLE, (0,), 8, {"s": values}, models)] == [1, 2, 3, 4]
    assert curve_with_models(rows, TABLE, (0,), 3, {"s": values}, models) == []
    best = evaluate_with_models(rows, TABLE, (0,), 8, {"s": values}, models)
    assert best is not None and (best.k, best.n_sup, best.loss) == (4, 8, Fraction(8, 12))
    assert evaluate_with_models(rows, TABLE, (0,), 3, {"s": values}, models) is None


def test_a_model_is_not_monotone_once_rows_are_left_out() -> None:
    """A failing class and one that holds: below, the failing one fits the budget; above, their union fails as a whole."""
    rows, values = column(("p", "a" * 6), ("q", "abababab"), ("r", "ab"), ("s", "ab"))
    model = EntropyL(Fraction(19, 10))
    low, middle = (curve_with_models(rows, TABLE, (level,), 6, {"s": values}, {"s": [model]}) for level in (0, 1))
    assert [point.k for point in low] == [1, 2] and middle == []
    assert curve(rows, TABLE, (1,), 6)  # without models, the node above is a point


def test_classes_also_fail_by_the_population() -> None:
    rows, values = column(("p", "ab"), ("q", "ab"), ("r", "ab"), ("s", "ab"))
    people = [(leaf,) for leaf in "ppppqqrrrrrrrrss"]

    def points(**asked: Any) -> list[int]:
        return [point.k for point in curve_with_models(rows, TABLE, (0,), 4, {"s": values}, {}, population=people, **asked)]

    assert points(map_k=2) == [1, 2] and points(map_k=4) == [1, 2] and points(map_k=5) == []
    assert points(presence=(Fraction(1, 4), Fraction(1, 2))) == [1, 2]
    assert points(presence=(Fraction(1, 3), Fraction(1, 2))) == []


def test_every_column_and_model_counts() -> None:
    one, other = list("aabbab"), list("xyxyxx")
    keys = list("ppqqrr")
    models: dict[str, Sequence[Model]] = {"one": [DistinctL(2)], "other": [TCloseness(0.2, "hierarchical", tree())]}
    levels = {"other": {"x": ["x", "*"], "y": ["y", "*"]}}
    assert failing_classes(keys, {"one": one, "other": other}, {"one": [DistinctL(2)]}) == {"p", "q"}
    assert failing_classes(keys, {"one": one, "other": other}, models, levels) == {"p", "q", "r"}
