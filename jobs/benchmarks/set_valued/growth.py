"""How long a fit takes on ever more copies of a table, on local Spark, and beside a plain global sort."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.families.set_valued.anonymizer import SetValuedAnonymizer
from anon_spark.families.set_valued.block import Order
from anon_spark.primitives.rounds import Workspace
from jobs.benchmarks.census_runs import timed
from jobs.benchmarks.set_valued.records import REPLACED, ItemSets, copied
from jobs.markdown import table

TIMES = (1, 2, 4, 8, 16)
ORDERS: tuple[Order, ...] = ("gray_tsp", "window")
K = 16
MOST_EXPONENT = 1.15
MOST_SORTS = 10
BEYOND = 2**30  # after every item
NUMBER = r"(\d+)$"


@dataclass(frozen=True)
class Fitted:
    """Seconds of one fit and its steps, and what came out."""

    order: Order
    rows: int
    seconds: float
    in_blocks: float  # of these, orders, graphs and draws of the blocks
    blocks: int
    steps: int
    edges: int
    error_rate: float


@dataclass(frozen=True)
class Grown:
    """One size: a plain sort, and the fit with each order."""

    times: int
    rows: int
    plain_sort: float
    fits: Mapping[Order, Fitted]


def gray_key(items: Column) -> Column:
    """The key by which sorted item sets stand in Gray order; the names of the items end in their numbers.

    Positions with alternating signs and an end mark, by expressions of Spark alone.
    """
    signed = F.transform(
        items, lambda item, at: F.regexp_extract(item, NUMBER, 1).cast("int") * F.when(at % 2 == 0, -1).otherwise(1)
    )
    return F.concat(signed, F.array(F.when(F.size(items) % 2 == 0, -BEYOND).otherwise(BEYOND)))


def plain_sort(df: DataFrame, items: str) -> float:
    """Seconds of one global sort of the table by Gray keys, its rows thrown away: what nobody can avoid."""
    ordered = df.withColumn("key", gray_key(F.col(items))).orderBy("key").drop("key")
    seconds, _ = timed(lambda: ordered.write.format("noop").mode("overwrite").save())
    return seconds


def fitted(df: DataFrame, order: Order, k: int = K) -> Fitted:
    """One fit with draws that are the same every time."""
    with Workspace(df.sparkSession) as workspace:
        anonymizer = SetValuedAnonymizer(items="items", k=k, order=order, graph="ring", key="benchmark")
        seconds, recoding = timed(lambda: anonymizer.fit(df, workspace))
        measures = recoding.measured().measures
        return Fitted(
            order,
            recoding.records.rows,
            seconds,
            recoding.statistics.seconds,
            measures.blocks,
            measures.steps,
            measures.edges,
            measures.er,
        )


def grown(spark: SparkSession, source: ItemSets, times: Sequence[int] = TIMES, k: int = K) -> list[Grown]:
    """Fits on the table and on copies of it, each read from files; the smallest size first, twice, to compile."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number in (times[0], *times):
            path = str(Path(folder) / str(number))
            copied(source, number).frame(spark).write.mode("overwrite").parquet(path)
            df = spark.read.parquet(path)
            rows = df.count()
            found.append(
                Grown(number, rows, plain_sort(df, "items"), {order: fitted(df, order, k) for order in ORDERS})
            )
    return found[1:]


def exponent(first: tuple[float, float], last: tuple[float, float]) -> float:
    """Of seconds by rows, from one (rows, seconds) to another."""
    return log(last[1] / first[1]) / log(last[0] / first[0])


def growth_text(name: str, found: Sequence[Grown], k: int = K) -> str:
    head = ["copies", "records", "blocks", "plain sort"]
    head += [f"{order}: {what}" for order in ORDERS for what in ("fit", "in blocks", "fit / plain sort", "ER")]
    head += ["walk steps per edge"]
    rows = [
        [
            f"{size.times}×",
            f"{size.rows:,}",
            str(size.fits[ORDERS[0]].blocks),
            f"{size.plain_sort:.2f}",
            *(
                cell
                for order in ORDERS
                for cell in (
                    f"{size.fits[order].seconds:.2f}",
                    f"{size.fits[order].in_blocks:.2f}",
                    f"{size.fits[order].seconds / size.plain_sort:.1f}×",
                    f"{size.fits[order].error_rate:.4f}",
                )
            ),
            f"{size.fits[ORDERS[0]].steps / size.fits[ORDERS[0]].edges:.1f}",
        ]
        for size in found
    ]
    parts = [
        f"### Growth of the fit ({name}, k = {k}; local Spark; seconds)",
        f"Copies: in every one after the first, each item is replaced with probability {REPLACED} by one that the record "
        "lacks.",
        table(head, rows),
    ]
    if len(found) > 1:
        parts.append(" ".join(exponents(found, order) for order in ORDERS))
        last = found[-1]
        price = last.fits["window"].seconds / last.fits["gray_tsp"].seconds
        saved = 1 - last.fits["window"].error_rate / last.fits["gray_tsp"].error_rate
        parts.append(
            f"The price of the window order at {last.times}×: **{price:.1f}×** the time of gray_tsp, for an ER that is "
            f"{saved:.1%} lower."
        )
    return "\n\n".join(parts)


def exponents(found: Sequence[Grown], order: Order) -> str:
    """A sentence on the growth with one order, with a verdict that is computed."""
    points = [(float(size.rows), size.fits[order].seconds) for size in found]
    whole, late = exponent(points[0], points[-1]), exponent(points[-2], points[-1])
    work = exponent(*((float(size.rows), size.fits[order].in_blocks) for size in (found[0], found[-1])))
    verdict = "kept" if whole <= MOST_EXPONENT else "**not kept**"
    return (
        f"Order {order}: exponent **{whole:.2f}** from {found[0].times}× to {found[-1].times}× (limit {MOST_EXPONENT}, "
        f"{verdict}); what every fit costs, however small, is in it: {late:.2f} from {found[-2].times}× on. The work in "
        f"blocks alone: {work:.2f}; one block keeps one core busy, several keep all."
    )


def against_sort(run: Mapping[str, Any], plain: float, order: Order) -> list[str]:
    """Cells of a whole run's fit beside the plain sort and beside the family's own sorting."""
    fit, own = run["timings"]["fit"], run["statistics"]["seconds_sort"]

    def ratio(sorting: float) -> str:
        kept = "" if order != "gray_tsp" else ", kept" if fit <= MOST_SORTS * sorting else ", **not kept**"
        return f"{fit / sorting:.1f}×{kept}"

    return [f"{fit:.1f}", f"{plain:.1f}", ratio(plain), f"{own:.1f}", ratio(own)]
