"""The family `set_valued` in runs: what is published, one draw per table, every check can fail, what never escapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.cli import main
from anon_spark.columns import BASE, BLOCK, DRAW, LINK, MAX_ERRORS, SLOT, UNCERTAIN
from anon_spark.errors import ConfigurationError, DataError, GuaranteeViolated
from anon_spark.families.set_valued import anonymizer
from anon_spark.families.set_valued.facts import SetValuedFacts
from anon_spark.families.set_valued.pipeline import SetValuedPipeline
from anon_spark.families.set_valued.recoding import SetValuedRecoding
from anon_spark.kernels.randomness import derived
from anon_spark.primitives.ordering import shuffled
from anon_spark.runs.plan import plan
from anon_spark.runs.preparation import RUN_KEY, prepare
from tests.event_log import EventLog
from tests.town import Town

ROWS = 150
ITEMS = [f"{letter}-wares" for letter in "abcdefghij"]
VALUES = ["Zenist", "Yogic", "Xenian", "Wiccan", "Vedic", "Unitarian", "Taoist"]
SETS: dict[str, Any] = {
    "family": "set_valued",
    "columns": {"person": "person_id", "identifiers": ["name"], "items": "basket", "sensitive": ["religion"]},
    "privacy": {"k": 3},
    "set_valued": {"order": "gray"},
}
CHECKS = [
    "columns", "graph", "labels", "draw", "fields", "records", "compatibility", "compatible rows", "persons", "row accounting",
    "input", "row order", "link attack",
]  # fmt: skip


def baskets() -> pa.Table:
    """Invented baskets; two people live in each household, one basket is empty, an item may be named twice."""
    numbers, draw = range(ROWS), Random(5)
    sets = [draw.sample(ITEMS, draw.randint(1, 7)) for _ in numbers]
    return pa.table(
        {
            "person_id": [7000 + number for number in numbers],
            "household": [number // 2 for number in numbers],
            "name": [f"Inhabitant-{number}" for number in numbers],
            "basket": [[] if number == 40 else items + items[:1] for number, items in zip(numbers, sets, strict=True)],
            "religion": [VALUES[number * 3 % len(VALUES)] for number in numbers],
        }
    )


@pytest.fixture(scope="module")
def town(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A town with one release of its baskets."""
    return Town.founded(spark, tmp_path_factory.mktemp("set_valued") / "town", baskets())


def test_a_run_publishes_what_the_audit_verified(town: Town, event_log: EventLog) -> None:
    mark = event_log.mark()
    report = town.run(**SETS)

    assert report.status == "published" and report.for_release
    assert [check.name for check in report.checks] == CHECKS and all(check.passed for check in report.checks)
    assert [(name, kind) for name, kind in town.release.dtypes] == [
        (BASE, "array<string>"), (UNCERTAIN, "array<string>"), (MAX_ERRORS, "int"), ("religion", "string"),
    ]  # fmt: skip
    source = baskets()
    release = town.release.collect()
    assert Counter(row.religion for row in release) == Counter(source.column("religion").to_pylist())
    fitting = [
        sum(
            basket ^ set(row.base) <= set(row.uncertain) and len(basket ^ set(row.base)) <= row.max_errors
            for row in release
        )
        for basket in (set(items or ()) for items in source.column("basket").to_pylist())
    ]
    assert min(fitting) >= 3

    # what is reported
    facts = report.facts
    assert isinstance(facts, SetValuedFacts)
    assert facts.measures.er is not None and 0 < facts.measures.er < 1 and facts.measures.empty == 1
    assert facts.orders == {"gray": 1} and facts.definition_only is False
    assert sum(one.rows for one in facts.uncertain_items) == ROWS
    assert facts.queries is not None and 0 < facts.queries.present < 1 and 0 < facts.queries.absent < 1
    assert facts.example is not None and facts.example.lower <= facts.example.estimate <= facts.example.upper <= ROWS
    attack = facts.risk.link_attack
    assert attack.promised_at_most == 1 / 3 and 0.05 < attack.rate_by_fit < attack.refused_from_a_rate_of < 1
    said = next(check.detail for check in report.checks if check.name == "link attack")
    assert "95 % interval" in said and "standard error" in said and "Promised at most 0.3333; refused from 0." in said
    unknown, neighbour = facts.risk.known_link.none, facts.risk.known_link.neighbour
    assert unknown is not None and unknown.standard_error is not None and neighbour is not None
    assert 1 / 5 < unknown.rate < 1 / 3 + 5 * unknown.standard_error  # groups of 3 to 5 records
    assert neighbour.rate > unknown.rate + 5 * unknown.standard_error  # one known link tells of its own group
    assert facts.risk.reconstruction.records_looked_at == ROWS
    assert "1 records have no items" in " ".join(report.warnings)
    page = (town.folder / "report" / "town.html").read_text(encoding="utf-8")
    assert all(words in page for words in ("What counts are worth", "Items are not protected", "What an attacker gains"))
    assert town.runs[-1].guarantee == "nonreciprocal 3-anonymity of basket"

    # what never escapes
    logged = event_log.read_text(since=mark)
    texts = [page, logged, repr(town.runs), (town.folder / "report" / "town.json").read_text()]
    assert not any("Inhabitant" in text for text in texts)
    assert not any(value in logged for value in ("-wares", *VALUES))  # the report names what k rows or more show
    assert all(item.certain <= item.possible and item.possible >= 3 for item in facts.frequent_items) and facts.frequent_items
    assert all(count.after >= 3 for shown in facts.distributions for count in shown.labels)
    assert list((town.folder / "work").iterdir()) == []


