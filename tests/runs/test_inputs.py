"""Tables with features of Delta as input: each is published as it reads, or clearly refused. The table is in docs/inputs.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anon_spark.errors import ConfigurationError, DataError
from tests.town import QUASI, Town, people

SCHEMA = "person_id bigint, name string, age bigint, sex string, city string, disease string, weight bigint"
ROWS = 60
NESTED = "map('a', 1) AS a_map, parse_json('{\"b\": 2}') AS a_variant, named_struct('c', named_struct('d', 3)) AS a_struct"


@pytest.fixture(scope="module")
def home(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A town whose input each test makes anew, as a table of the catalog's default schema or as a path."""
    town = Town.founded(spark, tmp_path_factory.mktemp("inputs") / "town", people(rows=ROWS))
    town.spark.read.format("delta").load(str(town.folder / "people")).createOrReplaceTempView("townspeople")
    return town


def made(town: Town, name: str, clauses: str = "", columns: str = SCHEMA, listed: str = "*") -> str:
    """The path of a new Delta table with the townspeople."""
    path = f"{town.folder}/{name}"
    town.spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta {clauses}")
    target = f"delta.`{path}`" + ("" if listed == "*" else f" ({listed})")
    town.spark.sql(f"INSERT INTO {target} SELECT {listed} FROM townspeople")
    return path


