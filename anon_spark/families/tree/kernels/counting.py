"""Support counts of label sets: every set of at most m labels with its relations is counted under one number (`keys`).

A record emits one key for each set of 1 … m of its labels, with the relations inside the set, and not one for each set of
relations: supports are sums over masks, made once at the end (`violations`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled, inner
from anon_spark.families.tree.kernels.keys import Layout
from anon_spark.families.tree.kernels.pairs import DENSE_PAIRS, tally_of_pairs
from anon_spark.families.tree.kernels.trees import NONE, Flags, Trees, largest_record
from anon_spark.kernels.classes import EMPTY, HASH_MULTIPLIER, Codes, Ints

Bytes = NDArray[np.int8]

DENSE_KEYS = 2**24
KEYS_PER_RECORD = 2**11  # counting a record is worth looking through so many counters
COUNTER_LIMIT = 2**31
FIRST_ROOM = 2**12
RUN = 2**12


@compiled
def label_counts(trees: Trees, slots: Codes) -> Ints:
    """How many distinct labels with a slot each record has."""
    counts = np.zeros(trees.offsets.size - 1, dtype=np.int64)
    seen_in = np.full(slots.size, NONE, dtype=np.int64)
    for record in range(counts.size):
        for at in range(trees.offsets[record], trees.offsets[record + 1]):
            label = trees.labels[at]
            if slots[label] != NONE and seen_in[label] != record:
                seen_in[label] = record
                counts[record] += 1
    return counts


def tally(
    trees: Trees, weights: Ints, slots: Codes, c: int, m: int, focus: Flags, negated: Flags, secrets: Codes
) -> tuple[Ints, Ints]:
    """Keys of `Layout.of(c, m, S)`, ascending, and the weight of the records that have each. Equal siblings may stand in one.

    slots: by label, NONE for labels that do not count. focus: by slot, then only sets with such a slot are counted, not the
    empty one; empty: all sets. negated [q, labels]: slot c - q + j is given to records without any label of row j; it has no
    relations. secrets: by label, 1 … S for sensitive values, else 0; then every set is also counted with each of them.
    Guarantee: exact for any number of labels. Cost: about 10 ns for each set of a record; 4 bytes per key where all keys are
    at most DENSE_KEYS, else 24 to 48 bytes for each key that is found. Raises LimitExceeded where keys do not fit.
    """
    known = min(slots.size, secrets.size, negated.shape[1] if negated.size else slots.size)
    if int(trees.labels.max(initial=NONE)) >= known or int(slots.max(initial=NONE)) >= c - negated.shape[0]:
        raise ValueError("labels, slots and their number do not fit together")
    if focus.size not in (0, c):
        raise ValueError("the focus is not by slot")
    layout = Layout.of(c, m, int(secrets.max(initial=0)))
    if m <= 2 and c <= DENSE_PAIRS and not negated.shape[0] and not layout.secrets:
        return tally_of_pairs(trees, weights, slots, layout, focus, np.arange(trees.records))
    dense = layout.keys <= min(DENSE_KEYS, KEYS_PER_RECORD * trees.records) and int(weights.sum()) < COUNTER_LIMIT
    counters, table = counted(
        trees,
        np.require(weights, np.int64, ["C", "W"]),
        np.require(slots, np.int32, ["C", "W"]),
        layout,
        np.require(focus, np.bool_, ["C", "W"]),
        np.require(negated, np.bool_, ["C", "W"]),
        np.require(secrets, np.int32, ["C", "W"]),
        dense,
    )
    if dense:
        keys = np.flatnonzero(counters)
        return keys, counters[keys].astype(np.int64)
    rows = table.rows[table.rows[:, 1] > 0]
    rows = rows[np.argsort(rows[:, 0])]
    return rows[:, 0].copy(), rows[:, 1].copy()


def merged(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """The sums of several tallies of one layout."""
    keys = np.concatenate([np.zeros(0, dtype=np.int64), *(part[0] for part in parts)])
    counts = np.concatenate([np.zeros(0, dtype=np.int64), *(part[1] for part in parts)])
    if len(parts) <= 1 or not keys.size:
        return keys, counts
    order = np.argsort(keys, kind="stable")  # the parts ascend: runs are merged
    keys, counts = keys[order], counts[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[first], np.add.reduceat(counts, first)


class Record(NamedTuple):
    """One record: its slots, ascending; which are in focus; which are related; its secrets, distinct."""

    slots: Ints
    focused: Flags
    related: Bytes
    secrets: Ints


class Walk(NamedTuple):
    """Through the sets of one record, size by size: the slots chosen before the last one, and what a key has of them.

    state: size, depth. rows[d, x]: which of the first d chosen are related to x, as bits. sets: room for RUN sets and a run.
    """

    state: Ints
    chosen: Ints
    in_focus: Flags
    ranks: Ints
    masks: Ints
    rows: Ints
    sets: Ints


class Table(NamedTuple):
    """Rows of key and count by open addressing, EMPTY where there is no key; how many there are."""

    rows: Ints
    filled: int


@compiled
def counted(
    trees: Trees,
    weights: Ints,
    slots: Codes,
    layout: Layout,
    focus: Flags,
    negated: Flags,
    secrets: Codes,
    dense: bool,
) -> tuple[Codes, Table]:
    """Counters by key if dense, else none, and the keys that were found with their counts."""
    largest = largest_record(trees)
    width, depths, all_sets = min(layout.c, largest + negated.shape[0]), layout.m + 1, focus.size == 0
    content = Record(
        np.empty(width, np.int64),
        np.empty(width, np.bool_),
        np.zeros((width, width), np.int8),
        np.empty(min(largest, layout.secrets), np.int64),
    )
    walk = Walk(
        np.zeros(2, np.int64),
        np.empty(depths, np.int64),
        np.empty(depths, np.bool_),
        np.empty(depths, np.int64),
        np.empty(depths, np.int64),
        np.zeros((depths, width), np.int64),
        np.empty(RUN + width, np.int64),
    )
    place, local = np.full(layout.c, NONE, dtype=np.int64), np.empty(largest, dtype=np.int64)
    seen_secret = np.full(layout.secrets + 1, NONE, dtype=np.int64)
    counters = np.zeros(layout.bases[-1] * (layout.secrets + 1) if dense else 0, dtype=np.int32)
    table = Table(np.full((FIRST_ROOM, 2), EMPTY, dtype=np.int64), 0)
    for record in range(trees.offsets.size - 1):
        if not all_sets and negated.shape[0] == 0 and not is_focused(trees, record, slots, focus):
            continue
        known = take_slots(trees, record, slots, layout.c, focus, negated, content, place)
        last_focus = known - 1
        while last_focus >= 0 and not content.focused[last_focus]:
            last_focus -= 1
        if last_focus < 0 and not all_sets:
            continue
        take_relations(trees, record, slots, content, known, place, local)
        kinds = take_secrets(trees, record, secrets, content, seen_secret) if layout.secrets > 0 else 0
        walk.state[0] = 0
        while walk.state[0] <= min(layout.m, known):
            length = next_sets(layout, content, known, last_focus, all_sets, walk)
            if dense:
                count_dense(counters, walk.sets, length, weights[record], content.secrets, kinds, layout.secrets + 1)
            else:
                table = counted_sparse(
                    table, walk.sets, length, weights[record], content.secrets, kinds, layout.secrets + 1
                )
    return counters, table


@inner
def is_focused(trees: Trees, record: int, slots: Codes, focus: Flags) -> bool:
    """Whether a record has a label in focus."""
    for at in range(trees.offsets[record], trees.offsets[record + 1]):
        slot = slots[trees.labels[at]]
        if slot != NONE and focus[slot]:
            return True
    return False


@inner
def next_sets(layout: Layout, content: Record, known: int, last_focus: int, all_sets: bool, walk: Walk) -> int:
    """Write the next sets of the record without secrets, at least RUN of them or all that are left; how many.

    Slots are chosen one after the other, ascending; for the last one all sets are written in a run, close to each other.
    Arrays get names here: taking one out of a tuple costs more than a step.
    """
    slots, focused, related, binomials = content.slots, content.focused, content.related, layout.binomials
    chosen, in_focus, ranks, masks, rows, sets = (
        walk.chosen,
        walk.in_focus,
        walk.ranks,
        walk.masks,
        walk.rows,
        walk.sets,
    )
    c, size, depth, length = layout.c, walk.state[0], walk.state[1], 0
    if size == 0:
        if all_sets:
            sets[0] = 0
            length = 1
        for at in range(known):
            if all_sets or focused[at]:
                sets[length] = layout.bases[1] + slots[at]
                length += 1
        size, depth = 1, NONE
    while length < RUN:
        if depth == NONE:
            size += 1
            if size > min(layout.m, known):
                break
            depth, chosen[0], in_focus[0], masks[0], ranks[0] = 0, NONE, all_sets, 0, binomials[c, size] - c
        pairs, shift = size * (size - 1) // 2, (size - 1) * (size - 2) // 2
        chosen[depth] += 1
        at = chosen[depth]
        is_focused = in_focus[depth] or focused[at]
        if at > known - size + depth or (not is_focused and at >= last_focus):
            depth -= 1
            continue
        rank = ranks[depth] - binomials[c - 1 - slots[at], size - depth]
        mask = masks[depth] | (rows[depth, at] << (depth * (depth - 1) // 2))
        if depth < size - 2:
            for after in range(at + 1, known):
                rows[depth + 1, after] = rows[depth, after] | (np.int64(related[at, after]) << depth)
            depth += 1
            chosen[depth], in_focus[depth], ranks[depth], masks[depth] = at, is_focused, rank, mask
            continue
        low = layout.bases[size] + (rank << pairs) + mask
        for after in range(at + 1, known):
            if is_focused or focused[after]:
                bits = rows[depth, after] | (np.int64(related[at, after]) << depth)
                sets[length] = low + (slots[after] << pairs) + (bits << shift)
                length += 1
    walk.state[0], walk.state[1] = size, depth
    return length


@inner
def count_dense(counters: Codes, sets: Ints, length: int, weight: int, secrets: Ints, kinds: int, step: int) -> None:
    """Add the weight of one record to these sets, and to these sets with each of its secrets."""
    for at in range(length):
        counters[sets[at] * step] += weight
        for kind in range(kinds):
            counters[sets[at] * step + secrets[kind]] += weight


@inner
def counted_sparse(
    table: Table, sets: Ints, length: int, weight: int, secrets: Ints, kinds: int, step: int
) -> Table:
    """The same, with as much room as it takes."""
    rows, filled = table
    while 3 * (filled + length * (kinds + 1)) > 2 * rows.shape[0]:
        rows = rehashed(rows)
    for at in range(length):
        filled += add_to(rows, sets[at] * step, weight)
        for kind in range(kinds):
            filled += add_to(rows, sets[at] * step + secrets[kind], weight)
    return Table(rows, filled)


@inner
def add_to(rows: Ints, key: int, weight: int) -> int:
    """Add to the count of a key; 1 if it is new."""
    word = np.uint64(key) * HASH_MULTIPLIER
    slot = np.int64(word ^ (word >> np.uint64(32))) & (rows.shape[0] - 1)
    while rows[slot, 0] != key:
        if rows[slot, 0] == EMPTY:
            rows[slot, 0], rows[slot, 1] = key, weight
            return 1
        slot = (slot + 1) & (rows.shape[0] - 1)
    rows[slot, 1] += weight
    return 0


@inner
def rehashed(rows: Ints) -> Ints:
    """Twice the room."""
    more = np.full((2 * rows.shape[0], 2), EMPTY, dtype=np.int64)
    for slot in range(rows.shape[0]):
        if rows[slot, 0] != EMPTY:
            add_to(more, rows[slot, 0], rows[slot, 1])
    return more


@inner
def take_slots(
    trees: Trees, record: int, slots: Codes, c: int, focus: Flags, negated: Flags, content: Record, place: Ints
) -> int:
    """Write the record's distinct slots, ascending, and which are in focus; how many. place: NONE for all slots, and again."""
    labels, into_slots, focused = trees.labels, content.slots, content.focused
    begin, end, known = trees.offsets[record], trees.offsets[record + 1], 0
    for at in range(begin, end):
        slot = np.int64(slots[labels[at]])
        if slot != NONE and place[slot] == NONE:
            place[slot] = 0
            before = known
            while before > 0 and into_slots[before - 1] > slot:
                into_slots[before] = into_slots[before - 1]
                before -= 1
            into_slots[before] = slot
            known += 1
    for at in range(known):
        place[into_slots[at]] = NONE
    for row in range(negated.shape[0]):
        at = begin
        while at < end and not negated[row, labels[at]]:
            at += 1
        if at == end:
            into_slots[known] = c - negated.shape[0] + row
            known += 1
    for at in range(known):
        focused[at] = focus.size > 0 and focus[into_slots[at]]
    return known


