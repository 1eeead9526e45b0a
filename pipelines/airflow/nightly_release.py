"""A nightly release under Airflow: plan, run, hand over. Copy it into the folder of your DAGs and change what is yours.

It needs Airflow 2.10 or 3 and apache-airflow-providers-apache-spark. Exit codes of anon-spark become states of tasks: 0 success;
1 (unexpected, or stopped) is retried; 2 (wrong configuration) and 3 (the data do not allow a release) fail at once.
docs/pipelines.md says why, and what deploy modes other than client do to the codes.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

try:
    from airflow.sdk import DAG, Asset, task
except ImportError:  # Airflow 2
    from airflow import DAG
    from airflow.datasets import Dataset as Asset
    from airflow.decorators import task
try:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException
except ImportError:  # older than that module
    from airflow.exceptions import AirflowException, AirflowFailException

JOB = "/opt/anon-spark/people.yaml"  # the job file, with its hierarchies beside it
SCRIPTS = "/opt/anon-spark/jobs"  # the folder jobs of the repository; it is not in the wheel
SETTINGS = "/opt/anon-spark/spark.conf"  # for instance a copy of conf/spark/standalone.conf
CONNECTION = "spark_default"  # Airflow's Spark connection: the master, which wins over SETTINGS, and deploy mode client
RELEASE = Asset("people_release")  # DAGs with schedule=[RELEASE] start when a release was handed over

FINAL = {  # a retry would end the same way, or would try a refused release until it passes
    2: "wrong configuration. An engineer must look at the job file and its places.",
    3: "the data do not allow a release. The current release stays. The data office must decide.",
}


class AnonSparkOperator(SparkSubmitOperator):
    """spark-submit of one command of anon-spark, with its exit codes as states."""

    def execute(self, context: Any) -> None:
        try:
            super().execute(context)
        except AirflowException as error:
            code = exit_code(str(error))
            if code in FINAL:
                raise AirflowFailException(f"anon-spark ended with {code}: {FINAL[code]}") from error
            raise AirflowException(f"anon-spark ended with {code}: see the log of this task.") from error  # Airflow retries


def exit_code(message: str) -> int:
    """The exit code in the error of SparkSubmitHook, which hands it on in its text only; 1 where the text has none."""
    for wording in (r"Kubernetes spark exit code is: (\d+)", r"Error code is: (\d+)"):
        told = re.search(wording, message)
        if told is not None:
            return int(told[1])
    return 1


def notify(context: Any) -> None:
    """Called when a task has failed for good. Put your mail or chat here; the message holds names and counts only."""
    print(f"No release: task {context['task_instance'].task_id}. {context['exception']}")


with DAG(
    dag_id="nightly_release",
    schedule="0 2 * * *",
    start_date=datetime(2025, 1, 1),
    catchup=False,  # a run reads the table as it is now: there is nothing to catch up
    max_active_runs=1,  # of two runs on one output one is refused
    default_args={"retries": 2, "retry_delay": timedelta(minutes=10), "on_failure_callback": notify},
):
    submit: dict[str, Any] = {"conn_id": CONNECTION, "properties_file": SETTINGS, "name": "{{ dag.dag_id }} {{ task.task_id }}"}

    # 1. plan: a wrong job file, a missing column or an unseen value is found before any work; writes nothing
    plan = AnonSparkOperator(task_id="plan", application=f"{SCRIPTS}/plan.py", application_args=[JOB], **submit)

    # 2. run: anonymize, audit what was staged, publish in one commit; the same rows again are recognised
    run = AnonSparkOperator(task_id="run", application=f"{SCRIPTS}/run.py", application_args=[JOB, "--quiet"], **submit)

    # 3. hand over: only after exit code 0; also where nothing was new, because last night's hand-over may have failed, and where
    # the new people of a series wait: the release is as it was. Before the first increment there is none, so make that by hand
    @task(outlets=[RELEASE])
    def hand_over() -> None:
        print(f"The current release of {JOB} is verified.")  # put here what your readers need

    plan >> run >> hand_over()
