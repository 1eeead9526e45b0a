"""What a saved recoding holds: labels of the release and the job's own settings, nothing of rows that were not published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from anon_spark.auditing import completed, completed_of_trees, verify_l_diversity
from anon_spark.families.lattice.anonymizer import LatticeAnonymizer
from anon_spark.families.mst.anonymizer import MstAnonymizer
from anon_spark.families.mst.recoding import MstRecoding
from anon_spark.families.recoding import Recoding
from anon_spark.families.tree.anonymizer import TreeAnonymizer
from anon_spark.model.hierarchy import Hierarchy, Rule
from anon_spark.model.tree import TreeClass, TreeSchema
from anon_spark.primitives.rounds import Workspace

CITIES = Hierarchy.from_levels([("Aldorf", "North", "*"), ("Bexley", "South", "*")])
HIERARCHIES: dict[str, Hierarchy | Rule] = {
    "city": CITIES, "zip": Hierarchy.mask(), "born": Hierarchy.dates(["year", "decade"]),
}  # fmt: skip
MARKERS = ("CANARY", '"1666', '"1777', '"1888', '"99998')  # numbers as texts begin: a time may hold the digits by chance
POLICIES: dict[str, Any] = {"nulls": "suppress", "on_unseen": "suppress"}


def rows() -> list[dict[str, Any]]:
    """Two towns; then a row whose class is too small, and rows that policies drop, with what nobody else has."""
    plain: list[dict[str, Any]] = [
        {
            "city": "Aldorf" if number % 2 else "Bexley",
            "zip": f"{13051 if number % 2 else 22040}",
            "born": f"{1990 + number % 2}-03-0{1 + number % 3}",
        }
        for number in range(24)
    ]
    strange: list[dict[str, Any]] = [
        {"city": "Aldorf", "zip": "99998", "born": "1888-08-08"},  # in scope, alone
        {"city": None, "zip": "CANARYZIP", "born": "1666-01-01"},  # dropped: a null
        {"city": "CANARYCITY", "zip": "CANARYZIPS", "born": "1777-01-01"},  # dropped: unseen
        {"city": "Bexley", "zip": "CANARYZ", "born": "CANARYDAY"},  # dropped: no day
        {"city": "Bexley", "zip": "CANARYZIPZIP", "born": None},  # dropped: a null
    ]
    found = [*plain, *strange]
    return [{**row, "illness": ("flu", "gout")[at % 2], "name": f"CANARYNAME-{at}"} for at, row in enumerate(found)]


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows()))


@pytest.fixture(scope="module")
def workspace(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(spark, str(tmp_path_factory.mktemp("saved")))


def saved(recoding: Recoding, path: Path) -> dict[str, Any]:
    """What was written, which loads, and in which no marker is."""
    recoding.save(path)
    text = path.read_text(encoding="utf-8")
    assert [marker for marker in MARKERS if marker in text] == []
    assert json.dumps(Recoding.load(path).content()) == json.dumps(recoding.content())
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.long
def test_rules_of_a_saved_lattice_are_completed_by_rows_in_scope(
    table: DataFrame, workspace: Workspace, tmp_path: Path
) -> None:
    fitted = LatticeAnonymizer(
        k=3, quasi_identifiers=HIERARCHIES, sensitive=["illness"], suppression=0.05, choose={"node": [0, 3, 1]}, **POLICIES
    ).fit(table, workspace)
    content = saved(fitted, tmp_path / "lattice.json")
    assert content["hierarchies"]["zip"]["length"] == 5 and content["hierarchies"]["born"]["start"] is None
    assert fitted.chosen.suppressed == 1 and {row.zip for row in fitted.transform(table).collect()} == {"13***", "22***"}
    # the audit completes them alike, by code of its own
    assert completed(table, HIERARCHIES, "suppress") == {name: one for name, (one, _) in fitted.recoded().items()}
    # also where nulls are kept: one that only a dropped row has is no value
    both = {name: HIERARCHIES[name] for name in ("zip", "city")}
    kept = table.where("born = '1777-01-01' OR born LIKE '199%'").replace({"CANARYZIPS": None}, subset=["zip"])
    again = LatticeAnonymizer(k=3, quasi_identifiers=both, on_unseen="suppress").fit(kept, workspace)
    assert again.fitted is not None and again.fitted.frequencies.dropped_unseen == 1
    assert not any(one.has_null for one, _ in again.recoded().values())
    assert completed(kept, both, "value") == {name: one for name, (one, _) in again.recoded().items()}


@pytest.mark.long
def test_a_saved_mst_holds_classes_of_the_release(table: DataFrame, workspace: Workspace, tmp_path: Path) -> None:
    fitted = MstAnonymizer(k=3, quasi_identifiers=HIERARCHIES, sensitive=["illness"], **POLICIES).fit(table, workspace)
    content = saved(fitted, tmp_path / "mst.json")
    shown = {tuple(row) for row in fitted.transform(table).select(*HIERARCHIES).collect()}
    assert set(map(tuple, content["labels"])) == shown
    assert completed(table, HIERARCHIES, "suppress") == fitted.fitted_hierarchies()


@pytest.mark.long
def test_a_saved_tree_holds_labels_of_the_release(table: DataFrame, workspace: Workspace, tmp_path: Path) -> None:
    schema = TreeSchema((TreeClass("city", "city"), TreeClass("zip", "zip", "city"), TreeClass("born", "born", "city")))
    records = table.where("zip <> '99998' OR zip IS NULL")
    fitted = TreeAnonymizer(k=3, m=1, n=0, schema=schema, hierarchies=HIERARCHIES, **POLICIES).fit(records, workspace)
    content = saved(fitted, tmp_path / "tree.json")
    shown = {(node["class"], node["value"]) for row in fitted.transform(records).collect() for path in row.paths for node in path}
    cut = set(map(tuple, content["cut"]))
    assert shown <= cut and any(name == "zip" for name, _ in shown)
    # but for the days of the decade that is published: levels and units say which these are, no record does
    assert {value[:3] for name, value in cut - shown if name == "born"} == {"199"} and len({name for name, _ in cut - shown}) == 1
    assert content["hierarchies"]["zip"]["length"] == 5
    assert completed_of_trees(records, schema, HIERARCHIES, "suppress") == dict(fitted.forest.hierarchies)


@pytest.mark.long
def test_a_batch_keeps_l_by_suppression(spark: SparkSession, workspace: Workspace, tmp_path: Path) -> None:
    """Classes that are not diverse in the batch are left out, counted as the audit counts: null and NaN are one value."""

    def people(values: Mapping[str, list[float | None]]) -> DataFrame:
        found = [(city, dose, "A") for city, doses in values.items() for dose in doses]
        return spark.createDataFrame(found, "city string, dose double, ward string")

    first = people({"Aldorf": [1.0, 2.0, 3.0], "Bexley": [1.0, 2.0, None]})
    fitted = MstAnonymizer(k=3, l=2, quasi_identifiers={"city": CITIES}, sensitive=["dose"], keep=["ward"]).fit(first, workspace)
    fitted.save(tmp_path / "mst.json")
    loaded = Recoding.load(tmp_path / "mst.json")
    assert isinstance(loaded, MstRecoding) and len(loaded.classes) == 2
    batch = people({"Aldorf": [5.0, 5.0, 5.0], "Bexley": [None, float("nan"), None, 7.0]})
    for recoding in (fitted, loaded):
        release = recoding.transform(batch)
        assert verify_l_diversity(release, ["city"], ["dose"], 2).passed
        assert {row.city for row in release.collect()} == {"Bexley"} and release.count() == 4
    nothing = people({"Aldorf": [5.0, 5.0, 5.0], "Bexley": [None, float("nan"), None]})
    assert loaded.transform(nothing).count() == 0
