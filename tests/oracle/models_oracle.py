"""Brute force for the models of attribute disclosure: one class, all classes of a table, and the front of a lattice under models.

Written from the specification alone, with fractions, decimals and big integers, slow on purpose and only for tiny tables. A
model is any object with the attributes of `anon_spark.model.guarantee.models`; only `key` and the numbers are read.

counts and whole: rows by sensitive value, of a class and of all rows in scope. None is null, a value like any other.
levels: of a hierarchical distance, value → its labels on the levels 0 (itself) to H (the root).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, pairwise
from math import prod
from typing import Any

from tests.oracle.lattice_oracle import (
    Evaluation,
    Leaf,
    Node,
    Point,
    _loss,
    _members,
    _size,
    lattice_nodes,
    nondominated,
)

Value = Hashable
Counts = Mapping[Any, int]
Levels = Mapping[Any, Sequence[Hashable]]
DIGITS = 80

# -- one class ------------------------------------------------------------------------------------------------------------


def holds(counts: Counts, whole: Counts, model: Any, levels: Levels | None = None) -> bool:
    """Whether a class holds a model. A value of the class that the whole table lacks fails t, β and δ."""
    counts = {value: number for value, number in counts.items() if number}
    match model.key:
        case "l":
            return bool(len(counts) >= model.l)
        case "entropy_l":
            rows = sum(counts.values())
            left = Fraction(rows) ** rows
            return bool(left >= Fraction(model.l) ** rows * prod(number**number for number in counts.values()))
        case "recursive":
            least = least_c(counts, model.l)
            return least is not None and least < model.c
        case "t":
            return not _foreign(counts, whole) and distance(counts, whole, model.distance, levels) <= model.most
        case "beta":
            return not _foreign(counts, whole) and all(
                gain <= model.most and not (model.enhanced and gain > 0 and _decimal(gain) > -_ln(_share(whole, value)))
                for value, gain in gains(counts, whole).items()
            )
        case "delta":
            return set(counts) == set(whole) and all(
                abs(_ln(1 + gain)) < _decimal(model.most) for gain in gains(counts, whole).values()
            )
    raise ValueError("unknown model")


def measured(counts: Counts, whole: Counts, model: Any, levels: Levels | None = None) -> float | None:
    """What a class is compared by: number of values, entropy l, least c (c must exceed it), distance, greatest gain, greatest
    |ln(p/q)|; None where there is no such number and the class fails."""
    counts = {value: number for value, number in counts.items() if number}
    match model.key:
        case "l":
            return float(len(counts))
        case "entropy_l":
            return float(entropy_l(counts))
        case "recursive":
            least = least_c(counts, model.l)
            return None if least is None else float(least)
    if _foreign(counts, whole):
        return None
    match model.key:
        case "t":
            return float(distance(counts, whole, model.distance, levels))
        case "beta":
            return float(max(gains(counts, whole).values()))
        case "delta":
            return float(log_ratio(counts, whole)) if set(counts) == set(whole) else None
    raise ValueError("unknown model")


def entropy_l(counts: Counts) -> Decimal:
    """exp(−Σ p ln p)."""
    rows = sum(counts.values())
    shares = [Fraction(number, rows) for number in counts.values()]
    with localcontext() as context:
        context.prec = DIGITS
        return (-sum((_decimal(share) * _ln(share) for share in shares), Decimal(0))).exp()


def least_c(counts: Counts, l: int) -> Fraction | None:  # noqa: E741 - the papers' name
    """r_1 / (r_l + r_{l+1} + …), which c must exceed; None with fewer than l values."""
    descending = sorted(counts.values(), reverse=True)
    return Fraction(descending[0], sum(descending[l - 1 :])) if len(descending) >= l else None


def gains(counts: Counts, whole: Counts) -> dict[Any, Fraction]:
    """(p − q) / q of each value of the class."""
    return {value: _share(counts, value) / _share(whole, value) - 1 for value in counts if counts[value]}


def log_ratio(counts: Counts, whole: Counts) -> Decimal:
    """The greatest |ln(p/q)| over the values that the class has."""
    return max(abs(_ln(1 + gain)) for gain in gains(counts, whole).values())


# -- distances ------------------------------------------------------------------------------------------------------------


def distance(counts: Counts, whole: Counts, kind: str, levels: Levels | None = None) -> Fraction:
    """t of a class: the formulas of the specification; hierarchical by moving earth, without any formula."""
    values = ascending(whole)
    p, q = [_share(counts, value) for value in values], [_share(whole, value) for value in values]
    if kind == "equal":
        return sum((abs(one - other) for one, other in zip(p, q, strict=True)), Fraction(0)) / 2
    if kind == "ordered":
        apart = list(accumulate(one - other for one, other in zip(p, q, strict=True)))
        return sum(map(abs, apart[:-1]), Fraction(0)) / (len(values) - 1) if len(values) > 1 else Fraction(0)
    if levels is None:
        raise ValueError("a hierarchical distance needs levels")
    return earth_moved(p, q, [[level_ground(levels, one, other) for other in values] for one in values])


def ascending(whole: Counts) -> list[Any]:
    """The values in order, null last."""
    return [*sorted(value for value in whole if value is not None), *([None] if None in whole else [])]


def ordered_ground(one: int, other: int, values: int) -> Fraction:
    """How far the i-th and the j-th of m values in order are apart."""
    return Fraction(abs(one - other), values - 1) if values > 1 else Fraction(0)


def level_ground(levels: Levels, one: Value, other: Value) -> Fraction:
    """How high the lowest common ancestor of two values is, over the height of the hierarchy; null is apart from all others."""
    if one == other:
        return Fraction(0)
    if one is None or other is None:
        return Fraction(1)
    height = len(levels[one]) - 1
    return Fraction(next(at for at in range(height + 1) if levels[one][at] == levels[other][at]), height)


def earth_moved(p: Sequence[Fraction], q: Sequence[Fraction], ground: Sequence[Sequence[Fraction]]) -> Fraction:
    """The earth mover's distance from p to q, exactly: shares are sent along cheapest paths, which may take shares back.

    ground[i][j]: cost of moving one whole from i to j. Both sides must sum up to the same.
    """
    size = len(p)
    supply, demand = list(p), list(q)
    flow = [[Fraction(0)] * size for _ in range(size)]
    while any(supply):
        # Bellman-Ford from all that is left; nodes: 0 … size−1 send, size … 2 size−1 take
        cost: list[Fraction | None] = [Fraction(0) if left else None for left in supply] + [None] * size
        before: list[int | None] = [None] * (2 * size)
        for _ in range(2 * size):
            for i in range(size):
                for j in range(size):
                    here, there = cost[i], cost[size + j]
                    if here is not None and (there is None or here + ground[i][j] < there):
                        cost[size + j], before[size + j] = here + ground[i][j], i
                    here, there = cost[size + j], cost[i]
                    if here is not None and flow[i][j] and (there is None or here - ground[i][j] < there):
                        cost[i], before[i] = here - ground[i][j], size + j
        end = min((j for j in range(size) if demand[j]), key=lambda j: cost[size + j] or Fraction(0))
        path = [size + end]
        while (step := before[path[-1]]) is not None:
            path.append(step)
        path.reverse()
        amount = min(
            [supply[path[0]], demand[end], *(flow[there][here - size] for here, there in _steps(path) if here >= size)]
        )
        for sender, taker in _steps(path):
            if sender < size:
                flow[sender][taker - size] += amount
            else:
                flow[taker][sender - size] -= amount
        supply[path[0]] -= amount
        demand[end] -= amount
    return sum((flow[i][j] * ground[i][j] for i in range(size) for j in range(size)), Fraction(0))


def _steps(path: Sequence[int]) -> list[tuple[int, int]]:
    return list(pairwise(path))


# -- all classes of a table -------------------------------------------------------------------------------------------------


def class_counts(keys: Sequence[Hashable], values: Sequence[Value]) -> dict[Hashable, Counter[Any]]:
    """Rows by value in each class; keys and values hold one entry per row."""
    classes: dict[Hashable, Counter[Any]] = {}
    for key, value in zip(keys, values, strict=True):
        classes.setdefault(key, Counter())[value] += 1
    return classes


def failing_classes(
    keys: Sequence[Hashable],
    sensitive: Mapping[str, Sequence[Value]],
    models: Mapping[str, Sequence[Any]],
    levels: Mapping[str, Levels] | None = None,
) -> set[Hashable]:
    """The classes that fail any model of any column. keys: class of each row; sensitive: its value in each column.

    The rows are all rows in scope: they are the classes, and the whole table that these are compared with.
    """
    failing: set[Hashable] = set()
    for name, of_column in models.items():
        whole = Counter(sensitive[name])
        for key, counts in class_counts(keys, sensitive[name]).items():
            if not all(holds(counts, whole, model, (levels or {}).get(name)) for model in of_column):
                failing.add(key)
    return failing


# -- a lattice under models ---------------------------------------------------------------------------------------------------


def curve_with_models(
    rows: Sequence[tuple[Leaf, ...]],
    level_tables: Sequence[Mapping[Any, Sequence[Any]]],
    node: Node,
    eta: int,
    sensitive: Mapping[str, Sequence[Value]],
    models: Mapping[str, Sequence[Any]],
    levels: Mapping[str, Levels] | None = None,
    loss: str = "glm",
    class_column: Sequence[Hashable] | None = None,
    person: Sequence[Hashable] | None = None,
    population: Sequence[tuple[Leaf, ...]] | None = None,
    map_k: int | None = None,
    presence: tuple[Fraction, Fraction] | None = None,
) -> list[Point]:
    """The node at every single k: first all classes that fail a model are left out, then all classes below k.

    A k is a point as long as at most eta rows are left out in total; none: the node is no point. rows are those in scope, as in
    `lattice_oracle`; models count rows, k counts persons where they are given. population: rows of leaf values on the same
    level tables; a class with fewer than map_k of them, or whose rows over theirs are not within presence, fails, too.
    """
    members = _members(rows, level_tables, node)
    keys: list[tuple[Any, ...]] = [()] * len(rows)
    for label, index in members.items():
        for i in index:
            keys[i] = label
    failing = failing_classes(keys, sensitive, models, levels)
    if population is not None:
        there = {label: len(index) for label, index in _members(population, level_tables, node).items()}
        for label, index in members.items():
            people = there.get(label, 0)
            fits = presence is None or (people and presence[0] <= Fraction(len(index), people) <= presence[1])
            if (map_k is not None and people < map_k) or not fits:
                failing.add(label)
    held = [index for label, index in members.items() if label not in failing]
    points = []
    for k in range(1, len(rows) + 1):
        kept = [index for index in held if _size(index, person).persons >= k]
        if kept and len(rows) - sum(map(len, kept)) <= eta:
            points.append(Point(node, k, _loss(rows, level_tables, node, kept, loss, class_column)))
    return points


def evaluate_with_models(
    rows: Sequence[tuple[Leaf, ...]],
    level_tables: Sequence[Mapping[Any, Sequence[Any]]],
    node: Node,
    eta: int,
    sensitive: Mapping[str, Sequence[Value]],
    models: Mapping[str, Sequence[Any]],
    levels: Mapping[str, Levels] | None = None,
    loss: str = "glm",
    person: Sequence[Hashable] | None = None,
) -> Evaluation | None:
    """The node at its greatest k, as `evaluate_node` tells it; None if the classes that fail have more than eta rows."""
    points = curve_with_models(rows, level_tables, node, eta, sensitive, models, levels, loss, None, person)
    if not points:
        return None
    best, members = points[-1], _members(rows, level_tables, node)
    keys = {i: label for label, index in members.items() for i in index}
    failing = failing_classes([keys[i] for i in range(len(rows))], sensitive, models, levels)
    sizes = {label: _size(index, person) for label, index in members.items()}
    left_out = sum(size.rows for label, size in sizes.items() if label in failing or size.persons < best.k)
    return Evaluation(best.k, best.loss, left_out, sizes)


def front_with_models(
    rows: Sequence[tuple[Leaf, ...]],
    level_tables: Sequence[Mapping[Any, Sequence[Any]]],
    eta: int,
    sensitive: Mapping[str, Sequence[Value]],
    models: Mapping[str, Sequence[Any]],
    min_k: int = 2,
    **others: Any,
) -> list[Point]:
    """The true front: `curve_with_models` of every node, and of all points the undominated with k ≥ min_k, by decreasing k.

    others: levels, loss, class_column, person, population, map_k, presence, as there.
    """
    heights = [len(next(iter(table.values()))) - 1 for table in level_tables]
    curves = (curve_with_models(rows, level_tables, node, eta, sensitive, models, **others) for node in lattice_nodes(heights))
    return nondominated((point for points in curves for point in points), min_k)


# -- numbers ------------------------------------------------------------------------------------------------------------------


def _foreign(counts: Counts, whole: Counts) -> bool:
    return any(not whole.get(value) for value, number in counts.items() if number)


def _share(counts: Counts, value: Value) -> Fraction:
    return Fraction(counts.get(value, 0), sum(counts.values()))


def _decimal(number: Fraction) -> Decimal:
    with localcontext() as context:
        context.prec = DIGITS
        return Decimal(number.numerator) / Decimal(number.denominator)


def _ln(number: Fraction) -> Decimal:
    with localcontext() as context:
        context.prec = DIGITS
        return Decimal(number.numerator).ln() - Decimal(number.denominator).ln()
