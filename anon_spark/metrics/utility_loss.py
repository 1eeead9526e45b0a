"""Utility loss UL of generalized items: how many item sets each may stand for, as a share of those of its row.

UL of a row: Σ (2^|u| - 1) / (2^σ - 1) over its generalized items u, σ the sum of their sizes; an item that stands for itself
counts nothing, a row without items loses nothing. UL alone does not measure quality, because it can fall when items get
coarser. So UL_dom, with 2^(all items of the table) - 1 as the denominator, is reported as well, as log2.
"""

from __future__ import annotations

from math import fsum, log1p, log2
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anon_spark.columns import PREFIX, ROWS, quoted
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.primitives.rounds import collect_small
from anon_spark.primitives.tables import require_columns

MOST_SIZES = 1_000_000  # different sizes of generalized items: as many as there are items, at most

_PLACE, _SIZE, _TOTAL, _LOST, _TIMES = (PREFIX + name for name in ("place", "size", "total", "lost", "times"))
_EXACT = "decimal(20,18)"  # sums of decimals do not depend on their order


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
    Cost: one scan, one groupBy by size, built-in expressions only; a row per different size reaches the driver.
    """
    require_columns(release, [items])
    sizes = F.transform(quoted(items), F.size)
    total = F.coalesce(F.aggregate(sizes, F.lit(0), lambda sum_, size: sum_ + size), F.lit(0))
    parts = release.select(total.alias(_TOTAL), F.posexplode_outer(sizes).alias(_PLACE, _SIZE))
    by_size = parts.groupBy(_SIZE).agg(
        F.sum(F.when(F.coalesce(_PLACE, F.lit(0)) == 0, 1).otherwise(0)).alias(ROWS),
        F.count(_SIZE).alias(_TIMES),
        F.sum(_share(F.col(_SIZE), F.col(_TOTAL)).cast(_EXACT)).alias(_LOST),
    )
    table = collect_small(by_size, MOST_SIZES, "Different sizes of generalized items")
    ordered = sorted(table.to_pylist(), key=lambda row: row[_SIZE] or 0)
    rows = sum(row[ROWS] for row in ordered)
    if rows == 0:
        raise DataError("The utility loss of a table without rows is not defined.")
    times = {row[_SIZE]: row[_TIMES] for row in ordered if row[_SIZE] is not None}
    largest, shown = max(times, default=0), sum(times.values())
    if largest > domain:
        raise ConfigurationError(
            f"domain is {domain:,}, but a generalized item stands for {largest:,} items. Count again."
        )
    return UtilityLoss(
        float(sum(row[_LOST] for row in ordered if row[_LOST] is not None) / rows),
        _log2_ul_dom(times, rows, domain),
        rows,
        sum(row[ROWS] for row in ordered if row[_SIZE] is None),
        largest,
        times.get(1, 0) / shown if shown else 1.0,
    )


def _share(size: Column, total: Column) -> Column:
    """(2^size - 1) / (2^total - 1), 0 for a single item, without a number that could overflow."""
    share = _power(size - total) * (1 - _power(-size)) / (1 - _power(-total))
    return F.when(size > 1, share).otherwise(0.0)


def _power(exponent: Column) -> Column:
    return F.pow(F.lit(2.0), exponent)


def _log2_ul_dom(times: dict[int, int], rows: int, domain: int) -> float | None:
    """log2 of the mean UL_dom. times: how many generalized items have each size."""
    several = {size: number for size, number in times.items() if size > 1}
    if not several:
        return None
    largest = max(several)
    lost = fsum(number * 2.0 ** (size - largest) * (1 - 2.0**-size) for size, number in several.items())
    return largest + log2(lost / rows) - (domain + log1p(-(2.0**-domain)) / log1p(1))
