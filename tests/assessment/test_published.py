"""The worked example of the practice guide of the International Household Survey Network, whose numbers come from sdcMicro.

Statistical Disclosure Control: A Practice Guide (Benschop, Machingauta and Welch), chapter Measuring Risk: ten records with
frequencies, missing values, individual risk, distinct l-diversity and scores of SUDA. ARX prints no example with its inputs.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from pyspark.sql import SparkSession

from anon_spark import assess
from anon_spark.assessment.population.crowds import expected_chance

COLUMNS = ["residence", "gender", "education", "labor"]
RECORDS = [
    ("urban", "female", "secondary incomplete", "employed", "yes"),
    ("urban", "female", "secondary incomplete", "employed", "yes"),
    ("urban", "female", "primary incomplete", "non-LF", "yes"),
    ("urban", "male", "secondary complete", "employed", "yes"),
    ("rural", "female", "secondary complete", "unemployed", "yes"),
    ("urban", "male", "secondary complete", "employed", "no"),
    ("urban", "female", "primary complete", "non-LF", "no"),
    ("urban", "male", "post-secondary", "unemployed", "yes"),
    ("urban", "female", "secondary incomplete", "non-LF", "no"),
    ("urban", "female", "secondary incomplete", "non-LF", "yes"),
]
SCHEMA = ", ".join(f"{name} string" for name in (*COLUMNS, "health"))
RISKS = {(2, 360): 0.0054, (1, 215): 0.0251, (2, 152): 0.0126, (1, 186): 0.0282, (1, 180): 0.0290, (2, 262): 0.0074}
SCORES = {"primary incomplete": 6, "secondary complete": 12, "primary complete": 6, "post-secondary": 10}  # of the uniques


def test_frequencies_diversity_and_least_sets(spark: SparkSession) -> None:
    facts = assess(spark.createDataFrame(RECORDS, SCHEMA), COLUMNS, ["health"]).facts

    assert (facts.look_up.classes, facts.look_up.unique_rows, facts.look_up.average) == (7, 4, 0.7)  # fk 2 2 1 2 1 2 1 1 2 2
    (health,) = facts.disclosure
    assert (health.least_l, health.one_value_rows) == (1, 6)  # 1 1 1 2 1 2 1 1 2 2
    assert facts.column_sets is not None
    least = facts.column_sets.least
    # 6 = one set of one column; 12 = 6 + 2 + 2 + 2; 10 = 6 + 2 + 2: a set of one column counts 3 · 2 · 1, of two 2 · 1
    assert sum(SCORES.values()) == 4 * 6 + 5 * 2
    assert (least.by_number, least.by_size) == ({1: 2, 3: 1, 4: 1}, {1: 4})
    assert (least.uniques, least.special) == (4, 4)


def test_missing_values_agree_with_all(spark: SparkSession) -> None:
    records = [(*record[:2], None, None, record[4]) if at == 3 else record for at, record in enumerate(RECORDS)]

    facts = assess(spark.createDataFrame(records, SCHEMA), COLUMNS).facts

    assert facts.wildcards is not None
    assert facts.null_rows == 1
    frequencies = [2, 2, 1, 3, 1, 2, 1, 2, 2, 2]
    assert facts.wildcards.unique_rows == frequencies.count(1)
    assert facts.wildcards.average == pytest.approx(sum(1 / size for size in frequencies) / 10)


@pytest.mark.parametrize(("size", "population"), RISKS)
def test_individual_risk(size: int, population: int) -> None:
    chance = expected_chance(np.array([float(size)]), size / population)[0]

    assert math.isclose(chance, RISKS[size, population], abs_tol=5.1e-5)
