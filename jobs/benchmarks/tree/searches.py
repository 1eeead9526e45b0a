"""Searches against each other: GCS beside ACS where that ends, a budget beside ACS, and the widths of GCS and beam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np

from anon_spark.auditing.verdict import Verdict
from anon_spark.families.tree.kernels.trees import taken
from anon_spark.families.tree.settings import SEARCH, WIDTH, Settings
from jobs.benchmarks.tree.records import K, Loaded, M, N, Searched, teller, verdict_cell, verified
from jobs.markdown import table

LEAST_FEWER = 2.5
ROUNDING = 1e-11
ENDING = (  # records, k: where ACS ends
    (1_000, 20),
    (5_000, 20),
    *((20_000, k) for k in (50, 70, 100, 200, 400)),
)
ENDING_CUTS = 5_000  # if it does not
BUDGET = 500
TIMES = 10  # as long as the budget takes, ACS is given
GREEDS = (1, 2, 3, 4)
WIDTHS = tuple(range(1, 9))
WIDTH_CUTS = 1_000
WIDTH_RECORDS = 20_000
BUDGET_RECORDS = 100_000


# --- GCS and ACS -----------------------------------------------------------------------------------------------------------


class Ended(NamedTuple):
    """One setting searched whole by ACS, and by GCS and the beam."""

    records: int
    k: int
    acs: Searched
    gcs: Searched
    beam: Searched

    @property
    def fewer(self) -> float:
        """How many times fewer cuts GCS evaluates."""
        return self.acs.seen.evaluated / self.gcs.seen.evaluated


def ended(loaded: Loaded, settings: Sequence[tuple[int, int]] = ENDING, most: int = ENDING_CUTS) -> list[Ended]:
    """GCS (g = 2) beside ACS; settings for which ACS does not end are left out, and said."""
    found = []
    for records, k in settings:
        own = first_records(loaded, records)
        plain = Settings(k=k, m=M, n=N, max_cuts=most, cuts="full")
        acs, gcs, beam = (own.searched(replace(plain, search=search)) for search in ("acs", "gcs", "beam"))
        ends = acs.seen.stopped_by is None
        print(f"ACS on {records:,} records, k = {k}: {acs.seen.evaluated:,} cuts{'' if ends else ', not ended'}", flush=True)
        if ends:
            found.append(Ended(own.trees.records, k, acs, gcs, beam))
    return found


def first_records(loaded: Loaded, records: int) -> Loaded:
    """The same with fewer records; what occurs is counted anew."""
    few = taken(loaded.trees, np.arange(min(records, loaded.trees.records)))
    occurring = np.unique(few.labels).tolist()
    return replace(loaded, records=replace(loaded.records, occurring=occurring, count=few.records), trees=few)


def ended_text(name: str, found: Sequence[Ended]) -> str:
    head = ["records", "k", "ACS: cuts", "GCS: cuts", "ACS / GCS", "beam: cuts", "ACS: s", "GCS: s", "beam: s"]
    head += ["ACS: loss", "GCS: loss", "beam: loss"]
    rows = [
        [
            f"{one.records:,}",
            str(one.k),
            f"{one.acs.seen.evaluated:,}",
            f"{one.gcs.seen.evaluated:,}",
            f"**{one.fewer:.2f}×**",
            f"{one.beam.seen.evaluated:,}",
            *(f"{search.seconds:.1f}" for search in (one.acs, one.gcs, one.beam)),
            *(loss_cell(search, one.acs) for search in (one.acs, one.gcs, one.beam)),
        ]
        for one in found
    ]
    kept = [one for one in found if one.fewer >= LEAST_FEWER]
    verdict = "kept" if found and len(kept) == len(found) else "**not kept**"
    same = sum(is_as_good(one.gcs, one.acs) for one in found)
    wide = sum(is_as_good(one.beam, one.acs) for one in found)
    ratios = [one.fewer for one in found] or [0.0]
    return "\n\n".join(
        [
            f"### GCS (g = 2) beside ACS where ACS ends ({name}, m = {M}, n = {N}; one process)",
            "ACS as printed but for T-7: it leaves out what lies below a failed cut, and does not prune siblings. "
            f"The beam has width {WIDTH}. "
            "Loss: RPD_a of the best cut, in brackets how many times that of ACS.",
            table(head, rows),
            f"At least {LEAST_FEWER}× fewer cuts in {len(kept)} of {len(found)} settings ({verdict}): {min(ratios):.2f}× to "
            f"{max(ratios):.2f}×, {sum(ratios) / len(ratios):.2f}× in the mean. The loss of ACS is found in {same} settings by "
            f"GCS, in {wide} by the beam.",
        ]
    )


def is_as_good(one: Searched, other: Searched) -> bool:
    """Whether the loss is no higher, but for rounding."""
    return one.best.cost <= other.best.cost * (1 + ROUNDING)


def loss_cell(one: Searched, best: Searched) -> str:
    return f"{one.best.cost:.4g}" + ("" if is_as_good(one, best) else f" ({one.best.cost / best.best.cost:.3g}×)")


# --- a budget --------------------------------------------------------------------------------------------------------------


class Budget(NamedTuple):
    """The default search with a budget of cuts, its release audited, and ACS after some times as long."""

    records: int
    own: Searched
    acs: Searched
    times: float
    verdict: Verdict


def budgeted(loaded: Loaded, times: float = TIMES, cuts: int = BUDGET) -> Budget:
    """Both searches, one after the other; tells how far they are."""
    settings = Settings(k=K, m=M, n=N, max_cuts=cuts, cuts="full")
    own = loaded.searched(settings, teller(f"{SEARCH}, {cuts} cuts"))
    verdict = verified(loaded.release(own.best.cut, own.best.pairs), settings)
    longer = replace(settings, search="acs", max_cuts=None, max_seconds=times * own.seconds)
    acs = loaded.searched(longer, teller(f"acs, {longer.max_seconds:.0f} s"))
    return Budget(loaded.records.count, own, acs, times, verdict)


def budget_text(name: str, one: Budget) -> str:
    rows = [search_row(search, label) for label, search in ((own_name(one.own), one.own), ("ACS", one.acs))]
    good = is_as_good(one.own, one.acs) and one.verdict.passed
    ratio = one.acs.best.cost / one.own.best.cost if one.own.best.cost else inf
    return "\n\n".join(
        [
            f"### A budget of {one.own.settings.max_cuts} cuts beside ACS with {one.times:g} times the time ({name}, "
            f"{one.records:,} records, k = {K}, m = {M}, n = {N}; one process)",
            table(SEARCH_HEAD, rows),
            f"Audit of the release from its paths alone: {verdict_cell(one.verdict)}. ACS has **{ratio:.3g}×** the loss after "
            f"{one.acs.seconds / max(one.own.seconds, 1e-9):.1f} times as long ({'kept' if good else '**not kept**'}).",
        ]
    )


def own_name(one: Searched) -> str:
    width = f"width {one.settings.width}" if one.settings.search == "beam" else f"g = {one.settings.g}"
    return f"{one.settings.search}, {width}"


SEARCH_HEAD = ["search", "cuts", "pass ValueCheck", "seconds", "FixStructure", "ended", "RPD_a", "labels", "relations given up"]


def search_row(one: Searched, name: str) -> list[str]:
    return [
        name,
        f"{one.seen.evaluated:,}",
        f"{one.seen.passed:,}",
        f"{one.seconds:.1f}",
        f"{one.fix_share:.0%}",
        "yes" if one.seen.stopped_by is None else f"no ({one.seen.stopped_by})",
        f"{one.best.cost:.4g}",
        str(len(one.best.cut)),
        str(len(one.best.pairs)),
    ]


# --- widths ----------------------------------------------------------------------------------------------------------------


def widths(loaded: Loaded, cuts: int = WIDTH_CUTS, seconds: float | None = None) -> list[Searched]:
    """GCS for each g, the beam for each width."""
    plain = Settings(k=K, m=M, n=N, max_cuts=cuts, max_seconds=seconds, cuts="full")
    found = []
    for settings in (
        *(replace(plain, search="gcs", g=g) for g in GREEDS),
        *(replace(plain, search="beam", width=width) for width in WIDTHS),
    ):
        found.append(loaded.searched(settings))
        print(f"{own_name(found[-1])}: {found[-1].seen.evaluated:,} cuts, {found[-1].seconds:.1f} s", flush=True)
    return found


def widths_text(loaded: Loaded, found: Sequence[Searched]) -> str:
    rows = [
        [*search_row(one, own_name(one)), f"{_found_after(one):,}", f"{_exact(loaded, one):.4g}"] for one in found
    ]
    limit = f"at most {found[0].settings.max_cuts:,} cuts"
    if found[0].settings.max_seconds is not None:
        limit += f" or {found[0].settings.max_seconds:g} s"
    return "\n\n".join(
        [
            f"### g and width ({loaded.name}, {loaded.records.count:,} records, k = {K}, m = {M}, n = {N}; one process; {limit})",
            table([*SEARCH_HEAD, "best found after", "RPD"], rows),
        ]
    )


def _found_after(one: Searched) -> int:
    """How many cuts were judged when the best was found."""
    return one.seen.trail[-1][0]


def _exact(loaded: Loaded, one: Searched) -> float:
    return loaded.rpd(one.best.cut, one.best.pairs)
