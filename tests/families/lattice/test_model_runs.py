"""Models and a population in whole runs of the lattice family: published, refused, and what the gate says of planted faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anon_spark.errors import ConfigurationError, DataError, GuaranteeUnreachable
from anon_spark.families.lattice.recoding import LatticeRecoding
from anon_spark.families.registry import pipeline_of
from anon_spark.runs.preparation import prepare
from tests.families.gate import Attempt, Gate
from tests.oracle.models_oracle import failing_classes
from tests.town import QUASI, Town, people

MODELS: dict[str, Any] = {"disease": {"l": 2, "entropy_l": 1.5, "t": {"max": 0.35}}}
ASKED: dict[str, Any] = {"privacy": {"k": 4, "suppression": 0.1, "sensitive": MODELS}, "columns__keep": []}


@pytest.fixture(scope="module")
def gate(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("models")
    made = Gate.of(Town.founded(spark, folder / "town"), str(folder / "gate"), **ASKED)
    yield made
    made.workspace.close()


def keys(rows: list[Any]) -> list[Any]:
    return [tuple(row[name] for name in QUASI) for row in rows]


def test_a_run_publishes_classes_that_keep_every_model(spark: SparkSession, workdir: Path) -> None:
    town = Town.founded(spark, workdir)
    report = town.run(**ASKED)
    assert report.status == "published"
    rows = town.release.collect()
    assert min(Counter(keys(rows)).values()) >= 4
    told = {check.name for check in report.checks}
    assert {"distinct 2-diversity of disease", "entropy 1.5-diversity of disease"} <= told
    facts: Any = report.facts
    assert {cost.model for cost in facts.model_costs} == {
        "distinct 2-diversity", "entropy 1.5-diversity", "0.35-closeness (equal distance)",
    }  # fmt: skip
    assert all(cost.loss is None or cost.loss >= (cost.without or 0) for cost in facts.model_costs)
    page = (workdir / "report" / "town.html").read_text(encoding="utf-8")
    assert "What protects the sensitive values" in page and "0.35-closeness" in page
    guarantee: Any = pipeline_of(town.job(**ASKED), spark).guarantee
    inside = {name: tuple(row[name] for row in rows) for name in ("disease",)}
    assert failing_classes(keys(rows), inside, {"disease": [guarantee.models["disease"][0]]}) == set()


def test_the_gate_refuses_a_class_that_fails_a_model(gate: Gate) -> None:
    """Values swapped between classes: the counts of the table stay, those of two classes do not."""
    rows = gate.rows()
    assert gate.failed(Attempt(rows)) == []
    classes = Counter(keys(rows))
    poor = min(classes, key=lambda one: (classes[one], one))
    mine = [row for row, key in zip(rows, keys(rows), strict=True) if key == poor]
    others = iter([row for row, key in zip(rows, keys(rows), strict=True) if key != poor and row["disease"] == "none"])
    for row in mine:
        if row["disease"] != "none":
            other = next(others)
            row["disease"], other["disease"] = other["disease"], row["disease"]
    failed = gate.failed(Attempt(rows))
    assert "distinct 2-diversity of disease" in failed and "entropy 1.5-diversity of disease" in failed


def test_what_a_model_asks_and_the_table_cannot_give(spark: SparkSession, workdir: Path) -> None:
    town = Town.founded(spark, workdir)
    with pytest.raises(GuaranteeUnreachable, match="distinct 4-diversity of disease"):
        town.run(**ASKED | {"privacy": {"k": 4, "sensitive": {"disease": {"l": 4}}}})
    assert town.versions == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"privacy": {"k": 4, "sensitive": {"weight": {"l": 2}}}}, "privacy.sensitive.weight: is no sensitive column"),
        ({"privacy": {"k": 4, "sensitive": {"disease": {"t": {"max": 1.5}}}}}, "privacy.sensitive.disease.t.max"),
        ({"privacy": {"k": 4, "sensitive": {"disease": {"recursive": {"c": 0, "l": 2}}}}}, "recursive.c"),
        ({"privacy": {"k": 4, "sensitive": {"disease": {}}}}, "needs a model"),
        ({"privacy": {"k": 4, "sensitive": {"disease": {"entropy_l": 1}}}}, "entropy_l"),
        ({"privacy": {"k": 1}}, "privacy.k: is 1, which protects nobody"),
        ({"privacy": {"k": 4, "map_k": 5}}, "privacy.map_k: needs population"),
        ({"population": {"table": "./all"}}, "population: is of no use"),
        (
            {"privacy": {"k": 4, "presence": [0.5, 0.1]}, "population": {"table": "./all"}},
            "privacy.presence: should have the least share first",
        ),
        (
            {"privacy": {"k": 1, "map_k": 5}, "population": {"table": "./all", "columns": {"zip": "x"}}},
            "population.columns.zip: is no quasi-identifier",
        ),
    ],
)
def test_faults_of_a_job_file(spark: SparkSession, tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    town = Town(spark, tmp_path)
    with pytest.raises(ConfigurationError) as refused:
        town.job(**changes)
    assert says in str(refused.value)


@pytest.mark.long
def test_a_population_is_kept_audited_and_refused_where_it_lacks_people(spark: SparkSession, workdir: Path) -> None:
    town = Town.founded(spark, workdir)
    everybody = people(600).select(["age", "sex", "city"]).rename_columns(["age", "sex", "town"])
    spark.createDataFrame(everybody).write.format("delta").save(str(workdir / "all"))
    asked = {
        "privacy": {"k": 1, "suppression": 0.1, "map_k": 9, "presence": [0, 0.6]},
        "population": {"table": "./all", "columns": {"city": "town"}},
        "columns__keep": [],
    }
    report = town.run(**asked)
    assert report.status == "published"
    assert any("9-map" in check.name for check in report.checks)
    before = prepare(town.job(**asked), spark).config_hash
    spark.createDataFrame(everybody.slice(0, 100)).write.format("delta").mode("append").save(str(workdir / "all"))
    assert prepare(town.job(**asked), spark).config_hash != before  # another population, another release
    spark.createDataFrame(everybody).limit(0).write.format("delta").save(str(workdir / "empty"))
    with pytest.raises(DataError, match="not in the population"):
        town.run(**dict(asked, population={"table": "./empty", "columns": {"city": "town"}}))


def test_a_saved_recoding_keeps_its_models(gate: Gate, tmp_path: Path) -> None:
    gate.recoding.save(str(tmp_path / "recoding.json"))
    again: Any = LatticeRecoding.load(str(tmp_path / "recoding.json"))
    assert again.models == gate.recoding.models
    assert again.model_costs == gate.recoding.model_costs
    rows = again.transform(gate.source).collect()
    honest = Counter(tuple(row.values()) for row in gate.rows())
    assert Counter(tuple(row) for row in rows) == honest
