"""Kept columns that give a quasi-identifier back, and columns that only look like it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing import Dependency, find_dependencies
from anon_spark.auditing.release import dependencies
from tests.auditing.town import frame

NAMES = ["education", "country", "constant", "education_num", "serial", "nearly", "one_value", "weight", "gaps", "null_too"]
KINDS: list[pa.DataType] = [
    *[pa.string()] * 3, pa.int32(), pa.int64(), pa.int64(), pa.string(), pa.float64(), pa.int64(), pa.string()
]  # fmt: skip
KEPT = NAMES[3:]


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> DataFrame:
    levels = ["school", "college", "master", "doctor"]
    rows = []
    for at in range(120):
        education = levels[at % 4]
        country = ["here", "there", "elsewhere"][at // 4 % 3]
        nearly = at if at != 119 else 0  # one value twice: no identifier, and the only row that refutes
        gap = at if at % 10 else None  # unique where it is there
        null_too = None if education == "school" else education.upper()
        rows.append((education, country, "same", at % 4 * 2, at, nearly, "x", float(at % 9), gap, null_too))
    return frame(spark, rows, NAMES, KINDS)


def found(people: DataFrame, rows: int | None = None) -> list[Dependency]:
    return find_dependencies(people, KEPT, ["education", "country", "constant"], rows)


def test_twins_and_identifiers_are_found_and_nothing_else(people: DataFrame) -> None:
    both = ("education", "country")
    everything = found(people)
    assert everything == [
        Dependency("education_num", ("education",), "determines"),  # pitfall 9
        Dependency("serial", both, "identifier"),
        Dependency("gaps", (), "identifier"),
        Dependency("null_too", ("education",), "determines"),
        Dependency("education_num", ("country",), "determines", "weight"),  # by 4 and by 9 is by 36: country, which goes by 12
        Dependency("weight", ("country",), "determines", "null_too"),
    ]
    assert "Columns education_num and weight together determine country" in str(everything[4])
    assert "education_num determines education" in str(everything[0])


def test_the_sample_decides_nothing_by_itself(people: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = found(people)
    monkeypatch.setattr(dependencies, "SAMPLE", 3)  # a handful of rows: nearly all pairs are left to the second job
    for partitions in (1, 2, 7):
        assert found(people.repartition(partitions), 120) == everything


def test_a_table_without_candidates_or_rows(people: DataFrame) -> None:
    assert find_dependencies(people, [], ["education"]) == []
    assert find_dependencies(people.limit(0), KEPT, ["education"]) == []
    assert find_dependencies(people, ["one_value", "weight"], ["constant", "country"]) == []
