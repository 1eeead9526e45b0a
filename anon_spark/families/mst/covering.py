"""The published class that covers a tuple: a new batch joins the classes of an old release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np

from anon_spark.kernels.classes import Codes, Ints
from anon_spark.model.hierarchy import Hierarchy

FAR = np.iinfo(np.int64).max


@dataclass(frozen=True)
class PublishedClasses:
    """The distinct published classes: their levels and their codes on those levels (classes × attributes)."""

    levels: Codes
    codes: Codes

    @property
    def size(self) -> int:
        return int(self.levels.shape[0])


def covering(
    tuples: Codes, classes: PublishedClasses, hierarchies: Sequence[Hierarchy]
) -> Codes:
    """The class of least loss, then lexicographically first by (levels, codes), that covers each tuple; -1 where none.

    tuples: leaf codes, attributes × tuples. Guarantee: deterministic, independent of the order of classes.
    Cost: level vectors that occur × tuples, each a binary search.
    """
    order = np.lexsort([*classes.codes.T[::-1], *classes.levels.T[::-1]])
    levels, codes = classes.levels[order], classes.codes[order]
    loss = class_losses(levels, codes, hierarchies)
    chosen = np.full(tuples.shape[1], -1, dtype=np.int64)
    best = np.full(tuples.shape[1], FAR, dtype=np.int64)
    vectors, first = np.unique(levels, axis=0, return_index=True)
    last = np.append(first[1:], levels.shape[0])  # sorted by levels first, so the classes of a vector are consecutive
    for vector, start, stop in zip(vectors, first, last, strict=True):
        climbed = np.stack([hierarchies[at].codes[level][tuples[at]] for at, level in enumerate(vector)])
        hit, position = matches(climbed, codes[start:stop].T)
        price = loss[start:stop][position]
        better = hit & (price < best)
        best[better], chosen[better] = price[better], start + position[better]
    return np.where(chosen >= 0, order[chosen], -1).astype(np.int32)


def matches(wanted: Codes, known: Codes) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], Ints]:
    """Whether each column of `wanted` is a column of `known`, and its position (arbitrary if not)."""
    key = np.zeros(wanted.shape[1] + known.shape[1], dtype=np.int64)
    for row in range(wanted.shape[0]):
        both = np.concatenate([wanted[row], known[row]]).astype(np.int64)
        _, key = np.unique(key * (int(both.max()) + 1) + both, return_inverse=True)  # keys stay small
    wanted_keys, known_keys = key[: wanted.shape[1]], key[wanted.shape[1] :]
    place = np.argsort(known_keys)
    position = place[np.minimum(np.searchsorted(known_keys[place], wanted_keys), known_keys.size - 1)]
    return known_keys[position] == wanted_keys, position


def class_losses(levels: Codes, codes: Codes, hierarchies: Sequence[Hierarchy]) -> Ints:
    """General loss of each class in integers over one common denominator."""
    totals = [hierarchy.weight_total for hierarchy in hierarchies]
    common = lcm(*(total for total in totals if total > 0)) if any(totals) else 1
    loss = np.zeros(levels.shape[0], dtype=np.float64 if common > 2**40 else np.int64)
    for at, hierarchy in enumerate(hierarchies):
        if totals[at] == 0:
            continue
        offsets = np.cumsum([0, *(len(weights) for weights in hierarchy.weights)])
        weights = np.concatenate(hierarchy.weights)
        loss += weights[offsets[levels[:, at]] + codes[:, at]] * (common // totals[at])
    return np.unique(loss, return_inverse=True)[1].astype(np.int64)  # only ranks are compared


def labels_of_nodes(hierarchy: Hierarchy) -> list[str | None]:
    """The label of every leaf on every level, level by level."""
    return [
        hierarchy.labels[level][code] for level in range(hierarchy.height + 1) for code in hierarchy.codes[level].tolist()
    ]


def published_classes(
    labels: Sequence[Sequence[str | None]], hierarchies: Sequence[Hierarchy]
) -> PublishedClasses:
    """Classes as levels and codes of these hierarchies; a class with a label they do not have covers nothing here."""
    nodes: list[dict[str | None, tuple[int, int]]] = []
    for hierarchy in hierarchies:
        known: dict[str | None, tuple[int, int]] = {}
        for level in range(hierarchy.height + 1):
            for code, label in enumerate(hierarchy.labels[level]):
                known.setdefault(label, (level, code))
        nodes.append(known)
    classes = [
        [known[label] for label, known in zip(row, nodes, strict=True)]
        for row in labels
        if all(label in known for label, known in zip(row, nodes, strict=True))
    ]
    both = np.array(classes, dtype=np.int32).reshape(len(classes), len(hierarchies), 2)
    return PublishedClasses(np.ascontiguousarray(both[:, :, 0]), np.ascontiguousarray(both[:, :, 1]))
