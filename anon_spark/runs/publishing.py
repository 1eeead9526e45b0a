"""The last step of a run: publish, compare what was published with what was audited, and settle what earlier runs left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.release.content import content_of
from anon_spark.columns import quoted
from anon_spark.engine import gathered
from anon_spark.errors import AnonSparkError, ConfigurationError, PublicationRefused
from anon_spark.io.leftovers import clear_notes, folder_of, note_publication, notes_in, sweep_uncommitted
from anon_spark.io.publication import (
    Appending,
    Output,
    begin,
    is_undone,
    output_before,
    output_of,
    publish,
    read_back,
    rows_of_commit,
    unchanged,
    version_of,
    withdraw,
)
from anon_spark.io.tables import location_of
from anon_spark.primitives.plain import with_comments
from anon_spark.runs.preparation import Preparation

Step = Callable[[str], None]


def nothing(step: str) -> None:
    """A step callback that does nothing."""


def published(
    prepared: Preparation,
    release: DataFrame,
    audited: str,
    metadata: Mapping[str, Any],
    step: Step = nothing,
    appending: Appending | None = None,
) -> int:
    """Publish a release, or an increment of a series, whose content was audited; returns its version.

    Guarantee: afterwards the output holds the audited content (and an increment what was there before), up to a 128-bit hash, or
    what it held before; files of a failed publication are removed. Cost: a write and a scan of the rows.
    """
    spark, table, run_id = prepared.spark, prepared.job.output.table, str(metadata["run_id"])
    if appending is not None:
        release = with_increment(release, prepared.job.output.increment, appending.increment)
    seen = begin(release, table, run_id, unchanged(spark, table, prepared.output))
    note = note_publication(location_of(spark, table), run_id, seen.latest, audited)
    try:
        step("commit")
        comments = {**prepared.steps.comments, **increment_comment(prepared.job.output.increment)}
        version = publish(with_comments(release, comments), table, metadata, seen, appending)
        step("compare")
        _compare(prepared, version, audited, seen)
    except ConfigurationError as error:
        if note is not None:
            note.end()
        raise AnonSparkError(
            f"output.table: {table} cannot be looked at any more, so it is not known whether the release was committed. Run the "
            "job again: that finds out, and compares it with what was audited."
        ) from error
    except Exception as error:
        over = isinstance(error, PublicationRefused) or version_of(spark, table, run_id) is None
        if note is not None:
            note.end()  # a release that was committed and not compared is compared by the next run
            if over:
                settle(prepared)
        raise
    except BaseException:  # Spark may still be writing: the next run cleans up
        if note is not None:
            note.end()
        raise
    step("committed")
    if note is not None:
        note.remove()
        settle(prepared)  # others that lost against this run may have left files
    return version


def settle(prepared: Preparation) -> int:
    """Clean up after interrupted publications; returns how many files were removed.

    A committed one is compared now; an uncommitted one loses its files. The note stays until that is done.
    Cost: nothing where nothing was left.
    """
    spark, table = prepared.spark, prepared.job.output.table
    folder = folder_of(location_of(spark, table))
    notes = notes_in(folder)
    if not all(note.is_dead for note in notes):  # the last one that publishes there cleans up
        return 0
    clear_notes(folder)
    removed = 0
    for note in notes:
        version = version_of(spark, table, note.run_id)
        if version is None:
            removed += sweep_uncommitted(note)
        elif not is_undone(spark, table, version):
            try:
                _compare(prepared, version, note.content, output_before(spark, table, version))
            except PublicationRefused:  # withdrawn: that settles it, too
                note.remove()
                raise
        note.remove()
    return removed


def at_work(prepared: Preparation) -> list[str]:
    """Processes on other machines whose notes say that they are publishing to the output."""
    notes = notes_in(folder_of(location_of(prepared.spark, prepared.job.output.table)))
    return [str(note.owner) for note in notes if not note.is_dead and not note.owner.is_here]


def _compare(prepared: Preparation, version: int, audited: str, before: Output) -> None:
    """Withdraw and refuse a version that is not what was audited."""
    spark, table = prepared.spark, prepared.job.output.table
    if prepared.job.output.appends:
        same = _is_audited_increment(prepared, version, audited)
    else:
        committed = gathered(read_back(spark, table, version), prepared.source.small)
        same = content_of(committed, committed.columns) == audited
    if same:
        return
    withdraw(spark, table, version, before)
    raise PublicationRefused(
        f"output.table: version {version} of {table} did not hold what had been audited. It was taken back; what stood before "
        "stands again. Version and its files remain readable by time travel until VACUUM: remove them.",
        version=version,
    )


def _is_audited_increment(prepared: Preparation, version: int, audited: str) -> bool:
    """Whether the rows that a commit added are those that were audited, all with the number of the increment."""
    spark, output = prepared.spark, prepared.job.output
    rows = rows_of_commit(spark, output.table, version)
    if output.increment is not None:
        number = output_of(spark, output.table).increment
        if rows.where(~F.col(quoted(output.increment)).eqNullSafe(F.lit(number))).limit(1).count():
            return False
        rows = rows.drop(output.increment)
    return content_of(rows, rows.columns) == audited


def with_increment(release: DataFrame, name: str | None, number: int) -> DataFrame:
    """The rows of an increment with its number in a column of this name, if there is one."""
    return release if name is None else release.withColumn(name, F.lit(number).cast("int"))


def increment_comment(name: str | None) -> dict[str, str]:
    return {} if name is None else {name: "Number of the increment in which the row was published."}
