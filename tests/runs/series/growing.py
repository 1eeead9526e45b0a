"""A table that grows, a series of releases of it by any family, and the books that an oracle keeps of both."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from anon_spark.io.ledger import CONFIRMED, PERSON, SERIES
from anon_spark.io.publication import metadata_of
from anon_spark.io.tables import history
from anon_spark.report import RunReport
from anon_spark.runs.preparation import Preparation, prepare
from anon_spark.runs.publishing import Step as Callback
from anon_spark.runs.publishing import nothing
from anon_spark.runs.run import run
from tests.oracle.series_oracle import Books, Columns, Step, ledger_hash
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
from tests.town import LEVEL_TABLES, Town

K = 3
COLUMNS = Columns("person_id", "trace", "part")
ITEMS = [f"{letter}-wares" for letter in "abcdef"]
BRANDS = ["brand-a", "brand-b", "brand-c"]
DISEASES = ["none", "asthma", "migraine"]
FIELDS: list[tuple[str, pa.DataType]] = [
    ("person_id", pa.int64()), ("name", pa.string()), ("trace", pa.int64()), ("age", pa.int64()), ("city", pa.string()),
    ("disease", pa.string()), ("basket", pa.list_(pa.string())), ("orders", pa.list_(pa.struct([("brand", pa.string())]))),
]  # fmt: skip
KINDS = pa.schema(FIELDS)
OUTPUT: dict[str, Any] = {"output__mode": "append", "output__ledger": "./ledger", "output__increment": COLUMNS.increment}
AGE, CITY = {"intervals": {"from": 20, "to": 59, "widths": [10, 20]}}, {"levels": "hierarchies/city.csv"}
PATHS = {"age": intervals(20, 59, [10, 20]), "city": paths_of([line.split(";") for line in LEVEL_TABLES["city"]])}
TOP = {"age": 3, "city": 2}
BRAND_LEVELS = [(brand, "*") for brand in BRANDS]


@dataclass(frozen=True)
class Kind:
    """A family in a series: its part of the job, and the promise of an increment, whose commit says this much of it."""

    changes: Mapping[str, Any]
    promise: Callable[[Mapping[str, Any]], Promise]
    several: bool = False  # whether new people may have several rows


def _job(family: str, columns: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    roles = {"person": COLUMNS.person, "identifiers": ["name"], **columns}
    return {"family": family, "columns": roles, "privacy": {"k": K}, "nulls": "suppress", **OUTPUT, **changes}


def _levels(metadata: Mapping[str, Any]) -> Promise:
    return FullDomain(K, metadata.get("levels") or TOP, PATHS)


QUASI = {"quasi_identifiers": {"age": AGE, "city": CITY}, "sensitive": ["disease"], "keep": [COLUMNS.trace]}
BY_LEVELS = _job("lattice", QUASI, privacy={"k": K, "suppression": 0.3})
FAMILIES: dict[str, Kind] = {
    "lattice": Kind(BY_LEVELS, _levels, several=True),
    "lattice, refit": Kind({**BY_LEVELS, "lattice": {"levels": "refit"}}, _levels, several=True),
    "mst": Kind(_job("mst", QUASI, privacy={"k": K, "l": 2}), lambda _: LocalRecoding(K, PATHS, {"disease": 2})),
    "relational_transaction": Kind(
        _job(
            "relational_transaction",
            {"quasi_identifiers": {"age": {}, "city": CITY}, "transactions": ["basket"], "keep": [COLUMNS.trace]},
            privacy={"k": K, "m": 1},
            relational_transaction={"delta": 1},  # few people lose more than the default allows, and would wait
        ),
        lambda _: Transactions(K, 1, {"city": PATHS["city"]}, ["age"], "basket"),
    ),
    "set_valued": Kind(
        _job("set_valued", {"items": "basket", "sensitive": [COLUMNS.trace]}, set_valued={"order": "gray"}),
        lambda _: Sets(K, "basket"),
    ),
    "tree": Kind(
        _job(
            "tree",
            {
                "tree": {
                    "city": {
                        "field": "city",
                        **CITY,
                        "children": {"brand": {"field": "orders.brand", "levels": "hierarchies/brand.csv"}},
                    }
                },
                "keep": [COLUMNS.trace],
            },
            privacy={"k": K, "m": 2, "n": 1},
            tree={"max_cuts": 6},
        ),
        lambda _: Trees(
            K, 2, {"city": PATHS["city"], "brand": paths_of(BRAND_LEVELS)},
            lambda row: {"city": [row["city"]], "brand": {order["brand"] for order in row["orders"]}},
        ),
    ),
}  # fmt: skip


def table_of(rows: Sequence[Row], persons: pa.DataType | None = None) -> pa.Table:
    """The rows as a table, in which persons have this type, by default that of their values."""
    kind = pa.string() if rows and isinstance(rows[0][COLUMNS.person], str) else pa.int64()
    return pa.Table.from_pylist(list(rows), schema=KINDS.set(0, pa.field(COLUMNS.person, persons or kind)))


@dataclass
class Growth:
    """An input that changes as inputs do: people come, some into small classes, come again with other rows, and go."""

    draw: Random
    several: bool
    rows: list[Row] = field(default_factory=list)
    people: int = 0
    traces: int = 0

    def row(self, person: int, **values: Any) -> Row:
        self.traces += 1
        draw = self.draw
        return {
            "person_id": person,
            "name": f"Inhabitant-{person}",
            "trace": self.traces,
            "age": draw.choice([21, 23, 25, 28, 33]),
            "city": draw.choice(["Aldorf", "Aldorf", "Bexley", "Carden"]),
            "disease": draw.choice(DISEASES),
            "basket": draw.sample(ITEMS, draw.randint(0, 3)),
            "orders": [{"brand": brand} for brand in draw.sample(BRANDS, draw.randint(0, 2))],
            **values,
        }

    def newcomers(self, count: int, **values: Any) -> None:
        for _ in range(count):
            self.people += 1
            self.rows.append(self.row(7000 + self.people, **values))
            if self.several and self.draw.random() < 0.2:
                self.rows.append(self.row(7000 + self.people))

    def grow(self, event: str, books: Books) -> None:
        """The next version of the input."""
        draw = self.draw
        if event == "begin":
            self.newcomers(draw.randint(12, 18))
            self.newcomers(1, age=47, city="Dunmore")  # alone
            self.newcomers(1, city=None, basket=None)
        elif event == "few":
            self.newcomers(1)
        elif event == "alike":  # enough people, and no l different values
            self.newcomers(K, age=25, city="Carden", disease="none")
        elif event == "joiners":
            self.newcomers(K, age=47, city="Dunmore")
            self.newcomers(draw.randint(0, 4))
        elif event == "again":  # rows of people who are published
            old = draw.sample(sorted(books.published), min(4, len(books.published)))
            self.rows += [self.row(person) for person in old]
            self.newcomers(draw.randint(K, 8))
        else:
            assert event == "gone"
            gone = set(draw.sample(sorted(books.published), min(3, len(books.published))))
            gone |= set(draw.sample(sorted(books.waiting), min(1, len(books.waiting))))
            self.rows = [row for row in self.rows if row["person_id"] not in gone]
            self.newcomers(draw.randint(K, 6))


@dataclass
class Series:
    """A series of a family in a town, and the oracle's books of it."""

    town: Town
    kind: Kind
    books: Books = field(default_factory=lambda: Books(COLUMNS))
    inputs: dict[int, set[Any]] = field(default_factory=dict)  # the people of the input of each published increment

    @classmethod
    def founded(cls, spark: SparkSession, folder: Path, family: str) -> Series:
        town = Town.founded(spark, folder, table_of([]))
        (folder / "hierarchies" / "brand.csv").write_text("".join(f"{';'.join(row)}\n" for row in BRAND_LEVELS), encoding="utf-8")
        return cls(town, FAMILIES[family])

    def copied(self, folder: Path) -> Series:
        """The same series elsewhere, as it is now."""
        return Series(self.town.copied(folder), self.kind, copy.deepcopy(self.books), dict(self.inputs))

    def prepared(self, **changes: Any) -> Preparation:
        return prepare(self.town.job(**self.kind.changes, **changes), self.town.spark)

    def run(self, rows: Sequence[Row], step: Callback = nothing) -> RunReport:
        """One more version of the input, a run on it, and everything that must hold after it."""
        self.town.write(table_of(rows))
        before = len(self.town.runs)
        report = run(self.prepared(), step=step)
        self.book(rows, report)
        assert len(self.town.runs) == before + 1 and self.town.runs[-1].status == report.status
        assert list((self.town.folder / "work").iterdir()) == []
        return report

    def book(self, rows: Sequence[Row], report: RunReport) -> None:
        """Enter a run into the books, and compare them with what it says, with the release and with the ledger."""
        waited = report.status == "waiting"
        assert waited or report.status == "published"
        assert [str(check) for check in report.checks if not check.passed] == []
        assert bool(report.checks) != waited and report.series is not None
        self.enter(rows, waited)
        told = asdict(report.series)
        assert {name: told[name] for name in asdict(self.books.numbers[-1])} == asdict(self.books.numbers[-1])
        for one in report.series.waited:
            if one.increment in self.inputs:  # else a test published it in a way of its own
                assert one.persons == len(self.books.waiting & self.inputs[one.increment])
        if not waited:
            self.inputs[report.series.increment] = {row[COLUMNS.person] for row in rows}

    def enter(self, rows: Sequence[Row], waited: bool = False, lost: bool = False) -> None:
        """Enter what stands after a run on these rows into the books: it must be in order, and the ledger must say the same.

        lost: whether the ledger may still have people of runs that published nothing.
        """
        self.books.enter(Step(list(rows), self.release(), self.kind.promise(self.metadata()), waited))
        assert self.books.faults == []
        self.check_ledger(lost)

    def release(self) -> list[Row]:
        if not self.town.versions:
            return []
        frame = self.town.release
        assert dict(frame.dtypes)[COLUMNS.increment] == "int"
        return [row.asDict(recursive=True) for row in frame.collect()]

    def metadata(self) -> Mapping[str, Any]:
        """What the newest commit of ours says."""
        commits = history(self.town.spark, str(self.town.folder / "release"), 100)
        return next((told for commit in commits if (told := metadata_of(commit)) is not None), {})

    def ledger(self) -> list[Row]:
        frame = self.town.spark.read.format("delta").load(str(self.town.folder / "ledger"))
        return [row.asDict() for row in frame.collect()]

    def check_ledger(self, lost: bool = False) -> None:
        """The ledger has exactly the people of the books, and every increment is confirmed."""
        rows = self.ledger()
        if lost:
            counted = {row["run_id"] for row in rows if row["kind"] == CONFIRMED}
            rows = [row for row in rows if row["kind"] == SERIES or row["run_id"] in counted]
        (head,) = [row for row in rows if row["kind"] == SERIES]
        people = [(bytes(row["person"]), row["increment"]) for row in rows if row["kind"] == PERSON]
        expected = [(ledger_hash(head["salt"], person), number) for person, number in self.books.published.items()]
        assert sorted(people) == sorted(expected)
        runs = {(row["run_id"], row["increment"]) for row in rows if row["kind"] == PERSON}
        confirmed = [(row["run_id"], row["increment"]) for row in rows if row["kind"] == CONFIRMED]
        assert sorted(confirmed) == sorted(runs)
