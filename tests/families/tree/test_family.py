"""The family `tree` on Spark: from nested tables to trees, the same cut however records are counted, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anon_spark import Hierarchy, KmnAnonymity, NodeType, Recoding, TreeAnonymizer, TreeRecoding, TreeSchema, verify
from anon_spark.errors import ConfigurationError, DataError
from anon_spark.families.tree import tasks
from anon_spark.families.tree.counting import Evaluator
from anon_spark.families.tree.kernels.trees import paths_of
from anon_spark.families.tree.records import LABELS, Roles, read_records, source_of, trees_in
from anon_spark.families.tree.rendering import as_json, as_xml
from anon_spark.families.tree.settings import Settings
from anon_spark.families.tree.structure import Step
from anon_spark.primitives.rounds import Workspace
from tests.oracle import tree_oracle as oracle
from tests.oracle.tree_example import DGH, NODE_TYPES, random_trees

SCHEMA = TreeSchema(
    (
        NodeType("Hospital", "visits.place.hospital"),
        NodeType("Disease", "visits.cases.disease", "Hospital"),
        NodeType("Treatment", "visits.cases.treatments", "Disease"),
    )
)
HIERARCHIES = {
    name: Hierarchy.from_levels([(leaf, group, "*") for group, leaves in groups.items() for leaf in leaves])
    for name, groups in NODE_TYPES.items()
}
CASE = "struct<disease: string, treatments: array<string>>"
TYPE = f"person string, visits array<struct<place: struct<hospital: string>, cases: array<{CASE}>>>"
TREES = random_trees(Random(0), DGH, 40, skip=0.0)


def nested(tree: oracle.Tree) -> list[Any]:
    """A tree as visits with cases and treatments; every value twice, to be merged."""

    def below(prefix: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [path for path in sorted(tree) if path[:-1] == prefix]

    visits = [((h[-1],), [(d[-1], [t[-1] for t in below(d)]) for d in below(h)]) for h in below(())]
    return visits + visits[:1]


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = str(tmp_path_factory.mktemp("trees") / "table")
    rows = [(f"p{number}", nested(tree)) for number, tree in enumerate(TREES)]
    spark.createDataFrame(rows, TYPE).write.parquet(path)
    return spark.read.parquet(path)


@pytest.fixture
def workspace(spark: SparkSession) -> Iterator[Workspace]:
    with Workspace(spark) as own:
        yield own


def anonymizer(**told: Any) -> TreeAnonymizer:
    given: dict[str, Any] = {"k": 4, "m": 2, "n": 1, "key": "key", "search": "gcs", "schema": SCHEMA, "hierarchies": HIERARCHIES}
    return TreeAnonymizer(**given | told)


def shown(recoding: TreeRecoding, table: DataFrame) -> list[oracle.Tree]:
    rows = recoding.transform(table).collect()
    return [oracle.closure(tuple(node["value"] for node in path) for path in row["paths"]) for row in rows]


def test_the_release_is_that_of_the_oracle_whatever_the_partitions(table: DataFrame, workspace: Workspace) -> None:
    expected = oracle.gcs(oracle.Task(DGH, TREES, 4, 2, 1, mode="batch"), 2, max_cuts=25).found
    assert len(expected.sd) > 3  # the case is worth looking at
    found = []
    for partitions in (1, 2, 7):
        fitted = anonymizer(max_cuts=25).fit(table.repartition(partitions), workspace)
        found.append((fitted.cut, fitted.pairs, fitted.statistics.loss, fitted.statistics.evaluated))
    assert found[0] == found[1] == found[2]
    assert [value for _, value in found[0][0]] == list(expected.cut)
    assert [(upper[1], lower[1]) for upper, lower in found[0][1]] == list(expected.sd)
    assert sorted(map(sorted, shown(fitted, table))) == sorted(map(sorted, expected.published))
    assert fitted.published == ["paths"] and any("search was stopped by max_cuts" in said for said in fitted.warnings)
    assert fitted.facts().disassociated_relations == len(expected.sd)
    assert verify(fitted.transform(table), KmnAnonymity(4, 2, 1)).passed


CUTS = [
    "Hospital, Disease, Treatment",
    "Diarrhea, Gastritis, H1, H2, Lung disease, Maternity, Medicine, Surgery",
    "H1, H2, Rea, Gaia, Flu, Bronchitis, Gastritis, Diarrhea, Medicine, Surgery",
]


@pytest.mark.long
def test_tasks_count_as_the_driver_does(table: DataFrame, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triples, two relations, negations, and with l sensitive values; both losses; several blocks in several tasks."""
    monkeypatch.setattr(tasks, "BLOCK_NODES", 40)
    for sensitive, cost in ((False, "rpd_a"), (True, "rpd")):
        schema = TreeSchema((*SCHEMA.node_types[:2], NodeType("Treatment", "visits.cases.treatments", "Disease", sensitive)))
        roles = Roles(schema, HIERARCHIES)
        records = read_records(source_of(table, roles, workspace), roles, "value", "error", 64, workspace)
        spread = replace(records, frame=records.frame.repartition(3))
        forest = records.forest
        settings = Settings(k=2, m=3, n=2, l=2 if sensitive else None, cost=cost)  # type: ignore[arg-type]
        treated = {"Treatment", "Medicine", "Surgery"} if sensitive else set()
        labels = [set(cut.split(", ")) - treated for cut in CUTS]
        wanted = [Step(forest.most_general), *(Step(forest.cut_of(cut)) for cut in labels)]
        judged = []
        for limit in (2**20, 0):
            monkeypatch.setattr(tasks, "LOCAL_NODES", limit)
            evaluator = Evaluator(forest, settings, (forest.number("H1"),))
            evaluator.counter = tasks.counter_of(spread, evaluator.promise, workspace)
            judged.append((evaluator.judge(wanted), evaluator.rounds))
        assert judged[0] == judged[1] and judged[0][1] > 3
        assert evaluator.counter.kind == "tasks" and {one.fits for one in judged[0][0]} == {True, False}


