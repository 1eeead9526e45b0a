"""Groups improved by swaps and moves: records change places between groups while the error rate falls (simulated annealing).

The error rate charges a record by its flipped bits over its own size. So the cost of a group is Σ over items of the weights,
1 / size, of its members that differ from the majority; in fixed point, so that every comparison is one of integers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.kernels.bitmaps import Sets, columns_of, in_common
from anon_spark.kernels.classes import Codes, Ints

PROPOSALS = {"normal": 300, "deep": 1_500}  # per record
HOT, COLD = 0.5, 0.1  # temperature at the start and at the end, in flipped bits
LEAST_NEAR, MOST_NEAR = 12, 48
DENSE_BYTES = 2**26  # counts of all groups are kept up to here; above, those of two groups are counted anew
WEIGHT = 2**24  # of a record with one item
SHIFT = 44  # in `held`: weights of up to 2^20 members are below
ONE = 1 << SHIFT
SEED = np.uint64(0x9E3779B97F4A7C15)  # public: groups depend on the records alone, never on the secret of a run


class Groups(NamedTuple):
    """Group g: the first size[g] of members[g]; group_of and place: where each record is; weight: of each record.

    Per row (a group, or one of two scratch rows): held, how many members have an item, times ONE, plus the weights of these
    members; total, the weights of all members; base, how many items more than half of them have; items_of and weight_of, how
    many items c members have, and the weights of these members.
    """

    members: Codes
    size: Ints
    group_of: Codes
    place: Codes
    weight: Ints
    held: Ints
    total: Ints
    base: Ints
    items_of: Ints
    weight_of: Ints


class Regrouped(NamedTuple):
    """Records in a new order, and the sizes of the consecutive groups of this order."""

    order: Ints
    sizes: Ints


def regrouped(sets: Sets, sizes: Ints, k: int, labels: Codes | None, effort: str) -> Regrouped:
    """Consecutive groups of k to 2k - 1 records, given by their sizes, as groups with a lower error rate, if some were found.

    labels: inside a group they stay pairwise different. Guarantee: the same groups for the same records, whatever the secret of
    the run; as many groups as before, each of k to 2k - 1 records; the cost never rises.
    Cost: records² distances, then a fixed number of proposals per record.
    """
    count = int(sizes.sum())
    as_before = Regrouped(np.arange(count), sizes)
    if sizes.size < 2:
        return as_before
    distinct, alike = np.unique(sets.bits, axis=0, return_inverse=True)
    kind: Codes = alike.reshape(-1).astype(np.int32)
    of_kind = np.unique(kind, return_index=True)[1].astype(np.int32)
    near = nearest(sets, of_kind, min(int(np.clip(3 * k, LEAST_NEAR, MOST_NEAR)), len(distinct) - 1))
    if near.shape[1] == 0:
        return as_before
    size = np.diff(sets.offsets)
    weight = np.where(size > 0, WEIGHT // np.maximum(size, 1), 0).astype(np.int64)
    dense = sizes.size * int(sets.codes.size) * 8 <= DENSE_BYTES
    groups = groups_of(sizes, 2 * k - 1, weight, int(sets.codes.size), dense)
    known = np.full(count, -1, dtype=np.int32) if labels is None else labels.astype(np.int32)
    unit = float(weight[size > 0].mean()) if (size > 0).any() else 0.0
    proposals = PROPOSALS[effort] * count
    if anneal(sets, groups, known, kind, of_kind, near, k, proposals, HOT * unit, COLD * unit, dense) <= 0:
        return as_before
    taken = np.arange(groups.members.shape[1]) < groups.size[:, None]
    return Regrouped(groups.members[taken].astype(np.int64), groups.size)


def groups_of(sizes: Ints, most: int, weight: Ints, items: int, dense: bool) -> Groups:
    """Consecutive groups of records, with room for the most records of a group; nothing is counted yet."""
    rows, group = sizes.size if dense else 2, np.repeat(np.arange(sizes.size), sizes)
    place = np.arange(group.size) - (np.cumsum(sizes) - sizes)[group]
    members = np.full((sizes.size, most), -1, dtype=np.int32)
    members[group, place] = np.arange(group.size)
    return Groups(
        members,
        sizes.astype(np.int64),
        group.astype(np.int32),
        place.astype(np.int32),
        weight,
        np.zeros((rows, max(1, items)), dtype=np.int64),
        np.zeros(rows, dtype=np.int64),
        np.zeros(rows, dtype=np.int64),
        np.zeros((rows, most + 2), dtype=np.int64),
        np.zeros((rows, most + 2), dtype=np.int64),
    )


@compiled
def nearest(sets: Sets, records: Codes, most: int) -> Codes:
    """The places among `records` of those that differ from each in the fewest items, nearest first. Ties: the earlier one."""
    near, distance = np.empty((records.size, most), dtype=np.int32), np.empty(most, dtype=np.int64)
    shared, sizes, columns = np.empty(sets.bits.shape[0], dtype=np.int64), np.diff(sets.offsets), columns_of(sets.bits)
    for at in range(records.size):
        in_common(sets, records[at], columns, 0, shared)
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
    k: int,
    proposals: int,
    hot: float,
    cold: float,
    dense: bool,
) -> int:
    """Propose that a record moves to the group of a near neighbour: alone if its group has more than k records and the other
    fewer than 2k - 1, else in exchange for one of that group. Returns by how much the cost fell."""
    count, saved, state = groups.group_of.size, np.int64(0), SEED
    if dense:
        for group in range(groups.size.size):
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
        alone = groups.size[here] > k and groups.size[there] < groups.members.shape[1]
        other = one if alone else groups.members[there, int(chance * groups.size[there])]
        if not alone and (alike[one] == alike[other] or not fits(groups, labels, here, one, labels[other])):
            continue
        if not fits(groups, labels, there, other, labels[one]):
            continue
        row, other_row = (here, there) if dense else (0, 1)
        if not dense:
            load(sets, groups, here, 0, 1)
            load(sets, groups, there, 1, 1)
        if alone:
            change = resized(sets, groups, here, row, one, -1) + resized(sets, groups, there, other_row, one, 1)
        else:
            change = exchanged(sets, groups, here, row, one, other) + exchanged(sets, groups, there, other_row, other, one)
        if not dense:
            load(sets, groups, here, 0, -1)
            load(sets, groups, there, 1, -1)
        if change > 0:
            state, chance = drawn(state)
            if temperature <= 0 or chance >= np.exp(-change / temperature):
                continue
        saved -= change
        if dense:
            add(sets, groups, row, one, -1)
            add(sets, groups, other_row, one, 1)
            if not alone:
                add(sets, groups, other_row, other, -1)
                add(sets, groups, row, other, 1)
        place(groups, one, other, here, there)
        if dense:
            count_base(groups, here, here)
            count_base(groups, there, there)
    return int(saved)


@inner
def drawn(state: np.uint64) -> tuple[np.uint64, float]:
    """The next state of a generator, and a number from 0 to below 1."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state, float(state >> np.uint64(11)) / 9007199254740992.0


