"""A small table, its hierarchies and a job file for every family, for whatever place they are run in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

from anon_spark.samples.baskets import baskets
from anon_spark.samples.census import census, census_hierarchies
from anon_spark.samples.level_tables import write_level_tables
from anon_spark.samples.orders import order_hierarchies, orders
from anon_spark.samples.patients import patients

JOB = """\
anon_spark: 1
family: lattice
input: {table: ./census}
columns:
  identifiers: [name, person_id]
  quasi_identifiers:
    age: {intervals: {from: 17, to: 90, widths: [12, 48]}}
    marital: {levels: hierarchies/marital.csv}
  sensitive: [disease]
  keep: [weight]
privacy: {k: 10, suppression: 0.01, sensitive: {disease: {l: 2, t: {max: 0.6}}}}
work: ./work
output: {table: ./release, runs: ./runs, report: census.html}
"""

LOCAL = (  # the same table, recoded locally, published beside it
    JOB.replace("family: lattice", "family: mst")
    .replace("suppression: 0.01, sensitive: {disease: {l: 2, t: {max: 0.6}}}", "sensitive: {disease: {entropy_l: 1.5}}")
    .replace("./work", "./local_work")
    .replace("./release, runs: ./runs, report: census.html", "./local, runs: ./local_runs, report: local.html")
)

BASKETS = """\
anon_spark: 1
family: set_valued
input: {table: ./baskets}
columns: {person: person_id, items: items, sensitive: [religion]}
privacy: {l: 3}
work: ./basket_work
output: {table: ./basket_release, runs: ./basket_runs, report: baskets.html}
"""

PATIENTS = """\
anon_spark: 1
family: relational_transaction
input: {table: ./patients}
columns:
  person: person_id
  quasi_identifiers: {birth_year: {}, income: {domain: [0, 200000]}}
  transactions: [diagnoses]
  sensitive_items: {diagnoses: ["042", "295", "303"]}
privacy: {k: 10, m: 2, l: 3}
relational_transaction: {merge: both}
work: ./patient_work
output: {table: ./patient_release, runs: ./patient_runs}
"""

ORDERS = """\
anon_spark: 1
family: tree
input: {table: ./orders}
columns:
  person: customer_id
  tree:
    nation:
      field: nation
      levels: hierarchies/nation.csv
      children: {brand: {field: orders.items.brand, levels: hierarchies/brand.csv}}
privacy: {k: 10, m: 2, n: 1}
tree: {max_cuts: 12}
work: ./order_work
output: {table: ./order_release, runs: ./order_runs}
"""

JOBS = {"job": JOB, "local": LOCAL, "baskets": BASKETS, "patients": PATIENTS, "orders": ORDERS}  # lattice first


TABLES = {"census": census, "baskets": baskets, "patients": patients, "orders": orders}


def write_tables(spark: SparkSession, place: Path, rows: int, names: Iterable[str] = TABLES) -> None:
    """Tables of the families as Delta tables."""
    for name in names:
        TABLES[name](spark, rows).write.format("delta").save(str(place / name))


def founded(spark: SparkSession, place: Path, rows: int, names: Iterable[str] = TABLES) -> Path:
    """Tables of all families, or of some, and all hierarchies and job files, in one folder."""
    write_tables(spark, place, rows, names)
    write_level_tables(place / "hierarchies", census_hierarchies() | order_hierarchies())
    for name, text in JOBS.items():
        (place / f"{name}.yaml").write_text(text)
    return place
