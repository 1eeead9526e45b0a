"""The command line: `anon-spark init | plan | run | audit | compare | risk | hierarchy | purge | demo`, also for spark-submit.

Exit codes: 0 published, verified or recognised as already published; 2 wrong configuration, nothing written; 3 the data
do not allow it, nothing published; 1 unexpected.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anon_spark.errors import AnonSparkError, ConfigurationError, Stopped, UnseenValues
from anon_spark.machine.progress import AUDIT, COMPARE, INIT, PLAN, RISK, RUN, Steps
from anon_spark.machine.signals import stoppable

if TYPE_CHECKING:
    from anon_spark.config import JobSpec


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; every error is one message without a stack trace, unless --debug asks for it."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        with stoppable():
            return int(options.command(options) or 0)
    except AnonSparkError as error:
        if options.debug:
            raise
        print(f"anon-spark: {error}", file=sys.stderr)
        if isinstance(error, UnseenValues) and getattr(options, "show_values", None):
            print(f"anon-spark: {_values_written(error, options.show_values)}", file=sys.stderr)
        return error.exit_code
    except (Stopped, KeyboardInterrupt):
        print("anon-spark: stopped. A release is published as a whole or not at all.", file=sys.stderr)
        return 1
    except Exception as error:
        if options.debug:
            raise
        if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] in ("pyspark", "delta"):
            print("anon-spark: no Spark is installed here. Install one: pip install 'anon-spark[local]'", file=sys.stderr)
            return 2
        from anon_spark.io.causes import known_cause

        cause = known_cause(error)
        if cause is not None:
            print(f"anon-spark: {cause}", file=sys.stderr)
            return cause.exit_code
        condition = getattr(error, "getCondition", lambda: None)()
        error_kind = " ".join(filter(None, [type(error).__name__, condition]))
        print(  # the text of an unexpected error may hold values of records
            f"anon-spark: unexpected {error_kind}. Run again with --debug to see where.",
            file=sys.stderr,
        )
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="anon-spark", description="Verified anonymization of Delta tables on Spark.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the versions of anon-spark, Python and Spark")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, function: object, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.add_argument("--debug", action="store_true", help="show the stack trace of an error (may hold values)")
        added.set_defaults(command=function)
        return added

    init = command("init", _init, "Look at a table and write a job for it: roles, hierarchies, a page with the profile.")
    init.add_argument("table", help="the table: a path, or a name of the catalog")
    init.add_argument("--into", metavar="FOLDER", help="where job.yaml, hierarchies/ and profile.html go (default: <table>_job)")
    init.add_argument("--format", choices=("delta", "parquet", "csv", "json"), help="of the table (default: by its files)")
    init.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="of Spark's reader, as in header=true")
    families = ("lattice", "mst", "relational_transaction", "set_valued", "tree")
    init.add_argument("--family", choices=families, help="the family (default: by the shape of the table)")
    init.add_argument("--k", type=int, help="least number of rows or persons in a class (default: 10; with items 5)")
    init.add_argument("--quasi", metavar="COLUMNS", help="exactly these are quasi-identifiers, as in age,sex,zip")
    for role, text in (("sensitive", "published unchanged"), ("keep", "published unchanged"), ("identifiers", "never published")):
        init.add_argument(f"--{role}", default="", metavar="COLUMNS", help=f"columns that are {text}")
    init.add_argument("--person", metavar="COLUMN", help="a column that tells persons apart")
    init.add_argument("--quiet", action="store_true", help="no progress")
    for name, function, text in (
        ("run", _run, "Anonymize, audit and publish the table of a job file."),
        ("plan", _plan, "Check a job file and count what it would meet; write nothing."),
        ("audit", _audit, "Verify the current release of a job file."),
    ):
        added = command(name, function, text)
        added.add_argument("job", help="the job file")
        added.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override one key of it")
        added.add_argument("--quiet", action="store_true", help="no progress")
        if name != "audit":
            shown = "write values that no hierarchy knows to this file, which only you can read"
            added.add_argument("--show-values", metavar="FILE", help=shown)
        if name == "run":
            again = "draw again for rows that were drawn before; the two releases can be put together"
            added.add_argument("--redraw", action="store_true", help=again)
    purge = command("purge", _purge, "Remove what stopped runs of a job left, or what time travel shows of earlier releases.")
    purge.add_argument("job", help="the job file")
    purge.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override one key of it")
    purge.add_argument("--work", action="store_true", help="the private folders and uncommitted files of runs that ended")
    purge.add_argument("--all", action="store_true", help="with --work: also of runs on other machines, perhaps still at work")
    purge.add_argument("--history", action="store_true", help="what time travel shows of earlier releases; starts Spark")
    purge.add_argument("--yes", action="store_true", help="with --history: do not ask")
    compare = command("compare", _compare, "Measure releases of one table side by side, each verified first.")
    compare.add_argument("job", help="the job file of a current release")
    compare.add_argument("other", nargs="+", help="the job files of the other releases")
    compare.add_argument("--report", metavar="PAGE", help="write the comparison as .html, with .json and .md beside it")
    risk = command("risk", _risk, "Measure how well people in a table can be told apart; only reads.")
    risk.add_argument("table", help="the table: a path, or a name of the catalog")
    risk.add_argument("release", nargs="?", help="a release of it, measured beside it on the same columns")
    risk.add_argument("--quasi", required=True, metavar="COLUMNS", help="columns that somebody may know, as in age,sex,zip")
    risk.add_argument("--sensitive", default="", metavar="COLUMNS", help="columns that nobody should learn of a person")
    risk.add_argument("--person", metavar="COLUMN", help="a column that tells persons apart: classes count persons")
    sizes = "the fraction that was drawn, as in 0.1, the number of people, or a table of them"
    risk.add_argument("--population", metavar="SIZE", help=sizes)
    risk.add_argument("--format", choices=("delta", "parquet", "csv", "json"), help="of the table (default: by its files)")
    risk.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="of Spark's reader, as in header=true")
    risk.add_argument("--output", metavar="PAGE", help="write the measurement as .html, with .json and .md beside it")
    demo = command("demo", _demo, "Make sample tables, run every family on them, show the result.")
    demo.add_argument("--dir", default="demo", help="where to put tables and report (default: ./demo)")
    demo.add_argument("--rows", type=int, default=30_000, help="rows of the sample (default: 30,000)")
    hierarchy = command("hierarchy", _hierarchy, "Build, check and show a hierarchy.")
    hierarchy.add_argument(
        "source",
        help="a level table (.csv, .txt), a saved hierarchy (.json), a job file (.yaml), or "
        "what a job file would say, such as '{intervals: {from: 0, to: 99, widths: [5, 10]}}'",
    )
    hierarchy.add_argument("--column", help="of a job file: only this column or node type")
    hierarchy.add_argument("--sep", help="separator of a text file")
    hierarchy.add_argument("--edges", action="store_true", help="the file holds child,parent pairs")
    hierarchy.add_argument("--header", action="store_true", help="the first line of the file holds names")
    hierarchy.add_argument("--values", help="a text file of values, one per line, to complete a mask or date rule")
    ways = ("prefix", "order", "frequency")
    hierarchy.add_argument("--by", choices=ways, help="SOURCE has values, one per line: group them so")
    hierarchy.add_argument("--steps", metavar="NUMBERS", help="of --by: letters, group sizes or rows per level, as in 3,1")
    hierarchy.add_argument("--save", help="save as .json, or as a level table .csv")
    hierarchy.add_argument("--lines", type=int, default=60, help="how much of the tree to show")
    return parser


class _Version(argparse.Action):
    """Show versions and end; Spark is not started."""

    def __call__(self, *_: object) -> None:
        from anon_spark.runs.software import versions

        print(", ".join(f"{name} {version}" for name, version in versions().items()))
        raise SystemExit(0)


def _values_written(error: UnseenValues, place: str) -> str:
    """Write the unknown values as column;value;rows, for the owner alone; returns a message."""
    try:
        with open(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8", newline="") as file:
            os.fchmod(file.fileno(), 0o600)  # the file may have been there, open to others
            lines = csv.writer(file, delimiter=";", lineterminator="\n")
            lines.writerows((name, value, rows) for name, values in error.values.items() for value, rows in values)
    except OSError as fault:
        return f"--show-values: {place} cannot be written ({fault.strerror})."
    return f"the unknown values are in {place}: column;value;rows. Keep the file private."


def _init(options: argparse.Namespace) -> int:
    from anon_spark.runs.init import asked, init, lines

    request = asked(options)
    with Steps(INIT, options.quiet) as steps:
        from anon_spark.spark_session import make_session

        spark = make_session("anon-spark init", brief=request.reads_little)
        steps.begin("look")
        written = init(request, spark, steps.tell)
    for line in lines(written):
        print(line)
    return 0


def _run(options: argparse.Namespace) -> int:
    job = _loaded(options)
    with Steps(RUN, options.quiet) as steps:
        from anon_spark.io.nesting import reads_little
        from anon_spark.runs.preparation import prepare
        from anon_spark.runs.run import run
        from anon_spark.spark_session import make_session

        spark = make_session("anon-spark run", brief=reads_little(job.input))
        steps.begin("prepare")
        report = run(prepare(job, spark), steps.tell, options.redraw, steps.begin)
    for check in report.checks:
        print(f"  {'passed' if check.passed else 'FAILED'}  {check.name}: {check.detail}")
    for finding in report.findings:
        print(f"  {finding.level:6}  {finding.text}")
    print(report.verdict)
    where = report.message if report.status == "waiting" else f"{report.output_table} version {report.output_version}"
    print(f"{report.status.replace('_', ' ')}: {where}")
    if not report.for_release:
        print("test key: not for release")
    if job.output.report is not None:
        print(f"report: {job.output.report}")
    return 0


def _plan(options: argparse.Namespace) -> int:
    job = _loaded(options)
    with Steps(PLAN, options.quiet) as steps:
        from anon_spark.io.nesting import reads_little
        from anon_spark.runs.plan import plan
        from anon_spark.runs.preparation import prepare
        from anon_spark.spark_session import make_session

        spark = make_session("anon-spark plan", brief=reads_little(job.input))
        steps.begin("prepare")
        prepared = prepare(job, spark)
        steps.begin("count")
        planned = plan(prepared)
    print("\n".join(planned.lines()))
    return 3 if any(finding.level == "stop" for finding in planned.findings) else 0


def _audit(options: argparse.Namespace) -> int:
    job = _loaded(options)
    with Steps(AUDIT, options.quiet) as steps:
        from anon_spark.io.nesting import reads_little
        from anon_spark.runs.audit import audit
        from anon_spark.runs.run import require_all
        from anon_spark.spark_session import make_session

        spark = make_session("anon-spark audit", brief=reads_little(job.input))
        steps.begin("audit")
        verdicts = audit(job, spark)
    for verdict in verdicts:
        print(f"  {verdict}")
    require_all(verdicts)
    print(f"verified: {job.output.table}")
    return 0


def _loaded(options: argparse.Namespace) -> JobSpec:
    """The job, and its hierarchies as far as files hold them: a fault is found before Spark starts."""
    from anon_spark.config.hierarchy_files import check_files
    from anon_spark.families.registry import load_job

    job = load_job(options.job, options.set)
    check_files(job)
    return job


def _purge(options: argparse.Namespace) -> int:
    from anon_spark.families.registry import load_job
    from anon_spark.runs.purge import purge

    if not (options.work or options.history) or (options.all and not options.work):
        raise ConfigurationError("purge: say what to remove: --work (perhaps with --all), --history, or both.")
    if options.history and not options.yes and not sys.stdin.isatty():
        raise ConfigurationError("purge: --history asks before it removes anything, and there is no terminal. Add --yes.")
    job = load_job(options.job, options.set)
    if options.work:
        for line in purge(job, everything=options.all):
            print(line)
    return _purge_history(job, options.yes) if options.history else 0


def _purge_history(job: JobSpec, sure: bool) -> int:
    """Ask, then vacuum; 1 where the answer is no."""
    from anon_spark.runs.history import Past
    from anon_spark.spark_session import make_session

    # VACUUM lists the folder in 10,000 tasks otherwise
    spark = make_session("anon-spark purge", {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "16"}, brief=True)
    past = Past.of(job, spark)
    if not past.versions:
        print(f"{past.table} has no earlier release")
        return 0
    if not sure and input(f"{past.question} Go on? [y/N] ").strip().lower() not in ("y", "yes"):
        print("nothing was removed")
        return 1
    for line in past.remove(spark):
        print(line)
    return 0


def _compare(options: argparse.Namespace) -> int:
    with Steps(COMPARE) as steps:
        from anon_spark.report.formats import show
        from anon_spark.runs.compare import compare
        from anon_spark.spark_session import make_session

        spark = make_session("anon-spark compare")
        steps.begin("compare")
        comparison = compare([options.job, *options.other], spark, options.report)
    print(comparison.table.T.map(show).to_string())
    if options.report is not None:
        print(f"report: {options.report}")
    return 0


def _risk(options: argparse.Namespace) -> int:
    from anon_spark.runs.risk import asked, lines, measured

    request = asked(options)
    with Steps(RISK) as steps:
        from anon_spark.spark_session import make_session

        spark = make_session("anon-spark risk", brief=request.reads_little)
        steps.begin("measure")
        page = measured(request, spark)
    for line in lines(page):
        print(line)
    if options.output is not None:
        print(f"report: {page.write(options.output)}")
    return 0


def _demo(options: argparse.Namespace) -> int:
    from anon_spark.families.registry import NAMES
    from anon_spark.runs.demo import demonstrate, make_samples
    from anon_spark.spark_session import make_session

    folder, spark = Path(options.dir), make_session("anon-spark demo")
    print(f"Making a sample of {options.rows:,} rows in {folder}/ …")
    jobs = make_samples(spark, folder, options.rows)
    for family in NAMES:
        print(f"\n{family}: anonymizing it …", flush=True)
        with Steps({key: name for key, name in RUN.items() if key != "spark"}) as steps:
            text = demonstrate(spark, jobs, family, steps)
        print(text)
    return 0


def _hierarchy(options: argparse.Namespace) -> int:
    from anon_spark.runs.hierarchy import show

    for line in show(options):
        print(line)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
