"""What a guarantee refuses, what a verdict says, and the row account (no Spark)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from anon_spark.auditing import Kind, RowAccount, Verdict, verify_rows
from anon_spark.auditing.verdict import combined
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from anon_spark.model.guarantee import KAnonymity

ACCOUNT = RowAccount(source=100, published=90, suppressed=5, dropped_nulls=3, dropped_unseen=2, suppressed_classes=4)


@pytest.mark.parametrize(
    ("k", "columns", "person"),
    [(1, ["a"], None), (0, ["a"], None), (-3, ["a"], None), (True, ["a"], None), (2.0, ["a"], None), ("2", ["a"], None),
     (2, [], None), (2, "age", None), (2, ["a", "a"], None), (2, ["a"], "a")],
)  # fmt: skip
def test_a_guarantee_that_protects_nobody_is_refused(k: Any, columns: Any, person: str | None) -> None:
    with pytest.raises(ConfigurationError):
        KAnonymity(k, columns, person)


def test_a_guarantee_is_a_value_that_says_how_far_it_reaches() -> None:
    guarantee = KAnonymity(5, ["age", "zip"], person="id")
    assert guarantee == KAnonymity(5, ("age", "zip"), "id")
    assert hash(guarantee) == hash(KAnonymity(5, ["age", "zip"], "id"))
    assert "persons" in str(guarantee) and guarantee.covers
    limits = " ".join(guarantee.does_not_cover)
    assert all(word in limits for word in ("sensitive value", "Background knowledge", "Several releases", "kept"))


def test_a_failed_verdict_raises_with_counts_and_a_passed_one_is_itself() -> None:
    passed = Verdict("columns", True, 0, 4, "fine.", kind=Kind.COLUMNS)
    failed = Verdict("3-anonymity", False, 2, 7, "2 of 7 classes have fewer than 3 rows.", kind=Kind.PROMISE)
    assert passed.require() is passed and passed and not failed
    with pytest.raises(GuaranteeViolated, match="2 of 7 classes") as raised:
        failed.require()
    assert raised.value.facts == {"check": "3-anonymity", "violations": 2, "checked": 7}
    both = combined(passed, failed)
    assert (both.passed, both.violations, both.checked) == (False, 2, 11)
    assert combined(passed) is passed
    assert not combined().passed


def test_rows_that_add_up_pass() -> None:
    verdict = verify_rows(ACCOUNT, 5, {"published": 90, "suppressed": 5, "dropped_nulls": 3, "dropped_unseen": 2})
    assert verdict.passed and verdict.violations == 0


@pytest.mark.parametrize(
    ("account", "budget", "claimed", "faults"),
    [
        (replace(ACCOUNT, published=60), 5, {}, 1),  # pitfall 2: 30 rows silently gone
        (replace(ACCOUNT, published=91), 5, {}, 1),  # a row from nowhere
        (ACCOUNT, 4, {}, 1),  # over budget by one
        (ACCOUNT, 5, {"suppressed": 4}, 1),  # the run counts otherwise
        (ACCOUNT, 5, {"suppressed": 8, "dropped_nulls": 0}, 2),  # nulls booked as suppressed
        (replace(ACCOUNT, published=60), 4, {"published": 90}, 3),
    ],
)
def test_rows_that_do_not_add_up_fail(account: RowAccount, budget: int, claimed: dict[str, int], faults: int) -> None:
    verdict = verify_rows(account, budget, claimed)
    assert not verdict.passed and verdict.violations == faults
    with pytest.raises(GuaranteeViolated):
        verdict.require()


def test_a_budget_of_nothing_and_an_unknown_figure() -> None:
    nothing = RowAccount(10, 10, 0, 0, 0, 0)
    assert verify_rows(nothing, 0, {"suppressed": 0}).passed
    with pytest.raises(ConfigurationError, match="Did you mean: suppressed"):
        verify_rows(nothing, 0, {"supressed": 0})
