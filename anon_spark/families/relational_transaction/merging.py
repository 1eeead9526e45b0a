"""RMERGE and TMERGE: clusters merged one pair after the other, on their summaries alone.

The next seed is always the cluster with the least loss. Its partner is the first in an order by relational values, by items
or by both. Ids ascend and a union keeps the smaller index, so the smaller index always has the smaller id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, fsum

import numpy as np
from numpy.typing import NDArray

from anon_spark.errors import GuaranteeUnreachable
from anon_spark.families.relational_transaction.kernels.bit_distance import Distances
from anon_spark.families.relational_transaction.kernels.cluster_merging import (
    NEAR_DELTA,
    NOBODY,
    Asked,
    Merging,
    merged_by_loss,
)
from anon_spark.families.relational_transaction.kernels.relation import (
    SCALE,
    Floats,
    Relation,
    own_penalties,
    penalties,
    published,
)
from anon_spark.families.relational_transaction.settings import Merge
from anon_spark.kernels.classes import Ints
from anon_spark.model.progress import Progress

Losses = Callable[[Sequence[Ints]], Floats]  # UL, the mean over records, of each union of original clusters
LossOf = Callable[[Ints], float]  # UL summed over the records of one union of original clusters

NEAR = 1e-9  # distance from δ within which a running sum is recomputed exactly
ROUNDING = 1e-14  # above the rounding error of the sum over blocks


class BoundUnreachable(GuaranteeUnreachable):
    """The loss cannot be brought below δ; facts: delta, initial, least."""


@dataclass(frozen=True)
class Summary:
    """Clusters as arrays, by ascending id (the smallest LINK of the members).

    filled: records with at least one item that is not sensitive. sensitive, sensitive_filled: clusters × sensitive items,
    how many records have the item, and how many of the filled ones.
    """

    ids: Ints
    sizes: Ints
    filled: Ints
    lo: Floats
    hi: Floats
    sensitive: Ints
    sensitive_filled: Ints

    @property
    def records(self) -> int:
        return int(self.sizes.sum())

    def united(self, target: Ints) -> Summary:
        """The clusters after each was merged into its target, which is the smallest index of its union."""
        order = np.argsort(target, kind="stable")
        heads, starts = np.unique(target[order], return_index=True)

        def summed(of: Ints) -> Ints:
            return np.add.reduceat(of[order], starts, axis=0)

        return Summary(
            self.ids[heads],
            summed(self.sizes),
            summed(self.filled),
            np.minimum.reduceat(self.lo[order], starts, axis=0),
            np.maximum.reduceat(self.hi[order], starts, axis=0),
            summed(self.sensitive),
            summed(self.sensitive_filled),
        )


@dataclass(frozen=True)
class Merges:
    """The merges that were made.

    target: the index each cluster was merged into. pairs: seed and partner in the order of merging, as indices.
    ncps, losses: NCP and UL of the table before the first merge and after each; no losses from RMERGE.
    """

    target: Ints
    ncp: float
    pairs: Ints
    ncps: Floats
    losses: Floats

    def after(self, merges: int) -> Ints:
        """The targets after the first merges."""
        target = np.arange(self.target.size)
        for pair in self.pairs[:merges]:
            target[target == pair.max()] = pair.min()
        return target


def equal_tuples(summary: Summary, relation: Relation) -> Ints:
    """For each cluster the first one that publishes the same relational values."""
    rows = published(relation, summary.lo, summary.hi)
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first[inverse.ravel()]


def table_ncp(summary: Summary, relation: Relation) -> float:
    """NCP of the table: Σ records · NCP over clusters, summed exactly, by records."""
    return fsum(summary.sizes * own_penalties(relation, summary.lo, summary.hi)) / summary.records


def block_deltas(sizes: Ints, ncps: Floats, delta: float) -> Floats:
    """δ_b of each block (R-13): its NCP plus the same share of the rest up to 1; a single block gets δ itself.

    Guarantee: δ_b is never below the block's NCP, and blocks that grow within their δ_b keep a table within δ, roundings
    included.
    """
    several = ncps.size > 1
    initial = fsum(sizes * ncps) / int(sizes.sum()) if several else float(ncps[0])
    if initial > delta * (1 + several * ROUNDING):
        raise _relational_bound(delta, initial)
    if not several or delta >= 1:
        return np.full(ncps.size, min(delta, 1.0))
    part = max(0.0, delta * (1 - ROUNDING) - initial) / (1 - initial) if initial < 1 else 0.0
    return np.maximum(ncps, ncps + (1 - ncps) * part)


def rmerge(
    summary: Summary,
    relation: Relation,
    delta: float,
    order: Merge,
    distances: Distances | None = None,
    losses: Losses | None = None,
    exhaustive_seeds: bool = False,
    most_records: int | None = None,
    progress: Progress | None = None,
) -> Merges:
    """RMERGE: merge while NCP of the table stays within δ; it ends at a seed without partner (R-7).

    distances: BTD of every union, overwritten; losses: UL of unions, instead; neither for relational. exhaustive_seeds:
    continue with the next seed instead. most_records: a union of more records is not tried.
    Guarantee: NCP ≤ δ, summed exactly, or BoundUnreachable if NCP exceeds δ before the first merge.
    Cost: per seed clusters × attributes, and for items and both a sort of the clusters.
    """
    state = _State(summary, relation, order, distances, losses, most_records)
    initial = state.ncp
    if initial > delta:
        raise _relational_bound(delta, initial)
    if order == "relational":
        state.merge_by_loss(delta, exhaustive_seeds)
        state.tell(progress)
        return state.merges(np.empty(0))
    closed = np.zeros(state.sizes.size, dtype=np.bool_)  # seeds without partner
    while True:
        seed = state.seed(closed)
        if seed < 0 or state.clusters == 1:
            break
        candidates, lost = state.candidates(seed)
        chosen = state.first_within(delta, seed, candidates, lost)
        if chosen < 0:
            if not exhaustive_seeds:
                break
            closed[seed] = True
            continue
        # a seed that failed with both fails with their union, and it has tried all the others
        closed[state.unite(seed, int(candidates[chosen]), float(lost[chosen]))] = False
        state.tell(progress)
    return state.merges(np.empty(0))


def tmerge(
    summary: Summary,
    relation: Relation,
    delta: float | None,
    order: Merge,
    distances: Distances | None,
    losses: Losses | None,
    loss_of: LossOf,
    most_records: int | None = None,
    progress: Progress | None = None,
) -> Merges:
    """TMERGE: merge until UL of the table is within δ; a seed takes the first candidate, whatever UL becomes (R-9).

    distances are overwritten. delta None: until one cluster is left or no union is small enough; gives the figures of all steps.
    Guarantee: UL ≤ δ, or BoundUnreachable with the least UL of all steps. Cost: as RMERGE, and one 𝒯 per merge.
    """
    state = _State(summary, relation, order, distances, losses, most_records)
    lost_items = np.array([loss_of(np.array([cluster])) for cluster in range(state.sizes.size)])
    path = [fsum(lost_items) / state.records]
    nobody = np.zeros(state.sizes.size, dtype=np.bool_)
    while delta is None or path[-1] > delta:
        if state.clusters == 1:
            break
        seed = state.seed(nobody)
        candidates, lost = state.candidates(seed)
        if not candidates.size:
            break
        partner = int(candidates[0])
        union = state.unite(seed, partner, float(lost[0]))
        lost_items[[seed, partner]] = 0.0
        lost_items[union] = loss_of(np.flatnonzero(state.target == union))
        path.append(fsum(lost_items) / state.records)
        state.tell(progress)
    if delta is not None and path[-1] > delta:
        least = min(path)
        raise BoundUnreachable(
            f"No merging of clusters brings the loss UL of the items down to delta = {delta}: the least of "
            f"{len(path)} steps is {least:.6f}. Ask for a delta of at least {_above(least)}, or lower k or m.",
            delta=delta,
            initial=path[0],
            least=least,
        )
    return state.merges(np.array(path))


def tried(order: Merge, lost: Floats, distance: Floats | Distances | None) -> Ints:
    """Positions of the candidates in the order in which they are tried; `lost` is rounded, candidates ascend by id.

    items: by distance, then loss, then id (R-12). both: by the sum of the two ranks, then by the relational rank.
    """
    by_loss = np.argsort(lost, kind="stable")
    if order == "relational":
        return by_loss[:1]
    assert distance is not None, "an order by items needs their distances"
    by_items = by_loss[np.argsort(distance[by_loss], kind="stable")]
    if order == "items":
        return by_items
    place, place_by_items = np.empty_like(by_loss), np.empty_like(by_loss)
    place[by_loss] = place_by_items[by_items] = np.arange(lost.size)
    return np.lexsort((place, place + place_by_items))


class _State:
    """The clusters during merging: a union keeps the smaller index, the other index is gone."""

    def __init__(
        self,
        summary: Summary,
        relation: Relation,
        order: Merge,
        distances: Distances | None,
        losses: Losses | None,
        most_records: int | None,
    ) -> None:
        self.relation, self.order, self.distances, self.losses = relation, order, distances, losses
        self.lo, self.hi, self.sizes = summary.lo.copy(), summary.hi.copy(), summary.sizes.copy()
        self.records, self.most = summary.records, summary.records if most_records is None else most_records
        self.clusters = self.sizes.size
        self.is_left = np.ones(self.clusters, dtype=np.bool_)
        self.target = np.arange(self.clusters)
        cluster_ncp = own_penalties(relation, self.lo, self.hi)
        self.price = np.rint(SCALE * cluster_ncp)  # rounded for comparisons
        self.weighted = self.sizes * cluster_ncp  # 0 for clusters that are gone
        self.pairs: list[tuple[int, int]] = []
        self.ncps = [self.ncp]

    @property
    def ncp(self) -> float:
        return fsum(self.weighted) / self.records

    def seed(self, closed: NDArray[np.bool_]) -> int:
        """The cluster of least NCP, then of least size, then of least id; -1 if all are closed."""
        open_ = np.flatnonzero(self.is_left & ~closed)
        if not open_.size:
            return -1
        price = self.price[open_]
        least = open_[price == price.min()]
        return int(least[self.sizes[least].argmin()])

    def candidates(self, seed: int) -> tuple[Ints, Floats]:
        """The candidate partners of a seed in the order they are tried, and NCP of each union."""
        fits = self.is_left & (self.sizes + self.sizes[seed] <= self.most)
        fits[seed] = False
        others = np.flatnonzero(fits)
        lost = penalties(self.relation, self.lo, self.hi, self.lo[seed], self.hi[seed])[others]
        order = tried(self.order, np.rint(SCALE * lost), self._distance(seed, others))
        return others[order], lost[order]

    def _distance(self, seed: int, others: Ints) -> Floats | Distances | None:
        if self.order == "relational" or not others.size:
            return np.empty(0)
        if self.losses is None:
            return None if self.distances is None else self.distances[seed, others]
        by_target = np.argsort(self.target, kind="stable")
        bounds = np.searchsorted(self.target[by_target], np.stack([others, others + 1]))
        in_seed = np.flatnonzero(self.target == seed)
        unions = [np.sort(np.concatenate([in_seed, by_target[first:last]])) for first, last in bounds.T]
        return np.rint(SCALE * self.losses(unions))

    def first_within(self, delta: float, seed: int, candidates: Ints, lost: Floats) -> int:
        """Position of the first candidate with which NCP of the table stays within δ, or -1."""
        ncp = self._ncp_with(seed, candidates, lost)
        for place in np.flatnonzero(ncp <= delta + NEAR):
            if ncp[place] < delta - NEAR or self._exact_ncp_with(seed, candidates[place], lost[place]) <= delta:
                return int(place)
        return -1

    def _ncp_with(self, seed: int, others: Ints, lost: Floats) -> Floats:
        """NCP of the table after each merge, by the difference it makes."""
        rest = self.weighted.sum() - self.weighted[seed] - self.weighted[others]
        ncp: Floats = (rest + (self.sizes[seed] + self.sizes[others]) * lost) / self.records
        return ncp

    def _exact_ncp_with(self, seed: int, other: int, lost: float) -> float:
        weighted = self.weighted.copy()
        weighted[seed], weighted[other] = (self.sizes[seed] + self.sizes[other]) * lost, 0.0
        return fsum(weighted) / self.records

    def unite(self, seed: int, partner: int, lost: float) -> int:
        """Merge two clusters; returns the index of the union."""
        union, gone = min(seed, partner), max(seed, partner)
        self.lo[union] = np.minimum(self.lo[union], self.lo[gone])
        self.hi[union] = np.maximum(self.hi[union], self.hi[gone])
        self.sizes[union] += self.sizes[gone]
        self.price[union] = np.rint(SCALE * lost)
        self.weighted[union], self.weighted[gone] = self.sizes[union] * lost, 0.0
        self.is_left[gone] = False
        self.target[self.target == gone] = union
        if self.distances is not None:  # complete linkage; each value already has both diameters
            row = np.maximum(self.distances[union], self.distances[gone])
            np.maximum(row, self.distances[union, gone], out=row)
            self.distances[union], self.distances[:, union] = row, row
        self.clusters -= 1
        self.pairs.append((seed, partner))
        self.ncps.append(float(self.weighted.sum()) / self.records)
        return union

    def merge_by_loss(self, delta: float, exhaustive_seeds: bool) -> None:
        """RMERGE by relational values. A seed tries the nearest cluster alone, so it tries again after that was merged."""
        count = self.sizes.size
        work = Merging(
            self.lo,
            self.hi,
            self.sizes,
            self.target,
            self.price,
            self.weighted,
            self.is_left,
            np.zeros(count, dtype=np.bool_),
            np.full(count, NOBODY),
            np.empty((count, 2), dtype=np.int64),
            np.empty(count + 1),
        )
        asked, answer = Asked(NEAR_DELTA, 0, NOBODY, NOBODY, 0.0), NOBODY
        while asked.outcome == NEAR_DELTA:
            asked = Asked(
                *merged_by_loss(self.relation, work, delta, NEAR, self.most, exhaustive_seeds, asked.merges, answer)
            )
            if asked.outcome == NEAR_DELTA:
                answer = int(self._exact_ncp_with(asked.seed, asked.partner, asked.lost) <= delta)
        self.pairs = [(int(one), int(other)) for one, other in work.pairs[: asked.merges]]
        self.ncps += work.ncps[1 : asked.merges + 1].tolist()
        self.clusters -= asked.merges

    def tell(self, progress: Progress | None) -> None:
        if progress is not None:
            progress(len(self.pairs), self.sizes.size - 1, "merges of clusters")

    def merges(self, losses: Floats) -> Merges:
        pairs = np.array(self.pairs, dtype=np.int64).reshape(-1, 2)
        return Merges(self.target, self.ncp, pairs, np.array([*self.ncps[:-1], self.ncp]), losses)


def _above(loss: float) -> float:
    return ceil(loss * 1e4) / 1e4


def _relational_bound(delta: float, initial: float) -> BoundUnreachable:
    return BoundUnreachable(
        f"The relational values of the first clusters lose NCP = {initial:.6f}, more than delta = {delta}. "
        f"Ask for a delta of at least {_above(initial)}, or lower k.",
        delta=delta,
        initial=initial,
        least=initial,
    )
