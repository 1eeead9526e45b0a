"""Utility loss UL of generalized items: how many item sets each may stand for, as a share of those of its row.

UL of a row: Σ (2^|u| - 1) / (2^σ - 1) over its generalized items u, σ the sum of their sizes; an item that stands for itself
counts nothing, a row without items loses nothing. UL alone does not measure quality, because it can fall when items get
coarser. So UL_dom, with 2^(all items of the table) - 1 as the denominator, is reported as well, as log2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import fsum, log1p, log2
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, quoted
from anon_spark.errors import ConfigurationError, DataError, LimitExceeded
from anon_spark.pending import Pending
from anon_spark.primitives.tables import require_columns

SIZE_BITS = 31
MOST_SIZES = 1_000_000  # different pairs of the size of a generalized item and of its row

_SIZE, _TOTAL, _TIMES = (PREFIX + name for name in ("size", "total", "times"))


class UtilityLoss(NamedTuple):
    """ul: mean UL of the rows; log2_ul_dom: log2 of their mean UL_dom, None where nothing is generalized.

    rows, and how many of them are empty; largest: items of the largest generalized item; kept: share of the published items
    that stand for themselves (1 where there are none).
    """

    ul: float
    log2_ul_dom: float | None
    rows: int
    empty: int
    largest: int
    kept: float


def utility_loss(release: DataFrame, items: str, domain: int) -> UtilityLoss:
    """UL and UL_dom of a release with a column array<array<string>>; domain: how many items the source has.

    Guarantee: right to the last digits of a double, whatever the sizes, and the same for any partitioning.
    Cost: one scan, one groupBy by size of an item and of its row; a row per different pair of sizes reaches the driver.
    """
    return utility_loss_to_be(release, items, domain).get()


def utility_loss_to_be(release: DataFrame, items: str, domain: int) -> Pending[UtilityLoss]:
    """As `utility_loss`, its counts not collected yet."""
    require_columns(release, [items])
    sizes = F.coalesce(F.transform(quoted(items), F.size), F.array().cast("array<int>"))
    pairs = release.select(sizes.alias(_SIZE)).mapInArrow(_pairs, f"{_SIZE} int, {_TOTAL} int, {_TIMES} long")
    counted = pairs.groupBy(_SIZE, _TOTAL).agg(F.sum(_TIMES).alias(_TIMES)).limit(MOST_SIZES + 1)
    return Pending.of(counted, partial(_utility_loss, domain))


def _pairs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Lists of sizes → how often each size occurs beside each sum of its list. A list without sizes counts as the size 0."""
    for batch in batches:
        lists: Any = batch.column(0)
        lengths, sizes = (np.asarray(part).astype(np.int64) for part in (lists.value_lengths(), lists.flatten()))
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
        ends = np.cumsum(lengths)
        totals = np.repeat(before[ends] - before[ends - lengths], lengths)
        pairs, times = np.unique(totals << SIZE_BITS | sizes, return_counts=True)
        empty = int(np.count_nonzero(lengths == 0))
        size, total = pairs & ((1 << SIZE_BITS) - 1), pairs >> SIZE_BITS
        columns = [np.append(size, 0).astype(np.int32), np.append(total, 0).astype(np.int32), np.append(times, empty)]
        yield pa.RecordBatch.from_arrays(list(map(pa.array, columns)), names=[_SIZE, _TOTAL, _TIMES])


def _utility_loss(domain: int, found: Sequence[Row]) -> UtilityLoss:
    """The loss from how often each size occurs beside each sum of sizes of a row."""
    if len(found) > MOST_SIZES:
        raise LimitExceeded(
            f"Different sizes of generalized items and their rows: more than {MOST_SIZES:,}, too many for the driver.",
            limit=MOST_SIZES,
        )
    pairs = {(row[_SIZE], row[_TOTAL]): row[_TIMES] for row in found if row[_TIMES]}
    empty = pairs.pop((0, 0), 0)
    times, shown_in = Counter[int](), Counter[int]()  # by size; items by the sum of sizes of their row
    for (size, total), number in pairs.items():
        times[size] += number
        shown_in[total] += size * number
    rows = empty + sum(items // total for total, items in shown_in.items())
    if rows == 0:
        raise DataError("The utility loss of a table without rows is not defined.")
    largest, shown = max(times, default=0), sum(times.values())
    if largest > domain:
        raise ConfigurationError(
            f"domain is {domain:,}, but a generalized item stands for {largest:,} items. Count again."
        )
    lost = fsum(number * _share(size, total) for (size, total), number in pairs.items())  # exact, whatever the order
    return UtilityLoss(
        lost / rows, _log2_ul_dom(times, rows, domain), rows, empty, largest, times[1] / shown if shown else 1.0
    )


def _share(size: int, total: int) -> float:
    """(2^size - 1) / (2^total - 1), 0 for a single item, without a number that could overflow."""
    return 0.0 if size == 1 else 2.0 ** (size - total) * (1 - 2.0**-size) / (1 - 2.0**-total)


def _log2_ul_dom(times: Mapping[int, int], rows: int, domain: int) -> float | None:
    """log2 of the mean UL_dom. times: how many generalized items have each size."""
    several = {size: number for size, number in times.items() if size > 1}
    if not several:
        return None
    largest = max(several)
    lost = fsum(number * 2.0 ** (size - largest) * (1 - 2.0**-size) for size, number in several.items())
    return largest + log2(lost / rows) - (domain + log1p(-(2.0**-domain)) / log1p(1))
