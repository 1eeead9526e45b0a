"""The wheel works outside the checkout: everything that is no Python file is in it, and the command line starts."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    "anon_spark/py.typed", "anon_spark/report/report.html.j2", "anon_spark/report/report.css",
    "anon_spark/machine/quiet.properties", "anon_spark/conf/lattice.yaml", "anon_spark/conf/hierarchies/race.csv",
)  # fmt: skip
REPORT = """
import datetime, anon_spark.report, anon_spark.cli, anon_spark.runs.software
report = anon_spark.report.RunReport(
    run_id="r", family="lattice", status="planned", started=datetime.datetime.now(), finished=None, config_hash="c",
    input_table="t", input_version=None, output_table=None, output_version=None, versions=anon_spark.runs.software.versions(),
    for_release=True, guarantee="5-anonymity",
)
assert "<html" in report.to_html() and report.versions["anon-spark"]
print(anon_spark.__file__, anon_spark.cli.__file__, anon_spark.runs.software.__file__, sep="\\n")
"""

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, built as a wheel and installed into a folder of its own, dependencies aside."""
    if find_spec("hatchling") is None or find_spec("pip") is None:
        pytest.skip("needs pip and hatchling in the environment to build the wheel without network")
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    run(folder, *pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder / "wheels"), str(ROOT))
    (wheel,) = (folder / "wheels").glob("anon_spark-*.whl")
    run(folder, *pip, "install", "--no-deps", "--no-index", "--target", str(folder / "site"), str(wheel))
    return folder / "site"


def run(folder: Path, *command: str, **environment: str) -> str:
    """The output of a command that must succeed, started in `folder`."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=ours | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_is_in_the_wheel(installed: Path, tmp_path: Path) -> None:
    assert [name for name in FILES if not (installed / name).is_file()] == []
    assert not any((installed / name).exists() for name in ("tests", "jobs", "pipelines"))  # names of other repositories

    homes = run(tmp_path, sys.executable, "-c", REPORT, PYTHONPATH=str(installed)).split()

    assert [home for home in homes if not home.startswith(str(installed))] == []


def test_command_line_starts(installed: Path, tmp_path: Path) -> None:
    hierarchy = "{intervals: {from: 0, to: 20, widths: [5, 10]}}"

    by_module = run(tmp_path, sys.executable, "-m", "anon_spark.cli", "hierarchy", hierarchy, PYTHONPATH=str(installed))
    by_script = run(tmp_path, str(installed / "bin" / "anon-spark"), "hierarchy", hierarchy, PYTHONPATH=str(installed))

    assert by_module.startswith("hierarchy: 21 values, 3 levels above them, labels per level: 21, 5, 3, 1\n")
    assert by_script == by_module
