"""The oracle of series: honest ones are in order, whatever comes when, and a planted violation of each statement is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.series_oracle import Columns, Numbers, Step, books_of, ledger_hash
from tests.oracle.series_promises import (
    FullDomain,
    LocalRecoding,
    Promise,
    Row,
    Sets,
    Transactions,
    Trees,
    intervals,
    paths_of,
)

CITIES = [("Aldorf", "North", "*"), ("Bexley", "North", "*"), ("Carden", "South", "*")]
PATHS = {"city": paths_of(CITIES), "age": intervals(20, 39, [10])}
ALONE = "an attacker finds fewer than k people"
PROMISE = FullDomain(2, {"city": 1, "age": 1}, PATHS)
COLUMNS = Columns("who", "row", "part")


def person(who: int, city: str | None = "Aldorf", age: int | None = 21, row: int | None = None) -> Row:
    return {"who": who, "row": who if row is None else row, "city": city, "age": age}


def shown(row: Row, part: int) -> Row:
    """A row of the input as lattice publishes it on level 1."""
    return {"row": row["row"], "city": PATHS["city"](row["city"])[1], "age": PATHS["age"](row["age"])[1], "part": part}


def honest(versions: list[list[Row]], promise: Promise = PROMISE) -> list[Step]:
    """A series of lattice that does what it should, kept without the oracle: its ledger is a set."""
    steps, ledger, release, part = [], set[Any](), list[Row](), 0
    for source in versions:
        new = [row for row in source if row["who"] not in ledger and row["city"] is not None and row["age"] is not None]
        held = promise.publishable(new, "who") if len({row["who"] for row in source} - ledger) >= promise.k else None
        if held:
            part += 1
            release = [*release, *(shown(row, part) for row in held)]
            ledger |= {row["who"] for row in held}
        steps.append(Step(source, release, promise, waited=not held))
    return steps


def faults(steps: list[Step]) -> set[str]:
    return {fault for _, fault in books_of(steps, COLUMNS).faults}


people = st.tuples(st.integers(0, 12), st.sampled_from(["Aldorf", "Bexley", "Carden", None]), st.sampled_from([20, 25, 35, None]))


@given(st.lists(st.lists(people, max_size=8), max_size=5), st.integers(2, 4))
def test_an_honest_series_is_in_order(versions: list[list[tuple[int, str | None, int | None]]], k: int) -> None:
    """Whatever persons come, leave and have several rows or nulls."""
    sources = [[person(who, city, age, row) for row, (who, city, age) in enumerate(rows)] for rows in versions]
    steps = honest(sources, replace(PROMISE, k=k))
    books = books_of(steps, COLUMNS)
    assert books.faults == []
    for source, numbers in zip(sources, books.numbers, strict=True):
        everybody = {row["who"] for row in source}
        assert numbers.new == numbers.published + numbers.waiting and numbers.rows + numbers.rows_of_published == len(source)
        assert everybody <= set(books.published) | books.waited
    if sources:
        assert {row["who"] for row in sources[-1]} - set(books.published) == books.waiting


FIRST = [person(1), person(2), person(3, "Carden"), person(4, "Carden", 35)]  # 3 and 4 are alone
SECOND = [*FIRST, person(5, "Carden"), person(1, row=10), person(6, "Bexley", 36)]
THIRD = [person(2), person(6, "Bexley", 36), person(7, "Aldorf", 37), person(4, "Carden", 35), person(8, None), person(9, None)]


def test_the_books_of_an_example() -> None:
    """Two are published, then one who waited with a newcomer; a later row of a published person stays out; one is gone."""
    books = books_of(honest([FIRST, SECOND, SECOND, THIRD]), COLUMNS)
    assert books.faults == []
    assert books.published == {1: 1, 2: 1, 3: 2, 5: 2, 6: 3, 7: 3}
    assert books.waiting == {4, 8, 9} and books.waited == {3, 4, 6, 8, 9}
    assert books.numbers == [
        Numbers(1, 4, 2, 2, 0, 4, 0), Numbers(2, 4, 2, 2, 2, 4, 3), Numbers(3, 2, 0, 2, 4, 2, 5), Numbers(3, 5, 2, 3, 4, 5, 1),
    ]  # fmt: skip


def publish(at: int, *rows: Row) -> Callable[[list[Step]], None]:
    """More rows than there should be, from a run on."""

    def plant(steps: list[Step]) -> None:
        number = max(row["part"] for row in steps[at].release)
        for later in range(at, len(steps)):
            steps[later] = replace(steps[later], release=[*steps[later].release, *(shown(row, number) for row in rows)])

    return plant


def change(at: int, **changes: Any) -> Callable[[list[Step]], None]:
    def plant(steps: list[Step]) -> None:
        steps[at] = replace(steps[at], **{name: value(steps[at]) for name, value in changes.items()})

    return plant


PLANTED: dict[str, tuple[int, Callable[[list[Step]], None], set[str]]] = {  # the run in which it is seen, and what is seen
    "a later row of a published person": (1, publish(1, person(1, row=10)), {"somebody was published twice"}),
    "the same row again": (1, publish(1, person(1)), {"somebody was published twice"}),
    "a row twice": (0, publish(0, person(1)), {"a row was published twice"}),
    "a stranger": (1, publish(1, person(77)), {"a row is nobody's"}),
    "somebody alone": (
        1, publish(1, person(4, "Carden", 35)), {"somebody is published who should wait", ALONE},
    ),
    "one of two is missing": (
        0, change(0, release=lambda step: step.release[1:]),
        {"somebody waits who could be published", ALONE},
    ),
    "nobody is published": (
        0, change(0, release=lambda step: [], waited=lambda step: True), {"somebody waits who could be published"},
    ),
    "nothing is said": (2, change(2, waited=lambda step: False), {"the run says otherwise"}),
    "the wrong is said": (0, change(0, waited=lambda step: True), {"the run says otherwise"}),
    "rows are gone": (
        3, change(3, release=lambda step: [row for row in step.release if row["row"] != 1]),
        {"rows of an earlier version are gone or changed"},
    ),
    "another number": (
        0, change(0, release=lambda step: [{**row, "part": 7} for row in step.release]), {"the number of the increment is wrong"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    run, plant, expected = PLANTED[fault]
    steps = honest([FIRST, SECOND, SECOND, THIRD])
    plant(steps)
    found = books_of(steps, COLUMNS).faults
    assert min(at for at, _ in found) == run and {text for at, text in found if at == run} == expected


def test_fewer_than_k_wait_even_if_somebody_publishes_them() -> None:
    step = Step([person(1)], [shown(person(1), 1)], PROMISE)
    assert faults([step]) == {"somebody is published who should wait", ALONE}


def test_two_increments_do_not_hide_each_other() -> None:
    """Everybody's class has two rows in the whole release, and one in each increment: who knows the increment finds one."""
    first, second = [person(1), person(2, "Carden")], [person(1), person(2, "Carden"), person(3), person(4, "Carden")]
    one = [shown(row, 1) for row in first]
    steps = [Step(first, one, PROMISE), Step(second, [*one, *(shown(row, 2) for row in second[2:])], PROMISE)]
    assert ALONE in faults(steps)
    assert len(books_of(steps, COLUMNS).faults) == 4


