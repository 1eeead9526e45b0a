"""Groups improved by swaps: two records of different groups change places while the error rate falls (simulated annealing).

The error rate charges a record by its flipped bits over its own size. So the cost of a group is Σ over items of the weights,
1 / size, of its members that differ from the majority; in fixed point, so that every comparison is one of integers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.kernels.bitmaps import Sets, in_common
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.compiled import compiled

PROPOSALS = {"normal": 300, "deep": 1_500}  # per record
HOT, COLD = 0.5, 0.1  # temperature at the start and at the end, in flipped bits
LEAST_NEAR, MOST_NEAR = 12, 48
DENSE_BYTES = 2**26  # counts of all groups are kept up to here; above, those of two groups are counted anew
WEIGHT = 2**24  # of a record with one item
SEED = np.uint64(0x9E3779B97F4A7C15)  # public: groups depend on the records alone, never on the secret of a run


class Groups(NamedTuple):
    """Groups as ranges of `members`: group g is members[first[g] : first[g + 1]].

    Per row (a group, or one of two scratch rows): counts and weighed, how many members have an item, and their weights;
    total, the weights of all members; base, how many items more than half of them have.
    """

    members: Codes
    first: Ints
    group_of: Codes
    place: Codes
    weight: Ints
    counts: Codes
    weighed: Ints
    total: Ints
    base: Ints


def swapped(sets: Sets, sizes: Ints, k: int, labels: Codes | None, effort: str) -> Ints:
    """An order of the records in which consecutive groups of these sizes have a lower error rate, if one was found.

    labels: inside a group they stay pairwise different. Guarantee: the same order for the same records, whatever the secret of
    the run; the cost never rises. Cost: records² distances, then a fixed number of proposals per record.
    """
    count = int(sizes.sum())
    start = np.arange(count, dtype=np.int32)
    if sizes.size < 2:
        return start.astype(np.int64)
    distinct, alike = np.unique(sets.bits, axis=0, return_inverse=True)
    kind: Codes = alike.reshape(-1).astype(np.int32)
    of_kind = np.unique(kind, return_index=True)[1].astype(np.int32)
    near = nearest(sets, of_kind, min(int(np.clip(3 * k, LEAST_NEAR, MOST_NEAR)), len(distinct) - 1))
    if near.shape[1] == 0:
        return start.astype(np.int64)
    size = np.diff(sets.offsets)
    weight = np.where(size > 0, WEIGHT // np.maximum(size, 1), 0).astype(np.int64)
    items = int(sets.codes.size)
    dense = sizes.size * items * 12 <= DENSE_BYTES
    rows = sizes.size if dense else 2
    groups = Groups(
        start.copy(),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.repeat(np.arange(sizes.size), sizes).astype(np.int32),
        start.copy(),
        weight,
        np.zeros((rows, max(1, items)), dtype=np.int32),
        np.zeros((rows, max(1, items)), dtype=np.int64),
        np.zeros(rows, dtype=np.int64),
        np.zeros(rows, dtype=np.int64),
    )
    known = np.full(count, -1, dtype=np.int32) if labels is None else labels.astype(np.int32)
    unit = float(weight[size > 0].mean()) if (size > 0).any() else 0.0
    saved = anneal(sets, groups, known, kind, of_kind, near, PROPOSALS[effort] * count, HOT * unit, COLD * unit, dense)
    return (groups.members if saved > 0 else start).astype(np.int64)


@compiled
def nearest(sets: Sets, records: Codes, most: int) -> Codes:
    """The places among `records` of those that differ from each in the fewest items, nearest first. Ties: the earlier one."""
    near, distance = np.empty((records.size, most), dtype=np.int32), np.empty(most, dtype=np.int64)
    shared, sizes = np.empty(sets.bits.shape[0], dtype=np.int64), np.diff(sets.offsets)
    for at in range(records.size):
        in_common(sets, records[at], sets.bits, 0, shared)
        held = 0
        for other in range(records.size):
            if other == at:
                continue
            apart = sizes[records[at]] + sizes[records[other]] - 2 * shared[records[other]]
            if held == most and apart >= distance[held - 1]:
                continue
            place = min(held, most - 1)
            while place > 0 and distance[place - 1] > apart:
                distance[place], near[at, place] = distance[place - 1], near[at, place - 1]
                place -= 1
            distance[place], near[at, place] = apart, other
            held = min(held + 1, most)
    return near


@compiled
def anneal(
    sets: Sets,
    groups: Groups,
    labels: Codes,
    alike: Codes,
    of_kind: Codes,
    near: Codes,
    proposals: int,
    hot: float,
    cold: float,
    dense: bool,
) -> int:
    """Propose swaps of a record with one in the group of a near neighbour; returns by how much the cost fell."""
    count, saved, state = groups.members.size, np.int64(0), SEED
    if dense:
        for group in range(groups.first.size - 1):
            load(sets, groups, group, group, 1)
    cooling, temperature = (cold / hot) ** (1.0 / max(1, proposals)) if hot > 0 else 1.0, hot
    for _ in range(proposals):
        temperature *= cooling
        state, chance = drawn(state)
        one = int(chance * count)
        state, chance = drawn(state)
        close = of_kind[near[alike[one], int(chance * chance * near.shape[1])]]
        state, chance = drawn(state)
        here, there = groups.group_of[one], groups.group_of[close]
        if here == there:
            continue
        first, last = groups.first[there], groups.first[there + 1]
        other = groups.members[first + int(chance * (last - first))]
        if alike[one] == alike[other] or not fits(groups, labels, here, one, labels[other]):
            continue
        if not fits(groups, labels, there, other, labels[one]):
            continue
        row, other_row = (here, there) if dense else (0, 1)
        if not dense:
            load(sets, groups, here, 0, 1)
            load(sets, groups, there, 1, 1)
        change = changed(sets, groups, here, row, one, other) + changed(sets, groups, there, other_row, other, one)
        if not dense:
            load(sets, groups, here, 0, -1)
            load(sets, groups, there, 1, -1)
        if change > 0:
            state, chance = drawn(state)
            if temperature <= 0 or chance >= np.exp(-change / temperature):
                continue
        saved -= change
        if dense:
            size, other_size = groups.first[here + 1] - groups.first[here], last - first
            add(sets, groups, row, size, one, -1)
            add(sets, groups, row, size, other, 1)
            add(sets, groups, other_row, other_size, other, -1)
            add(sets, groups, other_row, other_size, one, 1)
        at, other_at = groups.place[one], groups.place[other]
        groups.members[at], groups.members[other_at] = other, one
        groups.place[one], groups.place[other] = other_at, at
        groups.group_of[one], groups.group_of[other] = there, here
    return int(saved)


@compiled
def drawn(state: np.uint64) -> tuple[np.uint64, float]:
    """The next state of a generator, and a number from 0 to below 1."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state, float(state >> np.uint64(11)) / 9007199254740992.0


