"""Link attack on a nonreciprocal recoding, on assignments drawn afresh: the published one is never looked at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from anon_spark.auditing.reading.item_sets import (
    Ints,
    Marks,
    Words,
    as_set,
    bitmaps,
    bits_set,
    names_in,
    numbered,
    offsets_of,
)
from anon_spark.auditing.reading.sampling import chunk_of, every_chunk, smallest_hashes
from anon_spark.auditing.reading.values import exact
from anon_spark.auditing.verdict import Kind, Verdict
from anon_spark.columns import BASE, BLOCK, DRAW, LINK, MAX_ERRORS, PREFIX, SLOT, UNCERTAIN
from anon_spark.compiled import compiled
from anon_spark.engine import beside
from anon_spark.model.estimate import Estimate
from anon_spark.pending import Pending
from anon_spark.risk.item_sets.known_link import KnownLinkRisk
from anon_spark.risk.item_sets.relink_facts import Attack, KnownLink, LinkAttack

RECORDS = 500
ROWS_AT_ONCE = 50_000  # published rows that meet the sample in one worker, about
SIGNIFICANT = 3.4e-6  # one-sided, as far out as 4.5 standard deviations of a normal distribution (REFUSED_ERRORS)

Floats = NDArray[np.float64]

_ITEMS, _CERTAIN, _CHUNK, _DRAWS, _BLOCKS, _SLOTS = (
    PREFIX + name for name in ("items", "certain", "chunk", "draws", "blocks", "slots")
)
_DISTANCE, _TIES, _HITS, _ATTACK, _CHANCE = (PREFIX + name for name in ("distance", "ties", "hits", "attack", "chance"))
_PLACE, _IS_FIRST = (PREFIX + name for name in ("place", "is_first"))  # of a draw among those of a record
_NOWHERE = 2**62


@dataclass(frozen=True)
class RelinkRisk:
    """The success of an attacker who knows all item sets and picks a record's own row, over fresh assignments.

    attack: `fit` takes the compatible row whose base is nearest to the record, of equally near ones any; `simulation`
    takes the row that was the record's most often in half of the draws, which anybody can make who knows the method, and
    is tried on the other half. trials: records × draws; units: draws × blocks, the trials that are independent of each
    other (records of one draw and block move together); even_units: as many units of equal size would tell as much;
    rate: mean chance of success; error: its standard error over units; promise: 1 / k or 1 / l; bound: no scheme that
    keeps the promise has such a rate, or a higher one, with a probability above this.
    """

    attack: Attack
    records: int
    trials: int
    units: int
    even_units: float
    rate: float
    error: float
    promise: float
    bound: float

    @property
    def refused(self) -> bool:
        """Whether the rate is above the promise beyond chance: such a scheme must not be published."""
        return self.bound < SIGNIFICANT

    @property
    def estimate(self) -> Estimate:
        """The rate beside the promise; one unit has no standard error."""
        return Estimate(self.rate, self.error if self.units > 1 else None, self.promise)

    @property
    def detectable(self) -> float:
        """The least rate that would be refused with so many units; 1 or more: none, there are too few draws."""
        if not self.units:
            return math.inf
        needed = -math.log(SIGNIFICANT) / self.even_units
        if needed >= -math.log(self.promise):
            return math.inf
        low, high = self.promise, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if _divergence(middle, self.promise) < needed else (low, middle)
        return high

    def __str__(self) -> str:
        return (
            f"link attack by {self.attack}: {self.estimate} of {self.trials} trials in {self.units} independent units, "
            f"promised at most {self.promise:.4f}; such a rate has a probability of {self.bound:.2g} or "
            f"less where the promise holds{', which is refused' if self.refused else ''}."
        )


def relink_verdict(
    attacks: tuple[RelinkRisk, RelinkRisk], known: Sequence[KnownLinkRisk], degree: int, draws: int
) -> Verdict:
    """Whether the attacks found no more rows than was promised.

    attacks: by `fit` and by `simulation`; known: what one known link adds, which is reported and not judged. Its facts are
    `link_attack` and `known_link`. Guarantee: a sound graph is refused with a probability below SIGNIFICANT per attack.
    Cost: none, plain numbers.
    """
    fit, simulation = attacks
    refused = [risk for risk in attacks if risk.refused]
    promise = 1 / degree
    rates = "; ".join(f"by {risk.attack} {risk.estimate}" for risk in attacks)
    limit = min(1.0, *(risk.detectable for risk in attacks))
    end = " Significantly above the promise." if refused else ""
    return Verdict(
        kind=Kind.ATTACK,
        name="link attack",
        passed=not refused,
        violations=len(refused),
        checked=sum(risk.trials for risk in attacks),
        detail=f"rows found in {draws} fresh draws: {rates}. Promised at most {promise:.4f}; refused from {limit:.4f} on, which "
        f"chance alone exceeds once in {1 / SIGNIFICANT:,.0f} runs.{end}",
        facts={
            "link_attack": LinkAttack.of(fit.records, draws, fit.estimate, simulation.estimate, limit),
            "known_link": KnownLink.of(known),
        },
    )


def relink_attack(
    linked: DataFrame, staged: DataFrame, drawn: DataFrame, items: str, degree: int, records: int = RECORDS
) -> tuple[RelinkRisk, RelinkRisk]:
    """Both attacks, `fit` and `simulation`, on a sample of the records that `drawn` has.

    linked: LINK and the item lists; staged: the release with BLOCK and SLOT; drawn: LINK, BLOCK, SLOT of fresh
    assignments of the same graph, and DRAW where there are several (without: one draw, and no simulation); degree: k or l.
    The test: units are independent, the successes of one lie between 0 and its records and have a mean of at most
    records / degree. `bound` is Chernoff's bound for sums of such variables, whatever the dependence inside a unit: it
    holds for few draws, too, and a sound scheme is refused with a probability below SIGNIFICANT.
    Guarantee: the sample is chosen by hash of LINK, so the numbers do not depend on partitions.
    Cost: a count of the release and one job: `drawn` is grouped by record, the sample is compared with every published
    row, in Arrow; a row per size of units reaches the driver.
    """
    return relink_attack_to_be(linked, staged, drawn, items, degree, staged.count(), records).get()


def relink_attack_to_be(
    linked: DataFrame, staged: DataFrame, drawn: DataFrame, items: str, degree: int, rows_about: int, records: int = RECORDS
) -> Pending[tuple[RelinkRisk, RelinkRisk]]:
    """As `relink_attack`, its sums not collected yet. rows_about: of the release; only the size of tasks hangs on it."""
    sample = _known(linked, drawn, items, records)
    chunks = 1 + rows_about // ROWS_AT_ONCE
    rows = staged.select(
        chunk_of(F.xxhash64(BLOCK, SLOT), chunks).alias(_CHUNK),
        BLOCK,
        SLOT,
        as_set(F.col(BASE)).alias(BASE),
        as_set(F.col(UNCERTAIN)).alias(UNCERTAIN),
        F.array_except(BASE, UNCERTAIN).alias(_CERTAIN),
        F.col(MAX_ERRORS).cast("long").alias(MAX_ERRORS),
    )
    everywhere = sample.withColumn(_CHUNK, every_chunk(chunks))
    met = (
        everywhere.groupBy(_CHUNK)
        .cogroup(rows.groupBy(_CHUNK))
        .applyInArrow(
            _nearest,
            f"{LINK} long, {_DISTANCE} long, {_TIES} long, {_DRAWS} array<int>, {_BLOCKS} array<long>, {_HITS} array<boolean>",
        )
    )
    outcome = f"{_ATTACK} string, {DRAW} int, {BLOCK} long, {_CHANCE} double, {_IS_FIRST} boolean"
    simulated = sample.select(_DRAWS, _BLOCKS, _SLOTS).mapInArrow(_most_frequent, outcome)
    by_size = _by_size(_picked(met).unionByName(simulated))
    return Pending.of(by_size, lambda found: (_risk("fit", found, degree), _risk("simulation", found, degree)))


def _known(linked: DataFrame, drawn: DataFrame, items: str, records: int) -> DataFrame:
    """One row per sampled record: its items, and its draws in their order with block and slot."""
    if DRAW not in drawn.columns:
        drawn = drawn.withColumn(DRAW, F.lit(0))
    sample = smallest_hashes(drawn.select(LINK).distinct(), [LINK], records)
    move = F.struct(*(F.col(name).cast(kind).alias(name) for name, kind in ((DRAW, "int"), (BLOCK, "long"), (SLOT, "int"))))
    draws = F.array_sort(F.collect_list(move))
    moves = drawn.join(beside(sample), LINK).groupBy(LINK).agg(draws.alias(_DRAWS))
    sets = linked.select(LINK, as_set(exact(linked, items)).alias(_ITEMS))
    return sets.join(beside(moves), LINK).select(
        LINK,
        _ITEMS,
        F.col(_DRAWS)[DRAW].alias(_DRAWS),
        F.col(_DRAWS)[BLOCK].alias(_BLOCKS),
        F.col(_DRAWS)[SLOT].alias(_SLOTS),
    )


def _nearest(known: pa.Table, rows: pa.Table) -> pa.Table:
    """The sample and some published rows → per record the least distance among compatible rows, how many have it, and in
    which draws the record's own row is one of them."""
    names = names_in(known[_ITEMS])
    item_bits, _ = bitmaps(numbered(known[_ITEMS], names), len(names))
    base, more = bitmaps(numbered(rows[BASE], names), len(names))
    uncertain, _ = bitmaps(numbered(rows[UNCERTAIN], names), len(names))
    _, certain = bitmaps(numbered(rows[_CERTAIN], names), len(names))  # items that no sampled record has
    most = np.where(certain > 0, -1, np.asarray(rows[MAX_ERRORS], dtype=np.int64))
    at = {place: row for row, place in enumerate(zip(rows[BLOCK].to_pylist(), rows[SLOT].to_pylist(), strict=True))}
    places = zip(pc.list_flatten(known[_BLOCKS]).to_pylist(), pc.list_flatten(known[_SLOTS]).to_pylist(), strict=True)
    theirs = np.array([at.get(place, -1) for place in places], dtype=np.int64)
    sizes = np.asarray(pc.list_value_length(known[_SLOTS]), dtype=np.int64)
    offsets = offsets_of(sizes)
    distance, ties, hits = nearest_rows(item_bits, base, uncertain, more, most, offsets, theirs)
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(hits, pa.bool_()))
    met = known.select([LINK]).append_column(_DISTANCE, pa.array(distance)).append_column(_TIES, pa.array(ties))
    return (
        met.append_column(_DRAWS, known[_DRAWS].cast(pa.list_(pa.int32())))  # as nullable as the schema says
        .append_column(_BLOCKS, known[_BLOCKS].cast(pa.list_(pa.int64())))
        .append_column(_HITS, pa.chunked_array([lists]))
    )


