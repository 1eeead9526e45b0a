"""The package's mst partition on the worked example of the specification, its decisions, and Adult.

Classes come from the package; equivalence classes, DM, CAVG and IL are counted here, by the oracle's functions.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from anon_spark.errors import AnonSparkError
from anon_spark.model.hierarchy import Hierarchy
from tests.families.mst.tables import (
    ADULT_CUTS,
    ADULT_GREEDY,
    ADULT_ROUNDS,
    ADULT_WEIGHTS,
    BY_GREEDY,
    BY_ROUNDS,
    EXAMPLES,
    FLAT,
    TABLE_1,
    TABLE_1_LEVELS,
    TABLE_1_SPANS,
    TWO_WAYS,
    TWO_WAYS_LEVELS,
    Case,
    Partitioned,
    adult_levels,
    adult_spans,
    case_of,
    partitioned,
    read_adult,
)
from tests.oracle.mst_oracle import (
    Row,
    Spans,
    Trees,
    average_class_size,
    discernibility,
    equivalence_classes,
    information_loss,
)

pytestmark = pytest.mark.compiles

MERGES = ("greedy", "rounds")


def loss_of(found: Partitioned, trees: Trees, spans: list[Spans | None]) -> float:
    return round(float(information_loss(found.published, trees, spans)), 6)


# --- the paper's Table 1 -------------------------------------------------------------------------------------------

TREES = Trees(TABLE_1_LEVELS)
TABLE_1B: dict[Row, int] = {
    ("[20-30]", "M", "1305*"): 2, ("[31-40]", "F", "1306*"): 2, ("[41-50]", "*", "148**"): 3,
}  # fmt: skip
TABLE_1C: dict[Row, int] = {("[20-40]", "*", "130**"): 4, ("[41-50]", "*", "148**"): 3}


@pytest.mark.parametrize("merge", [*MERGES, "auto"])
@pytest.mark.parametrize(
    ("k", "expected", "dm", "loss", "small"),
    [(2, TABLE_1B, 17, 0.650510, 0), (3, TABLE_1C, 25, 1.249490, 2)],
)
def test_table_1(k: int, expected: dict[Row, int], dm: int, loss: float, small: int, merge: str) -> None:
    found = partitioned(case_of(TABLE_1_LEVELS, TABLE_1, k), merge)
    sizes = equivalence_classes(found.published, TREES)
    assert sizes == expected
    assert (discernibility(sizes), average_class_size(sizes, k)) == (dm, Fraction(7, 6))
    assert loss_of(found, TREES, TABLE_1_SPANS) == loss
    statistics = found.statistics
    assert statistics["weights"] == {4: 2, 6: 1, 10: 1, 12: 2}  # thirds
    assert statistics["tau"] == pytest.approx(3.931578, abs=1e-6)
    assert statistics["tau_below_min_weight"] is False
    assert (statistics["small"], statistics["identical"]) == (small, 0)
    assert (statistics["kept"], statistics["rows_kept"]) == ((3, 7) if k == 2 else (1, 3))
    assert statistics["merge"] == ("rounds" if merge == "rounds" else "greedy")
    assert (statistics["rounds"] is None) == (merge != "rounds")


# --- decisions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_decision(name: str, merge: str) -> None:
    example = EXAMPLES[name]
    found = partitioned(case_of([example.table], example.rows, example.k), merge, example.zero_edges)
    assert found.shape == example.classes
    assert found.statistics["small"] == example.small
    assert found.statistics["identical"] == ("identical" in name)
    rows_kept = found.statistics["rows_kept"]
    assert rows_kept == len(example.rows) if example.small == 0 else rows_kept < len(example.rows)


def test_ragged_rows_are_padded() -> None:
    """The padded hierarchy, this time from rows as a person writes them."""
    ragged = Hierarchy.from_levels([("a1", "a", "*"), ("a2", "a", "*"), ("x", "*")])
    example = EXAMPLES["padded hierarchy"]
    assert partitioned(Case([ragged], example.rows, 2)).shape == example.classes


@pytest.mark.parametrize("zero_edges", ["include", "exclude"])
def test_threshold_below_every_weight(zero_edges: str) -> None:
    """With many duplicates the zero edges pull τ below the smallest positive weight."""
    example = EXAMPLES["M-1: zero edges count"]
    found = partitioned(case_of([example.table], example.rows, example.k), "greedy", zero_edges)
    assert found.statistics["weights"] == {0: 32, 6: 1, 8: 1}
    assert found.statistics["tau_below_min_weight"] is (zero_edges == "include")
    assert found.statistics["tau"] == pytest.approx({"include": 0.525405, "exclude": 2.103553}[zero_edges], abs=1e-6)


def test_equal_weights_are_not_above_their_mean() -> None:
    """τ is the weight itself: a threshold in floats could fall just below it."""
    found = partitioned(case_of([FLAT], EXAMPLES["M-5: uniform weights"].rows, 2))
    assert (found.statistics["tau"], found.statistics["tau_below_min_weight"]) == (pytest.approx(2), False)


def test_greedy_and_rounds_part() -> None:
    case = case_of(TWO_WAYS_LEVELS, TWO_WAYS, 2)
    greedy, rounds = (partitioned(case, merge) for merge in MERGES)
    assert (greedy.shape, greedy.statistics["rounds"]) == (BY_GREEDY, None)
    assert (rounds.shape, rounds.statistics["rounds"]) == (BY_ROUNDS, 2)


@pytest.mark.parametrize("merge", MERGES)
def test_ids_follow_numbers_not_their_texts(merge: str) -> None:
    case = Case([Hierarchy.intervals(8, 12, [])], [(12,), (10,), (9,), (11,)], 2)
    assert {tuples for tuples, _, _ in partitioned(case, merge).shape} == {
        frozenset({(9,), (10,)}), frozenset({(11,), (12,)}),
    }  # fmt: skip


def test_fewer_rows_than_k() -> None:
    with pytest.raises(AnonSparkError):
        partitioned(case_of([FLAT], [("a",), ("b",)], 3))


# --- Adult ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows(adult: Path) -> list[Row]:
    return read_adult(adult)


@pytest.mark.slow
@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("k", ADULT_CUTS)
def test_adult(rows: list[Row], k: int, merge: str) -> None:
    tables, spans = adult_levels(), adult_spans()
    trees = Trees(tables)
    found = partitioned(case_of(tables, rows, k), merge, seed=k)
    statistics = found.statistics
    assert statistics["weights"] == {2 * sixths: edges for sixths, edges in ADULT_WEIGHTS.items()}
    assert statistics["tau"] == pytest.approx(0.834599, abs=1e-6)
    assert statistics["tau_below_min_weight"] is False
    assert tuple(statistics[name] for name in ("kept", "identical", "small", "rows_kept")) == ADULT_CUTS[k]
    sizes = equivalence_classes(found.published, trees)
    assert sum(sizes.values()) == 30162
    assert min(size for _, _, size in found.classes) >= k
    shown = (loss_of(found, trees, spans), discernibility(sizes), len(sizes), len(found.classes))
    if merge == "greedy":
        assert shown == ADULT_GREEDY[k]
    else:
        assert (*shown, statistics["rounds"]) == ADULT_ROUNDS[k]
