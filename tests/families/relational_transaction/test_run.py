"""The family `relational_transaction` in runs: what is published and reported, checks that fail, bounds that cannot be kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark import KLmDiversity, verify
from anon_spark.cli import main
from anon_spark.columns import LINK
from anon_spark.errors import ConfigurationError, DataError, GuaranteeViolated
from anon_spark.families.relational_transaction.facts import RelationalTransactionFacts
from anon_spark.families.relational_transaction.pipeline import RelationalTransactionPipeline
from anon_spark.families.relational_transaction.recoding import RelationalTransactionRecoding
from anon_spark.runs.plan import plan
from anon_spark.runs.preparation import RUN_KEY, prepare
from tests.event_log import EventLog
from tests.oracle import rt_oracle as oracle
from tests.town import CITIES, Town

ROWS = 120
WARES = [f"{letter}-wares" for letter in "abcdefgh"]
SECRET = "shame-wares"
ITEM_LEVELS = [f"goods.{name};{'first' if name < 'e' else 'second'};*" for name in WARES]
ITEM_LEVELS += ["gifts.card;gifts;*", "gifts.toy;gifts;*"]
ITEM_LEVELS += [f"gifts.{number};gifts;*" for number in range(12)]  # which nobody got
RT: dict[str, Any] = {
    "family": "relational_transaction",
    "columns": {
        "person": "person_id",
        "identifiers": ["name"],
        "quasi_identifiers": {"age": {}, "income": {"domain": [0, 100_000]}, "city": {"levels": "hierarchies/city.csv"}},
        "transactions": ["goods"],
        "sensitive_items": {"goods": [SECRET]},
        "keep": ["weight"],
    },
    "privacy": {"k": 4, "m": 2, "l": 2},
    "relational_transaction": {"delta": 0.6},
}
CHECKS = [
    "columns", "(4,2^2)-diversity", "truthfulness", "persons", "row accounting", "input", "row order",
    "loss within delta",
]  # fmt: skip


def shoppers() -> pa.Table:
    """Invented people with purchases; two live in each household, one bought nothing, some what they would rather hide."""
    numbers, draw = range(ROWS), Random(11)
    cities = list(CITIES)
    goods = [draw.sample(WARES, draw.randint(1, 4)) + [SECRET] * (number % 7 == 0) for number in numbers]
    return pa.table(
        {
            "person_id": [7000 + number for number in numbers],
            "household": [number // 2 for number in numbers],
            "name": [f"Inhabitant-{number}" for number in numbers],
            "age": pa.array([20 + draw.randrange(50) for _ in numbers], pa.int32()),
            "income": [draw.randrange(90) * 1000 + 113.0625 for _ in numbers],
            "city": [cities[draw.randrange(4)] for _ in numbers],
            "goods": [[] if number == 40 else items for number, items in zip(numbers, goods, strict=True)],
            "gifts": [draw.sample(["card", "toy"], draw.randint(0, 2)) for _ in numbers],
            "weight": [100 + draw.randrange(8) for _ in numbers],
        }
    )


@pytest.fixture(scope="module")
def town(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A town with one release of its purchases."""
    town = Town.founded(spark, tmp_path_factory.mktemp("rt") / "town", shoppers())
    (town.folder / "hierarchies" / "items.csv").write_text("\n".join(ITEM_LEVELS) + "\n", encoding="utf-8")
    return town