@compiled
def fits(groups: Groups, labels: Codes, group: int, without: int, label: int) -> bool:
    """Whether a label is not in a group yet, one of its members aside; records without labels always fit."""
    if label < 0:
        return True
    for at in range(groups.first[group], groups.first[group + 1]):
        if groups.members[at] != without and labels[groups.members[at]] == label:
            return False
    return True


@compiled
def add(sets: Sets, groups: Groups, row: int, size: int, record: int, times: int) -> None:
    """Count a record in the row of a group of this size, or (-1) take it out."""
    groups.total[row] += times * groups.weight[record]
    for at in range(sets.offsets[record], sets.offsets[record + 1]):
        item = sets.items[at]
        before = groups.counts[row, item]
        groups.counts[row, item] = before + times
        groups.weighed[row, item] += times * groups.weight[record]
        groups.base[row] += np.int64(2 * (before + times) > size) - np.int64(2 * before > size)


@compiled
def load(sets: Sets, groups: Groups, group: int, row: int, times: int) -> None:
    """Count all records of a group in a row, or (-1) take them out."""
    first, last = groups.first[group], groups.first[group + 1]
    for at in range(first, last):
        add(sets, groups, row, last - first, groups.members[at], times)


@compiled
def changed(sets: Sets, groups: Groups, group: int, row: int, leaves: int, joins: int) -> int:
    """By how much the cost of a group grows if one record leaves and another joins."""
    size, total, base = groups.first[group + 1] - groups.first[group], groups.total[row], groups.base[row]
    after_total = total - groups.weight[leaves] + groups.weight[joins]
    change, at, other = np.int64(0), sets.offsets[leaves], sets.offsets[joins]
    while at < sets.offsets[leaves + 1] or other < sets.offsets[joins + 1]:
        item = np.int32(2**31 - 1)
        if at < sets.offsets[leaves + 1]:
            item = sets.items[at]
        if other < sets.offsets[joins + 1]:
            item = min(item, sets.items[other])
        having, weighed = groups.counts[row, item], groups.weighed[row, item]
        after, after_weighed = having, weighed
        if at < sets.offsets[leaves + 1] and sets.items[at] == item:
            after, after_weighed, at = after - 1, after_weighed - groups.weight[leaves], at + 1
        if other < sets.offsets[joins + 1] and sets.items[other] == item:
            after, after_weighed, other = after + 1, after_weighed + groups.weight[joins], other + 1
        if 2 * having > size:
            base -= 1
            change -= total - weighed
        else:
            change -= weighed
        change += after_total - after_weighed if 2 * after > size else after_weighed
    return int(change + base * (after_total - total))
