"""Item lists as audit and attackers compare them: read afresh, numbered, and packed into bitmaps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.arrays import each_once
from anon_spark.auditing.reading.values import quoted
from anon_spark.compiled import compiled, inner
from anon_spark.engine import only_null
from anon_spark.errors import ConfigurationError

Ints = NDArray[np.int64]
Marks = NDArray[np.bool_]
Words = NDArray[np.uint64]
Lists = tuple[Ints, Ints]  # list at is numbers[offsets[at] : offsets[at + 1]]


def require_lists(frame: DataFrame, names: list[str], where: str) -> None:
    """Raise unless the columns are lists of texts. Cost: none, reads the schema."""
    other = [name for name in names if not frame.schema[name].dataType.simpleString().startswith("array<string")]
    if other:
        raise ConfigurationError(f"Columns of the {where} that must be array<string>: {', '.join(other)}.")


def require_item_groups(release: DataFrame, items: str) -> None:
    """Raise unless the column is array<array<string>>. Cost: none, reads the schema."""
    if not release.schema[items].dataType.simpleString().startswith("array<array<string"):
        raise ConfigurationError(f"Column {items} of the release must be array<array<string>>.")


# -- Spark ----------------------------------------------------------------------------------------------------------


def no_items() -> Column:
    """An empty list."""
    return F.array().cast("array<string>")


def as_set(items: Column) -> Column:
    """A list with every item once; nulls in it are no items, and no list is an empty one."""
    return F.array_except(F.coalesce(items.cast("array<string>"), no_items()), only_null())


def item_set(name: str) -> Column:
    """A column of lists as sets, as in `as_set`, sorted byte by byte."""
    return F.sort_array(as_set(F.col(quoted(name))))


def together(columns: Sequence[str], lists: Sequence[Column]) -> Column:
    """The lists of some columns as one; the items of several columns are written `column.item`."""
    if len(columns) > 1:
        lists = [F.transform(items, partial(_prefixed, name)) for name, items in zip(columns, lists, strict=True)]
    return F.concat(*lists)


def _prefixed(column: str, item: Column) -> Column:
    return F.concat(F.lit(f"{column}."), item)


# -- arrays ---------------------------------------------------------------------------------------------------------


def names_in(*lists: pa.ChunkedArray[Any]) -> pa.StringArray:
    """All items of some lists, each once."""
    chunks = [pc.list_flatten(chunk).cast(pa.string()) for column in lists for chunk in column.chunks]
    return cast(pa.StringArray, pc.unique(pa.chunked_array(chunks, pa.string())).drop_null())


def numbered(lists: pa.ChunkedArray[Any], names: pa.StringArray) -> Lists:
    """Lists with every item as its position among the names, -1 for an unknown item."""
    sizes = np.asarray(pc.list_value_length(lists).fill_null(0), dtype=np.int64)
    flat = pc.list_flatten(lists).cast(pa.string())
    return offsets_of(sizes), np.asarray(pc.index_in(flat, value_set=names).fill_null(-1), dtype=np.int64)


def items_in(lists: Any) -> tuple[Any, Ints]:
    """The items of lists, or of lists of lists, and which row each is in."""
    items, rows = pc.list_flatten(lists), np.asarray(pc.list_parent_indices(lists), dtype=np.int64)
    if pa.types.is_list(items.type):
        items, rows = pc.list_flatten(items), rows[np.asarray(pc.list_parent_indices(items), dtype=np.int64)]
    return items, rows


def rows_by_item(items: Any, rows: Ints) -> tuple[Any, Ints]:
    """Every item once, a null counts as one, and in how many rows it is."""
    encoded = items.dictionary_encode(null_encoding="encode")
    number = len(encoded.dictionary)
    places = each_once(rows * max(1, number) + np.asarray(encoded.indices, dtype=np.int64))
    return encoded.dictionary, np.bincount(places % max(1, number), minlength=number)


def offsets_of(sizes: Ints | Marks) -> Ints:
    """Offsets of concatenated lists: where each begins, and where the last one ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])


@compiled
def bitmaps(lists: Lists, width: int) -> tuple[Words, Ints]:
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


@inner
def bits_set(word: np.uint64) -> int:
    """The number of set bits of a word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56)))
