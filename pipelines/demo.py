"""The demonstration of each family: a synthetic Delta table, a job file beside it, a run, and what came out."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import Row, SparkSession

from anon_spark.config import load_job
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.progress import Progress
from anon_spark.report import RunReport
from anon_spark.samples.baskets import baskets
from anon_spark.samples.census import census, census_hierarchies
from anon_spark.samples.orders import order_hierarchies, orders
from anon_spark.samples.patients import patients, patients_hierarchies
from pipelines.preparation import prepare
from pipelines.run import run

JOB = """\
# Written by `anon-spark demo`; conf/%(family)s.yaml in the repository explains every key.
anon_spark: 1
family: %(family)s
input: {table: ./census}
columns:
  person: person_id
  identifiers: [name]
  quasi_identifiers:
    age: {intervals: {from: 17, to: 90, widths: [3, 6, 12, 24, 48]}}
    workclass: {levels: hierarchies/workclass.csv}
    education: {levels: hierarchies/education.csv}
    marital: {levels: hierarchies/marital.csv}
    race: {levels: hierarchies/race.csv}
    sex: {levels: hierarchies/sex.csv}
    country: {levels: hierarchies/country.csv}
    salary: {levels: hierarchies/salary.csv}
  sensitive: [disease]        # weight is left out: kept as it is, it would single out most rows whatever is generalized
privacy: %(privacy)s
output: {table: ./%(release)s, runs: ./runs, report: %(page)s}
"""
BASKETS_JOB = """\
# Written by `anon-spark demo`; conf/set_valued.yaml in the repository explains every key.
anon_spark: 1
family: %(family)s
input: {table: ./baskets}
columns: {person: person_id, items: items, sensitive: [religion]}
privacy: %(privacy)s
set_valued: {order: gray_tsp}
output: {table: ./%(release)s, runs: ./runs, report: %(page)s}
"""
PATIENTS_JOB = """\
# Written by `anon-spark demo`; conf/relational_transaction.yaml in the repository explains every key.
anon_spark: 1
family: %(family)s
input: {table: ./patients}
columns:
  person: person_id
  identifiers: [name]
  quasi_identifiers:
    birth_year: {domain: [1920, 2005]}
    education: {}
    income: {}
    race: {levels: hierarchies/patients_race.csv}
  transactions: [diagnoses]
  sensitive_items: {diagnoses: ["042", "295", "303"]}
privacy: %(privacy)s
output: {table: ./%(release)s, runs: ./runs, report: %(page)s}
"""
ORDERS_JOB = """\
# Written by `anon-spark demo`; conf/tree.yaml in the repository explains every key.
anon_spark: 1
family: %(family)s
input: {table: ./orders}
columns:
  person: customer_id
  identifiers: [name]
  tree:
    nation:
      field: nation
      levels: hierarchies/nation.csv
      children:
        month:
          field: orders.month
          intervals: {from: 0, to: 79, widths: [5, 25]}
          children:
            price: {field: orders.price, intervals: {from: 0, to: 90, widths: [5, 25]}}
            manufacturer:
              field: orders.items.manufacturer
              levels: hierarchies/manufacturer.csv
              children:
                brand: {field: orders.items.brand, levels: hierarchies/brand.csv}
                quantity: {field: orders.items.quantity, intervals: {from: 1, to: 50, widths: [5, 25]}}
