"""SetGen: the items of one cluster are merged, two generalized items at a time, until every set of at most m is frequent.

Each item has one image in the cluster. A set that too few records have decides the merge: one of its members is merged with
the generalized item that costs least. Supports never fall, so without l the sizes are processed one after the other.
"""

from __future__ import annotations

import numpy as np

from anon_spark.compiled import compiled, inner
from anon_spark.families.relational_transaction.settings import Cost
from anon_spark.kernels.classes import Codes, Ints
from anon_spark.kernels.transactions import (
    DONE,
    KEY_BITS,
    MANY_SETS,
    NONE,
    TOO_LARGE,
    UNREACHABLE,
    Images,
    Transactions,
    add_violating,
    bits_of,
    fault_of,
    images_of,
    item_count,
    join,
    members_of,
    next_set,
    no_sets,
    widest,
)
from anon_spark.kernels.utility import Floats, half, loss_with_both, loss_with_one, share_of

COSTS: tuple[Cost, ...] = ("rarest", "occurrences", "utility_loss")
RAREST, BY_LOSS = 0, 2  # places in it
COST_BITS = 62
EQUAL_COSTS = 1e-12


def merged_items(
    cluster: Transactions,
    k: int,
    m: int,
    l: int | None = None,  # noqa: E741 - the l of l-diversity
    cost: Cost = "rarest",
) -> Codes:
    """The smallest member of each item's generalized item.

    Guarantee: every set of at most m generalized items that some record has is in at least k records, and with l no
    sensitive item is in more than 1/l of these; the same for any order of the rows. The caller checks records without items.
    Raises GuaranteeUnreachable if the last generalized item still violates, LimitExceeded if sets are too large.
    Cost: per merge the generalized items once and the rows of the merged item; with "utility_loss" all rows.
    """
    outcome, image = merge_all(cluster, item_count(cluster), k, m, l or 0, COSTS.index(cost), MANY_SETS)
    if outcome != DONE:
        raise fault_of(outcome, cluster, k, m, l)
    return image


@compiled
def merge_all(
    cluster: Transactions, items: int, k: int, m: int, diversity: int, cost: int, limit: int
) -> tuple[int, Codes]:
    """The whole loop: outcome and images. cost: a place in COSTS. Above `limit` violating sets the outdated ones are dropped."""
    by_loss = cost == BY_LOSS
    image = np.arange(items).astype(np.int32)
    images = images_of(cluster, np.arange(items), items)
    bits = bits_of(items)
    width, occurrences = np.ones(items, dtype=np.int64), np.zeros(items, dtype=np.int64)
    for row in range(cluster.times.size):
        for at in range(cluster.offsets[row], cluster.offsets[row + 1]):
            occurrences[cluster.items[at]] += cluster.times[row]
    live = np.flatnonzero(occurrences)
    count = live.size
    together, share, loss = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64)
    if by_loss:
        together, share, loss = images.sizes.copy(), np.zeros(images.sizes.size), np.zeros_like(images.sizes)
    unit = unit_of(cluster.times)
    total = 0  # Σ UL, in units
    heap, size, stamp = no_sets(), 0, 0
    while True:
        set_size, key = next_set(heap, images.changed, bits)
        if set_size == 0:  # all sizes so far are done
            size += 1
            if size > m or size > widest(images.sizes):
                break
            if size * bits > KEY_BITS:
                return TOO_LARGE, image
            for at in range(count):
                limit = add_violating(heap, limit, images, live[at], size, True, bits, k, diversity, stamp)
            continue
        if count == 1:
            return UNREACHABLE, image
        members = members_of(key, set_size, bits)
        if by_loss:
            into, gone = least_loss(images, members, live[:count], width, together, share, loss, unit, total)
        else:
            into, gone = least_growth(images, members, live[:count], width, occurrences, cost == RAREST)
        stamp += 1
        join(images, into, gone, stamp)
        width[into] += width[gone]
        occurrences[into] += occurrences[gone]
        kept = 0
        for at in range(count):
            if live[at] != gone:
                live[kept] = live[at]
                kept += 1
        count = kept
        if by_loss:
            total += renew_losses(images, into, width, together, share, loss, unit)
        for again in range(1 if diversity > 0 else size, size + 1):
            limit = add_violating(heap, limit, images, into, again, False, bits, k, diversity, stamp)
    for at in range(count):
        item = images.first[live[at]]
        while item != NONE:
            image[item] = live[at]
            item = images.following[item]
    return DONE, image


@inner
def least_growth(
    images: Images, members: Ints, live: Ints, width: Ints, occurrences: Ints, rarest: bool
) -> tuple[int, int]:
    """The merge with a member that adds least to Σ size · occurrences, or rarest: that has the fewest occurrences.

    Ties: fewer items, then their order.
    """
    best, best_width, left, right = 0, 0, NONE, NONE
    for place in range(members.size):
        member = members[place]
        for at in range(live.size):
            if live[at] == member:
                continue
            wide = width[member] + width[live[at]]
            price = occurrences[member] + occurrences[live[at]]
            if not rarest:
                price *= wide
                if width[member] > 1:
                    price -= width[member] * occurrences[member]
                if width[live[at]] > 1:
                    price -= width[live[at]] * occurrences[live[at]]
            if left != NONE and (price > best or (price == best and wide > best_width)):
                continue
            if left == NONE or price < best or wide < best_width or comes_first(images, member, live[at], left, right):
                best, best_width, left, right = price, wide, member, live[at]
    return min(left, right), max(left, right)


