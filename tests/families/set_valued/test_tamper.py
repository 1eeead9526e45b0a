"""Faults planted between the fit of `set_valued` and its audit: the gate refuses each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, nextafter
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from anon_spark.columns import BASE, BLOCK, CHOSEN, DRAW, LINK, MAX_ERRORS, PART, ROUND, SLOT, UNCERTAIN
from anon_spark.errors import ConfigurationError
from anon_spark.families.set_valued import pipeline
from anon_spark.families.set_valued.pipeline import SetValuedPipeline
from anon_spark.primitives.ordering import key_frame
from tests.families.gate import (
    KEY,
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
from tests.town import Town

pytestmark = pytest.mark.long  # the test command plants faults for the verifiers: tests/audit
ROWS, ITEMS, DOSES = 24, "abcdefgh", (0.0, 0.1, 2.5, None)
JOB: dict[str, Any] = {
    "family": "set_valued",
    "columns": {"person": "person_id", "identifiers": ["name"], "items": "basket", "sensitive": ["dose"]},
    "privacy": {"k": 3},
    "set_valued": {"order": "gray"},
    "nulls": "suppress",
}


def baskets() -> pa.Table:
    draw = Random(3)
    sets = [sorted(draw.sample(ITEMS, draw.randint(2, 5))) for _ in range(ROWS)]
    numbers = range(ROWS + 1)
    return pa.table(
        {
            "person_id": [7000 + number for number in numbers],
            "name": [f"Inhabitant-{number}" for number in numbers],
            "basket": [*sets, None],
            "dose": pa.array([DOSES[number % 4] for number in numbers], pa.float64()),
        }
    )


@pytest.fixture(scope="module")
def gate(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("tamper-set_valued")
    made = Gate.of(Town.founded(spark, folder / "town", baskets()), str(folder / "gate"), **JOB)
    yield made
    made.workspace.close()


def some(column: str) -> Callable[[Record], bool]:
    """Rows with two or more items in a list."""
    return lambda row: len(row[column]) > 1


def one_more(row: Record) -> bool:
    return bool(row[MAX_ERRORS] < len(row[UNCERTAIN]))


def swapped(gate: Gate) -> Attempt:
    rows = gate.rows()
    one, other = next((a, b) for a in rows for b in rows if a["dose"] != b["dose"])
    one["dose"], other["dose"] = other["dose"], one["dose"]
    return Attempt(rows)


def slots_exchanged(gate: Gate) -> Attempt:
    """Two rows stand in each other's place, whole but for the sensitive value."""
    rows = gate.rows()
    one, other = next((a, b) for a in rows for b in rows if (a[BASE], a[UNCERTAIN]) != (b[BASE], b[UNCERTAIN]))
    one[SLOT], other[SLOT] = other[SLOT], one[SLOT]
    one["dose"], other["dose"] = other["dose"], one["dose"]
    return Attempt(rows)


def doubled(gate: Gate) -> Attempt:
    rows = gate.rows()
    return Attempt([rows[0], *rows[:-1]])


def evidence(**spoil: Callable[[DataFrame], DataFrame]) -> Fault:
    def attempt(gate: Gate) -> Attempt:
        honest = gate.recoding.evidence()
        spoiled: Mapping[str, DataFrame] = {name: spoil[name](one) if name in spoil else one for name, one in honest.items()}
        return Attempt(recoding=lying(gate.recoding, evidence=lambda: spoiled))

    return attempt


def next_round(edges: DataFrame) -> DataFrame:
    """Of every part the round after the one that was drawn."""
    taken = F.max(F.when(F.col(CHOSEN), F.col(ROUND))).over(Window.partitionBy(BLOCK, PART))
    return edges.withColumn(CHOSEN, F.col(ROUND) == F.pmod(taken + 1, F.lit(3)))


def an_item_nobody_has(gate: Gate) -> Attempt:
    """Records and rows that agree with each other, and not with the source."""
    honest = gate.recoding.evidence()
    more = F.array_append("basket", "z")
    liar = lying(gate.recoding, evidence=lambda: {**honest, "linked": honest["linked"].withColumn("basket", more)})
    return Attempt([{**row, BASE: [*row[BASE], "z"]} for row in gate.rows()], liar)


def other_labels_everywhere(gate: Gate) -> Attempt:
    """Every sensitive value one larger, in the records of the graph and in the release."""
    honest = gate.recoding.evidence()
    liar = lying(gate.recoding, evidence=lambda: {**honest, "linked": honest["linked"].withColumn("dose", F.col("dose") + 1)})
    rows = [{**row, "dose": None if row["dose"] is None else row["dose"] + 1} for row in gate.rows()]
    return Attempt(rows, liar)


def known_key(gate: Gate) -> Attempt:
    """An honest release with a draw that somebody can repeat."""
    other = SetValuedPipeline.of(gate.prepared.job, None).fit(gate.source, gate.workspace, "0", None)  # type: ignore[arg-type]
    staged = other.staged(gate.source, key_frame(gate.town.spark, KEY))
    return Attempt([row.asDict() for row in staged.collect()], other)


