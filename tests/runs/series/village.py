"""A village of few people, whose series begins once and is copied by the tests: seven are published, two wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.oracle.series_promises import FullDomain, Row
from tests.runs.series.growing import CITY, COLUMNS, OUTPUT, PATHS, K, Kind, Series
from tests.town import REMOVED

CANARY = "Canary"  # in every value of the input that no release shows
HOMES = {"city": PATHS["city"]}
VILLAGE = Kind(
    {
        "columns": {
            "person": COLUMNS.person,
            "identifiers": ["name"],
            "quasi_identifiers": {"city": CITY},
            "sensitive": ["disease"],
            "keep": [COLUMNS.trace],
        },
        "privacy": {"k": K, "suppression": 0.3},
        "lattice": {"choose": {"node": [0]}},
        **OUTPUT,
    },
    lambda metadata: FullDomain(K, metadata.get("levels", {"city": 0}), HOMES),
)


def villager(person: int, city: str, trace: int | None = None) -> Row:
    number = person if trace is None else trace
    return {
        "person_id": f"{CANARY}Person{person}", "name": f"{CANARY}Name{person}", "trace": number, "city": city,
        "disease": ("none", "asthma", "migraine")[number % 3],
    }  # fmt: skip


FIRST = [villager(person, city) for person, city in enumerate(["Aldorf"] * 4 + ["Bexley"] * 3 + ["Carden"] * 2)]
SECOND = [*FIRST, villager(9, "Carden"), villager(10, "Dunmore"), villager(0, "Carden", trace=11)]  # 0 is published already
THIRD = [*SECOND, villager(12, "Dunmore"), villager(13, "Dunmore")]
PUBLISHED = [7, 3, 3]  # in each increment


@dataclass(frozen=True)
class Begun:
    """A series after its first increment, and what Spark logged meanwhile."""

    series: Series
    logged: str


def changed(**changes: Any) -> dict[str, Any]:
    """The job of the village with some keys replaced, or left out when REMOVED."""
    return {name: value for name, value in {**VILLAGE.changes, **changes}.items() if value is not REMOVED}
