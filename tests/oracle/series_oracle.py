"""Brute force for releases to which people are added: a bookkeeper and an attacker, as the specification stands.

Written from the specification alone: it shares nothing with the package. It sees what everybody sees, the whole release after
every run, and what only the owner sees, the rows of the input at every run. A column of the release (`trace`) tells which row of
the input a published row was made of; no attacker uses it.

The bookkeeper says who should be published when. Of the rows of an input, those whose person is not published yet are the
increment; of fewer than k people nobody is published, of others as many rows as the promise lets. Who is not published waits.
The attacker sees all versions, so it knows the increments by their differences, and it knows in which one a person was published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tests.oracle.series_promises import Promise, Row


@dataclass(frozen=True)
class Step:
    """A run: the rows of its input, all rows of the release after it, its promise, and whether it said that everybody waits."""

    source: Sequence[Row]
    release: Sequence[Row]
    promise: Promise
    waited: bool = False


@dataclass(frozen=True)
class Numbers:
    """What a run should report: people who were new to it, and of these the published and the waiting ones, and so on."""

    increment: int
    new: int
    published: int
    waiting: int
    before: int
    rows: int
    rows_of_published: int


@dataclass(frozen=True)
class Columns:
    """Of the inputs: person and trace; of the release: trace, and the number of the increment."""

    person: str
    trace: str
    increment: str


@dataclass
class Books:
    """Who was published in which increment, who waits and who ever did, and everything that is wrong, with the run."""

    columns: Columns
    published: dict[Any, int] = field(default_factory=dict)
    waiting: set[Any] = field(default_factory=set)
    waited: set[Any] = field(default_factory=set)
    version: Counter[Any] = field(default_factory=Counter)
    numbers: list[Numbers] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)

    def enter(self, step: Step) -> None:
        """Book a run."""
        run, columns = len(self.numbers), self.columns
        number, before = max(self.published.values(), default=0) + 1, set(self.published)
        added, taken_back = self._difference(step.release)
        owners = {row[columns.trace]: row[columns.person] for row in step.source}
        new = [row for row in step.source if row[columns.person] not in before]
        entered = {owners[row[columns.trace]] for row in added if row[columns.trace] in owners} - before
        self.published |= dict.fromkeys(entered, number)
        people = {row[columns.person] for row in new}
        self.waiting = {row[columns.person] for row in step.source} - set(self.published)
        self.waited |= self.waiting
        self.numbers.append(
            Numbers(number, len(people), len(entered), len(self.waiting), len(before), len(new), len(step.source) - len(new))
        )
        if taken_back:
            self.faults.append((run, "rows of an earlier version are gone or changed"))
        self.faults += [(run, fault) for fault in self._faults(step, number, before, owners, new, added)]

    def _difference(self, release: Sequence[Row]) -> tuple[list[Row], bool]:
        """The rows that a version has and the one before it lacks, and whether it lacks some that were there."""
        left, added = Counter(self.version), []
        for row in release:
            key = _frozen(row)
            if left[key]:
                left[key] -= 1
            else:
                added.append(row)
        self.version = Counter(map(_frozen, release))
        return added, any(left.values())

    def _faults(
        self,
        step: Step,
        number: int,
        before: set[Any],
        owners: Mapping[Any, Any],
        new: Sequence[Row],
        added: Sequence[Row],
    ) -> Iterator[str]:
        trace, person, promise = self.columns.trace, self.columns.person, step.promise
        traces = [row[trace] for row in added]
        if not set(traces) <= set(owners):
            yield "a row is nobody's"
        if {owners.get(one) for one in traces} & before:
            yield "somebody was published twice"
        if len(set(traces)) < len(traces):
            yield "a row was published twice"
        enough = len({row[person] for row in new}) >= promise.k
        publishable = promise.publishable([row for row in new if promise.in_scope(row)], person) if enough else None
        expected = {row[trace] for row in publishable or []}
        if expected - set(traces):
            yield "somebody waits who could be published"
        if {one for one in traces if one in owners and owners[one] not in before} - expected:
            yield "somebody is published who should wait"
        if step.waited == bool(added):
            yield "the run says otherwise"
        if any(row[self.columns.increment] != number for row in added):
            yield "the number of the increment is wrong"
        if any(self._is_exposed(known, step.promise, added, owners) for known in step.source if known[person] not in before):
            yield "an attacker finds fewer than k people"

    def _is_exposed(self, known: Row, promise: Promise, added: Sequence[Row], owners: Mapping[Any, Any]) -> bool:
        """Whether a person of the increment is among fewer than k people to whom published rows fit."""
        person, trace = self.columns.person, self.columns.trace
        if self.published.get(known[person]) is None or not promise.in_scope(known):
            return False
        return any(0 < len({owners.get(row[trace]) for row in view}) < promise.k for view in promise.views(known, added))


def books_of(steps: Sequence[Step], columns: Columns) -> Books:
    """The books of a whole series."""
    books = Books(columns)
    for step in steps:
        books.enter(step)
    return books


def ledger_hash(salt: str, person: Any) -> bytes:
    """A person as the ledger knows it."""
    return sha256(f"{salt}:{person}".encode()).digest()


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple((name, _frozen(inner)) for name, inner in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
