"""Models of sensitive columns in a job file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from anon_spark.config.hierarchies import KINDS, HierarchySpec
from anon_spark.config.job import PrivacySpec
from anon_spark.config.spec import ColumnName, Number, Problem, Spec, section, texts
from anon_spark.model.guarantee.models import (
    BetaLikeness,
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Model,
    RecursiveCL,
    TCloseness,
)
from anon_spark.model.hierarchy import Hierarchy, Rule


class RecursiveSpec(Spec):
    """Recursive (c, l)-diversity."""

    c: Annotated[Number, Field(gt=0)] = Field(
        description="The most frequent value has less than c times the rows of the l-th and all rarer ones.")
    l: int = Field(ge=2, description="From which value on the rarer ones are counted.")  # noqa: E741 - the papers' name


def _distance(value: object) -> object:
    if value in ("equal", "ordered") or isinstance(value, Mapping | HierarchySpec):
        return value
    raise ValueError(f"should be equal, ordered, or a hierarchy: one of {', '.join(KINDS)}")


class ClosenessSpec(Spec):
    """t-closeness."""

    max: Annotated[Number, Field(ge=0, le=1)] = Field(description="Greatest distance between a class and the table, from 0 to 1.")
    distance: Annotated[Literal["equal", "ordered"] | HierarchySpec, BeforeValidator(_distance)] = Field(
        default="equal",
        description="Between two values: equal, ordered (numbers, dates), or by a hierarchy, written as for a quasi-identifier.")


class LikenessSpec(Spec):
    """β-likeness."""

    max: Annotated[Number, Field(gt=0)] = Field(description="Greatest relative gain of a value's share in a class.")
    enhanced: bool = Field(default=False, description="Also at most −ln of the value's share in the table.")


class ModelsSpec(Spec):
    """What the values of one sensitive column must keep in every class; several models may be asked for at once."""

    l: int | None = Field(default=None, ge=2, description="Least number of distinct values.")  # noqa: E741
    entropy_l: Annotated[Number, Field(gt=1)] | None = Field(
        default=None, description="Least exponential of the entropy; may be fractional.")
    recursive: RecursiveSpec | None = Field(default=None, description="Recursive (c, l)-diversity.")
    t: ClosenessSpec | None = Field(default=None, description="t-closeness.")
    beta: LikenessSpec | None = Field(default=None, description="β-likeness.")
    delta: Annotated[Number, Field(gt=0)] | None = Field(
        default=None, description="δ-disclosure: |ln| of each share in a class over that in the table stays below.")

    @model_validator(mode="after")
    def _one_at_least(self) -> Self:
        if not self.model_fields_set or all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError(f"needs a model: {', '.join(type(self).model_fields)}")
        return self

    @property
    def hierarchy(self) -> HierarchySpec | None:
        """The hierarchy of the distance between values, if there is one."""
        return self.t.distance if self.t is not None and isinstance(self.t.distance, HierarchySpec) else None

    def models(self, hierarchy: Hierarchy | Rule | None = None) -> tuple[Model, ...]:
        """The models as values. hierarchy: of the distance, loaded."""
        found: list[Model | None] = [
            None if self.l is None else DistinctL(self.l),
            None if self.entropy_l is None else EntropyL(self.entropy_l),
            None if self.recursive is None else RecursiveCL(self.recursive.c, self.recursive.l),
            None if self.t is None else _closeness(self.t, hierarchy),
            None if self.beta is None else BetaLikeness(self.beta.max, self.beta.enhanced),
            None if self.delta is None else DeltaDisclosure(self.delta),
        ]
        return tuple(model for model in found if model is not None)


def _closeness(spec: ClosenessSpec, hierarchy: Hierarchy | Rule | None) -> TCloseness:
    if isinstance(spec.distance, HierarchySpec):
        return TCloseness(spec.max, "hierarchical", hierarchy)
    return TCloseness(spec.max, spec.distance)


class SensitivePrivacySpec(PrivacySpec):
    """k-anonymity with a budget of suppressed rows, and models of the sensitive columns."""

    sensitive: Mapping[ColumnName, ModelsSpec] | None = Field(
        default=None, description="Models of attribute disclosure, by sensitive column.")

    @property
    def distances(self) -> dict[str, HierarchySpec]:
        """The hierarchies of distances by column."""
        return {name: spec.hierarchy for name, spec in (self.sensitive or {}).items() if spec.hierarchy is not None}

    def models(self, distances: Mapping[str, Hierarchy | Rule]) -> dict[str, tuple[Model, ...]]:
        """The models by column. distances: their hierarchies, loaded."""
        return {name: spec.models(distances.get(name)) for name, spec in (self.sensitive or {}).items()}


def distance_sections(raw: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """(key, section) of every hierarchy of a distance that an unchecked job names."""
    for name, models in section(raw, "privacy", "sensitive").items():
        distance = section(models, "t").get("distance")
        if isinstance(distance, Mapping):
            yield f"privacy.sensitive.{name}.t.distance", distance


def model_conflicts(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Models of columns that are not sensitive."""
    sensitive = texts(raw, "columns", "sensitive")
    for name in section(raw, "privacy", "sensitive"):
        if name not in sensitive:
            yield f"privacy.sensitive.{name}", "is no sensitive column; name it in columns.sensitive, or remove its models"


