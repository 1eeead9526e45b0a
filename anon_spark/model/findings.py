"""Findings: observations about a release beside the checks it passed, and the sentence that sums them up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Level = Literal["stop", "look", "note"]
LEVELS: tuple[Level, ...] = get_args(Level)
TITLES = {"stop": "stopped by", "look": "look at this", "note": "good to know"}

UNIQUE_ROWS = 0.05  # share of rows that are unique on what is published and not sensitive, above which it is a look
UNIQUE_COLUMN = 0.01  # share of rows whose value of one unchanged column nobody else has, above which it is a look
LITTLE_LEFT = 0.8  # loss above which hardly anything is left to learn


@dataclass(frozen=True)
class Finding:
    """One observation about a release.

    level: `stop`, nothing may be published; `look`, a person should decide before the release is handed out, and no banner
    is green; `note`, good to know. kind: a word by which programs find it; text: the observation and what to do, with names
    of columns and counts, never a value; share: the number behind it, where there is one.
    """

    level: Level
    kind: str
    text: str
    share: float | None = None

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"level: {self.level!r} is none of {', '.join(LEVELS)}.")


def of_level(findings: Iterable[Finding], level: Level) -> list[Finding]:
    """Those of one level, in their order."""
    return [finding for finding in findings if finding.level == level]


def by_level(findings: Iterable[Finding]) -> list[Finding]:
    """The gravest first; those of one level in their order."""
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))


def verdict_sentence(status: str, findings: Sequence[Finding]) -> str:
    """How a run ended, in one sentence."""
    stops, looks, notes = (len(of_level(findings, level)) for level in LEVELS)
    if status == "failed":
        why = f" {_counted(stops, 'finding')} stopped it." if stops else ""
        return f"Nothing was published.{why}"
    if status == "unconfirmed":
        return "Committed, but not compared with what was audited: run the job again before anybody gets the release."
    if status == "waiting":
        rest = f", but look at {_counted(looks, 'finding')}" if looks else ""
        return f"Nothing was published in this increment; whoever is new waits for a later one{rest}."
    done = {"published": "Published", "already_published": "Already published", "planned": "Planned"}[status]
    if looks:
        return f"{done}, but look at {_counted(looks, 'finding')} before anybody gets the release."
    rest = f"; {_counted(notes, 'note')} beside" if notes else ""
    checked = "every check had passed then" if status == "already_published" else "every check passed"
    return f"{done}: {checked}, and nothing needs a second look{rest}."


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
