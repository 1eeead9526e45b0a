"""Faults planted between the fit of `relational_transaction` and its audit: the gate refuses each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf, nextafter
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import LINK
from anon_spark.errors import ConfigurationError
from tests.families.gate import (
    Attempt,
    Fault,
    Faults,
    Gate,
    Record,
    lying,
    one_changed,
    refused_by_a_run,
    tried,
    without_a_row,
)
from tests.town import CITIES, Town

pytestmark = pytest.mark.long  # the test command plants faults for the verifiers: tests/audit
ROWS, WARES, SECRET = 24, "abcdef", "shame"
PROMISE = "(3,2^2)-diversity"
JOB: dict[str, Any] = {
    "family": "relational_transaction",
    "columns": {
        "person": "person_id",
        "identifiers": ["name"],
        "quasi_identifiers": {"income": {}, "city": {"levels": "hierarchies/city.csv"}},
        "transactions": ["goods"],
        "sensitive_items": {"goods": [SECRET]},
        "keep": ["weight"],
    },
    "privacy": {"k": 3, "m": 2, "l": 2},
    "relational_transaction": {"delta": 0.9, "items": {"levels": "hierarchies/items.csv"}},
    "nulls": "suppress",
}


def shoppers() -> pa.Table:
    draw = Random(7)
    numbers = range(ROWS + 1)
    goods = [sorted(draw.sample(WARES, 2)) + [SECRET] * (number % 6 == 0) for number in range(ROWS)]
    return pa.table(
        {
            "person_id": [7000 + number for number in numbers],
            "name": [f"Inhabitant-{number}" for number in numbers],
            "income": [float(number // 6 * 100 + number % 3 * 10) for number in numbers],
            "city": [list(CITIES)[number // 6 % 4] for number in numbers],
            "goods": [*goods, None],
            "weight": [(0.0, 0.1, 2.5)[number % 3] for number in numbers],
        }
    )


@pytest.fixture(scope="module")
def gate(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("tamper-rt")
    town = Town.founded(spark, folder / "town", shoppers())
    levels = [f"{ware};{'first' if ware < 'd' else 'second'};*" for ware in WARES]
    (town.folder / "hierarchies" / "items.csv").write_text("\n".join(levels) + "\n", encoding="utf-8")
    made = Gate.of(town, str(folder / "gate"), **JOB)
    yield made
    made.workspace.close()


def ends(lo: Callable[[float], float], hi: Callable[[float], float]) -> Callable[[Record], Record]:
    return lambda income: {"lo": lo(income["lo"]), "hi": hi(income["hi"])}


def everywhere(change: Callable[[Record], None], where: Callable[[Record], bool] = lambda row: True) -> Fault:
    """The same change of all rows of the first class for which something holds."""

    def attempt(gate: Gate) -> Attempt:
        rows = gate.rows()
        first = next(row for row in rows if where(row))
        label = first["city"], dict(first["income"])
        before = repr(rows)
        for row in rows:
            if (row["city"], row["income"]) == label:
                change(row)
        assert repr(rows) != before, "no fault was planted"
        return Attempt(rows)

    return attempt


def wider(row: Record) -> None:
    row["income"] = {"lo": row["income"]["lo"], "hi": row["income"]["hi"] + 1}


def with_item(name: str) -> Callable[[Record], None]:
    """One more name in every generalized item."""

    def change(row: Record) -> None:
        row["goods"] = sorted(sorted([*item, name]) if at == 0 else item for at, item in enumerate(row["goods"]))

    return change


def regrouped(row: Record) -> None:
    """Items that are generalized as no node of the hierarchy is."""
    row["goods"] = [sorted({*(name for item in row["goods"] for name in item), "a", "f"} - {"c"})]


def swapped(column: str) -> Fault:
    def attempt(gate: Gate) -> Attempt:
        rows = gate.rows()
        one, other = next((a, b) for a in rows for b in rows if a["city"] == b["city"] and a[column] != b[column])
        one[column], other[column] = other[column], one[column]
        return Attempt(rows)

    return attempt


def doubled(gate: Gate) -> Attempt:
    rows = gate.rows()
    return Attempt([rows[0], *rows[:-1]])


def links_exchanged(gate: Gate) -> Attempt:
    rows = gate.rows()
    one, other = next((a, b) for a in rows for b in rows if a["city"] != b["city"] or a["income"] != b["income"])
    one[LINK], other[LINK] = other[LINK], one[LINK]
    return Attempt(rows)


def linked(spoil: Callable[[DataFrame], DataFrame], rows: Callable[[Record], Record] | None = None) -> Fault:
    """Other records than the source's; with `rows`, the release agrees with them."""

    def attempt(gate: Gate) -> Attempt:
        honest = gate.recoding.evidence()["linked"]
        liar = lying(gate.recoding, evidence=lambda: {"linked": spoil(honest)})
        return Attempt(None if rows is None else [rows(row) for row in gate.rows()], liar)

    return attempt


