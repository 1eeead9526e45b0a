"""What papers, and we, say of a family, beside what was seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jobs.markdown import table


class Claim(NamedTuple):
    number: str
    text: str
    seen: str
    holds: bool


def claims_table(claims: Iterable[Claim]) -> str:
    """A table of claims with a verdict on each."""
    rows = [[one.number, one.text, one.seen, "reproduced" if one.holds else "**not reproduced**"] for one in claims]
    return "Claims:\n\n" + table(["", "claim", "seen here", "verdict"], rows)
