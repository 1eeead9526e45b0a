"""Faults planted between the fit of `mst` and its audit: the gate refuses each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf, nextafter

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.families.mst.recoding import Fitted
from anon_spark.model.hierarchy import Hierarchy
from tests.families.gate import (
    Attempt,
    Faults,
    Gate,
    Record,
    lying,
    one_changed,
    refused_by_a_run,
    tried,
    without_a_row,
)
from tests.families.people import CITIES, JOB, people
from tests.town import Town

pytestmark = pytest.mark.long  # the test command plants faults for the verifiers: tests/audit
FIRST_LEVEL, FIRST_LEAF = "_anon_level_0", "_anon_leaf_0"


@pytest.fixture(scope="module")
def gate(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("tamper-mst")
    town = Town.founded(spark, folder / "town", people())
    asked = {"family": "mst", "privacy": {"k": 3, "l": 2}, "columns__person": "row_id", "columns__identifiers": ["name"]}
    made = Gate.of(town, str(folder / "gate"), **JOB | asked)
    yield made
    made.workspace.close()


def label(row: Record) -> tuple[str, str]:
    return row["city"], row["zip"]


def two_classes(rows: list[Record]) -> tuple[list[Record], list[Record]]:
    """The rows of two classes."""
    first, second = sorted({label(row) for row in rows})[:2]
    return [row for row in rows if label(row) == first], [row for row in rows if label(row) == second]


def swapped_across(gate: Gate) -> Attempt:
    rows = gate.rows()
    first, second = two_classes(rows)
    one, other = next((one, other) for one in first for other in second if one["illness"] != other["illness"])
    one["illness"], other["illness"] = other["illness"], one["illness"]
    return Attempt(rows)


def swapped_inside(gate: Gate) -> Attempt:
    rows = gate.rows()
    same = [(one, other) for one in rows for other in rows if label(one) == label(other)]
    one, other = next((a, b) for a, b in same if a["illness"] != b["illness"] and a["dose"] != b["dose"])
    one["illness"], other["illness"] = other["illness"], one["illness"]
    return Attempt(rows)


def moved(gate: Gate) -> Attempt:
    rows = gate.rows()
    first, second = two_classes(rows)
    first[0]["city"], first[0]["zip"] = second[0]["city"], second[0]["zip"]
    return Attempt(rows)


def a_class_apart(gate: Gate) -> Attempt:
    """A row with the values of its record: a class of its own."""
    rows = gate.rows()
    assert ("Bexley", "13051") not in map(label, rows)
    row = next(row for row in rows if row["zip"].startswith("1305"))
    row["city"], row["zip"] = "Bexley", "13051"
    return Attempt(rows)


def one_illness(gate: Gate) -> Attempt:
    rows = gate.rows()
    for row in two_classes(rows)[0]:
        row["illness"] = "flu"
    return Attempt(rows)


def doubled(gate: Gate) -> Attempt:
    rows = gate.rows()
    one, lost = next((a, b) for a in rows for b in rows if label(a) == label(b) and a["illness"] != b["illness"])
    return Attempt([*(row for row in rows if row is not lost), dict(one)])


def left_out(gate: Gate) -> Attempt:
    rows = gate.rows()
    gone = label(rows[0])
    return Attempt([row for row in rows if label(row) != gone])


def assigned(spoil: Callable[[DataFrame], DataFrame]) -> Callable[[Gate], Attempt]:
    """Another assignment than the release was made with."""

    def attempt(gate: Gate) -> Attempt:
        honest = gate.recoding.evidence()["assignment"]
        return Attempt(recoding=lying(gate.recoding, evidence=lambda: {"assignment": spoil(honest)}))

    return attempt


def without_one(assignment: DataFrame) -> DataFrame:
    return assignment.orderBy(*assignment.columns).offset(1)


def finer(assignment: DataFrame) -> DataFrame:
    """Every value on its leaf level: not what the release shows."""
    return assignment.withColumn(FIRST_LEVEL, F.lit(0)).withColumn("_anon_level_1", F.lit(0))


def other_hierarchy(gate: Gate) -> Attempt:
    """Another level table, with which stage and evidence agree."""
    other = Hierarchy.from_levels([(f"{city}", region.replace("North", "Nord"), "*") for city, region in CITIES.items()])
    other = Hierarchy.from_levels([(row[0] + "!", *row[1:]) for row in other.rows()])
    fitted = gate.recoding.fitted
    first, *rest = fitted.frequencies.dictionaries
    frequencies = replace(fitted.frequencies, dictionaries=(replace(first, hierarchy=other), *rest))
    liar = replace(gate.recoding, fitted=Fitted(frequencies, fitted.assignment, fitted.workspace))
    names = {"North": "Nord", **{city: city + "!" for city in CITIES}}
    rows = [{**row, "city": names.get(row["city"], row["city"])} for row in gate.rows()]
    assert rows != gate.rows()
    return Attempt(rows, liar)


def claiming_drops(gate: Gate) -> Attempt:
    fitted = gate.recoding.fitted
    frequencies = replace(fitted.frequencies, dropped_nulls=2, dropped_unseen=0)
    return Attempt(recoding=replace(gate.recoding, fitted=Fitted(frequencies, fitted.assignment, fitted.workspace)))


def extra_column(gate: Gate) -> Attempt:
    rows = [{**row, "row_id": number} for number, row in enumerate(gate.rows())]
    return Attempt(rows, lying(gate.recoding, published=[*gate.recoding.published, "row_id"]), columns={"row_id": "long"})


FAULTS: Faults = {
    "a class split by an invisible character": (
        "truthfulness", one_changed(lambda row: True, "city", lambda text: text + "\u2060")),
    "null as the text null": ("truthfulness", one_changed(lambda row: row["illness"] is None, "illness", lambda _: "null")),
    "sensitive values exchanged inside a class": ("truthfulness", swapped_inside),
    "a row moved to another class": ("truthfulness", moved),
    "a class with one sensitive value": ("distinct 2-diversity", one_illness),
    "a zero with a sign": ("truthfulness", one_changed(lambda row: row["dose"] == 0, "dose", lambda dose: -dose)),
    "one more column": ("columns", extra_column),
    "a tuple without assignment": ("truthfulness", assigned(without_one)),
    "an assignment to other levels": ("truthfulness", assigned(finer)),
    "a hierarchy that is not the job's": ("truthfulness", other_hierarchy),
    "persons with several rows": (
        "persons", lambda gate: Attempt(source=gate.source.withColumn("row_id", (F.col("row_id") / 2).cast("long")))),
    "a class left out": ("row accounting", left_out),
    "a label with a space behind it": ("truthfulness", one_changed(lambda row: True, "zip", lambda text: text + " ")),
    "a label replaced by null": ("truthfulness", one_changed(lambda row: True, "city", lambda _: None)),
    "sensitive values exchanged between classes": ("truthfulness", swapped_across),
    "a row with its raw values": ("3-anonymity", a_class_apart),
    "one row doubled and another lost": ("truthfulness", doubled),
    "a kept number changed in its last bit": (
        "truthfulness", one_changed(lambda row: row["dose"] == 0.1, "dose", lambda dose: nextafter(dose, -inf))),
    "rows in another order than the key's": (
        "row order", lambda gate: Attempt(sorted(gate.rows(), key=lambda row: (row["dose"], repr(row))), ordered=False)),
    "a tuple assigned twice": ("truthfulness", assigned(lambda frame: frame.union(frame.limit(1)))),
    "an assignment to a level that does not exist": (
        "truthfulness", assigned(lambda frame: frame.withColumn(FIRST_LEVEL, F.lit(7)))),
    "an assignment of other leaves": (
        "truthfulness", assigned(lambda frame: frame.withColumn(FIRST_LEAF, F.lit(3) - F.col(FIRST_LEAF)))),
    "dropped rows claimed otherwise": ("row accounting", claiming_drops),
    "nothing at all": ("3-anonymity", lambda gate: Attempt([])),
}  # fmt: skip


def test_the_honest_stage_passes(gate: Gate) -> None:
    assert gate.failed(Attempt()) == [] and gate.failed(Attempt(gate.rows())) == []


@pytest.mark.parametrize("name", tried(FAULTS))
def test_the_gate_refuses(gate: Gate, name: str) -> None:
    check, fault = FAULTS[name]
    assert check in gate.failed(fault(gate))


def test_a_run_publishes_nothing(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = refused_by_a_run(gate, monkeypatch, without_a_row)
    assert failed == ["truthfulness", "row accounting"] or failed == ["3-anonymity", "truthfulness", "row accounting"]
