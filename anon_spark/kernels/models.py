"""Whether classes keep the models of a sensitive column: floats for most classes, exact arithmetic near a limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.exact_models import holds
from anon_spark.kernels.histograms import (
    HOLDS,
    UNSURE,
    Answers,
    Histograms,
    judge_distinct,
    judge_entropy,
    judge_gain,
    judge_levels,
    judge_ordered,
    judge_ratio,
    judge_recursive,
)
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
        kept = np.ones(classes.size, dtype=np.bool_)
        for number, model in enumerate(self.models):
            answers = self._judged(model, classes)
            for index in np.flatnonzero((answers == UNSURE) & kept):
                answers[index] = self._exactly(number, classes, int(index))
            kept &= answers == HOLDS
        return kept

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
                levels = self._levels(model)
                by_level = np.array([np.bincount(codes, shares, self.width) for codes in levels])
                return judge_levels(starts, values, counts, by_level, levels, float(model.most))
            case BetaLikeness():
                limits = np.full(self.width, float(model.most))
                if model.enhanced:
                    limits = np.minimum(limits, -np.log(shares))
                return judge_gain(starts, values, counts, shares, limits)
            case DeltaDisclosure():
                return judge_ratio(starts, values, counts, shares, float(model.most))

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
