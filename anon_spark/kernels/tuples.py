"""The frequency table as arrays: climbing it, rolling it up, and evaluating many lattice nodes from it.

A batch is evaluated by divide and conquer: the table is rolled up to the meet of the batch's nodes (which is
smaller), the batch is halved on the attribute that still spreads most, and each half goes on from the smaller table.
So a node costs about the size of the smallest table below it, not that of the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernels.classes import (
    Codes,
    Ints,
    add_person_sets,
    bounding_curve,
    class_keys,
    curve,
    group_dense,
    group_hashed,
    majority_by_class,
    sum_by_class,
    suppressed_weights,
)
from anon_spark.kernels.histograms import Histograms, by_class
from anon_spark.kernels.models import NOTHING, Conditions
from anon_spark.model.lattice import Node

KEY_LIMIT = 2**62
ROLL_UP_FROM = 4  # below this many nodes a roll-up costs more than it saves

UNDER, BOUND = 0, 1  # a node's rows at each k: under the conditions, and what bounds the nodes below where that is another
STATS = ("k", "suppressed", "classes", "squares", "all_squares", "majority", "all_majority")


@dataclass(frozen=True)
class Ladder:
    """The hierarchies of all attributes as arrays: code of each leaf on each level, loss weight of each code."""

    codes: tuple[Codes, ...]
    weights: tuple[tuple[Ints, ...], ...]
    _climbs: dict[tuple[int, int, int], Ints] = field(default_factory=dict, repr=False, compare=False)

    def cardinality(self, attribute: int, level: int) -> int:
        return len(self.weights[attribute][level])

    def climb(self, attribute: int, low: int, high: int) -> Ints:
        """Code on the high level of each code on the low one."""
        step = (attribute, low, high)
        if step not in self._climbs:
            codes = self.codes[attribute]
            climbed = np.zeros(self.cardinality(attribute, low), dtype=np.int64)
            climbed[codes[low]] = codes[high]
            self._climbs[step] = climbed
        return self._climbs[step]

    @property
    def nbytes(self) -> int:
        return sum(codes.nbytes for codes in self.codes)


@dataclass(frozen=True)
class PersonSets:
    """Persons with several tuples: distinct sets of tuples, and how many persons have exactly each set."""

    offsets: Ints
    members: Codes
    multiplicity: Ints


@dataclass(frozen=True)
class TupleTable:
    """Distinct tuples on the levels of `base` with their rows; persons, class and sensitive values where the job asks for them.

    `persons` counts those with this one tuple only; without it every row is a person. `sensitive`: of each sensitive column with
    models its values by tuple. `population`: rows of a population; a tuple that is only there has no row here.
    """

    base: Node
    codes: Codes
    rows: Ints
    persons: Ints | None = None
    sets: PersonSets | None = None
    class_counts: Ints | None = None
    sensitive: tuple[Histograms, ...] = ()
    population: Ints | None = None

    @property
    def size(self) -> int:
        return int(self.rows.size)

    def with_codes(self, codes: Codes) -> TupleTable:
        """The same counts for other codes (how a table travels in narrow integers)."""
        return replace(self, codes=codes)


@dataclass(frozen=True)
class Grouping:
    """The equivalence classes of a table on one node."""

    inverse: Codes
    representatives: Codes
    rows: Ints
    persons: Ints
    class_counts: Ints | None
    majority: Ints
    sensitive: tuple[Histograms, ...] = ()
    population: Ints | None = None

    def members(self, conditions: Conditions) -> Ints:
        """Persons of each class; none of a class that fails the conditions, so that it is below every k."""
        if not conditions:
            return self.persons
        return np.where(conditions.kept(self.rows, self.sensitive, self.population), self.persons, 0)


def group(table: TupleTable, ladder: Ladder, node: Node, conditions: Conditions = NOTHING) -> Grouping:
    """Classes of the tuples generalized to the node (which lies above the table's base)."""
    inverse, representatives = class_of_tuples(table, ladder, node)
    classes = representatives.size
    rows = sum_by_class(table.rows, inverse, classes)
    persons = rows
    if table.persons is not None:
        persons = sum_by_class(table.persons, inverse, classes)
        if table.sets is not None:
            sets = table.sets
            add_person_sets(persons, inverse, sets.offsets, sets.members, sets.multiplicity)
    class_counts, majority = None, rows
    if table.class_counts is not None:
        class_counts, majority = majority_by_class(table.class_counts, inverse, classes)
    sensitive = tuple(
        by_class(of_tuples, inverse, classes, column.width)
        for of_tuples, column in zip(table.sensitive, conditions.columns, strict=True)
    )
    population = None if table.population is None else sum_by_class(table.population, inverse, classes)
    return Grouping(inverse, representatives, rows, persons, class_counts, majority, sensitive, population)


def roll_up(table: TupleTable, ladder: Ladder, node: Node, conditions: Conditions = NOTHING) -> TupleTable:
    """The table on the levels of a node above its base, one tuple per class."""
    grouping = group(table, ladder, node, conditions)
    codes = np.empty((len(node), grouping.rows.size), dtype=np.int32)
    for attribute, level in enumerate(node):
        climbed = ladder.climb(attribute, table.base[attribute], level)
        codes[attribute] = climbed[table.codes[attribute][grouping.representatives]]
    persons, sets = table.persons, table.sets
    if persons is not None:
        persons = sum_by_class(persons, grouping.inverse, grouping.rows.size)
    if sets is not None:
        sets = PersonSets(sets.offsets, grouping.inverse[sets.members], sets.multiplicity)
    counts = (persons, sets, grouping.class_counts, grouping.sensitive, grouping.population)
    return TupleTable(node, codes, grouping.rows, *counts)


def evaluate_node(table: TupleTable, ladder: Ladder, node: Node, budget: int, conditions: Conditions = NOTHING) -> Ints:
    """UNDER or BOUND, STATS of the node at each k, ascending, then per attribute the loss weight of the suppressed rows.

    k is 0 where the classes that fail the conditions have more rows than the budget.
    """
    grouping = group(table, ladder, node, conditions)
    members, rows = grouping.members(conditions), grouping.rows
    totals, suppressed = curve(members, rows, grouping.majority, budget)
    under = _with_weights(table, ladder, node, grouping, totals, suppressed, rows)
    if conditions.is_monotone(budget):
        return np.column_stack([np.full(len(under), UNDER), under])
    removed = conditions.least_removed(rows, grouping.sensitive, grouping.population)
    totals, suppressed = bounding_curve(grouping.persons, rows, grouping.majority, removed, budget)
    bound = _with_weights(table, ladder, node, grouping, totals, suppressed, rows - removed)
    if totals[-1, 0] > 0:
        always = np.full(1, rows.size)
        bound[:, len(STATS) :] += _weights(table, ladder, node, grouping, np.arange(rows.size), always, removed)
    which = np.repeat([UNDER, BOUND], [len(under), len(bound)])
    return np.column_stack([which, np.concatenate([under, bound])])


def _with_weights(
    table: TupleTable, ladder: Ladder, node: Node, grouping: Grouping, totals: Ints, suppressed: Ints, rows: Ints
) -> Ints:
    """Totals at each k, and the loss weight of so many rows of the suppressed classes."""
    weights = np.zeros((len(totals), len(node)), dtype=np.int64)
    if suppressed.size:
        counts = grouping.rows.size - totals[:, STATS.index("classes")]
        weights = _weights(table, ladder, node, grouping, suppressed, counts, rows)
    return np.column_stack([totals, weights])


def _weights(
    table: TupleTable, ladder: Ladder, node: Node, grouping: Grouping, classes: Ints, counts: Ints, rows: Ints
) -> Ints:
    """Per attribute the loss weight of so many rows of the first counts[i] classes."""
    flat, starts = _flatten(
        [
            ladder.weights[attribute][level][ladder.climb(attribute, table.base[attribute], level)]
            for attribute, level in enumerate(node)
        ]
    )
    return suppressed_weights(table.codes, grouping.representatives, rows, classes, counts, flat, starts)


def evaluate_nodes(
    table: TupleTable, ladder: Ladder, nodes: Sequence[Node], budget: int, conditions: Conditions = NOTHING
) -> Ints:
    """For each node one row per k: the node's place among the nodes, then as `evaluate_node`."""
    levels = np.array(nodes, dtype=np.int64).reshape(len(nodes), len(table.base))
    found: list[Ints] = [np.zeros((0, 0), dtype=np.int64)] * len(nodes)
    pending = [(table, np.arange(len(nodes)))]
    while pending:
        small, members = pending.pop()
        if members.size >= ROLL_UP_FROM:
            meet = tuple(int(level) for level in levels[members].min(axis=0))
            if meet != small.base:
                small = roll_up(small, ladder, meet, conditions)
            pending.extend((small, half) for half in halves(levels, members, ladder))
        else:
            for member in members:
                node = tuple(int(level) for level in levels[member])
                found[member] = evaluate_node(small, ladder, node, budget, conditions)
    if not found:
        return np.zeros((0, 2 + len(STATS) + len(table.base)), dtype=np.int64)
    place = np.repeat(np.arange(len(nodes)), [len(rows) for rows in found])
    return np.column_stack([place, np.concatenate(found)])


def halves(levels: Ints, members: NDArray[np.intp], ladder: Ladder) -> list[NDArray[np.intp]]:
    """Split nodes at the largest step of cardinality among the levels they have on one attribute.

    Equal nodes cannot be split: they come back one by one.
    """
    best, cut = (0.0, 0), (0, 0)
    for attribute in range(levels.shape[1]):
        present = np.unique(levels[members, attribute])
        for low, high in pairwise(present):
            sizes = ladder.cardinality(attribute, int(low)), ladder.cardinality(attribute, int(high))
            step = (float(np.log(sizes[0] / sizes[1])), -attribute)
            if step > best or cut == (0, 0):
                best, cut = step, (attribute, int(high))
    if cut == (0, 0):
        return [members[position : position + 1] for position in range(members.size)]
    upper = levels[members, cut[0]] >= cut[1]
    return [members[~upper], members[upper]]


def class_of_tuples(table: TupleTable, ladder: Ladder, node: Node) -> tuple[Codes, Codes]:
    """Group in segments of attributes whose keys fit 62 bits; almost always there is one segment."""
    keys = np.zeros(table.size, dtype=np.int64)
    span = 1
    for segment in _segments(ladder, node):
        cards = [ladder.cardinality(attribute, node[attribute]) for attribute in segment]
        width = 1
        for card in cards:
            width *= card
        if span > 1 and span * width > KEY_LIMIT:
            inverse, representatives = group_hashed(keys)
            keys, span = inverse.astype(np.int64), representatives.size
        steps: list[Ints] = [np.zeros(0, dtype=np.int64)] * len(node)
        radix = 1
        for attribute, card in zip(segment, cards, strict=True):
            steps[attribute] = ladder.climb(attribute, table.base[attribute], node[attribute]) * radix
            radix *= card
        flat, starts = _flatten(steps)
        part = class_keys(table.codes, np.array(segment, dtype=np.int64), flat, starts)
        keys = part if span == 1 else keys * width + part
        span *= width
    if span <= max(2**16, 4 * table.size):
        return group_dense(keys, span)
    return group_hashed(keys)


def _segments(ladder: Ladder, node: Node) -> list[list[int]]:
    """Attributes with more than one code on the node's level, cut so that keys of a segment fit 31 bits."""
    segments: list[list[int]] = []
    width = KEY_LIMIT
    for attribute, level in enumerate(node):
        card = ladder.cardinality(attribute, level)
        if card == 1:
            continue
        if width * card > 2**31:
            segments.append([])
            width = 1
        segments[-1].append(attribute)
        width *= card
    return segments


def _flatten(arrays: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Arrays end to end, and where each starts."""
    starts = np.zeros(len(arrays), dtype=np.int64)
    np.cumsum([array.size for array in arrays[:-1]], out=starts[1:])
    return np.concatenate(arrays), starts