@inner
def comes_first(images: Images, label: int, other: int, known: int, known_other: int) -> bool:
    """Whether the items of one union come before those of another union of the same size."""
    a, b, c, d = images.first[label], images.first[other], images.first[known], images.first[known_other]
    while a != NONE or b != NONE:
        if b == NONE or (a != NONE and a < b):
            left, a = a, images.following[a]
        else:
            left, b = b, images.following[b]
        if d == NONE or (c != NONE and c < d):
            right, c = c, images.following[c]
        else:
            right, d = d, images.following[d]
        if left != right:
            return bool(left < right)
    return False


# --- cost by UL --------------------------------------------------------------------------------------------------------


@inner
def unit_of(times: Ints) -> float:
    """Units per loss of 1: sums over all records stay exact integers, so their order does not matter."""
    records, bits = np.int64(0), COST_BITS
    for row in range(times.size):
        records += times[row]
    while records > 0:
        records >>= 1
        bits -= 1
    return 1.0 / half(bits)


@inner
def units(loss: float, unit: float) -> int:
    return int(np.int64(np.rint(loss * unit)))


@inner
def renew_losses(
    images: Images, label: int, width: Ints, together: Ints, share: Floats, loss: Ints, unit: float
) -> int:
    """Recompute the losses of a label's rows; returns by how much the losses of all records grew."""
    grown = np.int64(0)
    item = images.first[label]
    while item != NONE:
        for at in range(images.row_starts[item], images.row_starts[item] + images.row_counts[item]):
            row = images.rows[at]
            first, last = images.starts[row], images.starts[row] + images.sizes[row]
            together[row], share[row] = 0, 0.0
            for place in range(first, last):
                together[row] += width[images.labels[place]]
            for place in range(first, last):
                share[row] += share_of(width[images.labels[place]], together[row])
            after = units(share[row] / (1.0 - half(together[row])), unit)
            grown += images.times[row] * (after - loss[row])
            loss[row] = after
        item = images.following[item]
    return int(grown)


@inner
def least_loss(
    images: Images,
    members: Ints,
    live: Ints,
    width: Ints,
    together: Ints,
    share: Floats,
    loss: Ints,
    unit: float,
    total: int,
) -> tuple[int, int]:
    """The merge with a member after which Σ UL is least; equal to 12 digits: fewer items, then their order."""
    cost = np.empty((members.size, width.size), dtype=np.int64)
    for place in range(members.size):
        losses_after(images, members[place], live, width, together, share, loss, unit, total, cost[place])
    least = np.int64(np.iinfo(np.int64).max)
    for place in range(members.size):
        for at in range(live.size):
            if live[at] != members[place]:
                least = min(least, cost[place, live[at]])
    bound = least + np.int64(EQUAL_COSTS * max(unit, float(least)))
    best_width, left, right = 0, NONE, NONE
    for place in range(members.size):
        member = members[place]
        for at in range(live.size):
            wide = width[member] + width[live[at]]
            if live[at] == member or cost[place, live[at]] > bound or (left != NONE and wide > best_width):
                continue
            if left == NONE or wide < best_width or comes_first(images, member, live[at], left, right):
                best_width, left, right = wide, member, live[at]
    return min(left, right), max(left, right)


@inner
def losses_after(
    images: Images,
    member: int,
    live: Ints,
    width: Ints,
    together: Ints,
    share: Floats,
    loss: Ints,
    unit: float,
    total: int,
    cost: Ints,
) -> None:
    """Σ UL of all records after the member is merged with each of the others. Cost: all rows once."""
    member_width = width[member]
    alone = np.full(images.following.size + 1, -1, dtype=np.int64)  # by size of the other: rows with the member only
    has_member = np.zeros(images.sizes.size, dtype=np.bool_)
    for at in range(live.size):
        size = width[live[at]]
        if alone[size] < 0:
            alone[size] = total
            item = images.first[member]
            while item != NONE:
                for place in range(images.row_starts[item], images.row_starts[item] + images.row_counts[item]):
                    row = images.rows[place]
                    has_member[row] = True
                    after = units(loss_with_one(share[row], together[row], member_width, size), unit)
                    alone[size] += images.times[row] * (after - loss[row])
                item = images.following[item]
        cost[live[at]] = alone[size]
    for row in range(images.sizes.size):
        for place in range(images.starts[row], images.starts[row] + images.sizes[row]):
            other = images.labels[place]
            size = width[other]
            if other == member:
                continue
            if has_member[row]:
                after = units(loss_with_both(share[row], together[row], member_width, size), unit)
                before = units(loss_with_one(share[row], together[row], member_width, size), unit)
            else:
                after, before = units(loss_with_one(share[row], together[row], size, member_width), unit), loss[row]
            cost[other] += images.times[row] * (after - before)
