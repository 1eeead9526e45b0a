"""The Databricks bundle: its keys are those of the documentation, what it names exists, and a task fails where a release does.

The Databricks CLI is not needed. With the package databricks-bundles, which has Databricks' own types of jobs, the job is read
by these as well. Nothing here talks to a workspace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from pyspark.sql import SparkSession

from anon_spark.cli import _parser
from anon_spark.families.registry import load_job
from pipelines.databricks import release
from tests.town import Town, people

BUNDLE = Path(__file__).resolve().parents[2] / "pipelines" / "databricks"

ANY: Any = object()  # a value of any kind
CLUSTER = dict.fromkeys(
    ("spark_version", "node_type_id", "num_workers", "data_security_mode", "spark_conf", "spark_env_vars"), ANY
)
TASK = {
    "task_key": ANY,
    "job_cluster_key": ANY,
    "depends_on": [{"task_key": ANY}],
    "spark_python_task": {"python_file": ANY, "parameters": [ANY]},
    "libraries": [{"whl": ANY}],
    "max_retries": ANY,
}
JOB = {
    "name": ANY,
    "schedule": {"quartz_cron_expression": ANY, "timezone_id": ANY, "pause_status": ANY},
    "max_concurrent_runs": ANY,
    "email_notifications": {"on_failure": [ANY]},
    "job_clusters": [{"job_cluster_key": ANY, "new_cluster": CLUSTER}],
    "tasks": [TASK],
}
TARGET = {
    "mode": ANY,
    "default": ANY,
    "workspace": {"host": ANY, "root_path": ANY},
    "run_as": {"service_principal_name": ANY, "user_name": ANY},
}
SCHEMA = {
    "bundle": {"name": ANY},
    "variables": {"*": {"description": ANY, "default": ANY}},
    "resources": {"jobs": {"*": JOB}},
    "targets": {"*": TARGET},
}
"""The part of the schema of bundles that is used, from the documentation. `*`: a name of ours."""


def faults(bundle: dict[str, Any]) -> list[str]:
    """What is wrong with a bundle, as far as it can be told without a workspace."""
    return [*unknown(bundle, SCHEMA, ""), *dangling(bundle)]


def unknown(value: Any, schema: Any, path: str) -> Iterator[str]:
    """Keys that the schema does not have."""
    if isinstance(schema, dict) and isinstance(value, dict):
        for key, below in value.items():
            if key in schema or "*" in schema:
                yield from unknown(below, schema.get(key, schema.get("*")), f"{path}.{key}")
            else:
                yield f"{path}.{key}: unknown"
    elif isinstance(schema, list) and isinstance(value, list):
        for number, below in enumerate(value):
            yield from unknown(below, schema[0], f"{path}[{number}]")
    elif isinstance(schema, dict | list):
        yield f"{path}: a {type(schema).__name__} is expected"


def dangling(bundle: dict[str, Any]) -> Iterator[str]:
    """Names of variables, tasks, clusters and files that lead nowhere."""
    known = {f"var.{name}" for name in bundle["variables"]} | {"bundle.name", "bundle.target", "workspace.file_path"}
    yield from (f"${{{name}}}" for name in re.findall(r"\$\{([^}]*)\}", yaml.safe_dump(bundle)) if name not in known)
    for job in bundle["resources"]["jobs"].values():
        if len(job["schedule"]["quartz_cron_expression"].split()) not in (6, 7):
            yield "schedule: Quartz has six or seven fields, seconds first"
        clusters = {cluster["job_cluster_key"] for cluster in job["job_clusters"]}
        earlier: set[str] = set()
        for task in job["tasks"]:
            needed = {other["task_key"] for other in task.get("depends_on", ())}
            yield from (f"{name}: no task before" for name in sorted(needed - earlier))
            if task["job_cluster_key"] not in clusters:
                yield f"{task['job_cluster_key']}: no cluster"
            if not (BUNDLE / task["spark_python_task"]["python_file"]).is_file():
                yield f"{task['spark_python_task']['python_file']}: no file"
            earlier.add(task["task_key"])


@pytest.fixture
def bundle() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((BUNDLE / "databricks.yml").read_text(encoding="utf-8"))
    return content


def test_keys_are_known_and_names_lead_somewhere(bundle: dict[str, Any]) -> None:
    assert faults(bundle) == []


def test_planted_faults_are_found(bundle: dict[str, Any]) -> None:
    def planted(change: str, value: Any) -> list[str]:
        faulty: Any = deepcopy(bundle)
        *path, last = [int(step) if step.isdigit() else step for step in change.split(".")]
        place = faulty
        for step in ["resources", "jobs", "nightly_release", *path]:
            place = place[step]
        place[last] = value
        return faults(faulty)

    assert planted("retries", 2) == [".resources.jobs.nightly_release.retries: unknown"]
    assert planted("tasks.0.libraries.0.wheel", "x") == [".resources.jobs.nightly_release.tasks[0].libraries[0].wheel: unknown"]
    assert planted("tasks.0.libraries", "x") == [".resources.jobs.nightly_release.tasks[0].libraries: a list is expected"]
    assert planted("name", "${var.nothing}") == ["${var.nothing}"]
    assert planted("schedule.quartz_cron_expression", "0 2 * * *") == ["schedule: Quartz has six or seven fields, seconds first"]
    assert planted("tasks.1.depends_on.0.task_key", "run") == ["run: no task before"]
    assert planted("tasks.1.job_cluster_key", "other") == ["other: no cluster"]
    assert planted("tasks.1.spark_python_task.python_file", "./other.py") == ["./other.py: no file"]


def test_plan_then_run_and_nothing_is_retried(bundle: dict[str, Any]) -> None:
    plan, run = bundle["resources"]["jobs"]["nightly_release"]["tasks"]

    assert (plan["task_key"], run["task_key"], run["depends_on"]) == ("plan", "run", [{"task_key": "plan"}])
    assert (plan["max_retries"], run["max_retries"]) == (0, 0)
    for task in (plan, run):
        options = _parser().parse_args(task["spark_python_task"]["parameters"])  # the command line takes them
        assert options.job == "${workspace.file_path}/${var.job_file}"
    assert not bundle["targets"]["prod"].get("default", False)  # a schedule is switched on by name only


def test_the_job_file_is_a_job_with_private_places(bundle: dict[str, Any]) -> None:
    job = load_job(str(BUNDLE / bundle["variables"]["job_file"]["default"]), [])

    assert str(job.work).startswith("/Volumes/") and str(job.output.report).startswith("/Volumes/")
    assert all(name.count(".") == 2 for name in (job.input.table, job.output.table, job.output.runs))


def test_databricks_own_types_read_the_job(bundle: dict[str, Any]) -> None:
    jobs = pytest.importorskip("databricks.bundles.jobs", reason="needs Databricks' types: pip install databricks-bundles")
    (job,) = bundle["resources"]["jobs"].values()

    read = jobs.Job.from_dict(deepcopy(job))
    assert [task.task_key for task in read.tasks] == ["plan", "run"]
    assert read.job_clusters[0].new_cluster.data_security_mode.value == "SINGLE_USER"
    with pytest.raises(ValueError, match="retries"):
        jobs.Job.from_dict({**deepcopy(job), "retries": 2})


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_a_task_fails_where_anon_spark_does(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    session, command = Mock(), Mock(return_value=code)
    monkeypatch.setattr(release, "SparkSession", session)
    monkeypatch.setattr(release, "main", command)

    if code == 0:
        release.task(["run", "people.yaml"])
    else:
        with pytest.raises(release.NoRelease, match=f"anon-spark run ended with {code}: "):
            release.task(["run", "people.yaml"])
    command.assert_called_once_with(["run", "people.yaml"])
    session.builder.getOrCreate.assert_called_once_with()


@pytest.mark.long
def test_the_tasks_publish_or_say_why_not(spark: SparkSession, tmp_path: Path) -> None:
    town = Town.founded(spark, tmp_path / "town", people(rows=120))

    for command in ("plan", "run"):
        release.task([command, town.job_file()])
    assert town.release.count() > 0
    with pytest.raises(release.NoRelease, match="ended with 3"):
        release.task(["plan", town.job_file(privacy__k=10_000)])
    with pytest.raises(release.NoRelease, match="ended with 2"):
        release.task(["plan", town.job_file(columns__keep=["nothing"])])