@pytest.mark.long
def test_a_release_is_audited_later_and_drawn_once(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    town.run(**SETS)  # recognised, if the test above ran
    assert main(["audit", town.job_file(**SETS)]) == 0
    assert main(["run", town.job_file(**SETS), "--quiet"]) == 0
    assert "already published" in capsys.readouterr().out
    runs, before = len(town.runs), town.listing()
    assert main(["run", town.job_file(**SETS | {"privacy": {"k": 4}}), "--quiet"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("anon-spark: output.table: 1 releases of the same rows were drawn before. They can be intersected")
    assert line.endswith("or draw again with --redraw.")
    assert len(town.runs) == runs and {name for name, time in town.listing().items() if before.get(name) != time} == {"job.yaml"}


@pytest.mark.long
def test_a_second_draw_is_told_and_l_rows_differ(town: Town, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    town.run(**SETS)  # recognised, if the test above ran
    place = town.copied(tmp_path / "town")
    diverse = SETS | {"privacy": {"l": 2}}

    assert main(["run", place.job_file(**diverse), "--quiet", "--redraw"]) == 0

    shown = capsys.readouterr().out
    assert "look    1 releases of the same rows were drawn before. They can be intersected" in shown
    assert "the slots of a record show 2 or more, all different" in shown
    assert place.versions == 2
    assert place.runs[-1].guarantee == "nonreciprocal 2-diversity of religion on basket (definition only)"
    page = (place.folder / "report" / "town.html").read_text(encoding="utf-8")
    assert "by its definition only" in page and "Minimality" in page and "can be intersected" in page


# --- every check can fail


@pytest.mark.long
def test_labels_that_stay_where_they_were_are_not_published(
    town: Town, event_log: EventLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = town.copied(tmp_path / "town")
    before, mark = place.versions, event_log.mark()
    monkeypatch.setenv(RUN_KEY, "planted-run-key")
    honest = SetValuedRecoding.staged

    def stayed(self: SetValuedRecoding, df: DataFrame, key: DataFrame) -> DataFrame:
        """Every slot with the value of the record of its own rank: it looks right, and links everybody."""
        own = self.slots.select(BLOCK, SLOT, LINK).join(self.evidence()["linked"].select(LINK, "religion"), LINK)
        moved = honest(self, df, key).drop("religion").join(own.drop(LINK), [BLOCK, SLOT])
        return shuffled(moved.select(*self.published, BLOCK, SLOT), key, self.published)

    monkeypatch.setattr(SetValuedRecoding, "staged", stayed)
    with pytest.raises(GuaranteeViolated) as caught:
        place.run(**SETS | {"output__table": "./other"})
    assert caught.value.facts["checks"] == ["labels"]
    assert "do not find their sensitive value in the chosen slot" in str(caught.value)
    assert place.versions == before and not (place.folder / "other").exists()
    assert place.runs[-1].status == "failed"
    logged = event_log.read_text(since=mark)  # nor does Spark write down the secret of the draws
    assert logged and "planted-run-key" not in logged and derived("planted-run-key", "draws") not in logged


def faulty(staged: DataFrame) -> DataFrame:
    """A slot is lost, one may err more often than it has items, there is an identifier, rows are in an order of ours."""
    kept = staged.where(F.col(SLOT) != 7)
    errors = F.when(F.col(SLOT) == 8, F.size(UNCERTAIN) + 1).otherwise(F.col(MAX_ERRORS)).cast("int")
    return kept.withColumn(MAX_ERRORS, errors).withColumn("name", F.lit("x")).coalesce(1).sortWithinPartitions(BASE, UNCERTAIN)


@pytest.mark.long
def test_every_other_check_refuses_its_fault(town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = town.copied(tmp_path / "town")
    staged, evidence, again = SetValuedRecoding.staged, SetValuedRecoding.evidence, SetValuedRecoding.drawn_again

    def misled(self: SetValuedRecoding) -> Mapping[str, DataFrame]:
        """A record with an item nobody has, and an edge less."""
        found = evidence(self)
        more = F.when(F.col(LINK) == 3, F.array_append("basket", "unheard of")).otherwise(F.col("basket"))
        lost = (F.col(LINK) == 5) & ~F.col("_anon_chosen")
        return {**found, "linked": found["linked"].withColumn("basket", more), "edges": found["edges"].where(~lost)}

    def always_the_same(self: SetValuedRecoding, keys: Sequence[str], blocks: int | None = None) -> DataFrame:
        """An assignment that is not drawn: who knows the method knows it."""
        numbers = F.explode(F.sequence(F.lit(0), F.lit(len(keys) - 1))).alias(DRAW)
        return again(self, keys[:1], blocks).drop(DRAW).select("*", numbers)

    names = [BASE, UNCERTAIN, MAX_ERRORS, "religion"]

    def misstaged(self: SetValuedRecoding, df: DataFrame, key: DataFrame) -> DataFrame:
        found = faulty(staged(self, df, key))
        names.append("name")
        return found

    monkeypatch.setattr(SetValuedRecoding, "staged", misstaged)
    monkeypatch.setattr(SetValuedRecoding, "evidence", misled)
    monkeypatch.setattr(SetValuedRecoding, "drawn_again", always_the_same)
    for one in (SetValuedPipeline, SetValuedRecoding):
        monkeypatch.setattr(one, "published", property(lambda self: names))
    monkeypatch.setattr(anonymizer, "refuse_several_rows", lambda df, person: None)
    with pytest.raises(GuaranteeViolated) as caught:
        place.run(**SETS | {"output__table": "./other", "columns__person": "household"})

    assert caught.value.facts["checks"] == [name for name in CHECKS if name not in ("draw", "input")]
    said = str(caught.value)
    for words in (
        "columns: FAILED. 1 columns are identifiers: name.",
        "fields: FAILED. 1 of 149 rows have a number of max_errors",
        "records: FAILED. the graph is about 150 records, the source has 150 in scope, and their content differs.",
        "graph: FAILED.",
        "edges differ in an item that is not uncertain.",
        "labels: FAILED.",
        "149 rows are published, the source has 150 in scope.",
        "persons: FAILED. 75 of 75 persons of the source have several rows.",
        "row accounting: FAILED. 1 of 150 source rows are neither published nor accounted for.",
        "row order: FAILED.",
        "Promised at most 0.3333; refused from ",
        " Significantly above the promise.",
    ):
        assert words in said, words
    assert not any(value in said for value in ("Inhabitant", "-wares", "unheard of", *VALUES))
    assert not (place.folder / "other").exists() and place.runs[-1].status == "failed"


# --- what is refused, and what a plan says


@pytest.mark.long
def test_a_plan_counts_and_refuses_what_a_run_would(town: Town) -> None:
    def planned(**changes: Any) -> list[str]:
        return plan(prepare(town.job(**SETS | changes), town.spark)).lines()

    lines = planned(privacy={"k": 2}, output__table="./another")
    assert "guarantee: nonreciprocal 2-anonymity of basket (definition only)" in lines
    assert "distinct items: 10" in lines and "rows without items: 1" in lines and not any("redraw" in line for line in lines)
    assert "published columns: base, uncertain, max_errors, religion" in lines
    with pytest.raises(DataError, match=r"^columns.person household: 75 persons have several rows"):
        planned(columns__person="household")
    with pytest.raises(DataError, match=r"^k = 151 is more than the 150 rows of the table. Lower k.$"):
        planned(privacy={"k": 151})
    with pytest.raises(DataError, match=r"^l = 7 allows a sensitive value on 11 rows .* (The largest l|No l above 1)"):
        planned(privacy={"l": 7})
    with pytest.raises(ConfigurationError, match=r"^columns.items name is string: give a column of array<string>.$"):
        planned(columns__items="name", columns__identifiers=[])


def test_keys_are_apart() -> None:
    assert len({derived("key", "draws"), derived("key", "attack 0"), derived("other", "draws"), "key"}) == 4
