"""Guarantees for relational values together with items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from anon_spark.errors import ConfigurationError
from anon_spark.model.guarantee.checks import check_number, checked_names
from anon_spark.model.guarantee.limits import PRESENCE, SEVERAL_RELEASES

_MORE_ITEMS = "More items: somebody who knows more than m = {0} items of a person may be left with fewer than k rows."
_ABSENT_ITEMS = (
    "Absent items: somebody who knows that a person does not have an item, or that the known items are all of its items, can "
    "rule out rows; both are outside the guarantee."
)
_KNOWN_SENSITIVE = (
    "Known sensitive items: who knows a sensitive item of a person can use it to pick the row; only the other items count "
    "among the m."
)
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
            SEVERAL_RELEASES,
            PRESENCE,
        )

    @property
    def parameters(self) -> dict[str, int]:
        """Its numbers by name, as a commit tells them."""
        return {"k": self.k, "m": self.m}

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
        check_number("l", l, "an item in all rows that fit gives itself away")
        names = _checked_relation(k, m, columns, items)
        if sensitive == items or sensitive in names:
            raise ConfigurationError(f"Column {sensitive} cannot hold the sensitive items and have another role.")
        fields = {"k": k, "l": l, "m": m, "columns": names, "items": items, "sensitive": sensitive}
        for name, value in fields.items():
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
            SEVERAL_RELEASES,
            PRESENCE,
        )

    @property
    def parameters(self) -> dict[str, int]:
        """Its numbers by name, as a commit tells them."""
        return {"k": self.k, "m": self.m, "l": self.l}

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
    check_number("k", k, "a group of one row protects nobody")
    check_number("m", m, "items would not be protected at all", least=1)
    names = checked_names("columns", columns, "(k,k^m)-anonymity needs at least one relational column, none was given.")
    if items in names:
        raise ConfigurationError(f"Column {items} cannot be both the items and a relational column.")
    return names
