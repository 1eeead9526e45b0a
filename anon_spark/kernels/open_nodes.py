"""Loops over the nodes of a large lattice, one byte of status each.

`terms[attribute, level]` add up to the floor of a node: what it loses without suppression. Nodes are numbered in lexicographic
order, as in `Lattice.nodes`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anon_spark.kernels.classes import Ints
from anon_spark.kernels.compiled import compiled

Status = NDArray[np.uint8]

OPEN, CLOSED, LATER = 0, 1, 2
BINS = 256


@compiled
def open_floors(status: Status, shape: Ints, terms: Ints, limit: int, width: int) -> tuple[Ints, int]:
    """How many open nodes have a floor below the limit, by bins of this width from the limit down; and their least floor."""
    bins, least = np.zeros(BINS, dtype=np.int64), limit
    level, last = np.zeros(shape.size, dtype=np.int64), shape.size - 1
    for first in range(0, status.size, shape[last]):
        base = sum_of_terms(terms, level, last)
        for at in range(shape[last]):
            if status[first + at] == OPEN and base + terms[last, at] < limit:
                floor = base + terms[last, at]
                bins[min(BINS - 1, (limit - 1 - floor) // width)] += 1
                least = min(least, floor)
        step(level, shape, last)
    return bins, least


@compiled
def draw_open(status: Status, shape: Ints, terms: Ints, low: int, limit: int, most: int, seed: int) -> Ints:
    """Up to `most` open nodes with a floor from `low` to below the limit, drawn evenly from all of them."""
    np.random.seed(seed)
    found, seen = np.empty(most, dtype=np.int64), 0
    level, last = np.zeros(shape.size, dtype=np.int64), shape.size - 1
    for first in range(0, status.size, shape[last]):
        base = sum_of_terms(terms, level, last)
        for at in range(shape[last]):
            if status[first + at] == OPEN and low <= base + terms[last, at] < limit:
                place = seen if seen < most else np.random.randint(0, seen + 1)
                if place < most:
                    found[place] = first + at
                seen += 1
        step(level, shape, last)
    return found[: min(seen, most)]


@compiled
def put_off(status: Status, shape: Ints, terms: Ints, top: Ints, least: int) -> None:
    """Mark the open nodes up to `top` whose floor is at least `least` as LATER."""
    last = shape.size - 1
    upto = top + 1
    level = np.zeros(shape.size, dtype=np.int64)
    for _ in range(np.prod(upto[:last])):
        first = 0
        for attribute in range(last):
            first = (first + level[attribute]) * shape[attribute + 1]
        base = sum_of_terms(terms, level, last)
        for at in range(upto[last]):
            if status[first + at] == OPEN and base + terms[last, at] >= least:
                status[first + at] = LATER
        step(level, upto, last)


@compiled
def sum_of_terms(terms: Ints, level: Ints, last: int) -> int:
    """The terms of all attributes but the last."""
    total = 0
    for attribute in range(last):
        total += terms[attribute, level[attribute]]
    return total


@compiled
def step(level: Ints, shape: Ints, last: int) -> None:
    """The levels of the next node, without the last attribute; from the last one back to the first."""
    attribute = last - 1
    while attribute >= 0:
        level[attribute] += 1
        if level[attribute] < shape[attribute]:
            return
        level[attribute] = 0
        attribute -= 1
