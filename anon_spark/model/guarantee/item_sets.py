"""Guarantees for item sets that are recoded nonreciprocally."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from anon_spark.errors import ConfigurationError
from anon_spark.model.guarantee.checks import check_number
from anon_spark.model.guarantee.limits import PRESENCE

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
        check_number("k", self.k, "a record that may be one row only is found")
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
            PRESENCE,
        )

    @property
    def parameters(self) -> dict[str, int]:
        """Its numbers by name, as a commit tells them."""
        return {"k": self.k}

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
        check_number("l", self.l, "one value gives itself away")
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
            "Minimality: with l, the record order depends on sensitive values. An attacker who reruns the method on guesses is "
            f"not covered.{shifted if self.definition_only else ''}",
            _KNOWN_LINKS.format("l"),
            "Similar values: l values that mean nearly the same count as l. Who can rule out values is left with fewer.",
            _SEVERAL_DRAWS,
            PRESENCE,
        )

    @property
    def parameters(self) -> dict[str, int]:
        """Its numbers by name, as a commit tells them."""
        return {"l": self.l}

    def __str__(self) -> str:
        return (
            f"nonreciprocal {self.l}-diversity of {self.sensitive} on {self.items}{_labelled(self.definition_only)}"
        )


def _labelled(definition_only: bool) -> str:
    return " (definition only)" if definition_only else ""


def _check_columns(items: str, sensitive: str | None) -> None:
    if sensitive == items:
        raise ConfigurationError(f"Column {items} cannot be both the items and the sensitive value.")
