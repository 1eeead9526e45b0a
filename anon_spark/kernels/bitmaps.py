"""Item sets of one block of records: as concatenated lists of item numbers, and as bitmaps over the items of the block.

Items are numbered within the block, so that a bitmap is as wide as the block needs and never as wide as the universe.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.compiled import compiled, inner
from anon_spark.kernels.classes import Codes, Ints

Words = NDArray[np.uint64]

WORD_BITS = 64
FEW_ITEMS = 2  # of a word: counted one after the other


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


@inner
def ones(word: np.uint64) -> int:
    """How many bits of a word are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56)))


@inner
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
def columns_of(bits: Words) -> Words:
    """Bitmaps with their words as rows: the same word of neighbouring bitmaps is then side by side in memory."""
    columns = np.empty((bits.shape[1], bits.shape[0]), dtype=np.uint64)
    for row in range(bits.shape[0]):
        for word in range(bits.shape[1]):
            columns[word, row] = bits[row, word]
    return columns


@compiled
def in_common(sets: Sets, record: int, columns: Words, first: int, shared: Ints) -> None:
    """How many items a record shares with each bitmap from `first` on, round the ring; fills `shared`.

    columns: the bitmaps as `columns_of` gives them. The processor counts in several bitmaps at a time: an item of all bitmaps
    after another, or all items of a word together if there are many.
    """
    begin, end, count = sets.offsets[record], sets.offsets[record + 1], columns.shape[1]
    shared[:] = 0
    row, done = first % count, 0
    while done < shared.size:
        number = min(count - row, shared.size - done)
        found, at = shared[done : done + number], begin
        while at < end:
            word, after = sets.items[at] >> 6, at + 1
            while after < end and sets.items[after] >> 6 == word:
                after += 1
            column = columns[word, row : row + number]
            if after - at <= FEW_ITEMS:
                for item in sets.items[at:after]:
                    shift = np.uint64(item & 63)
                    for place in range(number):
                        found[place] += np.int64((column[place] >> shift) & np.uint64(1))
            else:
                wanted = sets.bits[record, word]
                for place in range(number):
                    found[place] += ones(column[place] & wanted)
            at = after
        row, done = 0, done + number


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


@inner
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
