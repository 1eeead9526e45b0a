"""Truthfulness of published trees: an honest release, every way it can lie, and what a current one shows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark.auditing import RowAccount, Verdict, verify_trees, verify_trees_covered
from anon_spark.auditing.guarantees.tree_counting import packed
from anon_spark.auditing.reading.tree_records import CHAINS, RECORD, records_of
from anon_spark.auditing.truth import trees
from anon_spark.auditing.truth.tree_images import Images
from anon_spark.columns import LINK
from anon_spark.errors import ConfigurationError, GuaranteeViolated
from anon_spark.model.tree import NodeType, TreeSchema
from tests.auditing import ward
from tests.auditing.town import Row, frame
from tests.auditing.ward import CUT, DISEASE, EVERYTHING, HIERARCHIES, PATIENTS, ROOTS, SCHEMA, SD, TREATMENT
from tests.event_log import EventLog

PUBLISHED: dict[str, Any] = {"paths": ward.PATHS, "weight": pa.float64(), LINK: pa.int64()}


def shown(patient: Row, cut: Sequence[Any] = CUT, pairs: Sequence[Any] = SD) -> list[Any]:
    return ward.written(ward.released(ward.paths_of([patient]), cut, pairs))


def row(patient: Row) -> Row:
    return shown(patient), patient[3], patient[0]


def node(name: str, value: str | None) -> dict[str, str | None]:
    return {"class": name, "value": value}


# --- one record, without Spark -----------------------------------------------------------------------------------------


H1, H2, GENERAL = (node(ward.HOSPITAL, name) for name in ("H1", "H2", "General"))
LUNG, GASTRITIS, DIARRHEA, MEASLES = (
    node(ward.DISEASE, name) for name in ("Lung disease", "Gastritis", "Diarrhea", "Measles")
)
MEDICINE, SURGERY = (node(ward.TREATMENT, name) for name in ("Medicine", "Surgery"))
WELL, HIV, ALL = node(ward.STATUS, "well"), node(ward.STATUS, "HIV"), node("*", "*")
FIRST = [[GASTRITIS], [H1, MEDICINE], [H2, LUNG, MEDICINE], [WELL]]  # of patient 0

LIES: list[tuple[set[str], Any]] = [
    (set(), FIRST),
    ({"labels"}, [[H1, MEDICINE], [H2, LUNG, MEDICINE], [WELL]]),  # a label is missing
    ({"labels", "paths"}, [[DIARRHEA], *FIRST]),  # one too many
    ({"labels"}, [[GASTRITIS], [GENERAL, MEDICINE], [H2, LUNG, MEDICINE], [WELL]]),  # above the cut
    ({"labels"}, [[MEASLES], *FIRST[1:]]),  # no hierarchy has it
    ({"labels", "paths"}, [*FIRST[:3], [HIV]]),  # sensitive values, too
    ({"paths"}, [[GASTRITIS], [H1, LUNG, MEDICINE], [H2, MEDICINE], [WELL]]),  # hospitals exchanged
    ({"disassociated"}, [[H1, GASTRITIS, MEDICINE], [H2, LUNG, MEDICINE], [WELL]]),  # true, and was to be cut
    ({"malformed"}, [FIRST[1], FIRST[0], *FIRST[2:]]),
    ({"malformed"}, [[GASTRITIS], [H1], [H1, MEDICINE], [H2, LUNG, MEDICINE], [WELL]]),  # the beginning of another path
    ({"malformed"}, [*FIRST, [WELL]]),
    ({"malformed", "paths"}, [[GASTRITIS], [LUNG, H2], [H1, MEDICINE], [MEDICINE], [WELL], [WELL]]),  # upside down
    ({"paths"}, [[GASTRITIS], [H1, MEDICINE], [H2, LUNG, MEDICINE, WELL]]),  # nothing is above a status
    ({"structure"}, [[GASTRITIS], [LUNG, MEDICINE], [H1, MEDICINE], [H2], [WELL]]),  # true, and nobody cut that
    ({"labels", "malformed"}, None),
    ({"labels", "malformed"}, []),
]


def faults(patient: Row, told: Any, cut: Sequence[Any] = CUT, pairs: Sequence[Any] = SD) -> set[str]:
    images = Images.of(SCHEMA, HIERARCHIES, cut)
    yes = pa.array([True])
    batch = pa.RecordBatch.from_pydict(
        {
            RECORD: yes, trees._ROW: yes, trees.MARK: yes,
            CHAINS: pa.array([ward.leaves_of([patient])], pa.list_(pa.list_(pa.int32()))),
            trees.SHOWN: pa.array([told], ward.PATHS),
        }
    )  # fmt: skip
    settings = trees.Trees(SCHEMA, HIERARCHIES, "paths", "nested", (), None, "value")
    (found,) = trees.comparing(settings, images, images.numbered_pairs(pairs))([batch])
    sums = {name: numbers[0] for name, numbers in found.to_pydict().items()}
    kinds = {name for name, number in sums.items() if number} - {trees.FAULTY}
    assert sums[trees.FAULTY] == bool(kinds)
    return kinds - {"structure"} or kinds  # which goes along with most others


@pytest.mark.parametrize("at", range(len(LIES)))
def test_each_lie_is_caught(at: int) -> None:
    kinds, told = LIES[at]
    assert faults(PATIENTS[0], told) == kinds


def test_relations_of_the_wrong_record() -> None:
    told = [[H1, GASTRITIS], [H2, LUNG, MEDICINE], [WELL]]
    assert faults(PATIENTS[2], told) == {"labels", "paths", "disassociated"}
    assert all(faults(patient, shown(patient)) == set() for patient in PATIENTS)


def test_a_chain_that_only_pairs_would_allow() -> None:
    """Relations are true one by one, and the published path is not."""
    first = ward.visit("H1", ("Flu", ["Orthopedic"]), ("Gastritis", ["Antibiotics"]))
    patient: Row = (0, [first, ward.visit("H2", ("Flu", ["Antibiotics"]))], "well", 1.0)
    wrong = [[H1, GASTRITIS, MEDICINE], [H1, LUNG, MEDICINE], [H1, LUNG, SURGERY], [H2, LUNG, MEDICINE], [WELL]]
    assert faults(patient, shown(patient, pairs=()), pairs=()) == set()
    assert faults(patient, wrong, pairs=()) == {"paths"}


def test_everything() -> None:
    for patient in PATIENTS:
        assert faults(patient, shown(patient, EVERYTHING, ()), EVERYTHING, ()) == set()
        lie = {"labels", "paths"} if patient[2] != "well" else set()
        assert faults(patient, [[ALL], [WELL]], EVERYTHING, ()) == lie
        assert faults(patient, shown(patient), EVERYTHING, ()) == ({"labels"} if patient[1] else set())


# --- tables ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Source rows, the link of each, the staged rows, and whose rows they are."""

    source: list[Row]
    links: list[int]
    staged: list[Row]
    person: str | None = None

    def linked_verdict(
        self, spark: SparkSession, nulls: Any = "value", linked: DataFrame | None = None
    ) -> tuple[Verdict, RowAccount]:
        read = ward.linked(spark, self.source, self.links) if linked is None else linked
        known = (SCHEMA, HIERARCHIES, CUT, SD)
        source = ward.source(spark, self.source)
        return verify_trees(source, self.release(spark), read, *known, keep=["weight"], person=self.person, nulls=nulls)

    def current_verdict(
        self, spark: SparkSession, nulls: Any = "value", cut: Any = None, partial: bool = False
    ) -> tuple[Verdict, RowAccount]:
        source, release = ward.source(spark, self.source), self.release(spark).drop(LINK)
        known = (SCHEMA, HIERARCHIES, cut, partial, SD)
        return verify_trees_covered(source, release, *known, keep=["weight"], person=self.person, nulls=nulls)

    def release(self, spark: SparkSession) -> DataFrame:
        return frame(spark, self.staged, list(PUBLISHED), list(PUBLISHED.values()))


