"""Minimum spanning trees in the plain form: over all pairs of tuples.

Compiled and with look-up tables like the package's own kernels, so that a comparison is one of algorithms. Shares no
code with them.
"""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled
from anon_spark.errors import LimitExceeded
from anon_spark.families.mst.kernels.distances import Levels
from anon_spark.kernels.classes import Codes, Ints

MOST_WEIGHT = 2**16 - 1


def prim_weights(codes: Codes, levels: Levels) -> Ints:
    """The weights of a minimum spanning tree, ascending, by Prim over the complete graph.

    Cost: every pair of tuples once, no memory for them.
    """
    return np.sort(prim(*pair_tables(levels), np.ascontiguousarray(codes.T)))


def kruskal_weights(codes: Codes, levels: Levels) -> Ints:
    """The same by Kruskal: all pairs, sorted by weight, until one component is left. Cost: 10 bytes per pair."""
    if 2 * int(levels.units @ levels.heights) > MOST_WEIGHT:
        raise LimitExceeded("Dense Kruskal keeps a weight in two bytes, and these do not fit.")
    return kruskal(*pair_tables(levels), np.ascontiguousarray(codes.T))


def pair_tables(levels: Levels) -> tuple[Codes, Ints, Ints]:
    """HDist of every two leaves: tables[starts[attribute] + one · leaves[attribute] + other]."""
    tables = []
    for attribute, leaves in enumerate(levels.leaves.tolist()):
        first, height = levels.starts[attribute], int(levels.heights[attribute])
        by_level = levels.codes[first : first + (height + 1) * leaves].reshape(height + 1, leaves)
        common = (by_level[:, :, None] == by_level[:, None, :]).argmax(axis=0)
        tables.append((2 * levels.units[attribute] * common).astype(np.int32).ravel())
    sizes = np.array([table.size for table in tables], dtype=np.int64)
    return np.concatenate(tables), np.cumsum(sizes) - sizes, levels.leaves


@compiled
def prim(tables: Codes, starts: Ints, leaves: Ints, tuples: Codes) -> Ints:
    """Always the tuple that is nearest to the tree; tuples outside it stand together at the front of the array."""
    tuples = tuples.copy()
    outside = tuples.shape[0] - 1
    weights = np.empty(max(outside, 0), dtype=np.int64)
    near = np.full(tuples.shape[0], np.iinfo(np.int32).max, dtype=np.int32)
    row = np.empty(starts.size, dtype=np.int64)
    newest = tuples[outside].copy()
    while outside > 0:
        for attribute in range(starts.size):
            row[attribute] = starts[attribute] + newest[attribute] * leaves[attribute]
        nearest = 0
        for position in range(outside):
            distance = np.int32(0)
            for attribute in range(starts.size):
                distance += tables[row[attribute] + tuples[position, attribute]]
            if distance < near[position]:
                near[position] = distance
            if near[position] < near[nearest]:
                nearest = position
        outside -= 1
        weights[outside] = near[nearest]
        newest[:] = tuples[nearest]
        tuples[nearest] = tuples[outside]
        near[nearest] = near[outside]
    return weights


@compiled
def kruskal(tables: Codes, starts: Ints, leaves: Ints, tuples: Codes) -> Ints:
    """All pairs by a counting sort, then union-find with halved paths."""
    count = tuples.shape[0]
    pair_weights = np.empty(count * (count - 1) // 2, dtype=np.uint16)
    row = np.empty(starts.size, dtype=np.int64)
    pair = 0
    for one in range(count):
        for attribute in range(starts.size):
            row[attribute] = starts[attribute] + tuples[one, attribute] * leaves[attribute]
        for other in range(one):
            distance = np.int32(0)
            for attribute in range(starts.size):
                distance += tables[row[attribute] + tuples[other, attribute]]
            pair_weights[pair] = distance
            pair += 1
    places = np.zeros(MOST_WEIGHT + 2, dtype=np.int64)
    for pair in range(pair_weights.size):
        places[pair_weights[pair] + 1] += 1
    places = np.cumsum(places)
    left, right = np.empty(pair_weights.size, dtype=np.int32), np.empty(pair_weights.size, dtype=np.int32)
    pair = 0
    for one in range(count):
        for other in range(one):
            place = places[pair_weights[pair]]
            places[pair_weights[pair]] += 1
            left[place], right[place] = one, other
            pair += 1
    parent = np.arange(count).astype(np.int32)
    weights = np.empty(max(count - 1, 0), dtype=np.int64)
    edges, weight = 0, 0
    for place in range(left.size):
        while places[weight] <= place:
            weight += 1
        one, other = left[place], right[place]
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        while parent[other] != other:
            parent[other] = parent[parent[other]]
            other = parent[other]
        if one != other:
            parent[other] = one
            weights[edges] = weight
            edges += 1
            if edges == weights.size:
                break
    return weights
