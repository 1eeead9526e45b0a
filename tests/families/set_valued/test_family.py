"""The family `set_valued` on Spark: the release against its private graph, blocks, chunks, what is refused, what is removed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing.guarantees.nonreciprocal import verify_graph
from anon_spark.auditing.truth.compatibility import verify_nr_compat
from anon_spark.auditing.truth.nonreciprocal import verify_compatible
from anon_spark.columns import BLOCK, CHOSEN, DRAW, LINK, PART, ROUND, SLOT
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.families.set_valued import records, slots
from anon_spark.families.set_valued.anonymizer import SetValuedAnonymizer
from anon_spark.families.set_valued.block import Arrangement, arrange
from anon_spark.families.set_valued.recoding import SetValuedRecoding
from anon_spark.kernels.bitmaps import Sets
from anon_spark.primitives.ordering import key_frame
from anon_spark.primitives.rounds import Workspace
from anon_spark.samples.baskets import baskets
from tests.oracle import nonreciprocal_oracle as oracle

ROWS, UNIVERSE = 90, 12
SMALL: dict[str, Any] = {"segment": (5, 7), "block": 20, "key": "key"}
STUCK_BELOW = 45


def rows(labels: int = 9) -> list[tuple[int, list[str], str | None]]:
    """Baskets of numbered items, some equal, some empty; an item named twice in one; no value for some."""
    draw = Random(4)
    found = []
    for person in range(ROWS):
        size = 0 if person % 30 == 7 else draw.randint(1, 5)
        items = [str(item) for item in draw.sample(range(1, UNIVERSE + 1), size)]
        label = None if person % labels == 0 else f"label {person % labels}"
        found.append((person, items + items[:1] if person == 3 else items, label))
    return found


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(rows(), "person long, basket array<string>, label string")


def anonymizer(**changes: Any) -> SetValuedAnonymizer:
    return SetValuedAnonymizer(**{"items": "basket", "sensitive": "label", "k": 3, **SMALL, **changes})


class Found(NamedTuple):
    blocks: list[list[int]]  # links by rank
    graphs: list[list[set[int]]]
    labels: list[list[str | None]]  # published, by slot
    parts: list[list[int]]


def checked(spark: SparkSession, recoding: SetValuedRecoding, degree: int) -> Found:
    """Every block against the oracle: the Gray ranks, the rounds, the fields, the labels that the chosen round moves."""
    evidence = recoding.evidence()
    linked = {row[LINK]: row for row in evidence["linked"].collect()}
    edges = sorted(evidence["edges"].collect(), key=lambda row: (row[BLOCK], row[LINK]))
    release = recoding.staged(evidence["linked"], key_frame(spark, "order"))
    staged = sorted(release.collect(), key=lambda row: (row[BLOCK], row[SLOT]))

    in_gray_order = [frozenset(map(int, linked[link].basket)) for link in range(len(linked))]
    ranks = [oracle.gray_rank(record, UNIVERSE) for record in in_gray_order]
    assert ranks == sorted(ranks)
    assert sorted(map(sorted, in_gray_order)) == sorted(sorted(set(map(int, items))) for _, items, _ in rows())

    found = Found([], [], [], [])
    ranked = {row[LINK]: (row[BLOCK], row[SLOT]) for row in recoding.slots.select(LINK, BLOCK, SLOT).collect()}
    published = {block: list(of) for block, of in groupby(staged, key=lambda row: row[BLOCK])}
    for block, of in groupby(edges, key=lambda row: row[BLOCK]):
        own = list(of)
        links = sorted({row[LINK] for row in own}, key=lambda link: ranked[link][1])
        assert [ranked[link] for link in links] == [(block, rank) for rank in range(len(links))]
        place = {link: rank for rank, link in enumerate(links)}
        graph: list[set[int]] = [set() for _ in links]
        part = [0] * len(links)
        for row in own:
            graph[place[row[LINK]]].add(row[SLOT])
            part[place[row[LINK]]] = row[PART]
        assert sum(map(len, graph)) == len(own) and min(map(len, graph)) >= degree
        # every round is a perfect matching of its part, together they are the graph, one of them is the chosen one
        for number in set(part):
            members = [row for row in own if part[place[row[LINK]]] == number]
            size = len(graph[place[members[0][LINK]]])
            by_round = [
                sorted((place[row[LINK]], row[SLOT]) for row in members if row[ROUND] == at) for at in range(size)
            ]
            originals = [rank for rank in range(len(links)) if part[rank] == number]
            assert all([one for one, _ in pairs] == originals for pairs in by_round)
            assert all(sorted(slot for _, slot in pairs) == originals for pairs in by_round)
            assert sum(map(len, by_round)) == len(members)
            assert len({row[ROUND] for row in members if row[CHOSEN]}) == 1
        ring = [frozenset(map(int, linked[link].basket)) for link in links]
        shown = [
            oracle.Slot(frozenset(map(int, row.base)), frozenset(map(int, row.uncertain)), row.max_errors)
            for row in published[block]
        ]
        assert shown == oracle.published(ring, graph)
        chosen = sorted((place[row[LINK]], row[SLOT]) for row in own if row[CHOSEN])
        moved = oracle.published_labels([linked[link].label for link in links], [slot for _, slot in chosen])
        assert [row.label for row in published[block]] == moved
        found.blocks.append(links)
        found.graphs.append(graph)
        found.labels.append(moved)
        found.parts.append(part)
    assert sorted(link for links in found.blocks for link in links) == list(range(ROWS))
    return found


def oracle_blocks(degree: int) -> list[list[int]]:
    """Blocks of ranks, from the records in Gray order."""
    records = [frozenset(map(int, items)) for _, items, _ in rows()]
    order = oracle.gray_order(records, UNIVERSE)
    sizes = oracle.segmentation(oracle.hops(records, order), *SMALL["segment"])[1]
    return oracle.blocks(oracle.segments(range(ROWS), sizes), degree, SMALL["block"])


# --- k --------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("graph", ["groups", "ring"])
def test_the_release_is_that_of_its_graph_whatever_the_partitions(spark: SparkSession, table: DataFrame, graph: Any) -> None:
    releases = {}
    with Workspace(spark) as workspace:
        for partitions in (1, 2, 7):
            recoding = anonymizer(person="person", graph=graph).fit(table.repartition(partitions, "person"), workspace)
            releases[partitions] = [tuple(row) for row in recoding.transform(table.repartition(3)).collect()]
        found = checked(spark, recoding, 3)
        measured, facts = recoding.measured(), recoding.facts()
    assert releases[1] == releases[2] == releases[7]
    assert [sorted(links) for links in found.blocks] == oracle_blocks(3) and len(found.blocks) > 1
    if graph == "ring":
        assert found.graphs == [oracle.ring_graph(len(links), 3) for links in found.blocks]
    assert any(None in labels for labels in found.labels)

    sets = [frozenset(map(int, items)) for _, items, _ in rows()]
    in_gray_order = [sets[at] for at in oracle.gray_order(sets, UNIVERSE)]
    rates = []
    for links, edges in zip(found.blocks, found.graphs, strict=True):
        ordered = [in_gray_order[link] for link in links]
        gray = [in_gray_order[link] for link in sorted(links)]
        rate = oracle.error_rate(ordered, oracle.published(ordered, edges), edges)
        assert rate.rate <= oracle.error_rate(gray, oracle.published(gray, edges), edges).rate
        rates.append((float(rate.rate) * (len(ordered) - rate.empty), rate.empty))
    assert measured.measures.er == pytest.approx(sum(rate for rate, _ in rates) / (ROWS - 3))
    assert measured.measures.empty == sum(empty for _, empty in rates) == 3
    assert measured.measures.edges == sum(len(post) for edges in found.graphs for post in edges)
    assert measured.measures.blocks == len(found.blocks)
    assert sum(measured.orders.values()) == len(found.blocks)
    assert (facts.k, facts.l, facts.truth, facts.records, facts.universe) == (3, None, None, ROWS, UNIVERSE)
    assert recoding.warnings[:2] == [
        "1 records name an item twice; it counts once.", "3 records have no items; the error rate leaves them out.",
    ]  # fmt: skip
    assert len(recoding.warnings) == (3 if graph == "ring" else 2)


def test_groups(spark: SparkSession, table: DataFrame) -> None:
    with Workspace(spark) as workspace:
        recoding = anonymizer(k=4, graph="groups", order="gray").fit(table, workspace)
        found = checked(spark, recoding, 4)
        keys = ["one", "two", "three"]
        drawn = recoding.drawn_again(keys).collect()
    for links, graph, parts in zip(found.blocks, found.graphs, found.parts, strict=True):
        sizes = [parts.count(part) for part in range(max(parts) + 1)]
        assert parts == sorted(parts) and all(4 <= size < 8 for size in sizes)
        assert graph == oracle.groups_graph(sizes) and sorted(links) == list(range(min(links), max(links) + 1))
    # fresh draws: one slot of the graph for each record and key, none twice
    ranked = ((links[rank], post) for links, graph in zip(*found[:2], strict=True) for rank, post in enumerate(graph))
    edges = {(link, slot) for link, post in ranked for slot in post}
    assert {(row[0], row[2]) for row in drawn} <= edges
    assert len({(row[0], row[3]) for row in drawn}) == len({(row[1], row[2], row[3]) for row in drawn}) == 3 * ROWS


@pytest.mark.long
def test_chunks_are_cut_on_their_own(spark: SparkSession, table: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "CHUNK_RECORDS", 30)
    with Workspace(spark) as workspace:
        found = checked(spark, anonymizer(order="gray", k=2).fit(table, workspace), 2)
    assert {min(links) for links in found.blocks} >= {0, 30, 60}
    assert all(min(links) // 30 == max(links) // 30 for links in found.blocks)


# --- l --------------------------------------------------------------------------------------------------------------


def never_spaced(*given: Any) -> Arrangement | None:
    """As if labels could never be spaced by similarity; it runs in a worker, which other tests use, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anon_spark.families.set_valued.block.spaced_ring_of", never)
        return arrange(*given)


