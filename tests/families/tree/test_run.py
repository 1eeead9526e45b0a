"""The family `tree` in runs: what is published and reported, every check can fail, what never escapes, tables joined by keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.cli import main
from anon_spark.columns import LINK
from anon_spark.errors import ConfigurationError, DataError, GuaranteeViolated
from anon_spark.families.tree.facts import TreeFacts
from anon_spark.families.tree.recoding import TreeRecoding
from anon_spark.runs.plan import plan
from anon_spark.runs.preparation import prepare
from anon_spark.samples.level_tables import write_level_tables
from anon_spark.samples.orders import order_hierarchies, order_tables, orders
from tests.event_log import EventLog
from tests.town import Town

ROWS = 400
NODE_TYPES: dict[str, Any] = {
    "nation": {
        "field": "nation",
        "levels": "hierarchies/nation.csv",
        "children": {
            "month": {
                "field": "orders.month",
                "intervals": {"from": 0, "to": 79, "widths": [20, 40]},
                "children": {
                    "brand": {"field": "orders.items.brand", "levels": "hierarchies/brand.csv"},
                },
            },
        },
    },
}
NESTED: dict[str, Any] = {
    "family": "tree",
    "columns": {"person": "customer_id", "identifiers": ["name"], "tree": NODE_TYPES},
    "privacy": {"k": 8, "m": 2, "n": 1},
    "tree": {"max_cuts": 20},
}
CHECKS = ["columns", "8^(2,1)-anonymity", "truthfulness", "row accounting", "input", "row order"]


@pytest.fixture(scope="module")
def town(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A town of customers with one release of their orders."""
    folder = tmp_path_factory.mktemp("tree") / "town"
    found = Town.founded(spark, folder, orders(spark, ROWS).toArrow())
    write_level_tables(folder / "hierarchies", order_hierarchies())
    return found


def test_a_run_publishes_what_the_audit_verified(town: Town, event_log: EventLog) -> None:
    mark = event_log.mark()
    report = town.run(**NESTED)

    assert report.status == "published" and report.for_release
    assert [check.name for check in report.checks] == CHECKS and all(check.passed for check in report.checks)
    release = town.release
    facts = report.facts
    assert isinstance(facts, TreeFacts)
    assert release.columns == (["paths"] if facts.disassociated_relations else ["paths", "nested"]) and release.count() == ROWS
    assert 0 < facts.measures.rpd < 1 and facts.search.evaluated == 20
    assert min(one.least for one in facts.supports) >= 8
    attacks = list(facts.risk.knowledge_attack.values())
    promised = [one for one in attacks if one.promised]
    assert promised and all(one.below == 0 and one.drawn == ROWS for one in promised) and len(attacks) > len(promised)
    assert "stopped by max_cuts" in " ".join(report.warnings)
    page = (town.folder / "report" / "town.html").read_text(encoding="utf-8")
    assert all(words in page for words in ("What was lost", "What an attacker gains", "Best loss by cuts judged", "Whole paths:"))
    assert town.runs[-1].family == "tree"

    # what never escapes
    texts = [page, event_log.read_text(since=mark), repr(town.runs), (town.folder / "report" / "town.json").read_text()]
    for value in ("Inhabitant", "Brand#", "Vietnam", "Ethiopia"):
        assert not any(value in text for text in texts), value
    assert list((town.folder / "work").iterdir()) == []


@pytest.mark.long
def test_a_release_is_audited_later_and_a_rerun_is_recognised(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    town.run(**NESTED)  # recognised, if the test above ran
    assert main(["audit", town.job_file(**NESTED)]) == 0
    assert main(["run", town.job_file(**NESTED), "--quiet"]) == 0
    assert "already published" in capsys.readouterr().out


def faulty(staged: DataFrame) -> DataFrame:
    """A row is lost, another says what is not true of it and nobody else has, there is an identifier, rows are in our order."""
    stranger = F.array(F.array(F.struct(F.lit("nation").alias("class"), F.lit("Atlantis").alias("value"))))
    first = staged.agg(F.min(LINK), F.max(LINK)).collect()[0]
    kept = staged.where(F.col(LINK) != first[0])
    changed = kept.withColumn("paths", F.when(F.col(LINK) == first[1], stranger).otherwise(F.col("paths")))
    return changed.withColumn("name", F.lit("x")).coalesce(1).sortWithinPartitions("paths")


@pytest.mark.long
def test_every_check_refuses_its_fault(town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = town.copied(tmp_path / "town")
    staged, columns = TreeRecoding.staged, ["paths"]

    def misled(self: TreeRecoding, df: DataFrame, key: DataFrame) -> DataFrame:
        found = faulty(staged(self, df, key))
        columns.append("name")
        return found

    monkeypatch.setattr(TreeRecoding, "staged", misled)
    monkeypatch.setattr(TreeRecoding, "published", property(lambda self: columns))
    with pytest.raises(GuaranteeViolated) as caught:
        place.run(**NESTED | {"output__table": "./other", "tree": {"max_cuts": 10}})
    assert caught.value.facts["checks"] == [name for name in CHECKS if name != "input"]
    assert not (place.folder / "other").exists() and place.runs[-1].status == "failed"


@pytest.mark.long
def test_tables_joined_by_keys(town: Town, tmp_path: Path) -> None:
    """The same release as from the nested table; every table takes part in what identifies the input."""
    town.run(**NESTED)  # recognised, if the test above ran
    place = town.copied(tmp_path / "town")
    for name, table in order_tables(place.spark, ROWS).items():
        table.write.format("delta").save(str(place.folder / name))
    items = {"table": "./items", "on": {"order_id": "order_id"}}
    nest = {"orders": {"table": "./orders", "on": {"customer_id": "customer_id"}, "nest": {"items": items}}}
    joined = NESTED | {"input": {"table": "./customers", "nest": nest}, "output__table": "./joined"}
    job = place.job_file(**joined)
    assert main(["run", job, "--quiet"]) == 0
    found = place.spark.read.format("delta").load(str(place.folder / "joined"))
    assert sorted(map(str, found.select("paths").collect())) == sorted(map(str, town.release.select("paths").collect()))
    assert main(["audit", job]) == 0
    assert plan(prepare(place.job(**joined), place.spark)).already_published
    bought = place.spark.read.format("delta").load(str(place.folder / "items"))
    lonely = bought.limit(3).withColumn("order_id", F.lit(-1).cast("bigint"))
    lonely.write.format("delta").mode("append").save(str(place.folder / "items"))
    planned = plan(prepare(place.job(**joined), place.spark))
    # a new version of a table, and the same nested records: what is not read makes no other input
    assert planned.already_published and any("3 rows" in note for note in planned.notes)


def test_a_plan_counts_and_refuses_what_a_run_would(town: Town) -> None:
    def planned(**changes: Any) -> Any:
        return plan(prepare(town.job(**NESTED | changes), town.spark))

    counts = planned(output__table="./unpublished").counts
    assert counts["rows"] == counts["records"] == ROWS and counts["unseen_values"] == 0 and counts["values"] > 3 * ROWS
    with pytest.raises(ConfigurationError, match=r"Columns not found: natoin\. Did you mean: nation"):
        planned(columns__tree__nation__field="natoin")
    with pytest.raises(ConfigurationError, match="no value or group is labelled so"):
        planned(tree={"negations": ["Atlantis"]})
    with pytest.raises(DataError, match="k = 401 is more than the 400 records"):
        planned(privacy__k=401)
    months = {"from": 0, "to": 9, "widths": [5]}
    with pytest.raises(DataError, match="month: 70 values"):
        planned(columns__tree__nation__children__month__intervals=months)
