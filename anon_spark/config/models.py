"""Models of sensitive columns in a job file, and guarantees beside a population."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from anon_spark.config.hierarchies import KINDS, HierarchySpec
from anon_spark.config.job import InputSpec, PrivacySpec, QuasiIdentifierJob
from anon_spark.config.spec import ColumnName, Number, Problem, Spec, section, texts, whole
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


class PopulationSpec(InputSpec):
    """A table of everybody who could be in the input."""

    columns: Mapping[ColumnName, ColumnName] = Field(
        default={}, description="Quasi-identifiers that have another name in the population, with that name.")


def _shares(value: object) -> object:
    if isinstance(value, list | tuple) and len(value) == 2:
        return tuple(value)
    raise ValueError("should be two shares: [least, most]")


Share = Annotated[Number, Field(ge=0, le=1)]


class InPopulationSpec(PrivacySpec):
    """k-anonymity with a budget of suppressed rows, and what a class must keep in a population."""

    k: int = Field(
        ge=1, description="Least number of records (persons, if columns.person is named) in a class; 1 with map_k only.")
    map_k: int | None = Field(default=None, ge=2, description="k-map: least number of rows of a class in the population.")
    presence: Annotated[tuple[Share, Share], BeforeValidator(_shares)] | None = Field(
        default=None, description="δ-presence: [least, most] share of a class's rows in the population that are in the table.")

    @property
    def presence_ends(self) -> tuple[Fraction, Fraction] | None:
        """Both shares, exactly."""
        return None if self.presence is None else (Fraction(str(self.presence[0])), Fraction(str(self.presence[1])))


class PopulationPrivacySpec(InPopulationSpec, SensitivePrivacySpec):
    """k-anonymity, models of the sensitive columns, and what a class must keep in a population."""


def population_conflicts(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """A population without use, or what needs one."""
    privacy, population = section(raw, "privacy"), raw.get("population")
    asked = [name for name in ("map_k", "presence") if privacy.get(name) is not None]
    if population is None:
        yield from ((f"privacy.{name}", "needs population: the table of everybody who could be in the input") for name in asked)
    elif not asked:
        yield "population", "is of no use without privacy.map_k or privacy.presence; remove it"
    if whole(raw, "privacy", "k") == 1 and "map_k" not in asked:
        yield "privacy.k", "is 1, which protects nobody; give at least 2, or map_k with a population"
    ends = privacy.get("presence")
    numbers = isinstance(ends, list | tuple) and len(ends) == 2 and all(isinstance(end, int | float | Decimal) for end in ends)
    if numbers and ends is not None and Decimal(str(ends[0])) > Decimal(str(ends[1])):
        yield "privacy.presence", "should have the least share first"
    known = section(raw, "columns", "quasi_identifiers")
    for name in section(population, "columns"):
        if name not in known:
            yield f"population.columns.{name}", "is no quasi-identifier of the job"


class SensitiveJob(QuasiIdentifierJob):
    """A job whose sensitive columns may have models."""

    privacy: SensitivePrivacySpec = Field(description="What the release guarantees; the audit checks exactly this.")

    @classmethod
    def hierarchies(cls, raw: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        """(key, section) of every hierarchy that an unchecked job names, those of distances included."""
        yield from super().hierarchies(raw)
        for name, models in section(raw, "privacy", "sensitive").items():
            distance = section(models, "t").get("distance")
            if isinstance(distance, Mapping):
                yield f"privacy.sensitive.{name}.t.distance", distance

    @classmethod
    def conflicts(cls, raw: Mapping[str, Any], base: Path | None) -> Iterator[Problem]:
        """Conflicts between keys: models are of sensitive columns."""
        yield from super().conflicts(raw, base)
        sensitive = texts(raw, "columns", "sensitive")
        for name in section(raw, "privacy", "sensitive"):
            if name not in sensitive:
                yield f"privacy.sensitive.{name}", "is no sensitive column; name it in columns.sensitive, or remove its models"
