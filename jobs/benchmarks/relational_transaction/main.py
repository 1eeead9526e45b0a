"""Measurements of the family relational_transaction: orders, parts against plain forms, and whole runs on patients.

`spark-submit jobs/benchmarks/relational_transaction/main.py scale --rows N --dir FOLDER` measures one size on whatever master it
is given and prints one line of JSON; the other parts run in one process.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from anon_spark.families.registry import parse_job
from anon_spark.report import RunReport
from anon_spark.report.formats import plain
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run
from anon_spark.samples.level_tables import write_level_tables
from anon_spark.samples.patients import DOMAINS, patients, patients_hierarchies
from anon_spark.spark_session import make_session
from jobs.benchmarks.census_runs import STEPS, growth, print_scale, timed
from jobs.benchmarks.relational_transaction.orders import (
    DELTA,
    SAMPLE,
    K,
    M,
    distance_step,
    items_step,
    many_items,
    orders,
    orders_text,
    plain_text,
)
from jobs.benchmarks.relational_transaction.records import source
from jobs.markdown import table

SIZES = (50_000, 250_000, 1_000_000)  # patients of the whole runs
WAYS: Mapping[str, Mapping[str, str]] = {  # the first: as the paper joins items
    "paper": {"cost": "occurrences", "refine": "none"},
    "relational": {},
    "items": {"merge": "items"},
}
MOST_BY_ITEMS = 50_000  # records merged by items, too: it takes longest
MOST_EXPONENT = 1.2
LEAST_SPENT, GOOD_SPENT = 0.8, 0.9  # of δ


def report(whole: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    """Orders, parts against plain forms, and whole runs, as Markdown."""
    spark = make_session("anon-spark benchmark")
    records = source(spark, options.data)
    steps = [
        distance_step(records.sample(SAMPLE)),
        distance_step(records),
        items_step(records.name, records.sample(SAMPLE).baskets),
        items_step(records.name, records.baskets),
        items_step("invented sets", many_items()),
    ]
    parts = [
        orders_text(records.name, orders(records)),
        plain_text(steps),
        whole_text(whole) if whole else "",
    ]
    return "\n\n".join(part for part in parts if part)


# --- whole runs ----------------------------------------------------------------------------------------------------------


def whole_run(spark: SparkSession, rows: int, folder: Path) -> dict[str, Any]:
    """Patients released with each way of merging."""
    folder.mkdir(parents=True)
    patients(spark, rows).write.format("delta").save(str(folder / "patients"))
    write_level_tables(folder / "hierarchies", {"patients_race": patients_hierarchies()["race"]})
    found: dict[str, Any] = {"rows": rows, "merges": {}}
    for name, options in WAYS.items():
        if name == "items" and rows > MOST_BY_ITEMS:
            continue
        seconds, report = timed(partial(patient_run, spark, folder, name, options))
        facts = plain(report.facts)
        found["merges"][name] = {
            "rows": rows,
            "total": seconds,
            "timings": dict(report.timings),
            "statistics": dict(facts["statistics"]),
            **{name: facts["measures"][name] for name in ("ncp", "ul", "clusters", "smallest", "largest", "kept_items")},
        }
    shutil.rmtree(folder)
    return {**found, "total": sum(one["total"] for one in found["merges"].values())}


def patient_run(spark: SparkSession, folder: Path, name: str, options: Mapping[str, str]) -> RunReport:
    """A published release of the patients in the folder."""
    job = {
        "anon_spark": 1,
        "family": "relational_transaction",
        "input": {"table": "./patients"},
        "columns": {
            "person": "person_id",
            "identifiers": ["name"],
            "quasi_identifiers": {
                **{name: {"domain": list(domain)} for name, domain in DOMAINS.items()},
                "race": {"levels": "hierarchies/patients_race.csv"},
            },
            "transactions": ["diagnoses"],
            "keep": ["visits"],
        },
        "privacy": {"k": K, "m": M},
        "relational_transaction": {"bound": "relational", "delta": DELTA, **options},
        "work": "./work",
        "output": {"table": f"./release_{name}", "runs": "./runs", "report": f"{name}.html"},
    }
    return run(prepare(parse_job(job, folder), spark))


def whole_text(whole: Sequence[Mapping[str, Any]]) -> str:
    """Whole runs by size and way of merging: time by step, losses, and how much of δ is spent."""
    runs = [(size["rows"], merge, one) for size in whole for merge, one in size["merges"].items()]
    head = [
        "records",
        "merge",
        "first clusters",
        "groups",
        "clusters",
        "largest",
        "NCP",
        "of δ",
        "UL",
        "stand for themselves",
        "whole run",
        *STEPS,
    ]
    rows = [
        [
            f"{records:,}",
            merge,
            f"{one['statistics'].get('initial_clusters') or 0:,}",
            str(one["statistics"].get("groups") or "–"),
            f"{one['clusters']:,}",
            f"{one['largest']:,}",
            f"{one['ncp']:.4f}",
            f"{one['ncp'] / DELTA:.1%}",
            f"{one['ul']:.4f}",
            f"{one['kept_items']:.1%}",
            f"{one['total']:.1f}",
            *(f"{one['timings'].get(step, 0):.1f}" for step in STEPS),
        ]
        for records, merge, one in runs
    ]
    return "\n\n".join(
        [
            f"### Whole runs (patients, k = {K}, m = {M}, Rum-bound, δ = {DELTA}; standalone master, two one-core workers, "
            "driver 1g, maxResultSize 64m; seconds)",
            table(head, rows),
            *(spent_text(merge, _of(whole, merge)) for merge in whole[0]["merges"]),
        ]
    )


def _of(whole: Sequence[Mapping[str, Any]], merge: str) -> list[Mapping[str, Any]]:
    return [size["merges"][merge] for size in whole if merge in size["merges"]]


def spent_text(merge: str, runs: Sequence[Mapping[str, Any]]) -> str:
    """A sentence on the growth with one way of merging and on δ, with verdicts that are computed."""
    least = min(one["ncp"] / DELTA for one in runs)
    kept = "kept" if least >= LEAST_SPENT else "**not kept**"
    aim = "reached" if least >= GOOD_SPENT else "not reached"
    spent = f"of δ at least {least:.1%} is spent (limit {LEAST_SPENT:.0%}, {kept}; aim {GOOD_SPENT:.0%}, {aim})."
    if len(runs) < 2:
        return f"Merge {merge}: {spent}"
    times, exponent = growth(runs)
    _, late = growth(runs[-2:])
    verdict = "kept" if exponent <= MOST_EXPONENT else "**not kept**"
    return (
        f"Merge {merge}: from {runs[0]['rows']:,} to {runs[-1]['rows']:,} records the whole run takes **{times:.1f}×** as long "
        f"(exponent {exponent:.2f}; limit {MOST_EXPONENT}, {verdict}); what every run costs, however small, is in it: from "
        f"{runs[-2]['rows']:,} records on the exponent is {late:.2f}. {spent[0].upper()}{spent[1:]}"
    )


if __name__ == "__main__":
    sys.exit(print_scale(whole_run))
