"""The claims of the paper on relational values with items, each with what was seen; verdicts are computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import log
from statistics import fmean

from anon_spark.families.relational_transaction.settings import Merge
from jobs.benchmarks.relational_transaction.orders import DELTA, LEAST_RATIO, MOST_WORSE, SAMPLE, order_verdict
from jobs.benchmarks.relational_transaction.records import INFORMS
from jobs.reproductions.claims import Claim, claims_table
from jobs.reproductions.relational_transaction.runs import (
    MERGES,
    NAMES,
    OF_ITEMS,
    RELATIONAL,
    Found,
    L,
    Measure,
    Outcome,
    Sweep,
    error_of,
    raised,
)
from jobs.reproductions.relational_transaction.skewed import BOTH, ENOUGH, LEFT_OUT, MOVED, PAPER, RAREST, lowered

NEAR: Mapping[Merge, tuple[float, int, int]] = {  # UL, clusters, largest, as measured when the method was specified
    "relational": (0.288, 23, 6300),
    "items": (0.296, 63, 1425),
    "both": (0.293, 38, 4400),
}
NEAR_FIRST = (0.109, 0.111)  # NCP of the first clusters
TOLERANCE = 0.05
MOST_BLOCKED = 0.05
READINGS = (  # kind of query, what it is called, whether a generalized item stands for one of its items
    (RELATIONAL, f"relational ARE {RELATIONAL}", False),
    (OF_ITEMS, f"transaction ARE {OF_ITEMS}", False),
    (OF_ITEMS, f"transaction ARE {OF_ITEMS}, one item each,", True),
)
FROM_R: tuple[Merge, ...] = ("relational", "both", "items")
FASTER = 2.2  # how many times faster the paper has R_MT than R_MR, at most


def claims_text(found: Found) -> str:
    claims = [*by_delta(found), *by_merge(found), *by_size(found), *by_time(found), *by_order(found), *by_path(found)]
    claims += ours(found)
    return claims_table(claims)


# --- 1. δ ------------------------------------------------------------------------------------------------------------------


def by_delta(found: Found) -> Iterator[Claim]:
    """What grows and what falls with δ."""
    bounded = [(one.ncp, delta) for _, delta, one in _reached(found.rum)]
    bounded += [(run.outcome.ncp, DELTA) for run in found.runs if run.bound == "relational"]
    yield Claim(
        "1",
        "Rum-bound: NCP ≤ δ always",
        f"in {sum(ncp <= delta for ncp, delta in bounded)} of {len(bounded)} releases; at most "
        f"{max(ncp / delta for ncp, delta in bounded):.1%} of δ",
        all(ncp <= delta for ncp, delta in bounded),
    )
    for name, sweep, rising in (("Rum", found.rum, RELATIONAL), ("Tum", found.tum, OF_ITEMS)):
        for kind, what, uniform in READINGS:
            grows = kind == rising
            measure = error_of(kind, uniform)
            so = [NAMES[merge] for merge in MERGES if one_way(sweep, merge, measure, grows)]
            yield Claim(
                "1",
                f"{name}-bound: {what} {'rises' if grows else 'falls'} as δ grows",
                f"for {_list(so)}; {_by_delta(sweep, measure)}",
                len(so) == len(MERGES),
            )


def one_way(sweep: Sweep, merge: Merge, measure: Measure, grows: bool) -> bool:
    """Whether the error grows (or falls) from every δ that was reached to the next; a single one shows nothing."""
    errors = [measure(one) for one in sweep[merge].values() if one is not None]
    return len(errors) > 1 and all((one < two) if grows else (one > two) for one, two in pairwise(errors))


def _by_delta(sweep: Sweep, measure: Measure) -> str:
    reached = [delta for delta in next(iter(sweep.values())) if any(sweep[merge][delta] for merge in MERGES)]
    told = [
        f"{NAMES[merge]}: "
        + ", ".join("–" if (one := sweep[merge][delta]) is None else f"{measure(one):.3g}" for delta in reached)
        for merge in MERGES
    ]
    return f"δ = {_list(reached)}: {'; '.join(told)}"


def _reached(sweep: Sweep) -> Iterator[tuple[Merge, float, Outcome]]:
    for merge, of in sweep.items():
        for delta, one in of.items():
            if one is not None:
                yield merge, delta, one


# --- 2. orders of merging --------------------------------------------------------------------------------------------------


def by_merge(found: Found) -> Iterator[Claim]:
    """R_MR, R_MRT, R_MT by what they lose."""
    sweeps = {"R_M*": found.rum, "T_M*": found.tum, f"(k,l^m), l = {L}, R_M*": found.diverse}
    for name, sweep in sweeps.items():
        for kind, what, uniform in READINGS:
            order = FROM_R if kind == OF_ITEMS else FROM_R[::-1]
            right = ordered_deltas(sweep, order, error_of(kind, uniform))
            yield Claim(
                "2",
                f"{name}: {what} is lowest for {NAMES[order[0]]}, highest for {NAMES[order[2]]}, RT between",
                f"at δ = {_list(right)} of {_list(complete(sweep))}; {_by_delta(sweep, error_of(kind, uniform))}",
                bool(right) and right == complete(sweep),
            )


def complete(sweep: Sweep) -> list[float]:
    """Every δ that all three ways reach."""
    return [delta for delta in next(iter(sweep.values())) if all(sweep[merge][delta] is not None for merge in MERGES)]


def ordered_deltas(sweep: Sweep, order: Sequence[Merge], measure: Measure) -> list[float]:
    """Every δ at which the measure ascends in this order."""
    found = []
    for delta in complete(sweep):
        values = [measure(one) for merge in order if (one := sweep[merge][delta]) is not None]
        if values == sorted(values) and values[0] < values[-1]:
            found.append(delta)
    return found


# --- 3. sizes --------------------------------------------------------------------------------------------------------------


def by_size(found: Found) -> Iterator[Claim]:
    """Clusters and UL at δ = 0.65, in the mean of the seeds."""
    means = {
        merge: (fmean(one.ul for one in of), fmean(one.clusters for one in of), fmean(one.largest for one in of))
        for merge, of in found.seeds.items()
    }
    seen = ", ".join(
        f"{NAMES[merge]}: {ul:.4f} / {count:.0f} / {largest:,.0f}" for merge, (ul, count, largest) in means.items()
    )
    (ul_r, _, of_r), (ul_t, _, of_t), (ul_rt, _, of_rt) = (means[merge] for merge in MERGES)
    told = f"UL / clusters / largest, mean of {len(found.seeds[MERGES[0]])} seeds: {seen}"
    yield Claim(
        "3",
        f"R_MR builds the largest clusters with the lowest UL (δ = {DELTA})",
        told,
        of_r > max(of_t, of_rt) and ul_r < min(ul_t, ul_rt),
    )
    yield Claim("3", "R_MRT has slightly larger clusters and a lower UL than R_MT", told, of_rt > of_t and ul_rt < ul_t)


# --- 4. time ---------------------------------------------------------------------------------------------------------------


def by_time(found: Found) -> Iterator[Claim]:
    times = found.by_size
    sizes = list(times["relational"])
    seen = "; ".join(
        f"{size:,}: " + " / ".join(f"{times[merge][size]:.2f}" for merge in MERGES) for size in (sizes[0], sizes[-1])
    )
    fastest = [size for size in sizes if times["items"][size] == min(times[merge][size] for merge in MERGES)]
    slowest = [size for size in sizes if times["both"][size] == max(times[merge][size] for merge in MERGES)]
    grows = {merge: exponent(times[merge]) for merge in MERGES}
    best = max(times["relational"][size] / times["items"][size] for size in sizes)
    yield Claim(
        "4",
        f"R_MT is fastest at every size, up to {FASTER}× faster than R_MR",
        f"at {len(fastest)} of {len(sizes)} sizes; at best {best:.2f}× as fast as R_MR (seconds of R / T / RT: {seen})",
        len(fastest) == len(sizes),
    )
    yield Claim(
        "4",
        "R_MT is most scalable",
        "exponents " + ", ".join(f"{NAMES[merge]}: {of:.2f}" for merge, of in grows.items()),
        grows["items"] == min(grows.values()),
    )
    yield Claim(
        "4", "R_MRT is slowest at every size", f"at {len(slowest)} of {len(sizes)} sizes", len(slowest) == len(sizes)
    )
    yield Claim(
        "4",
        "All get faster as k grows",
        "; ".join(
            f"{NAMES[merge]}: " + ", ".join(f"k={k}: {seconds:.2f}" for k, seconds in found.by_k[merge].items())
            for merge in MERGES
        ),
        all(one > two for of in found.by_k.values() for one, two in pairwise(of.values())),
    )


def exponent(times: Mapping[int, float]) -> float:
    """Of seconds by records, from the smallest to the largest."""
    (first, early), (last, late) = (list(times.items())[at] for at in (0, -1))
    return log(late / early) / log(last / first)


# --- 5. and 6. ---------------------------------------------------------------------------------------------------------------


def by_order(found: Found) -> Iterator[Claim]:
    """BTD beside UL."""
    for merge, samples in found.orders.items():
        fast, good = order_verdict(samples)
        seen = f"{fmean(one.ratio for one in samples):.0f}× faster, UL {fmean(one.worse for one in samples):+.1%}"
        yield Claim(
            "5",
            f"R_M{NAMES[merge]}: the order of BTD is at least {LEAST_RATIO}× faster than that of UL, for the same UL (at most "
            f"{MOST_WORSE:.0%} higher)",
            f"{seen} (mean of {len(samples)} samples of {SAMPLE:,})",
            fast and good,
        )


def by_path(found: Found) -> Iterator[Claim]:
    """UL by the number of merges."""
    up = {merge: raised(losses) for merge, losses in found.paths.items()}
    yield Claim(
        "6",
        "UL does not increase with the number of merges for δ = 1",
        ", ".join(
            f"{NAMES[merge]}: {up[merge]} of {losses.size - 1:,} merges raise it ({up[merge] / max(1, losses.size - 1):.1%}), "
            f"from {losses[0]:.3f} to {losses[-1]:.3f}"
            for merge, losses in found.paths.items()
        ),
        not any(up.values()),
    )


# --- ours ------------------------------------------------------------------------------------------------------------------


def ours(found: Found) -> Iterator[Claim]:
    """What the specification asks of this implementation."""
    passed = [run for run in found.runs if run.passed]
    yield Claim(
        "ours",
        "All six algorithms run through Spark and their releases are verified",
        f"{len(passed)} of {len(found.runs)} without a violation",
        len(passed) == len(found.runs) > 0,
    )
    verified = [(merge, one.violations) for merge, _, one in _reached(found.diverse) if one.violations is not None]
    yield Claim(
        "ours",
        f"Releases with l = {L} are (k,l^m)-diverse (verified at δ = {DELTA})",
        ", ".join(f"{NAMES[merge]}: {violations} violations" for merge, violations in verified) or "none was verified",
        {merge for merge, _ in verified} == set(MERGES) and not any(violations for _, violations in verified),
    )
    exact, blocked = (fmean(of) for of in zip(*((one.exact, one.blocked) for one in found.first), strict=True))
    yield Claim(
        "ours",
        f"NCP of CLUSTER in blocks is within {MOST_BLOCKED:.0%} of that over all records",
        f"{blocked:.4f} against {exact:.4f}: {blocked / exact - 1:+.1%}, mean of {len(found.first)} seeds",
        abs(blocked / exact - 1) <= MOST_BLOCKED,
    )
    yield from rare_items(found)
    if found.table.name != INFORMS:
        return
    low, high = NEAR_FIRST
    yield Claim(
        "ours",
        f"NCP of the first clusters is {low}–{high}, as measured before",
        ", ".join(f"{one.exact:.4f}" for one in found.first),
        low <= round(exact, 3) <= high,
    )
    means = {merge: fmean(one.ul for one in of) for merge, of in found.seeds.items()}
    yield Claim(
        "ours",
        f"UL at δ = {DELTA} is within {TOLERANCE:.0%} of what was measured before, or below",
        ", ".join(f"{NAMES[merge]}: {mean:.4f} against {NEAR[merge][0]}" for merge, mean in means.items()),
        all(mean <= NEAR[merge][0] * (1 + TOLERANCE) for merge, mean in means.items()),
    )


def rare_items(found: Found) -> Iterator[Claim]:
    """Which treatment of rare items lowers a measure enough to be kept."""
    for way, beside in ((LEFT_OUT, PAPER), (RAREST, PAPER), (BOTH, RAREST), (MOVED, RAREST), (MOVED, PAPER)):
        changes = {name: lowered(ways, way, beside) for name, (_, ways) in found.skewed.items()}
        yield Claim(
            "ours",
            f"Rare items, {way}: UL or an ARE is at least {ENOUGH:.0%} lower than {beside}, in the mean over δ",
            "; ".join(f"{name}: {change:+.1%} at best" for name, change in changes.items()),
            any(change <= -ENOUGH for change in changes.values()),
        )


def _list(values: Sequence[object]) -> str:
    return ", ".join(map(str, values)) or "none"