@inner
def fits(groups: Groups, labels: Codes, group: int, without: int, label: int) -> bool:
    """Whether a label is not in a group yet, one record aside; records without labels always fit."""
    if label < 0:
        return True
    for at in range(groups.size[group]):
        member = groups.members[group, at]
        if member != without and labels[member] == label:
            return False
    return True


@compiled
def place(groups: Groups, one: int, other: int, here: int, there: int) -> None:
    """Let two records change places, or let one move (`other` is the same record)."""
    at, other_at = groups.place[one], groups.place[other]
    if one == other:
        last, end = groups.size[here] - 1, groups.size[there]
        groups.members[here, at] = groups.members[here, last]
        groups.place[groups.members[here, last]] = at
        groups.size[here], groups.size[there] = last, end + 1
        other_at = end
    else:
        groups.members[here, at] = other
        groups.place[other], groups.group_of[other] = at, here
    groups.members[there, other_at] = one
    groups.place[one], groups.group_of[one] = other_at, there


@inner
def add(sets: Sets, groups: Groups, row: int, record: int, times: int) -> None:
    """Count a record in a row, or (-1) take it out; `base` is left to `count_base`."""
    weight = groups.weight[record]
    groups.total[row] += times * weight
    for at in range(sets.offsets[record], sets.offsets[record + 1]):
        held = groups.held[row, sets.items[at]]
        having, weighed = held // ONE, held % ONE
        groups.held[row, sets.items[at]] = held + times * (ONE + weight)
        groups.items_of[row, having] -= 1
        groups.weight_of[row, having] -= weighed
        groups.items_of[row, having + times] += 1
        groups.weight_of[row, having + times] += weighed + times * weight


