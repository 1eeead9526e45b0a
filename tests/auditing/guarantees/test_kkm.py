"""(k,k^m)-anonymity and (k,l^m)-diversity against brute force, the figures of the paper, and rows that are malformed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing import Verdict, verify_k_anonymity, verify_kkm, verify_klm
from anon_spark.auditing.guarantees import itemset_support
from anon_spark.auditing.guarantees.item_numbers import Hashing, hashing
from anon_spark.auditing.guarantees.itemset_walk import Entries, walk
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from tests.auditing.town import Row, frame
from tests.event_log import EventLog
from tests.oracle import rt_oracle as oracle
from tests.oracle.rt_oracle import Published

pytestmark = pytest.mark.compiles

AGE, CITY, ITEMS, SECRETS = "age", "ci.ty", "bas.ket", "bas.ket_sensitive"
RANGE = pa.struct([("lo", pa.int32()), ("hi", pa.int32())])
TEXTS = pa.list_(pa.string())
NAMES, KINDS = [AGE, CITY, ITEMS, SECRETS], [RANGE, pa.string(), pa.list_(TEXTS), TEXTS]
QUASI = [AGE, CITY]
MALFORMED = ("range", "null_item", "empty_item", "unsorted", "repeated", "overlap", "sensitive", "exposed")

Pairs = set[tuple[oracle.Box, oracle.ItemSet]]


def shown(row: Published) -> Row:
    """A published row as a table has it."""
    lo, hi = row.cells[0]
    return {"lo": lo, "hi": hi}, row.cells[1], sorted(map(list, row.items)), sorted(row.sensitive)


def table(spark: SparkSession, rows: Sequence[Published], partitions: int | None = None) -> DataFrame:
    return frame(spark, [shown(row) for row in rows], NAMES, KINDS, partitions)


def pairs(verdict: Verdict) -> Pairs:
    assert verdict.frame is not None
    rows = verdict.frame.collect()
    found = {(((row[AGE]["lo"], row[AGE]["hi"]), row[CITY]), tuple(map(tuple, row["itemset"]))) for row in rows}
    assert len(found) == len(rows)
    return found


# --- one class, without Spark ------------------------------------------------------------------------------------------


def lists(sets: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    offsets = np.cumsum([0, *map(len, sets)]).astype(np.int64)
    return offsets, np.array([item for items in sets for item in items], dtype=np.int64)


def entries(rows: Sequence[Published]) -> Entries:
    """Items and sensitive items as numbers: 'a' is 0."""
    times = Counter((tuple(sorted(ord(item[0]) - 97 for item in row.items)), tuple(sorted(row.sensitive))) for row in rows)
    secrets = [[ord(item) - 97 for item in of] for _, of in times]
    return Entries(lists([items for items, _ in times]), lists(secrets), np.array(list(times.values()), dtype=np.int64))


letters = st.frozensets(st.sampled_from("abcde"), max_size=5)
row = st.tuples(letters, st.frozensets(st.sampled_from("ab"), max_size=2), st.integers(1, 4))


@given(st.lists(row, min_size=1, max_size=9), st.integers(2, 5), st.integers(2, 4), st.integers(1, 6))
def test_the_walk_is_brute_force(of: Any, k: int, l: int, m: int) -> None:  # noqa: E741
    rows = [Published((), frozenset((item,) for item in items), secret) for items, secret, times in of for _ in range(times)]
    for limit, expected in ((None, oracle.verify_kkm(rows, k, m)), (l, oracle.verify_klm(rows, k, l, m))):
        found = walk(entries(rows), k, limit, m, room=200)
        sets = [{(chr(97 + item),) for item in itemset[2:] if item >= 0} for itemset in found.sets[: found.violations]]
        assert {tuple(sorted(itemset)) for itemset in sets} == {itemset for _, itemset in expected}
        assert found.violations == len(expected) == len(sets)
        supports = [oracle.support(rows, itemset) for itemset in sets]
        assert supports == found.sets[: found.violations, 0].tolist()
        assert found.small == sum(support < k for support in supports)
        if limit is not None:
            most = [oracle.highest_count(rows, itemset) for itemset in sets]
            assert most == found.sets[: found.violations, 1].tolist()
            assert found.frequent == sum(one * l > support for one, support in zip(most, supports, strict=True))
            assert Fraction(*found.highest) == oracle.highest_sensitive_share(rows, m)


def test_what_cannot_violate_is_not_tested() -> None:
    rows = [Published((), frozenset({(item,) for item in "abcdefgh"}))] * 5 + [Published((), frozenset({("a",)}))]
    assert walk(entries(rows), 5, None, 8).tested == 2  # the empty one, and {a}
    assert walk(entries(rows), 6, None, 8).violations == 2**8 - 2  # all but these
    assert walk(entries(rows), 6, None, 3, room=4).sets.shape == (4, 5)


def test_the_highest_share_is_looked_for_where_nothing_violates() -> None:
    rows = [Published((), frozenset({("a",)}), frozenset("a" if at < 2 else "")) for at in range(4)]
    rows += [Published((), frozenset({("a",), ("c",)}))] * 2 + [Published((), frozenset({("d",)}))] * 10
    for order in (rows, rows[::-1]):
        found = walk(entries(order), 2, 2, 2)
        assert (found.tested, found.violations, Fraction(*found.highest)) == (1, 0, Fraction(1, 3))


# --- tables ------------------------------------------------------------------------------------------------------------


EUROPE, AFRICA = "Europe", "Africa"
FIGURE = [((19, 22), EUROPE)] * 2 + [((28, 39), EUROPE)] * 2 + [((55, 70), AFRICA)] * 2


def figure(items: Sequence[str]) -> list[Published]:
    """Six rows; generalized items are separated by blanks."""
    return [Published(cells, frozenset(map(tuple, of.split()))) for cells, of in zip(FIGURE, items, strict=True)]


@pytest.mark.long
def test_the_figures_of_the_paper(spark: SparkSession, event_log: EventLog) -> None:
    first = figure(["E F ABCD", "E F ABCD", "E ABCD", "F ABCD", "E", "F ABCD"])
    since = event_log.mark()
    found = verify_kkm(table(spark, first), QUASI, ITEMS, 2, 2)
    assert found.name == "(2,2^2)-anonymity" and not found and found.violations == 8
    wanted = {FIGURE[2]: ["E", "F", "ABCD E", "ABCD F"], FIGURE[4]: ["E", "F", "ABCD", "ABCD F"]}
    assert pairs(found) == {(cells, tuple(map(tuple, of.split()))) for cells, sets in wanted.items() for of in sets}
    with pytest.raises(GuaranteeViolated, match="8 pairs of class and itemset") as raised:
        found.require()
    assert "Africa" not in str(raised.value) and "ABCD" not in event_log.read_text(since)

    second = figure(["E F BD", "E F BD", "BCF DE", "BCF DE", "AEF", "AEF"])
    found = verify_kkm(table(spark, second), QUASI, ITEMS, 2, 2).require()
    assert (found.facts["classes"], found.facts["smallest"], found.facts["rows"]) == (3, 2, 6)
    assert found.facts["histogram"] == [(2, 3, 3, 6)]


@pytest.mark.long
def test_a_frequent_sensitive_item_is_not_pruned(spark: SparkSession) -> None:
    one, apart, none = FIGURE[0], FIGURE[2], FIGURE[4]
    rows = [Published(one, frozenset({("x",)}), frozenset("s" if at < 3 else "")) for at in range(4)]
    rows += [Published(one, frozenset({("y",)}))] * 4
    found = verify_klm(table(spark, rows), QUASI, ITEMS, SECRETS, 2, 2, 1)
    assert found.name == "(2,2^1)-diversity" and pairs(found) == {(one, (("x",),))} and found.violations == 1
    assert found.facts["highest_share"] == 0.75 and found.facts["itemsets_above_share"] == 1
    assert "1 pairs of class and itemset (up to 1 items) have a sensitive item in more than 1/2" in found.detail
    # whole classes: with items, and without any
    rows += [Published(apart, frozenset({(str(at),)}), frozenset("s" if at < 2 else "")) for at in range(3)] * 2
    rows += [Published(none, frozenset(), frozenset("s" if at < 3 else "")) for at in range(4)]
    found = verify_klm(table(spark, rows), QUASI, ITEMS, SECRETS, 2, 2, 1)
    assert pairs(found) == {(one, (("x",),)), (apart, ()), (apart, (("0",),)), (apart, (("1",),)), (none, ())}
    assert found.violations == found.facts["itemsets_above_share"] == 5 and found.facts["highest_share"] == 1.0


def crowd(number: int, seed: int) -> list[Published]:
    """Classes of all sizes, one without a city; items that also differ in case only; some rows without any."""
    rng = Random(seed)
    places = [((20, 29), "x"), ((20, 29), "X"), ((20, 29), None), ((30, 30), "x"), ((30, 31), "x")]
    groups = [("a",), ("A",), ("b", "c"), ("d",), ("b", "c", "e"), ("é", "π")]
    rows = []
    for _ in range(number):
        items = [group for group in groups if rng.random() < 0.4]
        if ("b", "c") in items and ("b", "c", "e") in items:
            items.remove(("b", "c"))
        secret = frozenset(item for item in ("s", "t") if rng.random() < 0.3)
        rows.append(Published(rng.choices(places, [6, 5, 4, 3, 1])[0], frozenset(items), secret))
    return rows


@pytest.mark.long
def test_a_crowd_is_brute_force(spark: SparkSession) -> None:
    k, l, m = 3, 2, 3  # noqa: E741
    rows = crowd(120, 3)
    release = table(spark, rows)
    lower = release.withColumn(CITY, F.col(f"`{CITY}`").cast("string collate UTF8_LCASE")).withColumn(
        ITEMS, F.col(f"`{ITEMS}`").cast("array<array<string collate UTF8_LCASE>>")
    )  # a reader tells x and X apart
    for expected, verdict in (
        (oracle.verify_kkm(rows, k, m), verify_kkm(lower, QUASI, ITEMS, k, m)),
        (oracle.verify_klm(rows, k, l, m), verify_klm(release, QUASI, ITEMS, SECRETS, k, l, m)),
    ):
        assert pairs(verdict) == expected and verdict.violations == len(expected) > 0
        assert not any(verdict.facts.get(kind) for kind in MALFORMED)
    assert verdict.facts["highest_share"] == float(oracle.highest_sensitive_share(rows, m))
    sizes = verify_k_anonymity(release, QUASI, k).facts
    assert all(verdict.facts[name] == sizes[name] for name in ("classes", "smallest", "rows", "histogram", "average"))


@pytest.mark.long
def test_partitions_do_not_matter(spark: SparkSession) -> None:
    release = table(spark, crowd(60, 9))
    found = [verify_klm(release.repartition(parts), QUASI, ITEMS, SECRETS, 3, 2, 2) for parts in (1, 2, 7)]
    assert found[0].facts == found[1].facts == found[2].facts and found[0].violations > 0
    assert len({(one.violations, one.checked, one.detail) for one in found}) == 1


@pytest.mark.long
def test_numbers_of_items_are_proven(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = []

    def weak(seed: int) -> Hashing:
        seeds.append(seed)
        return hashing(seed) if seed == 2 else lambda names: np.zeros(len(names), dtype=np.uint64)

    monkeypatch.setattr(itemset_support, "hashing", weak)
    rows = figure(["E F ABCD", "E F ABCD", "E ABCD", "F ABCD", "E", "F ABCD"])
    found = verify_kkm(table(spark, rows), QUASI, ITEMS, 2, 2)
    assert found.violations == 8 and set(seeds) == {0, 1, 2} and len(pairs(found)) == 8


# --- malformed rows ----------------------------------------------------------------------------------------------------

GOOD: Row = ({"lo": 1, "hi": 2}, "x", [["a", "b"], ["c"]], ["s", "t"])
FAULTS: list[tuple[str, int, Any]] = [
    ("range", 0, {"lo": 3, "hi": 2}),
    ("range", 0, {"lo": None, "hi": 2}),
    ("range", 0, {"lo": 1, "hi": None}),
    ("range", 0, None),
    ("null_item", 2, None),
    ("null_item", 2, [["a", "b"], None]),
    ("null_item", 2, [[None, "a", "b"], ["c"]]),
    ("empty_item", 2, [[], ["a", "b"], ["c"]]),
    ("unsorted", 2, [["b", "a"], ["c"]]),
    ("unsorted", 2, [["c"], ["a", "b"]]),
    ("repeated", 2, [["a", "a", "b"], ["c"]]),
    ("overlap", 2, [["a", "b"], ["a", "c"]]),
    ("overlap", 2, [["c"], ["c"]]),
    ("sensitive", 3, None),
    ("sensitive", 3, ["t", "s"]),
    ("sensitive", 3, ["s", "s"]),
    ("sensitive", 3, ["s", None]),
    ("exposed", 3, ["c"]),
]


def test_malformed_rows_are_violations(spark: SparkSession) -> None:
    # one class each: a city of its own, four rows, the fault in all of them; six sound rows hold the shares down
    rows, expected = [], Counter[str]()
    for city, (kind, at, value) in enumerate(FAULTS):
        bad = (*GOOD[:at], value, *GOOD[at + 1 :])
        rows += [(bad[0], f"city {city}", *bad[2:])] * 2 + [(bad[0], f"city {city}", *bad[2:3], [])] * 4
        expected[kind] += 2 if at == 3 else 6
    release = frame(spark, rows, NAMES, KINDS)
    found = verify_klm(release, QUASI, ITEMS, SECRETS, 2, 3, 2)
    assert {kind: found.facts[kind] for kind in MALFORMED} == expected
    assert found.violations == found.facts["malformed"] == expected.total() and found.facts["itemsets_below_k"] == 0
    plain = verify_kkm(release, QUASI, ITEMS, 6, 2)
    assert plain.violations == expected.total() - expected["sensitive"] - expected["exposed"]
    assert "city" not in found.detail and "6 of 108 rows have a generalized item that stands for nothing." in found.detail


def test_items_of_a_malformed_row_count_as_if_it_were_sound(spark: SparkSession) -> None:
    sound, unsorted = ((*GOOD[:2], items, *GOOD[3:]) for items in ([["x"], ["y"]], [["y"], ["x"]]))
    found = verify_kkm(frame(spark, [sound, sound, unsorted], NAMES, KINDS), QUASI, ITEMS, 3, 2)
    assert (found.violations, found.facts["unsorted"], found.facts["itemsets_below_k"]) == (1, 1, 0)


def test_what_is_refused(spark: SparkSession) -> None:
    release = table(spark, crowd(4, 1))
    assert not verify_kkm(release.limit(0), QUASI, ITEMS, 2, 2)
    assert "empty" in verify_klm(release.limit(0), QUASI, ITEMS, SECRETS, 2, 2, 2).detail
    for relational, items, k, m in ((QUASI, ITEMS, 1, 2), (QUASI, ITEMS, 2, 0), ([], ITEMS, 2, 2), (QUASI, SECRETS, 2, 2)):
        with pytest.raises(ConfigurationError):
            verify_kkm(release, relational, items, k, m)
    for secret, l in ((ITEMS, 2), (SECRETS, 1), ("no", 2)):  # noqa: E741
        with pytest.raises(ConfigurationError):
            verify_klm(release, QUASI, ITEMS, secret, 2, l, 2)