@pytest.mark.long
def test_shift_takes_records_by_their_labels_where_these_cannot_be_spaced(
    spark: SparkSession, table: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "arrange", never_spaced)
    with Workspace(spark) as workspace:
        recoding = anonymizer(k=None, l=3, truth="shift", graph="ring").fit(table, workspace)
        found = checked(spark, recoding, 3)
        drawn = {(row[DRAW], row[LINK]): row[SLOT] for row in recoding.drawn_again(["one", "two", "six"]).collect()}
        label_of = {row[LINK]: row.label for row in recoding.evidence()["linked"].collect()}
        assert set(recoding.measured().orders) == {"stride"}
    for links, graph, labels in zip(found.blocks, found.graphs, found.labels, strict=True):
        assert oracle.colliding(graph, labels) == []
        for number in range(3):  # fresh draws are shifts, too
            moved = oracle.published_labels([label_of[link] for link in links], [drawn[number, link] for link in links])
            assert oracle.colliding(graph, moved) == []


@pytest.mark.parametrize("truth", ["spaced", pytest.param("shift", marks=pytest.mark.long)])
def test_labels_differ_in_every_block(spark: SparkSession, table: DataFrame, truth: Any) -> None:
    with Workspace(spark) as workspace:
        recoding = anonymizer(k=None, l=3, truth=truth, graph="ring").fit(table, workspace)
        found = checked(spark, recoding, 3)
    assert len(found.blocks) > 1
    for graph, labels in zip(found.graphs, found.labels, strict=True):
        assert graph == oracle.ring_graph(len(graph), 3) and oracle.colliding(graph, labels) == []
    assert any("by its definition only" in said for said in recoding.warnings) == (truth == "shift")


