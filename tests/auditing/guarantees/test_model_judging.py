"""Classes judged without Spark: every model against the oracle, ties, and numbers that 64 bits do not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from anon_spark.auditing.guarantees.model_judging import Judge
from anon_spark.auditing.guarantees.model_tally import UNBOUNDED, Tally, bins, borders, histograms
from anon_spark.auditing.guarantees.model_ties import entropy_holds, gain_holds, ratio_holds
from anon_spark.auditing.reading.spread import UNKNOWN, Histograms, Whole
from anon_spark.model.guarantee.models import (
    BetaLikeness,
    DeltaDisclosure,
    Distance,
    DistinctL,
    EntropyL,
    Model,
    RecursiveCL,
    TCloseness,
)
from anon_spark.model.hierarchy import Hierarchy
from tests.oracle.models_oracle import holds, measured

LEVELS = {number: [f"v{number}", label, "*"] for number, label in enumerate("xxyyz")}
TREE = Hierarchy.from_levels(list(LEVELS.values()))
MODELS: list[Model] = [
    *(DistinctL(l) for l in (2, 3)),  # noqa: E741
    *(EntropyL(l) for l in (2, 3, 1.5)),  # noqa: E741
    *(RecursiveCL(c, l) for c, l in ((1, 2), (2, 2), (1.5, 3))),  # noqa: E741
    *(TCloseness(most) for most in (0, Fraction(1, 3), 0.5)),
    *(TCloseness(most, "ordered") for most in (0.25, Fraction(1, 3))),
    TCloseness(0.5, "hierarchical", TREE),
    *(BetaLikeness(most, enhanced) for most, enhanced in ((1, False), (0.5, False), (1, True), (3, True))),
    *(DeltaDisclosure(most) for most in (0.7, 2)),
]


def classes_of(counts: Sequence[Mapping[int, int]]) -> Histograms:
    entries = [list(one.items()) for one in counts]
    offsets = np.cumsum([0, *map(len, entries)])
    flat = np.array([pair for one in entries for pair in one], dtype=np.int64).reshape(-1, 2)
    return Histograms.of(offsets, flat[:, 0], flat[:, 1])


def judge_of(model: Model, whole: Mapping[int, int]) -> Judge:
    levels = None
    if isinstance(model, TCloseness) and model.distance == "hierarchical":
        levels = TREE.codes[:-1, : len(whole)].astype(np.int64)
    return Judge(0, model, Whole(np.array([whole[value] for value in sorted(whole)], dtype=np.int64)), levels)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_every_model_is_decided_and_measured_as_by_brute_force(model: Model) -> None:
    random, seen = Random(str(model)), Counter[bool]()
    for _ in range(60):
        size = random.randint(1, 5)
        counts = [{value: random.choice((0, 0, 1, 1, 2, 3)) for value in range(size)} for _ in range(random.randint(1, 5))]
        counts = [{value: n for value, n in one.items() if n} or {0: 1} for one in counts]
        whole = {value: sum(one.get(value, 0) for one in counts) + random.randint(0, 1) or 1 for value in range(size)}
        if random.random() < 0.2:
            counts[0][UNKNOWN] = 1
        judge = judge_of(model, whole)
        judged = judge.judge(classes_of(counts))
        expected = [holds(one, whole, model, LEVELS) for one in counts]
        assert judged.holds.tolist() == expected
        seen.update(expected)
        edges = borders(judge)
        for one, value, place in zip(counts, judged.values, bins(judge, judged), strict=True):
            measure = measured(one, whole, model, LEVELS)
            if measure is None:
                assert np.isinf(value) and place == UNBOUNDED
            else:
                assert value == pytest.approx(measure, abs=1e-9) and edges[place] - 1e-9 <= measure <= edges[place + 1] + 1e-9
    assert seen[True] and seen[False]


def test_ties_of_entropy_are_found_by_prime_numbers() -> None:
    assert entropy_holds((3, 3), Fraction(2)) and entropy_holds((10**9, 10**9), Fraction(2))
    assert not entropy_holds((10**9, 10**9 - 1), Fraction(2))  # floats and 17 digits cannot tell
    assert entropy_holds((5,) * 7, Fraction(7)) and not entropy_holds((5,) * 7, Fraction(7) + Fraction(1, 10**60))
    assert entropy_holds((5,) * 7, Fraction(7) - Fraction(1, 10**60))
    # 4^4 = 2^2 · (2√2)^4: two halves, one of them split again, is no fraction
    assert entropy_holds((2, 1, 1), Fraction("2.82842712474619009760337744841939615")) != entropy_holds(
        (2, 1, 1), Fraction("2.82842712474619009760337744841939616")
    )


@pytest.mark.parametrize("seed", range(3))
def test_ties_agree_with_big_integers(seed: int) -> None:
    random = Random(seed)
    for _ in range(200):
        counts = tuple(random.randint(1, 6) for _ in range(random.randint(1, 6)))
        least = Fraction(random.randint(1, 12), random.randint(1, 3)) + 1
        rows, right = sum(counts), Fraction(1)
        for count in counts:
            right *= count**count
        assert entropy_holds(counts, least) == (Fraction(rows) ** rows >= least**rows * right)


def test_logarithms_are_never_equal_to_fractions() -> None:
    ln_2 = "0.693147180559945309417232121458176568075500134360255254120680009"
    assert ratio_holds(2, 3, 1, 3, Fraction(ln_2 + "5")) and not ratio_holds(2, 3, 1, 3, Fraction(ln_2))
    assert not ratio_holds(1, 3, 2, 3, Fraction(ln_2)) and ratio_holds(1, 3, 1, 3, Fraction(1, 10**50))
    assert gain_holds(1, 1, 1, 1) and gain_holds(1, 3, 1, 2) and not gain_holds(1, 1, 1, 2)


def test_a_class_at_the_limit_is_decided_by_integers() -> None:
    whole = {0: 1, 1: 2}  # q = 1/3: no float is
    for model in (TCloseness(Fraction(2, 3)), BetaLikeness(2), TCloseness(Fraction(2, 3), "ordered")):
        assert judge_of(model, whole).judge(classes_of([{0: 7}])).holds.all()
    just_below = Decimal("0.66666666666666666666")
    for model in (TCloseness(just_below), TCloseness(just_below, "ordered"), BetaLikeness(3 * just_below - Decimal("1e-19"))):
        assert not judge_of(model, whole).judge(classes_of([{0: 7}])).holds.any()
    assert not judge_of(RecursiveCL(10, 2), whole).judge(classes_of([{0: 1, 1: 10}])).holds.any()  # 10 < 10 · 1 does not hold


def test_numbers_beyond_64_bits_are_counted() -> None:
    huge = 10**11
    whole = {0: huge, 1: huge, 2: 2 * huge}
    classes = classes_of([{0: huge, 2: huge}, {0: 1, 1: 1, 2: 2}])
    kinds: dict[Distance, Fraction] = {"equal": Fraction(1, 4), "ordered": Fraction(1, 8)}
    for kind, most in kinds.items():
        tie = judge_of(TCloseness(most, kind), whole).judge(classes)
        assert tie.values.tolist() == [float(most), 0.0] and tie.holds.all()
        below = judge_of(TCloseness(most - Fraction(1, 10**30), kind), whole).judge(classes)
        assert below.holds.tolist() == [False, True]


def test_values_that_the_table_lacks_are_one_value() -> None:
    classes = Histograms.of(np.array([0, 4, 5]), np.array([1, UNKNOWN, 0, UNKNOWN, 0]), np.array([2, 1, 3, 1, 4]))
    assert classes.values.tolist() == [UNKNOWN, 0, 1, 0] and classes.counts.tolist() == [2, 3, 2, 4]
    assert classes.rows.tolist() == [7, 4] and classes.foreign.tolist() == [True, False]
    nothing = Judge(0, TCloseness(1), Whole(np.zeros(0, dtype=np.int64))).judge(classes_of([{UNKNOWN: 3}]))
    assert not nothing.holds.any()


@pytest.mark.parametrize(
    ("model", "class_bins"),
    [
        (DistinctL(2), [(1, 2), (2, 4), (2, 4), (4, 8)]),  # with the lower border: 4 values are in the last
        (TCloseness(0.25), [(0.7, 0.8), (0.4, 0.5), (0.2, 0.25), (0, 0.1)]),  # with the upper one: 0.75, 0.5, 0.25 and 0
        (TCloseness(0), [(0.7, 0.8), (0.4, 0.5), (0.2, 0.3), (0, 0)]),
        (BetaLikeness(1), [(2, 4), (0.75, 1), (0.25, 0.5), (0, 0.25)]),
    ],
    ids=str,
)
def test_bins_have_one_border_and_do_not_mix_both_sides_of_the_limit(model: Model, class_bins: list[tuple[float, float]]) -> None:
    counts = [dict.fromkeys(range(values), 1) for values in (1, 2, 3, 4)]
    judge = judge_of(model, dict.fromkeys(range(4), 5))
    edges, places = borders(judge), bins(judge, judge.judge(classes_of(counts)))
    assert [(edges[place], edges[place + 1]) for place in places] == class_bins


def test_a_tally_is_small_and_counts_every_class_once() -> None:
    random = Random(3)
    counts = [{value: random.randint(1, 9) for value in range(random.randint(1, 5))} for _ in range(500)]
    judges = [judge_of(model, dict.fromkeys(range(5), 9)) for model in MODELS]
    entry = pa.struct([("number", pa.int32()), ("rows", pa.int64())])
    lists = pa.array([[{"number": n, "rows": r} for n, r in one.items()] for one in counts], pa.list_(entry))
    batch = pa.RecordBatch.from_arrays([pa.array([at % 2 for at in range(500)], pa.int32()), lists], names=["at", "entries"])
    tally = Tally(judges)
    for at, places, classes in histograms(batch.slice(3)):
        assert classes.size == len(places) and set((places + 3) % 2) == {at}
        tally.add(0, classes)
    lines = tally.lines().to_pylist()
    assert len(lines) < 300
    for number in range(len(judges)):
        of_judge = [line for line in lines if line["_anon_judge"] == number]
        assert sum(line["_anon_classes"] for line in of_judge) == 497
        assert sum(line["_anon_rows"] for line in of_judge) == sum(sum(one.values()) for one in counts[3:])
