"""Whole runs of small tables: Spark jobs, seconds beside what cannot be avoided, and beside an earlier commit.

Warm: several runs in one session, by measure.py. Cold: `anon-spark run` and `anon-spark plan` as processes of their own.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import yaml

from anon_spark.errors import AnonSparkError
from anon_spark.families.registry import NAMES
from anon_spark.runs.demo import make_samples
from anon_spark.spark_session import make_session
from jobs.markdown import table

SIZES: tuple[int, ...] = ()  # no growth here
ROWS = 30_000
TIMES = 3
HOME = Path(__file__).resolve().parents[3]
MEASURE = "jobs/benchmarks/small/measure.py"
ADULT = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation", "salary-class")
MOST_JOBS = {"lattice": 20, "mst": 25, "relational_transaction": 40, "set_valued": 40, "tree": 40}
MOST_TIMES = {"lattice": 8.0, "mst": 12.0}  # of what cannot be avoided
MOST_WARM, MOST_COLD, MOST_PLAN = 0.25, 0.5, 2.0
SESSION = "from anon_spark.spark_session import make_session; make_session('empty').range(1).count()"
COMMAND = "import sys; from anon_spark.cli import main; sys.exit(main())"
SUBREAPER = 36  # of prctl: what a child leaves running becomes a child of this process, so that its time is counted


class Spent(NamedTuple):
    """Seconds on the clock and of the processor."""

    clock: float
    processor: float


def report(_: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    """Jobs, warm runs beside the unavoidable, and everything beside an earlier commit, as Markdown."""
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        jobs = written_jobs(Path(place).resolve(), options.data, options.only or NAMES)
        ours, ours_cold = warm(HOME, jobs), cold(HOME, jobs)
        theirs: dict[str, Any] | None = None
        theirs_cold: dict[str, list[Spent]] | None = None
        if options.beside:
            with checked_out(options.beside) as tree:
                theirs, theirs_cold = warm(tree, jobs), cold(tree, jobs)
    return "\n\n".join([warm_text(ours), beside_text(ours, theirs), cold_text(ours_cold, theirs_cold)])


def written_jobs(folder: Path, data: Path | None, families: Sequence[str]) -> Path:
    """A job for each of the families on its sample, and one for Adult where it is there; returns their folder."""
    spark = make_session("anon-spark samples")
    jobs = make_samples(spark, folder / "demo", ROWS)
    spark.stop()
    for name in set(NAMES).difference(families):
        (jobs / f"{name}.yaml").unlink()
    if data is not None:
        (jobs / "adult.yaml").write_text(yaml.safe_dump(adult_job(data.resolve())))
    (jobs / "out").mkdir()
    return jobs


def adult_job(data: Path) -> dict[str, Any]:
    """Adult as ARX takes it: nine attributes with its hierarchies, k = 5, 1 % of the rows."""
    levels = data / "adult" / "hierarchies" / "arx"
    return {
        "anon_spark": 1,
        "family": "lattice",
        "input": {
            "table": str(data / "adult" / "adult_arx.csv.gz"),
            "format": "csv",
            "options": {"header": "true", "sep": ";"},
        },
        "columns": {"quasi_identifiers": {name: {"levels": str(levels / f"adult_hierarchy_{name}.csv")} for name in ADULT}},
        "privacy": {"k": 5, "suppression": 0.01},
        "output": {"table": "./out/release", "runs": "./out/runs"},
    }


def warm(tree: Path, jobs: Path) -> dict[str, Any]:
    """What `measure.py` finds with the package of a tree."""
    done = subprocess.run(
        [sys.executable, str(HOME / MEASURE), str(jobs), "--times", str(TIMES)],
        env={**os.environ, "PYTHONPATH": str(tree)}, cwd=tree,  # Spark's Python workers import from here first
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return dict(json.loads(line.removeprefix("RESULT ")))
    raise AnonSparkError(f"The runs of {tree} ended with {done.returncode}:\n{done.stderr[-3000:]}")


def cold(tree: Path, jobs: Path) -> dict[str, list[Spent]]:
    """An empty session, a plan and a run, each several times in a process of its own."""
    case = jobs / ("adult.yaml" if (jobs / "adult.yaml").exists() else "lattice.yaml")
    found: dict[str, list[Spent]] = {"empty session": [], "plan": [], "run": []}
    for number in range(TIMES):
        output = jobs / "out" / f"cold-{tree.name}-{number}"
        places = ["--set", f"output.table={output}", "--set", f"output.runs={output}-runs"]
        found["empty session"].append(spent(tree, ["-c", SESSION]))
        for command in ("plan", "run"):
            found[command].append(spent(tree, ["-c", COMMAND, command, str(case), *places]))
    return found


def spent(tree: Path, arguments: Sequence[str]) -> Spent:
    """Seconds of a Python process and of all that it started."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    others = children()
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], env={**os.environ, "PYTHONPATH": str(tree)}, cwd=tree,  # -c imports from here first
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    clock = perf_counter() - started
    if done.returncode:
        raise AnonSparkError(f"A process of {tree} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    while left := children() - others:  # what it left running, until it has ended
        os.waitpid(left.pop(), 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def children() -> set[int]:
    """The processes that this one started, and those that they left to it."""
    return {int(number) for task in Path("/proc/self/task").iterdir() for number in (task / "children").read_text().split()}


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The files of an earlier commit, in a folder of their own."""
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place).resolve() / "tree"
        git = ["git", "-C", str(HOME), "worktree"]
        subprocess.run([*git, "add", "--detach", str(tree), commit], check=True, capture_output=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


# --- texts ---------------------------------------------------------------------------------------------------------------


def middle(runs: Sequence[Mapping[str, float]], what: str) -> float:
    return median(one[what] for one in runs)


def kept(holds: bool) -> str:
    return "kept" if holds else "**not kept**"


def warm_text(ours: Mapping[str, Any]) -> str:
    """Jobs of a run, and its time beside the unavoidable, with verdicts that are computed."""
    rows = []
    for name, found in ours.items():
        jobs, clock = middle(found["runs"], "jobs"), middle(found["runs"], "clock")
        most, times = MOST_JOBS.get(name), MOST_TIMES.get(name)
        plain = middle(found["unavoidable"], "clock") if found["unavoidable"] else None
        limit = "" if most is None else f" (at most {most}, {kept(jobs <= most)})"
        ratio = "–" if plain is None else f"{clock / plain:.1f}×"
        ratio += "" if plain is None or times is None else f" (at most {times:g}×, {kept(clock / plain <= times)})"
        cells = [f"{clock:.1f}", f"{middle(found['runs'], 'processor'):.1f}", "–" if plain is None else f"{plain:.1f}", ratio]
        rows.append([name, f"{jobs:.0f}{limit}", *cells])
    return "\n\n".join(
        [
            f"### Small tables in a warm session (samples of {ROWS:,} rows, local Spark; medians of {TIMES} runs; seconds)",
            "Unavoidable: one groupBy-count of the quasi-identifiers, and one plain read and write of the table.",
            table(["job", "Spark jobs", "run", "of the processor", "unavoidable", "run / unavoidable"], rows),
        ]
    )


def beside_text(ours: Mapping[str, Any], theirs: Mapping[str, Any] | None) -> str:
    """The same runs beside those of an earlier commit, in seconds of the processor."""
    if theirs is None:
        return ""
    rows = []
    for name in ours:
        mine, other = (middle(found[name]["runs"], "processor") for found in (ours, theirs))
        limit = f" (at most {MOST_WARM:.0%}, {kept(mine <= MOST_WARM * other)})" if name == "adult" else ""
        jobs = (f"{middle(found[name]['runs'], 'jobs'):.0f}" for found in (theirs, ours))
        rows.append([name, *jobs, f"{other:.1f}", f"{mine:.1f}", f"{mine / other:.0%}{limit}"])
    head = ["job", "Spark jobs before", "now", "seconds of the processor before", "now", "of before"]
    return "### Beside the commit before (warm, medians)\n\n" + table(head, rows)


def cold_text(ours: Mapping[str, Sequence[Spent]], theirs: Mapping[str, Sequence[Spent]] | None) -> str:
    """Commands as processes of their own, beside an empty session and beside an earlier commit."""
    rows = []
    empty = median(one.clock for one in ours["empty session"])
    for name, runs in ours.items():
        clock, processor = median(one.clock for one in runs), median(one.processor for one in runs)
        times = f"{clock / empty:.1f}×"
        if name == "plan":
            times += f" (at most {MOST_PLAN:g}×, {kept(clock <= MOST_PLAN * empty)})"
        row = [name, f"{clock:.1f}", f"{processor:.1f}", times]
        if theirs is not None:
            before = median(one.processor for one in theirs[name])
            limit = f" (at most {MOST_COLD:.0%}, {kept(processor <= MOST_COLD * before)})" if name == "run" else ""
            row += [f"{median(one.clock for one in theirs[name]):.1f}", f"{before:.1f}", f"{processor / before:.0%}{limit}"]
        rows.append(row)
    head = ["command", "seconds", "of the processor", "of an empty session"]
    head += [] if theirs is None else ["seconds before", "of the processor before", "processor: of before"]
    return "### Cold commands (each a process of its own, medians)\n\n" + table(head, rows)