def always_the_same(gate: Gate) -> Attempt:
    """An assignment that is not drawn: who knows the method knows it."""
    honest, key = gate.recoding.drawn_again, gate.recoding.key

    def again(keys: Sequence[str]) -> DataFrame:
        numbers = F.explode(F.sequence(F.lit(0), F.lit(len(keys) - 1))).alias(DRAW)
        found: DataFrame = honest([key]).drop(DRAW).select("*", numbers)
        return found

    return Attempt(recoding=lying(gate.recoding, drawn_again=again))


def extra_column(gate: Gate) -> Attempt:
    return Attempt(gate.rows(), lying(gate.recoding, published=[*gate.recoding.published, SLOT]))


def claiming_drops(gate: Gate) -> Attempt:
    return Attempt(recoding=replace(gate.recoding, records=replace(gate.recoding.records, dropped_nulls=0)))


FAULTS: Faults = {
    "an item too many uncertain": (
        "compatibility", one_changed(some(UNCERTAIN), UNCERTAIN, lambda items: sorted({*items, "z"}))),
    "one error too many allowed": ("compatibility", one_changed(one_more, MAX_ERRORS, lambda errors: errors + 1)),
    "an item named twice": ("fields", one_changed(some(UNCERTAIN), UNCERTAIN, lambda items: [items[0], *items])),
    "sensitive values exchanged": ("labels", swapped),
    "a zero with a sign": ("labels", one_changed(lambda row: row["dose"] == 0, "dose", lambda dose: -dose)),
    "one row doubled and another lost": ("graph", doubled),
    "an edge too few": ("graph", evidence(edges=lambda edges: edges.orderBy(CHOSEN, LINK, ROUND).offset(1))),
    "another round chosen": ("draw", evidence(edges=next_round)),
    "records and rows that agree on an item": ("records", an_item_nobody_has),
    "a draw with a known key": ("draw", known_key),
    "an assignment that is not drawn": ("link attack", always_the_same),
    "one more column": ("columns", extra_column),
    "an item taken from the base": ("compatibility", one_changed(some(BASE), BASE, lambda items: items[1:])),
    "an item replaced by another": ("compatibility", one_changed(some(BASE), BASE, lambda items: sorted([*items[1:], "y"]))),
    "an item with an invisible character": (
        "compatibility", one_changed(some(BASE), BASE, lambda items: [items[0] + "\u200b", *items[1:]])),
    "an uncertain item kept back": ("compatibility", one_changed(some(UNCERTAIN), UNCERTAIN, lambda items: items[1:])),
    "one error too few allowed": (
        "compatibility", one_changed(lambda row: row[MAX_ERRORS] > 1, MAX_ERRORS, lambda errors: errors - 1)),
    "more errors than uncertain items": ("fields", one_changed(lambda row: True, MAX_ERRORS, lambda _: 99)),
    "a list in another order": ("fields", one_changed(some(BASE), BASE, lambda items: items[::-1])),
    "rows in each other's place": ("compatibility", slots_exchanged),
    "a sensitive number changed in its last bit": (
        "labels", one_changed(lambda row: row["dose"] == 0.1, "dose", lambda dose: nextafter(dose, inf))),
    "null as not a number": ("labels", one_changed(lambda row: row["dose"] is None, "dose", lambda _: float("nan"))),
    "no record chosen": ("graph", evidence(edges=lambda edges: edges.withColumn(CHOSEN, F.lit(False)))),
    "records that are not the source's": (
        "records", evidence(linked=lambda linked: linked.withColumn("basket", F.slice("basket", 1, 2)))),
    "records and rows that agree on other values": ("records", other_labels_everywhere),
    "rows in another order than the key's": (
        "row order", lambda gate: Attempt(sorted(gate.rows(), key=lambda row: (row[BLOCK], row[SLOT])), ordered=False)),
    "persons with several rows": (
        "persons", lambda gate: Attempt(source=gate.source.withColumn("person_id", F.lit(7)))),
    "dropped rows claimed otherwise": ("row accounting", claiming_drops),
}  # fmt: skip


def test_the_honest_stage_passes_and_is_not_saved(gate: Gate, tmp_path: Any) -> None:
    assert gate.failed(Attempt()) == [] and gate.failed(Attempt(gate.rows())) == []
    with pytest.raises(ConfigurationError, match="cannot be saved"):
        gate.recoding.save(tmp_path / "recoding.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", tried(FAULTS))
def test_the_gate_refuses(gate: Gate, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check, fault = FAULTS[name]
    if check != "link attack":  # which needs its draws, and is most of the work
        monkeypatch.setattr(pipeline, "DRAWS", 8)
    assert check in gate.failed(fault(gate))


def test_a_run_publishes_nothing(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "DRAWS", 8)
    failed = refused_by_a_run(gate, monkeypatch, without_a_row)
    assert {"graph", "compatible rows", "row accounting"} <= set(failed)
