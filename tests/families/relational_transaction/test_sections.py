"""The relational_transaction part of a report: every number where it belongs, what does not apply left out, no small class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from anon_spark.families.relational_transaction.facts import (
    ClusterStatistics,
    CountError,
    FrequentItem,
    RelationalTransactionFacts,
    RelationalTransactionRisk,
    ReleaseMeasures,
)
from anon_spark.families.relational_transaction.sections import relational_transaction_sections
from anon_spark.model.facts import CrowdRange, Distribution, LabelCount, SizeRange
from anon_spark.report import Bars, Section, Table, Text
from anon_spark.report.formats import plain
from anon_spark.risk import KnowledgeRisk

ATTACKS = {
    "2 items": KnowledgeRisk(2, True, 500, 500, 0.05, 4, 0.25, 0.25, 0, 0.4, 0.5, error=0.002),
    "3 items": KnowledgeRisk(3, False, 500, 500, 0.2, 2, 0.5, 0.25, 30, 0.6, 0.5, error=None),
    "all items": KnowledgeRisk(None, False, 500, 500, 0.4, 1, 1.0, 0.25, 200, 1.0, 0.5, error=0.01),
}
FACTS = RelationalTransactionFacts(
    required_k=4,
    m=2,
    l=2,
    bound="relational",
    delta=0.6,
    merge="both",
    distance="bits",
    moves=False,
    method="bound",
    items="sets",
    records=6_000,
    universe=120,
    sensitive_items=3,
    suppressed_items=0,
    suppressed_occurrences=0,
    occurrences=20_000,
    statistics=ClusterStatistics(
        seconds=12.5, seconds_reading=1.25, groups=1, initial_ncp=0.21, initial_clusters=1_400, clusters=90
    ),
    measures=ReleaseMeasures(0.59, 0.31, 90, 4, 800, log2_ul_dom=-101.5, largest_item=17, kept_items=0.75),
    class_sizes=(SizeRange(4, 7, 60, 300), SizeRange(8, None, 30, 5_700)),
    highest_share=0.5,
    relative_error=(CountError(2, 0, 0.5, 0.5, 100), CountError(0, 2, 3.5, 0.8, 100)),
    risk=RelationalTransactionRisk(ATTACKS, {"disease": 0.02}),
)
BLOCKS = replace(  # tfirst: nothing is bounded and nothing is merged
    FACTS,
    bound=None,
    delta=None,
    merge=None,
    distance=None,
    method="tfirst",
    l=None,
    statistics=ClusterStatistics(seconds=12.5, seconds_reading=1.25, clusters=6),
    measures=replace(FACTS.measures, log2_ul_dom=None),
)


def table(sections: Sequence[Section], section: str, title: str = "") -> Table:
    """The table of that title in a section."""
    items = next(part.items for part in sections if part.title == section)
    return next(item for item in items if isinstance(item, Table) and item.title == title)


def by_name(shown: Table) -> dict[str, object]:
    """A table of names and values."""
    return {str(row[0]): row[1] for row in shown.rows}


def bars(sections: Sequence[Section]) -> dict[str, Bars]:
    return {item.title: item for part in sections for item in part.items if isinstance(item, Bars)}


def test_every_part_is_there() -> None:
    sections = relational_transaction_sections(FACTS)

    assert [part.title for part in sections] == [
        "What was lost", "What counts are worth", "What an attacker gains", "Sizes of the published classes",
        "Clusters and merging",
    ]  # fmt: skip
    shown = bars(sections)
    assert shown["Loss of both parts"].series == {"loss": [0.59, 0.31]}
    assert shown["Loss of both parts"].limit == (0.6, "delta, the bound on relational values (NCP)")
    errors = shown["Mean relative error of a count (ARE)"]
    assert (errors.names, list(errors.series.values())) == (["two values", "two items"], [[0.5, 3.5], [0.5, 0.8]])
    worst = shown["Chance to pick the right row, at worst"]
    assert (worst.names[2], worst.series["chance"]) == ("values and all items", [0.25, 0.5, 1.0])
    mean = shown["Chance to pick the right row, on average"]
    assert mean.most == worst.most == 1 and mean.intervals[1] is None  # no standard error, so no interval
    assert mean.intervals[0] == pytest.approx((0.0461, 0.0539), abs=1e-4)


def test_columns_items_and_crowds_are_shown_before_and_after() -> None:
    counted = Distribution("age", "quasi-identifier", 6_000, 6_000, (LabelCount("20 to below 30", 4_000, 3_000),), wider=3_000)
    crowds = (CrowdRange(1, 1, 0.5, 0.0), CrowdRange(2, 3, 0.25, 0.0), CrowdRange(4, None, 0.25, 1.0))
    facts = replace(
        FACTS, distributions=(counted, replace(counted, column="sex", labels=(LabelCount("f", 1, 4), LabelCount("m", 2, 5)))),
        crowds=crowds, detail_lost={"age": 0.5}, frequent_items=(FrequentItem("I10", 900, 700, 200),),
    )  # fmt: skip

    shown = bars(relational_transaction_sections(facts))

    assert shown["Detail lost"].series == {"lost": [0.5]} and shown["Crowds before and after"].series["release"] == [0, 0, 1]
    assert shown["The most frequent items"].series["release, by itself"] == [700 / 6000]
    assert shown["sex (quasi-identifier)"].names == ["f", "m", "a wider label"]


def test_numbers_stand_where_they_belong() -> None:
    sections = relational_transaction_sections(FACTS)

    lost = by_name(table(sections, "What was lost"))
    assert list(lost.values()) == [0.59, 0.31, -101.5, 17, "75 %", 90, 4, 800]
    assert lost["relational loss (NCP), 0 to 1"] == 0.59 and lost["largest cluster"] == 800
    assert all(len(row) == 4 and row[2] and row[3] for row in table(sections, "What was lost").rows)  # unit, what is better
    attack = table(sections, "What an attacker gains", "Knowledge attack")
    assert list(attack.rows[0]) == [
        "values and 2 items", "yes", 0.05, "0.0461 to 0.0539 (standard error 0.0020)", 0.25, 4, 0, 0.4,
    ]  # fmt: skip
    assert list(attack.rows[1])[1:5] == ["no", 0.2, None, 0.5]
    assert attack.note.endswith("A sensitive item is learnt with at most 0.5 where it is promised.")
    merging = by_name(table(sections, "Clusters and merging", "How the clusters were made"))
    assert (merging["Bounded"], merging["Bound (delta)"]) == ("the loss of relational values (NCP)", 0.6)
    assert (merging["Clusters before merging"], merging["Time of reading"]) == (1_400, "1.25 s")
    assert "Method" not in merging and "Loss of items before merging (UL)" not in merging


def test_what_does_not_apply_is_left_out() -> None:
    sections = relational_transaction_sections(BLOCKS)

    assert bars(sections)["Loss of both parts"].limit is None
    assert len(table(sections, "What was lost").rows) == 7  # nothing is generalized: there is no power of 2
    assert list(by_name(table(sections, "Clusters and merging", "How the clusters were made"))) == [
        "Records", "Different items that are published", "Sensitive items", "Method", "Items become", "Time of reading",
        "Time of clusters, merging and items",
    ]  # fmt: skip
    assert "published without protection" in table(sections, "What an attacker gains", "Knowledge attack").note
    without = replace(BLOCKS, sensitive_items=0, relative_error=())  # no record has two items, or two values
    assert "What counts are worth" not in [part.title for part in relational_transaction_sections(without)]
    note = table(relational_transaction_sections(without), "What an attacker gains", "Knowledge attack").note
    assert note.startswith("A sample of 500 records.") and "sensitive" not in note


def test_items_that_are_left_out_are_counted() -> None:
    fewer = replace(FACTS, suppressed_items=7, suppressed_occurrences=100)
    lost = by_name(table(relational_transaction_sections(fewer), "What was lost"))
    assert (lost["rare items that are not published"], lost["their share of all occurrences"]) == (7, "0.5 %")
    assert fewer.summary()[0] == "7 rare items are not published: 100 of 20,000 occurrences."


def test_the_promise_is_told_with_its_knowledge() -> None:
    items = next(part.items for part in relational_transaction_sections(FACTS) if part.title == "What an attacker gains")
    words = " ".join(line for item in items if isinstance(item, Text) for line in item.paragraphs)
    assert "Up to m = 2 items at least 4 rows fit." in words and "Promised at most: 25 % at worst." in words


def test_a_class_below_k_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1 ranges start below k = 4"):
        relational_transaction_sections(replace(FACTS, class_sizes=(SizeRange(3, 3, 1, 3), *FACTS.class_sizes)))


def test_a_summary_says_which_loss_is_bounded() -> None:
    assert FACTS.summary() == [
        "90 clusters of 4 to 800 records.",
        "Loss of values 0.5900 (allowed: 0.6), of items 0.3100; from 0 to 1.",
        "Who knows all values and 2 items picks the right row with 0.2500 at most.",
        "Who knows all items is outside the guarantee: 1.0000 at most, 0.4000 on average.",
    ]
    assert "0.5900, of items 0.3100 (allowed: 0.6);" in replace(FACTS, bound="items").summary()[1]
    assert "allowed" not in " ".join(BLOCKS.summary())


def test_the_run_log_keeps_its_keys() -> None:
    content = plain(FACTS)

    assert list(content) == [
        "required_k", "m", "l", "bound", "delta", "merge", "distance", "moves", "method", "items", "records",
        "universe",
        "sensitive_items", "suppressed_items", "suppressed_occurrences", "occurrences", "statistics", "measures", "class_sizes",
        "highest_share", "relative_error", "risk", "distributions", "crowds", "detail_lost", "frequent_items",
    ]  # fmt: skip
    assert set(content["statistics"]) == {
        "initial_clusters", "initial_ncp", "initial_ul", "least_ul", "groups", "clusters", "seconds", "seconds_reading",
    }  # fmt: skip
    assert list(content["measures"]) == [
        "ncp", "ul", "clusters", "smallest", "largest", "log2_ul_dom", "largest_item", "kept_items",
    ]  # fmt: skip
    assert content["class_sizes"][1] == {"from": 8, "to": None, "classes": 30, "rows": 5_700}
    assert content["relative_error"][1] == {"values": 0, "items": 2, "sets": 3.5, "uniform": 0.8, "queries": 100}
    assert list(content["risk"]["knowledge_attack"]["all items"]) == [
        "items", "promised", "records", "found", "success", "least", "worst", "promise", "below", "share", "share_promise",
        "error",
    ]  # fmt: skip
    assert content["risk"]["sensitive_value_shared_by_whole_class"] == {"disease": 0.02}