def other_hierarchy(gate: Gate) -> Attempt:
    """Labels of another hierarchy than the job's, and attributes that know them."""
    names = {"North": "Nord", "South": "Sud", "*": "anywhere", **{city: city + "!" for city in CITIES}}
    return Attempt([{**row, "city": names[row["city"]]} for row in gate.rows()])


def extra_column(gate: Gate) -> Attempt:
    return Attempt(gate.rows(), lying(gate.recoding, published=[*gate.recoding.published, LINK]))


def claiming_drops(gate: Gate) -> Attempt:
    return Attempt(recoding=replace(gate.recoding, records=replace(gate.recoding.records, dropped_nulls=0)))


def of_one(row: Record) -> bool:
    return SECRET not in row["goods_sensitive"] and bool(row["goods"])


FAULTS: Faults = {
    "a hierarchy that is not the job's": ("truthfulness", other_hierarchy),
    "the ends of a range exchanged": (
        PROMISE, one_changed(lambda row: row["income"]["lo"] < row["income"]["hi"], "income",
                             lambda income: {"lo": income["hi"], "hi": income["lo"]})),
    "a range wider than its class": ("truthfulness", everywhere(wider)),
    "a range with a signed zero": (
        PROMISE, one_changed(lambda row: row["income"]["lo"] == 0, "income", ends(lambda lo: -lo, lambda hi: hi))),
    "an item in two generalized items": (
        PROMISE, one_changed(of_one, "goods", lambda goods: sorted([*goods, goods[0][:1]]))),
    "a foreign name in a generalized item": ("truthfulness", everywhere(with_item("Inhabitant-3"), of_one)),
    "a sensitive item hidden among others": ("truthfulness", everywhere(with_item(SECRET), of_one)),
    "items grouped as no node of the hierarchy": ("truthfulness", everywhere(regrouped, of_one)),
    "sensitive items exchanged": ("truthfulness", swapped("goods_sensitive")),
    "a zero with a sign": ("truthfulness", one_changed(lambda row: row["weight"] == 0, "weight", lambda weight: -weight)),
    "records and rows that agree on other values": (
        "truthfulness", linked(lambda frame: frame.withColumn("weight", F.col("weight") + 1),
                               lambda row: {**row, "weight": row["weight"] + 1})),
    "one more column": ("columns", extra_column),
    "a label with a space behind it": ("truthfulness", one_changed(lambda row: True, "city", lambda text: text + " ")),
    "a label that is not above the value": ("truthfulness", one_changed(lambda row: True, "city", lambda _: "Nowhere")),
    "a range that does not cover": ("truthfulness", one_changed(lambda row: True, "income", ends(lambda _: 5e5, lambda _: 6e5))),
    "a range without an end": (PROMISE, one_changed(lambda row: True, "income", lambda income: {**income, "hi": None})),
    "a generalized item that stands for nothing": (PROMISE, one_changed(of_one, "goods", lambda goods: [[], *goods])),
    "generalized items in another order": (
        PROMISE, one_changed(lambda row: any(len(item) > 1 for item in row["goods"]), "goods",
                             lambda goods: [item[::-1] for item in goods])),
    "an item named twice": (PROMISE, one_changed(of_one, "goods", lambda goods: [[goods[0][0], *goods[0]], *goods[1:]])),
    "an item less": ("truthfulness", one_changed(of_one, "goods", lambda goods: goods[1:])),
    "kept values exchanged": ("truthfulness", swapped("weight")),
    "a kept number changed in its last bit": (
        "truthfulness", one_changed(lambda row: row["weight"] == 0.1, "weight", lambda weight: nextafter(weight, inf))),
    "one row doubled and another lost": ("truthfulness", doubled),
    "rows of other records": ("truthfulness", links_exchanged),
    "records that are not the source's": (
        "truthfulness", linked(lambda frame: frame.withColumn("income", F.col("income") + 0.5))),
    "a record twice in the evidence": ("truthfulness", linked(lambda frame: frame.union(frame.limit(1)))),
    "rows in another order than the key's": (
        "row order", lambda gate: Attempt(sorted(gate.rows(), key=lambda row: row[LINK]), ordered=False)),
    "persons with several rows": ("persons", lambda gate: Attempt(source=gate.source.withColumn("person_id", F.lit(7)))),
    "dropped rows claimed otherwise": ("row accounting", claiming_drops),
}  # fmt: skip


def test_the_honest_stage_passes_and_is_not_saved(gate: Gate, tmp_path: Any) -> None:
    assert gate.failed(Attempt()) == [] and gate.failed(Attempt(gate.rows())) == []
    with pytest.raises(ConfigurationError, match="cannot be saved"):
        gate.recoding.save(tmp_path / "recoding.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", tried(FAULTS))
def test_the_gate_refuses(gate: Gate, name: str) -> None:
    check, fault = FAULTS[name]
    assert check in gate.failed(fault(gate))


def test_a_run_publishes_nothing(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = refused_by_a_run(gate, monkeypatch, without_a_row)
    assert {"truthfulness", "row accounting"} <= set(failed)