def deletion_vectors(town: Town) -> str:
    path = made(town, "vectors", "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    town.spark.sql(f"DELETE FROM delta.`{path}` WHERE person_id % 10 = 3")
    assert list(Path(path).glob("deletion_vector_*.bin"))
    return path


def mapped_by_name(town: Town) -> str:
    path = made(town, "by_name", "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    town.spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN name TO full_name")
    town.spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN full_name TO name")
    town.spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN person_id")
    return path


def mapped_by_id(town: Town) -> str:
    return made(town, "by_id", "TBLPROPERTIES ('delta.columnMapping.mode' = 'id')")


def change_data_feed(town: Town) -> str:
    path = made(town, "feed", "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    town.spark.sql(f"UPDATE delta.`{path}` SET weight = weight + 1 WHERE person_id % 10 = 3")
    return path


def constraints_and_generated_columns(town: Town) -> str:
    columns = SCHEMA.replace("weight bigint", "weight bigint GENERATED ALWAYS AS (100 + person_id % 8)")
    path = made(town, "generated", columns=columns, listed="person_id, name, age, sex, city, disease")
    town.spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT of_age CHECK (age > 17)")
    return path


def identity(town: Town) -> str:
    columns = SCHEMA.replace("person_id bigint", "person_id bigint GENERATED ALWAYS AS IDENTITY")
    return made(town, "identity", columns=columns, listed="name, age, sex, city, disease, weight")


def unused_nested_columns(town: Town) -> str:
    path = f"{town.folder}/nested"
    town.spark.sql(f"SELECT *, {NESTED} FROM townspeople").write.format("delta").save(path)
    return path


def partitioned(town: Town) -> str:
    return made(town, "partitioned", "PARTITIONED BY (city, sex)")


def clustered(town: Town) -> str:
    path = made(town, "clustered", "CLUSTER BY (city, age)")
    town.spark.sql(f"OPTIMIZE delta.`{path}`")
    return path


def widened(town: Town) -> str:
    path = made(
        town, "widened", "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')", SCHEMA.replace("age bigint", "age int")
    )
    town.spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN age TYPE bigint")
    town.spark.sql(f"INSERT INTO delta.`{path}` SELECT * FROM townspeople")  # files with either type
    return path


def many_files(town: Town) -> str:
    path = f"{town.folder}/many"
    frame = town.spark.table("townspeople").crossJoin(F.broadcast(town.spark.range(17, numPartitions=1))).drop("id")
    frame.coalesce(1).write.format("delta").option("maxRecordsPerFile", 1).save(path)
    assert len(list(Path(path).glob("*.parquet"))) == 17 * ROWS
    return path


def external(town: Town) -> str:
    path = made(town, "elsewhere")
    town.spark.sql(f"CREATE TABLE default.inputs_external USING delta LOCATION '{path}'")
    return "default.inputs_external"


def all_at_once(town: Town) -> str:
    """Every feature that goes with the others in one table."""
    features = ("columnMapping.mode' = 'name", *(f"enable{name}' = 'true" for name in FEATURES))
    properties = ", ".join(f"'delta.{feature}'" for feature in features)
    columns = SCHEMA.replace("weight bigint", "weight bigint GENERATED ALWAYS AS (100 + person_id % 8)")
    columns = columns.replace("age bigint", "age int")
    columns += ", a_map map<string, int>, a_variant variant, a_struct struct<c: struct<d: int>>"
    path = f"{town.folder}/all"
    town.spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta CLUSTER BY (city, sex) TBLPROPERTIES ({properties})")
    listed = "person_id, name, age, sex, city, disease"
    columns = f"{listed}, a_map, a_variant, a_struct"
    town.spark.sql(f"INSERT INTO delta.`{path}` ({columns}) SELECT {listed}, {NESTED} FROM townspeople")
    for statement in (
        "ALTER TABLE {} ALTER COLUMN age TYPE bigint",
        "ALTER TABLE {} ADD CONSTRAINT of_age CHECK (age > 17)",
        "DELETE FROM {} WHERE person_id % 10 = 3",
        "ALTER TABLE {} DROP COLUMN a_struct",
    ):
        town.spark.sql(statement.format(f"delta.`{path}`"))
    town.spark.sql(f"INSERT INTO delta.`{path}` ({listed}) SELECT {listed} FROM townspeople")  # files of either type
    assert list(Path(path).rglob("deletion_vector_*.bin"))
    return path


FEATURES = ("DeletionVectors", "ChangeDataFeed", "TypeWidening")
ALONE: list[Callable[[Town], str]] = [
    deletion_vectors, mapped_by_name, mapped_by_id, change_data_feed, constraints_and_generated_columns, identity,
    unused_nested_columns, partitioned, clustered, widened, external,
]  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [all_at_once, *(pytest.param(make, marks=pytest.mark.long) for make in (many_files, *ALONE))],
    ids=lambda make: make.__name__,
)
def test_table_is_published_as_it_reads(home: Town, make: Callable[[Town], str]) -> None:
    table = make(home)
    by_path = "/" in table
    source = home.spark.read.format("delta").load(table) if by_path else home.spark.read.table(table)
    rows = source.select("disease", "weight").collect()

    report = home.run(
        input__table=table, output__table=f"./release_{make.__name__}", output__report=None, privacy__suppression=0.0
    )

    assert report.status == "published" and all(check.passed for check in report.checks)
    release = home.spark.read.format("delta").load(f"{home.folder}/release_{make.__name__}")
    assert release.columns == [*QUASI, "disease", "weight"]
    assert Counter((row.disease, row.weight) for row in release.collect()) == Counter(map(tuple, rows))
    # nothing of the input's own features is handed on
    detail = home.spark.sql(f"DESCRIBE DETAIL delta.`{home.folder}/release_{make.__name__}`").collect()[0]
    assert detail.partitionColumns == [] and "delta.columnMapping.mode" not in detail.properties


@pytest.mark.long
def test_timestamps_without_zone_are_days(home: Town) -> None:
    path = f"{home.folder}/ntz"
    born = "CAST(make_date(1960 + CAST(age AS int), 1 + CAST(age % 2 AS int), 5) AS timestamp_ntz) AS born"
    home.spark.sql(f"SELECT *, {born} FROM townspeople").write.format("delta").save(path)

    report = home.run(
        input__table=path,
        columns__quasi_identifiers={"born": {"date": ["year", "decade", "century"]}},
        output__table="./release_ntz",
        output__report=None,
    )

    assert report.status == "published" and all(check.passed for check in report.checks)


@pytest.mark.long
def test_collated_texts_are_compared_by_bytes(home: Town) -> None:
    """Delta has no collated columns yet, Parquet has. Two spellings that the collation calls equal are two values."""
    path = f"{home.folder}/collated"
    spelt = "collate(IF(person_id % 2 = 0, city, upper(city)), 'UTF8_LCASE') AS city"
    home.spark.sql(f"SELECT * EXCEPT (city), {spelt} FROM townspeople").write.parquet(path)
    changes = {"input__table": path, "input__format": "parquet", "output__table": "./release_collated", "output__report": None}

    with pytest.raises(DataError, match="hierarchies do not know: city: 4 values in 30 rows"):
        home.run(**changes)
    report = home.run(**changes, on_unseen="suppress")

    assert report.status == "published" and all(check.passed for check in report.checks)
    assert report.accounting["dropped_unseen"] == 30


def test_a_view_is_refused_and_says_what_to_do(home: Town) -> None:
    home.spark.sql(f"CREATE VIEW default.inputs_view AS SELECT * FROM delta.`{home.folder}/people`")
    before = home.listing()

    with pytest.raises(ConfigurationError, match=r"no Delta table at default\.inputs_view\..* write it to a table"):
        home.run(input__table="default.inputs_view")

    home.job_file()
    assert {name for name in home.listing() if name not in before} <= {"job.yaml"}
