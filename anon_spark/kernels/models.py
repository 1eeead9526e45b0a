"""Whether classes keep the models of a sensitive column: floats for most classes, exact arithmetic near a limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, exp, log

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.exact_models import holds
from anon_spark.kernels.histograms import (
    HOLDS,
    UNSURE,
    Answers,
    Floats,
    Histograms,
    judge_distinct,
    judge_entropy,
    judge_gain,
    judge_levels,
    judge_ordered,
    judge_ratio,
    judge_recursive,
    sum_of_each,
)
from anon_spark.kernels.least_removed import removed_evenly, removed_for_gain, removed_for_levels, removed_in_order
from anon_spark.model.guarantee.models import (
    BetaLikeness,
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Model,
    RecursiveCL,
    TCloseness,
)


@dataclass(frozen=True, eq=False)
class SensitiveColumn:
    """The models of one column, and what they compare classes with.

    totals: rows in scope of each value, by its code; ascending values where a model orders them. levels: for the hierarchical
    distance, the code of each value on each level below the root.
    """

    models: tuple[Model, ...]
    totals: Ints
    levels: Codes | None = None
    _decided: dict[tuple[int, bytes], bool] = field(default_factory=dict, repr=False)

    @property
    def width(self) -> int:
        return int(self.totals.size)

    def kept(self, classes: Histograms) -> NDArray[np.bool_]:
        """Whether each class keeps all models."""
        return np.asarray(self.least_removed(classes, count=False) == 0)

    def least_removed(self, classes: Histograms, count: bool = True) -> Ints:
        """How many rows of each class must go at least, whatever a node below does with it: 0 iff the class keeps all models.

        count: else 1 for a class that fails.
        """
        removed = np.zeros(classes.size, dtype=np.int64)
        for number, model in enumerate(self.models):
            answers = self._judged(model, classes)
            for index in np.flatnonzero(answers == UNSURE):
                answers[index] = self._exactly(number, classes, int(index))
            fails = (answers != HOLDS).astype(np.int64)
            removed = np.maximum(removed, np.maximum(self._removed(model, classes, answers), fails) if count else fails)
        return removed

    def alone(self, number: int) -> SensitiveColumn:
        """The same column with one of its models."""
        return SensitiveColumn((self.models[number],), self.totals, self.levels)

    def portable(self) -> SensitiveColumn:
        """Without the hierarchy of a distance, whose levels are here already: what travels to tasks."""
        return SensitiveColumn(tuple(map(_without_hierarchy, self.models)), self.totals, self.levels)

    def _judged(self, model: Model, classes: Histograms) -> Answers:
        starts, values, counts = classes.starts, classes.values, classes.counts
        shares = self.totals / self.totals.sum()
        match model:
            case DistinctL():
                return judge_distinct(starts, model.l)
            case EntropyL():
                return judge_entropy(starts, counts, log(model.l), ceil(model.l))
            case RecursiveCL():
                return judge_recursive(starts, counts, float(model.c), model.l)
            case TCloseness(distance="ordered"):
                return judge_ordered(starts, values, counts, shares, float(model.most))
            case TCloseness():
                levels, by_level = self._levels(model), self._shares_by_level(model)
                return judge_levels(starts, values, counts, by_level, levels, float(model.most))
            case BetaLikeness():
                return judge_gain(starts, values, counts, shares, self._gains(model))
            case DeltaDisclosure():
                return judge_ratio(starts, values, counts, shares, float(model.most))

    def _removed(self, model: Model, classes: Histograms, answers: Answers) -> Ints:
        starts, values, counts = classes.starts, classes.values, classes.counts
        shares = self.totals / self.totals.sum()
        match model:
            case DistinctL():
                return np.where(answers == HOLDS, 0, sum_of_each(starts, counts))
            case EntropyL():
                return removed_evenly(starts, counts, answers, 0.0, 0, log(model.l))
            case RecursiveCL():
                return removed_evenly(starts, counts, answers, float(model.c), model.l, 0.0)
            case TCloseness(distance="ordered"):
                return removed_in_order(starts, values, counts, answers, shares, float(model.most))
            case TCloseness():
                levels, by_level = self._levels(model), self._shares_by_level(model)
                return removed_for_levels(starts, values, counts, answers, by_level, levels, float(model.most))
            case BetaLikeness():
                greatest = (1 + self._gains(model)) * shares
                return removed_for_gain(starts, values, counts, answers, greatest, np.zeros(self.width))
            case DeltaDisclosure():
                factor = exp(model.most)
                return removed_for_gain(starts, values, counts, answers, shares * factor, shares / factor)

    def _gains(self, model: BetaLikeness) -> Floats:
        """The greatest gain of each value."""
        limits = np.full(self.width, float(model.most))
        return np.minimum(limits, -np.log(self.totals / self.totals.sum())) if model.enhanced else limits

    def _shares_by_level(self, model: TCloseness) -> Floats:
        levels, shares = self._levels(model), self.totals / self.totals.sum()
        return np.array([np.bincount(codes, shares, int(levels.max()) + 1) for codes in levels])

    def _levels(self, model: TCloseness) -> Codes:
        if model.distance == "equal":
            return np.arange(self.width, dtype=np.int32)[None]
        assert self.levels is not None, "a hierarchical distance comes with its levels"
        # a hierarchy may know values that the column does not have: codes without gaps are below the width
        return np.array([np.unique(codes, return_inverse=True)[1] for codes in self.levels], dtype=np.int32)

    def _exactly(self, number: int, classes: Histograms, index: int) -> bool:
        """The exact answer for one class; equal classes are decided once."""
        part = slice(classes.starts[index], classes.starts[index + 1])
        counts = np.zeros(self.width, dtype=np.int64)
        counts[classes.values[part]] = classes.counts[part]
        known = (number, counts.tobytes())
        if known not in self._decided:
            self._decided[known] = holds(self.models[number], counts.tolist(), self.totals.tolist(), self.levels)
        return self._decided[known]


@dataclass(frozen=True)
class Conditions:
    """What a class must keep besides its size, or it is left out.

    columns: the sensitive columns with models; map_k, presence: of the rows in a population, see `kept_by_population`.
    """

    columns: tuple[SensitiveColumn, ...] = ()
    map_k: int | None = None
    presence: tuple[Fraction, Fraction] | None = None

    def __bool__(self) -> bool:
        return bool(self.columns) or self.map_k is not None or self.presence is not None

    def of_population(self) -> list[str]:
        """What is kept in the population, in words."""
        found = [] if self.map_k is None else [f"{self.map_k}-map"]
        if self.presence is not None:
            found.append(f"presence from {float(self.presence[0]):g} to {float(self.presence[1]):g}")
        return found

    def is_monotone(self, budget: int) -> bool:
        """Whether fewer rows fail at every node above: always without suppression, else for models that unions cannot lose."""
        if budget == 0:
            return True
        return self.presence is None and all(model.monotone for column in self.columns for model in column.models)

    def kept(self, rows: Ints, classes: Sequence[Histograms], population: Ints | None) -> NDArray[np.bool_]:
        """Whether each class keeps everything."""
        kept = np.ones(rows.size, dtype=np.bool_)
        for column, histograms in zip(self.columns, classes, strict=True):
            kept &= column.kept(histograms)
        if population is not None:
            kept &= kept_by_population(rows, population, self.map_k, self.presence)
        return kept

    def least_removed(self, rows: Ints, classes: Sequence[Histograms], population: Ints | None) -> Ints:
        """How many rows of each class must go at least, whatever a node below does with it.

        Presence says nothing here: a part of a class that fails may keep it with hardly a row less.
        """
        removed = np.zeros(rows.size, dtype=np.int64)
        for column, histograms in zip(self.columns, classes, strict=True):
            removed = np.maximum(removed, column.least_removed(histograms))
        if population is not None:
            removed = np.where(kept_by_population(rows, population, self.map_k, None), removed, rows)
        return removed

    def portable(self) -> Conditions:
        return Conditions(tuple(column.portable() for column in self.columns), self.map_k, self.presence)


NOTHING = Conditions()
Judge = Callable[[Histograms], NDArray[np.bool_]]


def kept_by_population(
    rows: Ints, population: Ints, map_k: int | None, presence: tuple[Fraction, Fraction] | None
) -> NDArray[np.bool_]:
    """Whether each class has map_k rows in the population, and a share of it between the two ends of `presence`."""
    kept = np.ones(rows.size, dtype=np.bool_) if map_k is None else population >= map_k
    if presence is not None:
        least, most = presence
        exact_rows, exact_population = rows.astype(object), population.astype(object)
        kept &= (exact_rows * least.denominator >= least.numerator * exact_population).astype(np.bool_)
        kept &= (exact_rows * most.denominator <= most.numerator * exact_population).astype(np.bool_)
    return kept


def _without_hierarchy(model: Model) -> Model:
    if isinstance(model, TCloseness) and model.hierarchy is not None:
        bare = object.__new__(TCloseness)
        for name, value in (("most", model.most), ("distance", model.distance), ("hierarchy", None)):
            object.__setattr__(bare, name, value)
        return bare
    return model