privacy: %(privacy)s
tree: {width: 4}
output: {table: ./%(release)s, runs: ./runs, report: %(page)s}
"""
JOBS = {
    "lattice": JOB,
    "mst": JOB,
    "relational_transaction": PATIENTS_JOB,
    "set_valued": BASKETS_JOB,
    "tree": ORDERS_JOB,
}
SETTINGS = {
    "lattice": {"privacy": "{k: 10, suppression: 0.01}", "release": "census_release", "page": "census.html"},
    "mst": {"privacy": "{k: 10, l: 2}", "release": "census_local", "page": "census_local.html"},
    "relational_transaction": {"privacy": "{k: 10, m: 2, l: 3}", "release": "patients_release", "page": "patients.html"},
    "set_valued": {"privacy": "{k: 5}", "release": "baskets_release", "page": "baskets.html"},
    "tree": {"privacy": "{k: 10, m: 2, n: 1}", "release": "orders_release", "page": "orders.html"},
}

SHOWN_POINTS = 12
SHOWN_ROWS = 8
SHOWN_WIDTH = 44  # of a list of items
ROWS_PER_BASKET, FEWEST_BASKETS = 5, 500  # the other tables are a fifth of the census


def make_samples(spark: SparkSession, folder: Path, rows: int) -> None:
    """Write what the demonstrations read: a synthetic census, patients, baskets and orders, and their level tables."""
    folder.mkdir(parents=True, exist_ok=True)
    fewer = max(FEWEST_BASKETS, rows // ROWS_PER_BASKET)
    samples = {
        "census": census(spark, rows),
        "patients": patients(spark, fewer),
        "baskets": baskets(spark, fewer),
        "orders": orders(spark, fewer),
    }
    for name, sample in samples.items():
        sample.write.format("delta").mode("overwrite").save(str(folder.absolute() / name))
    others = {"patients_race": patients_hierarchies()["race"], **order_hierarchies()}
    write_level_tables(folder / "hierarchies", census_hierarchies() | others)


def lattice_demo(spark: SparkSession, folder: Path, progress: Progress | None) -> str:
    """A 10-anonymous release of a synthetic census; the text a person sees at the end."""
    report, shown = _release(spark, folder, "lattice", progress)
    return "\n".join([_front(report), "", "Some rows of the release:", shown, "", _end(report, folder, "lattice")])


def mst_demo(spark: SparkSession, folder: Path, progress: Progress | None) -> str:
    """The same census with local recoding, also 2-diverse in its sensitive column."""
    report, shown = _release(spark, folder, "mst", progress)
    lines = [_measures(report), "", "Some rows of the release:", shown, "", _end(report, folder, "mst")]
    page = folder / "compared.html"
    lines.append(f"Both side by side: anon-spark compare {folder}/lattice.yaml {folder}/mst.yaml --report {page}")
    return "\n".join(lines)


def relational_transaction_demo(spark: SparkSession, folder: Path, progress: Progress | None) -> str:
    """Synthetic patients: values and up to two diagnoses known lead to 10 rows, none of them sure of a sensitive diagnosis."""
    report, shown = _release(spark, folder, "relational_transaction", progress)
    lines = [_losses(report), "", "Some rows of the release:", shown, "", _end(report, folder, "relational_transaction")]
    return "\n".join(lines)


def set_valued_demo(spark: SparkSession, folder: Path, progress: Progress | None) -> str:
    """Synthetic baskets with a sensitive column: which row is whose is hidden among 5, the items are not."""
    report, shown = _release(spark, folder, "set_valued", progress)
    lines = [_counts(report), "", "Some rows of the release:", shown, "", _end(report, folder, "set_valued")]
    return "\n".join(lines)


def tree_demo(spark: SparkSession, folder: Path, progress: Progress | None) -> str:
    """Synthetic customers with nested orders: up to two values and a relation known lead to 10 records."""
    report, shown = _release(spark, folder, "tree", progress)
    return "\n".join([_cut(report), "", "Some rows of the release:", shown, "", _end(report, folder, "tree")])


DEMONSTRATIONS: Mapping[str, Callable[[SparkSession, Path, Progress | None], str]] = {
    "lattice": lattice_demo,
    "mst": mst_demo,
    "relational_transaction": relational_transaction_demo,
    "set_valued": set_valued_demo,
    "tree": tree_demo,
}


def _release(spark: SparkSession, folder: Path, family: str, progress: Progress | None) -> tuple[RunReport, str]:
    """Run one family on its sample; its report and some published rows."""
    job_file = folder / f"{family}.yaml"
    job_file.write_text(JOBS[family] % {"family": family, **SETTINGS[family]}, encoding="utf-8")
    job = load_job(job_file)
    report = run(prepare(job, spark), progress)
    release = spark.read.format("delta").load(job.output.table).limit(SHOWN_ROWS)
    rows = [[_cell(value) for value in row] for row in release.collect()]
    return report, pd.DataFrame(rows, columns=release.columns).to_string(index=False)


def write_level_tables(folder: Path, hierarchies: Mapping[str, Hierarchy]) -> None:
    """Level tables as ARX writes them, of every hierarchy that is not a plain interval."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, hierarchy in hierarchies.items():
        if hierarchy.kind == "text":
            with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, delimiter=";").writerows(hierarchy.rows())


