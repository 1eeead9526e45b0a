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
from anon_spark.primitives.rounds import Workspace
from jobs.benchmarks.census_runs import timed
from jobs.benchmarks.set_valued.records import REPLACED, ItemSets, copied
from jobs.markdown import table

TIMES = (1, 2, 4, 8, 16)
RING_TSP, RING, CUT, SWAPPED = "ring, gray_tsp", "ring, window", "groups without swaps", "groups"
WAYS: Mapping[str, Mapping[str, Any]] = {  # the ring as in the paper; groups of the window order; what a job does by default
    RING_TSP: {"order": "gray_tsp", "graph": "ring"},
    RING: {"order": "window", "graph": "ring"},
    CUT: {"order": "window", "graph": "groups", "effort": "none"},
    SWAPPED: {"order": "window", "graph": "groups"},
}
K = 16
MOST_EXPONENT = 1.15
MOST_SORTS = 10
MOST_SWAPS = 1.5  # times the fit without them
BEYOND = 2**30  # after every item
NUMBER = r"(\d+)$"


@dataclass(frozen=True)
class Fitted:
    """Seconds of one fit and its steps, and what came out."""

    way: str
    rows: int
    seconds: float
    sort: float
    in_blocks: float  # of these, orders, graphs and draws of the blocks
    blocks: int
    steps: int
    edges: int
    error_rate: float


@dataclass(frozen=True)
class Grown:
    """One size: a plain sort, and the fit in each way."""

    times: int
    rows: int
    plain_sort: float
    fits: Mapping[str, Fitted]


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


def fitted(df: DataFrame, way: str, k: int = K, work: str | None = None) -> Fitted:
    """One fit with draws that are the same every time. work: where its files go, on a cluster."""
    with Workspace(df.sparkSession, work) as workspace:
        anonymizer = SetValuedAnonymizer(items="items", k=k, key="benchmark", **WAYS[way])
        seconds, recoding = timed(lambda: anonymizer.fit(df, workspace))
        measures = recoding.measured().measures
        return Fitted(
            way,
            recoding.records.rows,
            seconds,
            recoding.statistics.seconds_sort,
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
                Grown(number, rows, plain_sort(df, "items"), {way: fitted(df, way, k) for way in WAYS})
            )
    return found[1:]


def exponent(first: tuple[float, float], last: tuple[float, float]) -> float:
    """Of seconds by rows, from one (rows, seconds) to another."""
    return log(last[1] / first[1]) / log(last[0] / first[0])


def growth_text(name: str, found: Sequence[Grown], k: int = K) -> str:
    head = ["copies", "records", "blocks", "plain sort"]
    head += [f"{way}: {what}" for way in WAYS for what in ("fit", "in blocks", "fit / plain sort", "ER")]
    head += ["walk steps per edge"]
    rows = [
        [
            f"{size.times}×",
            f"{size.rows:,}",
            str(size.fits[RING].blocks),
            f"{size.plain_sort:.2f}",
            *(
                cell
                for fit in size.fits.values()
                for cell in (
                    f"{fit.seconds:.2f}",
                    f"{fit.in_blocks:.2f}",
                    f"{fit.seconds / size.plain_sort:.1f}×",
                    f"{fit.error_rate:.4f}",
                )
            ),
            f"{size.fits[RING].steps / size.fits[RING].edges:.1f}",
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
        parts.append(" ".join(exponents(found, way) for way in WAYS))
        last = found[-1]
        fits = {way: (fit.seconds, fit.error_rate) for way, fit in last.fits.items()}
        parts.append(f"At {last.times}×: {prices_text(fits)}")
    return "\n\n".join(parts)


def prices_text(fits: Mapping[str, tuple[float, float]]) -> str:
    """What each way costs and saves beside the one before it. fits: seconds and ER by way."""
    told = []
    for less, more, most in ((RING_TSP, RING, None), (CUT, SWAPPED, MOST_SWAPS)):
        price, saved = fits[more][0] / fits[less][0], 1 - fits[more][1] / fits[less][1]
        limit = "" if most is None else f" (limit {most}×, {'kept' if price <= most else '**not kept**'})"
        told.append(f"{more} takes **{price:.1f}×** as long as {less}{limit}, for an ER that is {saved:.1%} lower.")
    beside, saved = fits[SWAPPED][0] / fits[RING][0], 1 - fits[SWAPPED][1] / fits[RING][1]
    return " ".join(told) + f" Beside {RING}: {beside:.1f}× as long, ER {saved:.1%} lower."


def exponents(found: Sequence[Grown], way: str) -> str:
    """A sentence on the growth in one way, with a verdict that is computed."""
    points = [(float(size.rows), size.fits[way].seconds) for size in found]
    whole, late = exponent(points[0], points[-1]), exponent(points[-2], points[-1])
    work = exponent(*((float(size.rows), size.fits[way].in_blocks) for size in (found[0], found[-1])))
    verdict = "kept" if whole <= MOST_EXPONENT else "**not kept**"
    return (
        f"{way[0].upper()}{way[1:]}: exponent **{whole:.2f}** from {found[0].times}× to {found[-1].times}× (limit "
        f"{MOST_EXPONENT}, {verdict}); what every fit costs, however small, is in it: {late:.2f} from {found[-2].times}× on. "
        f"The work in blocks alone: {work:.2f}; one block keeps one core busy, several keep all."
    )


def against_sort(run: Mapping[str, Any], plain: float, way: str) -> list[str]:
    """Cells of a fit beside the plain sort and beside the family's own sorting."""
    fit, own = run["timings"]["fit"], run["seconds_sort"]

    def ratio(sorting: float) -> str:
        kept = "" if way != RING_TSP else ", kept" if fit <= MOST_SORTS * sorting else ", **not kept**"
        return f"{fit / sorting:.1f}×{kept}"

    return [f"{fit:.1f}", f"{plain:.1f}", ratio(plain), f"{own:.1f}", ratio(own)]
