"""An increment of a series: the rows of the people who were not published, from the input into release and ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing import Verdict
from anon_spark.auditing.release.series import entered_check, increment_check
from anon_spark.columns import quoted
from anon_spark.errors import DataError, PublicationRefused
from anon_spark.io.ledger import HASH, Ledger, confirm, enter, forget
from anon_spark.io.publication import INCREMENT, SERIES, Appending
from anon_spark.io.run_log import logged_metrics
from anon_spark.io.tables import read_version
from anon_spark.model.series import Passed, SeriesFacts, Waited
from anon_spark.pending import Pending, together
from anon_spark.primitives.persons import require_person_type
from anon_spark.primitives.rounds import Workspace
from anon_spark.runs.preparation import Preparation
from anon_spark.runs.series.conditions import NEW, promise_of
from anon_spark.runs.series.settling import CONTENT, SEAL, Settled, settle_ledger, unpublished_before

SHOWN = 24  # increments in the report
LOOK_BACK = 3  # increments with whose input the people who wait are compared


class Waiting(Exception):
    """Nothing is published, because too few people are new. Not an error: they come again with the next increment."""

    def __init__(self, message: str, facts: SeriesFacts, by_family: bool) -> None:
        super().__init__(message)
        self.facts = facts
        self.by_family = by_family  # whether there are enough people, but no release of them keeps the promise


@dataclass(frozen=True)
class Entered:
    """What came of entering people into the ledger: the check of it, where everybody is now, and metadata of the commit."""

    verdict: Verdict
    facts: SeriesFacts
    metadata: Mapping[str, Any]


@dataclass(frozen=True)
class Increment:
    """The rows of the people who were not published, stored, and how many there are."""

    prepared: Preparation
    settled: Settled
    rows: DataFrame
    facts: SeriesFacts
    workspace: Workspace

    @property
    def number(self) -> int:
        return self.facts.increment

    @property
    def appending(self) -> Appending:
        return Appending(self.settled.ledger.series, self.number)

    @property
    def _person(self) -> str:
        return str(self.prepared.job.columns.person)

    def require_same_types(self, release: DataFrame) -> None:
        """Refuse an increment whose columns have other types than those published before. Cost: none, reads schemas."""
        output, latest = self.prepared.job.output, self.prepared.output.latest
        if self.prepared.output.series is None or latest is None:
            return
        before = dict(read_version(self.prepared.spark, output.table, latest).dtypes)
        other = [f"{name} is {kind}, was {before.get(name)}" for name, kind in release.dtypes if before.get(name) != kind]
        if other:
            raise PublicationRefused(
                f"output.table: columns of the increment have other types than those published before: {'; '.join(other)}. "
                f"Nothing was published. Give the input its old types, {NEW}"
            )

    def checked(self) -> tuple[Verdict, str]:
        """Whether these are the input's rows of the people who were not published; and the digest of the rows. Cost: a join."""
        source, ledger = self.prepared.source.frame, self.settled.ledger
        published = self.settled.persons.select(HASH)
        return increment_check(source, self._person, ledger.salt, published, self.rows).get()

    def entered(self, held: DataFrame, published: int, run_id: str, content: str) -> Entered:
        """Enter the people of the published rows into the ledger, unconfirmed, and verify what was written.

        held: the rows of the source that the release holds, as the audit found them; published: rows of the release;
        content: their digest.
        Cost: a commit, a scan of the ledger, one of `held`, and one of the persons of some earlier versions of the input.
        """
        ledger = self.settled.ledger
        persons = ledger.hashed(held.select(quoted(self._person)), self._person).select(HASH).distinct()
        persons = self.workspace.store(persons, "persons")
        latest = self.prepared.output.latest
        version = enter(ledger, persons, run_id, self.number, self.prepared.source.version, latest)
        written = read_version(ledger.spark, ledger.table, version).where(F.col("run_id") == run_id)
        entered = written.select(F.col("person").alias(HASH), "increment")
        verdict, seal, waited = together(
            entered_check(held, self._person, ledger.salt, entered.select(HASH), published),
            self.settled.seal_to_be(self.settled.persons.unionByName(entered)),
            self._waited(persons),
        ).get()
        now = verdict.facts["persons"]
        facts = replace(self.facts, published=now, waiting=self.facts.new - now, waited=waited)
        promise = promise_of(self.prepared.job, self.prepared.steps)
        return Entered(verdict, facts, {**promise, SERIES: ledger.series, INCREMENT: self.number, SEAL: seal, CONTENT: content})

    def with_earlier(self, release: DataFrame) -> DataFrame:
        """The labels of an increment with those of the increments before, for the data dictionary; unchanged without one."""
        output, latest = self.prepared.job.output, self.prepared.output.latest
        if latest is None or (output.dictionary is None and output.report is None):
            return release
        earlier = read_version(self.prepared.spark, output.table, latest)
        there, kinds = dict(earlier.dtypes), dict(release.dtypes)
        labels = [quoted(name) for name in self.prepared.steps.hierarchies if name in kinds and there.get(name) == kinds[name]]
        return release.select(*labels).unionAll(earlier.select(*labels)) if labels else release

    def confirm(self, run_id: str) -> None:
        """Confirm what was committed, and forget the people of runs that lost against it. Cost: one commit, or two."""
        confirm(self.settled.ledger, [(run_id, self.number)])
        forget(self.settled.ledger, self.settled.uncounted)

    def passed(self, now: SeriesFacts) -> list[Passed]:
        """The last increments, and this one. Cost: one job that reads the run log."""
        entries = self.settled.counted[-SHOWN:]
        runs, table = [entry.run_id for entry in entries], self.prepared.job.output.runs
        known = logged_metrics(self.prepared.spark, table, runs, "series")
        earlier = [Passed(one.increment, one.persons, known.get(one.run_id, {}).get("waiting")) for one in entries]
        return [*earlier, Passed(now.increment, now.published, now.waiting)]

    def waits(self, message: str, by_family: bool) -> Waiting:
        return Waiting(message, self.facts, by_family)

    def _waited(self, published: DataFrame) -> Pending[tuple[Waited, ...]]:
        """Of the people who wait, how many were in the input of each of the last increments."""
        ledger, person = self.settled.ledger, self._person
        new = ledger.hashed(self.rows.select(quoted(person)), person).select(HASH).distinct()
        waiting = new.join(published, HASH, "left_anti")
        counts: list[Pending[Waited]] = []
        for entry in self.settled.counted[-LOOK_BACK:]:
            there = self._people_of(entry.input_version)
            if there is not None:
                number = waiting.join(there, HASH, "left_semi").agg(F.count(F.lit(1)))
                counts.append(Pending.of(number, partial(_waited, entry.increment)))
        return together(*counts)

    def _people_of(self, version: int | None) -> DataFrame | None:
        """The people of an earlier version of the input, None where it cannot be read any more."""
        outermost, ledger, person = self.prepared.source.tables["input"], self.settled.ledger, self._person
        if version is None:
            return None
        try:
            frame = read_version(ledger.spark, outermost.table, version, self.prepared.job.input.options)
            frame.inputFiles()  # Spark finds out late that files are gone
            if require_person_type(frame, person) != ledger.person_type:
                return None
        except Exception:  # vacuumed, or other columns than now
            return None
        return ledger.hashed(frame.select(quoted(person)), person).select(HASH).distinct()


