"""The family `relational_transaction` on Spark: releases against the oracle, groups and chunks, what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.columns import BLOCK, CLUSTER, LINK
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.families.relational_transaction import chunks, groups
from anon_spark.families.relational_transaction.anonymizer import RelationalTransactionAnonymizer
from anon_spark.families.relational_transaction.clusters import initial_clusters, taken_apart
from anon_spark.families.relational_transaction.facts import ClusterMeasures
from anon_spark.families.relational_transaction.merging import BoundUnreachable
from anon_spark.families.relational_transaction.recoding import RelationalTransactionRecoding
from anon_spark.families.relational_transaction.records import Budget, Suppressed, read_records
from anon_spark.families.relational_transaction.settings import Settings
from anon_spark.families.relational_transaction.summaries import TARGET
from anon_spark.kernels.randomness import uniform
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.model.ranges import FreeRange
from anon_spark.primitives.ordering import key_frame
from anon_spark.primitives.rounds import Workspace
from tests.often import often
from tests.oracle import rt_oracle as oracle

ROWS, K, M = 64, 3, 2
SECRET = "z"
ITEMS = "abcdefgh"
RACES = [("white", "west", "*"), ("black", "west", "*"), ("asian", "east", "*"), ("thai", "east", "*"), ("other", "rest", "*")]
TREE = [("a", "ab", "*"), ("b", "ab", "*"), ("c", "cd", "*"), ("d", "cd", "*"), *((name, "rest", "*") for name in "efgh")]
BLOCK_OF_GRAY = 16


def rows() -> list[tuple[int, int, float, str, list[str], list[str]]]:
    """People with a birth year, an income, a race, some items of two columns, a few of them sensitive, some none at all."""
    draw = Random(7)
    found = []
    for person in range(ROWS):
        first = draw.sample(ITEMS, 0 if person % 16 == 5 else draw.randint(1, 4))
        secret = [SECRET] if person % 9 == 2 else []
        found.append(
            (
                person,
                1940 + draw.randrange(60),
                draw.randrange(50) * 500.0,
                RACES[draw.randrange(5)][0],
                first + first[:1] + secret if person % 7 == 0 else first + secret,
                draw.sample("xy", draw.randint(0, 2)),
            )
        )
    return found


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> DataFrame:
    kinds = "person long, born int, income double, race string, codes array<string>, drugs array<string>"
    return spark.createDataFrame(rows(), kinds)


def anonymizer(**changes: Any) -> RelationalTransactionAnonymizer:
    given: dict[str, Any] = {
        "k": K,
        "m": M,
        "quasi_identifiers": {"born": FreeRange((1930, 2000)), "income": FreeRange(), "race": Hierarchy.from_levels(RACES)},
        "transactions": ["codes"],
        "sensitive_items": {"codes": [SECRET]},
        "allow_unprotected_sensitive": True,
        "keep": ["person"],
        "block": 20,
        "key": "key",
    }
    return RelationalTransactionAnonymizer(**given | changes)


# --- against the oracle ---------------------------------------------------------------------------------------------------


def people_of(recoding: RelationalTransactionRecoding, several: bool = False) -> list[oracle.Record]:
    """The records as the family ranked them."""
    found = []
    for row in recoding.evidence()["linked"].collect():
        items = oracle.combined({"codes": row.codes, "drugs": row.drugs}) if several else frozenset(row.codes)
        secrets = frozenset({SECRET, f"codes.{SECRET}"}) & items
        found.append(oracle.Record(row[LINK], (row.born, row.income, row.race), items - secrets, secrets))
    return sorted(found, key=lambda record: record.rid)


def schema_of(records: list[oracle.Record]) -> oracle.Schema:
    incomes = [record.values[1] for record in records]
    return oracle.Schema([oracle.Number(1930, 2000), oracle.Number(min(incomes), max(incomes)), oracle.Category(RACES)])


def draws_of(blocks: list[list[oracle.Record]]) -> list[oracle.Draw]:
    """The implementation's own draws, block by block."""

    def draw_from(found: Iterator[int]) -> oracle.Draw:
        return lambda bound: next(found)

    counts = [np.arange(len(block), K - 1, -K) for block in blocks]
    return [draw_from(iter(uniform("key", "cluster", number, bounds).tolist())) for number, bounds in enumerate(counts)]


