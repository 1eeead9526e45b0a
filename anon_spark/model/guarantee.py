"""What a release promises, as values: the parameters of a guarantee and, in plain words, how far it reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from anon_spark.errors import ConfigurationError


@dataclass(frozen=True, init=False)
class KAnonymity:
    """Every combination of published quasi-identifier values belongs to at least k rows (or k persons).

    k: at least 2; columns: the quasi-identifiers of the release; person: the column that says whose row it is, when
    one person may have several rows (then a class counts distinct persons, and a row without a person counts for none).
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

    def __init__(self, k: int, columns: Sequence[str], person: str | None = None) -> None:
        if isinstance(k, bool) or not isinstance(k, int):
            raise ConfigurationError(f"k must be a whole number, not {type(k).__name__}. Give k of at least 2.")
        if k < 2:
            raise ConfigurationError(f"k is {k}: a class of one row protects nobody. Give k of at least 2.")
        if isinstance(columns, str):
            raise ConfigurationError("columns must be a list of column names, not one text. Write columns=[...].")
        names = tuple(columns)
        if not names:
            raise ConfigurationError("k-anonymity needs at least one quasi-identifier column, none was given.")
        if len(set(names)) < len(names):
            raise ConfigurationError(f"{len(names) - len(set(names))} columns are listed twice. Name each column once.")
        if person is not None and person in names:
            raise ConfigurationError(f"Column {person} cannot be both the person and a quasi-identifier.")
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "person", person)

    @property
    def unit(self) -> str:
        """What a class counts."""
        return "rows" if self.person is None else "persons"

    def __str__(self) -> str:
        return f"{self.k}-anonymity on {', '.join(self.columns)} (counting {self.unit})"