@compiled
def nearest_rows(
    item_bits: Words, base: Words, uncertain: Words, more: Ints, most: Ints, offsets: Ints, theirs: Ints
) -> tuple[Ints, Ints, Marks]:
    """Per record the least distance to a compatible row, how many rows have it; per draw whether its own row does.

    more: items of a base that no record has; most: errors a row allows, -1 if it fits no record; theirs: the rows of
    record r in its draws are theirs[offsets[r] : offsets[r + 1]], -1 for one that is not here.
    """
    records = item_bits.shape[0]
    distance, ties = np.full(records, _NOWHERE, dtype=np.int64), np.zeros(records, dtype=np.int64)
    hits = np.zeros(theirs.size, dtype=np.bool_)
    apart = np.empty(base.shape[0], dtype=np.int64)
    for record in range(records):
        for row in range(base.shape[0]):
            errors = more[row]
            for word in range(item_bits.shape[1]):
                if errors > most[row]:
                    break
                differing = item_bits[record, word] ^ base[row, word]
                errors = most[row] + 1 if differing & ~uncertain[row, word] != np.uint64(0) else errors + bits_set(differing)
            apart[row] = errors if errors <= most[row] else _NOWHERE
            if apart[row] < distance[record]:
                distance[record], ties[record] = apart[row], 0
            if apart[row] == distance[record] and apart[row] < _NOWHERE:
                ties[record] += 1
        for draw in range(offsets[record], offsets[record + 1]):
            hits[draw] = theirs[draw] >= 0 and ties[record] > 0 and apart[theirs[draw]] == distance[record]
    return distance, ties, hits