def stuck_when_small(sets: Sets, *rest: Any) -> Arrangement | None:
    """As if labels could not be spaced in blocks of few records."""
    return arrange(sets, *rest) if sets.offsets.size - 1 >= STUCK_BELOW else None


def never(*_: Any) -> None:
    return None


@pytest.mark.long
def test_blocks_that_cannot_be_spaced_are_merged(
    spark: SparkSession, table: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them fail at first, the last two beside each other: every time there are fewer."""
    monkeypatch.setattr(slots, "arrange", stuck_when_small)
    with Workspace(spark) as workspace:
        found = checked(spark, anonymizer(k=None, l=2, graph="ring").fit(table, workspace), 2)
        assert all(len(links) >= STUCK_BELOW for links in found.blocks)
        assert all(sorted(links) == list(range(min(links), max(links) + 1)) for links in found.blocks)
        assert all(oracle.colliding(*of) == [] for of in zip(found.graphs, found.labels, strict=True))
        monkeypatch.setattr(slots, "arrange", never)
        with pytest.raises(DataError, match=r"too often the same, to be spread. Lower l.$"):
            anonymizer(k=None, l=2, graph="ring").fit(table, workspace)
        monkeypatch.setattr(slots, "BLOCK_MAX", 40)  # a block is one task, so it must not grow without end
        with pytest.raises(DataError, match=r"^A block of \d+ records, at most 40 are recoded together."):
            anonymizer(k=None, l=2, graph="ring").fit(table, workspace)


@pytest.mark.long
def test_a_chunk_with_too_much_of_one_label_is_joined(
    spark: SparkSession, table: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third of the table has one label, all of it in the first half of the Gray order: one chunk, and large blocks."""
    monkeypatch.setattr(records, "CHUNK_RECORDS", 45)
    sets = [frozenset(map(int, items)) for _, items, _ in rows()]
    first = oracle.gray_order(sets, UNIVERSE)[:30]
    uneven = table.withColumn(
        "label", F.when(F.col("person").isin(first), "x").otherwise(F.col("person").cast("string"))
    )
    with Workspace(spark) as workspace:
        # equal sets at the border may have gone the other way, so not all labels x are in the first ranks
        found = checked(spark, anonymizer(k=None, l=2, graph="ring", truth="shift").fit(uneven, workspace), 2)
        monkeypatch.setattr(records, "CHUNK_MAX", 60)
        with pytest.raises(DataError, match=r"^The sensitive values cannot be spread over the table. Lower l.$"):
            anonymizer(k=None, l=2, graph="ring", truth="shift").fit(uneven, workspace)
    assert max(map(len, found.blocks)) >= 60
    assert all(oracle.colliding(*of) == [] for of in zip(found.graphs, found.labels, strict=True))


# --- what cannot be -------------------------------------------------------------------------------------------------


def refused(df: DataFrame, message: str, kind: type[Exception] = DataError, **changes: Any) -> None:
    with pytest.raises(kind, match=message):
        anonymizer(**changes).fit(df)


def test_tables_that_are_refused(spark: SparkSession, table: DataFrame, workdir: Path) -> None:
    told = "^columns.items label is string: give a column of array<string>.$"
    refused(table, told, ConfigurationError, items="label", sensitive=None)
    numbers = table.withColumn("basket", F.col("basket").cast("array<int>"))
    refused(numbers, "basket is array<int>", ConfigurationError)
    refused(table, "^Columns not found: baskets. Did you mean: basket", ConfigurationError, items="baskets")
    refused(table, "^k = 91 is more than the 90 rows of the table. Lower k.$", k=91, workdir=str(workdir))
    # ten rows of each of nine labels
    told = r"^l = 6 allows a sensitive value on 8 rows at most, one is on 10. The largest l that is possible is 5.$"
    refused(table, told, k=None, l=6, workdir=str(workdir))
    one_label = table.withColumn("label", F.lit("same"))
    refused(one_label, r"one is on 90. No l above 1 is possible.$", k=None, l=2)
    twice = table.withColumn("person", F.when(F.col("person") > 5, F.col("person")))
    refused(twice, "^columns.person person: 1 persons have several rows", person="person")
    assert list(workdir.iterdir()) == []


def test_missing_lists_and_items(spark: SparkSession, table: DataFrame) -> None:
    holes = table.withColumn("basket", F.when(F.col("person") >= 10, F.col("basket")))
    refused(holes, r"^columns.items basket: 10 rows have no list. .* set nulls: suppress.$")
    refused(holes.limit(0).union(holes.where("person < 12")), "k = 3 is more than the 2 rows", nulls="suppress")
    hole = F.when(F.col("person") == 5, F.array(F.lit("1"), F.lit(None))).otherwise(F.col("basket"))
    item = table.withColumn("basket", hole)
    refused(item, r"^columns.items basket: 1 rows have a null among their items. Remove it.$", nulls="suppress")
    with Workspace(spark) as workspace:
        recoding = anonymizer(nulls="suppress", order="gray").fit(holes, workspace)
        assert recoding.records.dropped_nulls == 10
        assert recoding.transform(holes).count() == ROWS - 10


@pytest.mark.parametrize(
    "wrong",
    [
        {"l": 2}, {"k": None}, {"k": 1}, {"k": True}, {"k": 2.5}, {"k": None, "l": 1}, {"k": None, "l": 2, "sensitive": None},
        {"order": "grey"}, {"graph": "star"}, {"truth": "pairs"}, {"nulls": "keep"}, {"segment": (1, 5)}, {"segment": (6, 5)},
        {"segment": (5,)}, {"block": 0}, {"sensitive": "basket"}, {"sensitive": "Base"}, {"sensitive": "max_errors"},
        {"person": "label"},
    ],
    ids=str,
)  # fmt: skip
def test_words_and_values_that_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        anonymizer(**wrong)


def test_warnings_say_what_does_not_hold() -> None:
    ring: dict[str, Any] = {"k": None, "l": 4, "graph": "ring"}
    settings: dict[str, dict[str, Any]] = {
        "two": {"k": 2},
        "groups": {"k": 4},
        "shift": ring | {"truth": "shift"},
        "spaced": ring,
        "paper": ring | {"truth": "paper"},
    }
    table = records.Records(None, [], ROWS, 0, 0, 0)  # type: ignore[arg-type]
    said = {name: " ".join(anonymizer(**of)._warnings(table)) for name, of in settings.items()}
    assert [name for name in said if "by its definition only" in said[name]] == ["two", "shift"]
    assert [name for name in said if "does not keep l" in said[name]] == ["paper"]
    assert [name for name in said if "rows overlap" in said[name]] == ["shift", "spaced", "paper"]
    assert said["groups"] == ""


# --- records of all kinds -------------------------------------------------------------------------------------------


def released(spark: SparkSession, baskets: Sequence[Sequence[str]], k: int) -> list[Any]:
    df = spark.createDataFrame([(list(items),) for items in baskets], "basket array<string>")
    with Workspace(spark) as workspace:
        recoding = anonymizer(k=k, sensitive=None).fit(df, workspace)
        release = recoding.transform(df)
        assert release.columns == ["base", "uncertain", "max_errors"]
        return release.collect()


def test_a_giant_record_among_small_ones(spark: SparkSession) -> None:
    """Its items are uncertain in the rows of its group; names are sorted as texts."""
    giant = [f"item {number}" for number in range(5000)]
    found = released(spark, [giant, *[["item 1"]] * 8, []], 3)
    widest = max(found, key=lambda row: len(row.uncertain))
    assert widest.max_errors >= 4999 and widest.uncertain == sorted(widest.uncertain)
    assert 3 <= sum(len(row.uncertain) >= 4999 for row in found) <= 5


@pytest.mark.long
def test_a_universe_of_100000_items(spark: SparkSession) -> None:
    wide = baskets(spark, 2_500, universe=100_000)
    with Workspace(spark) as workspace:
        recoding = SetValuedAnonymizer(items="items", k=4, order="window", block=1_000, key="key").fit(wide, workspace)
        evidence = recoding.evidence()
        staged = workspace.store(recoding.staged(wide, key_frame(spark, "order")), "release")
        assert len(recoding.records.universe) > 5_000
        verdicts = [
            verify_graph(evidence["linked"], staged, evidence["edges"], 4),
            verify_compatible(evidence["linked"], staged, evidence["edges"], "items"),
            verify_nr_compat(wide, staged, "items", 4)[0],
        ]
    assert [str(verdict) for verdict in verdicts if not verdict.passed] == []


def test_values_of_any_type_and_names_with_dots(spark: SparkSession) -> None:
    """Timestamps, which tasks get in the session's time zone; nulls inside of a value."""
    value = "named_struct('at', timestamp_seconds(id * 1000003), 'names', array(string(id), null))"
    df = spark.range(12).selectExpr("array(string(id % 3), 'b') as `its.items`", f"{value} as `a.val``ue`")
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        with Workspace(spark) as workspace:
            release = anonymizer(items="its.items", sensitive="a.val`ue", order="gray").fit(df, workspace).transform(df)
            assert sorted(str(row[-1]) for row in release.collect()) == sorted(str(row[-1]) for row in df.collect())
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))


