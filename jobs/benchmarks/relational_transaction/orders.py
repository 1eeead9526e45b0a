"""Parts of the family against their plain forms: BTD beside UL as an order, pruned beside all pairs, SetGen beside recounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from anon_spark.errors import AnonSparkError
from anon_spark.families.relational_transaction.items import Baskets
from anon_spark.families.relational_transaction.kernels.bit_distance import distances_within
from anon_spark.families.relational_transaction.kernels.item_merging import merged_items
from anon_spark.families.relational_transaction.settings import Distance, Merge, Settings
from anon_spark.kernels.transactions import Transactions, packed
from jobs.benchmarks.relational_transaction.phases import Released, Seconds, clustered, released
from jobs.benchmarks.relational_transaction.plain import plain_distances, plain_merged_items
from jobs.benchmarks.relational_transaction.records import Table
from jobs.markdown import table

K, M, DELTA = 25, 2, 0.65
SETTINGS = Settings(k=K, m=M, delta=DELTA, cost="occurrences", refine="none")
SAMPLE = 4_000
SEEDS = (1, 2, 3, 4, 5)
MERGES: tuple[Merge, ...] = ("items", "both")
DISTANCES: tuple[Distance, ...] = ("bits", "utility_loss")
LEAST_RATIO = 10
MOST_WORSE = 0.02
REPEATS = 3
WARM_UP = 400
MANY_ITEMS, MANY_RECORDS = 2_000, 20_000


class Ordered(NamedTuple):
    """One sample merged in the order of BTD and in that of UL."""

    btd: Released
    ul: Released

    @property
    def ratio(self) -> float:
        """How many times as long the merge phase by UL takes."""
        return self.ul.seconds.total / self.btd.seconds.total

    @property
    def worse(self) -> float:
        """By which share UL is higher where BTD gave the order."""
        return self.btd.ul / self.ul.ul - 1


Orders = Mapping[Merge, Sequence[Ordered]]


def orders(source: Table, seeds: Sequence[int] = SEEDS, records: int = SAMPLE, settings: Settings = SETTINGS) -> Orders:
    """Samples of the table, each clustered once and merged four times; a small one before, to compile."""
    found: dict[Merge, list[Ordered]] = {merge: [] for merge in MERGES}
    for number, seed in enumerate((0, *seeds)):
        start = clustered(source.sample(min(WARM_UP, records) if number == 0 else records, seed), settings.k, str(seed))
        for merge in MERGES:
            pair = [released(start, replace(settings, merge=merge, distance=distance)) for distance in DISTANCES]
            if number:
                found[merge].append(Ordered(*pair))
    return found


def orders_text(name: str, found: Orders) -> str:
    head = [
        "merge",
        "samples",
        "BTD: pass",
        "BTD: loop",
        "BTD: items",
        "UL: loop",
        "UL: items",
        "UL / BTD",
        "least",
        "most",
    ]
    head += ["UL after BTD", "UL after UL", "by BTD higher"]
    rows, said = [], []
    for merge, samples in found.items():
        ratio, worse = fmean(one.ratio for one in samples), fmean(one.worse for one in samples)
        rows.append(
            [
                merge,
                str(len(samples)),
                *(f"{fmean(getattr(one.btd.seconds, part) for one in samples):.3f}" for part in Seconds._fields),
                *(f"{fmean(getattr(one.ul.seconds, part) for one in samples):.3f}" for part in ("loop", "items")),
                f"**{ratio:.0f}×**",
                f"{min(one.ratio for one in samples):.0f}×",
                f"{max(one.ratio for one in samples):.0f}×",
                f"{fmean(one.btd.ul for one in samples):.4f}",
                f"{fmean(one.ul.ul for one in samples):.4f}",
                f"{worse:+.1%} ({min(one.worse for one in samples):+.1%} to {max(one.worse for one in samples):+.1%})",
            ]
        )
        fast, good = order_verdict(samples)
        said.append(f"{merge}: faster {_kept(fast)}, UL {_kept(good)}")
    return "\n\n".join(
        [
            f"### Merging in the order of BTD against that of UL ({name}, samples of {SAMPLE:,} records, k = {K}, m = {M}, "
            f"δ = {DELTA}; one process; seconds of the processor, means)",
            f"Asked for: the merge phase at least {LEAST_RATIO}× faster, UL at most {MOST_WORSE:.0%} higher, in the mean.",
            table(head, rows),
            "; ".join(said) + ".",
        ]
    )


def order_verdict(samples: Sequence[Ordered]) -> tuple[bool, bool]:
    """Whether BTD is fast enough, and good enough, in the mean of the samples."""
    ratio, worse = fmean(one.ratio for one in samples), fmean(one.worse for one in samples)
    return ratio >= LEAST_RATIO, worse <= MOST_WORSE


def _kept(holds: bool) -> str:
    return "kept" if holds else "**not kept**"


# --- plain forms -----------------------------------------------------------------------------------------------------------


class Plainly(NamedTuple):
    """Seconds of a part and of its plain form, which gives the same."""

    what: str
    seconds: float
    plain: float
    detail: str

    @property
    def ratio(self) -> float:
        return self.plain / self.seconds


def worked(work: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """The least seconds of the processor of some repetitions, and what came out."""
    least, result = float("inf"), None
    for _ in range(repeats):
        started = process_time()
        result = work()
        least = min(least, process_time() - started)
    return least, result


def distance_step(source: Table, k: int = K) -> Plainly:
    """BTD between all first clusters, pruned, beside all pairs of item sets."""
    lists = clustered(source, k, "benchmark").lists
    seconds, found = worked(lambda: distances_within(lists), REPEATS)  # the first compiles
    plain_distances(clustered(source.sample(WARM_UP), k, "benchmark").lists)  # compiles
    plain, expected = worked(lambda: plain_distances(lists))
    if not np.array_equal(found, expected):
        raise AnonSparkError(f"{source.name}: pruned and plain distances differ: one is wrong.")
    detail = f"{lists.clusters.size - 1:,} clusters, {lists.sets.size - 1:,} item sets"
    return Plainly(f"BTD of {source.name}, {source.records:,} records", seconds, plain, detail)


def items_step(name: str, baskets: Baskets, k: int = K, m: int = M) -> Plainly:
    """SetGen of one cluster that has all records, beside a recount for every merge."""
    cluster = rows_of(baskets)
    seconds, found = worked(lambda: merged_items(cluster, k, m, cost="occurrences"), REPEATS)  # the first compiles
    plain_merged_items(rows_of(baskets.taken(np.arange(min(WARM_UP, baskets.times.size)))), k, m)  # compiles
    plain, expected = worked(lambda: plain_merged_items(cluster, k, m))
    if not np.array_equal(found, expected):
        raise AnonSparkError(f"{name}: SetGen and its plain form give other sets: one is wrong.")
    items, left = np.unique(cluster.items).size, np.unique(expected[np.unique(cluster.items)]).size
    detail = f"{items:,} items, {items - left:,} merges"
    return Plainly(f"SetGen of {name}, {baskets.times.size:,} records in one cluster", seconds, plain, detail)


def rows_of(baskets: Baskets) -> Transactions:
    lists = (baskets.offsets, baskets.codes.astype(np.int64), baskets.secret_offsets, baskets.secrets.astype(np.int64))
    return packed(*lists)[0]


def many_items(records: int = MANY_RECORDS, items: int = MANY_ITEMS, seed: int = 1) -> Baskets:
    """Sets of one to seven items, some far more frequent than others."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 8, records)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    codes = np.minimum((items * rng.random(offsets[-1]) ** 2).astype(np.int64), items - 1)
    owner = np.repeat(np.arange(records), sizes)
    keys = np.unique(owner * items + codes)
    counts = np.bincount(keys // items, minlength=records)
    return Baskets(
        np.concatenate([[0], np.cumsum(counts)]),
        (keys % items).astype(np.int32),
        np.zeros(records + 1, dtype=np.int64),
        np.empty(0, dtype=np.int32),
        np.ones(records, dtype=np.int64),
    )


def plain_text(found: Sequence[Plainly]) -> str:
    rows = [[one.what, one.detail, f"{one.seconds:.3f}", f"{one.plain:.3f}", f"**{one.ratio:.1f}×**"] for one in found]
    return "\n\n".join(
        [
            f"### Parts against their plain forms (k = {K}, m = {M}; one process; seconds of the processor)",
            "BTD: pruned by sizes, frequent items as bits, beside all pairs of item sets on bitmaps. SetGen: only the rows of "
            "the merged item are counted again, beside a count of everything for every merge. All compiled, and both forms "
            "give the same, which is checked in the run.",
            table(["part", "size", "seconds", "plain", "ratio"], rows),
        ]
    )
