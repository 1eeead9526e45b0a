"""The result of a verifier: one frozen value with counts, and the violations as a lazy frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from html import escape
from typing import Any

from pyspark.sql import DataFrame

from anon_spark.errors import GuaranteeViolated


class Kind(StrEnum):
    """The subject of a check; code selects checks by this, not by their names."""

    PUBLICATION = "publication"  # nobody changed the table since
    COLUMNS = "columns"
    METADATA = "metadata"
    PROMISE = "promise"  # the guarantee
    TRUTH = "truth"  # every row is true of a record
    PERSONS = "persons"
    SERIES = "series"  # everybody is published once
    ROWS = "rows"
    ORDER = "order"
    DRAW = "draw"
    ATTACK = "attack"
    BOUND = "bound"  # of loss


@dataclass(frozen=True, eq=False)
class Verdict:
    """The outcome of one check.

    kind: what it is about; name: what was checked; passed: whether the release may be published as far as this check goes;
    violations and checked: how many of how many (what is counted, `detail` says); facts: small numbers for the report; frame: the
    violations, lazily, or None. The frame holds published values and is for the eyes of the job's owner only; `detail`, `facts`
    and the error of `require` never hold the value of a record.
    """

    name: str
    passed: bool
    violations: int
    checked: int
    detail: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    frame: DataFrame | None = None
    kind: Kind = field(kw_only=True)

    def require(self) -> Verdict:
        """Returns itself when passed; otherwise raises GuaranteeViolated with counts only. Cost: none."""
        if not self.passed:
            raise GuaranteeViolated(
                f"{self.name}: {self.detail} Nothing may be published from this release.",
                check=self.name,
                violations=self.violations,
                checked=self.checked,
            )
        return self

    def __bool__(self) -> bool:
        return self.passed

    def _repr_html_(self) -> str:
        color = "#1a7f37" if self.passed else "#b42318"
        word = "✓ passed" if self.passed else "✗ FAILED"
        return (
            f"<p><strong>{escape(self.name)}</strong> <span style='color: {color}; font-weight: bold'>{word}</span><br>"
            f"{escape(self.detail)}</p>"
        )

    def __str__(self) -> str:
        return f"{self.name}: {'passed' if self.passed else 'FAILED'}. {self.detail}"


def combined(*verdicts: Verdict) -> Verdict:
    """One verdict over several: passed iff all passed; counts add up, facts stay under each check's name."""
    if len(verdicts) == 1:
        return verdicts[0]
    failed = [verdict for verdict in verdicts if not verdict.passed]
    return Verdict(
        kind=verdicts[0].kind if verdicts else Kind.PROMISE,
        name=" and ".join(verdict.name for verdict in verdicts),
        passed=bool(verdicts) and not failed,
        violations=sum(verdict.violations for verdict in verdicts),
        checked=sum(verdict.checked for verdict in verdicts),
        detail=" ".join(str(verdict) for verdict in failed) or f"{len(verdicts)} checks, none failed.",
        facts={verdict.name: dict(verdict.facts) for verdict in verdicts},
        frame=failed[0].frame if failed else None,
    )
