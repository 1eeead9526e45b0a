"""A first look at a table and a job for it: `anon-spark init TABLE --into FOLDER`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from anon_spark.config import InputSpec, is_path, is_uri
from anon_spark.errors import ConfigurationError
from anon_spark.io.csv_form import csv_form
from anon_spark.io.nesting import reads_little
from anon_spark.io.places import require_writable
from anon_spark.model.progress import Progress
from anon_spark.report.formats import percent
from anon_spark.runs.named_tables import columns_of, format_of, pair_of, place_of, read_named, table_of
from anon_spark.suggestion import JOB, PAGE, Suggestion, suggest
from anon_spark.suggestion.page import ROLES
from anon_spark.suggestion.profile import profile

TRIMMED = {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}


@dataclass(frozen=True)
class Request:
    """What a command asks for, checked as far as that needs no Spark. told: what was guessed."""

    table: InputSpec
    folder: Path
    roles: Mapping[str, Any]
    told: tuple[str, ...] = ()

    @property
    def reads_little(self) -> bool:
        """Whether the table has few bytes, so that a session should start fast."""
        return reads_little(self.table)


@dataclass(frozen=True)
class Written:
    """A suggestion and the job file that it became."""

    suggestion: Suggestion
    job: Path
    told: tuple[str, ...]


def asked(options: argparse.Namespace) -> Request:
    """The request of a command line. Raises ConfigurationError; needs no Spark."""
    settings, told = dict(pair_of(text) for text in options.option), []
    kind = format_of(options.table, options.format)
    place = place_of(options.table)
    if kind == "csv" and is_path(place) and not is_uri(place):
        form = csv_form(Path(place))
        if form is not None:
            settings = {**form.options, **settings}
            told.append(f"{options.table}: {form.told}")
    table = table_of(options.table, kind, settings, "TABLE")
    folder = Path(options.into if options.into is not None else f"{_stem(options.table)}_job")
    if (folder / JOB).exists():
        raise ConfigurationError(f"{folder / JOB} is there already, and may have been edited. Say --into another folder.")
    require_writable(str(folder.absolute()), "--into", str(folder))
    roles = {
        "quasi": columns_of(options.quasi) if options.quasi else None,
        "sensitive": columns_of(options.sensitive),
        "keep": columns_of(options.keep),
        "identifiers": columns_of(options.identifiers),
        "person": options.person,
        "family": options.family,
        "k": options.k,
    }
    return Request(table, folder, roles, tuple(told))


def init(request: Request, spark: SparkSession, progress: Progress | None = None) -> Written:
    """Look at the table, and write job.yaml, hierarchies/ and profile.html into the folder. Nothing else is written."""
    tell = progress or (lambda done, total, what: None)
    told = list(request.told)
    tell(0, 3, "reading the table")
    table = request.table
    first = read_named(spark, table, "TABLE").frame
    known = profile(first)
    spaced = [column.name for column in known.columns if column.spaced]
    if spaced and table.format == "csv" and not TRIMMED.keys() & table.options.keys():
        # the reader drops the spaces, so that ' 37' and '37' are one value in the job, too
        table = table.model_copy(update={"options": dict(sorted({**table.options, **TRIMMED}.items()))})
        told.append(f"{len(spaced)} columns have spaces around values ({', '.join(spaced)}): the job's reader removes them")
        first = read_named(spark, table, "TABLE").frame
        known = profile(first)
    tell(1, 3, "roles, hierarchies, risk")
    found = suggest(first, **request.roles, profiled=known)
    tell(2, 3, "writing the folder")
    source: dict[str, Any] = {"format": table.format}
    if table.options:
        source["options"] = dict(table.options)
    job = found.save(request.folder, _from(request.folder, table.table), **source)
    tell(3, 3, "writing the folder")
    return Written(found, job, tuple(told))


def lines(written: Written) -> Iterator[str]:
    """What was found, in a few lines; no value of the table."""
    found = written.suggestion
    yield from written.told
    yield f"{found.profile.rows:,} rows, {len(found.columns)} columns; family {found.family.name}: {found.family.why}"
    width = min(32, max(len(entry.name) for entry in found.columns))
    for entry in found.columns:
        sure = "" if entry.confidence == "high" else f" ({entry.confidence} confidence)"
        yield f"  {entry.name:{width}}  {ROLES[entry.role]}: {entry.reason}{sure}"
    if found.risk is not None:
        yield found.risk.facts.sentence()
    for point in found.outlook:
        yield f"at k = {point.k} a release with one level per column would have a loss of {percent(point.loss)}"
    yield f"written: {written.job}, {written.job.parent / PAGE}"
    yield f"next: anon-spark plan {written.job}"


def _stem(table: str) -> str:
    name = Path(table.rstrip("/")).name.partition(".")[0] if is_path(place_of(table)) else table.rpartition(".")[2]
    return name or "table"


def _from(folder: Path, table: str) -> str:
    """A table as the job file in a folder names it: a path of this machine relative to the folder."""
    if not is_path(table) or is_uri(table):
        return table
    relative = os.path.relpath(table, folder.absolute())
    return relative if relative.startswith("..") else f"./{relative}"
