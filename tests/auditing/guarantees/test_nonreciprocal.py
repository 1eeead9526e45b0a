"""Nonreciprocal recodings with planted faults: with the private graph, and as a current release without it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing import (
    Verdict,
    verify_compatible,
    verify_fields,
    verify_graph,
    verify_labels,
    verify_nr_compat,
    verify_rows,
)
from anon_spark.auditing.truth import compatibility
from anon_spark.columns import BASE, BLOCK, CHOSEN, LINK, MAX_ERRORS, PART, ROUND, SLOT, UNCERTAIN
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from tests.auditing.town import Row, frame
from tests.event_log import EventLog
from tests.oracle.nonreciprocal_oracle import (
    Record,
    Slot,
    compatible_originals,
    disjoint_assignments,
    groups_graph,
    is_compatible,
    published,
    published_labels,
    ring_graph,
    spaced_ring,
)
from tests.oracle.nonreciprocal_oracle import Slot as Fields

ITEMS, LABEL = "bask.et", "diagnosis"
NAMES = pa.list_(pa.string())
SIX = ("0110", "0111", "1101", "1100", "1110", "1011")
K = 3


@dataclass(frozen=True)
class Case:
    """Records (link, items, label), staged rows (base, uncertain, max_errors, label, block, slot), and the edges."""

    linked: list[Row]
    staged: list[Row]
    edges: list[Row]

    def frames(self, spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
        kinds: dict[str, Any] = {LINK: pa.int64(), ITEMS: NAMES, LABEL: pa.string()}
        fields: dict[str, Any] = {
            BASE: NAMES, UNCERTAIN: NAMES, MAX_ERRORS: pa.int32(), LABEL: pa.string(), BLOCK: pa.int64(), SLOT: pa.int32(),
        }  # fmt: skip
        ends: dict[str, Any] = {
            LINK: pa.int64(), BLOCK: pa.int64(), SLOT: pa.int32(), ROUND: pa.int32(), CHOSEN: pa.bool_(), PART: pa.int32(),
        }  # fmt: skip
        tables = ((self.linked, kinds), (self.staged, fields), (self.edges, ends))
        linked, staged, edges = (frame(spark, rows, list(of), list(of.values())) for rows, of in tables)
        return linked, staged, edges


def names(items: Record) -> list[str]:
    return sorted(f"i{item}" for item in items)


def records(number: int, seed: int) -> list[Record]:
    rng = Random(seed)
    return [frozenset(item for item in range(8) if rng.random() < 0.5) for _ in range(number)]


def honest(l: int | None = None) -> Case:  # noqa: E741
    """A ring of 13, a ring of 11 and a block of two groups (4 and 3)."""
    linked: list[Row] = []
    staged: list[Row] = []
    edges: list[Row] = []
    rng = Random(5)
    for block, parts in enumerate([[ring_graph(13, K)], [ring_graph(11, K)], [groups_graph([4]), groups_graph([3])]]):
        first = 0
        for part, graph in enumerate(parts):
            sets = records(len(graph), 10 * block + part)
            labels = [f"label {at % (len(graph) if l else 5)}" for at in range(len(graph))]
            rounds = disjoint_assignments(graph, rng).assignments
            taken = 1 + part
            shown = published_labels(labels, rounds[taken])
            links = [1000 * block + 100 * part + at for at in range(len(graph))]
            linked += [(link, names(items), label) for link, items, label in zip(links, sets, labels, strict=True)]
            for slot, (fields, label) in enumerate(zip(published(sets, graph), shown, strict=True)):
                staged.append((names(fields.base), names(fields.dist), fields.t, label, block, first + slot))
            edges += [
                (link, block, first + slots[at], number, number == taken, part)
                for number, slots in enumerate(rounds)
                for at, link in enumerate(links)
            ]
            first += len(graph)
    rng.shuffle(staged)
    return Case(linked, staged, edges)


HONEST = honest()


def changed(rows: list[Row], at: int, **cells: Any) -> list[Row]:
    """One row with other cells, given by their position (c0, c1, …)."""
    row = tuple(cells.get(f"c{place}", cell) for place, cell in enumerate(rows[at]))
    return [*rows[:at], row, *rows[at + 1 :]]


def graph_of(spark: SparkSession, case: Case, degree: int = K) -> Verdict:
    return verify_graph(*case.frames(spark), degree)


def counted(verdict: Verdict, *kinds: str) -> dict[str, int]:
    return {kind: verdict.facts[kind] for kind in kinds if verdict.facts[kind]}


GRAPH = ("unknown", "repeated", "few", "doubled", "scattered", "rounds", "chosen", "uneven", "choices", "incomplete")


def test_an_honest_recoding_passes(spark: SparkSession, event_log: EventLog) -> None:
    since = event_log.mark()
    linked, staged, edges = HONEST.frames(spark)
    graph = verify_graph(linked, staged, edges, K).require()
    assert (graph.facts["records"], graph.facts["slots"], graph.facts["parts"]) == (31, 31, 4) and graph.violations == 0
    assert verify_compatible(linked, staged, edges, ITEMS).require().checked == 3 * (13 + 11 + 3) + 16
    assert verify_labels(linked, staged, edges, LABEL).require().checked == 31
    assert verify_fields(staged).require().checked == 31
    verdict, account = verify_nr_compat(linked, staged, ITEMS, K, LABEL)
    assert verdict.require().facts["complete"] and verdict.checked == 62
    assert verify_rows(account, 0, {"published": 31}).passed
    assert "label 1" not in event_log.read_text(since) and all("label" not in str(v) for v in (graph, verdict))


@pytest.mark.long
def test_frames_may_come_from_one_another(spark: SparkSession) -> None:
    linked, staged, edges = HONEST.frames(spark)
    whole = edges.join(staged, [BLOCK, SLOT]).join(linked.withColumnRenamed(LABEL, "own"), LINK)
    chosen = whole.where(CHOSEN)
    own = chosen.select(LINK, f"`{ITEMS}`", F.col("own").alias(LABEL))
    frames = own, chosen.select(*staged.columns), whole.select(*edges.columns)
    assert verify_graph(*frames, K).passed and verify_compatible(*frames, ITEMS).passed
    assert verify_labels(*frames, LABEL).passed and verify_nr_compat(*frames[:2], ITEMS, K, LABEL)[0].passed


def test_faults_of_the_graph(spark: SparkSession) -> None:
    edges = HONEST.edges
    place = {(edge[0], edge[3]): at for at, edge in enumerate(edges)}  # round 1 is the published one of the first rings
    lost = replace(HONEST, edges=[edge for edge in edges if (edge[0], edge[3]) != (3, 0)])
    found = graph_of(spark, lost)  # its record and its slot are short, and miss a round; their part is uneven
    assert counted(found, *GRAPH) == {"few": 2, "rounds": 2, "uneven": 1} and found.violations == 5 and not found
    found = graph_of(spark, replace(HONEST, edges=[*edges, edges[place[3, 0]]]))  # an edge twice
    assert counted(found, *GRAPH) == {"doubled": 2, "rounds": 2, "uneven": 1}

    # two rounds exchanged for one record: it keeps its edges, its slots meet a round twice
    one, other = place[3, 0], place[3, 2]
    swapped = changed(changed(edges, one, c2=edges[other][2]), other, c2=edges[one][2])
    assert counted(graph_of(spark, replace(HONEST, edges=swapped)), *GRAPH) == {"rounds": 2}

    # the published round differs inside a part: one slot is chosen twice, one never
    moved = changed(changed(edges, place[3, 1], c4=False), one, c4=True)
    found = graph_of(spark, replace(HONEST, edges=moved))
    assert counted(found, *GRAPH) == {"chosen": 2, "choices": 1}
    with pytest.raises(GuaranteeViolated, match="exactly one chosen"):
        found.require()
    both = [(*edge[:4], edge[4] or (edge[1] == 0 and edge[3] == 0), edge[5]) for edge in edges]  # two rounds published
    assert counted(graph_of(spark, replace(HONEST, edges=both)), *GRAPH) == {"chosen": 26, "choices": 1}


@pytest.mark.long
def test_other_faults_of_the_graph(spark: SparkSession) -> None:
    edges, linked, staged = HONEST.edges, HONEST.linked, HONEST.staged
    found = graph_of(spark, replace(HONEST, staged=staged[1:]))  # a slot is lost
    assert counted(found, *GRAPH) == {"unknown": 1}
    found = graph_of(spark, replace(HONEST, linked=[*linked[:-1], linked[0], (77, ["i1"], "x")]))
    assert counted(found, *GRAPH) == {"unknown": 1, "repeated": 1, "few": 1, "chosen": 1}  # 77 has no edges
    last = len(edges) - 1
    found = graph_of(spark, replace(HONEST, edges=changed(edges, last, c5=0)))
    assert found.facts["scattered"] == 2  # an edge in another part
    assert graph_of(spark, replace(HONEST, edges=changed(edges, last, c3=None))).facts["incomplete"] == 1
    assert counted(graph_of(spark, HONEST, 4), *GRAPH) == {"few": 2 * 27}
    assert not graph_of(spark, Case([], [], []))
    with pytest.raises(ConfigurationError, match="edges"):
        verify_graph(*HONEST.frames(spark)[:2], HONEST.frames(spark)[2].drop(ROUND), K)


def brute_force(case: Case) -> int:
    """Edges that are not compatible."""
    sets: Any = {link: frozenset(items) for link, items, _ in case.linked}
    rows: Any = {row[4:]: Fields(frozenset(row[0]), frozenset(row[1]), row[2]) for row in case.staged}
    return sum(not is_compatible(sets[edge[0]], rows[edge[1:3]]) for edge in case.edges)


@pytest.mark.long
def test_every_edge_is_compared(spark: SparkSession) -> None:
    staged = HONEST.staged
    sure = next(at for at, row in enumerate(staged) if len(row[1]) < 8)
    item = next(f"i{item}" for item in range(8) if f"i{item}" not in staged[sure][1])
    flipped = replace(HONEST, staged=changed(staged, sure, c0=sorted(set(staged[sure][0]) ^ {item})))
    found = verify_compatible(*flipped.frames(spark), ITEMS)
    assert found.facts["outside"] == brute_force(flipped) == (K if staged[sure][4] < 2 else found.facts["outside"])
    assert found.facts["loose"] == 1 and found.violations == found.facts["outside"] + 1  # the row itself is another one

    tight = replace(HONEST, staged=changed(staged, 0, c2=staged[0][2] - 1))
    found = verify_compatible(*tight.frames(spark), ITEMS)
    assert found.facts["too_many"] == brute_force(tight) > 0 and found.violations == found.facts["too_many"] + 1
    room = next(at for at, row in enumerate(staged) if row[2] < len(row[1]))
    for said in ({"c2": staged[room][2] + 1}, {"c1": sorted([*staged[room][1], "i99"])}):  # true, and less than is known
        found = verify_compatible(*replace(HONEST, staged=changed(staged, room, **said)).frames(spark), ITEMS)
        assert found.violations == found.facts["loose"] == 1

    longer = replace(HONEST, linked=changed(HONEST.linked, 0, c1=[*HONEST.linked[0][1] * 2, "i99"]))  # unknown; twice is once
    assert verify_compatible(*longer.frames(spark), ITEMS).facts["outside"] == brute_force(longer) == K
    lost = replace(HONEST, linked=HONEST.linked[1:], staged=[row for row in staged if row[4:] != (1, 0)])
    assert verify_compatible(*lost.frames(spark), ITEMS).facts["missing"] == 2 * K
    assert not verify_compatible(*replace(HONEST, edges=[]).frames(spark), ITEMS)


def test_labels_move_with_the_assignment(spark: SparkSession) -> None:
    labels = {link: label for link, _, label in HONEST.linked}
    own = {(block, slot): labels[1000 * block + slot] for block in (0, 1) for slot in range(11)}
    still = replace(HONEST, staged=[(*row[:3], own.get(row[4:], row[3]), *row[4:]) for row in HONEST.staged])
    holders = {edge[1:3]: edge[0] for edge in HONEST.edges if edge[4]}
    wrong = sum(labels[holders[row[4:]]] != row[3] for row in still.staged)
    found = verify_labels(*still.frames(spark), LABEL)
    assert found.violations == found.facts["not_moved"] == wrong > 0

    null = replace(
        HONEST,
        linked=changed(HONEST.linked, 0, c2=None),
        staged=[(*row[:3], None if holders[row[4:]] == 0 else row[3], *row[4:]) for row in HONEST.staged],
    )
    assert verify_labels(*null.frames(spark), LABEL).passed
    assert verify_labels(*replace(null, linked=HONEST.linked).frames(spark), LABEL).violations == 1

    chosen = next(at for at, edge in enumerate(HONEST.edges) if edge[4])
    none = replace(HONEST, edges=changed(HONEST.edges, chosen, c4=False))
    assert verify_labels(*none.frames(spark), LABEL).facts["unlinked"] == 1
    assert verify_labels(*replace(HONEST, linked=HONEST.linked[2:]).frames(spark), LABEL).facts["unlinked"] == 2
    assert not verify_labels(*Case([], [], []).frames(spark), LABEL)


def test_labels_of_a_record_differ(spark: SparkSession) -> None:
    diverse = honest(K)
    assert verify_labels(*diverse.frames(spark), LABEL, K).passed
    assert verify_labels(*diverse.frames(spark), LABEL, K + 1).facts["alike"] == 27  # all but the group of four
    # slots 4 and 5 of a ring are seen together by two records
    twice = "label twice"
    holders = {edge[1:3]: edge[0] for edge in diverse.edges if edge[4]}
    pair = {holders[(0, 4)], holders[(0, 5)]}
    alike = replace(
        diverse,
        linked=[(*row[:2], twice if row[0] in pair else row[2]) for row in diverse.linked],
        staged=[(*row[:3], twice if row[4:] in ((0, 4), (0, 5)) else row[3], *row[4:]) for row in diverse.staged],
    )
    assert verify_labels(*alike.frames(spark), LABEL).passed
    found = verify_labels(*alike.frames(spark), LABEL, K)
    assert found.violations == found.facts["alike"] == 2 and not found


def test_spaced_labels_of_the_oracle_pass(spark: SparkSession) -> None:
    sets, labels = records(26, 4), [f"label {at % 12}" for at in range(26)]
    order = spaced_ring(sets, list(range(26)), labels, 3, 5, 0)
    assert order is not None
    ring, own = [sets[at] for at in order], [labels[at] for at in order]
    rounds = disjoint_assignments(ring_graph(26, 3), Random(1)).assignments
    shown = published_labels(own, rounds[2])
    case = Case(
        [(at, names(items), label) for at, (items, label) in enumerate(zip(ring, own, strict=True))],
        [(names(f.base), names(f.dist), f.t, shown[at], 0, at) for at, f in enumerate(published(ring, ring_graph(26, 3)))],
        [(at, 0, slots[at], number, number == 2, 0) for number, slots in enumerate(rounds) for at in range(26)],
    )
    assert verify_labels(*case.frames(spark), LABEL, 3).passed and graph_of(spark, case).passed


def test_faults_of_a_row(spark: SparkSession) -> None:
    rows: list[Row] = [
        (["a"], ["a", "b"], 1), (["a"], [], 0), ([], ["b"], 1),  # fine
        (["a"], ["b"], 0), (["a"], ["b"], 2), ([], [], 1), (["a"], ["b"], -1),
        (["b", "a"], [], 0), ([], ["b", "a"], 2), (["a", "a"], [], 0), ([], ["b", "b"], 1),
        (None, [], 0), ([], None, 0), ([], [], None), (["a", None], [], 0),
    ]  # fmt: skip
    kinds = [NAMES, NAMES, pa.int32()]
    found = verify_fields(frame(spark, rows, [BASE, UNCERTAIN, MAX_ERRORS], kinds))
    assert counted(found, "nulls", "unsorted", "errors") == {"nulls": 4, "unsorted": 4, "errors": 4}
    assert found.violations == 12 and found.checked == 15 and "12" not in found.detail
    assert verify_fields(frame(spark, rows[:3], [BASE, UNCERTAIN, MAX_ERRORS], kinds)).passed
    assert not verify_fields(frame(spark, [], [BASE, UNCERTAIN, MAX_ERRORS], kinds))
    with pytest.raises(ConfigurationError, match="array<string>"):
        verify_fields(frame(spark, [("a", ["b"], 1)], [BASE, UNCERTAIN, MAX_ERRORS], [pa.string(), NAMES, pa.int32()]))


def fits(case: Case) -> tuple[list[int], list[int]]:
    """Per record the rows it may be, per row the records it may be."""
    sets: Any = [frozenset(items) for _, items, _ in case.linked]
    rows: Any = [Fields(frozenset(row[0]), frozenset(row[1]), row[2]) for row in case.staged]
    of_rows = [compatible_originals(sets, row) for row in rows]
    return [sum(at in of for of in of_rows) for at in range(len(sets))], [len(of) for of in of_rows]


def test_the_tables_alone_against_brute_force(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    # equal records, an empty one, items in another order and twice
    linked = changed(HONEST.linked, 0, c1=[*reversed(HONEST.linked[0][1]), *HONEST.linked[0][1]])
    linked = changed(changed(linked, 5, c1=[]), 7, c1=linked[6][1])
    staged = changed(HONEST.staged, 2, c2=max(0, HONEST.staged[2][2] - 1))
    staged = changed(staged, 3, c0=["i77"], c1=["i77", "i99"], c2=1)
    case = Case(linked, staged, [])
    of_records, of_rows = fits(case)
    source, release, _ = case.frames(spark)
    for k, at_once in ((K, 50_000), (5, 9)):
        monkeypatch.setattr(compatibility, "SETS_AT_ONCE", at_once)  # the sample meets several chunks
        found, account = verify_nr_compat(source, release, ITEMS, k)
        assert found.facts["records_below"] == int(np.sum(np.array(of_records) < k))
        assert found.facts["rows_below"] == int(np.sum(np.array(of_rows) < k)) > 0
        assert (found.facts["records_least"], found.facts["rows_least"]) == (min(of_records), min(of_rows))
        assert account.balance == 0 and not found


def test_a_wrong_number_of_rows_changes_no_verdict(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compatibility, "COMPLETE", 10)
    source, release, _ = HONEST.frames(spark)
    expected, account = verify_nr_compat(source, release, ITEMS, K, sample=6)
    for rows in (31, 5):  # of 5 rows all would be compared, with all
        found, again = compatibility.nr_compat_check(source, release, ITEMS, K, sample=6, rows=rows).get()
        assert (found.facts, found.detail, again) == (expected.facts, expected.detail, account)


@pytest.mark.long
def test_a_sample_is_compared_with_all(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compatibility, "COMPLETE", 10)
    monkeypatch.setattr(compatibility, "SETS_AT_ONCE", 9)
    linked, staged, _ = HONEST.frames(spark)
    some, again = (verify_nr_compat(linked.repartition(parts), staged, ITEMS, K, sample=6)[0] for parts in (1, 5))
    assert some.passed and not some.facts["complete"] and some.facts == again.facts
    assert 12 <= some.checked <= 31 and "6 distinct" in some.detail
    of_records, of_rows = fits(HONEST)
    assert some.facts["records_least"] in of_records and some.facts["rows_least"] in of_rows
    bare = replace(HONEST, staged=[(row[0], [], 0, *row[3:]) for row in HONEST.staged])  # bases as if they were exact
    assert not verify_nr_compat(*bare.frames(spark)[:2], ITEMS, K, sample=6)[0]


@pytest.mark.long
def test_rows_and_labels_of_the_tables_add_up(spark: SparkSession) -> None:
    linked = [*HONEST.linked, (9001, None, "label 0")]
    source, release, _ = replace(HONEST, linked=linked).frames(spark)
    found, account = verify_nr_compat(source, release, ITEMS, K, LABEL, nulls="suppress")
    assert found.passed and account.dropped_nulls == 1 and verify_rows(account, 0, {"dropped_nulls": 1}).passed
    found, account = verify_nr_compat(source, release, ITEMS, K, LABEL)
    assert not found and found.facts["totals"] == 1 and account.balance == 1

    holes = changed(HONEST.linked, 0, c1=[*HONEST.linked[0][1], None])
    other = replace(HONEST, linked=holes, staged=changed(HONEST.staged, 0, c3="label none"))
    found = verify_nr_compat(*other.frames(spark)[:2], ITEMS, K, LABEL)[0]
    assert counted(found, "altered", "holes", "totals", "records_below", "rows_below") == {"altered": 1, "holes": 1}
    assert not verify_nr_compat(*Case([], [], []).frames(spark)[:2], ITEMS, K)[0]


def test_the_example_of_the_paper(spark: SparkSession) -> None:
    """Six records, ring of three: rows may be more records than the graph has edges."""
    sets = [frozenset(at for at, bit in enumerate(bits) if bit == "1") for bits in SIX]
    rows = published(sets, ring_graph(6, 3))
    assert rows[3] == Slot(frozenset({0, 1, 3}), frozenset({0, 2, 3}), 2)
    case = Case(
        [(at, names(items), None) for at, items in enumerate(sets)],
        [(names(row.base), names(row.dist), row.t, None, 0, at) for at, row in enumerate(rows)],
        [],
    )
    assert sorted(fits(case)[1]) == [3, 4, 4, 4, 4, 4]
    found = verify_nr_compat(*case.frames(spark)[:2], ITEMS, 4)[0]
    assert found.facts["rows_below"] == 1 and found.facts["rows_least"] == 3
