"""Which classes hold a model of attribute disclosure: measured in floats, decided exactly where these are near the limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anon_spark.auditing.guarantees.model_ties import entropy_holds, gain_holds, ratio_holds
from anon_spark.auditing.reading import spread
from anon_spark.auditing.reading.spread import Exact, Floats, Histograms, Ints, Whole
from anon_spark.model.guarantee.models import (
    BetaLikeness,
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Model,
    RecursiveCL,
    TCloseness,
)

_NEAR = 1e-9  # floats are right to more digits than these

Marks = npt.NDArray[np.bool_]


class Judged(NamedTuple):
    """The measure of each class, infinite where it has none, and whether the class holds the model."""

    values: Floats
    holds: Marks


@dataclass(frozen=True)
class Judge:
    """One model of one sensitive column, with what it compares classes with.

    column: number of the column; levels: of a hierarchical distance, see `level_distance`.
    """

    column: int
    model: Model
    whole: Whole
    levels: Ints | None = None

    @property
    def limit(self) -> Fraction:
        return limit_of(self.model)

    def judge(self, classes: Histograms) -> Judged:
        """Measure and decide.

        Guarantee: decided exactly. A class that fails for lack of a measure has an infinite one: it has fewer than l values
        (recursive), lacks a value of the whole table (δ), or has one that the table lacks (t, β, δ).
        Cost: proportional to the entries; for ordered and hierarchical distances to classes times values of the column.
        """
        parts = [self._judged(part) for part in classes.parts(self.whole.values)]
        if not parts:
            return Judged(np.zeros(0), np.zeros(0, dtype=bool))
        return Judged(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _judged(self, classes: Histograms) -> Judged:
        model = self.model
        if isinstance(model, DistinctL):
            counts = spread.distinct(classes)
            return Judged(counts.astype(float), counts >= model.l)
        if isinstance(model, EntropyL):
            return _of_entropy(classes, model.l)
        if isinstance(model, RecursiveCL):
            largest, others = spread.recursive(classes, model.l)
            return _compared(largest, others, model.c, strictly=True)
        if isinstance(model, TCloseness):
            return _without_foreign(classes, lambda known: _compared(*self._distance(known), model.most))
        if isinstance(model, BetaLikeness):
            return _of_gains(classes, self.whole, model)
        return _of_ratios(classes, self.whole, model.most)

    def _distance(self, classes: Histograms) -> tuple[Exact, Exact]:
        if self.levels is not None:
            return spread.level_distance(classes, self.whole, self.levels)
        ordered = isinstance(self.model, TCloseness) and self.model.distance == "ordered"
        return (spread.ordered_distance if ordered else spread.equal_distance)(classes, self.whole)


def limit_of(model: Model) -> Fraction:
    """The number that a class is compared with."""
    if isinstance(model, DistinctL | EntropyL):
        return Fraction(model.l)
    return model.c if isinstance(model, RecursiveCL) else model.most


def at_least(model: Model) -> bool:
    """Whether the measure must not be below the limit; otherwise, not above it."""
    return isinstance(model, DistinctL | EntropyL)


def compares_with_table(model: Model) -> bool:
    """Whether the model compares classes with the whole table."""
    return isinstance(model, TCloseness | BetaLikeness | DeltaDisclosure)


def near(values: Floats, limit: float) -> Marks:
    """Whether floats are too close to a limit to decide by them."""
    marks: Marks = np.abs(values - limit) <= _NEAR * max(1.0, abs(limit))
    return marks


def _compared(above: Exact, below: Exact, limit: Fraction, strictly: bool = False) -> Judged:
    """Fractions of integers, against the limit; strictly: equal to it fails. n / 0 is infinite."""
    values = np.full(len(above), np.inf)
    finite = below > 0
    values[finite] = (above[finite] / below[finite]).astype(float)
    holds = values < float(limit)
    for at in np.flatnonzero(near(values, float(limit))):
        apart = limit.numerator * int(below[at]) - limit.denominator * int(above[at])
        holds[at] = apart > 0 or (apart == 0 and not strictly)
    return Judged(values, holds)


def _of_entropy(classes: Histograms, least: Fraction) -> Judged:
    values = spread.entropy(classes)
    holds = values > float(least)
    for at in np.flatnonzero(near(values, float(least))):
        counts = classes.counts[classes.offsets[at] : classes.offsets[at + 1]]
        holds[at] = entropy_holds(tuple(np.sort(counts).tolist()), least)
    return Judged(values, holds)


def _of_gains(classes: Histograms, whole: Whole, model: BetaLikeness) -> Judged:
    """(p − q) / q of each entry, at most β; enhanced: at most −ln q, too."""
    gains, most = spread.likeness(classes, whole) - 1, model.most

    def below_most(count: int, rows: int, there: int, whole_rows: int) -> bool:
        return count * whole_rows * most.denominator <= (most.numerator + most.denominator) * there * rows

    holds = gains < float(most)
    _settle(holds, near(gains, float(most)), below_most, classes, whole)
    if model.enhanced:
        surprise = np.append(np.log(whole.rows / whole.counts), 0.0)[classes.values]  # UNKNOWN is the last
        low = gains < surprise
        _settle(low, near(gains - surprise, 0.0), gain_holds, classes, whole)
        holds &= low
    return _of_entries(classes, gains, holds)


def _of_ratios(classes: Histograms, whole: Whole, most: Fraction) -> Judged:
    """|ln(p / q)| of each entry, below δ; every value of the table must be there."""
    ratios = np.abs(np.log(spread.likeness(classes, whole)))
    holds = ratios < float(most)
    close = near(ratios, float(most)) & np.isfinite(ratios)
    _settle(holds, close, lambda *numbers: ratio_holds(*numbers, most), classes, whole)
    judged = _of_entries(classes, ratios, holds)
    lacking = spread.distinct(classes) < whole.values  # a foreign value in place of another is infinite anyway
    return Judged(np.where(lacking, np.inf, judged.values), judged.holds & ~lacking)


def _settle(
    holds: Marks, close: Marks, decide: Callable[[int, int, int, int], bool], classes: Histograms, whole: Whole
) -> None:
    """Decide entries exactly, by rows with the value and all rows, in the class and in the whole table."""
    for at in np.flatnonzero(close):
        there = int(whole.counts[classes.values[at]])
        holds[at] = decide(int(classes.counts[at]), int(classes.rows[classes.owners[at]]), there, whole.rows)


def _of_entries(classes: Histograms, values: Floats, holds: Marks) -> Judged:
    """The greatest value of a class; it holds if all its entries do. An entry of a foreign value has an infinite value."""
    starts = classes.offsets[:-1]
    return Judged(np.maximum.reduceat(values, starts), np.logical_and.reduceat(holds, starts))


def _without_foreign(classes: Histograms, judge: Callable[[Histograms], Judged]) -> Judged:
    """Judge the classes all of whose values the whole table has; the others fail."""
    foreign = classes.foreign
    if not foreign.any():
        return judge(classes)
    values, holds = np.full(classes.size, np.inf), np.zeros(classes.size, dtype=bool)
    known = np.flatnonzero(~foreign)
    if known.size:
        kept = ~foreign[classes.owners]
        offsets = np.concatenate([[0], np.cumsum(np.diff(classes.offsets)[known])])
        values[known], holds[known] = judge(Histograms(offsets, classes.values[kept], classes.counts[kept]))
    return Judged(values, holds)