def test_rows_of_a_person_are_one_tree(spark: SparkSession, table: DataFrame, workspace: Workspace) -> None:
    parts = table.select("person", F.explode("visits").alias("visit")).select("person", F.array("visit").alias("visits"))
    for given, frame in ((None, table), ("person", parts)):
        roles = Roles(SCHEMA, HIERARCHIES, person=given)
        records = read_records(source_of(frame, roles, workspace), roles, "value", "error", 64, workspace)
        rows = records.frame.toArrow()
        built = trees_in(rows)
        labels = records.forest.labels
        found = [
            oracle.closure(tuple(labels[node] for node in path) for path in paths_of(built, at)) for at in range(rows.num_rows)
        ]
        assert sorted(map(sorted, found)) == sorted(map(sorted, TREES))
        assert records.count == len(TREES) and records.nodes == sum(map(len, TREES)) and (records.merged or 0) > 0
    with pytest.raises(DataError, match="a person has several rows"):
        anonymizer(person="person", keep=["visits"]).fit(parts, workspace)


def test_a_saved_recoding_applies_to_another_batch(table: DataFrame, workspace: Workspace, tmp_path: Path) -> None:
    fitted = anonymizer(search="ocs", max_cuts=10).fit(table, workspace)
    fitted.save(tmp_path / "recoding.json")
    loaded = Recoding.load(tmp_path / "recoding.json")
    assert isinstance(loaded, TreeRecoding) and loaded.published == fitted.published == ["paths", "nested"]
    assert loaded.statistics == fitted.statistics and fitted.facts().records == len(TREES)
    assert loaded.facts().records is None and not any(one.labels for one in loaded.facts().node_types)  # the table is gone
    batch = table.where(F.col("person") > "p3")
    rows = loaded.transform(batch).collect()
    assert len(rows) == batch.count()
    assert {node["value"] for row in rows for path in row["paths"] for node in path} <= {value for _, value in fitted.cut}
    first = rows[0]
    text = json.loads(as_json(first["paths"]))
    assert {node["value"] for node in text} == {node["value"] for node in first["nested"]["Hospital"]}
    below = [[inner["value"] for inner in node["Disease"]] for node in first["nested"]["Hospital"]]
    assert [[inner["value"] for inner in node.get("below", [])] for node in text] == below
    xml = ElementTree.fromstring(as_xml(first["paths"]))
    assert [node.get("value") for node in xml] == [node["value"] for node in text]
    with pytest.raises(DataError, match="hierarchies do not know: Disease: 1 value "):
        loaded.transform(batch.withColumn("visits", F.transform("visits", _renamed)))
    with pytest.raises(ConfigurationError, match="needs the fitted table"):
        _ = loaded.forest


def _renamed(visit: Any) -> Any:
    cases = F.transform(visit["cases"], lambda case: case.withField("disease", F.lit("Plague")))
    return visit.withField("cases", cases)