def released(recoding: RelationalTransactionRecoding, items: str = "codes") -> dict[int, oracle.Published]:
    """What the family publishes of each record, in the oracle's terms."""
    labels = {(level, row[level]) for row in RACES for level in range(3)}
    races = {label: frozenset(row[0] for row in RACES if row[level] == label) for level, label in labels}
    return {
        row[LINK]: oracle.Published(
            (tuple(row.born), tuple(row.income), races[row.race]),
            frozenset(map(tuple, row[items])),
            frozenset(row[f"{items}_sensitive"]),
        )
        for row in recoding.rows.collect()
    }


CASES: Mapping[str, dict[str, Any]] = {
    "relational bound, both, partitions": {"delta": 0.6, "merge": "both"},
    "relational bound, moves, partitions": {"delta": 0.6},
    "relational bound, moves, l, all seeds": {"delta": 0.5, "l": 2, "exhaustive_seeds": True},
    "relational bound, as in the paper": {"delta": 0.6, "refine": "none"},
    "relational bound, items, l": {"delta": 0.6, "merge": "items", "l": 2},
    "items bound, items": {"bound": "items", "delta": 0.5, "merge": "items"},
    "rfirst, two columns": {"method": "rfirst", "transactions": ["codes", "drugs"]},
    "tfirst": {"method": "tfirst", "item_block": BLOCK_OF_GRAY},
    "relational bound, apriori": {
        "delta": 0.5,
        "item_method": "apriori",
        "item_hierarchy": Hierarchy.from_levels([*TREE, (SECRET, "rest", "*")]),
    },
    "relational bound, local": {"delta": 0.9, "item_method": "local", "item_block": BLOCK_OF_GRAY},
}


@pytest.mark.parametrize("name", often(CASES, {"tfirst", "relational bound, moves, partitions"}))
def test_the_release_is_that_of_the_oracle(spark: SparkSession, table: DataFrame, name: str) -> None:
    given = CASES[name]
    several = "transactions" in given
    found = []
    for partitions in (1, 2, 7) if "partitions" in name else (3,):
        with Workspace(spark) as workspace:
            recoding = anonymizer(**given).fit(table.repartition(partitions), workspace)
            found.append(released(recoding, "transactions" if several else "codes"))
            records, measured = people_of(recoding, several), recoding.measured()
    assert all(one == found[0] for one in found)

    schema, l = schema_of(records), given.get("l")  # noqa: E741
    transform = oracle.by_sets(K, M, "rarest", l=l)
    if given.get("item_method") == "apriori":
        transform = oracle.by_levels(oracle.Category(TREE), K, M, l)
    if given.get("item_method") == "local":
        transform = oracle.by_blocks(transform, K, BLOCK_OF_GRAY)
    if given.get("method") == "tfirst":
        expected = oracle.tfirst(records, schema, K, transform, BLOCK_OF_GRAY)
    else:
        blocks = oracle.relational_blocks(records, schema, K, 20)
        assert len(blocks) > 2
        initial = oracle.initial_clusters(blocks, schema, K, draws_of(blocks), l)
        if given.get("method") == "rfirst":
            expected = oracle.rfirst(initial, transform)
        else:
            bound: Any = oracle.rum_bound if given.get("bound", "relational") == "relational" else oracle.tum_bound
            moves = bound is oracle.rum_bound and "merge" not in given and "refine" not in given
            more = {"moves": moves, "exhaustive_seeds": "exhaustive_seeds" in given} if bound is oracle.rum_bound else {}
            result = bound(initial, schema, given["delta"], transform, given.get("merge", "relational"), **more)
            assert result.infeasible is None and result.published is not None
            assert len(result.clusters) == measured.clusters < len(initial)
            expected = result.published
            loss = Fraction(measured.ncp if bound is oracle.rum_bound else measured.ul)
            assert loss <= Fraction(given["delta"])
            assert measured.ul == pytest.approx(float(oracle.ul_of_table([row.items for row in expected.values()])))
            assert measured.ncp == pytest.approx(float(oracle.ncp_of_table(result.clusters, schema)))
    assert found[0] == expected
    assert oracle.verify_kkm(list(found[0].values()), K, M) == set()
    if l is not None:
        assert oracle.verify_klm(list(found[0].values()), K, l, M) == set()