@inner
def take_relations(
    trees: Trees, record: int, slots: Codes, content: Record, known: int, place: Ints, local: Ints
) -> None:
    """Write which of the record's slots are above each other, both ways. local: room, one per node."""
    labels, parents, record_slots, related = trees.labels, trees.parents, content.slots, content.related
    begin, end = trees.offsets[record], trees.offsets[record + 1]
    for at in range(known):
        place[record_slots[at]] = at
        for after in range(known):
            related[at, after] = 0
    for at in range(end - begin):
        slot = slots[labels[begin + at]]
        local[at] = NONE if slot == NONE else place[slot]
        if local[at] != NONE:
            above = parents[begin + at]
            while above != NONE:
                if local[above] != NONE:
                    related[local[at], local[above]] = 1
                    related[local[above], local[at]] = 1
                above = parents[begin + above]
    for at in range(known):
        place[record_slots[at]] = NONE


@inner
def take_secrets(trees: Trees, record: int, secrets: Codes, content: Record, seen_in: Ints) -> int:
    """Write the record's distinct sensitive values; how many."""
    labels, into_secrets, count = trees.labels, content.secrets, 0
    for at in range(trees.offsets[record], trees.offsets[record + 1]):
        secret = secrets[labels[at]]
        if secret > 0 and seen_in[secret] != record:
            seen_in[secret] = record
            into_secrets[count] = secret
            count += 1
    return count
