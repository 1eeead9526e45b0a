"""Attacks on nonreciprocal recodings: against their definitions in plain Python, on sound schemes and on broken ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from math import comb
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.columns import BASE, BLOCK, DRAW, LINK, MAX_ERRORS, PART, SLOT, UNCERTAIN
from anon_spark.families.set_valued.kernels.segments import segment_starts
from anon_spark.families.set_valued.kernels.tours import tours
from anon_spark.kernels.bitmaps import sets_of, steps_along, taken
from anon_spark.risk import Reconstruction, RelinkRisk, reconstruction, relink_attack
from anon_spark.risk.item_sets import relink
from anon_spark.risk.item_sets.reconstruction import _ring, ranks_of, unknown_bits
from anon_spark.risk.item_sets.relink import SIGNIFICANT, chance_bound
from tests.auditing.town import Row, frame
from tests.oracle.nonreciprocal_oracle import (
    Assignment,
    Record,
    Slot,
    disjoint_assignments,
    gray_order,
    groups_graph,
    hamming,
    is_compatible,
    published,
    random_assignment,
    ring_graph,
    shifts,
)

pytestmark = pytest.mark.compiles

ITEMS = "basket"
NAMES = pa.list_(pa.string())
K = 3


def names(items: Record) -> list[str]:
    return sorted(f"i{item}" for item in items)


def random_records(number: int, items: int, seed: int) -> list[Record]:
    rng = Random(seed)
    return [frozenset(item for item in range(items) if rng.random() < 0.5) for _ in range(number)]


def staged(
    spark: SparkSession, blocks: Sequence[Sequence[Slot]], at: int | None = None, in_part: int = 1_000
) -> DataFrame:
    """in_part: rows of a part; a ring has one."""
    rows: list[Row] = [
        (names(row.base), names(row.dist), row.t, block, slot // in_part, slot)
        for block, of in enumerate(blocks)
        for slot, row in enumerate(of)
    ]
    columns = {BASE: NAMES, UNCERTAIN: NAMES, MAX_ERRORS: pa.int32(), BLOCK: pa.int64(), PART: pa.int32(), SLOT: pa.int32()}
    return frame(spark, Random(3).sample(rows, len(rows)), list(columns), list(columns.values()), at)


def linked(spark: SparkSession, blocks: Sequence[Sequence[Record]]) -> DataFrame:
    rows = [(1000 * block + at, names(items)) for block, of in enumerate(blocks) for at, items in enumerate(of)]
    return frame(spark, rows, [LINK, ITEMS], [pa.int64(), NAMES])


# --- link attack -------------------------------------------------------------------------------------------------------

Scheme = Callable[[Random], Assignment]


def drawn(spark: SparkSession, blocks: int, draws: int, scheme: Scheme, seed: int = 1) -> DataFrame:
    rng = Random(seed)
    rows = [
        (1000 * block + at, block, slot, draw)
        for draw in range(draws)
        for block in range(blocks)
        for at, slot in enumerate(scheme(rng))
    ]
    kinds = [pa.int64(), pa.int64(), pa.int32(), pa.int32()]
    return frame(spark, rows, [LINK, BLOCK, SLOT, DRAW], kinds)


def attacked(spark: SparkSession, scheme: Scheme, draws: int = 120) -> tuple[RelinkRisk, RelinkRisk]:
    """Two rings of 20 in which neighbours differ little: the base of a window of three is the record in its middle."""
    rings = [[frozenset((at + step) % 20 + 100 * block for step in range(7)) for at in range(20)] for block in (0, 1)]
    rows = [published(ring, ring_graph(20, K)) for ring in rings]
    assert all(row.base == ring[at - 1] for ring, of in zip(rings, rows, strict=True) for at, row in enumerate(of))
    return relink_attack(linked(spark, rings), staged(spark, rows), drawn(spark, 2, draws, scheme), ITEMS, K)


@pytest.mark.long
def test_a_sound_ring_keeps_its_promise(spark: SparkSession) -> None:
    walks = [disjoint_assignments(ring_graph(20, K), Random(seed)).assignments for seed in range(20)]
    walks += [shifts(20, K)] * 20  # whole rings move together
    fit, simulation = attacked(spark, lambda rng: rng.choice(rng.choice(walks)))
    assert (fit.records, fit.trials, fit.units, fit.promise) == (40, 40 * 120, 240, 1 / 3)
    assert (simulation.records, simulation.trials, simulation.units) == (40, 40 * 60, 120)
    for found in (fit, simulation):
        assert not found.refused and found.rate == pytest.approx(1 / 3, abs=4.5 * found.error) and found.error < 0.05
        assert "refused" not in str(found) and 1 / 3 < found.detectable < 2 / 3
    assert fit.error > (2 / 9 / fit.trials) ** 0.5  # as if records moved each on its own


@pytest.mark.long
def test_schemes_that_favour_a_row_are_refused(spark: SparkSession) -> None:
    own, middle = shifts(20, K)[0], shifts(20, K)[1]

    def half_of(favoured: Assignment) -> Scheme:
        return lambda rng: favoured if rng.random() < 0.5 else rng.choice(shifts(20, K))

    # the sensitive value stays with its own record in half of the draws: items alone do not show it, trying does
    fit, simulation = attacked(spark, half_of(own))
    assert simulation.refused and simulation.rate == pytest.approx(2 / 3, abs=0.15) and not fit.refused
    # the nearest row is the right one in two thirds of the draws
    fit, simulation = attacked(spark, half_of(middle))
    assert fit.refused and simulation.refused and fit.rate == pytest.approx(2 / 3, abs=0.12) and "refused" in str(fit)


def best_fit(ring: Sequence[Record], rows: Sequence[Slot], draws: Sequence[Assignment]) -> float:
    """The attack by its definition, over all records and draws."""
    chances = []
    for at, record in enumerate(ring):
        fits = [(hamming(record, row.base), slot) for slot, row in enumerate(rows) if is_compatible(record, row)]
        nearest = [slot for apart, slot in fits if apart == min(fits)[0]]
        chances += [(own[at] in nearest) / len(nearest) for own in draws]
    return sum(chances) / len(chances)


@pytest.mark.long
def test_the_attack_by_fit_is_its_definition(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = [*random_records(17, 6, 2), frozenset(), frozenset(), frozenset({77, 78})]
    rows, rng = published(ring, ring_graph(20, K)), Random(9)
    own = [random_assignment(ring_graph(20, K), rng) for _ in range(4)]
    moves = iter(own)
    draws = drawn(spark, 1, 4, lambda _: next(moves))
    people, shown = linked(spark, [ring]), staged(spark, [rows])
    found = relink_attack(people, shown, draws, ITEMS, K)
    assert found[0].rate == pytest.approx(best_fit(ring, rows, own)) and found[0].units == 4
    votes = [Counter(moved[at] for moved in own[::2]).most_common() for at in range(20)]
    likely = [[slot for slot, times in of if times == of[0][1]] for of in votes]
    tried = [(moved[at] in likely[at]) / len(likely[at]) for moved in own[1::2] for at in range(20)]
    assert found[1].rate == pytest.approx(sum(tried) / len(tried))

    monkeypatch.setattr(relink, "ROWS_AT_ONCE", 6)  # nearest rows are looked for in several parts
    assert relink_attack(people.repartition(3), shown, draws, ITEMS, K, records=50) == found
    one = relink_attack(people, shown, draws.where(f"{DRAW} = 0").drop(DRAW), ITEMS, K, records=8)
    assert (one[0].records, one[0].trials, one[0].units) == (8, 8, 1) and not one[0].refused
    assert one[1] == RelinkRisk("simulation", 0, 0, 0, 0.0, 0.0, 0.0, 1 / 3, 1.0)
    assert one[1].detectable == one[0].detectable == float("inf")  # one draw can prove nothing


def test_the_bound_is_above_the_exact_probability() -> None:
    for units, promise in ((1, 1 / 30), (20, 0.25), (200, 0.5), (100, 0.02)):
        for won in range(int(units * promise) + 1, units + 1):
            exact = sum(comb(units, hit) * promise**hit * (1 - promise) ** (units - hit) for hit in range(won, units + 1))
            size, count = np.array([7.0]), np.array([float(units)])
            bound = chance_bound(size, count, 7.0 * won, promise)
            assert exact <= bound * (1 + 1e-4) and bound <= max(1e-300, 30 * exact)
    assert chance_bound(np.array([5.0]), np.array([1.0]), 5.0, 1 / 30) > SIGNIFICANT  # 5.4 σ, and one lucky draw of 30
    uneven = chance_bound(np.array([1.0, 9.0]), np.array([50.0, 50.0]), 300.0, 0.5)
    even = chance_bound(np.array([5.0]), np.array([100.0]), 300.0, 0.5)
    assert even < uneven < 1  # fewer units count in truth


# --- reconstruction ----------------------------------------------------------------------------------------------------


def by_item(rows: Sequence[frozenset[int]], items: int) -> tuple[Any, Any]:
    lists = [[at for at, row in enumerate(rows) if item in row] for item in range(items)]
    offsets = np.cumsum([0, *map(len, lists)])
    return offsets.astype(np.int64), np.array([at for of in lists for at in of], dtype=np.int64)


def says(window: Sequence[int], base: bool, doubt: bool) -> bool:
    """Whether a window of bits is one that a row stands for."""
    equal = len(set(window)) == 1
    return (2 * sum(window) > len(window)) == base and equal != doubt


def solutions(rows: Sequence[Slot], item: int, runs: Sequence[range] | None, k: int) -> list[list[set[int]]]:
    """Per run of rows (None: the ring) the values that each of its records has in some solution, by enumeration."""
    found = []
    n = len(rows)
    for run in [range(n)] if runs is None else runs:
        lead = 0 if runs is None else k - 1
        values: list[set[int]] = [set() for _ in range(len(run) + lead)]
        for bits in product((0, 1), repeat=len(values)):
            windows = [[bits[(at + lead - back) % len(bits)] for back in range(k)] for at in range(len(run))]
            shown = [(item in rows[row % n].base, item in rows[row % n].dist) for row in run]
            if all(says(window, *fields) for window, fields in zip(windows, shown, strict=True)):
                for place, bit in enumerate(bits):
                    values[place].add(bit)
        found.append(values)
    return found


@pytest.mark.parametrize(("n", "k", "items"), [(9, 2, 3), (9, 3, 4), (10, 4, 4), (9, 5, 3), (5, 5, 3), (6, 4, 3)])
def test_all_solutions_are_compared(n: int, k: int, items: int) -> None:
    for seed in range(6):
        rows = published(random_records(n, items, seed), ring_graph(n, k))
        base, doubt = by_item([row.base for row in rows], items), by_item([row.dist for row in rows], items)
        cuts = np.zeros(n, dtype=np.bool_)
        whole = unknown_bits(base, doubt, cuts, k, True)
        each = [solutions(rows, item, None, k)[0] for item in range(items)]
        assert whole.tolist() == [sum(len(values[at]) == 2 for values in each) for at in range(n)]

        cuts[[2, n - 2]] = True  # two runs, one of them over the end
        runs = [range(2, n - 2), range(n - 2, n + 2)]
        parts = unknown_bits(base, doubt, cuts, k, True)
        pieces = [solutions(rows, item, runs, k) for item in range(items)]
        expected = [sum(len(of[run][at]) == 2 for of in pieces) for run in range(2) for at in range(len(runs[run]) + k - 1)]
        assert parts.tolist() == expected
        assert ranks_of(cuts, k).tolist() == [rank % n for run in runs for rank in range(run[0] - k + 1, run[-1] + 1)]


def test_the_local_rule_for_long_windows() -> None:
    n, k, items = 40, 9, 6
    rng = Random(1)
    ring = [frozenset(item for item in range(items) if (at // (5 + 3 * item) + (rng.random() < 0.05)) % 2) for at in range(n)]
    rows = published(ring, ring_graph(n, k))
    base, doubt = by_item([row.base for row in rows], items), by_item([row.dist for row in rows], items)
    cuts = np.zeros(n, dtype=np.bool_)
    for starts in ([], [4], [4, 6, 30]):
        cuts[starts] = True
        ends = [*starts[1:], starts[0] + n] if starts else []
        runs = [range(*run) for run in zip(starts, ends, strict=True)] or [range(-n, 2 * n)]
        covered = [range(run[0] - k + 1, run[-1] + 1) if starts else range(n) for run in runs]
        ranks = [(run, rank) for run, own in zip(runs, covered, strict=True) for rank in own]
        expected = [
            sum(all(item in rows[row % n].dist for row in range(rank, rank + k) if row in run) for item in range(items))
            for run, rank in ranks
        ]
        found = unknown_bits(base, doubt, cuts, k, False)
        assert found.tolist() == expected and 0 < found.sum() < found.size * items


@pytest.mark.long
def test_blocks_are_solved_in_tasks(spark: SparkSession) -> None:
    rings = [random_records(12, 5, 40), random_records(9, 4, 41), random_records(9, 4, 42)]
    blocks = [published(ring, ring_graph(len(ring), K)) for ring in rings]
    found = reconstruction(staged(spark, blocks, 3), "ring", K)
    assert isinstance(found, Reconstruction) and (found.blocks, found.records, found.exact) == (2, 21, True)
    unknown = []
    for rows in blocks[:2]:
        each = [solutions(rows, item, None, K)[0] for item in range(5)]
        unknown += [sum(len(values[at]) == 2 for values in each) for at in range(len(rows))]
    assert found.known_records == unknown.count(0)
    assert found.bits == 12 * 5 + 9 * 4 and found.known_bits == found.bits - sum(unknown)
    assert found.chained_records <= found.known_records and 0 < found.known_share <= 1

    alike = [*[frozenset({1, 2})] * 3, frozenset({1, 2, 3}), frozenset({1, 4}), frozenset({1})]  # 2 and 3 or 2 and 4 of one?
    groups = reconstruction(staged(spark, [published(alike, groups_graph([3, 3]))], in_part=3), "groups", K)
    assert (groups.records, groups.known_records, groups.known_bits, groups.bits) == (6, 3, 24 - 9, 24)
    assert groups.known_share == groups.chained_share == 0.5 and groups.known_bits_share == pytest.approx(5 / 8)


def test_chess_is_reconstructed(request: pytest.FixtureRequest) -> None:
    """What the specification states of Chess in its Gray-TSP order, the order of the rows known and worked out."""
    folder = request.config.getoption("--adult")
    path = Path(folder or "").expanduser() / "fimi" / "chess.dat"
    if not folder or not path.is_file():
        pytest.skip("needs the Chess data: pytest --adult PATH, or ANON_SPARK_DATA=PATH (PATH/fimi/chess.dat)")
    records = [frozenset(map(int, line.split())) for line in path.read_text().splitlines()]
    offsets = np.concatenate([[0], np.cumsum([len(record) for record in records])]).astype(np.int64)
    sets = sets_of(offsets, np.array([item for record in records for item in sorted(record)], dtype=np.int64))
    gray = np.array(gray_order(records, 75), dtype=np.int64)
    order = tours(sets, gray, segment_starts(steps_along(sets, gray), 300, 350))
    bits = np.unpackbits(taken(sets, order).bits.view(np.uint8), axis=1, bitorder="little")[:, :75].astype(np.int64)
    stated = {2: (1.0, 1.0, 0.98), 3: (1.0, 1.0, 0.98), 4: (0.79, 0.997, 0.65), 6: (0.33, 0.98, 0.15), 8: (0.10, 0.963, 0.03)}
    for k, (share, of_bits, shuffled) in stated.items():
        counts = np.sum([np.roll(bits, back, axis=0) for back in range(k)], axis=0)
        lists = {
            name: pa.array([[f"i{item}" for item in np.flatnonzero(row)] for row in rows], NAMES)
            for name, rows in ((BASE, 2 * counts > k), (UNCERTAIN, (counts > 0) & (counts < k)))
        }
        rows, cells, known, known_bits, chained, next_rows = _ring(pa.table(lists), k)
        assert known / rows == pytest.approx(share, abs=0.03) and known_bits / cells == pytest.approx(of_bits, abs=0.005)
        assert chained / rows > shuffled and chained <= known and next_rows / rows > 0.9
