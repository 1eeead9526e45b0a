"""The conditions under which a job may add to a series; all are checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anon_spark.config import JobSpec
from anon_spark.errors import ConfigurationError
from anon_spark.families.contract import Pipeline
from anon_spark.io.ledger import Ledger
from anon_spark.io.publication import SERIES, Output
from anon_spark.io.tables import Snapshot
from anon_spark.primitives.persons import require_person_type

NEW = "or begin a new series with another output.table and output.ledger."


def check_series(
    job: JobSpec, steps: Pipeline[Any, Any, Any], source: Snapshot, seen: Output, ledger: Ledger | None
) -> None:
    """Refuse a job whose output or ledger is of another mode, series or promise. Cost: none."""
    output = job.output
    if not output.appends:
        if seen.series is not None:
            raise ConfigurationError(
                f"output.mode: {output.table} is a series, to which increments are appended. Replacing it would publish people a "
                "second time. Keep output.mode: append, or choose another output.table."
            )
        return
    if output.increment is not None and output.increment.lower() in map(str.lower, steps.published):
        raise ConfigurationError(f"output.increment: {output.increment} is a published column already. Choose another name.")
    person = str(job.columns.person)
    kind = require_person_type(source.frame, person)
    last = seen.series
    if last is None:
        _refuse_another_output(job, seen, ledger)
        return
    if ledger is None:
        raise ConfigurationError(
            f"output.ledger: there is no ledger at {output.ledger}, but {output.table} has {seen.increment} increments. Without "
            f"it people would be published twice. Restore it, {NEW}"
        )
    if ledger.series != last[SERIES]:
        raise ConfigurationError(
            f"output.ledger: {output.ledger} belongs to another series than {output.table}, or its salt was changed. Give the "
            f"ledger of this release, {NEW}"
        )
    if kind != ledger.person_type:
        raise ConfigurationError(
            f"columns.person: {person} has the type {kind} now, and had the type {ledger.person_type} when the series began. "
            f"Everybody would look new. Write the old type into the input, {NEW}"
        )
    now = promise_of(job, steps)
    changed = [name for name, value in now.items() if value != last.get(name)]
    if changed:
        raise ConfigurationError(
            f"output.mode: the job differs from the one that began the series at {output.table} in its {' and '.join(changed)}. "
            f"All increments of a series have one family, one guarantee and the same columns. Give the old values, {NEW}"
        )


def check_key(table: str, seen: Output, for_release: bool) -> None:
    """Refuse a test key in a series without one, and the reverse: a release is fit to be handed out as a whole. Cost: none."""
    if seen.series is None or seen.series.get("for_release") == for_release:
        return
    begun, now = ("with", "without") if for_release else ("without", "with")
    raise ConfigurationError(
        f"ANON_SPARK_RUN_KEY: the series at {table} was begun {begun} a test key, and this run is {now} one. Whoever knows the "
        f"key knows the draws and the order of its increments. Run as before, {NEW}"
    )


def _refuse_another_output(job: JobSpec, seen: Output, ledger: Ledger | None) -> None:
    output = job.output
    if seen.release is not None:
        raise ConfigurationError(
            f"output.mode: {output.table} was published with output.mode: replace, so its people are in no ledger. Choose "
            "another output.table for a series."
        )
    if ledger is not None and any(entry.confirmed for entry in ledger.entries):
        raise ConfigurationError(
            f"output.ledger: {output.ledger} is of a series whose release is not at {output.table}. Give the output.table of "
            f"that series, {NEW}"
        )


def promise_of(job: JobSpec, steps: Pipeline[Any, Any, Any]) -> Mapping[str, Any]:
    """What all increments of a series have in common, as metadata of a commit."""
    increment = job.output.increment
    columns: Sequence[str] = [*steps.published, *([] if increment is None else [increment])]
    return {"family": job.family, "guarantee": str(steps.guarantee), "columns": list(columns)}
