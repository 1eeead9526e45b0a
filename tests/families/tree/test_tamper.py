"""Faults planted between the fit of `tree` and its audit: the gate refuses each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import LINK
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
from tests.town import Town

pytestmark = pytest.mark.long  # the test command plants faults for the verifiers: tests/audit

Paths = list[list[dict[str, str | None]]]
PROMISE = "3^(2,1)-anonymity"
LEVELS = {"city": ["Aldorf;North;*", "Bexley;North;*", "Carden;South;*"], "goods": ["tea;drink;*", "rum;drink;*", "rice;food;*"]}
JOB: dict[str, Any] = {
    "family": "tree",
    "columns": {
        "person": "person_id",
        "identifiers": ["name"],
        "tree": {
            "city": {
                "field": "trips.city",
                "levels": "hierarchies/city.csv",
                "children": {"good": {"field": "trips.goods", "levels": "hierarchies/goods.csv"}},
            }
        },
    },
    "privacy": {"k": 3, "m": 2, "n": 1},
    "on_unseen": "suppress",
    "tree": {"cuts": "full"},  # of partial cuts the audit believes no claim: it takes the labels of the release
}


def travellers() -> pa.Table:
    """Eighteen persons who bought tea in Aldorf and rum in Bexley, two the other way round; one has two rows, one is dropped."""
    usual = [{"city": "Aldorf", "goods": ["tea"]}, {"city": "Bexley", "goods": ["rum"]}]
    other = [{"city": "Aldorf", "goods": ["rum"]}, {"city": "Bexley", "goods": ["tea"]}]
    rows: list[dict[str, Any]] = [{"person_id": number, "trips": usual} for number in range(17)]
    rows += [{"person_id": 17, "trips": usual[:1]}, {"person_id": 17, "trips": usual[1:]}]
    rows += [{"person_id": number, "trips": other} for number in (18, 19)]
    rows += [{"person_id": 20, "trips": [{"city": "Atlantis", "goods": ["gold"]}]}]
    return pa.Table.from_pylist([{**row, "name": f"Inhabitant-{row['person_id']}"} for row in rows])


@pytest.fixture(scope="module")
def gate(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("tamper-tree")
    town = Town.founded(spark, folder / "town", travellers())
    for name, lines in LEVELS.items():
        (town.folder / "hierarchies" / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = Gate.of(town, str(folder / "gate"), **JOB)
    assert made.recoding.pairs and not made.recoding.has_nested, "relations were to be cut"
    yield made
    made.workspace.close()


def node(of: str, value: str | None) -> dict[str, str | None]:
    return {"class": of, "value": value}


def in_order(paths: Paths) -> Paths:
    return sorted(paths, key=lambda path: [(one["class"] or "", one["value"] or "") for one in path])


def related(row: Record) -> bool:
    """Records with a relation left."""
    return any(len(path) > 1 for path in row["paths"])


def parted(row: Record) -> bool:
    return not related(row)


def relabelled(change: Callable[[dict[str, str | None]], dict[str, str | None]]) -> Callable[[Paths], Paths]:
    """Another label for the first node."""
    return lambda paths: in_order([[change(one) if at == 0 else one for at, one in enumerate(path)] for path in paths])


def without_parent(paths: Paths) -> Paths:
    """The first relation disassociated, which nobody asked for."""
    at = next(at for at, path in enumerate(paths) if len(path) > 1)
    return in_order([*paths[:at], paths[at][:1], paths[at][1:], *paths[at + 1 :]])


def together(paths: Paths) -> Paths:
    """A relation that was to be cut, put together again."""
    labels = [one for path in paths for one in path]
    city = next(one for one in labels if one["class"] == "city")
    good = next(one for one in labels if one["class"] == "good")
    rest = [[one] for one in labels if one not in (city, good)]
    return in_order([[city, good], *rest])


def doubled(gate: Gate) -> Attempt:
    rows = gate.rows()
    return Attempt([rows[0], *rows[:-1]])


def links_exchanged(gate: Gate) -> Attempt:
    rows = gate.rows()
    one, other = next((a, b) for a in rows for b in rows if a["paths"] != b["paths"])
    one[LINK], other[LINK] = other[LINK], one[LINK]
    return Attempt(rows)


def linked(spoil: Callable[[DataFrame], DataFrame], paths: Callable[[Paths], Paths] | None = None) -> Fault:
    """Other records than the source's; with `paths`, the release agrees with them."""

    def attempt(gate: Gate) -> Attempt:
        honest = gate.recoding.evidence()["linked"]
        liar = lying(gate.recoding, evidence=lambda: {"linked": spoil(honest)})
        rows = None if paths is None else [{**row, "paths": paths(row["paths"])} for row in gate.rows()]
        return Attempt(rows, liar)

    return attempt


def elsewhere(frame: DataFrame) -> DataFrame:
    """All trips to Carden."""
    return frame.withColumn("trips", F.expr("transform(trips, t -> named_struct('city', 'Carden', 'goods', t.goods))"))


