"""Ten random cases of all families: refused clearly, or released and judged by brute force. jobs/fuzz.py runs thousands."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.fuzz import totals
from jobs.fuzzing.cases import FAMILIES, case_of
from jobs.fuzzing.outcomes import FINDING, REFUSAL, RELEASE, Outcome, outcome_of

SEED = 1
CASES = (195, 145, 201, 241, 367, 242, 293, 143, 214, 159)  # two of each family: a refusal, a release; quick ones


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> list[Outcome]:
    return [outcome_of(spark, SEED, number, "fit") for number in CASES]


@pytest.mark.long
def test_no_case_is_a_finding(outcomes: list[Outcome]) -> None:
    assert [one for one in outcomes if one.outcome not in (RELEASE, REFUSAL)] == []
    assert {one.family for one in outcomes} == set(FAMILIES)
    assert sum(one.outcome == RELEASE for one in outcomes) >= 5
    assert f"| fit | lattice | {sum(one.outcome == RELEASE for one in outcomes if one.family == 'lattice')} |" in totals(
        [one.__dict__ for one in outcomes]
    )


def test_a_case_is_the_same_for_the_same_seed() -> None:
    assert case_of(SEED, 3).table.equals(case_of(SEED, 3).table) and case_of(SEED, 3).job == case_of(SEED, 3).job
    assert case_of(SEED + 1, 3).job != case_of(SEED, 3).job


def test_what_is_no_refusal_is_a_finding(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: object) -> None:
        raise ValueError("not on purpose")

    monkeypatch.setattr("jobs.fuzzing.outcomes.load_job", broken)
    assert outcome_of(spark, SEED, 0, "fit").outcome == FINDING
