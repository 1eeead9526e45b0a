"""The guarantee of a table whose sensitive columns have models, with k-map and δ-presence where a population is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from anon_spark.errors import ConfigurationError
from anon_spark.model.guarantee.checks import check_number, checked_names
from anon_spark.model.guarantee.models import (
    BetaLikeness,
    DeltaDisclosure,
    DistinctL,
    EntropyL,
    Model,
    Models,
    Number,
    RecursiveCL,
    TCloseness,
    exact_number,
)
from anon_spark.model.guarantee.relational import KAnonymity

_MOST_DIGITS = 18


def checked_presence(presence: tuple[Number, Number]) -> tuple[Fraction, Fraction]:
    """The bounds of δ-presence, exact as they are written; raises unless 0 ≤ least ≤ most ≤ 1."""
    if isinstance(presence, str) or len(presence) != 2:
        raise ConfigurationError("presence must be two numbers, the least and the most share. Write presence=(0.05, 0.5).")
    least, most = (exact_number("presence", bound) for bound in presence)
    if not 0 <= least <= most <= 1:
        raise ConfigurationError("presence: shares go from 0 to 1. Give the least first, then the most.")
    if any(bound.denominator >= 10**_MOST_DIGITS for bound in (least, most)):
        raise ConfigurationError(f"presence: a bound may have fewer than {_MOST_DIGITS} digits. Round it.")
    return least, most


@dataclass(frozen=True)
class AttributeProtection:
    """k-anonymity of a release, and models of attribute disclosure by sensitive column.

    map_k: each class has at least so many rows in the population; presence: the least and the most share of the population's
    rows of a class that are in the table.
    """

    anonymity: KAnonymity
    models: Models
    map_k: int | None = None
    presence: tuple[Fraction, Fraction] | None = None

    def __post_init__(self) -> None:
        models = {name: tuple(of_column) for name, of_column in self.models.items()}
        if not models and self.map_k is None and self.presence is None:
            raise ConfigurationError("No model, map_k or presence was given. Without them, use KAnonymity.")
        both = [name for name in models if name in self.anonymity.columns]
        if both:
            raise ConfigurationError(f"Columns cannot be both sensitive and quasi-identifiers: {', '.join(both)}.")
        for name, of_column in models.items():
            none = f"Column {name} has no model. Give it at least one, or leave it out."
            checked_names(f"models of {name}", [limit for model in of_column for limit, _ in _limits(model)], none)
        if self.map_k is not None:
            check_number("map_k", self.map_k, "a class of one row of the population protects nobody")
        elif self.anonymity.k < 2:
            raise ConfigurationError("k = 1 protects nobody by itself. Give map_k, or k of at least 2.")
        object.__setattr__(self, "models", models)
        if self.presence is not None:
            object.__setattr__(self, "presence", checked_presence(self.presence))

    def __hash__(self) -> int:
        return hash((self.anonymity, tuple(self.models.items()), self.map_k, self.presence))

    @property
    def k(self) -> int:
        return self.anonymity.k

    @property
    def unit(self) -> str:
        """What a class counts."""
        return self.anonymity.unit

    @property
    def parameters(self) -> dict[str, int | float]:
        """Its numbers by name, as a commit tells them: k, then column.model, and the population's."""
        numbers: dict[str, int | float] = {"k": self.k}
        for name, models in self.models.items():
            numbers |= {f"{name}.{limit}": number for model in models for limit, number in _limits(model)}
        if self.map_k is not None:
            numbers["map_k"] = self.map_k
        if self.presence is not None:
            numbers |= {"presence.least": float(self.presence[0]), "presence.most": float(self.presence[1])}
        return numbers

    @property
    def covers(self) -> tuple[str, ...]:
        return tuple(self._covers())

    @property
    def does_not_cover(self) -> tuple[str, ...]:
        """Limits of each model, then those of the whole; attribute disclosure only as far as no model limits it."""
        return tuple(self._limits_of_models()) + tuple(self._limits_of_all())

    def _covers(self) -> Iterator[str]:
        if self.k > 1:
            yield from self.anonymity.covers
        for name, models in self.models.items():
            for model in models:
                yield f"{name}, {model}: {model.covers}."
        if self.map_k is not None:
            yield (
                f"Someone who knows the true quasi-identifiers of a person, but not who is in the table, finds at least "
                f"{self.map_k} rows of the population that fit."
            )
        if self.presence is not None:
            yield (
                "Someone who knows the population and the quasi-identifiers of a person can say that the person is in the table "
                f"with a probability from {float(self.presence[0]):g} to {float(self.presence[1]):g}."
            )

    def _limits_of_models(self) -> Iterator[str]:
        for name, models in self.models.items():
            for model in models:
                yield f"{name}, {model}: {model.does_not_cover}."
            if not any(_parts_every_class(model) for model in models):
                yield (
                    f"Attribute disclosure in {name}: a value that most rows of the whole table have may be the only one of a "
                    "class, and is then learnt without finding the row."
                )
        if self.models:
            yield (
                "Attribute disclosure in columns without a model: when all rows of a class share one value there, that value is "
                "learnt without finding the row."
            )
            yield (
                "Several sensitive columns: each is judged by itself. Who knows one of them of a person may learn more of "
                "another than its models allow."
            )
            yield "Persons with several rows: the models count rows, not persons. The values of one person may fill a class."

    def _limits_of_all(self) -> Iterator[str]:
        if self.map_k is not None:
            yield (
                "Knowing who is in the table: then only its own rows count, at least k in a class, and the population does not "
                "protect."
            )
        if self.presence is None:
            yield "Presence: whether a person is in the table at all is not limited."
        else:
            yield "Presence in classes that are not published is not limited: that a class is missing may say something, too."
        if self.map_k is not None or self.presence is not None:
            yield "The population: what is said of it is as true as the population table. People who are not in it do not count."
        for text in self.anonymity.does_not_cover:
            if not (self.models and text.startswith("Attribute disclosure")):
                yield text

    def __str__(self) -> str:
        parts = [f"{model} of {name}" for name, models in self.models.items() for model in models]
        if self.map_k is not None:
            parts.append(f"{self.map_k}-map")
        if self.presence is not None:
            parts.append(f"({float(self.presence[0]):g}, {float(self.presence[1]):g})-presence")
        return f"{self.anonymity} and {', '.join(parts)}"


def _limits(model: Model) -> list[tuple[str, int | float]]:
    """The numbers of a model by name; models that limit different things have different names."""
    if isinstance(model, RecursiveCL):
        return [("recursive.c", float(model.c)), ("recursive.l", model.l)]
    if isinstance(model, TCloseness):
        return [("t" if model.distance == "equal" else f"t.{model.distance}", float(model.most))]
    if isinstance(model, BetaLikeness):
        return [("beta.enhanced" if model.enhanced else "beta", float(model.most))]
    if isinstance(model, DistinctL):
        return [("l", model.l)]
    return [(model.key, float(model.l if isinstance(model, EntropyL) else model.most))]


def _parts_every_class(model: Model) -> bool:
    """Whether no class can have one value only, whatever the table, unless the whole table has."""
    return isinstance(model, DistinctL | EntropyL | RecursiveCL | DeltaDisclosure) or (
        isinstance(model, BetaLikeness) and model.enhanced
    )
