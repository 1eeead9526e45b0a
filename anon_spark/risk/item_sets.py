"""How an attacker compares item lists: numbered within what he looks at, packed into bitmaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import functions as F

P = ParamSpec("P")
R = TypeVar("R")
Ints = NDArray[np.int64]
Marks = NDArray[np.bool_]
Words = NDArray[np.uint64]
Lists = tuple[Ints, Ints]  # list at is numbers[offsets[at] : offsets[at + 1]]


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """The function as machine code, kept on disk where that is possible."""
    try:
        return cast(Callable[P, R], njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder to write to
        return cast(Callable[P, R], njit(nogil=True)(function))


def as_set(items: Column) -> Column:
    """A list with every item once; no list is an empty one."""
    return F.array_distinct(F.array_compact(F.coalesce(items.cast("array<string>"), F.array().cast("array<string>"))))


def items_in(*lists: pa.ChunkedArray[Any]) -> pa.StringArray:
    """All items of some lists, each once."""
    chunks = [pc.list_flatten(chunk).cast(pa.string()) for column in lists for chunk in column.chunks]
    return cast(pa.StringArray, pc.unique(pa.chunked_array(chunks, pa.string())))


def as_numbers(lists: pa.ChunkedArray[Any], items: pa.StringArray) -> Lists:
    """Every item as its position among `items`, -1 for another one."""
    sizes = np.asarray(pc.list_value_length(lists).fill_null(0), dtype=np.int64)
    flat = pc.list_flatten(lists).cast(pa.string())
    numbers = np.asarray(pc.index_in(flat, value_set=items).fill_null(-1), dtype=np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)]), numbers


@compiled
def bitmaps(lists: Lists, width: int) -> tuple[Words, Ints]:
    """Bitmaps of `width` items, and how many items of each list have no number."""
    offsets, numbers = lists
    bits = np.zeros((offsets.size - 1, max(1, (width + 63) // 64)), dtype=np.uint64)
    others = np.zeros(offsets.size - 1, dtype=np.int64)
    for row in range(offsets.size - 1):
        for at in range(offsets[row], offsets[row + 1]):
            if numbers[at] < 0:
                others[row] += 1
            else:
                bits[row, numbers[at] >> 6] |= np.uint64(1) << np.uint64(numbers[at] & 63)
    return bits, others


@compiled
def bits_set(word: np.uint64) -> int:
    """How many bits of a word are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56)))
