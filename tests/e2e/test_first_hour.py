"""The first hour as docs/guide.md tells it: a file nobody prepared, init, plan, run; no file is edited by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest

from tests.suggestion.raw_tables import PEOPLE, people, write_csv

pytestmark = [pytest.mark.long, pytest.mark.e2e]
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide.md"


def commands() -> list[list[str]]:
    """The commands of the guide's first chapter, as they stand there."""
    chapter = GUIDE.read_text(encoding="utf-8").split("## The first hour")[1].split("\n## ")[0]
    block = chapter.split("```sh\n")[1].split("```")[0]
    return [line.split("#")[0].split() for line in block.splitlines() if line.startswith("anon-spark ")]


def test_from_a_raw_file_to_a_verified_release(tmp_path: Path) -> None:
    write_csv(tmp_path / "people.csv", people(20_000))
    assert len(PEOPLE) == 14 and [command[1] for command in commands()] == ["init", "plan", "run"]
    environment = {**os.environ, "PYTHONPATH": str(GUIDE.parents[1])}
    said = ""
    for command in commands():
        started = perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "anon_spark.cli", *command[1:]], cwd=tmp_path, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        sys.stderr.write(f"{command[1]}: {perf_counter() - started:.0f} s\n")
        assert done.returncode == 0, done.stderr
        assert "WARNING" not in done.stderr and "Traceback" not in done.stderr
        said = done.stdout
    assert "Published: every check passed" in said
    assert (tmp_path / "people_job" / "report.html").exists() and not (tmp_path / "spark-warehouse").exists()