def rows_as_records(frame: DataFrame) -> DataFrame:
    """Every row a record of its own: a person with two rows is two."""
    return frame.withColumn(LINK, F.monotonically_increasing_id() + 1000)


def claiming(gate: Gate, **claims: Any) -> Attempt:
    return Attempt(recoding=lying(gate.recoding, **claims))


def coarser_cut(gate: Gate) -> Attempt:
    """A cut that nobody applied."""
    return claiming(gate, cut=[("city", "city"), ("good", "good")], pairs=[], published=["paths"])


def other_hierarchy(gate: Gate) -> Attempt:
    """Labels of another hierarchy than the job's."""
    renamed = relabelled(lambda one: node(str(one["class"]), f"{one['value']}!"))
    rows = [{**row, "paths": renamed(row["paths"])} for row in gate.rows()]
    cut = [(name, f"{value}!") for name, value in gate.recoding.cut]
    return Attempt(rows, lying(gate.recoding, cut=cut))


def extra_column(gate: Gate) -> Attempt:
    return Attempt(gate.rows(), lying(gate.recoding, published=[*gate.recoding.published, LINK]))


def claiming_drops(gate: Gate) -> Attempt:
    return claiming(gate, records=replace(gate.recoding.records, dropped_unseen=0))


def valued(value: Callable[[str | None], str | None]) -> Callable[[Paths], Paths]:
    return relabelled(lambda one: node(str(one["class"]), value(one["value"])))


FAULTS: Faults = {
    "a label with an invisible character": ("truthfulness", one_changed(related, "paths", valued(lambda text: f"{text}\u200b"))),
    "null as the text null": ("truthfulness", one_changed(related, "paths", valued(lambda _: "null"))),
    "a path with a missing parent": ("truthfulness", one_changed(related, "paths", without_parent)),
    "a disassociated pair left together": ("truthfulness", one_changed(parted, "paths", together)),
    "a path twice": (PROMISE, one_changed(related, "paths", lambda paths: [paths[0], *paths])),
    "a path without nodes": (PROMISE, one_changed(related, "paths", lambda paths: [[], *paths])),
    "rows of other records": ("truthfulness", links_exchanged),
    "records and rows that agree on another city": (
        "truthfulness", linked(elsewhere, relabelled(lambda one: node("city", "Carden") if one["class"] == "city" else one))),
    "persons put together wrongly": ("truthfulness", linked(rows_as_records)),
    "a cut that is none": ("readable", lambda gate: claiming(gate, cut=gate.recoding.cut[1:])),
    "a cut relation not told": ("truthfulness", lambda gate: claiming(gate, pairs=[], published=["paths"])),
    "one more column": ("columns", extra_column),
    "a label with a space behind it": ("truthfulness", one_changed(related, "paths", valued(lambda text: f"{text} "))),
    "a label replaced by another": ("truthfulness", one_changed(related, "paths", valued(lambda _: "Carden"))),
    "a label replaced by null": ("truthfulness", one_changed(related, "paths", valued(lambda _: None))),
    "a path less": ("truthfulness", one_changed(related, "paths", lambda paths: paths[1:])),
    "paths in another order": (PROMISE, one_changed(related, "paths", lambda paths: paths[::-1])),
    "a record without paths": (PROMISE, one_changed(related, "paths", lambda _: [])),
    "a path upside down": ("truthfulness", one_changed(related, "paths", lambda paths: in_order([path[::-1] for path in paths]))),
    "one row doubled and another lost": ("truthfulness", doubled),
    "records that are not the source's": ("truthfulness", linked(elsewhere)),
    "another cut than was applied": ("truthfulness", coarser_cut),
    "a relation told as cut that is left": (
        "truthfulness", lambda gate: claiming(gate, pairs=[*gate.recoding.pairs, (("city", "Aldorf"), ("good", "tea"))])),
    "a hierarchy that is not the job's": ("readable", other_hierarchy),
    "rows in another order than the key's": (
        "row order", lambda gate: Attempt(sorted(gate.rows(), key=lambda row: (parted(row), row[LINK]))[::-1], ordered=False)),
    "dropped records claimed otherwise": ("row accounting", claiming_drops),
    "nothing at all": (PROMISE, lambda gate: Attempt([])),
}  # fmt: skip


def test_the_honest_stage_passes(gate: Gate) -> None:
    assert gate.failed(Attempt()) == [] and gate.failed(Attempt(gate.rows())) == []


@pytest.mark.parametrize("name", tried(FAULTS))
def test_the_gate_refuses(gate: Gate, name: str) -> None:
    check, fault = FAULTS[name]
    assert check in gate.failed(fault(gate))


def test_a_run_publishes_nothing(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = refused_by_a_run(gate, monkeypatch, without_a_row)
    assert {"truthfulness", "row accounting"} <= set(failed)
