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
    is_left, closed, nearest = work.is_left, work.closed, work.nearest
    records = sizes[is_left].sum()
    while True:
        seed = next_seed(price, sizes, is_left, closed)
        if seed == NOBODY or merges == sizes.size - 1:
            return Asked(ENDED, merges, NOBODY, NOBODY, 0.0)
        partner, lost = nearest_cluster(relation, lo, hi, sizes, is_left, seed, most)
        within = False
        if partner != NOBODY:
            together = sizes[seed] + sizes[partner]
            ncp = (weighted.sum() - weighted[seed] - weighted[partner] + together * lost) / records
            within = ncp < delta - near
            if not within and ncp <= delta + near:
                if answer == NOBODY:
                    return Asked(NEAR_DELTA, merges, seed, partner, lost)
                within = answer == 1
        answer = NOBODY
        if not within:
            if not exhaustive:
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
        is_left[gone], closed[into] = False, False
        for at in range(sizes.size):
            if work.target[at] == gone:
                work.target[at] = into
            if nearest[at] == seed or nearest[at] == partner:
                closed[at] = False
        work.pairs[merges, 0], work.pairs[merges, 1] = seed, partner
        merges += 1
        work.ncps[merges] = weighted.sum() / records


@inner
def next_seed(price: Floats, sizes: Ints, is_left: NDArray[np.bool_], closed: NDArray[np.bool_]) -> int:
    """The open cluster of least NCP, then of least size, then the first."""
    seed = NOBODY
    for at in range(price.size):
        if not is_left[at] or closed[at]:
            continue
        if seed == NOBODY or price[at] < price[seed] or (price[at] == price[seed] and sizes[at] < sizes[seed]):
            seed = at
    return seed


@inner
def nearest_cluster(
    relation: Relation, lo: Floats, hi: Floats, sizes: Ints, is_left: NDArray[np.bool_], seed: int, most: int
) -> tuple[int, float]:
    """The cluster whose union with the seed loses least, the first of several, and what it loses; at most `most` records."""
    is_number, weights, spans, leaves = relation.is_number, relation.weight, relation.span, relation.leaves
    starts, first, share = relation.starts, relation.first, relation.share
    nearest, least, least_lost = NOBODY, np.inf, 0.0
    for other in range(sizes.size):
        if not is_left[other] or other == seed or sizes[other] + sizes[seed] > most:
            continue
        lost = 0.0
        for attribute in range(lo.shape[1]):
            low, high = min(lo[seed, attribute], lo[other, attribute]), max(hi[seed, attribute], hi[other, attribute])
            if is_number[attribute]:
                if spans[attribute] > 0:
                    lost += weights[attribute] * ((high - low) / spans[attribute])
                continue
            at = starts[attribute]
            while first[at + np.int64(low)] != first[at + np.int64(high)]:
                at += leaves[attribute]
            lost += weights[attribute] * share[at + np.int64(low)]
        rounded = np.rint(SCALE * lost)
        if rounded < least:
            nearest, least, least_lost = other, rounded, lost
    return nearest, least_lost
