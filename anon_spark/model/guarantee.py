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


_MORE_ITEMS = "More items: somebody who knows more than m = {0} items of a person may be left with fewer than k rows."
_ABSENT_ITEMS = (
    "Absent items: somebody who knows that a person does not have an item, or that the known items are all of its items, can "
    "rule out rows; both are outside the guarantee."
)
_KNOWN_SENSITIVE = (
    "Known sensitive items: who knows a sensitive item of a person can use it to pick the row; only the other items count "
    "among the m."
)
_SEVERAL_RELEASES = "Several releases of the same people: each may keep the guarantee, their intersection need not."
_OTHER_COLUMNS = (
    "Columns published unchanged: sensitive and kept columns are as they were. All rows that fit may share a value, which is "
    "then learnt; a kept column that an attacker knows, or that determines a quasi-identifier, undoes the protection."
)


@dataclass(frozen=True, init=False)
class KKmAnonymity:
    """Every row shares its relational values and any m or fewer of its items with at least k rows, itself included.

    k: at least 2; m: at least 1; columns: the relational columns of the release; items: its column of generalized items;
    unprotected: whether sensitive items are published beside them, outside the guarantee.
    """

    k: int
    m: int
    columns: tuple[str, ...]
    items: str
    unprotected: bool = False

    unit: ClassVar[str] = "rows"

    def __init__(self, k: int, m: int, columns: Sequence[str], items: str, unprotected: bool = False) -> None:
        names = _checked_relation(k, m, columns, items)
        for name, value in {"k": k, "m": m, "columns": names, "items": items, "unprotected": unprotected}.items():
            object.__setattr__(self, name, value)

    @property
    def covers(self) -> tuple[str, ...]:
        return _covered(self.m)

    @property
    def does_not_cover(self) -> tuple[str, ...]:
        unprotected = (
            "Sensitive items: this release publishes them without protection, as the job allowed. They may be in all rows "
            "that fit, and are learnt then. Give privacy.l to protect them."
        )
        shared = (
            "Shared items: an item that all rows that fit have in common is learnt without finding the row. Name it as a "
            "sensitive item and give privacy.l to limit this."
        )
        return (
            *([unprotected, _KNOWN_SENSITIVE] if self.unprotected else []),
            _MORE_ITEMS.format(self.m),
            _ABSENT_ITEMS,
            shared,
            _OTHER_COLUMNS,
            _SEVERAL_RELEASES,
            _PRESENCE,
        )

    def __str__(self) -> str:
        beside = " (sensitive items unprotected)" if self.unprotected else ""
        return f"({self.k},{self.k}^{self.m})-anonymity of {self.items} on {', '.join(self.columns)}{beside}"


@dataclass(frozen=True, init=False)
class KLmDiversity:
    """(k,k^m)-anonymity, and in none of these groups of rows is a sensitive item in more than 1 / l of them.

    k, l: at least 2; m: at least 1; columns: the relational columns of the release; items: its column of generalized items;
    sensitive: its column of sensitive items.
    """

    k: int
    l: int  # noqa: E741 - the papers' name
    m: int
    columns: tuple[str, ...]
    items: str
    sensitive: str

    unit: ClassVar[str] = "rows"

    def __init__(self, k: int, l: int, m: int, columns: Sequence[str], items: str, sensitive: str) -> None:  # noqa: E741
        _check_number("l", l, "an item in all rows that fit gives itself away")
        names = _checked_relation(k, m, columns, items)
        if sensitive == items or sensitive in names:
            raise ConfigurationError(f"Column {sensitive} cannot hold the sensitive items and have another role.")
        given = {"k": k, "l": l, "m": m, "columns": names, "items": items, "sensitive": sensitive}
        for name, value in given.items():
            object.__setattr__(self, name, value)

    @property
    def covers(self) -> tuple[str, ...]:
        return (
            *_covered(self.m),
            f"Among the rows that fit, no sensitive item, taken by itself, is in more than one of l = {self.l}: the attacker "
            "concludes that the person has it with probability 1 / l at most.",
        )

    @property
    def does_not_cover(self) -> tuple[str, ...]:
        return (
            _MORE_ITEMS.format(self.m),
            _ABSENT_ITEMS,
            _KNOWN_SENSITIVE,
            "Several sensitive items together: each is in at most 1 / l of the rows that fit, but one or the other of them may "
            "be in most. Items that mean nearly the same count one by one.",
            "Other items: only those named as sensitive are limited; any other that all rows that fit share is learnt.",
            _OTHER_COLUMNS,
            _SEVERAL_RELEASES,
            _PRESENCE,
        )

    def __str__(self) -> str:
        return (
            f"({self.k},{self.l}^{self.m})-diversity of {self.sensitive} on {self.items} and {', '.join(self.columns)}"
        )


def _covered(m: int) -> tuple[str, ...]:
    return (
        f"Someone who knows all relational values of a person and any {m} or fewer of its items (sensitive ones aside) finds "
        "at least k rows that fit, and nothing in those values tells them apart.",
        "No published row is in a group smaller than k on the relational values alone, rows without items included.",
    )


def _checked_relation(k: int, m: int, columns: Sequence[str], items: str) -> tuple[str, ...]:
    _check_number("k", k, "a group of one row protects nobody")
    if isinstance(m, bool) or not isinstance(m, int):
        raise ConfigurationError(f"m must be a whole number, not {type(m).__name__}. Give m of at least 1.")
    if m < 1:
        raise ConfigurationError(f"m is {m}: items would not be protected at all. Give m of at least 1.")
    names = _checked_names("columns", columns, "(k,k^m)-anonymity needs at least one relational column, none was given.")
    if items in names:
        raise ConfigurationError(f"Column {items} cannot be both the items and a relational column.")
    return names
