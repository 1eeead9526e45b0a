"""Working with a release: ends and middles of labels, counts between bounds that hold, comments and the data dictionary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anon_spark as an
from anon_spark.auditing.release.hygiene import verify_metadata
from anon_spark.errors import ConfigurationError
from anon_spark.releases import Counted, Release
from anon_spark.runs.audit import audit
from tests.often import often
from tests.town import Town, people

AGE = an.Hierarchy.intervals(20, 59, [10, 20])
CITIES = {"Aldorf": "North", "Bexley": "North", "Carden": "South", "Dunmore": "South"}
CITY = an.Hierarchy.from_levels([(city, region, "*") for city, region in CITIES.items()])


def release(df: DataFrame, **hierarchies: an.Hierarchy) -> Release:
    return Release(df, "somewhere", 0, {"family": "mst"}, hierarchies)


@pytest.fixture(scope="module")
def labels(spark: SparkSession) -> DataFrame:
    rows = [("[20, 29]", "North"), ("25", "Aldorf"), ("[40, 59]", "*"), ("*", "South"), (None, None)]
    return spark.createDataFrame(rows, "age string, city string")


def test_ends_and_middle_of_a_label(labels: DataFrame) -> None:
    found = release(labels)
    rows = labels.select(found.lower("age").alias("l"), found.upper("age").alias("u"), found.midpoint("age").alias("m")).collect()
    assert [tuple(row) for row in rows] == [
        (20, 29, 24.5), (25, 25, 25), (40, 59, 49.5), (None, None, None), (None, None, None),
    ]  # fmt: skip


def test_bounds_that_were_published_are_ends(spark: SparkSession) -> None:
    df = spark.createDataFrame([(20, 29, (1.5, 2.5))], "age_lo int, age_hi int, income struct<lo:double,hi:double>")
    found = release(df)
    row = df.select(found.midpoint("age").alias("a"), found.midpoint("income").alias("i")).first()
    assert row is not None and tuple(row) == (24.5, 2.0)
    assert found.count(age=(29, 40)) == Counted(0, 0.0, 1)


@pytest.mark.parametrize(
    ("conditions", "least", "most"),
    [
        ({"age": (20, 30)}, 2, 3), ({"age": (29, 40)}, 0, 3), ({"age": (60, 70)}, 0, 1), ({"city": "Aldorf"}, 1, 2),
        ({"age": (20, 59), "city": "Aldorf"}, 1, 2),
    ],
)  # fmt: skip
def test_counts_lie_between_bounds(labels: DataFrame, conditions: dict[str, Any], least: int, most: int) -> None:
    counted = release(labels).count(**conditions)
    assert (counted.least, counted.most) == (least, most) and least <= counted.expected <= most


def test_a_hierarchy_says_what_a_group_stands_for(labels: DataFrame) -> None:
    found = release(labels, age=AGE, city=CITY)
    assert found.count(city="Aldorf") == Counted(1, 1 + 0.5 + 0.25, 3)  # North and * may be Aldorf
    assert found.count(city="Carden").most == 2 and found.count(city="nowhere").most == 0
    ages = found.count(age=(29, 40))
    assert (ages.least, ages.most) == (0, 3) and ages.expected == pytest.approx(0.1 + 0.05 + 12 / 40)


def test_counts_hold_on_a_real_release(spark: SparkSession, tmp_path: Path) -> None:
    town = Town.founded(spark, tmp_path / "town", people())
    town.run(family="mst", columns__keep=[])
    found = an.read_release(spark, str(tmp_path / "town" / "release"), {"age": AGE, "city": CITY})
    source = spark.read.format("delta").load(str(tmp_path / "town" / "people"))
    for city, ages in (("Aldorf", (20, 39)), ("Carden", (31, 44))):
        true = source.where((F.col("city") == city) & F.col("age").between(*ages)).count()
        counted = found.count(city=city, age=ages)
        assert counted.least <= true <= counted.most and abs(counted.expected - true) <= max(5, 0.5 * true)
    assert found.family == "mst" and found.version == 0


def test_what_is_no_release_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "plain")
    spark.range(3).write.format("delta").save(place)
    with pytest.raises(ConfigurationError, match="no release of anon-spark"):
        an.read_release(spark, place)
    with pytest.raises(ConfigurationError, match="Did you mean: age"):
        release(spark.createDataFrame([("1",)], "age string")).count(aeg=(1, 2))


@pytest.mark.parametrize("family", often(["lattice", "mst"], {"lattice"}))
def test_comments_and_dictionary_tell_what_was_done(spark: SparkSession, tmp_path: Path, family: str) -> None:
    town = Town.founded(spark, tmp_path / "town", people())
    changes: dict[str, Any] = {"family": family, "columns__keep": []}
    town.run(**changes)
    written = town.release
    comments = {field.name: field.metadata.get("comment", "") for field in written.schema.fields}
    assert comments["age"].startswith("Generalized: ranges of numbers.")
    assert comments["disease"] == "Sensitive. Published unchanged."
    entries = json.loads((tmp_path / "town" / "report" / "town.dictionary.json").read_text(encoding="utf-8"))["entries"]
    assert [entry["column"] for entry in entries if entry["label"] is None][:4] == ["age", "sex", "city", "disease"]
    labels = {(entry["column"], entry["label"]): entry for entry in entries if entry["label"] is not None}
    shown = {(name, row[0]) for name in ("age", "sex", "city") for row in written.select(name).distinct().collect()}
    assert set(labels) == shown  # no label that the release does not show, and none is missing
    for (name, label), entry in labels.items():
        assert entry["share"] == pytest.approx(written.where(F.col(name) == label).count() / written.count())
        if name == "age" and label.startswith("["):
            assert [entry["lowest"], entry["highest"]] == label.strip("[]").split(", ")
    assert all(verdict.passed for verdict in audit(town.job(**changes), spark))


@pytest.mark.long
def test_a_dictionary_can_be_a_table(spark: SparkSession, tmp_path: Path) -> None:
    town = Town.founded(spark, tmp_path / "town", people())
    changes: dict[str, Any] = {"columns__keep": [], "output__dictionary": "./words"}
    town.run(**changes)
    words = spark.read.format("delta").load(str(tmp_path / "town" / "words"))
    assert words.where("label is null").count() == 4 and words.where("label is not null").count() > 0
    others = spark.range(3).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    others.save(str(tmp_path / "town" / "words"))
    with pytest.raises(ConfigurationError, match="no dictionary of anon-spark"):
        town.run(**changes, privacy__k=4)


def test_only_our_comment_may_stand_on_a_column(spark: SparkSession) -> None:
    df = spark.createDataFrame([("x",)], "age string")
    ours = df.select(F.col("age").alias("age", metadata={"comment": "Generalized."}))
    assert verify_metadata(ours, {"age": "Generalized."}).passed
    assert not verify_metadata(ours).passed
    other = df.select(F.col("age").alias("age", metadata={"comment": "37, 38, 39"}))
    assert not verify_metadata(other, {"age": "Generalized."}).passed
    more = df.select(F.col("age").alias("age", metadata={"comment": "Generalized.", "values": "37"}))
    assert not verify_metadata(more, {"age": "Generalized."}).passed