# --- items that are left out ----------------------------------------------------------------------------------------------


def test_a_budget_is_spent_on_the_rarest_items() -> None:
    supports = {"b": 1, "a": 1, "c": 2, "d": 2, "e": 3, "f": 11}
    assert Budget(3).spent_on(supports) == Suppressed((), 0, 20)
    assert Budget(3, 0.05).spent_on(supports) == Suppressed(("a",), 1, 20)
    assert Budget(3, 0.15).spent_on(supports) == Suppressed(("a", "b"), 2, 20)  # c would be one too many
    assert Budget(3, 0.2).spent_on(supports) == Suppressed(("a", "b", "c"), 4, 20)
    assert Budget(3, 1).spent_on(supports) == Suppressed(("a", "b", "c", "d"), 6, 20)  # k records have the others
    assert Budget(12, 1).spent_on(supports) == Suppressed(("a", "b", "c", "d", "e", "f"), 20, 20)
    assert Budget(12, 1).spent_on({}) == Suppressed((), 0, 0)


@pytest.mark.parametrize("everything", often({False: False, True: True}, {True}))
def test_rare_items_are_left_out(spark: SparkSession, table: DataFrame, everything: bool) -> None:
    """The rest is the release of records that never had them; UL of a record that lost one is 1. Sensitive items stay."""
    plain = F.expr("array()") if everything else F.col("codes")
    rare = F.expr(f"if(person % 24 = 3, array('rare', concat('of ', person)), if(person = 12, array('{SECRET}'), array()))")
    given = table.withColumn("codes", F.concat(plain, rare))
    found = []
    for partitions in (1,) if everything else (1, 2, 7):
        with Workspace(spark) as workspace:
            recoding = anonymizer(delta=0.6, k=4, suppress_items=1.0, m=1).fit(given.repartition(partitions), workspace)
            found.append(released(recoding))
            records, measured, suppressed = people_of(recoding), recoding.measured(), recoding.records.suppressed
            facts = recoding.facts()
    assert all(one == found[0] for one in found)

    names = {"rare", *(f"of {person}" for person in (3, 27, 51))}
    assert "rare" not in repr(suppressed)  # what is not published is not shown
    assert set(suppressed.items) == names and suppressed.occurrences == facts.suppressed_occurrences == 6
    assert facts.suppressed_items == 4 and facts.universe == (0 if everything else len(ITEMS))
    assert not {name for row in found[0].values() for label in row.items for name in label} & names
    less = [record._replace(items=record.items - names) for record in records]
    blocks = oracle.relational_blocks(less, schema_of(less), 4, 20)
    counts = [iter(uniform("key", "cluster", at, np.arange(len(one), 3, -4)).tolist()) for at, one in enumerate(blocks)]
    draws: list[oracle.Draw] = [lambda bound, drawn=drawn: next(drawn) for drawn in counts]  # type: ignore[misc]
    initial = oracle.initial_clusters(blocks, schema_of(less), 4, draws, None)
    result = oracle.rum_bound(initial, schema_of(less), 0.6, oracle.by_sets(4, 1, "rarest"), moves=True)
    assert found[0] == result.published
    lost = {record.rid for record in records if record.items & names}
    charged = [1.0 if rid in lost else float(oracle.ul_of_table([row.items])) for rid, row in found[0].items()]
    assert len(lost) == 3 and measured.ul == pytest.approx(sum(charged) / len(charged))
    assert any("4 items that fewer than k = 4 records have are not published: 6 of " in line for line in recoding.warnings)


