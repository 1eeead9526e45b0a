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
        _check_number("k", k, "a class of one row protects nobody")
        names = _checked_names("columns", columns, "k-anonymity needs at least one quasi-identifier column, none was given.")
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
        _check_number("l", l, "one value for a whole class gives it away")
        names = _checked_names("columns", columns, "l-diversity needs at least one quasi-identifier column, none was given.")
        values = _checked_names("sensitive", sensitive, "l-diversity needs at least one sensitive column, none was given.")
        both = [name for name in values if name in names]
        if both:
            raise ConfigurationError(f"Columns cannot be both sensitive and quasi-identifiers: {', '.join(both)}.")
        object.__setattr__(self, "l", l)
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "sensitive", values)

    def __str__(self) -> str:
        return f"distinct {self.l}-diversity of {', '.join(self.sensitive)} on {', '.join(self.columns)}"


def _check_number(name: str, value: int, why: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigurationError(f"{name} must be a whole number, not {type(value).__name__}. Give {name} of at least 2.")
    if value < 2:
        raise ConfigurationError(f"{name} is {value}: {why}. Give {name} of at least 2.")


def _checked_names(name: str, columns: Sequence[str], none: str) -> tuple[str, ...]:
    if isinstance(columns, str):
        raise ConfigurationError(f"{name} must be a list of column names, not one text. Write {name}=[...].")
    names = tuple(columns)
    if not names:
        raise ConfigurationError(none)
    if len(set(names)) < len(names):
        raise ConfigurationError(f"{len(names) - len(set(names))} columns are listed twice. Name each column once.")
    return names


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
        """What neither covers; attribute disclosure is what l-diversity is for, as far as it says itself."""
        others = tuple(text for text in self.anonymity.does_not_cover if not text.startswith("Attribute disclosure"))
        return (*self.diversity.does_not_cover, *others)

    def __str__(self) -> str:
        return f"{self.anonymity} and {self.diversity}"


_UNPROTECTED_ITEMS = (
    "The items: neighbouring rows overlap, and many item sets can be worked out from the release, for small {0} nearly all of "
    "them. The uncertain items and the greatest number of errors say what an analyst must allow for; they hide nothing."
)
_KNOWN_LINKS = (
    "Known links: whoever knows which row is one person's learns more about the records beside it. With {0} = 2 one known link "
    "reveals a whole ring; blocks, which are separate rings, end the damage."
)
_SEVERAL_DRAWS = (
    "Several releases of the same people: the rows that may be a person's in two of them can be intersected, also when nothing "
    "but the secret draw differs."
)
_PRESENCE = "Presence: whether a person is in the table at all."
_SHOWN_ITEMS = (
    "Somebody who knows all item sets and the method, but no sensitive value and none of the secret draws, cannot tell with "
    "more than probability 1 / {0} which row is a person's{1}."
)


@dataclass(frozen=True)
class NonreciprocalAnonymity:
    """Every record may be any of at least k published rows, alike likely, and every row any of at least k records.

    k: at least 2; items: the column of item sets; sensitive: the column that moves with the secret draw, if there is one.
    """

    k: int
    items: str
    sensitive: str | None = None

    unit: ClassVar[str] = "rows"

    def __post_init__(self) -> None:
        _check_number("k", self.k, "a record that may be one row only is found")
        _check_columns(self.items, self.sensitive)

    @property
    def definition_only(self) -> bool:
        """Whether the guarantee holds by its definition, and little knowledge more undoes it."""
        return self.k == 2

    @property
    def covers(self) -> tuple[str, ...]:
        value = "" if self.sensitive is None else ", and so which sensitive value"
        return (
            _SHOWN_ITEMS.format("k", value),
            "Each of the k rows or more that may be a person's is the true one with the same probability: all disjoint "
            "assignments are made before one of them is drawn.",
        )

    @property
    def does_not_cover(self) -> tuple[str, ...]:
        shared = (
            "Shared sensitive values: the k rows that may be a person's can carry one and the same value; it is then learnt "
            "without finding the row. Demand l instead of k."
        )
        return (
            _UNPROTECTED_ITEMS.format("k"),
            _KNOWN_LINKS.format("k"),
            *([] if self.sensitive is None else [shared]),
            _SEVERAL_DRAWS,
            _PRESENCE,
        )

    def __str__(self) -> str:
        return f"nonreciprocal {self.k}-anonymity of {self.items}{_labelled(self.definition_only)}"


@dataclass(frozen=True)
class NonreciprocalDiversity:
    """Every record may be any of at least l published rows, alike likely, whose sensitive values all differ.

    l: at least 2; items: the column of item sets; sensitive: the column that moves with the secret draw; shifted: whether
    equal values stand only l places apart, so that just l assignments of a ring are possible.
    """

    l: int  # noqa: E741 - the papers' name
    items: str
    sensitive: str
    shifted: bool = False

    unit: ClassVar[str] = "rows"

    def __post_init__(self) -> None:
        _check_number("l", self.l, "one value gives itself away")
        _check_columns(self.items, self.sensitive)

    @property
    def k(self) -> int:
        """The least number of rows that may be a record's."""
        return self.l

    @property
    def definition_only(self) -> bool:
        """Whether the guarantee holds by its definition, and little knowledge more undoes it."""
        return self.l == 2 or self.shifted

    @property
    def covers(self) -> tuple[str, ...]:
        return (
            _SHOWN_ITEMS.format("l", ", and so which sensitive value"),
            "The rows that may be a person's carry at least l different sensitive values, no two the same.",
        )

    @property
    def does_not_cover(self) -> tuple[str, ...]:
        shifted = " Here only l assignments of a ring are possible, and running it again under each finds the true one."
        return (
            _UNPROTECTED_ITEMS.format("l"),
            "Minimality: the order depends on the sensitive values. Somebody who runs the method again under guessed values "
            f"is outside the guarantee.{shifted if self.definition_only else ''}",
            _KNOWN_LINKS.format("l"),
            "Similar values: l values that mean nearly the same count as l. Who can rule out values is left with fewer.",
            _SEVERAL_DRAWS,
            _PRESENCE,
        )

    def __str__(self) -> str:
        return (
            f"nonreciprocal {self.l}-diversity of {self.sensitive} on {self.items}{_labelled(self.definition_only)}"
        )


def _labelled(definition_only: bool) -> str:
    return " (definition only)" if definition_only else ""


def _check_columns(items: str, sensitive: str | None) -> None:
    if sensitive == items:
        raise ConfigurationError(f"Column {items} cannot be both the items and the sensitive value.")
