"""Sizes of crowds and frequent items of a table, not collected yet: counts for reports of several families."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anon_spark.auditing.guarantees.k_anonymity import buckets_of, classes_by_size
from anon_spark.auditing.reading.item_sets import Ints, items_in, rows_by_item
from anon_spark.columns import PREFIX, ROWS
from anon_spark.engine import gathered
from anon_spark.model.distributions import Crowds
from anon_spark.pending import Pending

ALONE = PREFIX + "alone"
ITEM, PLACES = PREFIX + "item", PREFIX + "places"
MOST_ITEMS = 8


def crowds_to_be(tuples: DataFrame, k: int, size: Column | None = None) -> Pending[Crowds]:
    """The crowds of distinct tuples with their ROWS. size: of the crowd of a tuple, if it is not its rows."""
    size, least = F.col(ROWS) if size is None else size, max(2, k)
    alone = F.coalesce(F.sum(F.when(size == 1, F.col(ROWS))), F.lit(0)).alias(ALONE)
    by_size = classes_by_size(tuples.where(F.col(ROWS) > 0), size, least, [alone])
    return Pending.of(by_size, lambda rows: (buckets_of(rows), sum(row[ALONE] for row in rows)))


def frequent_items_to_be(
    lists: Sequence[tuple[DataFrame, Sequence[Column]]], by: Collection[int], k: int, small: bool = False
) -> Pending[list[tuple[str, tuple[int, ...]]]]:
    """The most frequent items of columns of lists: the item, and how many rows have it in each list.

    A column of lists of lists has two places: of items that are alone in their inner list, and of the others.
    by: the places that decide: at least k rows must have an item there, and the most frequent are taken. No row may have it in
    two of them.
    Cost: a scan of every frame and one groupBy; at most MOST_ITEMS rows reach the driver.
    """
    cells, places = list[DataFrame](), 0
    for frame, columns in lists:
        items = frame.select(*(column.alias(f"{ITEM}{at}") for at, column in enumerate(columns)))
        cells.append(items.mapInArrow(partial(_counted, places), f"{ITEM} string, {PLACES} int, {ROWS} long"))
        places += sum(2 if _is_nested(field.dataType) else 1 for field in items.schema.fields)
    of_place = [F.when(F.col(PLACES) == place, F.col(ROWS)).otherwise(0) for place in range(places)]
    counts = [F.sum(rows).alias(f"{PLACES}{place}") for place, rows in enumerate(of_place)]
    deciding = reduce(add, (F.col(f"{PLACES}{place}") for place in by))
    counted = gathered(reduce(DataFrame.unionByName, cells), small).groupBy(ITEM).agg(*counts).where(deciding >= k)
    frequent = counted.orderBy(F.desc(deciding), ITEM).limit(MOST_ITEMS)

    def found(rows: Sequence[Row]) -> list[tuple[str, tuple[int, ...]]]:
        told = [(str(row[ITEM]), tuple(int(row[f"{PLACES}{place}"]) for place in range(places))) for row in rows]
        return sorted(told, key=lambda item: (-sum(item[1][place] for place in by), item[0]))

    return Pending.of(frequent, found)


def _counted(first_place: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Lists of items → in how many rows of each batch an item is, by place."""
    for batch in batches:
        parts = [part for lists in batch.columns for part in _parts(lists)]
        for place, (items, row) in enumerate(parts, first_place):
            counted, rows = rows_by_item(items.cast(pa.string()), row)
            columns = [counted, pa.array(np.full(rows.size, place, dtype=np.int32)), pa.array(rows)]
            yield pa.RecordBatch.from_arrays(columns, names=[ITEM, PLACES, ROWS])


def _is_nested(kind: T.DataType) -> bool:
    return isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.ArrayType)


def _parts(lists: Any) -> list[tuple[Any, Ints]]:
    """The items of lists and their rows; of lists of lists those that are alone in an inner list, and the others."""
    items, row = items_in(lists)
    inner = pc.list_flatten(lists)
    if not pa.types.is_list(inner.type):
        return [(items, row)]
    alone = np.asarray(pc.list_value_length(inner))[np.asarray(pc.list_parent_indices(inner))] == 1
    return [(items.filter(pa.array(chosen)), row[chosen]) for chosen in (alone, ~alone)]
