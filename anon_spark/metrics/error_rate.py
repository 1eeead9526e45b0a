"""Error rate ER of item sets: flipped bits between a record and what is published for it, as a share of its items."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import BLOCK, CHOSEN, LINK, PREFIX, SLOT, quoted
from anon_spark.errors import DataError
from anon_spark.kernels.bitmaps import Sets, hamming, sets_of
from anon_spark.kernels.classes import Ints
from anon_spark.kernels.compiled import compiled

_ITEMS, _SLOTS, _TRUE = PREFIX + "items", PREFIX + "slots", PREFIX + "true"
_SHARES, _COUNTS = ("expected", "true"), ("records", "empty", "lost")
_SCHEMA = pa.schema([(name, pa.float64()) for name in _SHARES] + [(name, pa.int64()) for name in _COUNTS])
_DDL = "expected double, true double, records long, empty long, lost long"


class ErrorRate(NamedTuple):
    """expected: over the slots of each record, all alike likely; true: for the slot that is its own.

    records: how many have edges; empty: those of them that have no items and are left out of both means.
    """

    expected: float
    true: float
    records: int
    empty: int


def error_rate(
    source: DataFrame, staged: DataFrame, edges: DataFrame, items: str = "items", base: str = "base"
) -> ErrorRate:
    """ER of a release from its records (LINK, items), its rows (BLOCK, SLOT, base) and the edges between them.

    Items are whole numbers or texts; one that is named twice counts once. `expected` does not depend on what was drawn,
    `true` does: it is for the audit, not for publication.
    Guarantee: exact but for the last digits of a double; partitions do not matter. An edge to a row that is not there is
    an error. Cost: one join by LINK, one shuffle by BLOCK; a block at a time in a task; one row reaches the driver.
    """
    # 1. each record with its slots: item sets travel once, not once per edge
    slots = edges.groupBy(LINK).agg(
        F.first(BLOCK).alias(BLOCK),
        F.collect_list(SLOT).alias(_SLOTS),
        F.max(F.when(F.col(CHOSEN), F.col(SLOT))).alias(_TRUE),
    )
    records = source.select(LINK, _as_set(items)).join(slots, LINK)
    # 2. records and rows of a block in one task
    published = staged.select(BLOCK, SLOT, _as_set(base))
    both = records.drop(LINK).unionByName(published, allowMissingColumns=True)
    sums = both.groupBy(BLOCK).applyInArrow(_block_sums, _DDL)
    found = sums.agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _SCHEMA.names)).collect()[0]
    if found["lost"]:
        raise DataError(
            f"{found['lost']:,} edges lead to no row of the release, or are missing for the row that is a record's own."
        )
    counted = found["records"] - found["empty"]
    # rounded: sums of doubles depend on their order in the last digits
    expected, true = (float(f"{found[name] / counted:.12g}") if counted else 0.0 for name in _SHARES)
    return ErrorRate(expected, true, found["records"], found["empty"])


def _as_set(items: str) -> Column:
    return F.array_compact(F.array_distinct(quoted(items))).alias(_ITEMS)


def _block_sums(table: pa.Table) -> pa.Table:
    """Records (with _SLOTS) and published rows (with SLOT) of one block → sums over the records."""
    is_row = pc.is_valid(table.column(SLOT))
    records, rows = table.filter(pc.invert(is_row)), table.filter(is_row).sort_by(SLOT)
    sets = sets_of(*_coded(pa.concat_tables([records, rows]).column(_ITEMS)))
    lists: Any = records.column(_SLOTS).combine_chunks()
    count, degree = records.num_rows, lists.value_lengths().to_numpy()
    numbers = np.arange(count)
    origin = np.repeat(numbers, degree)  # the record of each edge
    target, own = (_places(rows, slots) for slots in (lists.flatten(), records.column(_TRUE)))
    sums = {"records": count, "empty": 0, "lost": np.count_nonzero(target < 0) + np.count_nonzero(own < 0)}
    if count and not sums["lost"]:
        flipped = np.bincount(origin, pair_flips(sets, origin, count + target), count)  # rows stand behind the records
        size = np.diff(sets.offsets)[:count]
        some = size > 0
        sums["empty"] = count - np.count_nonzero(some)
        sums["expected"] = (flipped / degree)[some] @ (1 / size[some])
        sums["true"] = pair_flips(sets, numbers, count + own)[some] @ (1 / size[some])
    return pa.table({name: [sums.get(name, 0)] for name in _SCHEMA.names}, schema=_SCHEMA)


@compiled
def pair_flips(sets: Sets, ones: Ints, others: Ints) -> Ints:
    """In how many items the two sets of each pair differ."""
    found = np.empty(ones.size, dtype=np.int64)
    for pair in range(ones.size):
        found[pair] = hamming(sets, ones[pair], others[pair])
    return found


def _places(rows: pa.Table, slots: Any) -> Ints:
    """Where each slot stands among the rows, -1 for one that does not."""
    found: Ints = pc.index_in(slots, value_set=rows.column(SLOT)).fill_null(-1).to_numpy().astype(np.int64)
    return found


def _coded(lists: Any) -> tuple[Ints, Ints]:
    """Item sets as offsets and numbers; a null set has no items."""
    lists = lists.combine_chunks()
    offsets = np.concatenate([[0], np.cumsum(lists.value_lengths().fill_null(0).to_numpy())]).astype(np.int64)
    return offsets, lists.flatten().dictionary_encode().indices.to_numpy().astype(np.int64)