HONEST = Case(PATIENTS, list(range(8)), [row(patient) for patient in PATIENTS])


def counted(verdict: Verdict) -> dict[str, int]:
    return {kind: number for kind, number in verdict.facts.items() if number and kind not in ("records", "rows", "sets")}


def test_an_honest_release_passes(spark: SparkSession, event_log: EventLog) -> None:
    since = event_log.mark()
    found, account = HONEST.linked_verdict(spark)
    assert found.require().checked == 8 and counted(found) == {} and found.name == "truthfulness"
    assert account == RowAccount(8, 8, 0, 0, 0, 0)
    found, account = HONEST.current_verdict(spark)
    assert found.require().checked == 8 and account.balance == 0 and "Necessary conditions only" in found.detail
    assert "Gastritis" not in event_log.read_text(since)


def test_faults_of_rows_and_links(spark: SparkSession) -> None:
    rows = HONEST.staged
    told: list[Row] = [
        (rows[0][0], 61.0, 0),  # another weight
        (*rows[1][:2], 2), (*rows[2][:2], 1),  # exchanged
        (rows[3][0], None, 3),
        *rows[4:7], (*rows[6][:2], 6),  # twice, and the last one has no row
    ]  # fmt: skip
    other = [*PATIENTS[:6], (6, list(PATIENTS[4][1]), "well", 80.0), PATIENTS[7]]  # the source is not what was read
    linked = ward.linked(spark, PATIENTS, list(range(8)))
    found, account = replace(HONEST, source=other, staged=told).linked_verdict(spark, linked=linked)
    assert counted(found) == {
        "unlinked": 1, "labels": 2, "paths": 2, "structure": 2, "altered": 4, "repeated": 1, "other_records": 1
    }  # fmt: skip
    assert found.violations == 5 + 1 + 1 and account.balance == 0 and "their content differs" in found.detail
    with pytest.raises(GuaranteeViolated, match="records") as raised:
        found.require()
    assert all(word not in str(raised.value) for word in ("Gastritis", "H1", "HIV"))


