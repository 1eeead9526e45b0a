"""A plan: everything a run would check, count and write, without writing anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from anon_spark.columns import quoted
from anon_spark.errors import DataError
from anon_spark.model.findings import Finding, by_level
from anon_spark.runs.duration import expectation
from anon_spark.runs.findings import planned_findings
from anon_spark.runs.identity import Identity
from anon_spark.runs.preparation import Preparation, run_key
from anon_spark.runs.republication import planned as replacing
from anon_spark.runs.series.increment import few, unpublished
from anon_spark.runs.series.settling import is_sealed, require_sealed, settled


@dataclass(frozen=True)
class Plan:
    """The plan of a run, as lines for people and as plain values."""

    input_table: str
    input_version: int | None
    guarantee: str
    counts: dict[str, int]
    published: list[str]
    writes: list[str]
    already_published: bool
    drawn_before: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    duration: str | None = None

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(line)}</li>" for line in self.lines())
        return f"<div><p><strong>What a run would do</strong></p><ul>{items}</ul></div>"

    def lines(self) -> list[str]:
        at = "" if self.input_version is None else f" at version {self.input_version}"
        counted = [f"{name.replace('_', ' ')}: {count:,}" for name, count in self.counts.items()]
        again = ["already published from these rows: a run would recognise it and write no release"]
        return [
            f"input: {self.input_table}{at}",
            f"guarantee: {self.guarantee}",
            *counted,
            f"published columns: {', '.join(self.published)}",
            *([] if self.duration is None else [f"a run would take: {self.duration}"]),
            *(f"would write: {place}" for place in self.writes),
            *(again if self.already_published else []),
            *(f"a run would need --redraw: {text}" for text in self.drawn_before),
            *(f"{finding.level}: {finding.text}" for finding in self.findings),
            *(f"note: {text}" for text in self.notes),
        ]


def plan(prepared: Preparation) -> Plan:
    """Count what a run would meet. Cost: a few passes over the table. Raises where the run would."""
    if prepared.job.output.appends:
        return _planned_increment(prepared)
    job, steps = prepared.job, prepared.steps
    counts = steps.estimate(prepared.source.frame)
    if counts["rows"] == 0:
        raise DataError("The input table is empty: there is nothing to release.", rows=0)
    unit = steps.guarantee.unit
    if counts[unit] < steps.guarantee.k:
        raise DataError(f"k = {steps.guarantee.k} is more than the {counts[unit]:,} {unit} of the table. Lower k.")
    version = 0 if prepared.output.latest is None else prepared.output.latest + 1
    identity = Identity(prepared, for_release=run_key()[1])
    current = identity.already_published
    report = [f"report {job.output.report} (with .json and .md beside it)"] if job.output.report else []
    return Plan(
        input_table=prepared.source.table,
        input_version=prepared.source.version,
        guarantee=str(steps.guarantee),
        counts=counts,
        published=steps.published,
        writes=[
            f"release {job.output.table} (version {version}, at most {counts['rows']:,} rows)",
            f"run log {job.output.runs} (one row)",
            *report,
        ],
        already_published=current is not None,
        drawn_before=[] if current is not None else identity.second_draw(redraw=True),
        notes=prepared.input_notes(),
        duration=expectation(job.family, counts["rows"], prepared.source.frame.sparkSession),
        findings=by_level([
            *planned_findings(steps, prepared.source.frame, counts["rows"], job.limits, prepared.source.small),
            *([] if current is not None else replacing(prepared)),
        ]),
    )


def _planned_increment(prepared: Preparation) -> Plan:
    """The plan of an increment: what a run would meet among the people who were not published."""
    job, steps, frame = prepared.job, prepared.steps, prepared.source.frame
    number, before = prepared.output.increment + 1, 0
    if prepared.ledger is not None:
        found = settled(prepared.spark, job.output, prepared.output, prepared.ledger)
        require_sealed(prepared, is_sealed(prepared.output, found).get())
        frame, before = unpublished(prepared, found), found.before
    people = frame.select(quoted(str(job.columns.person))).distinct().count()
    counts = {"people_published_before": before, "new_people": people}
    waits = people < steps.guarantee.k
    if not waits:
        counts |= steps.estimate(frame)
    return Plan(
        input_table=prepared.source.table,
        input_version=prepared.source.version,
        guarantee=str(steps.guarantee),
        counts=counts,
        published=steps.published,
        writes=[
            f"release {job.output.table} (increment {number} of a series, at most {counts.get('rows', 0):,} rows)",
            f"ledger {job.output.ledger} (who was published, as salted hashes)",
            f"run log {job.output.runs} (one row)",
            *([f"report {job.output.report} (with .json and .md beside it)"] if job.output.report else []),
        ],
        already_published=False,
        notes=[*prepared.input_notes(), *([f"A run would wait. {few(people, steps.guarantee.k)}"] if waits else [])],
        duration=None if waits else expectation(job.family, counts["rows"], prepared.source.frame.sparkSession),
        findings=[] if waits else planned_findings(steps, frame, counts["rows"], job.limits, prepared.source.small),
    )
