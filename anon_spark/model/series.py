"""Series: releases to which every run adds the people who were not published yet. Their numbers, and what they promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

COVERS = (
    "Somebody who sees all versions of the release, and knows in which increment a person was published: everybody is in one "
    "increment only, and each keeps the promise by itself."
)
NOT_COVERED = (
    "Rows that a person gets after being published: they are never published.",
    "Changes and deletions in the source: they do not reach what was published.",
    "A person with several values in the person column: each of them counts as somebody else.",
    "Releases of the same people elsewhere: the ledger knows only this series.",
)


@dataclass(frozen=True)
class Waited:
    """How many of the people who wait now were in the input when an earlier increment was made."""

    increment: int
    persons: int


@dataclass(frozen=True)
class Passed:
    """An increment in the past: how many people were published, and how many waited after it (None: not known)."""

    increment: int
    published: int
    waiting: int | None


@dataclass(frozen=True)
class SeriesFacts:
    """Where the people of the input are after a run.

    increment: its number, or that of the next one where nothing was published; new: people of the input who had not been
    published before the run; published, waiting: those of them who are now, and who are not; before: people who were published
    earlier; rows: of the people who are new; rows_of_published: rows of the input whose person was published earlier, which are
    not published again; waited: of those who wait, how many were there at each of the last increments.
    """

    increment: int
    new: int
    published: int
    waiting: int
    before: int
    rows: int
    rows_of_published: int
    waited: tuple[Waited, ...] = ()


def series_metrics(facts: SeriesFacts | None) -> Mapping[str, Any]:
    """The numbers of a series as an entry of the run log; none for a run of another mode."""
    return {} if facts is None else {"series": asdict(facts)}