def test_no_items_at_all(spark: SparkSession) -> None:
    assert [tuple(row) for row in released(spark, [[]] * 5, 4)] == [([], [], 0)] * 5


# --- the recoding ---------------------------------------------------------------------------------------------------


def test_a_recoding_is_bound_to_its_table_and_removed_with_its_files(
    table: DataFrame, workdir: Path, tmp_path: Path
) -> None:
    recoding = anonymizer(key=None, order="gray", workdir=str(workdir)).fit(table)
    assert recoding.transform(table).columns == ["base", "uncertain", "max_errors", "label"]
    assert recoding.key not in repr(recoding)
    for other in (
        table.where("person > 0"),
        table.withColumn("label", F.coalesce("label", F.lit("some"))),
        table.withColumn("basket", F.when(F.col("person") == 3, F.array(F.lit("1"))).otherwise(F.col("basket"))),
    ):
        with pytest.raises(ConfigurationError, match="bound to the table it was fitted on"):
            recoding.transform(other)
    with pytest.raises(ConfigurationError, match=r"^Columns not found: basket"):
        recoding.transform(table.drop("basket"))
    with pytest.raises(ConfigurationError, match="cannot be saved"):
        recoding.save(tmp_path / "recoding.json")
    assert list(tmp_path.iterdir()) == [workdir] and list(workdir.iterdir())
    recoding.close()
    assert list(workdir.iterdir()) == []
