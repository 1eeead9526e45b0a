"""Row accounting: every row of the source is published, suppressed or dropped by a stated policy, and counted once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pyspark.sql import Row

from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.errors import ConfigurationError, did_you_mean


@dataclass(frozen=True)
class RowAccount:
    """The account of the source's rows, as the audit counted them.

    suppressed: rows of classes that are wholly absent from the release (`suppressed_classes` of them), or of tuples that a
    local recoding leaves out; dropped_nulls:
    rows with a null quasi-identifier under the policy `suppress`; dropped_unseen: rows with a value no hierarchy knows
    (a row with both counts as a null).
    """

    source: int
    published: int
    suppressed: int
    dropped_nulls: int
    dropped_unseen: int
    suppressed_classes: int

    @classmethod
    def without_suppression(cls, counts: Mapping[str, Any] | Row) -> RowAccount:
        """The account of a method that suppresses nothing: a row neither published nor dropped is missing."""
        return cls(counts["source"], counts["published"], 0, counts["dropped_nulls"], counts["dropped_unseen"], 0)

    @property
    def balance(self) -> int:
        """Source rows nobody accounts for (negative: rows that came from nowhere)."""
        return self.source - self.published - self.suppressed - self.dropped_nulls - self.dropped_unseen


def verify_rows(
    account: RowAccount, budget: int, claimed: Mapping[str, int], figures: Mapping[str, tuple[int, int]] | None = None
) -> Verdict:
    """Whether the rows add up, the suppression stays within its budget, and the run's own figures are the audit's.

    claimed: what the run says, under names of RowAccount's fields; a figure that is not claimed is not compared. figures:
    others, under names of their own: what the run says, and what the audit counted.
    Guarantee: passed iff all three hold; policies' drops stand outside the budget. Cost: none, plain numbers.
    violations and checked count figures.
    """
    counts = asdict(account)
    known = [field.name for field in fields(RowAccount)]
    unknown = [name for name in claimed if name not in counts]
    if unknown:
        raise ConfigurationError(
            "Figures not known to the row account: " + ", ".join(f"{name}.{did_you_mean(name, known)}" for name in unknown)
        )
    faults = []
    if account.balance > 0:
        faults.append(f"{account.balance} of {account.source} source rows are neither published nor accounted for.")
    if account.balance < 0:
        faults.append(f"{-account.balance} rows are published that the source does not have.")
    if account.suppressed > budget:
        faults.append(f"{account.suppressed} rows are suppressed, the budget is {budget}.")
    compared = {**{name: (value, counts[name]) for name, value in claimed.items()}, **(figures or {})}
    for name, (value, counted) in compared.items():
        if counted != value:
            faults.append(f"the run claims {name} = {value}, the audit counts {counted}.")
    passed = (
        f"{account.source} source rows = {account.published} published + {account.suppressed} suppressed (budget {budget})"
        f" + {account.dropped_nulls} dropped for nulls + {account.dropped_unseen} dropped for unseen values."
    )
    return Verdict(
        kind=Kind.ROWS,
        name="row accounting",
        passed=not faults,
        violations=len(faults),
        checked=2 + len(compared),
        detail=" ".join(faults) or passed,
        facts={**counts, "budget": budget},
    )
