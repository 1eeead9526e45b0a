"""The Airflow pipeline: exit codes become states of tasks. With stand-ins for Airflow, and in a real one where there is one.

Airflow wants an environment of its own. ANON_SPARK_AIRFLOW names the Python of it, see docs/pipelines.md.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DAG = ROOT / "pipelines" / "airflow" / "nightly_release.py"
TOLD = "Cannot execute: spark-submit --master local /opt/jobs/run.py. Error code is: {}."
STUB = """#!/bin/sh
echo "$@" >> "$SUBMITTED"
case "$*" in *plan.py*) exit "$PLAN_ENDS_WITH" ;; *) exit "$RUN_ENDS_WITH" ;; esac
"""


class Error(Exception):
    """Stands for AirflowException."""


class Final(Error):
    """Stands for AirflowFailException."""


class Operator:
    """Stands for SparkSubmitOperator: `told` is the error of its hook."""

    told: str | None = None

    def __init__(self, **options: Any) -> None:
        self.options = options

    def execute(self, context: Any) -> None:
        if self.told is not None:
            raise Error(self.told)

    def __rshift__(self, other: Any) -> Any:
        return other


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the DAG file, with stand-ins for Airflow."""
    given: dict[str, dict[str, Any]] = {
        "airflow.sdk": {
            "DAG": lambda **options: nullcontext(options),
            "Asset": str,
            "task": lambda outlets: lambda function: lambda: function,
        },
        "airflow.sdk.exceptions": {"AirflowException": Error, "AirflowFailException": Final},
        "airflow.providers.apache.spark.operators.spark_submit": {"SparkSubmitOperator": Operator},
    }
    for path in given:
        parts = path.split(".")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            module = ModuleType(name)
            vars(module).update(given.get(name, {}))
            monkeypatch.setitem(sys.modules, name, module)
    return runpy.run_path(str(DAG))


@pytest.mark.parametrize(
    ("told", "code"),
    [
        (TOLD.format(3), 3),
        (TOLD.format(2) + "\nLast spark-submit output:\nError code is: 3.", 2),
        (TOLD.format(0) + " Kubernetes spark exit code is: 3", 3),
        (TOLD.format(1) + " Kubernetes spark exit code is: None", 1),
        (TOLD.format(-9), 1),
        ("ERROR : Driver driver-1 badly exited with status FAILED", 1),
    ],
)
def test_the_exit_code_is_read_from_the_error(names: dict[str, Any], told: str, code: int) -> None:
    assert names["exit_code"](told) == code


@pytest.mark.parametrize(("code", "final"), [(1, False), (2, True), (3, True), (143, False)])
def test_only_what_a_retry_may_mend_is_retried(names: dict[str, Any], code: int, final: bool) -> None:
    operator = names["AnonSparkOperator"]()
    operator.told = TOLD.format(code)

    with pytest.raises(Error, match=f"anon-spark ended with {code}: ") as raised:
        operator.execute({})
    assert isinstance(raised.value, Final) == final


def test_success_is_success_and_both_commands_get_the_job(names: dict[str, Any]) -> None:
    plan, run = names["plan"], names["run"]

    plan.execute({})
    assert plan.options["application_args"] == [names["JOB"]]
    assert run.options["application_args"] == [names["JOB"], "--quiet"]
    for operator in (plan, run):
        assert (ROOT / "jobs" / Path(operator.options["application"]).name).is_file()


def test_the_failure_is_told_without_the_command_line(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    task = ModuleType("task")
    vars(task)["task_id"] = "run"

    names["notify"]({"task_instance": task, "exception": Final("anon-spark ended with 3: …")})
    assert capsys.readouterr().out == "No release: task run. anon-spark ended with 3: …\n"


@pytest.fixture
def airflow() -> str:
    """The Python of an environment with Airflow."""
    python = os.environ.get("ANON_SPARK_AIRFLOW")
    if python is None and find_spec("airflow") is None:
        pytest.skip("needs Airflow: ANON_SPARK_AIRFLOW=PYTHON, the Python of an environment that has it (docs/pipelines.md)")
    return python or sys.executable


@pytest.mark.slow
def test_a_real_airflow_makes_states_of_exit_codes(airflow: str, tmp_path: Path) -> None:
    stub, submitted, result = tmp_path / "bin" / "spark-submit", tmp_path / "submitted", tmp_path / "result.json"
    stub.parent.mkdir()
    stub.write_text(STUB, encoding="utf-8")
    stub.chmod(0o755)
    environment = {
        "PATH": f"{stub.parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "SUBMITTED": str(submitted),
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAG.parent),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
    }
    for command in (["-m", "airflow", "db", "migrate"], [str(Path(__file__).with_name("airflow_trial.py")), str(result)]):
        done = subprocess.run([airflow, *command], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    facts = json.loads(result.read_text(encoding="utf-8"))

    assert (facts["errors"], facts["dags"]) == ({}, ["nightly_release"])
    assert facts["tasks"] == {"plan": [2, 600.0, ["run"]], "run": [2, 600.0, ["hand_over"]], "hand_over": [2, 600.0, []]}
    assert (facts["catchup"], facts["max_active_runs"]) == (False, 1)
    passed, skipped = ["success", 1], ["upstream_failed", 0]
    assert facts["trials"] == {
        "0 0": {"plan": passed, "run": passed, "hand_over": passed},
        "1 0": {"plan": ["failed", 3], "run": skipped, "hand_over": skipped},
        "2 0": {"plan": ["failed", 1], "run": skipped, "hand_over": skipped},
        "3 0": {"plan": ["failed", 1], "run": skipped, "hand_over": skipped},
        "0 1": {"plan": passed, "run": ["failed", 3], "hand_over": skipped},
        "0 2": {"plan": passed, "run": ["failed", 1], "hand_over": skipped},
        "0 3": {"plan": passed, "run": ["failed", 1], "hand_over": skipped},
    }
    first = submitted.read_text(encoding="utf-8").splitlines()[0]
    assert "--master local[2]" in first and "--name nightly_release plan " in first
