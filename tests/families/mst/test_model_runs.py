"""Models in whole runs of the mst family: published, refused, and what the gate says of planted faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anon_spark.errors import ConfigurationError, GuaranteeUnreachable
from anon_spark.families.registry import pipeline_of
from tests.families.gate import Attempt, Gate, Record
from tests.oracle.models_oracle import failing_classes
from tests.town import QUASI, Town

pytestmark = pytest.mark.compiles

MODELS: dict[str, Any] = {"disease": {"l": 3, "entropy_l": 1.5}, "weight": {"t": {"max": 0.35, "distance": "ordered"}}}
ASKED: dict[str, Any] = {
    "family": "mst",
    "privacy": {"k": 4, "l": 2, "suppression": 0.05, "sensitive": MODELS},
    "columns__sensitive": ["disease", "weight"],
    "columns__keep": [],
}
CHECKS = [
    "4-anonymity",
    "distinct 2-diversity",
    "distinct 3-diversity",
    "entropy 1.5-diversity of disease",
    "0.35-closeness (ordered distance) of weight",
]


@pytest.fixture(scope="module")
def gate(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("mst-models")
    made = Gate.of(Town.founded(spark, folder / "town"), str(folder / "gate"), **ASKED)
    yield made
    made.workspace.close()


def keys(rows: list[Record]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in QUASI) for row in rows]


@pytest.mark.long
def test_a_run_publishes_classes_that_keep_every_model(spark: SparkSession, workdir: Path) -> None:
    town = Town.founded(spark, workdir)
    report = town.run(**ASKED)
    assert report.status == "published"
    assert [check.name for check in report.checks if "-" in check.name] == CHECKS
    facts: Any = report.facts
    assert [spread.model for spread in facts.models] == ["entropy 1.5-diversity", "0.35-closeness (ordered distance)"]
    page = (workdir / "report" / "town.html").read_text(encoding="utf-8")
    assert "What protects the sensitive values" in page and "0.35-closeness" in page
    guarantee: Any = pipeline_of(town.job(**ASKED), spark).guarantee
    assert str(guarantee).endswith(
        "and distinct 3-diversity of disease, entropy 1.5-diversity of disease, distinct 2-diversity of weight, "
        "0.35-closeness (ordered distance) of weight"
    )
    rows = [row.asDict() for row in town.release.collect()]
    assert min(Counter(keys(rows)).values()) >= 4
    inside = {"disease": tuple(row["disease"] for row in rows)}
    assert failing_classes(keys(rows), inside, {"disease": guarantee.models["disease"]}) == set()


def exchanged(rows: list[Record], column: str, common: Any) -> list[Record]:
    """Rows of which one class has one value only, exchanged with rows of other classes: the table keeps its counts."""
    classes = Counter(keys(rows))
    poor = min(classes, key=lambda one: (classes[one], one))
    mine = [row for row, key in zip(rows, keys(rows), strict=True) if key == poor]
    others = iter([row for row, key in zip(rows, keys(rows), strict=True) if key != poor and row[column] == common])
    for row in mine:
        if row[column] != common:
            other = next(others)
            row[column], other[column] = other[column], row[column]
    return rows


@pytest.mark.long
def test_the_gate_refuses_a_class_that_fails_a_model(gate: Gate) -> None:
    assert gate.failed(Attempt(gate.rows())) == []
    failed = gate.failed(Attempt(exchanged(gate.rows(), "disease", "none")))
    assert "distinct 3-diversity" in failed
    assert "entropy 1.5-diversity of disease" in failed
    heaviest = max(row["weight"] for row in gate.rows())
    few = Counter(keys(gate.rows()))
    assert sum(row["weight"] == heaviest for row in gate.rows()) >= min(few.values())
    failed = gate.failed(Attempt(exchanged(gate.rows(), "weight", heaviest)))
    assert "0.35-closeness (ordered distance) of weight" in failed


@pytest.mark.long
def test_what_a_model_asks_and_the_table_cannot_give(spark: SparkSession, workdir: Path) -> None:
    town = Town.founded(spark, workdir)
    with pytest.raises(GuaranteeUnreachable, match="entropy 4-diversity; the whole table has"):
        town.run(**ASKED | {"privacy": {"k": 4, "sensitive": {"disease": {"entropy_l": 4}}}})
    assert town.versions == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"privacy": {"k": 4, "sensitive": {"height": {"l": 2}}}}, "privacy.sensitive.height: is no sensitive column"),
        ({"privacy": {"k": 4, "sensitive": {"disease": {"t": {"max": 1.5}}}}}, "privacy.sensitive.disease.t.max"),
        ({"privacy": {"k": 4, "sensitive": {"disease": {"recursive": {"c": 0, "l": 2}}}}}, "recursive.c"),
        ({"privacy": {"k": 4, "map_k": 5}}, "privacy.map_k"),
    ],
)
def test_faults_of_a_job_file(spark: SparkSession, tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Town(spark, tmp_path).job(**ASKED | changes)
    assert says in str(refused.value)
