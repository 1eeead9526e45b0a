"""Everything that can be refused before a row is read: configuration, hierarchies, places, versions, columns."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from anon_spark.config import InputSpec, JobSpec, config_hash, is_path, is_uri, relation
from anon_spark.errors import ConfigurationError
from anon_spark.families.contract import Pipeline
from anon_spark.families.registry import pipeline_of
from anon_spark.io.csv_form import csv_form
from anon_spark.io.dictionary import check_dictionary
from anon_spark.io.ledger import Ledger, open_ledger
from anon_spark.io.names import require_publishable
from anon_spark.io.nesting import nesting_notes, read_input
from anon_spark.io.places import require_lasting, require_writable
from anon_spark.io.publication import Output, output_for_run
from anon_spark.io.run_log import check_run_log
from anon_spark.io.tables import Snapshot, location_of
from anon_spark.primitives.rounds import usable
from anon_spark.runs.series.conditions import check_key, check_series

RUN_KEY = "ANON_SPARK_RUN_KEY"  # for tests: a run with a given key is marked "not for release"


@dataclass(frozen=True)
class Preparation:
    """A job that can run: its steps, its input at a pinned version, and what is at its output now."""

    job: JobSpec
    spark: SparkSession
    steps: Pipeline[Any, Any, Any]
    source: Snapshot
    output: Output
    config_hash: str  # of the job and of the hierarchies it points to
    ledger: Ledger | None = None  # of a series, read after the output; None where the first run will make it

    def input_notes(self) -> list[str]:
        """Messages on tables nested into the input; none for a single table. Cost: one job per nested table."""
        return nesting_notes(self.source, self.job.input)


def run_key() -> tuple[str, bool]:
    """The key of the run's random order, and whether its release is fit to be handed out."""
    test_key = os.environ.get(RUN_KEY)
    return (test_key, False) if test_key else (secrets.token_hex(16), True)


def prepare(job: JobSpec, spark: SparkSession) -> Preparation:
    """Check everything that needs no row. Raises ConfigurationError; writes nothing."""
    _refuse_unwritable_report(job.output.report)
    usable(spark, job.work)
    tables = {"output.table": job.output.table, "output.runs": job.output.runs, "output.dictionary": job.output.dictionary,
              "output.ledger": job.output.ledger}
    for key, table in tables.items():
        if table is not None:
            require_lasting(spark, table, key)
    steps = pipeline_of(job, spark)
    source = read_input(spark, job.input, job.fields)
    try:
        steps.check_columns(source.frame)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}{_csv_hint(job.input)}", **error.facts) from error
    require_publishable(source.frame, steps.published)
    output = output_for_run(spark, job.output.table)
    # after the output: a ledger that is older than it would miss people
    ledger = None if job.output.ledger is None else open_ledger(spark, job.output.ledger)
    check_series(job, steps, source, output, ledger)
    check_key(job.output.table, output, run_key()[1])
    if output.series is not None:
        steps = steps.continuing(output.series)
    check_run_log(spark, job.output.runs)
    if job.output.dictionary is not None:
        check_dictionary(spark, job.output.dictionary)
    _refuse_touching_places(job, spark, source)
    _refuse_unwritable_places(job)
    return Preparation(job, spark, steps, source, output, job_digest(job, steps), ledger)


def job_digest(job: JobSpec, steps: Pipeline[Any, Any, Any]) -> str:
    """The digest of a job in a commit and in the run log: of its file and the hierarchies it points to."""
    return hashlib.sha256(f"{config_hash(job)}\n{steps.fingerprint()}".encode()).hexdigest()


def _refuse_touching_places(job: JobSpec, spark: SparkSession, source: Snapshot) -> None:
    """Refuse places inside each other, by their real locations: a catalog name may lead into another table's folder."""
    read = {f"{key}.table": part.location for key, part in source.tables.items()}
    places = {
        **read,
        "output.table": location_of(spark, job.output.table),
        "output.runs": location_of(spark, job.output.runs),
        "output.dictionary": None if job.output.dictionary is None else location_of(spark, job.output.dictionary),
        "output.ledger": None if job.output.ledger is None else location_of(spark, job.output.ledger),
        "output.report": job.output.report,
        "work": job.work,
    }
    known = [(key, place) for key, place in places.items() if place is not None]
    for (key, place), (other, other_place) in combinations(known, 2):
        overlap = None if key in read and other in read else relation(place, other_place)
        if overlap is not None:
            raise ConfigurationError(f"{key} {overlap} {other}: choose places apart from each other.")


def _refuse_unwritable_places(job: JobSpec) -> None:
    """Refuse places that cannot be written, before the work; the test leaves nothing behind."""
    output = job.output
    places = {
        "output.table": output.table, "output.runs": output.runs, "output.dictionary": output.dictionary,
        "output.ledger": output.ledger, "work": job.work,
    }  # fmt: skip
    for key, place in places.items():
        if place is not None and is_path(place):
            require_writable(place, key)


def _csv_hint(spec: InputSpec) -> str:
    """What a text file looks like, where the job reads it otherwise: a wrong separator or header makes other columns."""
    if spec.format != "csv" or not is_path(spec.table) or is_uri(spec.table):
        return ""
    form = csv_form(Path(spec.table))
    if form is None:
        return ""
    read_as = {"header": "false", "sep": ",", **{name.lower(): value for name, value in spec.options.items()}}
    wanted = {"header": str(form.header).lower(), "sep": form.sep}
    other = {name: value for name, value in wanted.items() if read_as[name].lower() != value}
    if not other:
        return ""
    options = ", ".join(f"{name}: {json.dumps(value)}" for name, value in other.items())
    return f" The file seems to have {form.told}: say input.options: {{{options}}}."


def _refuse_unwritable_report(report: str | None) -> None:
    """Refuse a report that cannot be written: it would be missing after the publication."""
    if report is None:
        return
    if is_uri(report):
        raise ConfigurationError("output.report: a report is a file on the driver. Give a path without scheme.")
    if Path(report).is_dir():
        raise ConfigurationError(f"output.report: {report} is a folder. Give the path of a page, ending in .html.")
    require_writable(str(Path(report).absolute().parent), "output.report", report)
