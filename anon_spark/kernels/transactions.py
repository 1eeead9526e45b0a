"""The records of one cluster as sets of items, and the sets of generalized items that too few of them have.

A generalized item is identified by its label. Labels are ordered by their smallest member. A set of labels is one number,
the smallest label first. The labels of a row are contiguous and every label lists its rows, so that after a merge only the
sets with the new item are counted, from its rows.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from anon_spark.arrays import each_once
from anon_spark.compiled import compiled, inner
from anon_spark.errors import AnonSparkError, GuaranteeUnreachable, LimitExceeded
from anon_spark.kernels.arrays import write
from anon_spark.kernels.classes import HASH_MULTIPLIER, Codes, Ints

DONE, UNREACHABLE, TOO_LARGE = 0, 1, 2
NONE = -1
GONE = 1 << 62
KEY_BITS = 62
SUPPORT_BITS = 44
DIRECT_BITS = 16
MANY_SETS = 1 << 20

Heap = list[tuple[int, int, int]]  # size and support, set, number of the merge after which it was counted


class Transactions(NamedTuple):
    """One cluster as its distinct pairs (item set, sensitive set); `times` says how many records have each.

    Items and sensitive items are numbered apart from 0, ascending in the order of their names; row r has
    items[offsets[r] : offsets[r + 1]], ascending and distinct, perhaps none.
    """

    offsets: Ints
    items: Codes
    times: Ints
    sensitive_offsets: Ints
    sensitive: Codes


class Images(NamedTuple):
    """The rows as sets of distinct labels; changed in place.

    Row r has labels[starts[r] : starts[r] + sizes[r]], ascending. The items of a label are first[label] and what is
    `following`, ascending. A row with the label is listed under exactly one of these items i:
    rows[row_starts[i] : row_starts[i] + row_counts[i]]. changed[label] is the last merge that made it, GONE once merged away.
    kinds: how many numbers sensitive items have.
    """

    starts: Ints
    sizes: Ints
    labels: Codes
    times: Ints
    sensitive_offsets: Ints
    sensitive: Codes
    row_starts: Ints
    row_counts: Ints
    rows: Codes
    first: Codes
    following: Codes
    changed: Ints
    kinds: int


# --- records to rows ------------------------------------------------------------------------------------------------


def packed(
    offsets: Ints, codes: Ints, sensitive_offsets: Ints, sensitive_codes: Ints
) -> tuple[Transactions, Ints, Ints, Ints]:
    """A cluster from the codes of its records, in any order, repeated or not; codes must sort as the names do.

    Also: the code of each item number, of each sensitive number, and which row each record became.
    Cost: one sort of all codes.
    """
    item_codes, offsets, items = numbered(offsets, codes)
    kinds, sensitive_offsets, sensitive = numbered(sensitive_offsets, sensitive_codes)
    row, chosen = distinct_rows(offsets, items, sensitive_offsets, sensitive)
    times = np.bincount(row, minlength=chosen.size).astype(np.int64)
    rows = Transactions(*taken_rows(offsets, items, chosen), times, *taken_rows(sensitive_offsets, sensitive, chosen))
    return rows, item_codes, kinds, row


def numbered(offsets: Ints, codes: Ints) -> tuple[Ints, Ints, Codes]:
    """The codes that occur, ascending, and every record's numbers in that order, ascending and distinct."""
    distinct = each_once(codes)
    width, records = max(distinct.size, 1), offsets.size - 1
    record = np.repeat(np.arange(records, dtype=np.int64), np.diff(offsets))
    pairs = each_once(record * width + np.searchsorted(distinct, codes))
    sizes = np.bincount(pairs // width, minlength=records)
    return distinct.astype(np.int64), np.concatenate([[0], np.cumsum(sizes)]), (pairs % width).astype(np.int32)


@compiled
def distinct_rows(offsets: Ints, items: Codes, sensitive_offsets: Ints, sensitive: Codes) -> tuple[Ints, Ints]:
    """The row of each record, rows numbered as they appear, and the first record of each row."""
    records = offsets.size - 1
    bits = 4
    while (1 << bits) < 2 * records:
        bits += 1
    shift = np.uint64(64 - bits)
    slots = np.full(1 << bits, NONE, dtype=np.int64)
    row, chosen = np.empty(records, dtype=np.int64), np.empty(records, dtype=np.int64)
    count = 0
    for record in range(records):
        word = np.uint64(offsets[record + 1] - offsets[record])
        for at in range(offsets[record], offsets[record + 1]):
            word = (word ^ (word >> np.uint64(31)) ^ np.uint64(items[at])) * HASH_MULTIPLIER
        for at in range(sensitive_offsets[record], sensitive_offsets[record + 1]):
            word = (word ^ (word >> np.uint64(31)) ^ np.uint64(sensitive[at])) * HASH_MULTIPLIER
        slot = np.int64(((word ^ (word >> np.uint64(31))) * HASH_MULTIPLIER) >> shift)
        while slots[slot] != NONE:
            known = chosen[slots[slot]]
            if same_set(offsets, items, record, known) and same_set(sensitive_offsets, sensitive, record, known):
                break
            slot = (slot + 1) & (slots.size - 1)
        if slots[slot] == NONE:
            slots[slot], chosen[count] = count, record
            count += 1
        row[record] = slots[slot]
    return row, chosen[:count].copy()


@inner
def same_set(offsets: Ints, items: Codes, row: int, other: int) -> bool:
    if offsets[row + 1] - offsets[row] != offsets[other + 1] - offsets[other]:
        return False
    for place in range(offsets[row + 1] - offsets[row]):
        if items[offsets[row] + place] != items[offsets[other] + place]:
            return False
    return True


def taken_rows(offsets: Ints, items: Codes, chosen: Ints) -> tuple[Ints, Codes]:
    """The chosen rows, in their order."""
    sizes = np.diff(offsets)[chosen]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes) + np.repeat(offsets[:-1][chosen], sizes)
    return starts, items[places]


