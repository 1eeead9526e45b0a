"""The nightly DAG in a real Airflow, run by the Python of its environment: `airflow_trial.py RESULT`, see test_airflow.py.

It writes what Airflow makes of the DAG, and what becomes of its tasks when spark-submit, a stub, ends with each exit code.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.models import DagBag

CODES = ((0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (0, 2), (0, 3))  # of plan, of run


def trial(dag: Any, plan: int, run: int) -> dict[str, Any]:
    """State and number of tries of each task."""
    os.environ.update(PLAN_ENDS_WITH=str(plan), RUN_ENDS_WITH=str(run))
    tasks = dag.test().get_task_instances()
    return {task.task_id: [str(task.state), task.try_number] for task in tasks}


def main(result: str) -> None:
    bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    facts: dict[str, Any] = {"errors": dict(bag.import_errors), "dags": sorted(bag.dags)}
    for dag in bag.dags.values():
        facts |= {"catchup": dag.catchup, "max_active_runs": dag.max_active_runs}
        facts["tasks"] = {
            task.task_id: [task.retries, task.retry_delay.total_seconds(), sorted(task.downstream_task_ids)]
            for task in dag.tasks
        }
        for task in dag.tasks:
            task.retry_delay = timedelta(0)
        facts["trials"] = {f"{plan} {run}": trial(dag, plan, run) for plan, run in CODES}
    Path(result).write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
