"""Remove what time travel shows of earlier releases of a job. The current release stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import SparkSession

from anon_spark.config import JobSpec
from anon_spark.errors import AnonSparkError, ConfigurationError
from anon_spark.io.earlier import can_be_read, earlier_versions
from anon_spark.io.leftovers import folder_of, notes_in
from anon_spark.io.publication import output_for_run
from anon_spark.io.tables import location_of
from anon_spark.io.vacuum import vacuum_all
from anon_spark.report.formats import counted

MOST_TRIED = 20  # earlier releases, the newest ones, that are read again afterwards


@dataclass(frozen=True)
class Past:
    """The releases of a table before the current one, by version, newest first, as far as its history tells."""

    table: str
    current: int | None
    versions: tuple[int, ...]

    @classmethod
    def of(cls, job: JobSpec, spark: SparkSession) -> Past:
        """Refuses a table that is no release of ours, or that others changed. Cost: metadata only."""
        table = job.output.table
        output = output_for_run(spark, table)
        if output.latest is None:
            raise ConfigurationError(f"output.table: nothing is published at {table} yet.")
        current = None if output.release is None else output.release.version
        return cls(table, current, tuple(earlier_versions(spark, table, current)))

    @property
    def question(self) -> str:
        """What will happen, before anything does."""
        stays = "No release is current." if self.current is None else f"The current one, version {self.current}, stays."
        return (
            f"{counted(len(self.versions), 'earlier release')} of {self.table} can then no longer be read by anybody, and "
            f"nothing brings them back. {stays} Nobody should write to the table meanwhile."
        )

    def remove(self, spark: SparkSession) -> Iterator[str]:
        """Vacuum the table; yields lines on what was done. Raises where an earlier release can still be read.

        Refused while a run is publishing there: VACUUM would take its files. Cost: see `vacuum_all`, and a small job for each
        of the newest earlier releases.
        """
        notes = notes_in(folder_of(location_of(spark, self.table)))
        busy = [str(note.owner) for note in notes if not note.is_dead]
        if busy:
            raise ConfigurationError(
                f"output.table: {busy[0]} says it is publishing to {self.table}. Wait until it has ended; if it died: "
                "`anon-spark purge JOB --work --all`."
            )
        vacuum_all(spark, self.table)
        left = [version for version in self.versions[:MOST_TRIED] if can_be_read(spark, self.table, version)]
        if left:
            raise AnonSparkError(
                f"output.table: {counted(len(left), 'earlier release')} of {self.table} can still be read, the newest is version "
                f"{left[0]}. Is a file of it part of the current release?"
            )
        yield f"{counted(len(self.versions), 'earlier release')} of {self.table} can no longer be read: what was left is removed"
        if self.current is not None:
            yield f"version {self.current} stays the current release"
        yield "copies that others made are not reached, nor least and greatest values in the log of the table"