def item_count(cluster: Transactions) -> int:
    """How many numbers its items have."""
    return int(cluster.items.max()) + 1 if cluster.items.size else 0


def fault_of(outcome: int, cluster: Transactions, k: int, m: int, l: int | None) -> AnonSparkError:  # noqa: E741
    """The error for an outcome that is not DONE, with counts only."""
    records, filled = int(cluster.times.sum()), int(cluster.times[np.diff(cluster.offsets) > 0].sum())
    if outcome == UNREACHABLE:
        reason = (
            f"Only {filled:,} of a cluster's {records:,} records have items, fewer than k = {k}."
            if filled < k
            else f"Some sensitive item is in more than 1/{l} of the {filled:,} records of a cluster that have items."
        )
        return GuaranteeUnreachable(
            f"{reason} Merge it with other clusters first.", k=k, l=l, records=records, filled=filled
        )
    return LimitExceeded(
        f"Sets of m = {m} of {item_count(cluster):,} items are too many to count, or there are too many ways to raise them. "
        "Lower m.",
        m=m,
        items=item_count(cluster),
    )


# --- labels ------------------------------------------------------------------------------------------------------------


@inner
def images_of(cluster: Transactions, label: Ints, labels: int) -> Images:
    """Every item under its own label, which must ascend with the items."""
    offsets, items = cluster.offsets, cluster.items
    sizes = np.empty(offsets.size - 1, dtype=np.int64)
    row_labels = np.empty(items.size, dtype=np.int32)
    row_starts = np.zeros(label.size + 1, dtype=np.int64)
    for at in range(items.size):
        row_labels[at] = label[items[at]]
        row_starts[items[at] + 1] += 1
    row_counts = row_starts[1:].copy()
    for item in range(label.size):
        row_starts[item + 1] += row_starts[item]
    filled, rows = row_starts.copy(), np.empty(items.size, dtype=np.int32)
    for row in range(sizes.size):
        sizes[row] = offsets[row + 1] - offsets[row]
        for at in range(offsets[row], offsets[row + 1]):
            rows[filled[items[at]]] = row
            filled[items[at]] += 1
    first, following = np.full(labels, NONE, dtype=np.int32), np.full(label.size, NONE, dtype=np.int32)
    changed = np.full(labels, GONE, dtype=np.int64)
    for item in range(label.size):
        if row_counts[item] > 0:
            first[label[item]] = item
            changed[label[item]] = 0
    kinds = 0
    for at in range(cluster.sensitive.size):
        kinds = max(kinds, int(cluster.sensitive[at]) + 1)
    return Images(
        offsets[:-1].copy(),
        sizes,
        row_labels,
        cluster.times,
        cluster.sensitive_offsets,
        cluster.sensitive,
        row_starts,
        row_counts,
        rows,
        first,
        following,
        changed,
        kinds,
    )


@inner
def join(images: Images, into: int, old: int, stamp: int) -> None:
    """Rows with the label `old` get `into`, which is smaller and may be new. Cost: the rows of `old`."""
    item = images.first[old]
    while item != NONE:
        kept = images.row_starts[item]
        for at in range(kept, kept + images.row_counts[item]):
            row = images.rows[at]
            if relabel(images.labels, images.starts[row], images.sizes, row, into, old):
                images.rows[kept] = row
                kept += 1
        images.row_counts[item] = kept - images.row_starts[item]
        item = images.following[item]
    images.first[into] = united(images.following, images.first[into], images.first[old])
    images.first[old] = NONE
    images.changed[old], images.changed[into] = GONE, stamp


