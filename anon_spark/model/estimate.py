"""Comparison of a simulated rate with the promised one, in standard errors, and the thresholds that decide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

LOOK_ERRORS = 3.0  # standard errors above the promise from which a rate is a finding: one-sided, chance of about 1 in 740
REFUSED_ERRORS = 4.5  # from which a release is refused: chance of about 1 in 300,000
INTERVAL_ERRORS = 1.96  # on both sides: covers the true rate in 95 of 100 simulations
ROUNDING = 1e-9  # rates are sums of doubles

RULE = (
    f"The rule: from {LOOK_ERRORS:g} standard errors above the promise on a simulated rate is a finding to look at (by chance "
    f"about once in 740 simulations); what no sound release shows more often than once in 300,000 simulations, as far out as "
    f"{REFUSED_ERRORS:g} standard errors, is refused. Less than that is chance."
)
EXACT_RULE = (
    "The rule: the worst chance is counted, not estimated, so no standard error excuses it. One sampled record above the "
    "promise is a finding to look at; the audit, which counts all rows, refuses the release by itself."
)


class Certainty(TypedDict):
    """How sure a simulated rate is; the interval covers the true rate with 95 %."""

    interval_from: float
    interval_to: float
    standard_error: float | None
    standard_errors_above_the_promise: float | None


@dataclass(frozen=True)
class Estimate:
    """A rate that was simulated, its standard error (None: unknown) and the highest rate that was promised."""

    rate: float
    error: float | None
    promise: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the true rate; the whole range if the standard error is unknown."""
        if self.error is None:
            return 0.0, 1.0
        return max(0.0, self.rate - INTERVAL_ERRORS * self.error), min(1.0, self.rate + INTERVAL_ERRORS * self.error)

    @property
    def errors_above(self) -> float:
        """How many standard errors the rate is above the promise; below 0 where it is below."""
        above = self.rate - self.promise
        if abs(above) <= ROUNDING:
            return 0.0
        if self.error is None:
            return 0.0
        return math.copysign(math.inf, above) if self.error == 0 else above / self.error

    @property
    def noticed(self) -> bool:
        """Whether the rate is above the promise by more than chance."""
        return self.errors_above >= LOOK_ERRORS

    def facts(self) -> Certainty:
        """The certainty of the rate, for reports."""
        low, high = self.interval
        above = self.errors_above
        return Certainty(
            interval_from=low,
            interval_to=high,
            standard_error=self.error,
            standard_errors_above_the_promise=above if math.isfinite(above) else None,
        )

    def __str__(self) -> str:
        low, high = self.interval
        error = "unknown" if self.error is None else f"{self.error:.4f}"
        return f"{self.rate:.4f} (95 % interval {low:.4f} to {high:.4f}, standard error {error}; {self._placed()})"

    def _placed(self) -> str:
        above = self.errors_above
        if self.rate <= self.promise + ROUNDING:
            return "not above the promise"
        if self.error is None:
            return "above the promise, too few draws to tell whether by chance"
        judged = "more than chance" if self.noticed else "chance"
        return f"{above:.1f} standard errors above the promise: {judged}"
