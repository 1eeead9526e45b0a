"""k-map and δ-presence: classes that the population makes too rare or too sure, and populations that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing import Verdict, completed_with_population, verify_population
from anon_spark.engine import in_one_task
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from anon_spark.model.hierarchy import Hierarchy
from tests.auditing.town import PEOPLE, Row, frame, honest, recoding, town

COLUMNS = {"age": "years", "zip": "post.code"}
# the town twice, a stranger in the class ([20, 24], 1485*), and somebody whose age no hierarchy knows; by class, rows of the
# release and of the population: 6 and 12, 5 and 10, 4 and 9, 3 and 6
EVERYBODY: list[Row] = [(str(row[0]), row[1]) for row in [*PEOPLE, *PEOPLE]] + [("24", "14850"), ("99", "14850")]


def population(spark: SparkSession, rows: Sequence[Row] = EVERYBODY, partitions: int | None = None) -> DataFrame:
    return frame(spark, rows, list(COLUMNS.values()), [pa.string(), pa.string()], partitions)


def classes(verdict: Any) -> dict[Any, tuple[int, int]]:
    return {tuple(row)[:2]: tuple(row)[2:] for row in verdict.frame.collect()}


def test_each_class_is_counted_in_both_tables(spark: SparkSession) -> None:
    def verified(number: int) -> tuple[Verdict, ...]:
        release, people = frame(spark, honest(), partitions=number), population(spark, partitions=number)
        return verify_population(release, people, recoding(), COLUMNS, 9, (0.45, 0.5), town(spark, partitions=number))

    found = [verified(number) for number in (1, 2, 7)]
    with in_one_task(True):
        found.append(verified(1))
    there, mapped, presence = found[0]
    for other in found[1:]:
        assert [(one.facts, one.detail) for one in other] == [(one.facts, one.detail) for one in found[0]]
    assert there.passed and there.facts == {
        "combinations": 18, "rows": 20, "missing": 0, "rows_missing": 0, "population": 42, "population_in_no_class": 1,
    }  # fmt: skip
    assert not mapped.passed and (mapped.violations, mapped.checked, mapped.name) == (1, 4, "9-map")
    assert classes(mapped) == {("[25, 29]", "1485*"): (3, 6)}
    assert (mapped.facts["smallest"], mapped.facts["rows_in_violation"], mapped.facts["map_k"]) == (6, 3, 9)
    assert mapped.detail == "1 of 4 classes have fewer than 9 rows of the population (3 of 18 rows, fewest 6)."
    assert not presence.passed and presence.violations == 1 and classes(presence) == {("[20, 24]", "1485*"): (4, 9)}
    assert presence.facts["least"] == pytest.approx(4 / 9) and presence.facts["most"] == 0.5
    with pytest.raises(GuaranteeViolated, match="1 of 4 classes have a share of the population's rows that is not from"):
        presence.require()


def test_bounds_are_allowed_and_decided_in_integers(spark: SparkSession) -> None:
    release, everybody = frame(spark, honest()), population(spark)
    almost = Fraction(4, 9) + Fraction(1, 10**17)
    for map_k, bounds, passed in (
        (6, (Fraction(4, 9), Fraction(1, 2)), [True, True]),
        (7, (almost, Fraction(1, 2)), [False, False]),
        (6, (0, 0.4999999999999999), [True, False]),
    ):
        verdicts = verify_population(release, everybody, recoding(), COLUMNS, map_k, bounds)
        assert [verdict.passed for verdict in verdicts] == passed


def test_a_combination_that_is_not_in_the_population(spark: SparkSession) -> None:
    others = [row for row in EVERYBODY if row != ("22", "13068") and row[0] not in ("26", "27", "28")]
    source = town(spark, [*PEOPLE, (99, "13051", "gout", 1.0), (None, "13051", "hiv", 1.0)])
    (there,) = verify_population(frame(spark, honest()), population(spark, others), recoding(), COLUMNS, source=source)
    missing = {row[:2] for row in PEOPLE if row[0] in (26, 27, 28) or row[:2] == (22, "13068")} | {(None, "13051")}
    assert not there.passed and (there.violations, there.checked) == (len(missing), 19)
    assert "combinations of the source are not in the population" in there.detail
    # nulls are dropped, and a class nobody of the population is in fails both
    alone = [row for row in EVERYBODY if row[0] < "25"]
    verdicts = verify_population(
        frame(spark, honest()), population(spark, alone), recoding(), COLUMNS, 2, (0, 1), source, nulls="suppress"
    )
    assert [verdict.violations for verdict in verdicts] == [8, 2, 2] and verdicts[2].facts["unknown"] == 2
    nothing = verify_population(frame(spark, honest()).where("zip = 'none'"), population(spark), recoding(), COLUMNS, 2, (0, 1))
    assert not any(nothing) and all("empty" in verdict.detail for verdict in nothing)


def test_rules_know_the_population_and_keep_their_levels(spark: SparkSession) -> None:
    source = frame(spark, [("13051", "2020-03-05"), ("13068", "2020-03-09")], ["zip", "day"], [pa.string()] * 2)
    others: list[Row] = [("13059", "2020-03-01"), ("1306", "2021-05-01"), ("130512", "2020-03-05"), (None, None)]
    people = frame(spark, others, ["z", "d"], [pa.string()] * 2)
    jobs = {"zip": Hierarchy.mask(), "day": Hierarchy.dates(["month", "year"])}
    known = completed_with_population(source, people, {"zip": "z", "day": "d"}, jobs, "value")
    assert set(known["zip"].keys) == {"13051", "13068", "13059", "1306"} and known["zip"].height == 5
    assert {"2020-01-01", "2021-12-31"} <= set(known["day"].keys)
    fixed = Hierarchy.mask(["13051", "13068"], length=6)
    rest = completed_with_population(source, people, {"zip": "z"}, {"zip": fixed}, "value")
    assert rest["zip"].height == 6 and "130512" in rest["zip"].keys


def test_wrong_arguments_are_refused(spark: SparkSession) -> None:
    release, everybody = frame(spark, honest()), population(spark)
    refused: list[tuple[str, dict[str, Any]]] = [
        ("Nothing to verify", {}),
        ("for each quasi-identifier", {"columns": {"age": "years"}, "map_k": 2}),
        ("not found in the population: zip", {"columns": {"age": "years", "zip": "zip"}, "map_k": 2}),
        ("k is 1", {"map_k": 1}),
        ("Give the least first", {"presence": (0.5, 0.1)}),
        ("fewer than 18 digits", {"presence": (0, Fraction(1, 10**20))}),
        ("nulls must be", {"map_k": 2, "nulls": "drop"}),
        ("not found in the source", {"source": release.select(F.col("age"))}),
    ]
    for message, arguments in refused:
        with pytest.raises(ConfigurationError, match=message):
            verify_population(release, everybody, recoding(), **{"columns": COLUMNS, **arguments})