@inner
def relabel(labels: Codes, start: int, sizes: Ints, row: int, into: int, old: int) -> bool:
    """Put `into` where it belongs in the row and take `old` away; False where the row had both."""
    end = start + sizes[row]
    at = start
    while labels[at] != old:
        at += 1
    place = at
    while place > start and labels[place - 1] > into:
        place -= 1
    if place > start and labels[place - 1] == into:
        for after in range(at, end - 1):
            labels[after] = labels[after + 1]
        sizes[row] -= 1
        return False
    for after in range(at, place, -1):
        labels[after] = labels[after - 1]
    labels[place] = into
    return True


@compiled
def united(following: Codes, first: int, other: int) -> int:
    """Merge two ascending lists; returns the first element."""
    if first == NONE or other == NONE:
        return int(max(first, other))
    if first > other:
        first, other = other, first
    last = first
    while other != NONE:
        ahead = following[last]
        if ahead == NONE or ahead > other:
            following[last], other = other, ahead
        last = following[last]
    return int(first)


@inner
def widest(sizes: Ints) -> int:
    """The largest number of labels of a row."""
    most = np.int64(0)
    for row in range(sizes.size):
        most = max(most, sizes[row])
    return int(most)


# --- sets that violate -------------------------------------------------------------------------------------------------


@inner
def bits_of(labels: int) -> int:
    """How many bits a label takes in the number of a set."""
    bits = 1
    while (1 << bits) < labels:
        bits += 1
    return bits


@inner
def no_sets() -> Heap:
    return [(0, 0, 0) for _ in range(0)]


@inner
def members_of(key: int, size: int, bits: int) -> Ints:
    """The labels of a set, ascending."""
    members = np.empty(size, dtype=np.int64)
    for place in range(size):
        members[size - 1 - place] = (key >> (bits * place)) & ((1 << bits) - 1)
    return members


@inner
def next_set(heap: Heap, changed: Ints, bits: int) -> tuple[int, int]:
    """Size and number of the violating set that comes first by (size, support, labels); size 0 if there is none."""
    while len(heap) > 0:
        entry = heappop(heap)
        if is_current(entry, changed, bits):
            return int(entry[0] >> SUPPORT_BITS), int(entry[1])
    return 0, 0


@inner
def is_current(entry: tuple[int, int, int], changed: Ints, bits: int) -> bool:
    """Whether no label of the set has changed since it was counted."""
    for place in range(entry[0] >> SUPPORT_BITS):
        if changed[(entry[1] >> (bits * place)) & ((1 << bits) - 1)] > entry[2]:
            return False
    return True


@inner
def add_violating(
    heap: Heap,
    limit: int,
    images: Images,
    label: int,
    size: int,
    above: bool,
    bits: int,
    k: int,
    diversity: int,
    stamp: int,
) -> int:
    """Count the sets of this size with the label (`above`: with greater ones only) and keep those that violate.

    Those have fewer than k records, or a sensitive item in more than 1/diversity of them (0: any number). Outdated sets are
    dropped if there are more than `limit` in all; returns the next limit.
    """
    keys, support, highest = sets_with(images, label, size, above, bits, diversity > 0)
    for entry in range(keys.size):
        if support[entry] < k or highest[entry] * diversity > support[entry]:
            key = with_label(keys[entry], label, size, bits)
            heappush(heap, ((size << SUPPORT_BITS) + support[entry], key, stamp))
    if len(heap) > limit:
        kept = 0
        for at in range(len(heap)):
            if is_current(heap[at], images.changed, bits):
                heap[kept] = heap[at]
                kept += 1
        while len(heap) > kept:
            heap.pop()
        heapify(heap)
        if 2 * kept > limit:
            limit *= 2
    return limit


@inner
def with_label(key: int, label: int, size: int, bits: int) -> int:
    """The number of a set of other labels with this one added."""
    place = 0
    while place < size - 1 and ((key >> (bits * place)) & ((1 << bits) - 1)) > label:
        place += 1
    lower = key & ((1 << (bits * place)) - 1)
    return (((key >> (bits * place)) << bits | label) << (bits * place)) | lower


