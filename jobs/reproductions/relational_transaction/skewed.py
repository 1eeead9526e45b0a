"""Rare items: what leaving them out, joining rare ones first, and moving records between clusters change. Beside the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anon_spark.families.relational_transaction.records import Budget
from anon_spark.families.relational_transaction.settings import BLOCK_RECORDS, Cost, Refine, Settings
from anon_spark.metrics.relative_error import Kind, Workload
from jobs.benchmarks.relational_transaction.orders import M
from jobs.benchmarks.relational_transaction.phases import (
    Clustered,
    Released,
    clustered_as,
    first_clusters,
    released,
)
from jobs.benchmarks.relational_transaction.records import Table
from jobs.markdown import table
from jobs.reproductions.relational_transaction.errors import errors_of

DELTAS = (0.25, 0.4, 0.65)
KEY = "1"
PAPER, LEFT_OUT, RAREST, BOTH, MOVED = (
    "as in the paper",
    "(a) items below k left out",
    "(b) rarest first",
    "(a) and (b)",
    "(b) and (c) moves",
)
WAYS = (PAPER, LEFT_OUT, RAREST, BOTH, MOVED)
ENOUGH = 0.1  # of UL or of ARE, to keep a way
KINDS: tuple[Kind, ...] = ((0, 2), (1, 1))


class Way(NamedTuple):
    """A release: its losses, errors of counts in both readings, and the share of published items that stand for themselves.

    ul: a record that lost an item counts 1; left_out: the share of occurrences that are not published.
    """

    ncp: float
    ul: float
    sets: Mapping[Kind, float]
    uniform: Mapping[Kind, float]
    kept: float
    left_out: float


Compared = Mapping[tuple[float, str], Way]  # by δ and way


def compared(source: Table, k: int, workload: Workload, deltas: Sequence[float] = DELTAS) -> Compared:
    """Every way at every δ; the same first clusters and the same queries for all."""
    first = first_clusters(source, k, KEY, BLOCK_RECORDS)
    fewer, lost = without_rare(source, k)
    start, start_fewer = clustered_as(source, first, k), clustered_as(fewer, first, k)
    nobody = np.zeros(source.records, dtype=np.bool_)
    found = {}
    for delta in deltas:
        for way in WAYS:
            cost: Cost = "occurrences" if way in (PAPER, LEFT_OUT) else "rarest"
            refine: Refine = "moves" if way == MOVED else "none"
            settings = Settings(k=k, m=M, delta=delta, cost=cost, refine=refine)
            here, without = (start_fewer, lost) if way in (LEFT_OUT, BOTH) else (start, nobody)
            found[delta, way] = _way(source, here, released(here, settings), without, workload)
    return found


def _way(source: Table, start: Clustered, found: Released, lost: NDArray[np.bool_], workload: Workload) -> Way:
    errors = errors_of(start, found, workload, source)
    losses = np.zeros(start.sets.times.size)
    alone = shown = 0
    for rows, part in found.parts.values():
        losses[rows] = part.losses
        times = np.repeat(start.sets.times[rows], np.diff(part.offsets))
        alone += int(times[np.diff(part.bounds)[part.labels] == 1].sum())
        shown += int(times.sum())
    ul = float(np.where(lost, 1.0, losses[start.record_set]).mean())
    gone = 1 - start.table.baskets.codes.size / source.baskets.codes.size
    return Way(found.ncp, ul, errors.sets, errors.uniform, alone / max(1, shown), gone)


def without_rare(source: Table, k: int) -> tuple[Table, NDArray[np.bool_]]:
    """The table without the items of fewer than k records, and who lost one."""
    baskets = source.baskets
    supports = np.bincount(baskets.codes, minlength=len(source.universe)).tolist()
    left_out = set(Budget(k, 1.0).spent_on(dict(zip(source.universe, supports, strict=True))).items)
    kept = np.array([name not in left_out for name in source.universe])[baskets.codes]
    owner = np.repeat(np.arange(source.records), np.diff(baskets.offsets))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner[kept], minlength=source.records))])
    fewer = replace(source, baskets=baskets._replace(offsets=offsets, codes=baskets.codes[kept]))
    return fewer, np.bincount(owner[~kept], minlength=source.records) > 0


# --- text ------------------------------------------------------------------------------------------------------------------


def skewed_text(name: str, k: int, found: Compared) -> str:
    """The ways of one table, with what (a) and (b) change against the paper's, and what is added to (b) against (b)."""
    rows = []
    for (delta, way), one in found.items():
        beside = found[delta, RAREST if way in (BOTH, MOVED) else PAPER]
        readings = ((one.sets, beside.sets), (one.uniform, beside.uniform))
        error = [_by(own[KINDS[0]], other[KINDS[0]]) for own, other in readings]
        changed = "" if way == PAPER else f"UL {_by(one.ul, beside.ul)}, ARE {error[0]} ({error[1]})"
        errors = [f"{one.sets[kind]:.3g} ({one.uniform[kind]:.3g})" for kind in KINDS]
        rows.append(
            [str(delta), way, f"{one.ncp:.4f}", f"{one.ul:.4f}", *errors, f"{one.kept:.1%}", f"{one.left_out:.2%}", changed]
        )
    head = ["δ", "way", "NCP", "UL", *(f"ARE {kind}" for kind in KINDS), "stand for themselves", "left out", "change"]
    return (
        f"Rare items, {name}, k = {k}, m = {M}, clusters in blocks; UL of a record that lost an item is 1. Change: UL, and ARE "
        f"of two items, of (a) and (b) against the paper's, of what is added to (b) against (b):\n\n"
        + table(head, rows)
    )


def lowered(found: Compared, way: str, beside: str) -> float:
    """The best mean change over δ of UL or of an error in either reading; below 0: lowered."""
    deltas = sorted({delta for delta, _ in found})
    pairs = [(found[delta, way], found[delta, beside]) for delta in deltas]
    measures = [[one.ul / other.ul - 1 for one, other in pairs]]
    for kind in KINDS:
        measures.append([one.sets[kind] / other.sets[kind] - 1 for one, other in pairs])
        measures.append([one.uniform[kind] / other.uniform[kind] - 1 for one, other in pairs])
    return float(min(np.mean(changes) for changes in measures))


def _by(one: float, other: float) -> str:
    return f"{one / other - 1:+.0%}"
