"""The demonstration and the Spark part of the suite on several versions of Spark and Python: `make matrix`.

The demonstration runs every family from a sample table to a release that passed its audit. Each combination has an
environment of its own under .matrix, made the first time (network needed once). A Python that is not installed is
passed over and said so. Needs nothing installed itself. Takes minutes per combination.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anon_spark.machine.delta import RELEASE

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".matrix"
DEMO_ROWS = 1_000
PART = (  # every family from the table to the release and its audit, reading and writing, a fault for every check
    "tests/test_session.py",
    "tests/io/test_tables.py",
    "tests/runs/test_engine.py",
    "tests/runs/test_run.py",
    "tests/families/mst/test_family.py",
    "tests/families/set_valued/test_run.py",
    "tests/families/relational_transaction/test_run.py",
    "tests/families/tree/test_run.py",
    "tests/auditing/reading/test_spelling.py",
)


@dataclass(frozen=True)
class Outcome:
    """What one combination came to."""

    python: str
    spark: str
    result: str
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether something is wrong; a Python that is not there is not."""
        return not self.result.startswith(("passed", "not installed"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all combinations, one after the other, and show a table; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m jobs.matrix", description=__doc__)
    parser.add_argument("--sparks", default="4.0 4.1 4.2", help="lines of Spark")
    parser.add_argument("--pythons", default="python3.11 python3.12 python3.13", help="names or paths of interpreters")
    parser.add_argument("--part", nargs="*", default=list(PART), help="what to hand to pytest; nothing: the demonstration only")
    options = parser.parse_args(arguments)
    outcomes = []
    for python in options.pythons.split():
        for spark in options.sparks.split():
            outcomes.append(combination(python, spark, options.part))
            print(line(outcomes[-1]), flush=True)
    print("\nPython      Spark       result")
    for outcome in outcomes:
        print(line(outcome))
    return int(any(outcome.failed for outcome in outcomes))


def line(outcome: Outcome) -> str:
    """One row of the table."""
    return f"{outcome.python:<12}{outcome.spark:<12}{outcome.result}, {outcome.seconds:.0f} s"


def combination(python: str, spark: str, part: Sequence[str]) -> Outcome:
    """Make the environment where it is not there, run the tests in it; their output goes to a file beside it."""
    if shutil.which(python) is None:
        return Outcome(python, spark, "not installed")
    folder = HOME / f"{Path(python).name}-spark{spark}"
    started = time.monotonic()
    HOME.mkdir(exist_ok=True)
    log_file = HOME / f"{folder.name}.log"
    with log_file.open("w") as log:
        if not made(python, spark, folder, log.fileno()):
            return Outcome(python, spark, f"set-up failed, see {log.name}", time.monotonic() - started)
        own = folder / "bin" / "python"
        versions = "import platform, pyspark; print(platform.python_version(), pyspark.__version__)"
        asked = subprocess.run([own, "-c", versions], capture_output=True, text=True, check=True)
        exact_python, exact_spark = asked.stdout.split()
        with tempfile.TemporaryDirectory(dir=HOME) as scratch:
            demo = ["-m", "anon_spark.cli", "demo", "--dir", scratch, "--rows", str(DEMO_ROWS)]
            shown = subprocess.run([own, *demo], cwd=ROOT, env=environment(), stdout=log, stderr=log, check=False)
        tests = [str(own), "-m", "pytest", "-q", "-m", "not long", "-p", "no:cacheprovider", *part]
        done = subprocess.run(tests if part else ["true"], cwd=ROOT, env=environment(), stdout=log, stderr=log, check=False)
    text = log_file.read_text(errors="replace")
    counted = re.findall(r"^(\d+ .*) in [\d.]+s", text, re.MULTILINE)
    demonstrated = "demonstration" if shown.returncode == 0 else "demonstration FAILED"
    good = shown.returncode == done.returncode == 0
    result = f"{'passed' if good else 'FAILED'} ({demonstrated}, {counted[-1] if counted else 'no tests'})"
    return Outcome(exact_python, exact_spark, result, time.monotonic() - started)


def made(python: str, spark: str, folder: Path, log: int) -> bool:
    """Whether the environment is there: this package with what it needs, that Spark, Delta's jars for it."""
    own, ready = str(folder / "bin" / "python"), folder / ".ready"
    if ready.exists():
        return True
    engine = f"pyspark=={spark}.*,>=4.0.1"  # instead of the extra `local`: also what its pins do not allow yet
    steps = (
        [python, "-m", "venv", str(folder)],
        [own, "-m", "pip", "install", "--quiet", "--editable", f"{ROOT}[dev]", engine, f"delta-spark=={RELEASE}"],
        [own, "-m", "anon_spark.machine.setup"],
    )
    for step in steps:
        if subprocess.run(step, cwd=ROOT, env=environment(), stdout=log, stderr=log, check=False).returncode:
            return False
    ready.touch()
    return True


def environment() -> dict[str, str]:
    """This environment, with this copy of the package for Spark's workers, without another Spark."""
    ours = {name: text for name, text in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return ours | {"PYTHONPATH": str(ROOT)}


if __name__ == "__main__":
    sys.exit(main())
