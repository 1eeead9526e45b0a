"""Relational values as runs of numbers, and the loss of their unions (NCP).

A value is a pair (lo, hi): a number as itself, a category as the position of its leaf. Positions are chosen so that every
node of every level is a run. A union is the least lo and the greatest hi. Published is the range, or the lowest node whose
run covers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, nextafter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled, inner
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.model.hierarchy import Hierarchy

Floats = NDArray[np.float64]

SCALE = 1e12  # penalties are rounded to multiples of 1 / SCALE before they are compared


class Relation(NamedTuple):
    """The attributes: weights, spans of numbers, and the hierarchies of categories end to end.

    At starts[a] + level · leaves[a] + position stand the first position of the node there and the share of all leaves that
    lie below it, 0 for a single leaf. Numbers have no leaves.
    """

    is_number: NDArray[np.bool_]
    weight: Floats
    span: Floats
    leaves: Ints
    starts: Ints
    first: Codes
    share: Floats


def relation_of(
    attributes: Sequence[Hierarchy | tuple[float, float]], weights: Sequence[float] | None = None
) -> tuple[Relation, list[Codes | None]]:
    """The attributes as arrays, and per hierarchy the position of each leaf code.

    weights: add up to 1; default: all equal. Cost: one entry per leaf and level, 12 bytes.
    """
    count = len(attributes)
    span, leaves = np.zeros(count), np.zeros(count, dtype=np.int64)
    first, share = [np.empty(0, dtype=np.int32)], [np.empty(0)]
    positions: list[Codes | None] = []
    sizes = np.zeros(count, dtype=np.int64)
    for at, attribute in enumerate(attributes):
        if not isinstance(attribute, Hierarchy):
            span[at] = attribute[1] - attribute[0]
            positions.append(None)
            continue
        order = np.lexsort(attribute.codes)  # the last row, the top, is the first key
        position = np.empty(order.size, dtype=np.int32)
        position[order] = np.arange(order.size)
        positions.append(position)
        leaves[at], sizes[at] = order.size, attribute.codes.size
        total = int(attribute.leaves_below[-1][0])
        for codes, below in zip(attribute.codes[:, order], attribute.leaves_below, strict=True):
            begins = np.diff(codes, prepend=-1) != 0
            first.append(np.maximum.accumulate(np.where(begins, np.arange(order.size), 0)).astype(np.int32))
            share.append(np.where(below == 1, 0.0, below / total)[codes])
    relation = Relation(
        np.array([not isinstance(attribute, Hierarchy) for attribute in attributes], dtype=np.bool_),
        _weights(count, weights),
        span,
        leaves,
        np.cumsum(sizes) - sizes,
        np.concatenate(first),
        np.concatenate(share),
    )
    return relation, positions


def _weights(count: int, user_weights: Sequence[float] | None) -> Floats:
    """Weights whose sum does not exceed 1 by rounding, so that the widest union loses at most 1."""
    weights = np.full(count, 1 / max(count, 1)) if user_weights is None else np.array(user_weights, dtype=np.float64)
    while sum(weights.tolist()) > 1 and fsum(weights) < 1 + 1 / SCALE:
        heaviest = weights.argmax()
        weights[heaviest] = nextafter(weights[heaviest], 0)
    return weights


@compiled
def penalties(relation: Relation, lo: Floats, hi: Floats, seed_lo: Floats, seed_hi: Floats) -> Floats:
    """NCP of the union of the seed with each row of lo and hi. Cost: rows × attributes, levels for categories."""
    ncp = np.zeros(lo.shape[0])
    for attribute in range(lo.shape[1]):
        low = np.minimum(lo[:, attribute], seed_lo[attribute])
        high = np.maximum(hi[:, attribute], seed_hi[attribute])
        _add_shares(relation, attribute, low, high, ncp)
    return ncp


@compiled
def own_penalties(relation: Relation, lo: Floats, hi: Floats) -> Floats:
    """NCP of each row."""
    ncp = np.zeros(lo.shape[0])
    for attribute in range(lo.shape[1]):
        _add_shares(relation, attribute, lo[:, attribute].copy(), hi[:, attribute].copy(), ncp)
    return ncp


@compiled
def node_levels(relation: Relation, lo: Floats, hi: Floats) -> Codes:
    """Per row and category the lowest level whose node covers all from lo to hi; 0 for numbers."""
    level = np.zeros(lo.shape, dtype=np.int32)
    for attribute in range(lo.shape[1]):
        if relation.is_number[attribute]:
            continue
        width, start = relation.leaves[attribute], relation.starts[attribute]
        for row in range(lo.shape[0]):
            low, high = np.int64(lo[row, attribute]), np.int64(hi[row, attribute])
            at = start
            while relation.first[at + low] != relation.first[at + high]:
                at += width
            level[row, attribute] = (at - start) // width
    return level


def published(relation: Relation, lo: Floats, hi: Floats) -> Floats:
    """The published tuple of each row: lo and hi of numbers, first position and level of a category's node."""
    level = node_levels(relation, lo, hi)
    shown = np.hstack([lo, hi])
    count = relation.is_number.size
    for at in np.flatnonzero(~relation.is_number):
        place = relation.starts[at] + level[:, at] * relation.leaves[at] + lo[:, at].astype(np.int64)
        shown[:, at], shown[:, count + at] = relation.first[place], level[:, at]
    return shown


@inner
def _add_shares(relation: Relation, attribute: int, low: Floats, high: Floats, ncp: Floats) -> None:
    """Add the loss of each range of one attribute."""
    weight, span = relation.weight[attribute], relation.span[attribute]
    if relation.is_number[attribute]:
        if span > 0:
            for row in range(low.size):
                ncp[row] += weight * ((high[row] - low[row]) / span)
        return
    width, start, first, share = relation.leaves[attribute], relation.starts[attribute], relation.first, relation.share
    for row in range(low.size):
        left, right = np.int64(low[row]), np.int64(high[row])
        at = start
        while first[at + left] != first[at + right]:
            at += width
        ncp[row] += weight * share[at + left]
