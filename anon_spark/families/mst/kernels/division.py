"""Division of tuples into blocks of neighbours, each refined by itself."""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.families.mst.kernels.counts import count_in, has_models, lack
from anon_spark.families.mst.kernels.distances import Levels
from anon_spark.families.mst.kernels.diversity import add_values, is_diverse
from anon_spark.families.mst.kernels.losses import Tuples, ascending, climb, taken
from anon_spark.families.mst.kernels.top_down import around_seeds, by_side, seeds_of, values_below
from anon_spark.kernels.classes import Codes, Ints


@compiled
def divided(levels: Levels, weights: Ints, tuples: Tuples, level: Codes, most: int) -> Codes:
    """The block of each tuple, numbered from 0; `rows` are what is counted.

    Sets are cut between values of an attribute that few classes cross (level: those of each tuple's class), else around two
    tuples far apart, until none has more than `most` rows. A block without l values, or that fails a model, takes in the next
    one, so a block may be larger. Cost: tuples × doublings of the blocks.
    """
    count = tuples.rows.size
    order, block = np.arange(count).astype(np.int32), np.zeros(count, dtype=np.int32)
    begin, end = np.zeros(count + 1, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)
    end[0], left, found = count, 1, 0
    while left:
        left -= 1
        first, last = begin[left], end[left]
        members = order[first:last].copy()
        inner = taken(tuples, members)
        if members.size == 1 or inner.rows.sum() <= most:
            for member in members:
                block[member] = found
            found += 1
            continue
        side = between_values(levels, inner, level[members])
        if is_small(inner, side):
            side = around_seeds(levels, weights, inner)
        if is_small(inner, side):
            side = halves(levels, weights, inner)
        middle = first + by_side(members, side, order[first:last])
        begin[left], end[left] = middle, last
        begin[left + 1], end[left + 1] = first, middle
        left += 2
    return joined_blocks(tuples, block, found)


@inner
def is_small(tuples: Tuples, side: Codes) -> bool:
    """Whether one side has less than an eighth of the rows."""
    second = (tuples.rows * side).sum()
    return bool(8 * min(second, tuples.rows.sum() - second) < tuples.rows.sum())


@inner
def between_values(levels: Levels, tuples: Tuples, level: Codes) -> Codes:
    """The side of each tuple by its value of one attribute: the one whose values are least often in one class together.

    Values go to the smaller side, the most frequent first. All on side 0 if no attribute has two sides of an eighth.
    """
    best, least = np.zeros(tuples.rows.size, dtype=np.int32), tuples.rows.sum() + 1
    top = np.zeros(tuples.leaf.shape[1], dtype=np.int32)
    for place in range(tuples.rows.size):
        climb(levels, top, tuples.leaf[0], tuples.leaf[place])
    for attribute in range(top.size):
        if top[attribute] == 0:
            continue
        codes, rows = values_below(levels, tuples, attribute, top[attribute])
        together = tuples.rows[level[:, attribute] >= top[attribute]].sum()
        side_of, filled = np.zeros(rows.size, dtype=np.int32), np.zeros(2, dtype=np.int64)
        for code in ascending(-rows):
            side_of[code] = 0 if filled[0] <= filled[1] else 1
            filled[side_of[code]] += rows[code]
        if together < least and 8 * filled.min() >= filled.sum():
            best, least = side_of[codes], together
    return best


@inner
def halves(levels: Levels, weights: Ints, tuples: Tuples) -> Codes:
    """The side of each tuple: the half nearer to one of two tuples far apart, and the other half."""
    _, _, apart = seeds_of(levels, weights, tuples)
    side, rows = np.ones(apart.size, dtype=np.int32), 0
    for place in ascending(apart)[:-1]:
        if 2 * rows >= tuples.rows.sum():
            break
        side[place] = 0
        rows += tuples.rows[place]
    return side


@inner
def joined_blocks(tuples: Tuples, block: Codes, count: int) -> Codes:
    """The blocks, numbered anew, where each has l values in every sensitive column and keeps the models.

    One that does not takes in the next; what is left over joins the last one, or as many of the last as it takes.
    """
    values, counts = tuples.values, tuples.counts
    if values.shape[1] == 0 and not has_models(counts):
        return block
    order = ascending(block.astype(np.int64))
    number, gathered = np.zeros(count, dtype=np.int32), np.full((values.shape[1], values.shape[2]), -1, dtype=np.int32)
    found = 0
    for place in range(order.size):
        member = order[place]
        number[block[member]] = found
        for column in range(values.shape[1]):
            add_values(gathered[column], values[member, column])
        count_in(counts, member)
        ends = place + 1 == order.size or block[order[place + 1]] != block[member]
        if ends and is_diverse(gathered) and lack(counts) == 0:
            found += 1
            gathered[:] = -1
            counts.room[:] = 0
    rest = found  # what is left over is still counted
    while number.max() >= found and rest > 0:
        rest -= 1
        for member in range(block.size):
            if number[block[member]] == rest:
                for column in range(values.shape[1]):
                    add_values(gathered[column], values[member, column])
                count_in(counts, member)
        if is_diverse(gathered) and lack(counts) == 0:
            break
    counts.room[:] = 0
    return np.minimum(number, np.int32(rest))[block]
