"""The audit of a series: every increment by itself, the ledger, and both against the commits of the release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing import Kind, Verdict, verify_metadata
from anon_spark.auditing.release.content import content_of
from anon_spark.auditing.release.series import entered_check, once_each_check
from anon_spark.columns import quoted
from anon_spark.config import JobSpec
from anon_spark.errors import ConfigurationError
from anon_spark.families.contract import Pipeline
from anon_spark.families.registry import pipeline_of
from anon_spark.io.ledger import HASH, open_ledger
from anon_spark.io.nesting import as_published, read_input
from anon_spark.io.publication import Output, Published, increments, output_of, rows_of_commit
from anon_spark.io.tables import read_version
from anon_spark.primitives.plain import without_metadata
from anon_spark.runs.publishing import increment_comment
from anon_spark.runs.series.conditions import check_series
from anon_spark.runs.series.settling import CONTENT, Settled, is_sealed, settled, unpublished_before
from anon_spark.runs.untouched import untouched

GONE = (
    "its rows can no longer be told apart from those of other increments: the files of its commit are gone. A series with "
    "output.increment keeps its increments apart."
)


def audit_series(job: JobSpec, spark: SparkSession) -> list[Verdict]:
    """Verdicts on a series: the ledger, and every increment that stands in the release. Writes nothing.

    Raises ConfigurationError where release and ledger do not belong together. Cost: per increment that of an audit of a release.
    """
    steps, seen = pipeline_of(job, spark), output_of(spark, job.output.table)
    if seen.series is None or seen.release is None:
        raise ConfigurationError(f"output.table: no increment is published at {job.output.table} yet. Run the job first.")
    ledger = open_ledger(spark, str(job.output.ledger))
    source = read_input(spark, job.input, job.fields)
    check_series(job, steps, source, seen, ledger)
    assert ledger is not None, "check_series refuses a series without its ledger"
    found = settled(spark, job.output, seen, ledger)
    series = SeriesAudit(job, spark, steps, seen, seen.release, found)
    return list(series.verdicts())


@dataclass(frozen=True)
class SeriesAudit:
    """A series with its ledger, as they are now."""

    job: JobSpec
    spark: SparkSession
    steps: Pipeline[Any, Any, Any]
    seen: Output
    release: Published
    found: Settled

    def verdicts(self) -> Iterator[Verdict]:
        table, comments = self.job.output.table, {**self.steps.comments, **increment_comment(self.job.output.increment)}
        yield untouched(self.release)
        yield verify_metadata(read_version(self.spark, table, self.release.latest), comments)
        yield once_each_check(self.found.persons.select(HASH), is_sealed(self.seen, self.found).get()).get()
        before: Mapping[str, Any] | None = None
        for version, metadata in increments(self.spark, table):
            steps = self.steps if before is None else self.steps.continuing(before)
            number = int(metadata["increment"])
            for verdict in self._of_increment(steps, version, number, metadata):
                yield replace(verdict, name=f"increment {number}: {verdict.name}")
            before = metadata

    def _of_increment(
        self, steps: Pipeline[Any, Any, Any], version: int, number: int, metadata: Mapping[str, Any]
    ) -> Iterator[Verdict]:
        rows = self._rows(version, number)
        if rows is None:
            yield Verdict("rows", False, 1, 0, GONE, kind=Kind.SERIES)
            return
        same = content_of(rows, rows.columns) == metadata.get(CONTENT)
        detail = "its rows are those that were audited when it was published." if same else "its rows were changed since."
        yield Verdict("rows", same, int(not same), 1, detail, kind=Kind.SERIES)
        source = self._source(number, metadata)
        if source is None:
            detail = (
                f"version {metadata.get('input_version')} of the input can no longer be read, so its rows were not compared with "
                "the source again. That was done when they were published, and they are unchanged."
            )
            yield Verdict("source", same, int(not same), 0, detail, kind=Kind.SERIES)
            return
        plain = without_metadata(rows)
        yield from steps.verify_current(source, plain, metadata)
        yield self._people(steps, source, plain, number, metadata)

    def _people(
        self, steps: Pipeline[Any, Any, Any], source: DataFrame, rows: DataFrame, number: int, metadata: Mapping[str, Any]
    ) -> Verdict:
        """Whether the ledger has the people of the increment."""
        entered, published = self.found.persons.where(F.col("increment") == number).select(HASH), rows.count()
        behind = steps.behind_current(source, steps.as_labels(source, rows, metadata), metadata)
        if behind is not None:
            person, salt = str(self.job.columns.person), self.found.ledger.salt
            return entered_check(behind, person, salt, entered, published).get()
        persons = entered.count()
        same = persons == published
        detail = f"{persons} persons were entered for {published} rows."
        return Verdict("ledger", same, abs(persons - published), persons, detail, kind=Kind.SERIES)

    def _rows(self, version: int, number: int) -> DataFrame | None:
        """The rows of an increment; None where they cannot be told apart any more."""
        table, name = self.job.output.table, self.job.output.increment
        if name is not None:
            latest = read_version(self.spark, table, self.release.latest)
            return latest.where(F.col(quoted(name)) == number).drop(name)
        try:
            rows = rows_of_commit(self.spark, table, version)
            rows.limit(1).count()  # Spark finds out late that files are gone
        except Exception:
            return None
        return rows

    def _source(self, number: int, metadata: Mapping[str, Any]) -> DataFrame | None:
        """The rows of the people who were not published before an increment; None where that version is gone."""
        try:
            source = read_input(self.spark, as_published(self.job.input, metadata), self.job.fields).frame
            source.limit(1).count()
        except Exception:
            return None
        needed = self.steps.needed(source)
        earlier = self.found.persons.where(F.col("increment") < number)
        return unpublished_before(self.found.ledger, needed, str(self.job.columns.person), earlier)
