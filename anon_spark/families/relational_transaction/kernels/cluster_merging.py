"""RMERGE by relational values as compiled code: every seed tries the cluster that loses least with it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled, inner
from anon_spark.families.relational_transaction.kernels.relation import SCALE, Floats, Relation
from anon_spark.kernels.classes import Ints

NOBODY = -1
ENDED, NEAR_DELTA = 0, 1


class Merging(NamedTuple):
    """Clusters while they are merged; all arrays are changed in place.

    price: rounded NCP of each; weighted: records · NCP, 0 where a cluster is gone; nearest: what a closed seed tried.
    """

    lo: Floats
    hi: Floats
    sizes: Ints
    target: Ints
    price: Floats
    weighted: Floats
    is_left: NDArray[np.bool_]
    closed: NDArray[np.bool_]
    nearest: Ints
    pairs: Ints
    ncps: Floats


class Asked(NamedTuple):
    """Why the loop ended: nothing more to merge, or a union so near δ that an exact sum has to decide."""

    outcome: int
    merges: int
    seed: int
    partner: int
    lost: float


@compiled
def merged_by_loss(
    relation: Relation, work: Merging, delta: float, near: float, most: int, exhaustive: bool, merges: int, answer: int
) -> Asked:
    """Merge until a seed has no partner, or all have none. merges: those made so far.

    near: distance from δ within which the loop stops and asks; answer: of the union it asked for, whether it is within δ (0, 1).
    """
    lo, hi, sizes, price, weighted = work.lo, work.hi, work.sizes, work.price, work.weighted
    closed, nearest = work.closed, work.nearest
    left = np.flatnonzero(work.is_left)
    records, lost_in_all = sizes[left].sum(), summed(weighted, left)
    while True:
        seed = next_seed(price, sizes, left, closed)
        if seed == NOBODY or left.size == 1:
            unite_targets(work.target)
            return Asked(ENDED, merges, NOBODY, NOBODY, 0.0)
        partner, lost = nearest_cluster(relation, lo, hi, sizes, left, seed, most)
        within = False
        if partner != NOBODY:
            together = sizes[seed] + sizes[partner]
            ncp = (lost_in_all - weighted[seed] - weighted[partner] + together * lost) / records
            within = ncp < delta - near
            if not within and ncp <= delta + near:
                if answer == NOBODY:
                    unite_targets(work.target)
                    return Asked(NEAR_DELTA, merges, seed, partner, lost)
                within = answer == 1
        answer = NOBODY
        if not within:
            if not exhaustive:
                unite_targets(work.target)
                return Asked(ENDED, merges, NOBODY, NOBODY, 0.0)
            closed[seed], nearest[seed] = True, partner
            continue
        into, gone = min(seed, partner), max(seed, partner)
        for attribute in range(lo.shape[1]):
            lo[into, attribute] = min(lo[into, attribute], lo[gone, attribute])
            hi[into, attribute] = max(hi[into, attribute], hi[gone, attribute])
        sizes[into] += sizes[gone]
        price[into] = np.rint(SCALE * lost)
        weighted[into], weighted[gone] = sizes[into] * lost, 0.0
        work.is_left[gone], closed[into], work.target[gone] = False, False, into
        kept = 0
        for at in left:
            if at != gone:
                left[kept] = at
                kept += 1
                if nearest[at] == seed or nearest[at] == partner:
                    closed[at] = False
        left = left[:kept]
        work.pairs[merges, 0], work.pairs[merges, 1] = seed, partner
        merges += 1
        lost_in_all = summed(weighted, left)
        work.ncps[merges] = lost_in_all / records


@inner
def summed(weighted: Floats, left: Ints) -> float:
    """The sum in the order of the clusters: another order could round otherwise."""
    total = 0.0
    for at in left:
        total += weighted[at]
    return total


@inner
def unite_targets(target: Ints) -> None:
    """Follow every cluster to the last one it was merged into: always one with a smaller index."""
    for at in range(target.size):
        target[at] = target[target[at]]


@inner
def next_seed(price: Floats, sizes: Ints, left: Ints, closed: NDArray[np.bool_]) -> int:
    """The open cluster of least NCP, then of least size, then the first. left: the clusters that are not merged into another."""
    seed = NOBODY
    for at in left:
        if closed[at]:
            continue
        if seed == NOBODY or price[at] < price[seed] or (price[at] == price[seed] and sizes[at] < sizes[seed]):
            seed = at
    return seed


@inner
def nearest_cluster(
    relation: Relation, lo: Floats, hi: Floats, sizes: Ints, left: Ints, seed: int, most: int
) -> tuple[int, float]:
    """The cluster whose union with the seed loses least, the first of several, and what it loses; at most `most` records."""
    is_number, weights, spans, leaves = relation.is_number, relation.weight, relation.span, relation.leaves
    starts, first, share = relation.starts, relation.first, relation.share
    nearest, least, least_lost = NOBODY, np.inf, 0.0
    attributes, size = lo.shape[1], sizes[seed]
    for other in left:
        if other == seed or sizes[other] + size > most:
            continue
        lost, rounded = 0.0, 0.0
        for attribute in range(attributes):
            low, high = min(lo[seed, attribute], lo[other, attribute]), max(hi[seed, attribute], hi[other, attribute])
            if is_number[attribute]:
                if spans[attribute] > 0:
                    lost += weights[attribute] * ((high - low) / spans[attribute])
            else:
                at = starts[attribute]
                while first[at + np.int64(low)] != first[at + np.int64(high)]:
                    at += leaves[attribute]
                lost += weights[attribute] * share[at + np.int64(low)]
            rounded = np.rint(SCALE * lost)
            if rounded >= least:  # the other attributes only add to it
                break
        if rounded < least:
            nearest, least, least_lost = other, rounded, lost
    return nearest, least_lost