def test_a_run_publishes_what_the_audit_verified(town: Town, event_log: EventLog) -> None:
    mark = event_log.mark()
    report = town.run(**RT)

    assert report.status == "published" and report.for_release
    assert [check.name for check in report.checks] == CHECKS and all(check.passed for check in report.checks)
    assert town.release.dtypes == [
        ("age", "struct<lo:int,hi:int>"), ("income", "struct<lo:double,hi:double>"), ("city", "string"),
        ("goods", "array<array<string>>"), ("goods_sensitive", "array<string>"), ("weight", "bigint"),
    ]  # fmt: skip
    release = town.release.collect()
    shown = [
        oracle.Published(
            (tuple(row.age), tuple(row.income), frozenset({row.city})),
            frozenset(map(tuple, row.goods)),
            frozenset(row.goods_sensitive),
        )
        for row in release
    ]
    assert len(shown) == ROWS and oracle.verify_klm(shown, 4, 2, 2) == set()
    assert verify(town.release, KLmDiversity(4, 2, 2, ["age", "income", "city"], "goods", "goods_sensitive")).passed

    # what is reported
    facts = report.facts
    assert isinstance(facts, RelationalTransactionFacts)
    assert 0 < facts.measures.ncp <= 0.6 and 0 < facts.measures.ul <= 1
    assert facts.highest_share is not None and facts.highest_share <= 0.5
    assert facts.statistics.initial_ncp is not None and facts.statistics.initial_ncp < facts.measures.ncp
    assert sum(one.rows for one in facts.class_sizes) == ROWS
    assert [(one.values, one.items) for one in facts.relative_error] == [(2, 0), (0, 2), (1, 1)]
    attacks = facts.risk.knowledge_attack
    assert list(attacks) == ["2 items", "3 items", "4 items", "all items"]
    share = attacks["2 items"].share
    assert attacks["2 items"].worst <= min(0.25, attacks["all items"].worst) and share is not None and share <= 0.5
    page = (town.folder / "report" / "town.html").read_text(encoding="utf-8")
    for words in ("What was lost", "What counts are worth", "What an attacker gains", "Clusters and merging", "More items"):
        assert words in page, words
    assert town.runs[-1].guarantee == "(4,2^2)-diversity of goods_sensitive on goods and age, income, city"

    # what never escapes
    logged = event_log.read_text(since=mark)
    texts = [page, logged, repr(town.runs), (town.folder / "report" / "town.json").read_text()]
    for value in ("Inhabitant", "113.0625"):
        assert not any(value in text for text in texts), value
    assert "-wares" not in logged  # the report names items that k rows or more show
    assert all(item.alone + item.grouped >= 4 for item in facts.frequent_items) and facts.frequent_items
    assert {shown.column for shown in facts.distributions} >= {"age", "income", "city"} == set(facts.detail_lost)
    assert list((town.folder / "work").iterdir()) == []


