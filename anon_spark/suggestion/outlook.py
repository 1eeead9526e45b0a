"""A look ahead: who can be singled out in the table as it is, and what a release would lose at several k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from anon_spark.errors import DataError
from anon_spark.families.lattice.anonymizer import LatticeAnonymizer
from anon_spark.model.hierarchy import Hierarchy, Rule

KS = (5, 10, 50)
MOST_NODES = 200_000  # of a lattice whose front is looked at; a larger one takes too long for a first look


@dataclass(frozen=True)
class Expected:
    """What full-domain recoding would do at one k: its loss, the rows left out, the level of each column out of its height."""

    k: int
    loss: float
    left_out: int
    levels: Mapping[str, tuple[int, int]]


def expected(
    df: DataFrame, quasi_identifiers: Mapping[str, Hierarchy | Rule], person: str | None, suppression: float
) -> list[Expected]:
    """The best release of the lattice family at each of KS that can be reached. Cost: one fit.

    A family that generalizes each class by itself loses less. Nothing where the columns have too many levels together.
    """
    nodes = 1
    for hierarchy in quasi_identifiers.values():
        nodes *= 1 + (hierarchy.height if isinstance(hierarchy, Hierarchy) else 4)
    if nodes > MOST_NODES:
        return []
    try:
        fitted = LatticeAnonymizer(k=2, quasi_identifiers=quasi_identifiers, person=person, suppression=suppression).fit(df)
    except DataError:
        return []
    heights = [attribute.height for attribute in fitted.attributes]
    found = []
    for k in KS:
        enough = [point for point in fitted.points if point.k >= k]
        if enough:
            best = min(enough, key=lambda point: point.loss)
            levels = {name: (level, height) for name, level, height in zip(quasi_identifiers, best.node, heights, strict=True)}
            found.append(Expected(k, best.loss / fitted.denominator, best.suppressed, levels))
    return found


def lost(levels: Sequence[Expected]) -> list[str]:
    """Columns of which nothing would be left at any k."""
    if not levels:
        return []
    names = levels[0].levels
    return [name for name in names if all(entry.levels[name][0] == entry.levels[name][1] for entry in levels)]
