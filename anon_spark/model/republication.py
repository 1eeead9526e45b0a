"""What two releases of the same people tell together, as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Republication:
    """What somebody with an older and a newer release learns who would learn nothing from either.

    A person's class in a release are the published rows that cover its values. compared: people of both tables with a class in
    both releases; hidden: people of both tables who have none in one of them; least_candidates: the fewest people who share both
    classes, None of nobody; few_candidates: people with fewer than k of them, themselves included; one_value: by sensitive
    column, people of whom exactly one value is shown in both classes; newcomers: people of the newer table only who have a
    class; hidden_newcomers: those who have none; least_newcomers: the fewest newcomers in a class that has any; few_newcomers:
    newcomers in classes with fewer than k of them. unexplained: rows of the older release whose labels do not follow from the
    older table: with any, the other numbers mean nothing. by_content: people are rows, matched where they are equal: a guess.
    """

    k: int
    by_content: bool
    compared: int
    hidden: int
    least_candidates: int | None
    few_candidates: int
    one_value: Mapping[str, int]
    newcomers: int
    hidden_newcomers: int
    least_newcomers: int | None
    few_newcomers: int
    unexplained: int = 0

    @property
    def few_candidates_share(self) -> float:
        """Of the people compared; 0 of nobody."""
        return self.few_candidates / self.compared if self.compared else 0.0

    @property
    def one_value_shares(self) -> dict[str, float]:
        """Of the people compared, by sensitive column."""
        return {name: people / self.compared if self.compared else 0.0 for name, people in self.one_value.items()}

    @property
    def few_newcomers_share(self) -> float:
        """Of the newcomers with a class; 0 of nobody."""
        return self.few_newcomers / self.newcomers if self.newcomers else 0.0

    @property
    def worst(self) -> float:
        """The greatest of the shares, by which a job's limit decides."""
        return max(self.few_candidates_share, self.few_newcomers_share, *self.one_value_shares.values(), 0.0)

    def numbers(self) -> dict[str, Any]:
        """Every number by its name, shares included, for the report and the run log."""
        return {
            **vars(self),
            "few_candidates_share": self.few_candidates_share,
            "one_value_shares": self.one_value_shares,
            "few_newcomers_share": self.few_newcomers_share,
        }
