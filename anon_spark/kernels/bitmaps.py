"""Item sets of one block of records: as concatenated lists of item numbers, and as bitmaps over the items of the block.

Items are numbered within the block, so that a bitmap is as wide as the block needs and never as wide as the universe.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled, innermost
from anon_spark.kernels.classes import Codes, Ints

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

WORD_BITS = 64
FEW_ITEMS = 2  # of a byte: counted one after the other
MOST_OF_BYTE = 255


class Sets(NamedTuple):
    """Records 0 … n-1: the items of record r are items[offsets[r] : offsets[r + 1]], ascending; bits[r] is its bitmap.

    `codes` holds the original code of each item number.
    """

    offsets: Ints
    items: Codes
    bits: Words
    codes: Ints


def sets_of(offsets: Ints, codes: Ints) -> Sets:
    """Number the items that occur. Cost: one sort of all items; records × distinct items / 8 bytes."""
    distinct, items = np.unique(codes, return_inverse=True)
    numbers = items.astype(np.int32)
    return Sets(offsets, numbers, bitmaps(offsets, numbers, distinct.size), distinct)


def taken(sets: Sets, order: Ints) -> Sets:
    """The records in another order."""
    size = np.diff(sets.offsets)[order]
    offsets = np.concatenate([[0], np.cumsum(size)])
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1], size) + np.repeat(sets.offsets[:-1][order], size)
    return Sets(offsets, sets.items[places], sets.bits[order], sets.codes)


@compiled
def bitmaps(offsets: Ints, items: Codes, width: int) -> Words:
    """One bitmap per record."""
    bits = np.zeros((offsets.size - 1, max(1, (width + WORD_BITS - 1) // WORD_BITS)), dtype=np.uint64)
    for record in range(offsets.size - 1):
        for at in range(offsets[record], offsets[record + 1]):
            bits[record, items[at] >> 6] |= np.uint64(1) << np.uint64(items[at] & 63)
    return bits


@innermost
def ones(word: np.uint64) -> int:
    """How many bits of a word are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56)))


@innermost
def common(sets: Sets, record: int, bitmap: Words) -> int:
    """How many items of a record a bitmap has: by its items where they are few, else by words."""
    first, last = sets.offsets[record], sets.offsets[record + 1]
    total = np.int64(0)
    if last - first < bitmap.size:
        for at in range(first, last):
            item = sets.items[at]
            total += np.int64((bitmap[item >> 6] >> np.uint64(item & 63)) & np.uint64(1))
    else:
        for word in range(bitmap.size):
            total += ones(sets.bits[record, word] & bitmap[word])
    return int(total)


@compiled
def columns_of(bits: Words) -> Bytes:
    """Bitmaps by bytes, with the bytes as rows: the same byte of neighbouring bitmaps is then side by side in memory."""
    columns = np.empty((bits.shape[1] * 8, bits.shape[0]), dtype=np.uint8)
    for row in range(bits.shape[0]):
        for byte in range(columns.shape[0]):
            columns[byte, row] = np.uint8((bits[row, byte >> 3] >> np.uint64(8 * (byte & 7))) & np.uint64(255))
    return columns


@compiled
def in_common(sets: Sets, record: int, columns: Bytes, first: int, shared: Ints) -> None:
    """How many items a record shares with each bitmap from `first` on, round the ring; fills `shared`.

    columns: the bitmaps as `columns_of` gives them. The processor counts in many bitmaps at a time: an item of all bitmaps
    after another, or all items of a byte together if there are many.
    """
    in_common_within(sets, record, columns, first, np.empty(shared.size, dtype=np.uint8), shared)


@innermost
def in_common_within(sets: Sets, record: int, columns: Bytes, first: int, few: Bytes, shared: Ints) -> None:
    """As `in_common`, with the memory it needs: `few`, as many bytes as places."""
    begin, end, count = sets.offsets[record], sets.offsets[record + 1], columns.shape[1]
    shared[:] = 0
    while begin < end:
        last = min(end, begin + MOST_OF_BYTE)
        few[:] = 0
        row, done = first % count, 0
        while done < shared.size:
            number = min(count - row, shared.size - done)
            count_in(sets.items[begin:last], columns, row, few[done : done + number])
            row, done = 0, done + number
        for place in range(shared.size):
            shared[place] += few[place]
        begin = last


@innermost
def count_in(items: Codes, columns: Bytes, row: int, found: Bytes) -> None:
    """Add how many of some ascending items each bitmap from `row` on has."""
    at = 0
    while at < items.size:
        byte, wanted, after = items[at] >> 3, 0, at
        while after < items.size and items[after] >> 3 == byte:
            wanted |= 1 << (items[after] & 7)
            after += 1
        column = columns[byte, row : row + found.size]
        if after - at <= FEW_ITEMS:
            for item in items[at:after]:
                bit = np.uint8(1 << (item & 7))
                for place in range(found.size):
                    found[place] += np.uint8((column[place] & bit) != 0)
        else:
            for place in range(found.size):
                some = column[place] & wanted
                some -= (some >> 1) & 0x55
                some = (some & 0x33) + ((some >> 2) & 0x33)
                found[place] += (some + (some >> 4)) & 0x0F
        at = after


@compiled
def width_of(bitmap: Words) -> int:
    """How many items a bitmap has."""
    total = np.int64(0)
    for word in range(bitmap.size):
        total += ones(bitmap[word])
    return int(total)


@compiled
def flips(sets: Sets, record: int, bitmap: Words, width: int) -> int:
    """In how many items a record differs from a bitmap of `width` items."""
    return size_of(sets, record) + width - 2 * common(sets, record, bitmap)


@innermost
def size_of(sets: Sets, record: int) -> int:
    return int(sets.offsets[record + 1] - sets.offsets[record])


@compiled
def hamming(sets: Sets, record: int, other: int) -> int:
    """In how many items two records differ."""
    return size_of(sets, record) + size_of(sets, other) - 2 * common(sets, record, sets.bits[other])


@compiled
def steps_along(sets: Sets, order: Ints) -> Ints:
    """The Hamming distance of each record of an order to the next; one fewer than records."""
    steps = np.empty(max(order.size - 1, 0), dtype=np.int64)
    for position in range(steps.size):
        steps[position] = hamming(sets, order[position], order[position + 1])
    return steps


@compiled
def items_of(bitmaps: Words) -> tuple[Ints, Codes]:
    """The offsets and the ascending items of each bitmap, concatenated."""
    offsets = np.zeros(bitmaps.shape[0] + 1, dtype=np.int64)
    for row in range(bitmaps.shape[0]):
        offsets[row + 1] = offsets[row] + width_of(bitmaps[row])
    items = np.empty(offsets[-1], dtype=np.int32)
    at = 0
    for row in range(bitmaps.shape[0]):
        for word in range(bitmaps.shape[1]):
            left = bitmaps[row, word]
            if left == 0:
                continue
            for bit in range(WORD_BITS):
                if (left >> np.uint64(bit)) & np.uint64(1):
                    items[at] = word * WORD_BITS + bit
                    at += 1
    return offsets, items
