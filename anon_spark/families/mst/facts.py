"""Facts of the mst family about a fit and a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anon_spark.model.facts import Facts, FitStatistics, LevelShares, LookUp, LookUpFacts, ModelSpread


@dataclass(frozen=True)
class PartitionStatistics(FitStatistics):
    """How the tuples were divided into classes.

    weights: how many edges of the spanning tree have each weight; tau: the threshold at which the whole tree is cut, and
    whether every edge is heavier; kept, small: parts that the cut left, large enough and too small; identical: parts of equal
    rows; merge: the way of merging, with its rounds; blocks: those that the classes were refined in, None without refinement;
    suppressed: rows that were left out; steps: seconds of each step.
    """

    tuples: int
    rows: int
    weights: Mapping[int, int]
    tau: float
    tau_below_min_weight: bool
    kept: int
    small: int
    identical: int
    rows_kept: int
    merge: str
    rounds: int | None
    steps: Mapping[str, float]
    seconds_counting: float
    blocks: int | None = None
    suppressed: int = 0

    @classmethod
    def loaded(cls, saved: Mapping[str, Any]) -> PartitionStatistics:
        """From a saved recoding, whose JSON has only texts as keys."""
        return cls(**{**saved, "weights": {int(weight): count for weight, count in saved["weights"].items()}})


@dataclass(frozen=True)
class Measures:
    """Losses of a release; see anon_spark.metrics.recoded."""

    glm: float
    il: float
    ncp: float
    dm: float
    cavg: float


@dataclass(frozen=True)
class CoverLookUp(LookUp):
    """Success of a look-up where several classes may cover a row; also for an attacker who knows the right class."""

    expected_success_if_the_class_is_known: float
    worst_success_if_the_class_is_known: float

    @property
    def worst(self) -> float:
        return self.worst_success_if_the_class_is_known


@dataclass(frozen=True)
class MstFit(Facts):
    """The settings, and how the tuples were divided."""

    required_k: int
    l: int | None  # noqa: E741 - the literature's name
    partition: PartitionStatistics


@dataclass(frozen=True)
class ExtentShare:
    """Mean share of its domain that a column published as extents covers: as labels it would be, and as it is."""

    name: str
    label: float
    extent: float


@dataclass(frozen=True)
class Measured:
    """Measures of a release, the share of rows on each level of each attribute, and what extents gain.

    GLM is that of what is published; the other losses are those of the labels, whether extents are published or not.
    """

    measures: Measures
    levels: tuple[LevelShares, ...]
    extents: tuple[ExtentShare, ...]


@dataclass(frozen=True)
class MstFacts(LookUpFacts, Measured, MstFit):
    """The fit, with losses, counts of the audit and what an attacker gains."""

    models: tuple[ModelSpread, ...] = field(default=(), kw_only=True)

    def summary(self) -> list[str]:
        """How the classes were made, and the losses."""
        parts, measures = self.partition, self.measures
        return [
            f"{parts.tuples:,} distinct tuples; {parts.kept:,} classes from the split, {parts.small:,} parts merged.",
            f"General loss {measures.glm:.4f} (0 to 1), average class size {measures.cavg:.2f} times k.",
            *([f"{parts.suppressed:,} rows suppressed."] if parts.suppressed else []),
        ]
