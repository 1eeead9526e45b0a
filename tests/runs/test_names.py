"""Every family on columns with awkward names, and with notes on them that must stay behind: runs, later audits, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from anon_spark import Hierarchy, LatticeAnonymizer, MstAnonymizer
from anon_spark.config import JobSpec
from anon_spark.errors import ConfigurationError
from anon_spark.families.registry import load_job
from anon_spark.io.publication import output_of
from anon_spark.runs.audit import audit
from anon_spark.runs.preparation import prepare
from anon_spark.runs.run import run

NOTE = "Planted-note"  # what a curator wrote on every column of the source, and inside its structs
ROWS = 42
PERSON, UNUSED, IDENTIFIER = "who is it?", "left = (out)", "na me; {x}"  # only read, or not at all: Delta forbids such names
AGE, CITY, COUNT, NICE = "a.ge", "sel`ect-`c.ity`", "count", "größe'\"😀."
BASKET, ORDERS = "part.Basket", "GROUP-by"
CITIES = ["Aldorf", "Bexley", "Carden", "Dunmore"]


def noted(kind: T.DataType, name: str, nullable: bool = True) -> T.StructField:
    return T.StructField(name, kind, nullable, {"comment": NOTE, "ml_attr": {"vals": [NOTE]}})


TEXTS = T.ArrayType(T.StringType())
INNER = T.StructType([noted(T.IntegerType(), "x.y"), noted(T.ArrayType(T.StructType([noted(T.StringType(), "z`")])), "deep")])
ORDER = T.StructType([noted(T.StringType(), "br`and"), noted(T.LongType(), "Month")])
SCHEMA = T.StructType(
    [
        noted(T.LongType(), PERSON),
        noted(T.StringType(), IDENTIFIER),
        noted(T.IntegerType(), AGE),
        noted(T.StringType(), CITY),
        noted(T.StringType(), COUNT),
        noted(INNER, NICE),
        noted(TEXTS, BASKET),
        noted(T.ArrayType(ORDER), ORDERS),
        noted(T.StringType(), UNUSED),
        noted(T.StringType(), "rows"),
    ]
)


def table(spark: SparkSession) -> DataFrame:
    wares = ["ale", "bread", "cheese", "dates", "eggs"]
    rows = [
        (
            number, f"name {number}", 20 + number % 3, CITIES[number % 4], f"illness {number % 7}",
            (number % 3, [("deep",)]), [wares[number % 5], wares[(number // 3) % 5]],
            [(f"brand{number % 2}", number % 4)], "nothing", f"row {number % 3}",
        )
        for number in range(ROWS)
    ]  # fmt: skip
    return spark.createDataFrame(rows, SCHEMA).coalesce(1)


LEVELS = {CITY: {"levels": "city.csv"}}
AGES = {"intervals": {"from": 0, "to": 99, "widths": [20, 40]}}
RELATIONAL: dict[str, Any] = {
    "columns": {
        "person": PERSON,
        "identifiers": [IDENTIFIER],
        "quasi_identifiers": {AGE: AGES, **LEVELS, "rows": {"mask": {}}},
        "sensitive": [COUNT],
        "keep": [NICE],
    },
    "privacy": {"k": 3},
}
JOBS: dict[str, dict[str, Any]] = {
    "lattice": RELATIONAL,
    "mst": {**RELATIONAL, "privacy": {"k": 3, "l": 2}},
    "relational_transaction": {
        "columns": {
            "person": PERSON,
            "identifiers": [IDENTIFIER],
            "quasi_identifiers": {AGE: {}, **LEVELS},
            "transactions": [BASKET],
            "sensitive_items": {BASKET: ["dates"]},
            "sensitive": [COUNT],
            "keep": [NICE],
        },
        "privacy": {"k": 4, "m": 1, "l": 2},
        "relational_transaction": {"delta": 1.0},
    },
    "set_valued": {
        "columns": {"person": PERSON, "identifiers": [IDENTIFIER], "items": BASKET, "sensitive": [COUNT]},
        "privacy": {"l": 2},
        "set_valued": {"order": "gray"},
    },
    "tree": {
        "columns": {
            "person": PERSON,
            "identifiers": [IDENTIFIER],
            "tree": {
                "city.`1": {
                    "field": CITY.replace(".", "_"),
                    "levels": "city.csv",
                    "children": {
                        "Count": {"field": f"{ORDERS}.br`and", "mask": {}},
                        "mönth": {"field": f"{ORDERS}.Month", "intervals": {"from": 0, "to": 9, "widths": [5]}},
                    },
                }
            },
            "keep": [NICE, COUNT, "rows"],
        },
        "privacy": {"k": 3, "m": 2, "n": 1},
        "tree": {"max_cuts": 3},
    },
}


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as Parquet, which takes any name and keeps the notes; a field of a tree can have no dot."""
    folder = tmp_path_factory.mktemp("names")
    source = table(spark)
    assert NOTE in source.schema.json()
    source.withColumnRenamed(CITY, CITY.replace(".", "_")).write.parquet(str(folder / "nested"))
    source.write.parquet(str(folder / "flat"))
    (folder / "city.csv").write_text("".join(f"{city};{city < 'C'};*\n" for city in CITIES), encoding="utf-8")
    return folder


