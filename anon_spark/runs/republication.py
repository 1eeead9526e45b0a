"""A release that replaces another one: what both tell together, measured before the new one is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anon_spark.auditing.reading.values import shape
from anon_spark.errors import AnonSparkError, ConfigurationError
from anon_spark.families.contract import Staged
from anon_spark.io.earlier import can_be_read, earlier_versions, shown
from anon_spark.io.nesting import as_published, read_input
from anon_spark.io.publication import Published
from anon_spark.io.tables import Snapshot, read_version
from anon_spark.model.findings import Finding, Level
from anon_spark.model.republication import Republication
from anon_spark.primitives.plain import without_metadata
from anon_spark.report import Section
from anon_spark.report.formats import counted, listed, percent
from anon_spark.report.republication import republication_sections
from anon_spark.risk.republication.measure import republication
from anon_spark.runs.findings import exceeded
from anon_spark.runs.preparation import Preparation

KIND = "republication"
WHAT_TO_DO = (
    "Publish everybody once (output.mode: append), or let fewer people get both: `anon-spark purge JOB --history` removes what "
    "time travel shows. Who has read the older release keeps it."
)


@dataclass(frozen=True)
class Together:
    """What is known of a new release and those before it: the numbers, findings, and a part of the report."""

    numbers: Republication | None = None
    findings: Sequence[Finding] = ()
    sections: Sequence[Section] = ()

    def facts(self) -> dict[str, Any]:
        """The numbers for the run log and the JSON of the report; nothing where nothing was measured."""
        return {} if self.numbers is None else self.numbers.numbers()


def told_together(prepared: Preparation, at: Staged[Any], metadata: Mapping[str, Any], rows: int) -> Together:
    """Measure the staged release beside the one that it will replace.

    metadata: what the commit will say; rows: of the source. A measure that fails is a finding, and a stop where the job has a
    limit for it.
    Cost: a small job for each halving of the earlier releases; that of `republication`, and copies of what is replaced if it is
    small.
    """
    table, current = prepared.job.output.table, prepared.output.release
    older = earlier_versions(prepared.spark, table, None if current is None else current.version)
    more = shown(prepared.spark, table, older)
    only_earlier = [_only_earlier(more)] if more else []
    if current is None:
        return Together(findings=_limited(only_earlier, prepared))
    found = _measured(prepared, current, at, metadata, rows)
    if isinstance(found, str):
        readable = can_be_read(prepared.spark, table, current.latest)
        return Together(findings=_limited(_unmeasured(current, found, more) if readable else only_earlier, prepared))
    limited = _limited(_findings(found, current.version, more), prepared)
    return Together(found, limited, republication_sections(found, current.version))


def planned(prepared: Preparation) -> list[Finding]:
    """Findings before a fit, where a run would replace a release. Cost: one small job, none without a release."""
    current = prepared.output.release
    if current is None or not can_be_read(prepared.spark, prepared.job.output.table, current.latest):
        return []
    older = _older(prepared, current)
    if isinstance(older, str):
        return _limited(_unmeasured(current, older, 0), prepared)
    text = (
        f"A run replaces version {current.version} of {prepared.job.output.table}, which stays readable by time travel. It "
        "measures what both tell together before it publishes."
    )
    return [Finding("note", KIND, text)]


# -- measure ------------------------------------------------------------------------------------------------------------


def _older(prepared: Preparation, current: Published) -> Snapshot | str:
    """The rows behind the release that is replaced, or why nothing can be measured. Cost: metadata only."""
    job, steps, metadata = prepared.job, prepared.steps, current.metadata
    if steps.unmeasured is not None:
        return steps.unmeasured
    if metadata.get("family") != job.family:
        return f"it was made by the family {metadata.get('family')}"
    if metadata.get("input_version") is None or prepared.source.version is None:
        return "its input has no versions that could be read again"
    if metadata.get("input_id") != prepared.source.table_id:
        return "it was made of another table"
    gone = f"version {metadata['input_version']} of the input, of which it was made, cannot be read any more"
    try:
        older = read_input(prepared.spark, as_published(job.input, metadata), job.fields)
    except ConfigurationError:
        return gone
    kinds = [
        {name: shape(frame.schema[name].dataType) for name in (*steps.named, *steps.persons) if name in frame.columns}
        for frame in (older.frame, prepared.source.frame)
    ]
    other = [name for name in kinds[1] if kinds[0].get(name) != kinds[1][name]]
    if other:
        return f"columns of its input were missing then, or had another type: {listed(other)}"
    return older


def _measured(
    prepared: Preparation, current: Published, at: Staged[Any], metadata: Mapping[str, Any], rows: int
) -> Republication | str:
    """The numbers, or why there are none."""
    older = _older(prepared, current)
    if isinstance(older, str):
        return older
    job, steps, workspace = prepared.job, prepared.steps, at.workspace
    try:
        before, source = read_version(prepared.spark, job.output.table, current.latest), steps.needed(older.frame)
        if set(before.columns) != set(at.published.columns):
            return "it has other columns than this one"
        if at.small:  # as the input: every plan over a Delta table first lists its files
            before, source = workspace.store(before, "replaced-release"), workspace.store(source, "replaced-input")
        found = republication(
            steps.version(source, without_metadata(before), current.metadata, rows),
            steps.version(at.source, at.published, metadata, rows),
            job.columns.person,
            job.columns.sensitive,
            steps.named,
            steps.guarantee.k,
            job.nulls,
            workspace.store,
        )
    except AnonSparkError as error:  # its text names columns and counts only
        return f"it cannot be read as this job describes it. {error}".rstrip(".")
    except Exception as error:  # a failed measure must not decide over a release whose promise holds, but it is no good news
        version = int(current.metadata["input_version"])
        if not can_be_read(prepared.spark, prepared.source.table, version, job.input.options):
            return f"the files of version {version} of the input, of which it was made, are gone"
        return f"the measure failed ({type(error).__name__})"
    if found.unexplained:
        return (
            f"labels of {counted(found.unexplained, 'row')} of it do not follow from its input by the hierarchies of this job, "
            "which were changed since"
        )
    return found


# -- findings -----------------------------------------------------------------------------------------------------------


def _findings(numbers: Republication, replaced: int, more: int) -> list[Finding]:
    k, people = numbers.k, "rows" if numbers.by_content else "people"
    parts = [f"This release replaces version {replaced}, and {numbers.compared:,} {people} are in both."]
    if numbers.by_content:
        parts.append("Equal rows are taken for the same person, which is a guess.")
    if numbers.few_candidates:
        parts.append(
            f"Whoever has both releases finds {numbers.few_candidates:,} of them ({percent(numbers.few_candidates_share)}) among "
            f"fewer than {k:,} candidates, at worst among {numbers.least_candidates:,}."
        )
    for name, count in numbers.one_value.items():
        if count:
            parts.append(f"Exactly one value of {name} fits {count:,} ({percent(numbers.one_value_shares[name])}) in both.")
    if numbers.few_newcomers:
        parts.append(
            f"Of {numbers.newcomers:,} newcomers {numbers.few_newcomers:,} ({percent(numbers.few_newcomers_share)}) are among "
            f"fewer than {k:,} newcomers in their class."
        )
    if not numbers.worst:
        parts.append(f"Both together tell of nobody more than either: no one has fewer than {k:,} candidates.")
    if more:
        parts.append(_more(more))
    level: Level = "look" if numbers.worst or more else "note"
    return [Finding(level, KIND, " ".join([*parts, *([WHAT_TO_DO] if level == "look" else [])]), numbers.worst)]


def _unmeasured(current: Published, why: str, more: int) -> list[Finding]:
    text = (
        f"This release replaces version {current.version}, which can still be read. What both tell together is unknown: {why}. "
        f"{_more(more) + ' ' if more else ''}{WHAT_TO_DO}"
    )
    return [Finding("look", KIND, text)]


def _only_earlier(more: int) -> Finding:
    return Finding("look", KIND, f"{_more(more)} {WHAT_TO_DO}")


def _more(more: int) -> str:
    which = "1 earlier release" if more == 1 else f"{more:,} earlier releases"
    return f"Time travel shows {which} besides, and nobody measured what they add."


def _limited(findings: Sequence[Finding], prepared: Preparation) -> list[Finding]:
    """The findings, with a stop where the job's limit is exceeded, or was to be held against what is unknown."""
    limits = prepared.job.limits
    limit = None if limits is None else limits.republication
    stops = exceeded([finding for finding in findings if finding.kind == KIND], limits)
    unknown = [] if limit is None else [finding for finding in findings if finding.level == "look" and finding.share is None]
    text = f"limits.{KIND} allows {limit or 0:g}, and a share that is unknown is refused."
    return [*stops, *(Finding("stop", f"limits.{KIND}", f"{text} {finding.text}") for finding in unknown), *findings]