def unpublished(prepared: Preparation, found: Settled) -> DataFrame:
    """The rows of the input whose person was not published, lazily."""
    needed = prepared.steps.needed(prepared.source.frame)
    return unpublished_before(found.ledger, needed, str(prepared.job.columns.person), found.persons)


def begun(prepared: Preparation, ledger: Ledger, workspace: Workspace) -> Increment:
    """The next increment, stored in the workspace. Raises Waiting where fewer than k people are new.

    Cost: a scan of the input and of the ledger, one join; a write of the increment, and a scan of it.
    """
    found = settle_ledger(prepared, ledger)
    person = str(prepared.job.columns.person)
    rows = workspace.store(unpublished(prepared, found), "increment")
    who = F.col(quoted(person))
    counts = rows.agg(F.count(F.lit(1)), F.count_distinct(who), F.count_if(F.isnull(who))).first()
    assert counts is not None, "an aggregate has one row"
    if counts[2]:
        raise DataError(
            f"columns.person {person}: {counts[2]:,} rows have no person. A series publishes everybody once, so every row needs "
            "one. Give it, or leave these rows out of the input.",
            rows=counts[2],
        )
    everything = prepared.source.frame.count()
    facts = SeriesFacts(
        increment=prepared.output.increment + 1,
        new=counts[1],
        published=0,
        waiting=counts[1],
        before=found.before,
        rows=counts[0],
        rows_of_published=everything - counts[0],
    )
    increment = Increment(prepared, found, rows, facts, workspace)
    least = prepared.steps.guarantee.k
    if counts[1] < least:
        raise increment.waits(few(counts[1], least), by_family=False)
    return increment


def _waited(increment: int, rows: Sequence[Row]) -> Waited:
    return Waited(increment, int(rows[0][0]))


def few(persons: int, least: int) -> str:
    """Why a run waits, in words."""
    if persons == 0:
        return "Nobody is new: everybody in the input was published already."
    new = "1 person is" if persons == 1 else f"{persons:,} people are"
    return f"{new} new, fewer than {least:,}: they wait for the next increment."