def job_file(folder: Path, family: str, **changes: Any) -> Path:
    job = {
        "anon_spark": 1,
        "family": family,
        "input": {"table": "./nested" if family == "tree" else "./flat", "format": "parquet"},
        "work": "./work",
        "output": {"table": f"./out/{family}", "runs": "./runs"},
        **JOBS[family],
        **changes,
    }
    file = folder / f"{family}.yaml"
    file.write_text(yaml.safe_dump(job, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return file


@pytest.mark.long  # tests/runs/test_canary.py has some awkward names, notes and metadata for every family
@pytest.mark.parametrize("family", JOBS)
def test_awkward_names_are_published_and_notes_are_not(spark: SparkSession, folder: Path, family: str) -> None:
    job = load_job(job_file(folder, family))
    prepared = prepare(job, spark)
    assert run(prepared).status == "published"
    release = spark.read.format("delta").load(str(folder / "out" / family))
    assert release.columns == [name for name in prepared.steps.published if name in release.columns] and release.count() == ROWS
    assert NOTE not in release.schema.json()
    files = list((folder / "out" / family).glob("*.parquet"))
    assert files and not any(NOTE in str(pq.read_metadata(file).metadata) for file in files)
    assert not any(NOTE in log.read_text() for log in (folder / "out" / family / "_delta_log").glob("*.json"))

    verdicts = audit(job, spark)
    assert [str(verdict) for verdict in verdicts if not verdict.passed] == []
    if family == "lattice":
        _administered(spark, job)


def _administered(spark: SparkSession, job: JobSpec) -> None:
    """What an administrator writes on a release changes no row of it; what was published with notes is found out later."""
    place = f"delta.`{job.output.table}`"
    for statement in (
        f"COMMENT ON TABLE {place} IS 'described'",
        f"ALTER TABLE {place} ALTER COLUMN `count` COMMENT 'described'",
        f"ALTER TABLE {place} ADD CONSTRAINT there CHECK (`count` IS NOT NULL)",
        f"ALTER TABLE {place} DROP CONSTRAINT there",
        f"ALTER TABLE {place} CLUSTER BY (`rows`)",
    ):
        spark.sql(statement)
    verdicts = audit(job, spark)
    assert [str(verdict) for verdict in verdicts if not verdict.passed] == []

    commented, said = spark.read.table(place), output_of(spark, job.output.table).release
    assert said is not None and said.latest == said.version + 5 and said.changes == ()
    writer = commented.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.option("userMetadata", json.dumps({"anon_spark": dict(said.metadata)})).save(job.output.table)
    assert [verdict.name for verdict in audit(job, spark) if not verdict.passed] == ["metadata"]


def test_names_that_delta_forbids_are_refused_before_anything_is_written(spark: SparkSession, folder: Path) -> None:
    columns = RELATIONAL["columns"]
    before = sorted(folder.rglob("*"))
    file = job_file(folder, "lattice", columns={**columns, "keep": [UNUSED]}, output={"table": "./new", "runs": "./new_runs"})
    with pytest.raises(ConfigurationError, match=r"cannot have: `left = \(out\)`\. .*Rename"):
        prepare(load_job(file), spark)
    assert sorted(folder.rglob("*")) == sorted({*before, file})

    tree = {**JOBS["tree"]["columns"], "keep": [], "tree": {"age": {"field": AGE, "mask": {}}}}
    with pytest.raises(ConfigurationError, match="a column or field with a dot in its name cannot be given"):
        prepare(load_job(job_file(folder, "tree", columns=tree)), spark)


@pytest.mark.long
def test_transform_leaves_notes_behind(spark: SparkSession) -> None:
    given: dict[str, Any] = {"quasi_identifiers": {CITY: Hierarchy.from_levels([(city, "*") for city in CITIES])}, "keep": [NICE]}
    for anonymizer in (LatticeAnonymizer(k=3, **given), MstAnonymizer(k=3, **given)):
        recoding = anonymizer.fit(table(spark))
        assert NOTE not in recoding.transform(table(spark)).schema.json()
        recoding.close()
