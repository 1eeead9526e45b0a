"""Whole runs of the samples by rows, each in a new session: beside what a plan expects, and beside an earlier commit."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from anon_spark.errors import AnonSparkError
from anon_spark.families.registry import NAMES, family_of
from anon_spark.runs.demo import make_samples
from anon_spark.runs.duration import CORES, MEASURED, expected_seconds
from anon_spark.spark_session import make_session
from jobs.benchmarks.small.main import HOME, checked_out, kept
from jobs.markdown import table

SIZES: tuple[int, ...] = ()  # no growth on a cluster here
MEASURE = "jobs/benchmarks/times/measure.py"
SAMPLES = 30_000
LARGE = 1_000_000
MOST_OF_BEFORE = {"set_valued": 0.6, "relational_transaction": 0.5, "tree": 0.6}  # at LARGE rows
MOST_AUDIT = 0.5  # of the fit, at LARGE rows
BEYOND = 1.05  # an earlier commit is stopped when the share that is allowed is kept by so much
SESSION_START = 30  # seconds at most until a run begins
NEAR = 2.0  # what a plan expects is at most so many times too long or too short
STEPS = ("fit", "release", "audit", "risk", "publish")

Runs = dict[tuple[str, int], dict[str, Any]]


def report(_: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    """Seconds by family and rows, as Markdown."""
    sizes = {name: [LARGE] if options.large else sizes_of(name) for name in options.only or NAMES}
    with tempfile.TemporaryDirectory(dir=options.folder) as place, ExitStack() as stack:
        jobs = make_tables(Path(place).resolve(), sizes)
        trees = [HOME, *([stack.enter_context(checked_out(options.beside))] if options.beside else [])]
        ours, *theirs = measured(trees, jobs, sizes)
    return times_text(ours, theirs[0] if theirs else None)


def sizes_of(name: str) -> list[int]:
    """The rows with which a family is measured."""
    return sorted({*(rows for rows, _ in MEASURED[name]), LARGE})


def make_tables(folder: Path, sizes: Mapping[str, Sequence[int]]) -> Path:
    """The samples of every family in all sizes, and in the smallest; returns the folder of their job files."""
    spark = make_session("anon-spark samples")
    jobs = make_samples(spark, folder / "demo", SAMPLES)
    for name, rows in sizes.items():
        for size in {*rows, min(sizes_of(name))}:
            family_of(name).sample.make(spark, size).write.format("delta").save(str(jobs / f"{name}-{size}"))
    spark.stop()
    return jobs


def measured(trees: Sequence[Path], jobs: Path, sizes: Mapping[str, Sequence[int]]) -> list[Runs]:
    """Runs with the package of each tree, one after the other for every table; the first of a family, which compiles, is not
    counted. An earlier commit that needs much longer is stopped.
    """
    found: list[Runs] = [{} for _ in trees]
    for name, rows in sizes.items():
        for tree in trees:
            one_run(tree, jobs, name, min(sizes_of(name)))
        for size in rows:
            ours = one_run(trees[0], jobs, name, size)
            long_enough = ours["total"] * BEYOND / MOST_OF_BEFORE.get(name, 0.5)
            found[0][name, size] = ours
            for tree, runs in zip(trees[1:], found[1:], strict=True):
                runs[name, size] = one_run(tree, jobs, name, size, long_enough)
    return found


def one_run(tree: Path, jobs: Path, name: str, rows: int, long_enough: float | None = None) -> dict[str, Any]:
    """Seconds of a run in a process of its own, in all and by step; stopped after so many seconds, it has no steps."""
    output = jobs / "out"
    command = [sys.executable, str(HOME / MEASURE), str(jobs / f"{name}.yaml"), str(jobs / f"{name}-{rows}"), str(output)]
    try:
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": str(tree)}, cwd=tree,  # Spark's Python workers import from here first
            capture_output=True, text=True, check=False, timeout=None if long_enough is None else long_enough + SESSION_START,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"{name} {rows:,} stopped after {long_enough:.0f} seconds", flush=True)
        return {"total": long_enough, "stopped": True}
    finally:
        shutil.rmtree(output, ignore_errors=True)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            print(f"{name} {rows:,} {line}", flush=True)
            return dict(json.loads(line.removeprefix("RESULT ")))
    raise AnonSparkError(f"The run of {name} with {rows:,} rows ended with {done.returncode}:\n{done.stderr[-3000:]}")


# --- texts ---------------------------------------------------------------------------------------------------------------


def times_text(ours: Runs, theirs: Runs | None) -> str:
    """The runs, with verdicts that are computed."""
    head = ["family", "rows", "whole run", *STEPS, "audit / fit", "a plan expects"]
    head += [] if theirs is None else ["before", "of before"]
    rows = []
    for (name, size), found in ours.items():
        steps, total = found["steps"], found["total"]
        audited, expected = steps["audit"] / steps["fit"], expected_seconds(name, size, CORES)
        limit = f" (at most {MOST_AUDIT:g}, {kept(audited <= MOST_AUDIT)})" if size == LARGE and name in MOST_OF_BEFORE else ""
        near = kept(total / NEAR <= expected <= total * NEAR)
        row = [name, f"{size:,}", f"{total:.0f}", *(f"{steps.get(step, 0):.0f}" for step in STEPS), f"{audited:.2f}{limit}"]
        row.append(f"{expected:.0f} ({near})")
        if theirs is not None:
            before, stopped = theirs[name, size]["total"], theirs[name, size].get("stopped", False)
            row += [f"{'more than ' if stopped else ''}{before:.0f}"]
            row += [f"{'less than ' if stopped else ''}{total / before:.0%}{_limit(name, size, total / before)}"]
        rows.append(row)
    return "\n\n".join(
        [
            "### Whole runs by rows (samples, their jobs as `anon-spark demo` writes them; local Spark, 2 cores; seconds)",
            "Each run in a new session, kernels compiled before; single runs. A plan's expectation is kept where it is at most "
            f"{NEAR:g} times too long or too short. An earlier commit is stopped once the share that is "
            "allowed is clearly kept.",
            table(head, rows),
        ]
    )


def _limit(name: str, size: int, share: float) -> str:
    if size != LARGE or name not in MOST_OF_BEFORE:
        return ""
    return f" (at most {MOST_OF_BEFORE[name]:.0%}, {kept(share <= MOST_OF_BEFORE[name])})"
