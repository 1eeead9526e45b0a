"""Facts for the report on simulated link attacks on a nonreciprocal recoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from anon_spark.model.estimate import Estimate
from anon_spark.risk.item_sets.known_link import KnownLinkRisk

Attack = Literal["fit", "simulation"]


@dataclass(frozen=True)
class LinkAttack:
    """The share of rows that each attack found in fresh draws, how sure that is, what was promised and what is refused.

    For the attacks `fit` and `simulation` see RelinkRisk; an interval covers the true rate with 95 %.
    """

    sampled_records: int
    fresh_draws: int
    rate_by_fit: float
    rate_by_simulation: float
    interval_from_by_fit: float
    interval_to_by_fit: float
    standard_error_by_fit: float | None
    standard_errors_above_the_promise_by_fit: float | None
    interval_from_by_simulation: float
    interval_to_by_simulation: float
    standard_error_by_simulation: float | None
    standard_errors_above_the_promise_by_simulation: float | None
    promised_at_most: float
    refused_from_a_rate_of: float

    @classmethod
    def of(cls, records: int, draws: int, fit: Estimate, simulation: Estimate, refused_from: float) -> LinkAttack:
        """The facts from the estimates of both attacks, which have one promise."""
        by_fit, by_simulation = fit.facts(), simulation.facts()
        return cls(
            sampled_records=records,
            fresh_draws=draws,
            rate_by_fit=fit.rate,
            rate_by_simulation=simulation.rate,
            interval_from_by_fit=by_fit["interval_from"],
            interval_to_by_fit=by_fit["interval_to"],
            standard_error_by_fit=by_fit["standard_error"],
            standard_errors_above_the_promise_by_fit=by_fit["standard_errors_above_the_promise"],
            interval_from_by_simulation=by_simulation["interval_from"],
            interval_to_by_simulation=by_simulation["interval_to"],
            standard_error_by_simulation=by_simulation["standard_error"],
            standard_errors_above_the_promise_by_simulation=by_simulation["standard_errors_above_the_promise"],
            promised_at_most=fit.promise,
            refused_from_a_rate_of=refused_from,
        )

    @property
    def estimates(self) -> Mapping[Attack, Estimate]:
        """The rate of each attack beside the promise."""
        promise = self.promised_at_most
        return {
            "fit": Estimate(self.rate_by_fit, self.standard_error_by_fit, promise),
            "simulation": Estimate(self.rate_by_simulation, self.standard_error_by_simulation, promise),
        }


@dataclass(frozen=True)
class KnownLinkRate:
    """The rate at which a record's own row is found; the interval covers the true rate with 95 %."""

    rate: float
    interval_from: float
    interval_to: float
    standard_error: float | None
    standard_errors_above_the_promise: float | None

    @classmethod
    def of(cls, estimate: Estimate) -> KnownLinkRate:
        return cls(estimate.rate, **estimate.facts())


@dataclass(frozen=True)
class KnownLink:
    """The rates with one known link, by its kind, see KnownLinkRisk; None for a kind that no pair of the records has."""

    none: KnownLinkRate | None
    neighbour: KnownLinkRate | None
    other: KnownLinkRate | None

    @classmethod
    def of(cls, risks: Sequence[KnownLinkRisk]) -> KnownLink:
        """The facts from the risks of all kinds; a missing one is None."""
        rates = {risk.kind: KnownLinkRate.of(risk.estimate) for risk in risks if risk.estimate is not None}
        return cls(rates.get("none"), rates.get("neighbour"), rates.get("other"))
