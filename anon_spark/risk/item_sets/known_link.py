"""Attack with one known link: an attacker who knows the row of one record guesses the rows of others in its block.

On assignments drawn afresh, as in `relink`: the published one is never looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from anon_spark.arrays import each_once
from anon_spark.columns import BLOCK, DRAW, LINK, PART, PREFIX, SLOT
from anon_spark.engine import beside
from anon_spark.model.estimate import Estimate
from anon_spark.pending import Pending

WINDOW = 2_000  # ranks of a block that are looked at
PAIRS = 500  # pairs of records at one distance that are tried in each draw
FAR = 12  # distances beyond the neighbourhood that are tried
MOST_OFFSETS = 256  # different places of a row relative to its record; a graph with more has no pattern to be known

Kind = Literal["none", "neighbour", "other"]
KINDS: tuple[Kind, ...] = ("none", "neighbour", "other")
Matrix = NDArray[np.int64]

_RANK, _KIND, _SIZE = (PREFIX + name for name in ("rank", "kind", "size"))
_SUMS = ("units", "trials", "wins", "squares", "cross", "sizes")


@dataclass(frozen=True)
class KnownLinkRisk:
    """The rate at which a record's own row is found, over fresh assignments: means with standard errors over draws and blocks.

    kind: `none`, no link is known; `neighbour`, the link of a record is known that shares a row with it; `other`, the link
    of another record of the same block. None for a kind that no pair of the records has.
    """

    kind: Kind
    trials: int
    units: int
    estimate: Estimate | None


def known_link(drawn: DataFrame, graph: DataFrame, degree: int) -> tuple[KnownLinkRisk, ...]:
    """The rates of all KINDS.

    drawn: LINK, BLOCK, SLOT, DRAW of fresh assignments; graph: LINK, BLOCK, PART and SLOT, the rank of the record in its block.
    The attacker knows the method and the ring or group, and makes draws of their own (here every second one). They learn which
    place is most frequent for a record at this distance from the known one, given the place of the known row. The other draws
    are the trials. A stronger attacker may reach more. Guarantee: the numbers do not depend on partitions.
    Cost: one job: a broadcast join, one shuffle of WINDOW records per block and draw; a row per block and kind is collected.
    """
    return known_link_to_be(drawn, graph, degree).get()


def known_link_to_be(drawn: DataFrame, graph: DataFrame, degree: int) -> Pending[tuple[KnownLinkRisk, ...]]:
    """As `known_link`, its sums not collected yet."""
    ranks = graph.select(LINK, PART, F.col(SLOT).alias(_RANK)).where(F.col(_RANK) < WINDOW)
    sizes = graph.groupBy(BLOCK, PART).agg(F.count(F.lit(1)).cast("int").alias(_SIZE))
    seen = drawn.join(beside(ranks), LINK).join(beside(sizes), [BLOCK, PART])
    needed = seen.select(*(F.col(name).cast("long").alias(name) for name in (BLOCK, PART, _SIZE, _RANK, SLOT, DRAW)))
    schema = f"{_KIND} string, " + ", ".join(f"{name} double" for name in _SUMS)
    by_block = needed.groupBy(BLOCK).applyInArrow(_in_block(degree), schema)
    sums = by_block.groupBy(_KIND).agg(*(F.sum(name).alias(name) for name in _SUMS))

    def risks(found: Sequence[Row]) -> tuple[KnownLinkRisk, ...]:
        by_kind = {row[_KIND]: [float(row[name]) for name in _SUMS] for row in found}
        return tuple(risk_of(kind, by_kind.get(kind), degree) for kind in KINDS)

    return Pending.of(sums, risks)


def risk_of(kind: Kind, sums: Sequence[float] | None, degree: int) -> KnownLinkRisk:
    """The risk from the sums of `rates`, added up over blocks."""
    if sums is None or not sums[1]:
        return KnownLinkRisk(kind, 0, 0, None)
    units, trials, wins, squares, cross, sizes = sums
    rate = wins / trials
    spread = max(0.0, squares - 2 * rate * cross + rate**2 * sizes)
    error = float(f"{math.sqrt(spread) / trials:.9g}") if units > 1 else None
    return KnownLinkRisk(kind, int(trials), int(units), Estimate(float(f"{rate:.12g}"), error, 1 / degree))


def _in_block(degree: int) -> Callable[[pa.Table], pa.Table]:
    def work(table: pa.Table) -> pa.Table:
        table = table.sort_by([(DRAW, "ascending"), (_RANK, "ascending")])
        columns: dict[str, Any] = {name: np.asarray(table.column(name)) for name in (PART, _SIZE, _RANK, SLOT, DRAW)}
        draws = each_once(columns[DRAW]).size
        shape = (draws, columns[DRAW].size // draws)
        part, size, rank = (columns[name].reshape(shape)[0] for name in (PART, _SIZE, _RANK))
        offsets = (columns[SLOT].reshape(shape) - rank) % size
        rows = [(kind, *map(float, unit)) for kind, unit in rates(offsets, part, size, rank, degree)]
        arrays = [pa.array([row[at] for row in rows], pa.float64() if at else pa.string()) for at in range(1 + len(_SUMS))]
        return pa.Table.from_arrays(arrays, names=[_KIND, *_SUMS])

    return work


def rates(
    offsets: Matrix, part: Matrix, size: Matrix, rank: Matrix, degree: int
) -> Iterator[tuple[Kind, tuple[float, ...]]]:
    """offsets: [draw, record] place of its row in its part, counted from its own rank; by record its part, the size of that
    and its rank, ascending → per kind: units (draws that were tried), trials, wins and the sums that a standard error needs."""
    places, codes = np.unique(offsets, return_inverse=True)
    if places.size > MOST_OFFSETS or offsets.shape[0] < 2:
        return
    codes = codes.reshape(offsets.shape)
    sizes = np.unique(size, return_inverse=True)[1]  # groups of another size have other odds
    every = _some(np.arange(rank.size))
    unknown = np.broadcast_to(sizes, codes.shape)
    yield "none", _sums([_tried(unknown, codes, every, every, places.size)])
    met: dict[Kind, list[tuple[Matrix, int]]] = {"neighbour": [], "other": []}
    mine = sizes * places.size + codes
    for kind, known, target in _pairs(part, size, degree):
        met[kind].append(_tried(mine, codes, known, target, places.size))
    yield from ((kind, _sums(tried)) for kind, tried in met.items() if tried)


def _pairs(part: Matrix, size: Matrix, degree: int) -> Iterator[tuple[Kind, Matrix, Matrix]]:
    """Records whose link is known and those that are looked for, by distance and direction."""
    every = np.arange(part.size)
    near = range(1, min(2 * degree, part.size))
    far = {int(distance) for distance in np.geomspace(degree, max(degree, part.size // 2), FAR)}
    for distance in sorted({*near, *far} & set(range(1, part.size))):
        first, second = every[:-distance], every[distance:]
        shared = (part[first] == part[second]) & (np.minimum(distance, size[first] - distance) < degree)
        chosen: dict[Kind, Any] = {"neighbour": shared, **({"other": ~shared} if distance in far else {})}
        for kind, those in chosen.items():
            pairs = _some(np.flatnonzero(those))
            if pairs.size:
                yield kind, first[pairs], second[pairs]
                yield kind, second[pairs], first[pairs]


def _some(positions: Matrix) -> Matrix:
    """At most PAIRS of the positions, spread evenly."""
    return positions[:: max(1, -(-positions.size // PAIRS))]


def _tried(known: Matrix, codes: Matrix, first: Matrix, second: Matrix, places: int) -> tuple[Matrix, int]:
    """Learn from every second draw which place is most frequent beside what is known; wins in each other draw, and trials."""
    cases = int(known.max()) + 1
    joint = known[::2, first] * places + codes[::2, second]
    learnt = np.bincount(joint.ravel(), minlength=cases * places).reshape(cases, places).argmax(axis=1)
    return (learnt[known[1::2, first]] == codes[1::2, second]).sum(axis=1), first.size


def _sums(tried: Sequence[tuple[Matrix, int]]) -> tuple[float, ...]:
    """Sums over draws. A draw is one unit: its trials depend on each other."""
    wins = np.sum([won for won, _ in tried], axis=0).astype(np.float64)
    trials = float(sum(size for _, size in tried))
    return (
        float(wins.size),
        trials * wins.size,
        float(wins.sum()),
        float((wins**2).sum()),
        float(wins.sum() * trials),
        trials**2 * wins.size,
    )