@pytest.mark.long
def test_persons_are_put_together(spark: SparkSession) -> None:
    """Patients 0 and 1 are one person; arrays and rows were read in another order."""
    whose, links = [0, 0, *range(2, 8)], [10, 10, *range(11, 17)]
    source = [(who, *patient[1:3], 1.0) for who, patient in zip(whose, PATIENTS, strict=True)]
    both = ward.written(ward.released(ward.paths_of(source[:2]), CUT, SD))
    staged = [(both, 1.0, 10), *((shown(patient), 1.0, 9 + at) for at, patient in enumerate(PATIENTS[2:], 2))]
    turned = [(who, visits and visits[::-1], *rest) for who, visits, *rest in source[::-1]]
    case = Case(source, links, staged, person="id")
    found, account = case.linked_verdict(spark, linked=ward.linked(spark, turned, links[::-1]))
    assert counted(found) == {} and found.passed and account == RowAccount(7, 7, 0, 0, 0, 0)
    found, account = replace(case, person=None).linked_verdict(spark)  # rows that are records of their own
    assert counted(found) == {"other_records": 1} and account.balance == 1 and "7 records, the source has 8" in found.detail


def in_any_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows as a join may give them: in another order each time they are read."""
    for batch in batches:
        yield batch.take(pa.array(random.SystemRandom().sample(range(batch.num_rows), batch.num_rows)))


def test_arrays_side_by_side_without_a_person(spark: SparkSession) -> None:
    """Rows are numbered once for all arrays: a second read may give them another order."""
    side = TreeSchema((NodeType(DISEASE, "diseases"), NodeType(TREATMENT, "drugs")))
    values = [(["Flu"], ["Painkillers"]), (["Gastritis"], ["Antibiotics"]), (["Diarrhea"], None), (["Flu"], ["Orthopedic"])]
    table = frame(spark, values, ["diseases", "drugs"], [pa.list_(pa.string())] * 2, 1)
    read = table.mapInArrow(in_any_order, table.schema)

    found = records_of(read, side, HIERARCHIES, F.monotonically_increasing_id(), []).collect()
    keys = [HIERARCHIES[name].keys for name in (DISEASE, TREATMENT)]
    told = [
        sorted(keys[at][leaf] for chain in row[CHAINS] for at, leaf in enumerate(chain) if leaf >= 0) for row in found
    ]
    assert sorted(told) == sorted(sorted(one + (other or [])) for one, other in values)


@pytest.mark.long
def test_policies_drop_whole_records(spark: SparkSession) -> None:
    strange: Row = (8, [ward.visit("H1"), ward.visit("Oslo")], "well", 1.0)
    both: Row = (9, [ward.visit("Oslo", (None, []))], "well", 1.0)
    kept = [at for at in range(8) if at not in (3, 4, 5)]  # these have a null
    case = Case([*PATIENTS, strange, both], list(range(10)), [HONEST.staged[at] for at in kept])
    found, account = case.current_verdict(spark, "suppress")
    assert found.passed and account == RowAccount(10, 5, 0, 4, 1, 0)
    more = replace(case, staged=[*case.staged, row(PATIENTS[3])])  # a dropped record has a row
    found, account = more.linked_verdict(spark, "suppress")
    assert counted(found) == {"unlinked": 1} and account == RowAccount(10, 6, 0, 4, 1, 0)


@pytest.mark.long
def test_nested_values_say_the_same(spark: SparkSession) -> None:
    trees_ = [ward.released(ward.paths_of([patient]), ROOTS) for patient in PATIENTS]
    values = [ward.nested(tree) for tree in trees_]
    values[0] = {**values[0], ward.STATUS: values[0][ward.STATUS] * 2}
    values[2] = {**values[2], ward.HOSPITAL: []}
    values[3] = {**values[3], ward.STATUS: [{"value": "well"}]}
    values[7] = {**values[7], ward.HOSPITAL: None}
    kinds = {**PUBLISHED, "nested": ward.nested_kind()}
    rows = [(ward.written(tree), of[3], of[0], value) for tree, of, value in zip(trees_, PATIENTS, values, strict=True)]
    staged = frame(spark, rows, list(kinds), list(kinds.values()))
    linked = ward.linked(spark, PATIENTS, list(range(8)))
    found, _ = verify_trees(ward.source(spark), staged, linked, SCHEMA, HIERARCHIES, ROOTS, keep=["weight"])
    assert counted(found) == {"nested": 4} and found.violations == 4
    flat = staged.withColumn("nested", staged["weight"])
    with pytest.raises(ConfigurationError, match="struct<"):
        verify_trees(ward.source(spark), flat, linked, SCHEMA, HIERARCHIES, ROOTS)


@pytest.mark.long
def test_faults_of_a_current_release(spark: SparkSession) -> None:
    rows = HONEST.staged
    told = [
        ([[GASTRITIS], [H1, LUNG, MEDICINE], [H2, MEDICINE], [WELL]], *rows[0][1:]),  # H1⇝Lung disease nobody has
        ([[GASTRITIS], [H1, LUNG, MEDICINE], [H2, LUNG, MEDICINE], [HIV]], 61.0, 1),
        ([[H2, LUNG, MEDICINE], [H2, GASTRITIS], [WELL]], *rows[2][1:]),  # not sorted
        ([[H1, node(ward.DISEASE, None), MEASLES]], *rows[3][1:]),
        *rows[4:7], rows[6],
    ]  # fmt: skip
    found, account = replace(HONEST, staged=told).current_verdict(spark)
    expected = {"relations": 1 + 3, "altered": 1, "malformed": 2, "unknown_labels": 1}
    assert {name: counted(found)[name] for name in expected} == expected and account.balance == 0
    assert counted(found)["unequal"] == 4  # 3 as it is and as it is told, 6, 7
    # two cuts at once, and a relation that was to be cut
    mixed = [([[H1, GASTRITIS, MEDICINE], [H2, node(ward.DISEASE, "Flu"), MEDICINE], [WELL]], *rows[0][1:]), *rows[1:]]
    found, _ = replace(HONEST, staged=mixed).current_verdict(spark)
    assert {name: counted(found)[name] for name in ("below_another", "disassociated")} == {"below_another": 1, "disassociated": 1}


PARTIAL = [*ROOTS, (ward.HOSPITAL, "H1"), (DISEASE, "Gastritis"), (DISEASE, "Lung disease")]


@pytest.mark.long
def test_one_map_for_all_records_of_a_partial_cut(spark: SparkSession) -> None:
    """The audit finds the map itself: a value becomes the lowest published label at or above it, in every record."""
    source, linked = ward.source(spark), ward.linked(spark, PATIENTS, list(range(8)))
    honest = [(shown(patient, PARTIAL, ()), patient[3], patient[0]) for patient in PATIENTS]
    coarser = [label for label in PARTIAL if label != (DISEASE, "Gastritis")]
    once = [(shown(PATIENTS[0], coarser, ()), *honest[0][1:]), *honest[1:]]  # of one record a value that others show is hidden
    finer = [(shown(PATIENTS[0], [*PARTIAL, (ward.HOSPITAL, "H2")], ()), *honest[0][1:]), *honest[1:]]
    nothing = [(shown(PATIENTS[0], EVERYTHING, ()), *honest[0][1:]), *honest[1:]]
    cases = {"honest": honest, "hidden once": once, "shown once": finer, "everything once": nothing}

    found: dict[str, tuple[set[str], set[str]]] = {}
    for name, rows in cases.items():
        staged = frame(spark, rows, list(PUBLISHED), list(PUBLISHED.values()))
        proven, _ = verify_trees(source, staged, linked, SCHEMA, HIERARCHIES, keep=["weight"])
        covered, _ = verify_trees_covered(
            source, staged.drop(LINK), SCHEMA, HIERARCHIES, partial=True, keep=["weight"]
        )
        assert proven.passed == covered.passed == (name == "honest")
        found[name] = set(counted(proven)), set(counted(covered))
    assert all("labels" in found[name][0] and "unequal" in found[name][1] for name in ("hidden once", "shown once"))
    assert "below_another" in found["everything once"][1]

    staged = frame(spark, honest, list(PUBLISHED), list(PUBLISHED.values()))
    full, _ = verify_trees_covered(source, staged.drop(LINK), SCHEMA, HIERARCHIES, keep=["weight"])
    assert not full.passed and counted(full)["below_another"] > 0  # the job asked for a full cut
    assert all(faults(patient, shown(patient, PARTIAL, ()), PARTIAL, ()) == set() for patient in PATIENTS)


def test_what_no_release_could_meet_is_refused(spark: SparkSession) -> None:
    source, linked = ward.source(spark), ward.linked(spark, PATIENTS, list(range(8)))
    release = HONEST.release(spark)
    for cut in (CUT[1:], [*CUT, (ward.HOSPITAL, "General")], [*CUT, (ward.HOSPITAL, "Oslo")], []):
        with pytest.raises(ConfigurationError, match="The cut is none") as raised:
            verify_trees(source, release, linked, SCHEMA, HIERARCHIES, cut)
        assert "Oslo" not in str(raised.value)
    refused: list[tuple[Any, Any, Any]] = [
        (release.drop(LINK), linked, HIERARCHIES),
        (release.withColumnRenamed("paths", "path"), linked, HIERARCHIES),
        (release.withColumn("paths", release["weight"]), linked, HIERARCHIES),
        (release, linked.drop("visits"), HIERARCHIES),
        (release, linked, {ward.HOSPITAL: HIERARCHIES[ward.HOSPITAL]}),
    ]
    for staged, records, hierarchies in refused:
        with pytest.raises(ConfigurationError):
            verify_trees(source, staged, records, SCHEMA, hierarchies, CUT)


def test_many_node_types_are_told_apart() -> None:
    """Rows of labels are compared through numbers that hold no more than 62 bits at once."""
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 2**40, 50) for _ in range(4)]
    doubled = [np.concatenate([column, column]) for column in columns]
    keys = packed(doubled, [41] * 4)
    assert (keys[:50] == keys[50:]).all() and np.unique(keys).size == 50
    assert (np.argsort(keys[:50]) == np.lexsort(columns[::-1])).all()