@inner
def count_base(groups: Groups, group: int, row: int) -> None:
    size = groups.size[group]
    groups.base[row] = groups.items_of[row, size // 2 + 1 : size + 1].sum()


@inner
def load(sets: Sets, groups: Groups, group: int, row: int, times: int) -> None:
    """Count all records of a group in a row, or (-1) take them out."""
    for at in range(groups.size[group]):
        add(sets, groups, row, groups.members[group, at], times)
    count_base(groups, group, row)


@inner
def exchanged(sets: Sets, groups: Groups, group: int, row: int, leaves: int, joins: int) -> int:
    """By how much the cost of a group grows if one record leaves and another joins."""
    size, total, base = groups.size[group], groups.total[row], groups.base[row]
    left, come = groups.weight[leaves], groups.weight[joins]
    after_total, change = total - left + come, np.int64(0)
    for at in range(sets.offsets[leaves], sets.offsets[leaves + 1]):
        item = sets.items[at]
        held, both = groups.held[row, item], has(sets, joins, item)
        having, weighed = held // ONE, held % ONE
        base -= 2 * having > size
        change += charged(having - 1 + both, weighed - left + both * come, size, after_total)
        change -= charged(having, weighed, size, total)
    for at in range(sets.offsets[joins], sets.offsets[joins + 1]):
        item = sets.items[at]
        held, alone = groups.held[row, item], 1 - has(sets, leaves, item)  # items of both are counted
        having, weighed = held // ONE, held % ONE
        base -= alone * (2 * having > size)
        change += alone * charged(having + 1, weighed + come, size, after_total)
        change -= alone * charged(having, weighed, size, total)
    return int(change + base * (after_total - total))


@inner
def has(sets: Sets, record: int, item: int) -> int:
    """1 if a record has an item, else 0."""
    return int(np.int64((sets.bits[record, item >> 6] >> np.uint64(item & 63)) & np.uint64(1)))


@inner
def charged(having: int, weighed: int, size: int, total: int) -> int:
    """What an item costs a group: the weights of the members that have it, or of those that lack it if more than half have it."""
    return total - weighed if 2 * having > size else weighed


@inner
def resized(sets: Sets, groups: Groups, group: int, row: int, record: int, times: int) -> int:
    """By how much the cost of a group grows if a record joins, or (-1) leaves."""
    size, total, base = groups.size[group], groups.total[row], groups.base[row]
    after_size, after_total = size + times, total + times * groups.weight[record]
    # Items the record does not have, that more than half have in one of the two sizes only.
    odd = max(size, after_size) % 2
    edge = max(size, after_size) // 2
    items, weights = np.int64(0), np.int64(0)
    if not odd:
        items, weights = groups.items_of[row, edge], groups.weight_of[row, edge]
    change = np.int64(0)
    for at in range(sets.offsets[record], sets.offsets[record + 1]):
        held = groups.held[row, sets.items[at]]
        having, weighed = held // ONE, held % ONE
        if not odd and having == edge:
            items, weights = items - 1, weights - weighed
        base -= 2 * having > size
        change += charged(having + times, weighed + times * groups.weight[record], after_size, after_total)
        change -= charged(having, weighed, size, total)
    if times > 0:
        base -= items
        change += weights - (items * total - weights)
    else:
        change += (items * after_total - weights) - weights
    return int(change + base * (after_total - total))