# --- what an attacker finds, by family


def fewest(promise: Promise, known: Row, release: list[Row]) -> int:
    return min(len(view) for view in promise.views(known, release))


def test_the_attacker_of_local_recoding() -> None:
    promise = LocalRecoding(2, PATHS, {"ill": 2})
    release: list[Row] = [{"city": "North", "age": "21"}, {"city": "*", "age": "[20, 29]"}, {"city": "South", "age": "*"}]
    assert fewest(promise, person(1), release) == 2 and fewest(promise, person(1, age=22), release) == 1
    assert promise.publishable([{"ill": "flu"}, {"ill": "flu"}], "who") is None
    assert promise.publishable([{"ill": "flu"}, {"ill": "gout"}], "who") == [{"ill": "flu"}, {"ill": "gout"}]


def test_the_attacker_of_transactions() -> None:
    promise = Transactions(2, 2, {}, ["age"], "goods")
    rows = [({"lo": 20, "hi": 29}, [["a", "b"], ["c"]]), ({"lo": 20, "hi": 25}, [["a", "b"]]), ({"lo": 30, "hi": 39}, [["c"]])]
    release: list[Row] = [{"age": age, "goods": goods} for age, goods in rows]
    assert fewest(promise, {"age": 21, "goods": ["a"]}, release) == 2
    assert fewest(promise, {"age": 26, "goods": ["a"]}, release) == 1
    assert fewest(promise, {"age": 21, "goods": ["a", "c"]}, release) == 1
    assert fewest(replace(promise, m=1), {"age": 21, "goods": ["a", "b"]}, release) == 2
    assert promise.publishable([{"goods": ["a"]}, {"goods": []}], "who") is None
    assert promise.publishable([{"goods": ["a"]}, {"goods": []}, {"goods": ["b"]}], "who") is not None
    assert promise.publishable([{"goods": []}] * 2, "who") == [{"goods": []}] * 2


def test_the_attacker_of_sets() -> None:
    promise = Sets(2, "goods")
    release: list[Row] = [
        {"base": ["a"], "uncertain": ["b", "c"], "max_errors": 1}, {"base": ["a", "b"], "uncertain": ["c"], "max_errors": 1},
    ]  # fmt: skip
    assert fewest(promise, {"goods": ["a", "b"]}, release) == 2
    assert fewest(promise, {"goods": ["a", "b", "c"]}, release) == 1 and fewest(promise, {"goods": ["a"]}, release) == 1


def test_the_attacker_of_trees() -> None:
    def row(*paths: list[tuple[str, str]]) -> Row:
        return {"paths": [[{"class": kind, "value": value} for kind, value in path] for path in paths]}

    paths = {"city": PATHS["city"], "brand": paths_of([("x", "*"), ("y", "*")])}
    promise = Trees(2, 2, paths, lambda known: {"city": [known["city"]], "brand": known["brands"]})
    town, x, y = ("city", "North"), ("brand", "x"), ("brand", "brand")
    release = [row([town, x]), row([town], [x]), row([town, y]), row([("city", "Carden")])]
    assert fewest(promise, {"city": "Aldorf", "brands": []}, release) == 3
    assert fewest(promise, {"city": "Bexley", "brands": ["y"]}, release) == 1  # x is shown, so y is what is left
    assert fewest(promise, {"city": "Aldorf", "brands": ["x"]}, release) == 1  # two have both, one of them shows x below
    assert fewest(promise, {"city": "Carden", "brands": []}, release) == 1
    assert fewest(replace(promise, m=1), {"city": "Aldorf", "brands": ["x"]}, release) == 2
    assert fewest(promise, {"city": "Aldorf", "brands": []}, [row([("*", "*")])] * 2) == 2


def test_the_hash_of_a_person() -> None:
    assert ledger_hash("salt", 7001).hex() == "b3fbf58cece1249264bf2811fd0dbe06751cf7758fe8668ba506dc44019193df"
    assert ledger_hash("salt", 7001) == ledger_hash("salt", "7001") != ledger_hash("Salt", 7001)
