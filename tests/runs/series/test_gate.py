"""Faults planted into whole runs of a series, between increment, ledger and release: nothing is published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anon_spark.errors import GuaranteeViolated
from anon_spark.io.ledger import HASH
from anon_spark.runs.run import run
from anon_spark.runs.series import increment
from tests.often import often
from tests.runs.series.growing import table_of
from tests.runs.series.village import SECOND, Begun

Wrong = Callable[[Callable[..., Any]], Callable[..., Any]]


def entering(change: Callable[[DataFrame], DataFrame]) -> Wrong:
    """Other people are entered than those who are published."""
    return lambda enter: lambda ledger, persons, *rest: enter(ledger, change(persons), *rest)


def taking(change: Callable[[DataFrame, DataFrame], DataFrame]) -> Wrong:
    """Other rows are taken than those of the people who were not published: a function of these and of the whole input."""
    return lambda unpublished: lambda prepared, found: change(unpublished(prepared, found), needed(prepared))


def needed(prepared: Any) -> DataFrame:
    frame: DataFrame = prepared.steps.needed(prepared.source.frame)
    return frame


def another(persons: DataFrame) -> DataFrame:
    return persons.limit(1).select(F.unhex(F.sha2(F.lit("x"), 256)).alias(HASH))


FAULTS: dict[str, tuple[str, Wrong, str]] = {  # what is replaced, by what, and the check that sees it
    "somebody is not entered": ("enter", entering(lambda persons: persons.limit(persons.count() - 1)), "ledger"),
    "nobody is entered": ("enter", entering(lambda persons: persons.limit(0)), "ledger"),
    "somebody is entered twice": ("enter", entering(lambda persons: persons.unionAll(persons.limit(1))), "ledger"),
    "somebody else is entered, too": ("enter", entering(lambda persons: persons.unionAll(another(persons))), "ledger"),
    "a published person is in the increment": ("unpublished", taking(lambda rows, source: source), "increment"),
    "a later row of a published person is in the increment": (
        "unpublished", taking(lambda rows, source: rows.unionByName(source.where("trace = 11"))), "increment",
    ),
    "a row that waits is not in the increment": ("unpublished", taking(lambda rows, _: rows.where("trace <> 10")), "increment"),
    "a row is in the increment twice": (
        "unpublished", taking(lambda rows, _: rows.unionAll(rows.where("trace = 9"))), "increment",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", often(FAULTS, {"a published person is in the increment"}))
def test_nothing_is_published(begun_series: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    function, wrong, check = FAULTS[fault]
    series = begun_series.series.copied(tmp_path / "town")
    series.town.write(table_of(SECOND))
    before = series.release(), series.town.versions
    with monkeypatch.context() as patched, pytest.raises(GuaranteeViolated) as caught:
        patched.setattr(increment, function, wrong(getattr(increment, function)))
        run(series.prepared())
    assert caught.value.facts["checks"] == [check] and caught.value.exit_code == 3
    assert (series.release(), series.town.versions) == before
    assert series.town.runs[-1].status == "failed" and list((series.town.folder / "work").iterdir()) == []
    if fault == "nobody is entered":  # those who were entered do not count: the next run removes them
        assert series.run(SECOND).status == "published"
