"""The choice of a point of the front as the release. A point below the required k cannot be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from anon_spark.errors import ConfigurationError, GuaranteeUnreachable
from anon_spark.families.lattice.scores import Scores
from anon_spark.model.front import Point, knee
from anon_spark.model.lattice import Node


@dataclass(frozen=True)
class Choice:
    """Exactly one of: the least loss with at least k, the largest k within a loss, a node, the knee."""

    k: int | None = None
    max_loss: float | None = None
    node: Node | None = None
    knee: bool = False

    def __post_init__(self) -> None:
        if sum((self.k is not None, self.max_loss is not None, self.node is not None, self.knee)) != 1:
            raise ConfigurationError("choose takes exactly one of: k, max_loss, node, knee.")


def choose(
    choice: Choice, front: Sequence[Point], scores: Scores, required_k: int, models: Sequence[str] = ()
) -> Point:
    """The chosen point; if the table does not allow it, raises and names what is reachable. models: what else was asked for."""
    allowed = [point for point in front if point.k >= required_k]
    if choice.node is not None:
        return _node(choice.node, scores, required_k, models)
    if choice.k is not None:
        wanted = [point for point in allowed if point.k >= choice.k]
        if not wanted:
            raise _unreachable(max(choice.k, required_k), front, models)
        return wanted[-1]  # the front falls in k and in loss
    if not allowed:
        raise _unreachable(required_k, front, models)
    if choice.max_loss is not None:
        bound = Fraction(str(choice.max_loss)) * scores.loss.denominator
        within = [point for point in allowed if point.loss <= bound]
        if not within:
            least = allowed[-1].loss / scores.loss.denominator
            raise GuaranteeUnreachable(
                f"choose.max_loss {choice.max_loss}: the least loss with k of at least {required_k} is {least:.6f}. "
                "Allow that much, lower privacy.k, or allow more suppression.",
                least_loss=least,
            )
        return within[0]
    return knee(allowed)


def _node(node: Node, scores: Scores, required_k: int, models: Sequence[str]) -> Point:
    if node not in scores.lattice:
        raise ConfigurationError(
            f"choose.node has a level outside the lattice, whose heights are {list(scores.lattice.heights)}."
        )
    (largest,) = scores.evaluate([node])
    if largest.k == 0:
        raise GuaranteeUnreachable(
            f"choose.node: classes that fail {', '.join(models)} have more rows than may be suppressed. Choose another node, or "
            "allow more suppression.",
            k=0,
        )
    if largest.k < required_k:
        raise GuaranteeUnreachable(
            f"choose.node reaches k = {largest.k}, privacy.k asks for {required_k}. Choose a more general node.",
            k=largest.k,
        )
    return next(point for point in scores.curve(node) if point.k >= required_k)


def _unreachable(k: int, front: Sequence[Point], models: Sequence[str]) -> GuaranteeUnreachable:
    most = front[0].k if front else 1
    if models:
        reached = f"the most is k = {front[0].k}" if front else "no node keeps them with k of 2 or more"
        return GuaranteeUnreachable(
            f"k = {k} cannot be reached under {', '.join(models)} with the suppression that is allowed: {reached}. "
            "Relax a model, allow more suppression, or lower k.",
            most=front[0].k if front else 0,
        )
    return GuaranteeUnreachable(
        f"k = {k} cannot be reached: even the most general node has k = {most}. Lower k, or give more rows.", most=most
    )
