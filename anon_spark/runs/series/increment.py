"""An increment of a series: the rows of the people who were not published, from the input into release and ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing import Verdict
from anon_spark.auditing.release.series import entered_check, increment_check
from anon_spark.columns import PREFIX, quoted
from anon_spark.errors import DataError, PublicationRefused
from anon_spark.io.ledger import HASH, Entry, Ledger, confirm, enter, forget
from anon_spark.io.publication import INCREMENT, SERIES, Appending
from anon_spark.io.tables import read_version
from anon_spark.model.series import Passed, SeriesFacts, Waited
from anon_spark.pending import Pending, together
from anon_spark.primitives.rounds import Workspace
from anon_spark.runs.preparation import Preparation
from anon_spark.runs.series.conditions import NEW, promise_of
from anon_spark.runs.series.settling import (
    CONTENT,
    SEAL,
    SHOWN,
    Settled,
    is_sealed,
    put_in_order,
    require_sealed,
    settled,
    unpublished_before,
)

LOOK_BACK = 3  # increments with whose input the people who wait are compared
_INCREMENT = PREFIX + "increment"


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
        verdict, seal = together(
            entered_check(held, self._person, ledger.salt, entered.select(HASH), published),
            self.settled.seal_to_be(self.settled.persons.unionByName(entered)),
        ).get()
        now = verdict.facts["persons"]
        waited = self._waited(persons) if now < self.facts.new else ()
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
        """The last increments, and this one."""
        earlier = [
            Passed(entry.increment, entry.persons, self.settled.waited_after(entry))
            for entry in self.settled.counted[-SHOWN:]
        ]
        return [*earlier, Passed(now.increment, now.published, now.waiting)]

    def waits(self, message: str, by_family: bool) -> Waiting:
        return Waiting(message, self.facts, by_family)

    def _waited(self, published: DataFrame) -> tuple[Waited, ...]:
        """Of the people who wait, how many were in the input of each of the last increments, as far as it can be read."""
        waiting = self._hashes(self.rows).distinct().join(published, HASH, "left_anti")
        entries = [entry for entry in self.settled.counted[-LOOK_BACK:] if entry.input_version is not None]
        while entries:
            try:
                seen = reduce(DataFrame.unionAll, map(self._people_of, entries))
                counts = waiting.join(seen, HASH).groupBy(_INCREMENT).agg(F.count_distinct(HASH)).collect()
                people = {int(row[0]): int(row[1]) for row in counts}
                return tuple(Waited(entry.increment, people.get(entry.increment, 0)) for entry in entries)
            except Exception:  # vacuumed, which takes the oldest first, or other columns than now
                entries = entries[1:]
        return ()

    def _people_of(self, entry: Entry) -> DataFrame:
        """The people of the version of the input that an earlier increment was made of, with its number."""
        outermost, reads = self.prepared.source.tables["input"], self.prepared.job.input.options
        rows = read_version(self.settled.ledger.spark, outermost.table, int(entry.input_version or 0), reads)
        return self._hashes(rows).withColumn(_INCREMENT, F.lit(entry.increment))

    def _hashes(self, rows: DataFrame) -> DataFrame:
        """The people of rows, as often as they have rows."""
        return self.settled.ledger.hashed(rows.select(quoted(self._person)), self._person).select(HASH)


def unpublished(prepared: Preparation, found: Settled) -> DataFrame:
    """The rows of the input whose person was not published, lazily."""
    needed = prepared.steps.needed(prepared.source.frame)
    return unpublished_before(found.ledger, needed, str(prepared.job.columns.person), found.persons)


def begun(prepared: Preparation, ledger: Ledger, workspace: Workspace) -> Increment:
    """The next increment, stored in the workspace. Raises Waiting where fewer than k people are new.

    Raises DataError for a ledger that is not the one with which the last increment was published.
    Cost: two scans of the input and of the ledger, one join; a write of the increment, and a scan of it.
    """
    found = settled(prepared.spark, prepared.job.output, prepared.output, ledger)
    person = str(prepared.job.columns.person)
    rows = workspace.store(unpublished(prepared, found), "increment")
    who = F.col(quoted(person))
    of_increment = rows.agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_distinct(who).alias("persons"),
        F.count_if(F.isnull(who)).alias("nobody"),
    )
    counts, everything, sealed = together(
        Pending.of(of_increment, lambda found: found[0]),
        Pending.of(prepared.source.frame.agg(F.count(F.lit(1)).alias("rows")), lambda found: int(found[0]["rows"])),
        is_sealed(prepared.output, found),
    ).get()
    require_sealed(prepared, sealed)
    found = put_in_order(prepared, found)
    if counts["nobody"]:
        raise DataError(
            f"columns.person {person}: {counts['nobody']:,} rows have no person. A series publishes everybody once, so every row "
            "needs one. Give it, or leave these rows out of the input.",
            rows=counts["nobody"],
        )
    facts = SeriesFacts(
        increment=prepared.output.increment + 1,
        new=counts["persons"],
        published=0,
        waiting=counts["persons"],
        before=found.before,
        rows=counts["rows"],
        rows_of_published=everything - counts["rows"],
    )
    increment = Increment(prepared, found, rows, facts, workspace)
    least = prepared.steps.guarantee.k
    if facts.new < least:
        raise increment.waits(few(facts.new, least), by_family=False)
    return increment


def few(persons: int, least: int) -> str:
    """Why a run waits, in words."""
    if persons == 0:
        return "Nobody is new: everybody in the input was published already."
    new = "1 person is" if persons == 1 else f"{persons:,} people are"
    return f"{new} new, fewer than {least:,}: they wait for the next increment."
