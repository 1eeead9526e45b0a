"""Nested records with rare values: how much of them full and partial cuts publish as it was.

A record has one to three visits, each of one of 30 kinds, and one or two findings of 120 kinds below each. Kinds are drawn with
probability ∝ 1 / rank; five consecutive kinds are a group.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anon_spark.families.registry import parse_job
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.report.formats import plain
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run
from anon_spark.samples.level_tables import write_level_tables
from jobs.benchmarks.census_runs import timed
from jobs.markdown import table

VISITS, FINDINGS, GROUP = 30, 120, 5
SIZES = ((2_000, 5), (20_000, 20), (100_000, 20))  # records and k
ASKED = {(2_000, 5): {"visit": 0.6}, (20_000, 20): {"visit": 0.7, "finding": 0.4}}  # least shares that are published as they were
MOST_SECONDS = 600
WAYS = (("full", "rpd_a"), ("partial", "rpd_a"), ("partial", "ncp"))


def patients(spark: SparkSession, records: int, seed: int = 1) -> DataFrame:
    """The records, the same for any partitions."""
    shares = [np.cumsum(1 / np.arange(1, count + 1)) for count in (VISITS, FINDINGS)]

    def drawn(draw: np.random.Generator, of: int) -> int:
        return int(np.searchsorted(shares[of], draw.random() * shares[of][-1], side="right"))

    def record(number: int) -> list[dict[str, Any]]:
        draw = np.random.default_rng([seed, number])
        return [
            {
                "kind": f"v{drawn(draw, 0):02}",
                "findings": [{"kind": f"f{drawn(draw, 1):03}"} for _ in range(draw.integers(1, 3))],
            }
            for _ in range(draw.integers(1, 4))
        ]

    def made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        finding = pa.struct([("kind", pa.string())])
        kind = pa.list_(pa.struct([("kind", pa.string()), ("findings", pa.list_(finding))]))
        for batch in batches:
            visits = [record(int(number)) for number in batch.column(0).to_numpy()]
            yield pa.RecordBatch.from_arrays([pa.array(visits, kind)], names=["visits"])

    schema = "visits array<struct<kind: string, findings: array<struct<kind: string>>>>"
    return spark.range(records).mapInArrow(made, schema)


def hierarchies() -> dict[str, Hierarchy]:
    """Groups of five consecutive kinds below the root."""
    kinds = {"visit": [f"v{at:02}" for at in range(VISITS)], "finding": [f"f{at:03}" for at in range(FINDINGS)]}
    return {
        name: Hierarchy.from_levels([(value, f"{name}s {at // GROUP}", "*") for at, value in enumerate(values)])
        for name, values in kinds.items()
    }


@dataclass(frozen=True)
class Skewed:
    """One published release: shares of values as they were, in groups and as the root, by node type."""

    records: int
    k: int
    cuts: str
    cost: str
    published: dict[str, dict[str, float]]
    measures: dict[str, Any]
    evaluated: int
    fit: float
    total: float


def released(spark: SparkSession, records: int, k: int, cuts: str, cost: str, folder: Path) -> Skewed:
    """One whole run, audited and published."""
    folder.mkdir(parents=True)
    patients(spark, records).write.format("delta").save(str(folder / "table"))
    write_level_tables(folder / "hierarchies", hierarchies())
    node_types = {
        "visit": {
            "field": "visits.kind",
            "levels": "hierarchies/visit.csv",
            "children": {"finding": {"field": "visits.findings.kind", "levels": "hierarchies/finding.csv"}},
        }
    }
    job = {
        "anon_spark": 1,
        "family": "tree",
        "input": {"table": "./table"},
        "columns": {"tree": node_types},
        "privacy": {"k": k, "m": 2, "n": 1},
        "tree": {"cuts": cuts, "cost": cost},
        "work": "./work",
        "output": {"table": "./release", "runs": "./runs"},
    }
    total, report = timed(lambda: run(prepare(parse_job(job, folder), spark)))
    facts = plain(report.facts)
    shutil.rmtree(folder)
    return Skewed(
        records,
        k,
        cuts,
        cost,
        {one["class"]: one for one in facts["published"]},
        facts["measures"],
        facts["search"]["evaluated"],
        report.timings["fit"],
        total,
    )


def skewed(spark: SparkSession, folder: Path, sizes: Sequence[tuple[int, int]] = SIZES) -> list[Skewed]:
    return [
        released(spark, records, k, cuts, cost, folder / f"{records}_{cuts}_{cost}")
        for records, k in sizes
        for cuts, cost in WAYS
    ]


def skewed_text(measured: Sequence[Skewed]) -> str:
    head = ["records", "k", "cuts", "cost", "visits: as they were / in groups", "findings", "NCP", "relations kept", "RPD"]
    head += ["cuts judged", "fit", "whole run"]
    rows = []
    for one in measured:
        shares = [f"{of['exact']:.0%} / {of['group']:.0%}" for of in (one.published["visit"], one.published["finding"])]
        rows.append(
            [
                f"{one.records:,}",
                str(one.k),
                one.cuts,
                one.cost,
                *shares,
                f"{one.measures['ncp']:.3f}",
                f"{one.measures['relations_kept']:.0%}",
                f"{one.measures['rpd']:.2e}",
                f"{one.evaluated:,}",
                f"{one.fit:.1f}",
                f"{one.total:.1f}",
            ]
        )
    said = [
        f"{records:,} records, k = {k}: {', '.join(f'{share:.0%} of the {name}s' for name, share in least.items())}"
        for (records, k), least in ASKED.items()
    ]
    return "\n\n".join(
        [
            "### Rare values: full and partial cuts (local Spark, 2 cores, m = 2, n = 1; seconds)",
            f"Kinds are drawn with probability ∝ 1 / rank. Asked for, as they were: {'; '.join(said)}; 100,000 records within "
            f"{MOST_SECONDS} s.",
            table(head, rows),
        ]
    )
