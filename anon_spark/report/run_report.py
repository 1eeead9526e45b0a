"""The report of one run: a value that renders itself as JSON, Markdown and one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

from anon_spark.model.facts import Facts
from anon_spark.model.findings import Finding, of_level, verdict_sentence
from anon_spark.model.series import SeriesFacts
from anon_spark.report.formats import plain, seconds, show, wording
from anon_spark.report.items import Bars, Check, Item, Picture, Section, Table, Text
from anon_spark.report.page import Notice, Step, sections_dict
from anon_spark.report.rendered import Rendered

__all__ = ["Bars", "Check", "Item", "Notice", "Picture", "RunReport", "Section", "Status", "Table", "Text"]

FORMAT = 1  # of the JSON; raised when a key changes its meaning or goes

STEPS = {  # of the timings
    "identity": "Compare with earlier runs",
    "clean": "Open the run log, remove what dead runs left",
    "input": "Read the input",
    "fit": "Fit",
    "search": "search",
    "release": "Stage the release",
    "audit": "Audit",
    "risk": "Risk and findings",
    "republication": "Compare with the release that is replaced",
    "pictures": "Pictures of this report",
    "publish": "Publish, and compare what is there",
}
PARTS = {"search": "fit"}  # a part of a step is in its time already
REST = "Between the steps"

Status = Literal["published", "already_published", "waiting", "failed", "planned"]

_OUTCOME: dict[str, Notice] = {
    "published": Notice("good", "✓", "PUBLISHED", "The checks were made on the staged release before it was published."),
    "already_published": Notice(
        "good", "✓", "ALREADY PUBLISHED", "The same was published before from the same rows. Nothing was published now."
    ),
    "waiting": Notice(
        "neutral", "○", "WAITING: nothing published", "New people come again with the next increment. The release is unchanged."
    ),
    "failed": Notice("bad", "✗", "NOT PUBLISHED", "The run failed. An earlier release, if there is one, is unchanged."),
    "unconfirmed": Notice(
        "bad", "✗", "COMMITTED, NOT CONFIRMED", "The run failed after the commit. The next run compares it with what was audited."
    ),
    "planned": Notice("neutral", "○", "NOT PUBLISHED: plan only", "Nothing was written."),
}
TEST_KEY = Notice(
    "caution",
    "!",
    "test key: not for release",
    "The run key was supplied from outside. Whoever knows it can replay the run: do not hand this release to anybody.",
)


@dataclass(frozen=True, kw_only=True, repr=False)
class RunReport(Rendered):
    """The report of one run: what it did, what it promises and what it does not.

    Guarantee: shows only what it is given; a run with a failed check cannot be reported as published. The caller hands
    over counts, names of columns and labels that the release shows in k rows or more, never another value of a record.
    """

    run_id: str
    family: str
    status: Status
    started: datetime
    finished: datetime | None
    config_hash: str
    input_table: str
    input_version: int | None
    output_table: str | None
    output_version: int | None
    versions: Mapping[str, str]
    for_release: bool
    guarantee: str
    covers: Sequence[str] = ()
    not_covered: Sequence[str] = ()
    checks: Sequence[Check] = ()
    accounting: Mapping[str, int] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    findings: Sequence[Finding] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    sections: Sequence[Section] = ()
    facts: Facts = field(default_factory=Facts)
    message: str | None = None
    in_words: Sequence[str] = ()
    series: SeriesFacts | None = None
    republication: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status not in get_args(Status):
            raise ValueError(f"status: {self.status!r} is none of {', '.join(get_args(Status))}.")
        failed = sum(not check.passed for check in self.checks)
        if failed and self.status == "published":
            raise ValueError(f"status: published, but {failed} checks failed. Report the run as failed.")
        stops = len(of_level(self.findings, "stop"))
        if stops and self.status == "published":
            raise ValueError(f"status: published, but {stops} findings stop it. Report the run as failed.")

    def __repr__(self) -> str:
        return f"RunReport({self.title}: {self.verdict})"

    @property
    def verdict(self) -> str:
        """The outcome of the run, in one sentence."""
        return verdict_sentence(self._outcome, self.findings)

    @property
    def _outcome(self) -> str:
        """The status; `unconfirmed` for a run that failed after its commit."""
        return "unconfirmed" if self.status == "failed" and self.output_version is not None else self.status

    @property
    def over(self) -> str:
        """The line above the headline."""
        return f"anon-spark · family {self.family} · run {self.run_id}"

    @property
    def promise(self) -> str:
        """The heading of the guarantee, which holds only when something was published."""
        return "What is guaranteed" if self.status in ("published", "already_published") else "What was asked for"

    @property
    def checked(self) -> str:
        return "Checks of the staged release"

    @property
    def about(self) -> str:
        return "The run"

    @property
    def title(self) -> str:
        """The headline: what the run makes, from what."""
        return f"{self.input_table} → {self.output_table}" if self.output_table else self.input_table

    def notices(self) -> list[Notice]:
        """The banners, the outcome first."""
        outcome = _OUTCOME[self._outcome]
        if of_level(self.findings, "look") and outcome.tone == "good":
            shown = [Notice("caution", "!", f"{outcome.headline}, but look at this", f"{self.verdict} {outcome.detail}")]
        else:
            detail = self.message or (outcome.detail if outcome.tone == "neutral" else f"{self.verdict} {outcome.detail}")
            shown = [Notice(outcome.tone, outcome.symbol, outcome.headline, detail)]
        return shown if self.for_release else [*shown, TEST_KEY]

    def particulars(self) -> list[tuple[str, str]]:
        """Rows that identify the run."""
        took = seconds((self.finished - self.started).total_seconds()) if self.finished else None
        rows: list[tuple[str, Any]] = [
            ("Run", self.run_id),
            ("Family", self.family),
            ("Input", versioned(self.input_table, self.input_version)),
            ("Output", versioned(self.output_table, self.output_version)),
            ("Configuration", self.config_hash),
            ("Started", self.started),
            ("Finished", self.finished),
            ("Took", took),
            *((f"Version of {name}", version) for name, version in self.versions.items()),
        ]
        return [(name, show(value)) for name, value in rows]

    def steps(self) -> list[Step]:
        """Every step with its time, and what is left of the whole, so that the lines add up."""
        whole = {name: spent for name, spent in self.timings.items() if name not in PARTS}
        steps = []
        for name, spent in whole.items():
            steps.append(Step(STEPS.get(name, wording(name)), spent))
            parts = [part for part, of in PARTS.items() if of == name and part in self.timings]
            steps += [Step(STEPS[part], self.timings[part], "part") for part in parts]
        if not steps or self.finished is None:
            return steps
        took = (self.finished - self.started).total_seconds()
        rest = took - sum(whole.values())
        if rest >= 0:
            steps.append(Step(REST, rest))
        return [*steps, Step("The whole run", max(took, sum(whole.values())), "total")]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the drawings, as JSON types; every key is always there."""
        fields = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__ if name != "sections"}
        return {"format": FORMAT, **fields, "verdict": self.verdict, "sections": sections_dict(self.sections)}


def versioned(table: str | None, version: int | None) -> str | None:
    """A table with its version, where it has one."""
    return f"{table} @ version {version}" if table is not None and version is not None else table
