"""Item lists as the audit compares them: read afresh, numbered, and packed into bitmaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.audit.values import quoted
from anon_spark.errors import ConfigurationError

P = ParamSpec("P")
R = TypeVar("R")
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Lists = tuple[Ints, Ints]  # list at is numbers[offsets[at] : offsets[at + 1]]


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """The function as machine code, kept on disk where that is possible."""
    try:
        return cast(Callable[P, R], njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder to write to
        return cast(Callable[P, R], njit(nogil=True)(function))


def require_lists(frame: DataFrame, names: list[str], where: str) -> None:
    """Raise unless the columns are lists of texts. Cost: none, reads the schema."""
    other = [name for name in names if not frame.schema[name].dataType.simpleString().startswith("array<string")]
    if other:
        raise ConfigurationError(f"Columns of the {where} that must be array<string>: {', '.join(other)}.")


def item_set(name: str) -> Column:
    """A list as a set: every item once, sorted byte by byte; nulls in it are no items, and no list is an empty one."""
    items = F.coalesce(F.col(quoted(name)).cast("array<string>"), F.array().cast("array<string>"))
    return F.sort_array(F.array_distinct(F.array_compact(items)))


def names_in(*lists: pa.ChunkedArray[Any]) -> pa.StringArray:
    """All items of some lists, each once."""
    chunks = [pc.list_flatten(chunk).cast(pa.string()) for column in lists for chunk in column.chunks]
    return cast(pa.StringArray, pc.unique(pa.chunked_array(chunks, pa.string())).drop_null())


def numbered(lists: pa.ChunkedArray[Any], names: pa.StringArray) -> Lists:
    """Every item as its position among the names, -1 for another one."""
    sizes = np.asarray(pc.list_value_length(lists).fill_null(0), dtype=np.int64)
    flat = pc.list_flatten(lists).cast(pa.string())
    numbers = np.asarray(pc.index_in(flat, value_set=names).fill_null(-1), dtype=np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)]), numbers


@compiled
def packed(lists: Lists, width: int) -> tuple[Words, Ints]:
    """Bitmaps of `width` items, and how many items of each list have no number."""
    offsets, numbers = lists
    bits = np.zeros((offsets.size - 1, max(1, (width + 63) // 64)), dtype=np.uint64)
    outside = np.zeros(offsets.size - 1, dtype=np.int64)
    for row in range(offsets.size - 1):
        for at in range(offsets[row], offsets[row + 1]):
            item = numbers[at]
            if item < 0:
                outside[row] += 1
            else:
                bits[row, item >> 6] |= np.uint64(1) << np.uint64(item & 63)
    return bits, outside


@compiled
def ones(word: np.uint64) -> int:
    """How many bits are set, one by one: error bitmaps are almost empty."""
    total = np.int64(0)
    while word != np.uint64(0):
        word &= word - np.uint64(1)
        total += 1
    return int(total)
