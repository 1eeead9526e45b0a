"""Local recodings with planted faults: the run's audit knows the assignment, the audit of a current release does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing import RowAccount, assignment_columns, verify_covered, verify_local_recoding, verify_rows
from anon_spark.auditing.reading import labels
from anon_spark.auditing.reading.labels import Labels
from anon_spark.auditing.truth import local_coverage
from anon_spark.errors import ConfigurationError
from anon_spark.model.hierarchy import Hierarchy
from tests.auditing.town import Row, frame
from tests.event_log import EventLog

HIERARCHIES = {
    "age": Hierarchy.intervals(20, 29, [5]).with_null(),
    "job.title": Hierarchy.from_levels(
        [("nurse", "health", "service", "*"), ("doctor", "health", "service", "*"), ("cook", "service", "*"),
         ("smith", "craft", "*"), ("mason", "craft", "*"), ("monk", "*")]
    ),
}  # fmt: skip
STARS = Hierarchy.from_levels([("x", "*", "*"), ("y", "*", "*")])  # the root twice
KEPT = ["disease", "weight"]
NAMES = [*HIERARCHIES, *KEPT]
KINDS: list[pa.DataType] = [pa.string(), pa.string(), pa.string(), pa.float64()]
Person = tuple[Row, tuple[int, int]]

# a source row and the levels of its tuple; 20 and 20.0 are one leaf, the cooks meet although their levels differ (padding)
PEOPLE: list[Person] = [
    (("20", "nurse", "flu", 60.0), (1, 1)),
    (("20.0", "nurse", "cold", 61.0), (1, 1)),
    (("21", "doctor", None, 62.0), (1, 1)),
    (("22", "cook", "flu", 63.0), (1, 1)),
    (("22", "cook", "flu", 63.0), (1, 1)),
    (("23", "cook", "asthma", None), (1, 0)),
    (("26", "smith", "flu", 64.0), (1, 1)),
    (("27", "mason", "cold", 65.0), (1, 2)),
    (("28", "monk", "flu", 66.0), (0, 2)),
    (("28", "monk", "cold", 67.0), (0, 2)),
    (("28", "nurse", "cold", 67.0), (0, 1)),
    (("28", "doctor", "flu", 68.0), (0, 1)),
    (("29", "mason", "gout", 69.0), (2, 2)),
]
NULLS: list[Person] = [
    ((None, "nurse", "cold", 70.0), (0, 1)),
    ((None, "doctor", "gout", 71.0), (1, 1)),  # null keeps its label below the root
    ((None, "smith", "flu", 72.0), (2, 2)),  # joins the mason of 29 at the root
]
EVERYBODY = [*PEOPLE, *NULLS]
UNSEEN: list[Row] = [("40", "cook", "flu", 73.0), ("25", "pilot", "flu", 74.0), (None, "pilot", "flu", 76.0)]


def leaves_of(row: Row) -> Row:
    """Leaf codes by their definition; null is one more than the last value."""
    known = zip(row, HIERARCHIES.values(), strict=False)
    return tuple(len(hierarchy.keys) if value is None else hierarchy.leaf_of(value) for value, hierarchy in known)


def published(people: Sequence[Person]) -> list[Row]:
    """The release in plain Python."""
    rows = []
    for row, levels in people:
        whole = [hierarchy.with_null() for hierarchy in HIERARCHIES.values()]
        codes = zip(whole, leaves_of(row), levels, strict=True)
        rows.append((*(h.labels[level][int(h.codes[level, leaf])] for h, leaf, level in codes), *row[2:]))
    return rows


def assigned(people: Sequence[Person]) -> dict[Row, Row]:
    """Tuple of leaves → levels."""
    return {leaves_of(row): levels for row, levels in people}


def assignment(spark: SparkSession, levels: Mapping[Row, Row] | Sequence[tuple[Row, Row]]) -> DataFrame:
    """The evidence: one row per entry."""
    entries = list(levels.items()) if isinstance(levels, Mapping) else levels
    leaves, at = assignment_columns(2)
    return frame(spark, [(*key, *value) for key, value in entries], [*leaves, *at], [pa.int32()] * 4)


def source(spark: SparkSession, partitions: int | None = None) -> DataFrame:
    return frame(spark, [*(row for row, _ in EVERYBODY), *UNSEEN], NAMES, KINDS, partitions)


def release(spark: SparkSession, rows: Sequence[Row], partitions: int | None = None) -> DataFrame:
    return frame(spark, rows, NAMES, KINDS, partitions)


def replaced(row: Row, **cells: object) -> Row:
    names = ("age", "job", *KEPT)
    return tuple(cells.get(name, value) for name, value in zip(names, row, strict=True))


def faults(facts: Mapping[str, Any], kinds: str) -> dict[str, int]:
    """The faults that were counted, of those named."""
    return {kind: facts[kind] for kind in kinds.split() if facts[kind]}


LOCAL = "invented partial excess altered absent unassigned twice outside"
COVERED = "unknown uncovered totals altered"
VALUES = ("flu", "gout", "asthma", "monk", "cook", "craft", "health", "[20")


def test_an_honest_release_passes_under_both_policies(spark: SparkSession) -> None:
    evidence = assignment(spark, assigned(EVERYBODY))
    whole, part = release(spark, published(EVERYBODY)), release(spark, published(PEOPLE))
    verdict, account = verify_local_recoding(source(spark), whole, HIERARCHIES, evidence, KEPT)
    assert verdict.passed and verdict.name == "truthfulness", verdict.detail
    assert account == RowAccount(19, 16, 0, 0, 3, 0) and verify_rows(account, 0, {"suppressed": 0}).passed
    assert verdict.facts["classes"] == len({row[:2] for row in published(EVERYBODY)}) == 7
    assert (verdict.facts["tuples"], verdict.facts["unused"]) == (len(assigned(EVERYBODY)), 0)
    raw = [row[:2] for row, _ in EVERYBODY] + [row[:2] for row in UNSEEN]
    assert verdict.facts["source_tuples"] == len(set(raw))
    assert verdict.facts["source_unique"] == sum(raw.count(row) == 1 for row in raw)
    # an assignment for tuples that are not in scope is harmless, rows that are not in scope are not
    verdict, account = verify_local_recoding(source(spark), part, HIERARCHIES, evidence, KEPT, "suppress")
    assert verdict.passed and account == RowAccount(19, 13, 0, 4, 2, 0), verdict.detail
    assert verdict.facts["unused"] == 3
    verdict, account = verify_local_recoding(source(spark), whole, HIERARCHIES, evidence, KEPT, "suppress")
    assert faults(verdict.facts, LOCAL) == {"invented": 1, "excess": 1} and account.balance == -3


def faulty_classes() -> list[Row]:
    """One fault of each kind in the honest release, each in classes of its own."""
    rows = published(EVERYBODY)
    return [
        *rows[1:3],  # partial: the first of three is gone
        *rows[3:6],
        rows[3],  # excess
        replaced(rows[6], disease=rows[10][2]),  # altered: two classes exchange a value
        rows[7],  # and the monks after it are absent
        replaced(rows[10], disease=rows[6][2]),
        *rows[11:14],
        replaced(rows[14], age="20"),  # a raw value where a null was: invented, and the class of nulls is partial
        *rows[15:],
        ("[25, 29]", "health", "flu", 1.0),  # invented: true of two people, but not what they were assigned
    ]


def test_faults_in_classes_are_told_apart_whatever_the_partitions(spark: SparkSession, event_log: EventLog) -> None:
    since = event_log.mark()
    evidence = assignment(spark, assigned(EVERYBODY))
    found = []
    for at in (1, 2, 7):
        shown = release(spark, faulty_classes(), at)
        verdict, account = verify_local_recoding(source(spark, at), shown, HIERARCHIES, evidence.repartition(at), KEPT)
        found.append((dict(verdict.facts), account, verdict.detail))
    assert found[0] == found[1] == found[2]
    assert faults(verdict.facts, LOCAL) == {"invented": 2, "partial": 2, "excess": 1, "altered": 2, "absent": 1}
    assert verdict.violations == 8 and not verdict.passed
    assert account.balance == 1 and not verify_rows(account, 100, {}).passed
    assert not any(value in verdict.detail for value in VALUES)
    logged = event_log.read_text(since)
    assert not any(value in logged for value in ("asthma", "mason", "[20, 24]"))
    assert verdict.frame is not None
    classes = {tuple(row)[:2]: tuple(row)[2:] for row in verdict.frame.collect()}
    assert classes["28", "monk"] == (2, 0) and classes["[20, 24]", "cook"] == (3, 4) and len(classes) == 8


def test_faults_in_the_assignment_are_told_apart(spark: SparkSession) -> None:
    monks, smith, cook = (leaves_of(row) for row in (("28", "monk"), ("26", "smith"), ("22", "cook")))
    gaps = [(key, levels) for key, levels in assigned(EVERYBODY).items() if key != monks]
    gaps = [(key, (1, 4) if key == smith else levels) for key, levels in gaps]
    gaps += [(cook, (1, 1)), ((0, 99), (0, 0)), ((2, 0), (None, 1))]  # the last two are nobody's, and faulty
    # the family did what its assignment says: neither the monks nor the smith are published, and the cooks once
    rows = published(EVERYBODY)
    kept = [row for row, (person, _) in zip(rows, EVERYBODY, strict=True) if leaves_of(person) not in (monks, smith)]
    evidence = assignment(spark, gaps)
    verdict, account = verify_local_recoding(source(spark), release(spark, kept), HIERARCHIES, evidence, KEPT)
    assert faults(verdict.facts, LOCAL) == {"unassigned": 1, "twice": 1, "outside": 3}
    assert verdict.facts["lost_rows"] == account.balance == 3 and verdict.violations == 5
    tuples = len(assigned(EVERYBODY))
    assert all(f"1 of {tuples} source tuples {what}" in verdict.detail for what in ("have no", "are assigned more"))
    assert not any(value in verdict.detail for value in VALUES) and not verify_rows(account, 0, {}).passed

    # published all the same; the cooks as often as they were assigned, at two levels; the mason finer than assigned
    gaps[-3] = (cook, (1, 3))
    rows[12] = replaced(rows[12], age="29")
    shown = release(spark, [*rows, *(replaced(row, job="*") for row in rows[3:5])])
    shown = shown.withColumn("weight", F.col("weight").cast("string"))
    evidence = assignment(spark, gaps)
    verdict, account = verify_local_recoding(source(spark), shown, HIERARCHIES, evidence, ["disease", "weight"])
    wanted = {"invented": 3, "partial": 1, "excess": 1, "unassigned": 1, "twice": 1, "outside": 3}
    assert faults({**verdict.facts, "altered": 0}, LOCAL) == wanted and account.balance == -2
    assert "1 unchanged columns have another type than in the source: weight." in verdict.detail


def test_a_tuple_that_the_assignment_leaves_out_is_suppressed(spark: SparkSession) -> None:
    monks, cooks = leaves_of(("28", "monk")), leaves_of(("22", "cook"))
    levels = assigned(EVERYBODY) | {monks: (None, None)}
    rows = [row for row, (person, _) in zip(published(EVERYBODY), EVERYBODY, strict=True) if leaves_of(person) != monks]
    shown = release(spark, rows)
    verdict, account = verify_local_recoding(source(spark), shown, HIERARCHIES, assignment(spark, levels), KEPT)
    assert verdict.passed and account == RowAccount(19, 14, 2, 0, 3, 0), verdict.detail
    assert verify_rows(account, 2, {"suppressed": 2}).passed and not verify_rows(account, 1, {"suppressed": 2}).passed
    # published although the assignment leaves it out; left out although it was assigned; one level missing; both at once
    everything = release(spark, published(EVERYBODY))
    verdict, account = verify_local_recoding(source(spark), everything, HIERARCHIES, assignment(spark, levels), KEPT)
    assert faults(verdict.facts, LOCAL) == {"invented": 1} and account.balance == -2
    verdict, _ = verify_local_recoding(source(spark), shown, HIERARCHIES, assignment(spark, assigned(EVERYBODY)), KEPT)
    assert faults(verdict.facts, LOCAL) == {"absent": 1}
    half = assignment(spark, levels | {monks: (None, 2)})
    verdict, account = verify_local_recoding(source(spark), shown, HIERARCHIES, half, KEPT)
    assert faults(verdict.facts, LOCAL) == {"outside": 1} and account.suppressed == 0 and account.balance == 2
    twice = assignment(spark, [*levels.items(), (cooks, (None, None))])
    verdict, _ = verify_local_recoding(source(spark), shown, HIERARCHIES, twice, KEPT)
    assert faults(verdict.facts, LOCAL) == {"twice": 1}


@pytest.mark.long
def test_missing_rows_of_a_current_release_count_as_suppressed_only_if_rows_may_be(spark: SparkSession) -> None:
    rows = published(EVERYBODY)
    shown = release(spark, rows[1:])
    verdict, account = verify_covered(source(spark), shown, HIERARCHIES, KEPT)
    assert faults(verdict.facts, COVERED) == {"totals": 1} and account.balance == 1
    verdict, account = verify_covered(source(spark), shown, HIERARCHIES, KEPT, suppresses=True)
    assert verdict.passed and (account.suppressed, account.balance) == (1, 0), verdict.detail
    changed = release(spark, [replaced(rows[1], disease="plague"), *rows[2:]])
    verdict, account = verify_covered(source(spark), changed, HIERARCHIES, KEPT, suppresses=True)
    assert faults(verdict.facts, COVERED) == {"altered": 1}
    verdict, account = verify_covered(source(spark), release(spark, [*rows, rows[0]]), HIERARCHIES, KEPT, suppresses=True)
    assert verdict.facts["totals"] == 1 and account.balance == -1


def test_wrong_arguments_are_refused(spark: SparkSession) -> None:
    rows, evidence = release(spark, published(PEOPLE)), assignment(spark, assigned(PEOPLE))
    assert assignment_columns(2) == (["_anon_leaf_0", "_anon_leaf_1"], ["_anon_level_0", "_anon_level_1"])
    with pytest.raises(ConfigurationError, match="not found in the assignment"):
        verify_local_recoding(source(spark), rows, HIERARCHIES, evidence.drop("_anon_level_1"), KEPT)
    with pytest.raises(ConfigurationError, match="Did you mean: disease"):
        verify_covered(source(spark), rows, HIERARCHIES, ["disese"])
    with pytest.raises(ConfigurationError, match="at least one quasi-identifier"):
        verify_covered(source(spark), rows, {}, KEPT)
    with pytest.raises(ConfigurationError, match="'value' or 'suppress'"):
        verify_local_recoding(source(spark), rows, HIERARCHIES, evidence, KEPT, "drop")  # type: ignore[arg-type]
    ambiguous = Hierarchy.from_levels([("x", "north", "x"), ("y", "south", "x"), ("z", "west", "z")])
    with pytest.raises(ConfigurationError, match="1 labels of age mean different values"):
        verify_covered(source(spark), rows, {**HIERARCHIES, "age": ambiguous}, KEPT)
    local_coverage._refuse_ambiguous({"age": STARS.with_null(), **HIERARCHIES})  # a null leaf makes nothing ambiguous


def test_labels_have_one_number_and_one_level() -> None:
    ragged = Labels.of(HIERARCHIES["job.title"])
    level_of = dict(zip(ragged.texts, ragged.levels.tolist(), strict=True))
    assert [level_of[text] for text in ("monk", "cook", "health", "craft", "service", "*", None)] == [0, 0, 1, 1, 2, 3, 0]
    early = Labels.of(STARS)
    assert early.levels[early.texts.index("*")] == STARS.height == 2  # where null is below it, too
    bins = Hierarchy.intervals("0", "1", ["0.3", "0.6"], exact=False)
    for hierarchy in (bins, bins.with_null(), *HIERARCHIES.values()):  # null is the leaf after the last value
        own = Labels.of(hierarchy)
        assert own.numbers.shape == (hierarchy.height + 1, len(hierarchy.keys) + 1)
        assert own.texts[own.numbers[0, -1]] is None and own.texts[own.numbers[-1, -1]] == "*"


def uncovered() -> list[Row]:
    """Rows at wrong places, so that totals agree, and one changed value."""
    rows = published(EVERYBODY)
    rows[0] = replaced(rows[0], job="nurses")  # no label of the hierarchy
    rows[6] = replaced(rows[6], age="28", job="monk")  # three monks, the source has two
    rows[12] = replaced(rows[12], age=None, job="monk")  # there is none
    rows[13] = replaced(rows[13], disease="flu")
    rows[10], rows[11] = replaced(rows[10], disease="flu"), replaced(rows[11], disease="cold")  # exchanged: not to be seen
    return rows


@pytest.mark.long
def test_without_the_assignment_an_honest_release_is_covered_and_gross_faults_are_found(spark: SparkSession) -> None:
    bare = {**HIERARCHIES, "age": Hierarchy.intervals(20, 29, [5])}  # as a job file gives it: null needs no leaf
    whole = release(spark, published(EVERYBODY))
    verdict, account = verify_covered(source(spark), whole, bare, KEPT)
    assert verdict.passed and verdict.checked == verdict.facts["covered_classes"] == 7, verdict.detail
    assert account == RowAccount(19, 16, 0, 0, 3, 0) and "Necessary conditions only" in verdict.detail
    assert verdict.facts["level_vectors"] == verdict.facts["level_vectors_checked"] == 5
    # under the other policy the same rows show a null that is no label, and three rows too many
    verdict, account = verify_covered(source(spark), whole, bare, KEPT, "suppress")
    assert faults(verdict.facts, COVERED) == {"unknown": 1, "totals": 1} and account == RowAccount(19, 16, 0, 4, 2, 0)

    verdict, account = verify_covered(source(spark), release(spark, uncovered()), HIERARCHIES, KEPT)
    assert faults(verdict.facts, COVERED) == {"unknown": 1, "uncovered": 2, "altered": 1}
    assert verdict.facts["uncovered_rows"] == 2 and verdict.violations == 4 and account.balance == 0
    assert "Necessary conditions only" in verdict.detail and not any(value in verdict.detail for value in VALUES)
    assert verdict.frame is not None
    assert {tuple(row) for row in verdict.frame.collect()} == {("28", "monk", 2, 3), (None, "monk", 0, 1)}


@pytest.mark.long
def test_a_sample_of_level_vectors_is_always_the_same(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_coverage, "MOST_VECTORS", 3)
    found = []
    for at, broadcast, long in ((1, 100, 2**62), (7, 0, 2)):  # classes sent to the tuples, or shuffled with them
        monkeypatch.setattr(local_coverage, "MOST_BROADCAST", broadcast)
        monkeypatch.setattr(labels, "LONG", long)  # one key for both columns, or two
        verdict, account = verify_covered(source(spark, at), release(spark, uncovered()[1:], at), HIERARCHIES, KEPT)
        found.append((dict(verdict.facts), account, verdict.detail))
    assert found[0] == found[1]
    facts, detail = verdict.facts, verdict.detail
    assert facts["level_vectors"] == 5 and facts["level_vectors_checked"] == 3
    assert 3 <= facts["covered_classes"] < facts["classes"] and "3 of 5 combinations of levels" in detail
    assert facts["totals"] == 1 and facts["altered"] == 0 and account.balance == 1