@pytest.mark.long
def test_policies_and_what_is_refused(spark: SparkSession, table: DataFrame, workspace: Workspace) -> None:
    case = ("Flu", ["Antibiotics"])
    rows: list[Any] = [(f"p{number}", [(("H1",), [case])]) for number in range(6)]
    odd = [("null", [((None,), [case])]), ("unseen", [(("H9",), [case, (None, None)])])]
    frame = spark.createDataFrame([*rows, *odd], TYPE)
    with pytest.raises(DataError, match="Hospital: 1 value "):
        anonymizer().fit(frame, workspace)
    kept = anonymizer(on_unseen="suppress").fit(frame, workspace)
    assert (kept.records.count, kept.records.dropped_unseen) == (7, 1)
    assert kept.records.merged is None and kept.facts().merged_siblings is None  # dropped records are not counted
    assert not any("siblings" in warning for warning in kept.warnings)
    assert kept.forest.node_of("Hospital", None) is not None
    least = anonymizer(on_unseen="suppress", nulls="suppress").fit(frame, workspace)
    assert (least.records.count, least.records.dropped_nulls + least.records.dropped_unseen) == (6, 2)

    with pytest.raises(DataError, match="1 records hold no value"):
        anonymizer().fit(spark.createDataFrame([*rows, ("empty", [])], TYPE), workspace)
    with pytest.raises(DataError, match="k is 9, but there are 6 records"):
        anonymizer(k=9).fit(spark.createDataFrame(rows, TYPE), workspace)
    with pytest.raises(DataError, match=r"6 records have more than tree\.max_labels = 2 distinct values, the largest 3"):
        anonymizer(max_labels=2).fit(spark.createDataFrame(rows, TYPE), workspace)
    secret = TreeSchema((*SCHEMA.node_types[:2], NodeType("Treatment", "visits.cases.treatments", "Disease", True)))
    with pytest.raises(DataError, match="1 sensitive values are each in more than 1/2"):
        anonymizer(schema=secret, l=2).fit(spark.createDataFrame(rows, TYPE), workspace)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"k": 1}, "k: should be at least 2"),
    ({"search": "dfs"}, "search: should be one of gcs, beam, acs, ocs"),
    ({"max_seconds": 0}, "max_seconds: should be above 0"),
    ({"l": 2}, "l needs a sensitive node type"),
    ({"hierarchies": {}}, "none is given for Hospital, Disease, Treatment"),
    ({"schema": TreeSchema((NodeType("Hospital", "visits.place.hospital", sensitive=True), NodeType("Disease", "d")))},
     "without l would be published unprotected"),
]  # fmt: skip


@pytest.mark.parametrize(("told", "said"), WRONG, ids=[said for _, said in WRONG])
def test_parameters_that_are_refused(told: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        anonymizer(**told)


FIELDS: list[tuple[tuple[NodeType, ...], str]] = [
    ((NodeType("Hospital", "visits.place.hospitl"),), "field hospitl not found. Did you mean: hospital"),
    ((NodeType("Hospital", "visits.place"),), "give a field of text"),
    ((NodeType("Hospital", "person.name"),), "goes through a string"),
    ((NodeType("Disease", "visits.cases.disease"), NodeType("Hospital", "visits.place.hospital", "Disease")),
     "node type Hospital is below Disease, but its field"),
]  # fmt: skip


@pytest.mark.parametrize(("node_types", "said"), FIELDS, ids=[said for _, said in FIELDS])
def test_fields_that_are_refused(table: DataFrame, node_types: tuple[NodeType, ...], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        anonymizer(schema=TreeSchema(node_types)).fit(table)


def test_a_record_of_many_nodes_is_counted_once(spark: SparkSession, workspace: Workspace) -> None:
    """10,000 nodes of few labels are a small tree; of many labels they are refused before any counting."""
    many = [((name,), [("Flu", ["Antibiotics"] * 50)] * 25) for name in ("H1", "H2", "Rea", "Gaia") * 2]
    frame = spark.createDataFrame([("large", many), ("small", many[:1])], TYPE)
    roles = Roles(SCHEMA, HIERARCHIES)
    records = read_records(source_of(frame, roles, workspace), roles, "value", "error", 64, workspace)
    assert (records.count, records.nodes, records.most_labels) == (2, 15, 6)
    assert records.merged is not None and records.merged > 10_000
    assert records.frame.select(F.max(F.size(LABELS))).collect()[0][0] == 12


def test_no_value_is_suggested_where_a_rule_made_the_hierarchy(table: DataFrame, workspace: Workspace) -> None:
    """Its labels are values of the table."""
    told: dict[str, Any] = {"hierarchies": HIERARCHIES | {"Hospital": Hierarchy.mask()}, "negations": ["Gaiaa"]}
    with pytest.raises(ConfigurationError, match="no value or group is labelled so") as caught:
        anonymizer(**told).fit(table, workspace)
    assert "Gaia" not in str(caught.value)
