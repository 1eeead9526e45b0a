"""Faults planted between the fit of `lattice` and its audit: the gate refuses each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf, nextafter
from typing import Any
from unicodedata import normalize

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anon_spark.families.lattice.recoding import Fitted
from anon_spark.model.hierarchy import Hierarchy
from tests.families.gate import Attempt, Faults, Gate, lying, one_changed, refused_by_a_run, tried, without_a_row
from tests.families.people import CITIES, JOB, ZIPS, people
from tests.town import Town

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def gate(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("tamper-lattice")
    town = Town.founded(spark, folder / "town", people())
    asked: dict[str, Any] = {"privacy": {"k": 3, "suppression": 0.4}, "lattice": {"choose": {"node": [1, 3]}}}
    asked["columns__person"] = "person_id"
    zips = [f"{zip_};" + ";".join(zip_[: 5 - stars] + "*" * stars for stars in range(1, 5)) + ";*" for zip_ in ZIPS]
    (town.folder / "hierarchies" / "zip.csv").write_text("\n".join(zips) + "\n", encoding="utf-8")
    asked["columns__quasi_identifiers__zip"] = {"levels": "hierarchies/zip.csv"}  # a mask is in the gate of mst
    made = Gate.of(town, str(folder / "gate"), **JOB | asked)
    yield made
    made.workspace.close()


def swapped_across(gate: Gate) -> Attempt:
    rows = gate.rows()
    north = next(row for row in rows if row["city"] == "North" and row["illness"] == "flu")
    south = next(row for row in rows if row["city"] == "South" and row["illness"] == "gout")
    north["illness"], south["illness"] = south["illness"], north["illness"]
    return Attempt(rows)


def swapped_inside(gate: Gate) -> Attempt:
    rows = [row for row in gate.rows() if row["city"] == "North"]
    one = rows[0]
    other = next(row for row in rows if row["illness"] != one["illness"] and row["dose"] != one["dose"])
    others = [row for row in gate.rows() if row["city"] != "North"]
    one["illness"], other["illness"] = other["illness"], one["illness"]
    return Attempt([*rows, *others])


def doubled(gate: Gate) -> Attempt:
    rows = gate.rows()
    one = next(row for row in rows if row["city"] == "North")
    lost = next(row for row in rows if row["city"] == "North" and row["illness"] != one["illness"])
    return Attempt([*(row for row in rows if row is not lost), dict(one)])


def republished(zip_: str, city: str, times: int) -> Attempt:
    return Attempt([{"city": city, "zip": zip_, "illness": "flu", "dose": 1.5}] * times)


def with_more(extra: Attempt, gate: Gate) -> Attempt:
    assert extra.rows is not None
    return Attempt([*gate.rows(), *extra.rows])


def a_person_as_a_crowd(gate: Gate) -> Attempt:
    """Four rows of one person, published and claimed as a class of four."""
    source = gate.source.where("zip = '45001'").collect()
    rows = [{"city": "North", "zip": "45***", "illness": row.illness, "dose": row.dose} for row in source]
    chosen = replace(gate.recoding.chosen, classes=3, suppressed=2)
    return Attempt([*gate.rows(), *rows], lying(gate.recoding, chosen=chosen))


def extra_column(gate: Gate) -> Attempt:
    rows = [{**row, "row_id": number} for number, row in enumerate(gate.rows())]
    published = [*gate.recoding.published, "row_id"]
    return Attempt(rows, lying(gate.recoding, published=published), columns={"row_id": "long"})


def identifier_renamed(gate: Gate) -> Attempt:
    return Attempt([{**row, "illness": f"Inhabitant-{at}"} for at, row in enumerate(gate.rows())])


def other_hierarchy(gate: Gate) -> Attempt:
    """Another level table, with which stage and evidence agree."""
    other = Hierarchy.from_levels([(city, region.replace("North", "Nord"), "*") for city, region in CITIES.items()])
    fitted = gate.recoding.fitted
    first, *rest = fitted.frequencies.dictionaries
    frequencies = replace(fitted.frequencies, dictionaries=(replace(first, hierarchy=other), *rest))
    liar = replace(gate.recoding, fitted=Fitted(frequencies, fitted.counting, fitted.workspace))
    rows = [{**row, "city": "Nord" if row["city"] == "North" else row["city"]} for row in gate.rows()]
    return Attempt(rows, liar)


def claiming(gate: Gate, **claims: int) -> Attempt:
    return Attempt(recoding=lying(gate.recoding, chosen=replace(gate.recoding.chosen, **claims)))


def on_levels(gate: Gate, level: int) -> Attempt:
    return Attempt(recoding=lying(gate.recoding, levels={"city": 1, "zip": level}))


def claiming_drops(gate: Gate) -> Attempt:
    fitted = gate.recoding.fitted
    frequencies = replace(fitted.frequencies, dropped_nulls=0, dropped_unseen=2)
    return Attempt(recoding=replace(gate.recoding, fitted=Fitted(frequencies, fitted.counting, fitted.workspace)))


def in_source_order(gate: Gate) -> Attempt:
    rows = sorted(gate.rows(), key=lambda row: (row["city"], row["dose"], str(row["illness"])))
    return Attempt(rows, ordered=False)


FAULTS: Faults = {
    "a class split by an invisible character": (
        "truthfulness", one_changed(lambda row: row["city"] == "North", "city", lambda label: label + "\u200b")),
    "a sensitive value in another Unicode form": (
        "truthfulness", one_changed(lambda row: row["illness"] == "gripp\u00e9", "illness", lambda text: normalize("NFD", text))),
    "null as the text null": (
        "truthfulness", one_changed(lambda row: row["illness"] is None, "illness", lambda _: "null")),
    "sensitive values exchanged between classes": ("truthfulness", swapped_across),
    "one row doubled and another lost": ("truthfulness", doubled),
    "one person's rows as a crowd": ("3-anonymity", a_person_as_a_crowd),
    "a zero with a sign": ("truthfulness", one_changed(lambda row: row["dose"] == 0, "dose", lambda dose: -dose)),
    "rows in another order than the key's": ("row order", in_source_order),
    "one more column": ("columns", extra_column),
    "a hierarchy that is not the job's": ("truthfulness", other_hierarchy),
    "a level that does not exist": ("readable", lambda gate: on_levels(gate, 9)),
    "fewer suppressed rows claimed": ("row accounting", lambda gate: claiming(gate, suppressed=0)),
    "a label with a space behind it": (
        "truthfulness", one_changed(lambda row: row["city"] == "South", "city", lambda label: label + " ")),
    "a label replaced by its sibling": (
        "truthfulness", one_changed(lambda row: row["city"] == "North", "city", lambda _: "South")),
    "sensitive values exchanged inside a class": ("truthfulness", swapped_inside),
    "a suppressed class republished": ("3-anonymity", lambda gate: with_more(republished("31***", "South", 2), gate)),
    "a dropped row published": ("truthfulness", lambda gate: with_more(republished("13***", "North", 1), gate)),
    "a kept number changed in its last bit": (
        "truthfulness", one_changed(lambda row: row["dose"] == 0.1, "dose", lambda dose: nextafter(dose, inf))),
    "not a number": ("truthfulness", one_changed(lambda row: row["dose"] == 1.5, "dose", lambda _: float("nan"))),
    "an identifier under another name": ("truthfulness", identifier_renamed),
    "a column less": (
        "columns", lambda gate: Attempt(
            [{name: value for name, value in row.items() if name != "dose"} for row in gate.rows()],
            lying(gate.recoding, published=["city", "zip", "illness"]))),
    "other levels than were staged": ("truthfulness", lambda gate: on_levels(gate, 2)),
    "more classes claimed": ("row accounting", lambda gate: claiming(gate, classes=3)),
    "a larger k claimed": ("row accounting", lambda gate: claiming(gate, k=7)),
    "dropped rows claimed otherwise": ("row accounting", claiming_drops),
    "nothing at all": ("3-anonymity", lambda gate: Attempt([])),
}  # fmt: skip


def test_the_honest_stage_passes(gate: Gate) -> None:
    assert gate.failed(Attempt()) == [] and gate.failed(Attempt(gate.rows())) == []


@pytest.mark.parametrize("name", tried(FAULTS))
def test_the_gate_refuses(gate: Gate, name: str) -> None:
    check, fault = FAULTS[name]
    assert check in gate.failed(fault(gate))


@pytest.mark.long
def test_a_run_publishes_nothing(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = refused_by_a_run(gate, monkeypatch, lambda staged: without_a_row(staged.withColumn("illness", F.lit("flu"))))
    assert failed == ["truthfulness", "row accounting"]
