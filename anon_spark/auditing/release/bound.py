"""The check that a release loses no more than its job allows; it is about utility, not privacy."""

from __future__ import annotations

from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.model.estimate import ROUNDING


def verify_bound(measure: str, lost: float, bound: float) -> Verdict:
    """Whether a loss is within its bound. Cost: none, plain numbers."""
    passed = lost <= bound + ROUNDING
    detail = f"{measure} is {lost:.6f}, at most {bound} was asked for."
    return Verdict("loss within delta", passed, int(not passed), 1, detail, kind=Kind.BOUND)
