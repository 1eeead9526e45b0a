"""Repair: clusters that no generalization of items can protect are merged before a bound is tested (R-3, R-4)."""

from __future__ import annotations

import numpy as np

from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.relational_transaction.kernels.relation import SCALE, Floats, Relation, penalties
from anon_spark.families.relational_transaction.merging import Summary
from anon_spark.kernels.classes import Ints

EVERY = slice(None)


def repaired(summary: Summary, relation: Relation, k: int, l: float | None = None) -> Ints:  # noqa: E741 - the l of l-diversity
    """The index of the cluster that each cluster is merged into.

    Guarantee: every cluster has 0 or at least k records with items; with l, every sensitive item is in at most 1/l of a
    cluster's records and of those with other items. GuaranteeUnreachable if even the whole table violates this.
    Cost: per repair clusters × (attributes + sensitive items).
    """
    state = _Repair(summary, relation)
    filled = int(summary.filled.sum())
    if 0 < filled < k:
        raise GuaranteeUnreachable(
            f"Only {filled:,} of {summary.records:,} records have items that are not sensitive, fewer than k = {k}. "
            "Lower k, give more rows, or leave out the transaction columns.",
            filled=filled,
            k=k,
        )
    # 1. empty transactions
    at = 0
    while at < state.sizes.size:
        if not state.is_left[at] or state.filled[at] == 0 or state.filled[at] >= k:
            at += 1
            continue
        at = state.unite(at, state.costs(at))
    if l is None:
        return state.target
    # 2. sensitive items
    beyond = _excess(summary.sensitive.sum(axis=0), summary.records, l) > 0
    beyond |= _excess(summary.sensitive_filled.sum(axis=0), filled, l) > 0
    if beyond.any():
        count = int(beyond.sum())
        raise GuaranteeUnreachable(
            f"{count:,} sensitive item{'s' if count > 1 else ''} occur{'s' if count == 1 else ''} in more than one of "
            f"l = {l:g} records, or of the records that have other items. Lower l, or name fewer sensitive items.",
            items=count,
            l=l,
        )
    is_beyond = state.is_left & (state.excess(l) > 0)
    while is_beyond.any():
        at = int(is_beyond.argmax())
        costs = state.costs(at)
        excess = state.excess_with(at, l)
        excess[~np.isfinite(costs)] = np.inf
        costs[excess > excess.min()] = np.inf  # the eligible unions, or those with the least excess
        union = state.unite(at, costs)
        is_beyond &= state.is_left
        is_beyond[union] = state.excess(l, [union])[0] > 0
    return state.target


def _excess(counts: Ints, records: Ints | int, l: float) -> Floats:  # noqa: E741
    """Excess of each sensitive item above its share of 1/l, times l: an integer if l is."""
    return counts.astype(np.float64) * l - records


def _greatest(counts: Ints, records: Ints, l: float) -> Floats:  # noqa: E741
    """The greatest excess of an item in each cluster, 0 if none is above its share."""
    greatest: Floats = _excess(counts, records[:, None], l).max(axis=1, initial=0.0)
    return greatest


class _Repair:
    """The clusters during the repair: a union keeps the smaller index."""

    def __init__(self, summary: Summary, relation: Relation) -> None:
        self.relation = relation
        self.lo, self.hi = summary.lo.copy(), summary.hi.copy()
        self.sizes, self.filled = summary.sizes.copy(), summary.filled.copy()
        self.sensitive, self.sensitive_filled = summary.sensitive.copy(), summary.sensitive_filled.copy()
        self.is_left = np.ones(self.sizes.size, dtype=np.bool_)
        self.target = np.arange(self.sizes.size)

    def costs(self, at: int) -> Floats:
        """NCP of the union with each other cluster, rounded for comparisons."""
        costs = np.rint(SCALE * penalties(self.relation, self.lo, self.hi, self.lo[at], self.hi[at]))
        costs[~self.is_left] = np.inf
        costs[at] = np.inf
        return costs

    def excess(self, l: float, of: slice | list[int] = EVERY) -> Floats:  # noqa: E741
        """The greatest excess of an item in each cluster, or in some; not above 0 if it is eligible."""
        of_all = _greatest(self.sensitive[of], self.sizes[of], l)
        return np.maximum(of_all, _greatest(self.sensitive_filled[of], self.filled[of], l))

    def excess_with(self, at: int, l: float) -> Floats:  # noqa: E741
        """The greatest excess of an item in the union with each cluster."""
        of_all = _greatest(self.sensitive + self.sensitive[at], self.sizes + self.sizes[at], l)
        return np.maximum(of_all, _greatest(self.sensitive_filled + self.sensitive_filled[at], self.filled + self.filled[at], l))

    def unite(self, at: int, costs: Floats) -> int:
        """Merge a cluster with the first of least cost; returns the union's index, from which the repair continues."""
        partner = int(costs.argmin())
        union, gone = min(at, partner), max(at, partner)
        self.lo[union] = np.minimum(self.lo[union], self.lo[gone])
        self.hi[union] = np.maximum(self.hi[union], self.hi[gone])
        for totals in (self.sizes, self.filled, self.sensitive, self.sensitive_filled):
            totals[union] += totals[gone]
        self.is_left[gone] = False
        self.target[self.target == gone] = union
        return union
