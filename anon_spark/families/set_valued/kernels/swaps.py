"""Groups improved by swaps and moves: records change places between groups while the error rate falls (simulated annealing).

The error rate charges a record by its flipped bits over its own size. So the cost of a group is Σ over its members of the
weight, 1 / size, times the items in which the member differs from the majority; in fixed point, so that every comparison is
one of integers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anon_spark.compiled import compiled, inlined, inner, innermost
from anon_spark.kernels.bitmaps import Sets, Words, bitmaps, columns_of, in_common, ones
from anon_spark.kernels.classes import Codes, Ints

PROPOSALS = {"normal": 300, "deep": 1_500}  # per record
HOT, COLD = 0.5, 0.1  # temperature at the start and at the end, in flipped bits
LEAST_NEAR, MOST_NEAR = 12, 48
BASE, BARELY, NEARLY = 0, 1, 2
EVERY = np.uint64(0xFFFFFFFFFFFFFFFF)
WEIGHT = 2**24  # of a record with one item
SEED = np.uint64(0x9E3779B97F4A7C15)  # public: groups depend on the records alone, never on the secret of a run


class Groups(NamedTuple):
    """Group g: the first size[g] of members[g]; group_of and place: where each record is.

    bits and weight: of each record, and of nobody, who is the last and has no items. Per group, side by side in memory:
    shares[g, BASE], the items that more than half of the members have; shares[g, BARELY], that just one more than half of them
    have; shares[g, NEARLY], that just half of them have, rounded down. digits: how many have each item: bit i of
    digits[g, word, d] is digit d of the binary number of members that have item i of the word.
    """

    members: Codes
    size: Ints
    group_of: Codes
    place: Codes
    bits: Words
    weight: Ints
    shares: Words
    digits: Words


class Regrouped(NamedTuple):
    """Records in a new order, and the sizes of the consecutive groups of this order."""

    order: Ints
    sizes: Ints


def regrouped(sets: Sets, sizes: Ints, k: int, labels: Codes | None, effort: str) -> Regrouped:
    """Consecutive groups of k to 2k - 1 records, given by their sizes, as groups with a lower error rate, if some were found.

    labels: inside a group they stay pairwise different. Guarantee: the same groups for the same records, whatever the secret of
    the run; as many groups as before, each of k to 2k - 1 records; the cost never rises.
    Cost: records² distances, then a fixed number of proposals per record, each a few operations per 64 contested items.
    Memory: up to two and a half times the bitmaps of the records.
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
    groups = groups_of(sizes, 2 * k - 1, contested(sets, k), weight)
    known = np.full(count, -1, dtype=np.int32) if labels is None else labels.astype(np.int32)
    unit = float(weight[size > 0].mean()) if (size > 0).any() else 0.0
    proposals = PROPOSALS[effort] * count
    if anneal(groups, known, kind, of_kind, near, k, proposals, HOT * unit, COLD * unit) <= 0:
        return as_before
    taken = np.arange(groups.members.shape[1]) < groups.size[:, None]
    return Regrouped(groups.members[taken].astype(np.int64), groups.size)


def contested(sets: Sets, k: int) -> Words:
    """Bitmaps of the items that more than half of a group can have; all others cost a record the same in every group."""
    counts = np.bincount(sets.items, minlength=sets.codes.size)
    kept = counts > k // 2
    number = np.cumsum(kept) - 1
    row = np.repeat(np.arange(sets.offsets.size - 1), np.diff(sets.offsets))[kept[sets.items]]
    offsets = np.searchsorted(row, np.arange(sets.offsets.size))
    return bitmaps(offsets, number[sets.items[kept[sets.items]]].astype(np.int32), int(kept.sum()))


def groups_of(sizes: Ints, most: int, bits: Words, weight: Ints) -> Groups:
    """Consecutive groups of records, with room for the most records of a group. Their items are not counted yet."""
    group, words = np.repeat(np.arange(sizes.size), sizes), bits.shape[1]
    place = np.arange(group.size) - (np.cumsum(sizes) - sizes)[group]
    members = np.full((sizes.size, most), -1, dtype=np.int32)
    members[group, place] = np.arange(group.size)
    return Groups(
        members,
        sizes.astype(np.int64),
        group.astype(np.int32),
        place.astype(np.int32),
        np.vstack([bits, np.zeros((1, words), dtype=np.uint64)]),
        np.append(weight, 0),
        np.array([0, 0, EVERY], dtype=np.uint64)[None, :, None].repeat(sizes.size, 0).repeat(words, 2),  # of no members
        np.zeros((sizes.size, words, most.bit_length()), dtype=np.uint64),
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
    groups: Groups,
    labels: Codes,
    alike: Codes,
    of_kind: Codes,
    near: Codes,
    k: int,
    proposals: int,
    hot: float,
    cold: float,
) -> int:
    """Propose that a record moves to the group of a near neighbour: alone if its group has more than k records and the other
    fewer than 2k - 1, else in exchange for one of that group. Returns by how much the cost fell."""
    count, saved, state = groups.group_of.size, np.int64(0), SEED
    nobody = count
    count_members(groups)
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
        other = nobody if alone else groups.members[there, int(chance * groups.size[there])]
        if not alone and (alike[one] == alike[other] or not fits(groups, labels, here, one, labels[other])):
            continue
        if not fits(groups, labels, there, other, labels[one]):
            continue
        change = grown(groups, here, one, other) + grown(groups, there, other, one)
        if change > 0:
            state, chance = drawn(state)
            if temperature <= 0 or chance >= np.exp(-change / temperature):
                continue
        saved -= change
        recount(groups, here, one, other)
        recount(groups, there, other, one)
        relocate(groups, one, other, here, there)
    return int(saved)


