"""The link attack on classes of mixed levels: against its definition in plain Python, and with faults it must show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anon_spark.auditing.reading.classes import published_classes
from anon_spark.model.hierarchy import Hierarchy
from anon_spark.risk import CoverRisk, cover_attack
from anon_spark.risk.look_up import cover
from anon_spark.risk.look_up.levels import Levels
from tests.auditing.town import Row, frame
from tests.event_log import EventLog

JOBS = [
    ("nurse", "health", "service", "*"), ("doctor", "health", "service", "*"), ("cook", "service", "*"),
    ("smith", "craft", "*"), ("mason", "craft", "*"), ("monk", "*"),
]  # fmt: skip
HIERARCHIES = {"age": Hierarchy.intervals(20, 29, [5]), "job.title": Hierarchy.from_levels(JOBS).with_null()}
NAMES = list(HIERARCHIES)
LABELS = [pa.string(), pa.string()]

# source row, its labels, how often; classes of 3, 4, 3, 3, 5, 3
TOWN: list[tuple[Row, Row, int]] = [
    ((20.0, "nurse"), ("[20, 24]", "health"), 2),
    ((21.0, "doctor"), ("[20, 24]", "health"), 1),
    ((22.0, "cook"), ("[20, 24]", "service"), 2),
    ((23.0, "nurse"), ("[20, 24]", "service"), 2),  # health covers these, too
    ((28.0, "monk"), ("28", "monk"), 3),
    ((26.0, "smith"), ("[25, 29]", "craft"), 1),
    ((27.0, "mason"), ("[25, 29]", "craft"), 2),
    ((25.0, "cook"), ("*", "*"), 1),
    ((None, "monk"), ("*", "*"), 1),
    ((28.0, None), ("*", "*"), 2),
    ((float("nan"), "mason"), ("*", "*"), 1),  # NaN is missing
    ((None, "smith"), (None, "craft"), 3),
]
SOURCE: list[Row] = [row for row, _, times in TOWN for _ in range(times)]
HONEST: list[Row] = [labels for _, labels, times in TOWN for _ in range(times)]


def above(row: Row) -> list[set[Any]]:
    """Per value every label that is true of it; '*' is true of anything."""
    age, job = row
    if age is None or age != age:
        ages = {None, "*"}
    else:
        ages = {f"{age:.0f}", "[20, 24]" if age < 25 else "[25, 29]", "*"} if 20 <= age <= 29 else {"*"}
    known = {path[0]: set(path) for path in JOBS} | {None: {None, "*"}}
    return [ages, known.get(job, {"*"})]


def brute_force(source: Sequence[Row], release: Sequence[Row]) -> CoverRisk:
    """The attack by its definition, on every source row."""
    classes = Counter(release)
    alike = Counter(map(str, source))
    met = [
        [size for labels, size in classes.items() if all(label in true for label, true in zip(labels, above(row), strict=True))]
        for row in source
    ]
    before = [1 / alike[str(row)] for row in source]
    after = [1 / sum(sizes) if sizes else 0 for sizes in met]
    smallest = [1 / min(sizes) if sizes else 0 for sizes in met]
    chances = [number for each in (before, after, smallest) for number in (sum(each) / len(source), max(each))]
    return CoverRisk(len(alike), len(source), sum(map(bool, met)), *chances)


def attacked(
    spark: SparkSession, source: Sequence[Row], release: Sequence[Row], at: int | None = None, **options: Any
) -> CoverRisk:
    people = frame(spark, source, NAMES, [pa.float64(), pa.string()], at)
    return cover_attack(people, frame(spark, release, NAMES, LABELS, at), HIERARCHIES, **options)


def same(found: CoverRisk, wanted: CoverRisk) -> bool:
    return astuple(replace(found, after_error=0.0)) == pytest.approx(astuple(replace(wanted, after_error=0.0)), rel=1e-11)


def test_the_attack_finds_all_classes_that_are_true_of_a_person(
    spark: SparkSession, event_log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    since = event_log.mark()
    found = [attacked(spark, SOURCE, HONEST, 1), attacked(spark, SOURCE, HONEST, 2, rows=21)]
    monkeypatch.setattr(cover, "CLASSES_AT_ONCE", 7)  # the sample is sent to several parts of the classes
    found.append(attacked(spark, SOURCE, HONEST, 7, rows=21))
    assert found[0] == found[1] == found[2]
    people, release = (frame(spark, *table) for table in ((SOURCE, NAMES, [pa.float64(), pa.string()]), (HONEST, NAMES, LABELS)))
    classes = published_classes(release, NAMES)  # as the audit counts them
    assert cover.cover_attack_to_be(people, release, HIERARCHIES, 21, classes=classes).get() == found[0]
    assert same(found[0], brute_force(SOURCE, HONEST))
    assert (found[0].tuples, found[0].rows, found[0].found) == (len(TOWN), 21, 21)
    assert found[0].before_worst == 1.0 and found[0].class_worst == pytest.approx(1 / 3)
    assert found[0].after_worst == pytest.approx(1 / 5)  # everybody has the class of * as company
    logged = event_log.read_text(since)
    assert not any(value in logged for value in ("mason", "[20, 24]"))


def test_faults_show(spark: SparkSession) -> None:
    escaped = [("20", "nurse"), *HONEST[1:]]
    found = attacked(spark, SOURCE, escaped, rows=21)
    assert same(found, brute_force(SOURCE, escaped)) and found.class_worst == 1.0

    source = [*SOURCE, (40.0, "cook"), (24.0, "pilot"), (24.0, "cook"), (29.0, "monk")]
    planted = [labels for labels in HONEST if labels != ("*", "*")]  # suppressed: some cannot be found
    planted += [("[25, 29]", "*")] * 2  # below k
    planted += [("[20, 24]", "pilot"), ("40", "*"), ("?", None)]  # no labels: they cover nothing
    found = attacked(spark, source, planted, rows=25)
    assert same(found, brute_force(source, planted))
    assert found.class_worst == found.after_worst == 0.5 and found.found == 25 - 3  # 40, the pilot, a monk


def test_the_sample_is_bounded_and_nothing_published_is_no_risk(spark: SparkSession) -> None:
    some, again = (attacked(spark, SOURCE, HONEST, at, tuples=5, rows=21) for at in (1, 7))
    assert some == again and some.tuples == 5 and some.found == some.rows
    assert attacked(spark, SOURCE, [], rows=21) == CoverRisk(12, 21, 0, 12 / 21, 1.0, 0.0, 0.0, 0.0, 0.0)
    people = frame(spark, [("20", "nurse")] * 3 + [("21", "monk")], NAMES, LABELS)  # published as it is
    assert cover_attack(people, people, HIERARCHIES, rows=4) == CoverRisk(2, 4, 4, 0.5, 1.0, 0.5, 1.0, 0.5, 1.0)


def test_blocks_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = [Levels.of(hierarchy) for hierarchy in HIERARCHIES.values()]
    classes = Counter(HONEST)
    labels = {f"_anon_label_{at}": [row[at] for row in classes] for at in range(2)}
    shown = pa.table({**labels, "_anon_size": list(classes.values())})
    leaves = {f"_anon_{at}": pa.array([levels[at].leaf(row[at]) for row, _, _ in TOWN], pa.int32()) for at in range(2)}
    sample = pa.table({"_anon_known": list(range(len(TOWN))), "_anon_rows": [times for _, _, times in TOWN], **leaves})
    whole = cover._attack(levels)(sample, shown)
    for cells in (1, 2 * len(TOWN), 5 * len(TOWN)):
        monkeypatch.setattr(cover, "CELLS_AT_ONCE", cells)
        assert cover._attack(levels)(sample, shown).equals(whole)
    assert cover._attack(levels)(sample.slice(0, 0), shown).num_rows == 0
    assert whole["_anon_smallest"].to_pylist() == [3, 3, 4, 3, 3, 3, 3, 5, 5, 5, 3, 3]
    assert whole["_anon_candidates"].to_pylist() == [12, 12, 9, 12, 8, 8, 8, 5, 5, 5, 8, 8]


def test_a_root_that_is_repeated_covers_null() -> None:
    stars = Levels.of(Hierarchy.from_levels([("x", "*", "*"), ("y", "*", "*")]))
    shown = stars.numbers(pa.chunked_array([pa.array(["x", "*", None, "z"])]))
    leaves = pa.array([stars.leaf(value) for value in ("x", "y", None, "unseen")], pa.int32()).to_numpy()
    assert stars.covering(shown, leaves).tolist() == [
        [True, False, False, False],
        [True, True, True, True],
        [False, False, True, False],
        [False, False, False, False],
    ]
