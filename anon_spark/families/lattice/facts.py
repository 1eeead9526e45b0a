"""Facts of the lattice family about a fit and a release."""

from __future__ import annotations

from dataclasses import dataclass, field

from anon_spark.model.facts import Facts, FitStatistics, FrontPoint, LevelReached, LookUpFacts, ModelSpread

SHOWN_POINTS = 12  # in a summary


LOSS_NAMES = {
    "glm": "general loss (GLM), 0 to 1",
    "dm": "discernibility loss (DM)",
    "cm": "classification loss (CM), 0 to 1",
}


@dataclass(frozen=True)
class Search(FitStatistics):
    """How the front was found; complete: no point is missing; budget: rows that may be suppressed.

    least_loss: in a lattice too large for a front, a loss that no node with the chosen k is below.
    """

    name: str
    loss: str
    nodes: int
    evaluated: int
    batches: int
    tuples: int
    rows: int
    budget: int
    complete: bool
    least_loss: float | None = None


@dataclass(frozen=True)
class ModelCost:
    """What one model alone costs: the least loss with the chosen k under it, beside the least without any model.

    loss: None where no node keeps it within the suppression that is allowed.
    """

    column: str
    model: str
    loss: float | None
    without: float | None


@dataclass(frozen=True)
class LatticeFit(Facts):
    """The front, the point that was chosen from it, and what each model costs.

    others_wait: whether the levels of a series were kept, and rows of small classes wait; refit: what a search of the same rows
    would choose instead, None where it was not searched or no node reaches k.
    """

    loss: str
    required_k: int
    chosen: FrontPoint
    front: tuple[FrontPoint, ...]
    attributes: tuple[LevelReached, ...]
    search: Search
    model_costs: tuple[ModelCost, ...] = field(default=(), kw_only=True)
    others_wait: bool = field(default=False, kw_only=True)
    refit: FrontPoint | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class LatticeFacts(LookUpFacts, LatticeFit):
    """The fit, with counts of the audit and what an attacker gains. models: how the classes keep each of them."""

    models: tuple[ModelSpread, ...] = field(default=(), kw_only=True)

    @property
    def detail_lost(self) -> dict[str, float]:
        """The share of its detail that each attribute lost in the published rows; a loss also charges suppressed rows."""
        rows, suppressed = self.search.rows, self.chosen.suppressed_rows
        published = max(1, rows - suppressed)
        shares = {attribute.name: (attribute.loss * rows - suppressed) / published for attribute in self.attributes}
        return {attribute.name: _within(shares[attribute.name]) if attribute.level else 0.0 for attribute in self.attributes}

    def summary(self) -> list[str]:
        """The points of the front around the chosen one."""
        at = next((at for at, point in enumerate(self.front) if point == self.chosen), 0)
        first = max(0, min(at - SHOWN_POINTS // 2, len(self.front) - SHOWN_POINTS))
        lines = [
            f"The Pareto front has {len(self.front)} points; around the chosen one:",
            "       k    loss  suppressed  levels",
        ]
        for point in self.front[first : first + SHOWN_POINTS]:
            mark = "→" if point == self.chosen else " "
            lines.append(f"{mark}{point.k:7,}  {point.loss:.4f}  {point.suppressed_rows:10,}  {list(point.node)}")
        return lines


def _within(share: float) -> float:
    """A share without the last digits of its arithmetic."""
    return min(1.0, max(0.0, float(f"{share:.12g}")))