@innermost
def drawn(state: np.uint64) -> tuple[np.uint64, float]:
    """The next state of a generator, and a number from 0 to below 1."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state, float(state >> np.uint64(11)) / 9007199254740992.0


@innermost
def fits(groups: Groups, labels: Codes, group: int, without: int, label: int) -> bool:
    """Whether a label is not in a group yet, one record aside; records without labels always fit."""
    if label < 0:
        return True
    for at in range(groups.size[group]):
        member = groups.members[group, at]
        if member != without and labels[member] == label:
            return False
    return True


@innermost
def relocate(groups: Groups, one: int, other: int, here: int, there: int) -> None:
    """Let two records change places, or let one move (in exchange for nobody)."""
    at, nobody = groups.place[one], groups.group_of.size
    if other == nobody:
        last, end = groups.size[here] - 1, groups.size[there]
        groups.members[here, at] = groups.members[here, last]
        groups.place[groups.members[here, last]] = at
        groups.size[here], groups.size[there] = last, end + 1
        other_at = end
    else:
        other_at = groups.place[other]
        groups.members[here, at] = other
        groups.place[other], groups.group_of[other] = at, here
    groups.members[there, other_at] = one
    groups.place[one], groups.group_of[one] = other_at, there


@inner
def count_members(groups: Groups) -> None:
    """Count the members of all groups: their digits and bases."""
    nobody, size = groups.group_of.size, groups.size.copy()
    groups.size[:] = 0
    for group in range(size.size):
        for at in range(size[group]):
            recount(groups, group, nobody, groups.members[group, at])
            groups.size[group] += 1


@innermost
def half_after(groups: Groups, group: int, leaves: int, joins: int) -> int:
    """Half of the size of a group, rounded down, after one record left and another came."""
    nobody = groups.group_of.size
    return int(groups.size[group] + (joins != nobody) - (leaves != nobody)) >> 1


@inlined
def grown(groups: Groups, group: int, leaves: int, joins: int) -> int:
    """By how much the cost of a group grows if one record leaves and another joins; one of them may be nobody."""
    half, half_then = groups.size[group] >> 1, half_after(groups, group, leaves, joins)
    fewer, more = EVERY if half_then < half else np.uint64(0), EVERY if half_then > half else np.uint64(0)
    changed, lost, spared = np.uint64(0), np.int64(0), np.int64(0)
    for word in range(groups.shares.shape[2]):  # without branches: the processor takes several words at a time
        left, come, base = groups.bits[leaves, word], groups.bits[joins, word], groups.shares[group, BASE, word]
        after = base_after(base, groups.shares[group, BARELY, word], groups.shares[group, NEARLY, word], left, come, fewer, more)
        lost += ones(come ^ after)
        spared += ones(left ^ base)
        changed |= after ^ base
    others = 0 if changed == 0 else others_lose(groups, group, leaves, joins, fewer, more)
    return int(others + groups.weight[joins] * lost - groups.weight[leaves] * spared)


@inlined
def base_after(
    base: np.uint64, barely: np.uint64, nearly: np.uint64, left: np.uint64, come: np.uint64, fewer: np.uint64, more: np.uint64
) -> np.uint64:
    """The items of a word that more than half of a group has after a record with the items `left` left and `come` came.

    fewer: all bits if half of the size falls by one, else none; more: if it rises.
    """
    gained = nearly & ~left & (fewer | (come & ~more))
    dropped = barely & ~come & (more | (left & ~fewer))
    return (base | gained) & ~dropped


@innermost
def others_lose(groups: Groups, group: int, leaves: int, joins: int, fewer: np.uint64, more: np.uint64) -> int:
    """By how much more the members that stay differ from the base of a group, weighted, after the base changed."""
    change, bits = np.int64(0), groups.bits
    for word in range(bits.shape[1]):
        base, left, come = groups.shares[group, BASE, word], bits[leaves, word], bits[joins, word]
        after = base_after(base, groups.shares[group, BARELY, word], groups.shares[group, NEARLY, word], left, come, fewer, more)
        if after != base:
            for at in range(groups.size[group]):
                member = groups.members[group, at]
                if member != leaves:
                    change += groups.weight[member] * (ones(bits[member, word] ^ after) - ones(bits[member, word] ^ base))
    return int(change)


@inlined
def recount(groups: Groups, group: int, leaves: int, joins: int) -> None:
    """Count the items of a group after one record leaves and another joins; the list of members is left to `relocate`."""
    half, half_then = groups.size[group] >> 1, half_after(groups, group, leaves, joins)
    for word in range(groups.bits.shape[1]):
        left, come = groups.bits[leaves, word], groups.bits[joins, word]
        if left == come and half == half_then:
            continue
        borrow, carry = left & ~come, come & ~left
        above, equal, next_equal = np.uint64(0), EVERY, EVERY  # compared by the digits so far: a later one weighs more
        for digit in range(groups.digits.shape[2]):
            old = groups.digits[group, word, digit]
            new = old ^ borrow ^ carry
            borrow, carry = borrow & ~old, carry & old
            groups.digits[group, word, digit] = new
            wanted = EVERY if (half_then >> digit) & 1 else np.uint64(0)
            above = (above & new) if wanted else (above | new)
            equal &= ~(new ^ wanted)
            next_equal &= new if ((half_then + 1) >> digit) & 1 else ~new
        groups.shares[group, BASE, word], groups.shares[group, NEARLY, word] = above, equal
        groups.shares[group, BARELY, word] = next_equal
