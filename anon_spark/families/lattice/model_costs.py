"""What each model of a job costs alone: the same search under one model, and under none."""

from __future__ import annotations

from collections.abc import Iterator

from anon_spark.families.lattice.exact import exact_front
from anon_spark.families.lattice.facts import ModelCost
from anon_spark.families.lattice.scores import Scores
from anon_spark.kernels.models import NOTHING, Conditions, SensitiveColumn
from anon_spark.model.front import Point
from anon_spark.model.guarantee.models import Models
from anon_spark.primitives.classes import Counting


def model_costs(models: Models, scores: Scores, counting: Counting, chosen: Point) -> list[ModelCost]:
    """The least loss with at least the chosen k, under each model alone and without any.

    Cost: one exact search per model and one more, each for the chosen k and above only; one model needs no search of its own.
    """
    without = _least(scores, counting, NOTHING, chosen.k)
    names = [(name, str(model)) for name, of_column in models.items() for model in of_column]
    names += [("population", text) for text in counting.conditions.of_population()]
    losses: list[float | None] = [_least_of(scores, chosen)]
    if len(names) > 1:
        losses = [_least(scores, counting, alone, chosen.k) for alone in _alone(counting.conditions)]
    return [ModelCost(*name, loss, without) for name, loss in zip(names, losses, strict=True)]


def _alone(conditions: Conditions) -> Iterator[Conditions]:
    """The conditions of each model by itself; the other columns keep their place without a model."""
    for at, column in enumerate(conditions.columns):
        for model in column.models:
            columns = [SensitiveColumn((), other.totals) for other in conditions.columns]
            columns[at] = SensitiveColumn((model,), column.totals, column.levels)
            yield Conditions(tuple(columns))
    bare = tuple(SensitiveColumn((), column.totals) for column in conditions.columns)
    if conditions.map_k is not None:
        yield Conditions(bare, map_k=conditions.map_k)
    if conditions.presence is not None:
        yield Conditions(bare, presence=conditions.presence)


def _least(scores: Scores, counting: Counting, conditions: Conditions, k: int) -> float | None:
    front = exact_front(Scores(scores.lattice, counting.under(conditions), scores.loss), least_k=k)
    return front[-1].loss / scores.loss.denominator if front else None


def _least_of(scores: Scores, chosen: Point) -> float:
    """The least loss at the chosen k among what the search evaluated: with the exact search, of all."""
    losses = (point.loss for node in scores.points for point in scores.curve(node) if point.k >= chosen.k)
    return min(losses) / scores.loss.denominator