@pytest.mark.long
def test_a_release_is_audited_later_and_drawn_once(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    town.run(**RT)  # recognised, if the test above ran
    assert main(["audit", town.job_file(**RT)]) == 0
    assert main(["run", town.job_file(**RT), "--quiet"]) == 0
    assert "already published" in capsys.readouterr().out
    assert main(["run", town.job_file(**RT | {"privacy": {"k": 5, "l": 2}}), "--quiet"]) == 2
    assert "1 releases of the same rows were drawn before" in capsys.readouterr().err


@pytest.mark.long
def test_a_run_leaves_rare_items_out(
    town: Town, tmp_path: Path, event_log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Audited like the rest: more than the job allows is refused, now and later."""
    place = town.copied(tmp_path / "town")
    purchases = shoppers()
    goods: list[Any] = purchases["goods"].to_pylist()
    rare = [[*items, f"r{at}-wares"] if at % 40 == 3 else items for at, items in enumerate(goods)]
    place.write(purchases.set_column(purchases.schema.get_field_index("goods"), "goods", pa.array(rare)))
    given = RT | {"relational_transaction": {"delta": 0.6, "suppress_items": 0.02}, "output__table": "./fewer"}
    mark = event_log.mark()
    report = place.run(**given)
    page = (place.folder / "report" / "town.html").read_text(encoding="utf-8")
    said = event_log.read_text(since=mark) + page + repr(place.runs)
    assert "d-wares" in said and re.search(r"\br\d+-wares", said) is None  # frequent items are named
    assert report.status == "published" and [check.name for check in report.checks] == CHECKS
    facts = report.facts
    assert isinstance(facts, RelationalTransactionFacts)
    assert (facts.suppressed_items, facts.suppressed_occurrences) == (3, 3) and facts.universe == len(WARES)
    assert facts.risk.knowledge_attack["2 items"].found == ROWS
    assert any("3 items that fewer than k = 4 records have are not published" in line for line in report.warnings)
    assert main(["audit", place.job_file(**given)]) == 0
    assert main(["audit", place.job_file(**given | {"relational_transaction": {"delta": 0.6}})]) != 0

    honest = RelationalTransactionRecoding.staged

    def greedy(self: RelationalTransactionRecoding, df: DataFrame, key: DataFrame) -> DataFrame:
        """An item that many have is gone as well."""
        return honest(self, df, key).withColumn("goods", F.expr(f"filter(goods, u -> not array_contains(u, '{WARES[0]}'))"))

    monkeypatch.setattr(RelationalTransactionRecoding, "staged", greedy)
    with pytest.raises(GuaranteeViolated) as caught:
        place.run(**given | {"output__table": "./greedy"})
    assert "truthfulness" in caught.value.facts["checks"]


@pytest.mark.long
def test_two_columns_in_a_hierarchy(
    town: Town, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items of two columns are one set; nodes are published as all their leaves, sensitive ones aside; it can be audited."""
    monkeypatch.setenv(RUN_KEY, "a draw that needs a high node")
    changes = RT | {
        "columns__transactions": ["goods", "gifts"],
        "relational_transaction": {"delta": 0.7, "merge": "both", "items": {"levels": "hierarchies/items.csv"}},
        "output__table": "./both",
    }
    assert main(["run", town.job_file(**changes), "--quiet"]) == 0, capsys.readouterr()
    release = town.spark.read.format("delta").load(str(town.folder / "both"))
    assert release.columns == ["age", "income", "city", "transactions", "transactions_sensitive", "weight"]
    items = {tuple(item) for row in release.collect() for item in row.transactions}
    leaves = {line.split(";")[0] for line in ITEM_LEVELS}
    assert {name for item in items for name in item} <= leaves
    assert all(len(item) == 1 or len(item) in (4, 14, len(leaves)) for item in items)
    assert max(map(len, items)) > len(WARES) + 2  # a node stands for more items than anybody has
    assert {name for row in release.collect() for name in row.transactions_sensitive} == {f"goods.{SECRET}"}
    assert main(["audit", town.job_file(**changes)]) == 0


@pytest.mark.long
def test_checks_refuse_their_faults(town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = town.copied(tmp_path / "town")
    staged, evidence = RelationalTransactionRecoding.staged, RelationalTransactionRecoding.evidence
    names = ["age", "income", "city", "goods", "goods_sensitive", "weight"]

    def faulty(self: RelationalTransactionRecoding, df: DataFrame, key: DataFrame) -> DataFrame:
        """A row is lost, one shows an item alone, there is an identifier, rows are in an order of ours."""
        found = staged(self, df, key).where(F.col(LINK) != 7)
        alone = F.array(F.array(F.lit(WARES[0])), F.array(F.lit(WARES[1])))
        names.append("name")
        return (
            found.withColumn("goods", F.when(F.col(LINK) == 8, alone).otherwise(F.col("goods")))
            .withColumn("name", F.lit("x"))
            .coalesce(1)
            .sortWithinPartitions("weight", LINK)
        )

    def misled(self: RelationalTransactionRecoding) -> Mapping[str, DataFrame]:
        """A record with another weight than it has."""
        linked = evidence(self)["linked"]
        return {"linked": linked.withColumn("weight", F.when(F.col(LINK) == 3, 1).otherwise(F.col("weight")))}

    monkeypatch.setattr(RelationalTransactionRecoding, "staged", faulty)
    monkeypatch.setattr(RelationalTransactionRecoding, "evidence", misled)
    for one in (RelationalTransactionPipeline, RelationalTransactionRecoding):
        monkeypatch.setattr(one, "published", property(lambda self: names))
    honest = RelationalTransactionRecoding.measured
    monkeypatch.setattr(RelationalTransactionRecoding, "measured", lambda self: replace(honest(self), ncp=0.61))
    with pytest.raises(GuaranteeViolated) as caught:
        place.run(**RT | {"output__table": "./other"})
    assert caught.value.facts["checks"] == [name for name in CHECKS if name not in ("persons", "input")]
    assert not any(value in str(caught.value) for value in ("Inhabitant", "-wares"))
    assert not (place.folder / "other").exists() and place.runs[-1].status == "failed"


@pytest.mark.long
def test_a_bound_that_cannot_be_kept_is_an_answer(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    changes = RT | {"relational_transaction": {"delta": 0.02}, "output__table": "./never"}
    assert main(["run", town.job_file(**changes), "--quiet"]) == 3
    assert "more than delta = 0.02. Ask for a delta of at least 0." in capsys.readouterr().err
    assert town.runs[-1].status == "failed" and not (town.folder / "never").exists()


@pytest.mark.long
def test_a_plan_counts_and_refuses_what_a_run_would(town: Town) -> None:
    def planned(**changes: Any) -> list[str]:
        return plan(prepare(town.job(**RT | changes), town.spark)).lines()

    lines = planned(output__table="./another")
    assert "guarantee: (4,2^2)-diversity of goods_sensitive on goods and age, income, city" in lines
    assert "distinct items: 9" in lines and "rows without items: 1" in lines
    assert "published columns: age, income, city, goods, goods_sensitive, weight" in lines
    with pytest.raises(DataError, match=r"^columns.person household: 60 persons have several rows"):
        planned(columns__person="household")
    with pytest.raises(DataError, match=r"^k = 121 is more than the 120 rows"):
        planned(privacy={"k": 121, "l": 2})
    with pytest.raises(ConfigurationError, match=r"^columns.transactions name is string: give a column of array<string>.$"):
        planned(columns__transactions=["name"], columns__identifiers=[], columns__sensitive_items={}, privacy={"k": 4})
