"""Suggestions for tables that nobody described: roles, hierarchies, the family, and a job that loads."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import anon_spark as an
from anon_spark.config.hierarchy_files import check_files
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.families.registry import load_job
from anon_spark.suggestion.profile import profile
from anon_spark.suggestion.roles import OFTEN_UNIQUE
from tests.suggestion import raw_tables

NESTED = (
    "patient_id string, region string, visits array<struct<month:int,ward:string,findings:array<struct<code:string,value:int>>>>"
)


def frame(spark: SparkSession, name: str) -> DataFrame:
    rows = getattr(raw_tables, name)(*([400] if name == "records" else []))
    return raw_tables.frame(spark, rows, NESTED if name == "records" else None)


ROLES = {
    "baskets": ("relational_transaction", {
        "customer_id": "identifier", "age": "quasi_identifier", "postal_code": "quasi_identifier", "purchases": "items",
        "religion": "sensitive",
    }),
    "records": ("tree", {
        "patient_id": "identifier", "region": "quasi_identifier", "visits.month": "nested", "visits.ward": "nested",
        "visits.findings.code": "nested", "visits.findings.value": "nested",
    }),
    "texts": ("mst", {
        "nom": "identifier", "prénom": "identifier", "date_de_naissance": "quasi_identifier", "sexe": "quasi_identifier",
        "code_postal": "quasi_identifier", "ocupación": "quasi_identifier", "salario": "sensitive", "religión": "sensitive",
        "téléphone": "identifier",
    }),
    "dates": ("lattice", {
        "patient_id": "person", "birth_date": "quasi_identifier", "admission": "quasi_identifier",
        "discharge": "quasi_identifier", "department": "quasi_identifier", "icd": "sensitive", "outcome": "sensitive",
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", ROLES)
def test_roles_that_a_person_would_accept(spark: SparkSession, tmp_path: Path, name: str) -> None:
    family, expected = ROLES[name]
    found = an.suggest(frame(spark, name), look_ahead=False)
    assert found.family.name == family
    assert {entry.name: entry.role for entry in found.columns} == expected
    job = found.save(tmp_path / "job", "./table")
    check_files(load_job(job))  # the job can be read, and so can its hierarchies
    assert stat.S_IMODE((tmp_path / "job").stat().st_mode) == 0o700
    assert "<h1>" in (tmp_path / "job" / "profile.html").read_text(encoding="utf-8")
    with pytest.raises(ConfigurationError, match="is there already"):
        found.save(tmp_path / "job", "./table")


@pytest.mark.long
def test_a_wide_table_gets_few_quasi_identifiers_and_nothing_unique(spark: SparkSession, tmp_path: Path) -> None:
    found = an.suggest(frame(spark, "wide"), look_ahead=False)
    roles = {entry.name: entry.role for entry in found.columns}
    assert len(roles) == 120 and roles["subject_id"] == "identifier"
    for name in ("gender", "year_of_birth", "state", "marital_status"):
        assert roles[name] == "quasi_identifier"
    assert sum(role == "quasi_identifier" for role in roles.values()) == 8
    assert all(roles[f"lab_{value:02d}"] == "left_out" for value in range(1, 35))
    unchanged = [entry for entry in found.columns if entry.role in ("keep", "sensitive")]
    assert all(entry.column.unique_share <= OFTEN_UNIQUE for entry in unchanged)
    check_files(load_job(found.save(tmp_path / "job", "./table")))


def test_a_profile_counts_exactly(spark: SparkSession) -> None:
    rows = [(" a", "1", 0.5), ("b", "2", None), ("b", "x", 0.5), (None, "3", float("nan"))]
    table = profile(spark.createDataFrame(rows, "word string, mixed string, part double").repartition(3))
    word, mixed, part = table.columns
    assert table.rows == 4
    assert (word.nulls, word.distinct, word.unique, word.spaced) == (1, 2, 1, 1) and word.values == {" a": 1, "b": 2}
    assert mixed.is_mixed and not mixed.is_number and (mixed.least, mixed.greatest) == (1, 3)
    assert part.nulls == 2 and part.unique == 0 and part.is_number and not part.is_whole


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_a_suggestion_does_not_depend_on_partitions(spark: SparkSession, partitions: int) -> None:
    table = raw_tables.frame(spark, raw_tables.texts(300)).repartition(partitions)
    text = an.suggest(table, look_ahead=False).job_text("./table")
    assert text == an.suggest(table.coalesce(1), look_ahead=False).job_text("./table")


def test_what_a_person_says_wins(spark: SparkSession) -> None:
    table = frame(spark, "texts")
    found = an.suggest(table, quasi=["sexe"], keep=["ocupación"], sensitive=["salario"], family="lattice", k=4, look_ahead=False)
    assert list(found.quasi_identifiers) == ["sexe"] and found.named("keep") == ["ocupación"]
    assert found.family.name == "lattice" and found.family.privacy["k"] == 4
    with pytest.raises(ConfigurationError, match="Did you mean: sexe"):
        an.suggest(table, quasi=["sexes"])
    with pytest.raises(ConfigurationError, match="has two roles"):
        an.suggest(table, quasi=["sexe"], keep=["sexe"])
    with pytest.raises(ConfigurationError, match="give a list of columns"):
        an.suggest(table, keep="sexe")
    with pytest.raises(ConfigurationError, match="needs a column that is an array"):
        an.suggest(table, family="set_valued")


def test_tables_that_cannot_be_looked_at(spark: SparkSession) -> None:
    with pytest.raises(DataError, match="is empty"):
        an.suggest(spark.createDataFrame([], "age int"))
    with pytest.raises(ConfigurationError, match="no column that can be read"):
        an.suggest(spark.createDataFrame([({"a": "b"},)], "notes map<string,string>"))
    with pytest.raises(ConfigurationError, match="Name some yourself"):
        an.suggest(spark.createDataFrame([(0.25 * row,) for row in range(50)], "x double"))


def test_a_look_ahead_measures_risk_and_loss(spark: SparkSession) -> None:
    found = an.suggest(raw_tables.frame(spark, raw_tables.baskets(300)).select("age", "postal_code", "religion"))
    assert found.risk is not None and found.risk.facts.look_up.rows == 300
    assert [point.k for point in found.outlook] == [5, 10, 50]
    losses = [point.loss for point in found.outlook]
    assert losses == sorted(losses)
    assert "What a release would look like" in found._repr_html_()
    assert repr(found) == "Suggestion(300 rows, 3 columns, family mst, quasi-identifiers: age, postal_code)"  # no value


def test_one_line_makes_a_verified_table(spark: SparkSession) -> None:
    table = raw_tables.frame(spark, raw_tables.baskets(300))
    release = an.anonymize(table, k=5, quasi=["age", "postal_code"], sensitive=["religion"])
    assert release.columns == ["age", "postal_code", "religion"] and release.count() == 300
    assert an.verify(release, an.KAnonymity(5, ("age", "postal_code"))).passed
    assert release.collect() == release.collect()  # a retried task changes neither rows nor their order
    with pytest.warns(UserWarning, match="goes through Spark"):
        again = an.anonymize(table.select("age", "religion").toPandas(), k=5, quasi=["age"])
    assert list(again.columns) == ["age"] and again.groupby("age").size().min() >= 5
    with pytest.raises(ConfigurationError, match="several rows"):
        an.anonymize(frame(spark, "dates"), k=5)