def _picked(met: DataFrame) -> DataFrame:
    """The chance of each record in each draw, from what the chunks of rows hold for it."""
    record = Window.partitionBy(LINK)
    nearest = met.withColumn("least", F.min(_DISTANCE).over(record)).where(F.col(_DISTANCE) == F.col("least"))
    zipped = nearest.select(LINK, _TIES, F.posexplode(F.arrays_zip(_DRAWS, _BLOCKS, _HITS)).alias(_PLACE, "of"))
    names = {_DRAWS: DRAW, _BLOCKS: BLOCK, _HITS: _HITS}
    drawn = zipped.select(LINK, _TIES, _PLACE, *(F.col("of")[name].alias(other) for name, other in names.items()))
    chance = F.when(F.max(_HITS), 1 / F.sum(_TIES)).otherwise(F.lit(0.0))
    picked = drawn.groupBy(LINK, DRAW, BLOCK).agg(chance.alias(_CHANCE), (F.min(_PLACE) == 0).alias(_IS_FIRST))
    return picked.select(F.lit("fit").alias(_ATTACK), DRAW, BLOCK, _CHANCE, _IS_FIRST)


def _most_frequent(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Records with their draws → the chance in every second draw of the slots that were most frequent in the others."""
    for batch in batches:
        outcomes: list[tuple[int, int, float, bool]] = []
        for draws, blocks, slots in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            seen, times = np.unique(np.array(slots[::2]), return_counts=True)
            likely = set(seen[times == times.max()].tolist())
            tried = enumerate(zip(draws[1::2], blocks[1::2], slots[1::2], strict=True))
            outcomes += [(draw, block, (slot in likely) / len(likely), at == 0) for at, (draw, block, slot) in tried]
        kinds = (pa.int32(), pa.int64(), pa.float64(), pa.bool_())
        columns = [pa.array([row[at] for row in outcomes], kind) for at, kind in enumerate(kinds)]
        attack = pa.array(["simulation"] * len(outcomes), pa.string())
        yield pa.RecordBatch.from_arrays([attack, *columns], names=[_ATTACK, DRAW, BLOCK, _CHANCE, _IS_FIRST])


def _by_size(chances: DataFrame) -> DataFrame:
    """Chances → one row per attack and size of a unit: units, sums of their successes and of the squares, and records.

    A record is counted where it is for the first time: the chances are computed once, not once more for their records.
    """
    sums = (F.count(F.lit(1)).alias("size"), F.sum(_CHANCE).alias("wins"), F.count_if(_IS_FIRST).alias("records"))
    units = chances.groupBy(_ATTACK, DRAW, BLOCK).agg(*sums)
    sized = units.groupBy(_ATTACK, "size").agg(
        F.count(F.lit(1)).alias("units"),
        F.sum("wins").alias("wins"),
        F.sum(F.col("wins") ** 2).alias("squares"),
        F.sum("records").alias("records"),
    )
    return sized.orderBy(_ATTACK, "size")


def _risk(attack: Attack, by_size: Sequence[Row], degree: int) -> RelinkRisk:
    rows = [row for row in by_size if row[_ATTACK] == attack]
    size, units, wins, squares = (
        np.array([row[name] for row in rows], dtype=np.float64) for name in ("size", "units", "wins", "squares")
    )
    promise, trials, won = 1 / degree, float(size @ units), float(wins.sum())
    if not trials:
        return RelinkRisk(attack, 0, 0, 0, 0.0, 0.0, 0.0, promise, 1.0)
    rate = won / trials
    spread = squares.sum() - 2 * rate * (wins @ size) + rate**2 * (units @ size**2)
    return RelinkRisk(
        attack=attack,
        records=sum(row["records"] for row in rows),
        trials=int(trials),
        units=int(units.sum()),
        even_units=trials**2 / float(units @ size**2),
        # rounded: sums of doubles depend on their order in the last digits
        rate=float(f"{rate:.12g}"),
        error=float(f"{math.sqrt(max(0.0, spread)) / trials:.9g}"),
        promise=promise,
        bound=chance_bound(size, units, won, promise),
    )


def chance_bound(size: Floats, units: Floats, won: float, promise: float) -> float:
    """Chernoff: the least of E[exp(λ (wins - won))] over λ ≥ 0, each unit's wins being all or nothing at worst."""
    if won <= promise * float(size @ units):
        return 1.0

    def exponent(rate: float) -> float:
        return float(units @ np.logaddexp(math.log1p(-promise), math.log(promise) + rate * size) - rate * won)

    low, high = 0.0, 80.0 / float(size.min())
    for _ in range(200):  # convex
        lower, upper = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, upper) if exponent(lower) < exponent(upper) else (lower, high)
    return float(f"{min(1.0, math.exp(exponent(low))):.6g}")


def _divergence(rate: float, promise: float) -> float:
    """Kullback–Leibler divergence of two coins."""
    rest = (1 - rate) * math.log((1 - rate) / (1 - promise)) if rate < 1 else 0.0
    return rate * math.log(rate / promise) + rest
