"""Guarantees for tables with quasi-identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from anon_spark.errors import ConfigurationError
from anon_spark.model.guarantee.checks import check_number, checked_names


@dataclass(frozen=True, init=False)
class KAnonymity:
    """Every combination of published quasi-identifier values belongs to at least k rows (or k persons).

    k: at least 2; columns: the quasi-identifiers of the release; person: the column that says whose row it is, when
    one person may have several rows (then a class counts distinct persons, and a row without a person counts for none).
    least: the least k; 1 only where a population protects, see `AttributeProtection`.
    """

    k: int
    columns: tuple[str, ...]
    person: str | None = None

    covers: ClassVar[tuple[str, ...]] = (
        "Someone who knows the true quasi-identifiers of a person finds at least k rows (or persons) that fit, "
        "and nothing in those columns tells them apart.",
        "No published row is alone, or in a group smaller than k, on the quasi-identifiers.",
    )
    does_not_cover: ClassVar[tuple[str, ...]] = (
        "Attribute disclosure: when all rows of a class share one sensitive value, that value is learnt without finding "
        "the row.",
        "Background knowledge: an attacker who can rule out some rows of a class is left with fewer than k.",
        "Several releases of the same people: each may be k-anonymous, their intersection need not be.",
        "Columns that are not quasi-identifiers: what is kept unchanged is published as it is, and a kept column that an "
        "attacker knows, or that determines a quasi-identifier, undoes the protection.",
    )

    def __init__(self, k: int, columns: Sequence[str], person: str | None = None, least: int = 2) -> None:
        check_number("k", k, "a class of one row protects nobody", least)
        names = checked_names("columns", columns, "k-anonymity needs at least one quasi-identifier column, none was given.")
        if person is not None and person in names:
            raise ConfigurationError(f"Column {person} cannot be both the person and a quasi-identifier.")
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "person", person)

    @property
    def unit(self) -> str:
        """What a class counts."""
        return "rows" if self.person is None else "persons"

    @property
    def parameters(self) -> dict[str, int]:
        """Its numbers by name, as a commit tells them."""
        return {"k": self.k}

    def __str__(self) -> str:
        return f"{self.k}-anonymity on {', '.join(self.columns)} (counting {self.unit})"


@dataclass(frozen=True, init=False)
class LDiversity:
    """Every combination of published quasi-identifier values goes with at least l distinct values of each sensitive column.

    l: at least 2; columns: the quasi-identifiers of the release; sensitive: the columns whose values are to differ. Null
    is a value.
    """

    l: int  # noqa: E741 - the papers' name
    columns: tuple[str, ...]
    sensitive: tuple[str, ...]

    covers: ClassVar[tuple[str, ...]] = (
        "Someone who knows the true quasi-identifiers of a person is left with at least l values of each sensitive column, "
        "taken by itself.",
        "No class of rows shares one single sensitive value, so finding the class does not give the value away.",
    )
    does_not_cover: ClassVar[tuple[str, ...]] = (
        "Probabilistic inference: the l values are counted, not weighed. One of them may be far more likely than the others, "
        "in its class or compared with the whole table, and is then as good as learnt.",
        "Similar values: l values that mean nearly the same (three kinds of one disease, neighbouring salaries) count as l.",
        "Background knowledge: an attacker who can rule out values is left with fewer than l; so is one who knows another "
        "sensitive column of the row.",
        "Presence: whether a person is in the table at all, and how many rows fit, is not limited by l.",
        "Several releases of the same people: the values they have in common may be fewer than l.",
    )

    def __init__(self, l: int, columns: Sequence[str], sensitive: Sequence[str]) -> None:  # noqa: E741
        check_number("l", l, "one value for a whole class gives it away")
        names = checked_names("columns", columns, "l-diversity needs at least one quasi-identifier column, none was given.")
        values = checked_names("sensitive", sensitive, "l-diversity needs at least one sensitive column, none was given.")
        both = [name for name in values if name in names]
        if both:
            raise ConfigurationError(f"Columns cannot be both sensitive and quasi-identifiers: {', '.join(both)}.")
        object.__setattr__(self, "l", l)
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "sensitive", values)

    def __str__(self) -> str:
        return f"distinct {self.l}-diversity of {', '.join(self.sensitive)} on {', '.join(self.columns)}"


@dataclass(frozen=True)
class DiverseAnonymity:
    """k-anonymity and distinct l-diversity of one release."""

    anonymity: KAnonymity
    diversity: LDiversity

    @property
    def k(self) -> int:
        return self.anonymity.k

    @property
    def unit(self) -> str:
        """What a class counts."""
        return self.anonymity.unit

    @property
    def covers(self) -> tuple[str, ...]:
        return (*self.anonymity.covers, *self.diversity.covers)

    @property
    def does_not_cover(self) -> tuple[str, ...]:
        """What neither guarantee covers; attribute disclosure only as far as l-diversity states its limits."""
        others = tuple(text for text in self.anonymity.does_not_cover if not text.startswith("Attribute disclosure"))
        return (*self.diversity.does_not_cover, *others)

    @property
    def parameters(self) -> dict[str, int]:
        """Its numbers by name, as a commit tells them."""
        return {"k": self.k, "l": self.diversity.l}

    def __str__(self) -> str:
        return f"{self.anonymity} and {self.diversity}"
