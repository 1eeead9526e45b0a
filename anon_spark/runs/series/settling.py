"""The ledger of a series before an increment: who counts as published.

Order of a publication: the people of the increment enter the ledger, unconfirmed; the increment is committed to the release; the
ledger is confirmed. A run that dies in between leaves unconfirmed people. The next run looks for the dead one in the history of
the release: if it is there, they count as published. If not, they do not count, and never will: both runs use the same number,
which Delta accepts once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing.release.content import contents_to_be
from anon_spark.config import OutputSpec
from anon_spark.errors import DataError, PublicationRefused
from anon_spark.io.ledger import HASH, Entry, Ledger, confirm, create_ledger, open_ledger
from anon_spark.io.publication import Output, runs_in_history
from anon_spark.io.run_log import Logged, append_run, logged_runs
from anon_spark.io.tables import sql_name
from anon_spark.pending import Pending
from anon_spark.primitives.persons import require_person_type
from anon_spark.runs.later import later_row
from anon_spark.runs.preparation import Preparation
from anon_spark.runs.series.conditions import NEW

CONTENT = "content"  # key of the metadata of an increment: the digest of its rows
SEAL = "seal"  # key of the metadata of an increment: the mark of the ledger with which it was published
SHOWN = 24  # increments in the report


@dataclass(frozen=True)
class Settled:
    """The ledger after it was compared with the history of the release."""

    ledger: Ledger
    counted: tuple[Entry, ...]
    uncounted: tuple[str, ...]  # runs that did not publish
    logged: Mapping[str, Logged] = field(default_factory=dict)  # what the run log says of the last increments

    @property
    def persons(self) -> DataFrame:
        """The people who were published: HASH and `increment`."""
        return self.ledger.persons(without=self.uncounted)

    def waited_after(self, entry: Entry) -> int | None:
        """How many people waited after an increment, None where the run log does not say."""
        row = self.logged.get(entry.run_id)
        return None if row is None or row.series is None else row.series.get("waiting")

    @property
    def before(self) -> int:
        return sum(entry.persons for entry in self.counted)

    def seal_to_be(self, persons: DataFrame) -> Pending[str]:
        """The mark of a ledger with these people. Cost: one scan of it."""
        return contents_to_be(persons, [HASH, "increment"]).then(lambda digests: self.ledger.seal(digests[0]))


def settled(spark: SparkSession, output: OutputSpec, seen: Output, ledger: Ledger) -> Settled:
    """Compare unconfirmed entries with the history of the release. Writes nothing.

    Raises DataError where the history no longer tells whether a run published. Cost: metadata of the release.
    """
    open_entries = [entry for entry in ledger.entries if not entry.confirmed]
    committed, oldest = runs_in_history(spark, output.table) if open_entries else ({}, None)
    numbers = {entry.increment for entry in ledger.entries if entry.confirmed or entry.run_id in committed}
    if max(numbers, default=0) > seen.increment:
        raise PublicationRefused(
            f"output.table: another run published to {output.table} meanwhile. Nothing of this run was published: run again. If "
            f"none was at work, {output.table} was put back from a backup that is older than {output.ledger}: put back both."
        )
    uncounted = []
    for entry in open_entries:
        if entry.run_id in committed:
            continue
        since = 0 if entry.release_version is None else entry.release_version + 1
        if oldest is not None and oldest > since:
            # a later increment is in the history, and each is of one run: this one's, if it is of no other
            published = entry.increment not in numbers
            raise DataError(_forgotten(output.ledger or "", entry, oldest, published), run_id=entry.run_id)
        uncounted.append(entry.run_id)
    counted = tuple(entry for entry in ledger.entries if entry.run_id not in uncounted)
    return Settled(ledger, counted, tuple(uncounted))


def _forgotten(table: str, entry: Entry, oldest: int, published: bool) -> str:
    if published:
        row = f"('confirmed', NULL, '{entry.run_id}', {entry.increment}, NULL, NULL, NULL, NULL, current_timestamp())"
        advice = (
            f"It did, because increment {entry.increment} is of no other run. Count them as published, then run again: "
            f"INSERT INTO {sql_name(table)} VALUES {row}."
        )
    else:
        advice = (
            f"It did not, because increment {entry.increment} is of another run. Remove them, then run again: "
            f"DELETE FROM {sql_name(table)} WHERE run_id = '{entry.run_id}'."
        )
    return (
        f"output.ledger: {entry.persons:,} people of run {entry.run_id} are not confirmed, and the history of the release begins "
        f"with version {oldest}, so it does not tell whether that run published them. {advice}"
    )


def opened(prepared: Preparation) -> Ledger:
    """The ledger of the series; a first run creates it. Cost: nothing more than `prepare` did, or a commit."""
    if prepared.ledger is not None:
        return prepared.ledger
    table = str(prepared.job.output.ledger)
    create_ledger(prepared.spark, table, require_person_type(prepared.source.frame, str(prepared.job.columns.person)))
    ledger = open_ledger(prepared.spark, table)
    assert ledger is not None, "it was created just now"
    return ledger


def put_in_order(prepared: Preparation, found: Settled) -> Settled:
    """Confirm what dead runs published, and add the row of the newest increment to the run log where its run died before it.

    Returns the ledger with what the run log says. Cost: one job that reads the log; a commit where a run died.
    """
    confirm(found.ledger, [(entry.run_id, entry.increment) for entry in found.counted if not entry.confirmed])
    runs = prepared.job.output.runs
    logged = logged_runs(prepared.spark, runs, {entry.run_id for entry in found.counted[-SHOWN:]})
    newest, release = prepared.output.series, prepared.output.release
    if newest is not None and release is not None and release.metadata == newest:
        row = logged.get(str(newest["run_id"]))
        if row is None or not row.published:
            append_run(prepared.spark, runs, later_row(prepared, release, None, datetime.now(UTC)))
    return replace(found, logged=logged)


def require_sealed(prepared: Preparation, sealed: bool) -> None:
    """Refuse a ledger that was edited."""
    if not sealed:
        raise DataError(
            f"output.ledger: {prepared.job.output.ledger} is not the ledger with which increment {prepared.output.increment} was "
            "published: rows are missing, added or changed, so people could be published twice. Restore the ledger (RESTORE "
            f"TABLE … TO VERSION AS OF …), {NEW}"
        )


def is_sealed(output: Output, found: Settled) -> Pending[bool]:
    """Whether the ledger is the one with which the newest increment was published. Cost: one scan of it."""
    if output.series is None:
        return Pending.known(not found.counted)
    seal = output.series.get(SEAL)
    return found.seal_to_be(found.persons).then(lambda now: now == seal)


def unpublished_before(ledger: Ledger, rows: DataFrame, person: str, persons: DataFrame) -> DataFrame:
    """The rows of people who are not among the published ones, lazily. Cost: one join of the rows with the ledger."""
    return ledger.hashed(rows, person).join(persons.select(HASH), HASH, "left_anti").drop(HASH)
