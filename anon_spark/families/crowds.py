"""Sizes of crowds and frequent items of a table, not collected yet: counts for reports of several families."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.auditing.guarantees.k_anonymity import buckets_of, classes_by_size
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

    by: the places of the lists that decide: at least k rows must have an item there, and the most frequent are taken. No row
    may have it in two of them.
    Cost: a scan of every frame and one groupBy; at most MOST_ITEMS rows reach the driver.
    """
    cells, places = list[DataFrame](), 0
    for frame, columns in lists:
        placed = [_placed(items, places + at) for at, items in enumerate(columns)]
        cells.append(frame.select(F.inline(F.concat(*placed))))
        places += len(columns)
    counts = [F.count_if(F.col(PLACES) == place).alias(f"{PLACES}{place}") for place in range(places)]
    deciding = reduce(add, (F.col(f"{PLACES}{place}") for place in by))
    counted = gathered(reduce(DataFrame.unionByName, cells), small).groupBy(ITEM).agg(*counts).where(deciding >= k)
    frequent = counted.orderBy(F.desc(deciding), ITEM).limit(MOST_ITEMS)

    def found(rows: Sequence[Row]) -> list[tuple[str, tuple[int, ...]]]:
        told = [(str(row[ITEM]), tuple(int(row[f"{PLACES}{place}"]) for place in range(places))) for row in rows]
        return sorted(told, key=lambda item: (-sum(item[1][place] for place in by), item[0]))

    return Pending.of(frequent, found)


def _placed(items: Column, place: int) -> Column:
    """Each item of a list once, with the place of the list; none where there is no list."""
    some = F.coalesce(F.array_distinct(items), F.array().cast("array<string>"))
    return F.transform(some, lambda item: F.struct(item.alias(ITEM), F.lit(place).alias(PLACES)))