@inner
def sets_with(images: Images, label: int, size: int, above: bool, bits: int, diverse: bool) -> tuple[Ints, Ints, Ints]:
    """Sets of this size with the label that occur: the other labels as a number, records, records with the most frequent
    sensitive item (0 unless `diverse`). Cost: over the rows of the label, their sets of size - 1 other labels."""
    direct = bits * (size - 1) <= DIRECT_BITS
    slot_bits = max(bits * (size - 1), 1) if direct else 5
    slots, keys = np.zeros(1 << slot_bits, dtype=np.int32), np.empty(16, dtype=np.int64)
    support, highest = np.zeros(16, dtype=np.int64), np.zeros(16, dtype=np.int64)
    count = 0
    pair_bits, pair_count = 5, 0
    pair_slots, pairs = np.zeros(1 << pair_bits, dtype=np.int32), np.empty(16, dtype=np.int64)
    pair_counts = np.zeros(16, dtype=np.int64)
    buffer = np.empty(64, dtype=np.int64)
    item = images.first[label]
    while item != NONE:
        for at in range(images.row_starts[item], images.row_starts[item] + images.row_counts[item]):
            row = images.rows[at]
            times = images.times[row]
            first, last = images.starts[row], images.starts[row] + images.sizes[row]
            buffer, subset_count = subsets(images.labels[first:last], label, size - 1, above, bits, buffer)
            for place in range(subset_count):
                key = buffer[place]
                slot = key if direct else slot_of(slots, keys, slot_bits, key)
                if slots[slot] == 0:
                    if count == keys.size:
                        keys, support, highest = longer(keys), longer(support), longer(highest)
                    keys[count], support[count], highest[count] = key, 0, 0
                    count += 1
                    slots[slot] = count
                    if not direct and 2 * count > slots.size:
                        slot_bits += 1
                        slots = rehashed(keys, count, slot_bits)
                        slot = slot_of(slots, keys, slot_bits, key)
                entry = np.int64(slots[slot]) - 1
                support[entry] += times
                if not diverse:
                    continue
                for kind in range(images.sensitive_offsets[row], images.sensitive_offsets[row + 1]):
                    pair = entry * images.kinds + images.sensitive[kind]
                    slot = slot_of(pair_slots, pairs, pair_bits, pair)
                    if pair_slots[slot] == 0:
                        if pair_count == pairs.size:
                            pairs, pair_counts = longer(pairs), longer(pair_counts)
                        pairs[pair_count], pair_counts[pair_count] = pair, 0
                        pair_count += 1
                        pair_slots[slot] = pair_count
                        if 2 * pair_count > pair_slots.size:
                            pair_bits += 1
                            pair_slots = rehashed(pairs, pair_count, pair_bits)
                            slot = slot_of(pair_slots, pairs, pair_bits, pair)
                    pair_counts[pair_slots[slot] - 1] += times
                    highest[entry] = max(highest[entry], pair_counts[pair_slots[slot] - 1])
        item = images.following[item]
    return keys[:count], support[:count], highest[:count]


@inner
def subsets(row: Codes, label: int, size: int, above: bool, bits: int, buffer: Ints) -> tuple[Ints, int]:
    """The numbers of all sets of `size` labels of the row without this one, only greater ones if `above`."""
    others = np.empty(row.size, dtype=np.int64)
    width = 0
    for at in range(row.size):
        if row[at] > label or (row[at] < label and not above):
            others[width] = row[at]
            width += 1
    if size > width:
        return buffer, 0
    total = 1
    for place in range(size):
        total = total * (width - place) // (place + 1)
    if total > buffer.size:
        buffer = np.empty(total, dtype=np.int64)
    if size == 0:
        buffer[0] = 0
        return buffer, 1
    chosen, start = np.arange(size), np.zeros(size, dtype=np.int64)  # start: the number of the labels chosen before
    for place in range(1, size):
        start[place] = start[place - 1] << bits | others[chosen[place - 1]]
    count = 0
    while True:
        for at in range(chosen[size - 1], width):
            buffer[count] = start[size - 1] << bits | others[at]
            count += 1
        place = size - 2
        while place >= 0 and chosen[place] == width - size + place:
            place -= 1
        if place < 0:
            return buffer, count
        chosen[place] += 1
        for after in range(place + 1, size):
            chosen[after] = chosen[after - 1] + 1
            start[after] = start[after - 1] << bits | others[chosen[after - 1]]


@inner
def slot_of(slots: Codes, keys: Ints, slot_bits: int, key: int) -> int:
    """The slot of a key, or the free slot for it; slots hold 1 + the position in keys, 0 if free."""
    slot = np.int64((np.uint64(key) * HASH_MULTIPLIER) >> np.uint64(64 - slot_bits))
    while slots[slot] != 0 and keys[slots[slot] - 1] != key:
        slot = (slot + 1) & (slots.size - 1)
    return int(slot)


@inner
def rehashed(keys: Ints, count: int, slot_bits: int) -> Codes:
    slots = np.zeros(1 << slot_bits, dtype=np.int32)
    for entry in range(count):
        slots[slot_of(slots, keys, slot_bits, keys[entry])] = entry + 1
    return slots


@inner
def longer(values: Ints) -> Ints:
    extended = np.empty(2 * values.size, dtype=np.int64)
    write(values, extended)
    return extended
