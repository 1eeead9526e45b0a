"""A plan: everything a run would check, count and write, without writing anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from anon_spark.errors import DataError
from anon_spark.model.findings import Finding, by_level
from anon_spark.runs.duration import expectation
from anon_spark.runs.findings import planned_findings
from anon_spark.runs.identity import Identity
from anon_spark.runs.preparation import Preparation, run_key
from anon_spark.runs.republication import planned as replacing


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