# --- many clusters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [{"merge": "items", "l": 2}, {"bound": "items", "delta": 0.6}], ids=str
)
@pytest.mark.long
def test_groups_stay_within_their_bound(
    spark: SparkSession, table: DataFrame, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    """Several groups, then one pass over what is left."""
    monkeypatch.setattr(groups, "MOST_RECORDS", 10)
    monkeypatch.setattr(groups, "MOST_SUMMARIES", 15)  # more than the groups leave
    monkeypatch.setattr(groups, "GROUP_RECORDS", 12)
    with Workspace(spark) as workspace:
        recoding = anonymizer(**{"delta": 0.5, **given}).fit(table, workspace)
        found, measured, statistics = released(recoding), recoding.measured(), recoding.statistics
    assert statistics.groups is not None and statistics.groups > 1
    assert (measured.ul if given.get("bound") == "items" else measured.ncp) <= given.get("delta", 0.5)
    assert statistics.initial_clusters is not None and measured.clusters < statistics.initial_clusters
    assert oracle.verify_kkm(list(found.values()), K, M) == set()


@pytest.mark.long
def test_a_second_pass_spends_what_the_groups_left(
    spark: SparkSession, table: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "MOST_SUMMARIES", 15)
    monkeypatch.setattr(groups, "GROUP_RECORDS", 12)
    passes, second_pass = [], groups._second_pass

    def watched(merged: DataFrame, *others: Any) -> DataFrame:
        found = second_pass(merged, *others)
        passes.append(tuple(one.select(TARGET).distinct().count() for one in (merged, found)))
        return found

    monkeypatch.setattr(groups, "_second_pass", watched)
    with Workspace(spark) as workspace:
        both = anonymizer(delta=0.5).fit(table, workspace).measured()
    ((before, after),) = passes
    assert both.ncp <= 0.5 and before > after == both.clusters


def test_stops_of_groups_are_the_cheapest_that_are_enough() -> None:
    paths = {
        0: (np.array([5.0, 4.0, 2.0]), np.array([0.0, 3.0, 4.0])),  # two steps gain 3 for 4
        1: (np.array([6.0, 3.0, 3.5]), np.array([0.0, 1.0, 9.0])),  # one step gains 3 for 1, the next is a loss
    }
    assert groups.stops_within(paths, 11.0) == {0: 0, 1: 0}
    assert groups.stops_within(paths, 8.0) == {0: 0, 1: 1}
    assert groups.stops_within(paths, 7.9) == {0: 2, 1: 1}
    assert groups.stops_within(paths, 5.0) == {0: 2, 1: 1}
    assert groups.stops_within(paths, 4.9) is None


def test_blocks_side_by_side_are_gathered() -> None:
    assert groups.groups_of(np.array([4, 4, 4, 9, 1]), 8).tolist() == [0, 0, 1, 1, 1]
    assert groups.groups_of(np.array([3]), 8).tolist() == [0]


@pytest.mark.long
def test_large_tables_are_cut_into_chunks(spark: SparkSession, table: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks depend on values alone; every cluster stays inside one and has k records."""
    monkeypatch.setattr(chunks, "CHUNK_RECORDS", 25)
    found = []
    with Workspace(spark) as workspace:
        records = read_records(table, anonymizer().roles, "value", "error", Budget(K), key_frame(spark, "key"), workspace)
        for partitions in (1, 4):
            spread = replace(records, frame=records.frame.repartition(partitions))
            clustered = initial_clusters(spread, Settings(k=K, block=20), "key", workspace).collect()
            found.append({row[LINK]: (row[BLOCK], row[CLUSTER]) for row in clustered})
    assert found[0] == found[1]
    blocks = {block >> 20 for block, _ in found[0].values()}
    assert len(blocks) >= 3
    sizes = np.unique([cluster for _, cluster in found[0].values()], return_counts=True)[1]
    assert sizes.min() >= K and sizes.sum() == ROWS


def test_halves_known_from_buckets_are_those_counted_again(
    spark: SparkSession, table: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_RECORDS", 12)
    found = []
    with Workspace(spark) as workspace:
        records = read_records(table, anonymizer().roles, "value", "error", Budget(K), key_frame(spark, "key"), workspace)
        records = replace(records, frame=records.frame.repartition(5, LINK))  # a bucket is counted in several tasks
        for few in (2**18, 0):
            monkeypatch.setattr(chunks, "FEW_BUCKETS", few)
            chunked, number = chunks.in_chunks(records, 2)
            found.append((number, sorted(map(tuple, chunked.select(LINK, chunks.CHUNK).collect()))))
    assert found[0] == found[1] and found[0][0] >= 8


@pytest.mark.long
def test_records_that_are_all_alike_are_cut_at_random(
    spark: SparkSession, table: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No attribute parts them; they end in one cluster all the same."""
    monkeypatch.setattr(chunks, "CHUNK_RECORDS", 20)
    alike = table.withColumn("born", F.lit(1950)).withColumn("income", F.lit(1.0)).withColumn("race", F.lit("thai"))
    with Workspace(spark) as workspace:
        recoding = anonymizer(method="rfirst").fit(alike, workspace)
        sizes = chunks.in_chunks(recoding.records, 2 * K)[0].groupBy(chunks.CHUNK).count().collect()
        assert len(sizes) == 4 and max(row["count"] for row in sizes) <= 20
        assert replace(recoding.measured(), ul=0.0) == ClusterMeasures(0.0, 0.0, clusters=1, smallest=ROWS, largest=ROWS)


def test_blocks_that_no_cut_makes_smaller_are_taken_apart() -> None:
    found = taken_apart(np.array([0] * 50 + [1] * 5), 10)
    sizes = np.bincount(found)
    assert sizes.tolist() == [10, 10, 10, 10, 10, 5] and taken_apart(np.zeros(40, dtype=np.int64), 10).max() == 0


# --- what is refused, and what a bound answers ------------------------------------------------------------------------------


@pytest.mark.long
def test_a_bound_that_cannot_be_kept_tells_the_least_loss(spark: SparkSession, table: DataFrame) -> None:
    with Workspace(spark) as workspace:
        with pytest.raises(BoundUnreachable, match=r"more than delta = 0.01. Ask for a delta of at least 0.\d+") as found:
            anonymizer(delta=0.01).fit(table, workspace)
        assert 0.01 < found.value.facts["least"] < 0.5 and found.value.exit_code == 3
        with pytest.raises(BoundUnreachable, match=r"down to delta = 0.001: it begins with 0.\d+, the least is 0.\d+") as found:
            anonymizer(bound="items", delta=0.001).fit(table, workspace)
        assert 0.001 < found.value.facts["least"] <= found.value.facts["initial"]


@pytest.mark.long
def test_tables_that_are_refused(spark: SparkSession, table: DataFrame) -> None:
    bad = spark.createDataFrame(
        [
            (1, None, 1.0, "white", ["a"], ["x"]),
            (2, 1950, float("nan"), "pink", None, []),
            (3, 1900, 1.0, None, ["a", None], []),
        ],
        table.schema,
    )
    lonely = table.withColumn("codes", F.expr("if(person = 1, codes, array())"))
    small = Hierarchy.from_levels(TREE[:6])
    with Workspace(spark) as workspace:
        for refused, message, changes in (
            (bad.where("person = 1"), "columns.quasi_identifiers.born: 1 rows have no number", {}),
            (bad.where("person = 2"), "hierarchies do not know: race: 1 value in 1 row", {}),
            (bad.where("person = 3"), "codes: 1 rows have a null among their items", {}),
            (table.where("person < 2"), "k = 3 is more than the 2 rows", {}),
            (table.where("false"), "empty", {}),
            (table, "sensitive item occurs in more than one of l = 20", {"l": 20}),
            (lonely, "Only 1 of 64 records have items", {}),
            (table, "rows have a number outside its domain", {"quasi_identifiers": {"born": FreeRange((1990, 2000))}}),
            (table, "2 items are not in the item hierarchy", {"item_method": "apriori", "item_hierarchy": small}),
        ):
            with pytest.raises(DataError, match=message):
                anonymizer(**changes).fit(refused, workspace)
        with pytest.raises(ConfigurationError, match="race is string: without a hierarchy it must be a number"):
            anonymizer(quasi_identifiers={"race": FreeRange()}).fit(table, workspace)
        with pytest.raises(ConfigurationError, match=r"^columns.transactions race is string"):
            anonymizer(transactions=["race"], sensitive_items={}, quasi_identifiers={"born": FreeRange()}).fit(table, workspace)


@pytest.mark.long
def test_rows_that_policies_drop_are_counted(spark: SparkSession, table: DataFrame) -> None:
    bad = spark.createDataFrame([(91, None, 1.0, "white", ["a"], []), (92, 1950, 1.0, "pink", ["a"], [])], table.schema)
    bad = bad.unionByName(spark.createDataFrame([(93, 1950, 1.0, None, None, [])], table.schema))
    with Workspace(spark) as workspace:
        recoding = anonymizer(nulls="suppress", on_unseen="suppress", delta=0.5).fit(table.unionByName(bad), workspace)
        assert (recoding.records.rows, recoding.records.dropped_nulls, recoding.records.dropped_unseen) == (ROWS, 2, 1)
        assert recoding.records.empty == 4 and recoding.records.duplicates == 9
        assert {row.person for row in recoding.rows.select("person").collect()} == set(range(ROWS))
        release = recoding.transform(table.unionByName(bad))
        assert release.columns == ["born", "income", "race", "codes", "codes_sensitive", "person"] and release.count() == ROWS
        assert release.schema["born"].dataType.simpleString() == "struct<lo:int,hi:int>"
        with pytest.raises(ConfigurationError, match="bound to the table it was fitted on"):
            recoding.transform(table)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 1}, "k: should be at least 2"),
        ({"m": 0}, "m: should be at least 1"),
        ({"delta": 1.5}, "delta: should be at most 1"),
        ({"merge": "x"}, "merge: should be one of relational, items, both"),
        ({"transactions": []}, "transactions: name at least one"),
        ({"quasi_identifiers": {}}, "quasi_identifiers: name at least one"),
        ({"sensitive_items": {"drugs": ["x"]}}, "drugs is no transaction column"),
        ({"allow_unprotected_sensitive": False}, "published unprotected. Give l"),
        ({"sensitive_items": {}, "l": 2}, "l needs sensitive_items"),
        ({"item_method": "apriori"}, "needs a hierarchy of the items"),
        ({"suppress_items": 1.1}, "suppress_items: should be at most 1"),
        ({"suppress_items": 0.1, "item_method": "apriori", "item_hierarchy": Hierarchy.from_levels(TREE)}, "for sets of items"),
        ({"suppress_items": 0.1, "bound": "items"}, "not for bound items"),
        ({"keep": ["codes"]}, "A column has one role"),
        ({"keep": ["codes_sensitive"]}, "Columns of the release have these names: codes_sensitive"),
        ({"weights": {"born": 1.0}}, "weights: give every quasi-identifier a weight"),
    ],
)
def test_words_and_values_that_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        anonymizer(**changes)
