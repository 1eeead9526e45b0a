"""The search for one k in lattices of twelve and of eighteen columns with four levels each: 4^12 and 4^18 nodes.

`spark-submit jobs/benchmarks/lattice/large.py scale --rows N --dir FOLDER --table NAME` measures one whole job on
whatever master it is given and prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.families.registry import parse_job
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.report.formats import plain
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run
from anon_spark.samples.census import census, census_hierarchies
from anon_spark.samples.level_tables import write_level_tables
from anon_spark.spark_session import make_session
from jobs.benchmarks.census_runs import timed
from jobs.markdown import table

ROWS = {"census": 1_000_000, "wider": 100_000, "symmetric": 100_000}
WHAT = {
    "census": "the census with four more columns that hang on its own",
    "wider": "the census with ten more columns that hang on its own",
    "symmetric": "twelve columns drawn alike: no node is better than its mirror images",
}
SYMMETRIC_LEAVES = 8
COLUMNS = 12
MORE = [  # two columns of the census, and how many values their sum becomes
    ("age", "education", 24), ("workclass", "marital", 12), ("country", "race", 20), ("salary", "education", 9),
    ("age", "workclass", 18), ("education", "marital", 15), ("country", "salary", 12), ("age", "country", 30),
    ("marital", "race", 10), ("education", "sex", 14),
]  # fmt: skip
K, SUPPRESSION = 10, 0.01
SECONDS = {"census": 600, "wider": 120, "symmetric": 600}  # after which the search stops
MOST_GAP = 0.05


def four_levels(leaves: int) -> Hierarchy:
    """Values v0, v1, …, each above in a block of neighbours, twice, and the root."""
    small = max(2, math.ceil(leaves ** (1 / 3)))
    wide = small * max(2, math.ceil(leaves / small / small))
    return Hierarchy.from_levels([(f"v{at}", f"small {at // small}", f"wide {at // wide}", "*") for at in range(leaves)])


def wide_census(spark: SparkSession, rows: int, more: int) -> tuple[DataFrame, dict[str, Hierarchy]]:
    """The quasi-identifiers of the census as numbers of their values, and so many sums of two of them."""
    leaves = {name: [str(row[0]) for row in hierarchy.rows()] for name, hierarchy in census_hierarchies().items()}
    numbers: dict[str, tuple[Column, int]] = {}
    for name, values in leaves.items():
        places = F.create_map(*(F.lit(part) for at, value in enumerate(values) for part in (value, at)))
        numbers[name] = (places[F.col(name).cast("string")], len(values))
    for at, (one, other, count) in enumerate(MORE[:more]):
        numbers[f"more_{at}"] = ((numbers[one][0] + 3 * numbers[other][0]) % count, count)
    return _as_values(census(spark, rows), numbers)


def symmetric(spark: SparkSession, rows: int) -> tuple[DataFrame, dict[str, Hierarchy]]:
    """Twelve independent columns of the same few values, small ones more often."""
    drawn = {
        f"column_{at}": (F.pow(F.rand(at), 2) * SYMMETRIC_LEAVES, SYMMETRIC_LEAVES) for at in range(COLUMNS)
    }
    return _as_values(spark.range(0, rows, 1, 8), {name: (F.floor(number), leaves) for name, (number, leaves) in drawn.items()})


def _as_values(df: DataFrame, numbers: Mapping[str, tuple[Column, int]]) -> tuple[DataFrame, dict[str, Hierarchy]]:
    values = [F.concat(F.lit("v"), number.cast("string")).alias(name) for name, (number, _) in numbers.items()]
    return df.select(*values), {name: four_levels(leaves) for name, (_, leaves) in numbers.items()}


def whole_run(spark: SparkSession, name: str, rows: int, folder: Path) -> dict[str, Any]:
    """One published release."""
    if name == "symmetric":
        df, hierarchies = symmetric(spark, rows)
    else:
        df, hierarchies = wide_census(spark, rows, 4 if name == "census" else len(MORE))
    folder.mkdir(parents=True)
    df.write.format("delta").save(str(folder / "table"))
    write_level_tables(folder / "hierarchies", hierarchies)
    job = {
        "anon_spark": 1,
        "family": "lattice",
        "input": {"table": "./table"},
        "columns": {"quasi_identifiers": {name: {"levels": f"hierarchies/{name}.csv"} for name in hierarchies}},
        "privacy": {"k": K, "suppression": SUPPRESSION},
        "lattice": {"max_nodes": 10_000_000, "max_seconds": SECONDS[name]},
        "work": "./work",
        "output": {"table": "./release", "runs": "./runs"},
    }
    total, report = timed(lambda: run(prepare(parse_job(job, folder), spark)))
    facts = plain(report.facts)
    shutil.rmtree(folder)
    found, search = facts["chosen"], facts["search"]
    return {
        "table": name,
        "rows": rows,
        "total": total,
        "fit": report.timings["fit"],
        "checks": sum(check.passed for check in report.checks),
        "loss": found["loss"],
        "suppressed": found["suppressed_rows"],
        **{key: search[key] for key in ("tuples", "nodes", "evaluated", "least_loss", "seconds")},
    }


def gap_of(measured: Mapping[str, Any]) -> float:
    """How far the loss can at most be above the optimum."""
    loss, least = measured["loss"], measured["least_loss"]
    return float(0 if loss == 0 else (loss - least) / loss)


def large_text(measured: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for found in measured:
        gap = gap_of(found)
        stated = "optimum proven" if gap == 0 else f"within {gap:.1%} of the optimum"
        rows.append(
            [
                WHAT[found["table"]],
                f"{found['rows']:,}",
                f"{found['tuples']:,}",
                f"{found['nodes']:,}",
                f"{found['evaluated']:,}",
                f"{found['loss']:.4f}",
                f"**{stated}**",
                f"{SECONDS[found['table']]}",
                f"{found['fit']:.0f}",
                f"{found['total']:.0f}",
            ]
        )
    head = ["table", "rows", "distinct tuples", "nodes", "evaluated", "loss", "gap", "seconds allowed", "fit", "whole job"]
    return "\n\n".join(
        [
            f"### Beyond 5 million nodes (12 and 18 columns × 4 levels, k = {K}, suppression {SUPPRESSION:.0%}; standalone "
            "master, two one-core workers, driver 1g, maxResultSize 64m)",
            f"Asked for, on the census: a gap of at most {MOST_GAP:.0%} within {SECONDS['census']} s. A search that reaches the "
            "time that it may take says what it could prove by then.",
            table(head, rows),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="One table of the search for one k; prints one line of JSON.")
    parser.add_argument("part", choices=["scale"])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--table", choices=list(ROWS), required=True)
    options = parser.parse_args()
    spark = make_session("anon-spark benchmark")
    print("RESULT " + json.dumps(whole_run(spark, options.table, options.rows, options.dir)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
