"""Reconstruction: what the overlapping rows of a nonreciprocal recoding tell about the items, without knowing any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.auditing.reading.item_sets import (
    Ints,
    Lists,
    Marks,
    Words,
    as_set,
    bitmaps,
    bits_set,
    names_in,
    numbered,
    offsets_of,
)
from anon_spark.columns import BASE, BLOCK, MAX_ERRORS, PART, SLOT, UNCERTAIN
from anon_spark.compiled import compiled, inner
from anon_spark.engine import beside
from anon_spark.pending import Pending
from anon_spark.risk.item_sets.group_solutions import is_unique

BLOCKS = 2
MOST_RECORDS = 20_000  # larger blocks are not looked at
LARGEST_EXACT = 8  # rows of so many records are solved exactly

Graph = Literal["ring", "groups"]

Votes = NDArray[np.int8]

_COUNTS = ("records", "bits", "known_records", "known_bits", "chained_records", "next_rows")


@dataclass(frozen=True)
class Reconstruction:
    """Records and bits (a record's item, there or not) of some blocks that the published rows alone determine.

    known: the attacker knows the order of the rows in their ring; chained: the attacker infers the row order by similarity.
    The latter is counted inside runs of rows in the right order (equal rows may be exchanged at no loss: the true number is
    higher); next_rows: rows whose inferred successor is a neighbour in the ring. Groups have no order: records are counted whose
    group leaves one possibility for all its records by base, uncertain items, max_errors and size; chained is the same. exact: of
    a ring, all item sets that fit base and uncertain items were compared (max_errors aside, so more may be known); else only bits
    that some row is certain of are counted. The bits are of the items of each block.
    """

    graph: Graph
    degree: int
    exact: bool
    blocks: int
    records: int
    bits: int
    known_records: int
    known_bits: int
    chained_records: int
    next_rows: int

    @property
    def known_share(self) -> float:
        """Share of records that are determined in all items, the order being known; 0 of none."""
        return self.known_records / self.records if self.records else 0.0

    @property
    def known_bits_share(self) -> float:
        return self.known_bits / self.bits if self.bits else 0.0

    @property
    def chained_share(self) -> float:
        """The same with the inferred row order."""
        return self.chained_records / self.records if self.records else 0.0

    @property
    def next_share(self) -> float:
        return self.next_rows / self.records if self.records else 0.0


def reconstruction(staged: DataFrame, graph: Graph, degree: int, blocks: int = BLOCKS) -> Reconstruction:
    """Solve the first blocks (of at most MOST_RECORDS rows) for their records.

    staged: base, uncertain and max_errors with BLOCK, PART and SLOT; in a ring, slots are numbered in its order and slot j stands
    for the records j, j - 1, … j - degree + 1. Per item, a row without doubt says that these are all equal, any other that
    they are not, and what most of them have.
    Cost: one job: the rows of the whole release are counted by block, those of a few blocks come together in one task
    each; rows² comparisons for the order, and uncertain items × 2^degree steps for the exact solution. One row reaches
    the driver.
    """
    return reconstruction_to_be(staged, graph, degree, blocks).get()


def reconstruction_to_be(staged: DataFrame, graph: Graph, degree: int, blocks: int = BLOCKS) -> Pending[Reconstruction]:
    """As `reconstruction`, its counts not collected yet."""
    sizes = staged.groupBy(BLOCK).agg(F.count(F.lit(1)).alias("size"))
    first = sizes.where(F.col("size") <= MOST_RECORDS).orderBy(BLOCK).limit(blocks).select(BLOCK)
    rows = staged.join(beside(first), BLOCK).select(
        BLOCK, PART, SLOT, MAX_ERRORS, as_set(F.col(BASE)).alias(BASE), as_set(F.col(UNCERTAIN)).alias(UNCERTAIN)
    )

    def solve(table: pa.Table) -> pa.Table:
        counts = _ring(table.sort_by(SLOT), degree) if graph == "ring" else _groups(table)
        return pa.table({name: [int(count)] for name, count in zip(_COUNTS, counts, strict=True)})

    counted = rows.groupBy(BLOCK).applyInArrow(solve, ", ".join(f"{name} long" for name in _COUNTS))
    totals = counted.agg(
        F.count(F.lit(1)).alias("blocks"), *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _COUNTS)
    )
    exact = graph == "groups" or degree <= LARGEST_EXACT
    return Pending.of(totals, lambda found: Reconstruction(graph, degree, exact, **found[0].asDict()))


def _groups(table: pa.Table) -> tuple[int, ...]:
    """All rows of a group are equal: its records are known iff one possibility is left."""
    items = names_in(table[BASE], table[UNCERTAIN])
    base, uncertain = (numbered(table[name], items) for name in (BASE, UNCERTAIN))
    _, first, sizes = np.unique(np.asarray(table[PART]), return_index=True, return_counts=True)
    errors = np.asarray(table[MAX_ERRORS])
    records, bits = len(table), len(table) * len(items)
    known = known_bits = 0
    for row, size in zip(first.tolist(), sizes.tolist(), strict=True):
        doubts = uncertain[1][uncertain[0][row] : uncertain[0][row + 1]]
        present = int(np.isin(doubts, base[1][base[0][row] : base[0][row + 1]]).sum())
        unique = is_unique(size, doubts.size - present, present, int(errors[row]))
        known += size if unique else 0
        known_bits += size * (len(items) if unique else len(items) - doubts.size)
    return records, bits, known, known_bits, known, 0


def _ring(table: pa.Table, degree: int) -> tuple[int, ...]:
    """One ring, its rows in order."""
    items = names_in(table[BASE], table[UNCERTAIN])
    base, uncertain = (numbered(table[name], items) for name in (BASE, UNCERTAIN))
    records = len(table)
    by_item = [_by_item(lists, len(items)) for lists in (base, uncertain)]
    whole = unknown_bits(by_item[0], by_item[1], np.zeros(records, dtype=np.bool_), degree, degree <= LARGEST_EXACT)

    shuffled = np.random.default_rng(0).permutation(records)  # of equally similar rows none is before the others
    looks = [bitmaps(lists, len(items))[0][shuffled] for lists in (base, uncertain)]
    chain = shuffled[chained(looks[0], looks[1], degree)]
    cuts = np.ones(records, dtype=np.bool_)
    for row, follower in zip(chain, np.roll(chain, -1), strict=True):
        if (follower - row) % records == 1:
            cuts[follower] = False
        elif (row - follower) % records == 1:
            cuts[row] = False
    parts = unknown_bits(by_item[0], by_item[1], cuts, degree, degree <= LARGEST_EXACT)
    solved = np.zeros(records, dtype=np.bool_)
    solved[ranks_of(cuts, degree)[parts == 0]] = True
    apart = (shuffled[neighbours(looks[0], looks[1], degree)] - shuffled) % records
    next_rows = np.count_nonzero((apart == 1) | (apart == records - 1))
    bits = records * len(items)
    return records, bits, int(np.count_nonzero(whole == 0)), bits - int(whole.sum()), int(solved.sum()), int(next_rows)


def _by_item(lists: Lists, items: int) -> Lists:
    """The rows of each item, ascending."""
    offsets, numbers = lists
    row = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    counts = np.bincount(numbers, minlength=items)
    return offsets_of(counts), row[np.lexsort((row, numbers))]


# -- the order --------------------------------------------------------------------------------------------------------


@compiled
def chained(base: Words, uncertain: Words, degree: int) -> Ints:
    """Rows from the first on, each followed by the likeliest neighbour that is left."""
    rows = base.shape[0]
    chain, left = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=np.bool_)
    left[0] = False
    for place in range(1, rows):
        chain[place] = likeliest(base, uncertain, degree, chain[place - 1], left)
        left[chain[place]] = False
    return chain


@compiled
def neighbours(base: Words, uncertain: Words, degree: int) -> Ints:
    """Per row its likeliest neighbour."""
    rows = base.shape[0]
    nearest, left = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=np.bool_)
    for row in range(rows):
        left[row] = False
        nearest[row] = likeliest(base, uncertain, degree, row, left)
        left[row] = True
    return nearest


@inner
def likeliest(base: Words, uncertain: Words, degree: int, row: int, left: Marks) -> int:
    """The first of the rows left that contradict a row in fewest items, and of these differ from it in fewest bits.

    Neighbours share all records but one: where one row is certain, the other has the same base (if degree is 2, only
    where both are certain).
    """
    best, least = -1, np.int64(2**62)
    contradiction = 128 * base.shape[1]
    for other in range(base.shape[0]):
        if left[other]:
            apart = np.int64(0)
            for word in range(base.shape[1]):
                doubts, other_doubts = uncertain[row, word], uncertain[other, word]
                bases = base[row, word] ^ base[other, word]
                against = bases & ~(doubts & other_doubts) if degree > 2 else bases & ~(doubts | other_doubts)
                apart += contradiction * bits_set(against) + bits_set(bases) + bits_set(doubts ^ other_doubts)
                if apart >= least:
                    break
            if apart < least:
                best, least = other, apart
    return best


# -- the items --------------------------------------------------------------------------------------------------------


def ranks_of(cuts: Marks, degree: int) -> Ints:
    """The record that each entry of `unknown_bits` is about."""
    records = cuts.size
    starts = np.flatnonzero(cuts)
    if not starts.size:
        return np.arange(records)
    ends = np.roll(starts, -1)
    ends[-1] += records
    return np.concatenate([np.arange(start - degree + 1, end) % records for start, end in zip(starts, ends, strict=True)])


@compiled
def unknown_bits(base: Lists, uncertain: Lists, cuts: Marks, degree: int, exact: bool) -> Ints:
    """Per record how many items are not determined. base and uncertain: the rows of each item.

    cuts[j]: row j is not known to follow row j - 1. Without any cut the ring is whole: one entry per record. Else one
    entry per record of each run of rows, its first degree - 1 records included (see `ranks_of`).
    Cost: uncertain items × 2^degree; exact == False: uncertain items.
    """
    rows = cuts.size
    lead, pieces = 0, 0
    for row in range(rows):
        pieces += int(cuts[row])
    entry = np.zeros(rows, dtype=np.int64)  # of record j, in the run of row j
    if pieces:
        lead = degree - 1
        start = 0
        while not cuts[start]:
            start += 1
        at = 0
        for step in range(rows):
            row = (start + step) % rows
            at += lead if cuts[row] else 0
            entry[row] = at
            at += 1
    else:
        for row in range(rows):
            entry[row] = row
    unknown = np.zeros(rows + pieces * lead, dtype=np.int64)
    votes = votes_of(degree) if exact else np.zeros(1, dtype=np.int8)
    has, doubt = np.zeros(rows, dtype=np.bool_), np.zeros(rows, dtype=np.bool_)
    for item in range(uncertain[0].size - 1):
        first, last = uncertain[0][item], uncertain[0][item + 1]
        if first == last:
            continue
        for at in range(base[0][item], base[0][item + 1]):
            has[base[1][at]] = True
        for at in range(first, last):
            doubt[uncertain[1][at]] = True
        if last - first == rows and pieces == 0:
            solve_ring(has, unknown, degree, votes, exact)
        else:
            for at in range(first, last):
                row = uncertain[1][at]
                if cuts[row] or not doubt[(row - 1) % rows]:
                    solve_run(row, has, doubt, cuts, entry, unknown, degree, votes, exact)
        for at in range(base[0][item], base[0][item + 1]):
            has[base[1][at]] = False
        for at in range(first, last):
            doubt[uncertain[1][at]] = False
    return unknown


@inner
def votes_of(degree: int) -> Votes:
    """Per window of bits what most of them are; 2 where all are equal."""
    votes = np.zeros(1 << degree, dtype=np.int8)
    for window in range(votes.size):
        count = bits_set(np.uint64(window))
        if count == 0 or count == degree:
            votes[window] = 2
        elif 2 * count > degree:
            votes[window] = 1
    return votes


@inner
def solve_run(
    row: int, has: Marks, doubt: Marks, cuts: Marks, entry: Ints, unknown: Ints, degree: int, votes: Votes, exact: bool
) -> None:
    """Solve the longest run of doubtful rows from `row` on, between certain rows or cuts."""
    rows = cuts.size
    length = 1
    while length < rows and doubt[(row + length) % rows] and not cuts[(row + length) % rows]:
        length += 1
    after = (row + length) % rows
    open_start, open_end = bool(cuts[row]), bool(cuts[after])
    first_entry = entry[row]  # entries of a run of rows follow each other, but for a whole ring
    if not exact:
        for step in range(length):
            if open_end or step + degree <= length:
                unknown[(first_entry + step) % unknown.size] += 1
        for back in range(1, degree):
            if open_start and (open_end or degree - back <= length):
                unknown[first_entry - back] += 1
        return
    states = 1 << (degree - 1)
    alive = np.zeros((length + 1, states), dtype=np.bool_)
    if open_start:
        alive[0, :] = True
    else:
        alive[0, states - 1 if has[(row - 1) % rows] else 0] = True
    pass_forward(alive, row, has, votes)
    if not open_end:
        ending = states - 1 if has[after] else 0
        for state in range(states):
            if state != ending:
                alive[length, state] = False
    pass_backward(alive, row, has, votes)
    for step in range(length):
        if both_values(alive[step + 1], 0):
            unknown[(first_entry + step) % unknown.size] += 1
    if open_start:
        for back in range(1, degree):
            if both_values(alive[0], back - 1):
                unknown[first_entry - back] += 1


@inner
def solve_ring(has: Marks, unknown: Ints, degree: int, votes: Votes, exact: bool) -> None:
    """Solve a whole ring of doubtful rows: it must end in the state in which it began; every state is tried."""
    rows = has.size
    if not exact:
        unknown += 1
        return
    states = 1 << (degree - 1)
    possible = np.zeros((rows, 2), dtype=np.bool_)
    alive = np.zeros((rows + 1, states), dtype=np.bool_)
    for beginning in range(states):
        alive[:, :] = False
        alive[0, beginning] = True
        pass_forward(alive, 0, has, votes)
        closes = alive[rows, beginning]
        alive[rows, :] = False
        alive[rows, beginning] = closes
        pass_backward(alive, 0, has, votes)
        for row in range(rows):
            for state in range(states):
                if alive[row + 1, state]:
                    possible[row, state & 1] = True
    for row in range(rows):
        if possible[row, 0] and possible[row, 1]:
            unknown[row] += 1


@inner
def pass_forward(alive: Marks, row: int, has: Marks, votes: Votes) -> None:
    """Mark the states (the last degree - 1 bits) that can be reached, row after row."""
    states = alive.shape[1]
    for step in range(alive.shape[0] - 1):
        wanted = np.int64(has[(row + step) % has.size])
        for state in range(states):
            if alive[step, state]:
                for bit in range(2):
                    window = 2 * state + bit
                    if votes[window] == wanted:
                        alive[step + 1, window & (states - 1)] = True


@inner
def pass_backward(alive: Marks, row: int, has: Marks, votes: Votes) -> None:
    """Keep only states that also lead to an end."""
    states = alive.shape[1]
    for step in range(alive.shape[0] - 2, -1, -1):
        wanted = np.int64(has[(row + step) % has.size])
        for state in range(states):
            leads = False
            for bit in range(2):
                window = 2 * state + bit
                leads = leads or (votes[window] == wanted and alive[step + 1, window & (states - 1)])
            alive[step, state] = alive[step, state] and leads


@inner
def both_values(alive: Marks, place: int) -> bool:
    """Whether a bit of the states that are left is 0 in some and 1 in others."""
    seen = np.zeros(2, dtype=np.bool_)
    for state in range(alive.size):
        if alive[state]:
            seen[(state >> place) & 1] = True
    return bool(seen[0] and seen[1])
