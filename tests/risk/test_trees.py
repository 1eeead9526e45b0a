"""The knowledge attack on published trees against its definition, and what the method itself gives away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.columns import LINK
from anon_spark.errors import ConfigurationError
from anon_spark.risk import StructureRisk, TreeKnowledge, TreeRisk, tree_attack
from anon_spark.risk.trees import matching
from anon_spark.risk.trees.drawing import Knowledge, Original, Publication, drawn, drawn_absences, original, stream
from tests.auditing import ward
from tests.auditing.town import Row, frame
from tests.auditing.ward import CUT, EVERYTHING, GROUPS, HIERARCHIES, PATIENTS, SCHEMA, SD, Paths
from tests.event_log import EventLog

K, M, N, KEY = 3, 3, 2, "a key for tests"
CROWD: list[Row] = [patient for patient in PATIENTS for _ in range(3)] + [PATIENTS[1], PATIENTS[4]]
PUBLICATION = Publication(SCHEMA, HIERARCHIES, frozenset(CUT), frozenset(SD))
LEVELS = {name: {leaf: group for group, leaves in groups.items() for leaf in leaves} for name, groups in GROUPS.items()}


def plain(paths: Paths) -> tuple[set[Any], set[Any]]:
    """Labels and relations by definition, sensitive ones aside."""
    kept = [tuple(label for label in path if label[0] != ward.STATUS) for path in paths]
    pairs = {(above, below) for path in kept for at, below in enumerate(path) for above in path[:at]}
    return {label for path in kept for label in path}, pairs


def read(spark: SparkSession, patient: Row) -> Original:
    kind = ward.source(spark, []).schema
    names = list(ward.SOURCE)
    return original([dict(zip(names, patient, strict=True))], kind, SCHEMA, HIERARCHIES)


# --- drawing -----------------------------------------------------------------------------------------------------------


def test_records_are_read_as_they_were(spark: SparkSession) -> None:
    for patient in PATIENTS:
        labels, pairs = plain(ward.paths_of([patient]))
        found = read(spark, patient)
        assert set(found.labels) == labels and set(found.relations) == pairs
        assert [PUBLICATION.image(label) for label in found.labels] == [ward.climbed(label, CUT) for label in found.labels]
    everything = Publication(SCHEMA, HIERARCHIES, frozenset(EVERYTHING), frozenset())
    assert everything.image((ward.HOSPITAL, "H1")) == ("*", "*")


def test_what_is_drawn_is_true_and_no_more_than_asked_for() -> None:
    h1, h2, flu, measles = (ward.HOSPITAL, "H1"), (ward.HOSPITAL, "H2"), (ward.DISEASE, "Flu"), (ward.DISEASE, "Gastritis")
    one = Original((h1, h2, flu, measles), ((h1, flu), (h1, measles), (h2, flu)))
    for m, n in ((1, 2), (2, 0), (2, 2), (3, 2), (9, 9)):
        made = [drawn(one, 7, m, n, PUBLICATION, Random(seed)) for seed in range(40)]
        for known in made:
            assert known is not None and known.target == 7 and len(known.labels) == min(m, 4)
            told = {*known.relations, *known.cut_off}
            assert len(told) <= n and told <= {PUBLICATION.translated(pair) for pair in one.relations}
            assert all(label in known.labels for pair in told for label in pair)
            assert known.cut_off == ((SD[0],) if SD[0] in told else ())
        assert len({known.labels for known in made if known}) > 1 or m > 3
        assert any(known.cut_off for known in made if known) == (n > 0 and m > 1)
    assert drawn(Original((), ()), 7, 2, 1, PUBLICATION, Random(1)) is None
    assert stream(KEY, "a", 1).random() == stream(KEY, "a", 1).random() != stream(KEY, "a", 2).random()


def test_what_is_absent_and_what_the_cut_shows_of_it() -> None:
    values, groups = PUBLICATION.absences(0), PUBLICATION.absences(1)
    assert (ward.STATUS, "HIV") not in values and len(values) == 12
    assert values[ward.HOSPITAL, "H1"] == {(ward.HOSPITAL, "H1")}
    assert values[ward.HOSPITAL, "Rea"].isdisjoint(CUT)  # below Maternity: nobody can tell
    assert {(ward.HOSPITAL, "H1"), (ward.HOSPITAL, "H2")} == groups[ward.HOSPITAL, "General"]
    assert groups[ward.DISEASE, "Lung disease"] >= {(ward.DISEASE, "Lung disease"), (ward.DISEASE, "Flu")}
    one = Original(((ward.HOSPITAL, "H1"), (ward.DISEASE, "Flu")), ())
    free = drawn_absences(one, groups, 9, Random(1))
    assert len(free) == 4 and groups[ward.HOSPITAL, "General"] not in free and groups[ward.DISEASE, "Lung disease"] not in free


# --- the attack --------------------------------------------------------------------------------------------------------


def tables(
    spark: SparkSession, patients: Sequence[Row], cut: Sequence[Any] = CUT, pairs: Sequence[Any] = SD
) -> tuple[DataFrame, DataFrame]:
    rows = [(ward.written(ward.released(ward.paths_of([one]), cut, pairs)), at) for at, one in enumerate(patients)]
    staged = frame(spark, rows, ["paths", LINK], [ward.PATHS, pa.int64()])
    return ward.linked(spark, patients, list(range(len(patients)))), staged


def by_definition(known: Sequence[Knowledge], shown: Sequence[Paths], number: int, level: int | None) -> TreeKnowledge:
    fits, found = [], 0
    for one in known:
        rows = [
            at
            for at, (labels, pairs) in enumerate(map(plain, shown))
            if labels >= set(one.labels) and pairs >= set(one.relations) and all(labels.isdisjoint(none) for none in one.absent)
        ]
        fits.append(len(rows))
        found += one.target in rows
    few = [rows for rows in fits if 0 < rows < K]
    borders = [(1, 2), (3, 5), (6, 11), (12, 23), (24, 47)]
    buckets = [(low, high, sum(low <= rows <= high for rows in fits)) for low, high in borders]
    return TreeKnowledge(
        labels=M, relations=N, negated=number, level=level, promised=number == 0, drawn=len(known), nothing=fits.count(0),
        below=len(few), supports=tuple(sorted(Counter(few).items())), least=min(rows for rows in fits if rows),
        mean=sum(fits) / len(fits), affected=sum(few) / len(fits), histogram=tuple(one for one in buckets if one[2]),
        cut_off=sum(bool(one.cut_off) for one in known), lost=len(known) - found, found=found,
    )  # fmt: skip


def test_the_attack_is_its_definition(spark: SparkSession, event_log: EventLog) -> None:
    linked, staged = tables(spark, CROWD)
    since = event_log.mark()
    risk = tree_attack(linked, staged, SCHEMA, HIERARCHIES, CUT, SD, K, M, N, KEY, negations=(1, 3))
    assert "Gastritis" not in event_log.read_text(since)
    shown = [ward.released(ward.paths_of([one]), CUT, SD) for one in CROWD]
    records = [read(spark, patient) for patient in CROWD]
    pairs = [(at, one, drawn(one, at, M, N, PUBLICATION, stream(KEY, "knowledge", at))) for at, one in enumerate(records)]
    asked = [(at, one, known) for at, one, known in pairs if known is not None]
    assert len(asked) == len(CROWD) - 6  # two patients have only a status
    expected = [by_definition([known for _, _, known in asked], shown, 0, None)]
    for level in (0, 1):
        nodes = PUBLICATION.absences(level)
        for number in (1, 3):
            with_absences = [
                Knowledge(
                    known.target, known.labels, known.relations, known.cut_off,
                    tuple(drawn_absences(one, nodes, 3, stream(KEY, f"absence {level}", at))[:number]),
                )
                for at, one, known in asked
            ]  # fmt: skip
            expected.append(by_definition(with_absences, shown, number, level))
    assert risk.knowledge == tuple(expected)
    first = risk.knowledge[0]
    assert first.below == 0 and first.share_below == 0.0 and first.least >= K and first.promised
    assert first.lost > 0 and first.cut_off > 0  # Gastritis⇝Medicine went with H1⇝Gastritis
    assert risk.structure.relations == 1 and risk.structure.drawn == 3  # the copies of patient 0
    assert "0 of 20 leave fewer" in str(first) and "1 relations were disassociated" in str(risk.structure)


def test_a_sample_does_not_depend_on_partitions(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    linked, staged = tables(spark, CROWD)
    whole = tree_attack(linked, staged, SCHEMA, HIERARCHIES, CUT, SD, K, M, N, KEY, draws=6)
    monkeypatch.setattr(matching, "ROWS_AT_ONCE", 3)
    monkeypatch.setattr(matching, "WORDS_AT_ONCE", 2)
    parts = tree_attack(linked.repartition(3), staged.repartition(5), SCHEMA, HIERARCHIES, CUT, SD, K, M, N, KEY, draws=6)
    assert whole == parts and 0 < whole.knowledge[0].drawn <= 6


def test_an_attacker_who_knows_more_is_asked_of_the_same_records(spark: SparkSession) -> None:
    linked, staged = tables(spark, CROWD)
    attack = partial(tree_attack, linked, staged, SCHEMA, HIERARCHIES, CUT, SD, K, key=KEY, draws=9)
    both, within, beyond = attack(m=M, n=N, negations=(2,), more=1), attack(m=M, n=N, negations=(2,)), attack(m=M + 1, n=N + 1)
    assert both.knowledge == (*within.knowledge, replace(beyond.knowledge[0], promised=False))
    assert [one.promised for one in both.knowledge] == [True, False, False, False] and both.structure == within.structure


def test_the_method_gives_away_what_the_guarantee_does_not_see(spark: SparkSession) -> None:
    """§2(a): only the first record shows Flu outside a hospital, and it is the one that had H1⇝Flu."""
    flu: Any = ("Flu", [])
    other: Any = ("Gastritis", [])
    first: Row = (0, [ward.visit("H1", flu), ward.visit("H2")], "well", 1.0)
    twice: Row = (1, [ward.visit("H1", other), ward.visit("H2", flu)], "well", 1.0)
    last: Row = (2, [ward.visit("H1", other), ward.visit("H2")], "well", 1.0)
    cut = [*((ward.HOSPITAL, leaf) for leaf in ("H1", "H2", "Rea", "Gaia")),
           *((ward.DISEASE, leaf) for leaf in LEVELS[ward.DISEASE]), (ward.TREATMENT, ward.TREATMENT)]  # fmt: skip
    pairs = [((ward.HOSPITAL, "H1"), (ward.DISEASE, "Flu"))]
    linked, staged = tables(spark, [first, twice, twice, last], cut, pairs)
    risk = tree_attack(linked, staged, SCHEMA, HIERARCHIES, cut, pairs, 2, 2, 1, KEY)
    assert risk.structure == StructureRisk(relations=1, drawn=1, seen=1, exposed=1, least=1, found=1)
    assert risk.knowledge[0].below == 0 and risk.knowledge[0].drawn == 4
    whole = tree_attack(linked, staged, SCHEMA, HIERARCHIES, cut, [], 2, 2, 1, KEY)
    assert isinstance(whole, TreeRisk) and whole.structure == StructureRisk(0, 0, 0, 0, 0, 0)
    assert whole.knowledge[0].nothing > 0  # the relation is looked for, and is nowhere
    for wrong in ({"draws": 0}, {"negations": (0,)}, {"more": -1}):
        with pytest.raises(ConfigurationError):
            tree_attack(linked, staged, SCHEMA, HIERARCHIES, cut, pairs, 2, 2, 1, KEY, **wrong)
