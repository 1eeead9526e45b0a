"""A run: read → fit → stage → audit → publish → compare, and a run-log row and a report whatever the outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from uuid import uuid4

from anon_spark.auditing import RowAccount, Verdict
from anon_spark.engine import in_one_task
from anon_spark.errors import AnonSparkError, ConfigurationError, GuaranteeUnreachable, GuaranteeViolated, Stopped
from anon_spark.families.contract import Staged
from anon_spark.io.causes import known_cause
from anon_spark.io.description import describe
from anon_spark.io.publication import version_of
from anon_spark.io.run_log import RunRow, append_run, begin_run_log
from anon_spark.model.facts import Facts, without_labels
from anon_spark.model.findings import Finding, by_level, of_level
from anon_spark.model.progress import Progress
from anon_spark.model.series import COVERS, NOT_COVERED, SeriesFacts, series_metrics
from anon_spark.pending import together
from anon_spark.primitives.ordering import key_frame
from anon_spark.primitives.rounds import Workspace, sweep_work
from anon_spark.report import Check, RunReport, Section
from anon_spark.report.formats import plain
from anon_spark.report.series import series_section, series_words
from anon_spark.runs.dictionary import Counts, entries, label_counts, write
from anon_spark.runs.findings import (
    dependencies,
    drawn_before,
    failed_checks,
    of_input,
    of_waiting,
    recognised,
    require_within,
    run_findings,
    unique_published,
)
from anon_spark.runs.identity import Identity
from anon_spark.runs.preparation import Preparation, run_key
from anon_spark.runs.publishing import Step, at_work, nothing, published, settle
from anon_spark.runs.repair import repair
from anon_spark.runs.republication import Together, told_together
from anon_spark.runs.series.increment import Waiting, begun
from anon_spark.runs.series.settling import opened
from anon_spark.runs.software import versions

ENDING = 10  # attempts to remove a workspace after a failure, within a second


@dataclass
class Trace:
    """The facts of a run so far; a failed run reports just these."""

    step: Step = nothing
    run_id: str = field(default_factory=lambda: uuid4().hex)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    status: str = "failed"
    message: str | None = None
    content: str | None = None
    output_version: int | None = None
    verdicts: Sequence[Verdict] = ()
    account: RowAccount | None = None
    facts: Facts = field(default_factory=Facts)
    warnings: Sequence[str] = ()
    findings: Sequence[Finding] = ()
    sections: Sequence[Section] = ()
    in_words: Sequence[str] = ()
    timings: dict[str, float] = field(default_factory=dict)
    labels: Counts = field(default_factory=dict)  # rows of each published label
    series: SeriesFacts | None = None
    together: Together = field(default_factory=Together)  # with the release that is replaced

    @contextmanager
    def timed(self, step: str, told: bool = True) -> Iterator[None]:
        """Measure a step. told: whether it is one of those that progress shows."""
        if told:
            self.step(step)
        started = perf_counter()
        try:
            yield
        finally:
            self.timings[step] = self.timings.get(step, 0.0) + round(perf_counter() - started, 3)


def run(
    prepared: Preparation, progress: Progress | None = None, redraw: bool = False, step: Step = nothing
) -> RunReport:
    """Publish a verified release, or publish nothing and raise.

    redraw: allow a second random draw for the same rows. step: callback with the name of every step before it begins.
    A DataError (exit 3), a stop by a signal and anything unexpected (exit 1) leave one run-log row and a report of what
    failed; a ConfigurationError (exit 2) leaves nothing at all.
    """
    trace = Trace(step)
    key, for_release = run_key()
    identity = Identity(prepared, for_release)
    try:
        with trace.timed("identity"):
            appends = prepared.job.output.appends  # who was published is in a ledger, person by person
            if appends and redraw:
                raise ConfigurationError("--redraw: in a series everybody is drawn once. Leave it out.")
            current = None if appends else identity.already_published
            again = [] if current or appends else identity.second_draw(redraw)  # refused before anything is written
        with trace.timed("clean"):
            begin_run_log(prepared.spark, prepared.job.output.runs)
            messages = _clean(prepared)
        if current is not None:
            trace.findings = recognised(current.metadata)
            trace.verdicts = repair(prepared, current, identity, trace.started - timedelta(seconds=1))
            require_all(trace.verdicts)
            trace.status, trace.output_version = "already_published", current.version
        else:
            notes = [*prepared.input_notes(), *messages]
            trace.warnings, trace.findings = [*again, *notes], [*drawn_before(again), *of_input(notes)]
            _release(identity, trace, key, progress)
            trace.status = "published"
    except Waiting as waiting:
        trace.status, trace.message, trace.series = "waiting", str(waiting), waiting.facts
        trace.findings = [*of_waiting(waiting), *trace.findings]
        trace.in_words = series_words(waiting.facts)
    except ConfigurationError:
        raise
    except AnonSparkError as error:
        trace.message = str(error)
        _finish(prepared, trace, for_release)
        raise
    except (Stopped, KeyboardInterrupt):
        trace.output_version = _committed(prepared, trace.run_id)
        before = "Stopped before anything was published."
        trace.message = before if trace.output_version is None else _unconfirmed(trace, prepared)
        _finish(prepared, trace, for_release)
        raise
    except Exception as error:
        trace.output_version = _committed(prepared, trace.run_id)
        if trace.output_version is not None:
            trace.message = _unconfirmed(trace, prepared)
            _finish(prepared, trace, for_release)
            raise AnonSparkError(trace.message) from error
        cause = known_cause(error, prepared.job.work)
        trace.message = str(cause) if cause else f"Unexpected {type(error).__name__}; its text may hold values and is not kept."
        _finish(prepared, trace, for_release)
        if cause is not None:
            raise cause from error
        raise
    return _finish(prepared, trace, for_release)


def _committed(prepared: Preparation, run_id: str) -> int | None:
    """The version that this run committed; None where none is known."""
    with suppress(Exception):
        return version_of(prepared.spark, prepared.job.output.table, run_id)
    return None


def _unconfirmed(trace: Trace, prepared: Preparation) -> str:
    return (
        f"Version {trace.output_version} of {prepared.job.output.table} was committed, but the run ended before it was compared "
        "with what had been audited. Run the job again: that compares it, and takes it back if it differs."
    )


def _clean(prepared: Preparation) -> list[str]:
    """Remove what dead runs of this user left; returns messages on that, and on what may still be in use."""
    swept, others = sweep_work(prepared.spark, prepared.job.work)
    files = settle(prepared)
    messages = [f"{swept} working folders that stopped runs had left were removed."] if swept else []
    messages += [f"{files} files of a publication that was stopped were removed from the output."] if files else []
    messages += [f"work: {who} has a folder there; if it has ended: `anon-spark purge JOB --work --all`." for who in others]
    messages += [
        f"output.table: {who} says it is publishing there; if it has ended, `anon-spark purge JOB --work --all` says so."
        for who in at_work(prepared)
    ]
    return messages


def _release(identity: Identity, trace: Trace, key: str, progress: Progress | None) -> None:
    prepared = identity.prepared
    small = prepared.source.small
    with in_one_task(small), Workspace(prepared.spark, prepared.job.work, small) as workspace:
        try:
            _released(identity, trace, key, progress, workspace)
        except (Stopped, KeyboardInterrupt):
            prepared.spark.interruptAll()
            workspace.close_for_good()
            raise
        except AnonSparkError:
            raise
        except Exception:  # tasks of a job that failed may still write for a moment
            workspace.close_for_good(ENDING)
            raise


def _released(identity: Identity, trace: Trace, key: str, progress: Progress | None, workspace: Workspace) -> None:
    prepared = identity.prepared
    steps, source, contents = prepared.steps, prepared.source.frame, None
    increment = None
    with trace.timed("input", told=False):
        if prepared.job.output.appends:
            increment = begun(prepared, opened(prepared), workspace)
            source = increment.rows
        elif workspace.small:  # a small table is copied: every plan over a Delta table first lists its files
            source, contents = workspace.store(steps.needed(source), "input"), identity.contents_to_be
        else:
            trace.content = identity.content
    # 1. fit
    with trace.timed("fit"):
        try:
            recoding = steps.fit(source, workspace, key, progress)
        except GuaranteeUnreachable as error:
            if increment is None:
                raise
            raise increment.waits(str(error), by_family=True) from error
    trace.timings["search"] = recoding.statistics.seconds
    trace.facts, warnings = recoding.facts(), steps.warnings(recoding)
    trace.warnings = [*trace.warnings, *warnings]
    # 2. stage, in an order that tells nothing
    order_key = key_frame(prepared.spark, key)
    with trace.timed("release"):
        labelled, columns = steps.presented(recoding.staged(source, order_key), source, recoding)
        staged = workspace.store(labelled, "release")
    at = Staged(source, staged, recoding, order_key, workspace, contents, columns)
    release = at.release
    if increment is not None:
        increment.require_same_types(at.published)
    # 3. audit what was staged, with independent code; what is published must have the content that is audited here
    with trace.timed("audit"):
        audit = steps.verify(at)
        trace.verdicts, trace.account = audit.verdicts, audit.account
        trace.content = trace.content or " ".join(audit.read)
        if increment is not None:
            complete, trace.content = increment.checked()
            trace.verdicts = [*trace.verdicts, complete]
    require_all(trace.verdicts)
    with trace.timed("risk"):
        facts, depending, unique, trace.labels = together(
            steps.facts(at, audit),
            dependencies(steps, source, audit.account.source, at.small),
            unique_published(steps, *steps.whose(release, workspace)),
            label_counts(steps, release if increment is None else increment.with_earlier(release)),
        ).get()
        trace.facts, trace.warnings = facts, [*trace.warnings, *map(str, depending)]
        more = run_findings(steps, facts, audit.account, warnings, unique, depending, prepared.job.limits)
    if prepared.output.latest is not None and increment is None:  # an increment replaces nothing
        with trace.timed("republication"):
            trace.together = told_together(prepared, at, steps.metadata(recoding), audit.account.source)
    trace.findings = by_level([*trace.findings, *more, *trace.together.findings])
    require_within(trace.findings)
    with trace.timed("pictures", told=False):  # a report that cannot be made must not follow a publication
        trace.sections = [*steps.sections(facts), *trace.together.sections]
        trace.in_words = steps.in_words(facts, audit.account)
    # 4. publish in one commit, and compare what is there with what was audited
    with trace.timed("publish"):
        metadata = {
            "run_id": trace.run_id,
            "family": prepared.job.family,
            "config_hash": prepared.config_hash,
            "input_table": prepared.source.table,
            "input_id": prepared.source.table_id,
            "input_version": prepared.source.version,
            "for_release": identity.for_release,
            "look": len(of_level(trace.findings, "look")),
            **steps.metadata(recoding),
        }
        appending = None
        if increment is not None:
            trace.step("ledger")
            entered = increment.entered(steps.behind(at), audit.account.published, trace.run_id, audit.content)
            trace.verdicts, trace.series = [*trace.verdicts, entered.verdict], entered.facts
            require_all(trace.verdicts)
            metadata, appending = {**metadata, **entered.metadata}, increment.appending
            trace.sections = [series_section(entered.facts, increment.passed(entered.facts)), *trace.sections]
            trace.in_words = [*trace.in_words, *series_words(entered.facts)]
        trace.output_version = published(prepared, at.published, audit.content, metadata, trace.step, appending)
        if increment is not None:
            trace.step("confirm")
            increment.confirm(trace.run_id)


def require_all(verdicts: Sequence[Verdict]) -> None:
    """The gate: one failed check, and nothing is published."""
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if failed:
        raise GuaranteeViolated(
            "The audit refused the release, nothing was published. " + " ".join(str(verdict) for verdict in failed),
            checks=[verdict.name for verdict in failed],
        )


def _finish(prepared: Preparation, trace: Trace, for_release: bool) -> RunReport:
    """Report and run-log row; neither is lost because the other cannot be written.

    A rerun that was recognised leaves the report of the release as it is.
    """
    report = report_of(prepared, trace, for_release)
    page = prepared.job.output.report
    lost: list[str] = []
    trace.step("report")
    recognised_only = trace.status == "already_published" and not trace.verdicts
    if page is not None and not (recognised_only and Path(page).exists()):
        try:
            report.write(page)
        except OSError:
            lost.append(f"the report {page}")
    if trace.status == "published":
        try:
            found = entries(prepared.steps, prepared.steps.published, trace.labels)
            write(prepared.steps, prepared.source.frame, found, {"run_id": trace.run_id})
        except Exception:  # because of its place: the release is published all the same
            lost.append("the data dictionary")
    if trace.output_version is not None and trace.status != "failed":  # a rerun that was recognised writes what is missing
        text = prepared.steps.description + ("" if for_release else " Made with a test key: not for release.")
        try:
            describe(prepared.spark, prepared.job.output.table, trace.output_version, text)
        except Exception:  # because of rights, or of another commit at the same moment
            lost.append("the description of the table")
    trace.step("log")
    try:
        append_run(prepared.spark, prepared.job.output.runs, _row(prepared, report, trace.content))
    except Exception:  # because of the place of the log, or of what made the run fail
        lost.append(f"the run log {prepared.job.output.runs}")
    if lost and trace.status != "failed":
        outcome = "published" if trace.status == "published" else "already published"
        raise AnonSparkError(
            f"{outcome}: {prepared.job.output.table} version {trace.output_version}, but {' and '.join(lost)} could not be "
            "written. Make room or give rights, and run the job again: that writes what is missing and publishes nothing."
        )
    return report


def report_of(prepared: Preparation, trace: Trace, for_release: bool) -> RunReport:
    """The report of what is known; a failed run has fewer sections."""
    guarantee = prepared.steps.guarantee
    return RunReport(
        run_id=trace.run_id,
        family=prepared.job.family,
        status=trace.status,  # type: ignore[arg-type]
        started=trace.started,
        finished=datetime.now(UTC),
        config_hash=prepared.config_hash,
        input_table=prepared.source.table,
        input_version=prepared.source.version,
        output_table=prepared.job.output.table,
        output_version=trace.output_version,
        versions=versions(),
        for_release=for_release,
        guarantee=str(guarantee),
        covers=[*guarantee.covers, *([COVERS] if prepared.job.output.appends else [])],
        not_covered=[*guarantee.does_not_cover, *(NOT_COVERED if prepared.job.output.appends else [])],
        checks=[Check(v.name, v.passed, v.violations, v.detail) for v in trace.verdicts],
        accounting=asdict(trace.account) if trace.account else {},
        warnings=list(trace.warnings),
        findings=[*failed_checks(trace.verdicts), *trace.findings],
        timings=trace.timings,
        sections=list(trace.sections) if trace.status == "published" else [],
        facts=trace.facts if trace.status == "published" else without_labels(trace.facts),
        message=trace.message,
        series=trace.series,
        in_words=list(trace.in_words) if trace.status in ("published", "waiting") else [],
        republication=trace.together.facts(),
    )


def _row(prepared: Preparation, report: RunReport, content: str | None) -> RunRow:
    assert report.finished is not None
    return RunRow(
        run_id=report.run_id,
        family=report.family,
        status=report.status,
        message=report.message,
        started=report.started,
        finished=report.finished,
        config_hash=report.config_hash,
        input_table=report.input_table,
        input_version=report.input_version,
        output_table=prepared.job.output.table,
        output_version=report.output_version,
        guarantee=report.guarantee,
        for_release=report.for_release,
        software=report.versions["anon-spark"],
        accounting=report.accounting,
        metrics={
            **plain(report.facts), **series_metrics(report.series), **_replaced(report), "timings": dict(report.timings),
        },
        content=content,
        findings=[asdict(finding) for finding in report.findings],
    )


def _replaced(report: RunReport) -> dict[str, object]:
    """What was measured of this release and the one it replaces."""
    return {"republication": plain(report.republication)} if report.republication else {}
