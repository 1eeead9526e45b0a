"""Values that no hierarchy knows: counted, with hints that tell no value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from anon_spark.errors import UnseenValues
from anon_spark.model.hierarchy import Hierarchy, calendar_day, canonical_number
from anon_spark.primitives.encoding import Dictionary


def refuse_unseen(entries: Sequence[Dictionary]) -> None:
    """Raise for values that no hierarchy knows, by column and count; the values are on the error, never in its text."""
    unseen = {entry.name: (entry.unseen_values, entry.unseen_rows) for entry in entries if entry.unseen_values}
    if not unseen:
        return
    listed = "; ".join(
        f"{name}: {values:,} value{'s' if values > 1 else ''} in {rows:,} row{'s' if rows > 1 else ''}"
        for name, (values, rows) in unseen.items()
    )
    strange = {entry.name: _strange(entry) for entry in entries if entry.unseen_values}
    hints = " ".join(hint for entry in entries if entry.unseen_values for hint in _hints(entry))
    raise UnseenValues(
        f"Values that the hierarchies do not know: {listed}. {hints}{' ' if hints else ''}"
        "Complete the hierarchy, or set on_unseen: suppress. --show-values FILE writes them to a private file.",
        strange,
        unseen=unseen,
    )


def _strange(entry: Dictionary) -> list[tuple[str, int]]:
    """The unknown values with their rows, the most frequent first."""
    places = np.flatnonzero(entry.strange > 0)
    return sorted(((str(entry.keys[at]), int(entry.strange[at])) for at in places), key=lambda pair: (-pair[1], pair[0]))


def _hints(entry: Dictionary) -> Iterator[str]:
    """What the unknown values have in common, and what to do, without any of them."""
    hierarchy = entry.hierarchy
    values = [value for value, _ in _strange(entry)]
    rows = dict(_strange(entry))
    if hierarchy.bins is not None:
        yield f"{entry.name}: {entry.unseen_rows:,} rows have no number, or one outside from–to."
        return
    trimmed = [value for value in values if _knows(hierarchy, value.strip())]
    if trimmed:
        yield f"{entry.name}: {_part(trimmed, values)} after trimming spaces."
    known = {key.casefold() for key in hierarchy.keys}
    case = [value for value in values if value not in trimmed and value.strip().casefold() in known]
    if case:
        yield f"{entry.name}: {_part(case, values)} apart from upper and lower case."
    rest = [value for value in values if value not in trimmed and value not in case]
    if hierarchy.kind == "number" and rest:
        numbers = [value for value in rest if canonical_number(value) is not None]
        yield from _outside(entry.name, [value for value in numbers if "." not in str(canonical_number(value))], rows)
        fractions = [value for value in numbers if "." in str(canonical_number(value))]
        if fractions:
            yield f"{entry.name}: {sum(rows[value] for value in fractions):,} rows have fractions; say exact: false."
        yield from _no(entry.name, "number", [value for value in rest if value not in numbers], rows)
    elif hierarchy.kind == "date" and rest:
        days = [value for value in rest if calendar_day(value) is not None]
        yield from _outside(entry.name, days, rows)
        yield from _no(entry.name, "date such as 2020-03-01", [value for value in rest if value not in days], rows)


def _knows(hierarchy: Hierarchy, value: str) -> bool:
    return hierarchy.leaf_of(value) is not None


def _part(some: Sequence[str], values: Sequence[str]) -> str:
    if len(some) == len(values):
        return f"all {len(values)} match" if len(values) > 1 else "it matches"
    return f"{len(some)} of {len(values)} match"


def _outside(name: str, values: Sequence[str], rows: dict[str, int]) -> Iterator[str]:
    if values:
        yield f"{name}: {sum(rows[value] for value in values):,} rows lie outside from–to."


def _no(name: str, what: str, values: Sequence[str], rows: dict[str, int]) -> Iterator[str]:
    if values:
        yield f"{name}: {sum(rows[value] for value in values):,} rows hold no {what}."