def _front(report: RunReport) -> str:
    """The points of the front around the chosen one."""
    points, chosen = report.facts["front"], report.facts["chosen"]
    at = points.index(chosen)
    first = max(0, min(at - SHOWN_POINTS // 2, len(points) - SHOWN_POINTS))
    lines = [
        f"The Pareto front has {len(points)} points; around the chosen one:",
        "       k    loss  suppressed  levels",
    ]
    for point in points[first : first + SHOWN_POINTS]:
        mark = "→" if point == chosen else " "
        lines.append(f"{mark}{point['k']:7,}  {point['loss']:.4f}  {point['suppressed_rows']:10,}  {point['node']}")
    return "\n".join(lines)


def _measures(report: RunReport) -> str:
    """What local recoding lost."""
    measures, found = report.facts["measures"], report.facts["partition"]
    return "\n".join(
        [
            f"{found['tuples']:,} distinct tuples; {found['kept']:,} classes from the split, {found['small']:,} parts merged.",
            f"General loss {measures['glm']:.4f} (0 to 1), average class size {measures['cavg']:.2f} times k.",
        ]
    )


def _losses(report: RunReport) -> str:
    """What values and items lost, and what knowledge finds."""
    facts = report.facts
    measures, attacks = facts["measures"], list(facts["risk"]["knowledge_attack"].values())
    known, every = attacks[0], attacks[-1]
    return "\n".join(
        [
            f"{measures['clusters']:,} clusters of {measures['smallest']:,} to {measures['largest']:,} records.",
            f"Loss of values {measures['ncp']:.4f} (allowed: {facts['delta']}), of items {measures['ul']:.4f}; from 0 to 1.",
            f"Who knows all values and {known['items']} diagnoses picks the right row with {known['worst']:.4f} at most.",
            f"Who knows all diagnoses is outside the guarantee: {every['worst']:.4f} at most, {every['success']:.4f} on average.",
        ]
    )


def _counts(report: RunReport) -> str:
    """What the release is worth, and what an attacker gains."""
    facts = report.facts
    attack, rebuilt, example = facts["risk"]["link_attack"], facts["risk"]["reconstruction"], facts["example"]
    share = rebuilt["records_known_in_all_items_by_who_knows_the_order"]
    bounds = f"{example['lower']:,} to {example['upper']:,}, estimated {example['estimate']:,.1f}"
    found, promised = attack["rate_by_fit"], attack["promised_at_most"]
    return "\n".join(
        [
            f"Error rate {facts['measures']['er']:.4f}: wrong items of a row per item of its record.",
            f"Rows with the most frequent item: {bounds}.",
            f"A simulated link attack finds {found:.4f} of the rows, promised at most {promised:.4f}.",
            f"The items are not protected: {share:.1%} of the records can be worked out by who knows the order of rows.",
        ]
    )


def _cut(report: RunReport) -> str:
    """The cut by class, and what was taken apart."""
    facts, search = report.facts, report.facts["search"]
    classes = "; ".join(f"{one['class']} {sum(one['labels'])} of {one['values']}" for one in facts["classes"])
    taken = sum(one["pairs"] for one in facts["disassociated"])
    return "\n".join(
        [
            f"{search['evaluated']:,} cuts judged; labels that are left: {classes}.",
            f"{taken} relations were taken apart. Chance to guess a path (RPD) {facts['measures']['rpd']:.2e}; lower is better.",
        ]
    )


def _cell(value: Any) -> str:
    """A value, a list of items (generalized ones in brackets), a range or paths, on one short line."""
    if isinstance(value, Row | Mapping) and "lo" not in value:
        return "…"  # nested values say the same as paths
    if isinstance(value, Row | Mapping):
        return str(value["lo"]) if value["lo"] == value["hi"] else f"{value['lo']}–{value['hi']}"
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    text = ", ".join(item if isinstance(item, str) else f"({' '.join(map(_label, item))})" for item in value)
    return text if len(text) <= SHOWN_WIDTH else text[: SHOWN_WIDTH - 1] + "…"


def _label(item: Any) -> str:
    """A member of a generalized item, or a node of a path."""
    return item if isinstance(item, str) else str(item["value"])


def _end(report: RunReport, folder: Path, family: str) -> str:
    checks = "\n".join(
        f"  {'passed' if check.passed else 'FAILED'}  {check.name}: {check.detail}" for check in report.checks
    )
    found = "".join(f"\n  {finding.level:6}  {finding.text}" for finding in report.findings)
    outcome = f"{report.status.replace('_', ' ')}: {report.output_table}"
    return f"{checks}{found}\n{report.verdict}\n{outcome}\nThe report with its plots: {folder / SETTINGS[family]['page']}"
