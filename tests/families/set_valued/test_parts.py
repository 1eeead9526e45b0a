"""Groups, CAHD, query counts of the family set_valued against brute force on random small inputs: arrays only, no Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from math import comb
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_spark.errors import ConfigurationError, DataError, GuaranteeUnreachable
from anon_spark.families.set_valued import queries
from anon_spark.families.set_valued.kernels.groups import best_groups
from anon_spark.kernels.bitmaps import Sets, sets_of
from anon_spark.metrics.query_error import draw_queries, pieces, presence
from jobs.reproductions.set_valued.cahd import cahd, gray_order
from tests.oracle import nonreciprocal_oracle as oracle

pytestmark = pytest.mark.compiles

Record = frozenset[int]

TABLE_1 = [
    frozenset(at for at, bit in enumerate(text, 1) if bit == "1")
    for text in ("1100", "0110", "1101", "0111", "1110", "1011")
]


def sets(records: Sequence[Record]) -> Sets:
    offsets = np.array([0, *accumulate(map(len, records))], dtype=np.int64)
    return sets_of(offsets, np.array([item for record in records for item in sorted(record)], dtype=np.int64))


def randoms(rng: Random, records: int, items: int) -> list[Record]:
    """Records of all sizes, the empty one among them; few enough items that sets repeat."""
    return [frozenset(rng.sample(range(1, items + 1), rng.randint(0, items))) for _ in range(records)]


# --- groups ---------------------------------------------------------------------------------------------------------


def cuts(count: int, k: int) -> Iterator[list[int]]:
    """All ways to cut so many records into groups of k to 2k - 1."""
    if count == 0:
        yield []
    for last in range(k, min(count, 2 * k - 1) + 1):
        yield from ([*before, last] for before in cuts(count - last, k))


def groups_of(order: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    ends = list(accumulate(sizes))
    return [list(order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def flipped(records: Sequence[Record], order: Sequence[int], sizes: Sequence[int]) -> int:
    """Bits that differ from the majority, record by record."""
    groups = ([records[at] for at in group] for group in groups_of(order, sizes))
    return sum(oracle.hamming(record, oracle.vote(group)) for group in groups for record in group)


def brute_groups(
    records: Sequence[Record], order: Sequence[int], k: int, labels: Sequence[int] | None = None
) -> list[int] | None:
    """The cheapest cut; of several the one whose last border is first, then the one before."""

    def fits(sizes: Sequence[int]) -> bool:
        named = ([labels[at] for at in group if labels[at] >= 0] for group in groups_of(order, sizes)) if labels else ()
        return all(len(set(group)) == len(group) for group in named)

    ways = [sizes for sizes in cuts(len(order), k) if fits(sizes)]
    best = min(
        ways, key=lambda sizes: (flipped(records, order, sizes), [-size for size in reversed(sizes)]), default=None
    )
    return best or None


@given(st.integers(1, 4), st.integers(0, 10**6))
def test_groups_are_the_cheapest(k: int, seed: int) -> None:
    rng = Random(seed)
    count = rng.randint(0, 14)
    records, order = randoms(rng, count, rng.choice([1, 3, 6, 70])), rng.sample(range(count), count)

    found = best_groups(sets(records), np.array(order, dtype=np.int64), k)

    assert (found.tolist() if found is not None else None) == brute_groups(records, order, k)


@given(st.integers(2, 4), st.integers(0, 10**6))
def test_groups_with_distinct_labels(k: int, seed: int) -> None:
    rng = Random(seed)
    count = rng.randint(k, 14)
    records, order = randoms(rng, count, 5), rng.sample(range(count), count)
    labels = [rng.choice([-1, -1, 4, 5, 6, 70, 800, *range(1000, 1000 + rng.randint(0, 20))]) for _ in range(count)]

    found = best_groups(sets(records), np.array(order, dtype=np.int64), k, np.array(labels, dtype=np.int64))

    assert (found.tolist() if found is not None else None) == brute_groups(records, order, k, labels)


def test_groups_of_few_records_and_of_impossible_labels() -> None:
    records = [frozenset({1, at}) for at in range(2, 9)]
    order = np.arange(7)
    assert [best_groups(sets(records[:n]), order[:n], 4) for n in (0, 3)] == [None, None]
    for n in (4, 7):
        found = best_groups(sets(records[:n]), order[:n], 4)
        assert found is not None and found.tolist() == [n]
    assert best_groups(sets(records), order, 4, np.array([1, 2, 3, 1, 4, 5, 6])) is None
    distinct = best_groups(sets(records), order, 3, np.array([1, 2, 3, 1, 4, 5, 6]))
    assert distinct is not None and distinct.tolist() == [3, 4]


def test_groups_of_a_longer_order() -> None:
    """Three kinds of records in runs of 7, 5 and 6: cut where the kind changes, nothing flipped."""
    kinds = [frozenset({1, 2}), frozenset({2, 3, 90}), frozenset[int]()]
    records = [kinds[0]] * 7 + [kinds[1]] * 5 + [kinds[2]] * 6
    found = best_groups(sets(records), np.arange(18), 4)
    assert found is not None and found.tolist() == [7, 5, 6]


# --- CAHD -----------------------------------------------------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=100)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 10**6))
def test_cahd_is_that_of_the_oracle(p: int, alpha: int, seed: int) -> None:
    rng = Random(seed)
    count = rng.randint(max(p, 2), 30)
    labels = rng.sample([at // max(1, count // (p + rng.randint(0, 9))) for at in range(count)], count)
    records, order = randoms(rng, count, rng.choice([3, 8])), rng.sample(range(count), count)
    if not oracle.eligible(labels, p):
        with pytest.raises(GuaranteeUnreachable, match="more than one in l"):
            cahd(sets(records), np.array(labels), p)
        return
    groups = oracle.cahd(records, order, labels, p, alpha)
    bases = oracle.group_bases(records, groups)
    rate, empty = oracle.group_error_rate(records, bases)

    found = cahd(sets(records), np.array(labels), p, alpha, np.array(order, dtype=np.int64))

    number = {at: index for index, group in enumerate(groups) for at in group}
    assert found.group.tolist() == [number[at] for at in range(count)]
    assert found.published(sets(records)) == [sorted(bases[at]) for at in range(count)]
    assert found.error_rate == pytest.approx(float(rate), abs=1e-12)
    assert found.empty == empty


@given(st.integers(0, 10**6))
def test_gray_order(seed: int) -> None:
    rng = Random(seed)
    records = randoms(rng, rng.randint(1, 20), 6)
    assert gray_order(sets(records)).tolist() == oracle.gray_order(records, 6)


@pytest.mark.long
def test_cahd_takes_the_one_before_of_two_alike() -> None:
    """Records 0 and 1 are turned down at first; 2 then has 1 and 3 beside it, alike in everything but the side."""
    records = [frozenset({1})] * 2 + [frozenset({2, 3})] + [frozenset({1})] * 2
    assert cahd(sets(records), np.array([0, 0, 1, 2, 1]), 2, order=np.arange(5)).group.tolist() == [1, 0, 0, 1, 1]


def test_cahd_of_table_1() -> None:
    found = cahd(sets(TABLE_1), np.array([2, 2, 7, 1, 1, 7]), 3)
    assert found.group.tolist() == [1, 0, 0, 0, 1, 1]
    assert found.error_rate == pytest.approx(7 / 18)
    with pytest.raises(DataError, match="none"):
        cahd(sets([]), np.zeros(0, dtype=np.int64), 2)


def test_cahd_of_chess(request: pytest.FixtureRequest) -> None:
    """The measured values hold for one draw of 470 labels, weight ∝ rank^-0.5; ours is another."""
    folder = request.config.getoption("--adult")
    path = Path(folder).expanduser().resolve() / "fimi" / "chess.dat" if folder else None
    if path is None or not path.is_file():
        pytest.skip("needs the FIMI data: pytest --adult PATH, or ANON_SPARK_DATA=PATH (PATH/fimi/chess.dat)")
    chess = sets([frozenset(map(int, line.split())) for line in path.read_text().splitlines()])
    weights = np.arange(1, 471) ** -0.5
    labels = np.random.default_rng(1).choice(470, 3196, p=weights / weights.sum())
    rates = {size: cahd(chess, labels, size).error_rate for size in (2, 4, 6, 8)}
    assert rates == pytest.approx({2: 0.0511, 4: 0.0878, 6: 0.1161, 8: 0.1308}, abs=0.005)


# --- counts on a release --------------------------------------------------------------------------------------------


def batch(release: Sequence[oracle.Slot]) -> pa.RecordBatch:
    lists = [sorted(slot.base) for slot in release], [sorted(slot.dist) for slot in release]
    kind = pa.list_(pa.int32())
    columns: list[Any] = [
        pa.array(lists[0], kind),
        pa.array(lists[1], kind),
        pa.array([slot.t for slot in release], pa.int32()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["base", "uncertain", "max_errors"])


def answers(release: Sequence[oracle.Slot], asked: Sequence[queries.Query], at_once: int = 3) -> list[list[float]]:
    """[lower, upper, estimate] per query, from batches of a few rows."""
    batches = [batch(release[start : start + at_once]) for start in range(0, len(release), at_once)]
    (found,) = (table.to_pydict() for table in queries._answered(asked)(batches))
    return [list(row) for row in zip(found["lower"], found["upper"], found["estimate"], strict=True)]


@given(st.integers(2, 5), st.integers(0, 10**6))
def test_counts_are_those_of_all_worlds(k: int, seed: int) -> None:
    rng = Random(seed)
    records = randoms(rng, rng.randint(k, 12), 6)
    release = oracle.published(records, oracle.ring_graph(len(records), k))
    asked = [queries.Query(*(rng.sample(range(1, 8), rng.randint(0, 3)) for _ in range(2))) for _ in range(8)]

    for query, (lower, upper, estimate) in zip(asked, answers(release, asked), strict=True):
        wanted = oracle.Query(*(frozenset(map(int, items)) for items in query))
        expected = oracle.answer(release, wanted)
        assert (lower, upper) == expected[:2]
        assert estimate == pytest.approx(float(expected.estimate), abs=1e-12)
        assert lower <= sum(map(wanted.matches, records)) <= upper


def test_counts_of_one_row() -> None:
    slot = oracle.Slot(frozenset({1, 2}), frozenset({3, 4}), 1)
    asked = [
        queries.Query(present, absent)
        for present, absent in (
            [[1, 2], []],
            [[3], []],
            [[3, 4], []],
            [[], [3, 4]],
            [[9], []],
            [[1], [1]],
            [[3, 3], [4]],
            [[], []],
        )
    ]
    third = pytest.approx(1 / 3)
    assert answers([slot], asked) == [
        [1, 1, 1], [0, 1, third], [0, 0, 0], [0, 1, third], [0, 0, 0], [0, 0, 0], [0, 1, third], [1, 1, 1],
    ]  # fmt: skip
    assert answers([slot._replace(t=0)], asked[:4]) == [[1, 1, 1], [0, 0, 0], [0, 0, 0], [1, 1, 1]]


def test_counts_with_thousands_of_uncertain_items() -> None:
    """Far beyond what a double holds: shares by fractions of whole numbers."""
    slot = oracle.Slot(frozenset({1}), frozenset(range(1, 5001)), 1700)
    sums = list(accumulate(comb(5000, errors) for errors in range(1701)))
    both = list(accumulate(comb(4998, errors) for errors in range(1701)))
    assert queries.worlds(5000, 1700) == sums[-1] > 10**1000
    assert queries.worlds(4, 9) == 16 and queries.worlds(0, 0) == 1
    expected = [Fraction(both[-1], sums[-1]), Fraction(both[-3], sums[-1])]
    found = [estimate for _, _, estimate in answers([slot], [queries.Query([1], [2]), queries.Query([2], [1])])]
    assert found == [float(share) for share in expected]
    assert 0.4 < found[0] < 0.6 and 0.1 < found[1] < 0.2


# --- queries drawn, item lists --------------------------------------------------------------------------------------


def test_queries_are_drawn_alike() -> None:
    drawn = draw_queries(range(1, 11), 2000, 3, seed=5)
    assert drawn == draw_queries([*range(10, 0, -1)], 2000, 3, seed=5) != draw_queries(range(1, 11), 2000, 3, seed=6)
    assert all(len(set(query)) == 3 for query in drawn)
    often = Counter(item for query in drawn for item in query)
    assert set(often) == set(range(1, 11)) and all(
        abs(count - 600) < 4.5 * (2000 * 0.3 * 0.7) ** 0.5 for count in often.values()
    )
    assert len(set(draw_queries(["a", "b", "c"], 50, 2, seed=1))) > 3
    with pytest.raises(ConfigurationError, match="4 items cannot be drawn from 3"):
        draw_queries(["a", "b", "c"], 1, 4, seed=1)


@given(
    st.lists(st.none() | st.lists(st.sampled_from(["a", "b", "c", None]), max_size=4), max_size=9), st.integers(1, 4)
)
def test_presence(rows: list[list[str | None] | None], at_once: int) -> None:
    whole = pa.RecordBatch.from_arrays([pa.array(rows, pa.list_(pa.string()))], names=["items"])
    known = ["c", "z", "a"]
    expected = [[row is not None and item in row for row in rows] for item in known]
    assert presence(whole.column(0), known).tolist() == expected
    parts = [presence(whole.column(0).slice(start, at_once), known) for start in range(0, len(rows), at_once)]
    assert (np.hstack(parts).tolist() if parts else [[]] * 3) == expected
    assert sum(piece.num_rows for piece in pieces(whole, 1 << 40)) == len(rows)
