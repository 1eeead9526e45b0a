"""Which input was released before: recognised by its rows, whatever commits, versions and spellings of a path say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anon_spark.cli import main
from anon_spark.config import config_hash
from anon_spark.errors import ConfigurationError
from anon_spark.families.registry import load_job
from anon_spark.io.tables import history
from anon_spark.runs.identity import Identity
from anon_spark.runs.plan import plan
from anon_spark.runs.preparation import prepare
from tests.families.set_valued.test_run import SETS, baskets
from tests.town import Town

pytestmark = pytest.mark.long

OTHER = SETS | {"privacy": {"k": 4}}  # another configuration of the same rows
RT: dict[str, Any] = {
    "family": "relational_transaction",
    "columns": {"quasi_identifiers": {"household": {}}, "transactions": ["basket"]},
    "privacy": {"k": 5, "m": 1},
    "output__table": "./rt",
    "output__runs": "./rt_runs",
}


@pytest.fixture(scope="module")
def town(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A town whose baskets were drawn once."""
    founded = Town.founded(spark, tmp_path_factory.mktemp("identity") / "town", baskets())
    founded.run(**SETS)
    return founded


def refused(town: Town, **changes: Any) -> str:
    """What the refusal of a second draw says."""
    prepared = prepare(town.job(**changes), town.spark)
    with pytest.raises(ConfigurationError) as caught:
        Identity(prepared, for_release=True).second_draw(redraw=False)
    return str(caught.value)


NO_CHANGE: dict[str, Callable[[Town, str], object]] = {
    "property": lambda town, table: town.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('kept.by' = 'office')"),
    "comment": lambda town, table: town.spark.sql(f"COMMENT ON TABLE {table} IS 'baskets'"),
    "optimize": lambda town, table: town.spark.sql(f"OPTIMIZE {table}").collect(),
    "vacuum": lambda town, table: town.spark.sql(f"VACUUM {table}").collect(),
    "rows written again, in another order": lambda town, table: town.spark.read.format("delta")
    .load(str(town.folder / "people"))
    .orderBy("name")
    .repartition(3)
    .write.format("delta")
    .mode("overwrite")
    .save(str(town.folder / "people")),
}


@pytest.mark.long
def test_a_commit_that_changes_no_row_is_no_other_input(town: Town) -> None:
    for act in NO_CHANGE.values():
        act(town, f"delta.`{town.folder}/people`")
    assert refused(town, **OTHER).startswith("output.table: 1 releases of the same rows were drawn before.")
    prepared = prepare(town.job(**SETS), town.spark)
    assert prepared.source.version is not None and prepared.source.version >= 4
    assert plan(prepared).already_published
    # the same people without a column beside their baskets
    fewer = OTHER | {"columns": {name: value for name, value in SETS["columns"].items() if name != "sensitive"}}
    assert "1 releases of the same rows" in refused(town, **fewer)


@pytest.mark.long
def test_the_same_for_values_with_items(town: Town, tmp_path: Path) -> None:
    place = town.copied(tmp_path / "town")
    place.run(**RT)
    for act in NO_CHANGE.values():
        act(place, f"delta.`{place.folder}/people`")
    assert refused(place, **RT | {"privacy": {"k": 6, "m": 1}}).startswith("output.table: 1 releases of the same rows")
    assert plan(prepare(place.job(**RT), place.spark)).already_published


@pytest.mark.long
def test_a_run_of_the_same_rows_in_another_version_or_under_another_name(town: Town, tmp_path: Path) -> None:
    NO_CHANGE["rows written again, in another order"](town, "")
    assert main(["run", town.job_file(**SETS), "--quiet"]) == 0 and town.runs[-1].status == "already_published"
    place = town.copied(tmp_path / "town")
    place.write(baskets().rename_columns(["person_id", "household", "name", "wares", "religion"]))
    assert "1 releases of the same rows" in refused(place, **OTHER | {"columns__items": "wares"})


@pytest.mark.long
def test_another_spelling_of_a_place_is_the_same_place(town: Town) -> None:
    for scheme in ("file:", "file://"):
        spelled = OTHER | {"input__table": f"{scheme}{town.folder}/people", "output__table": f"{scheme}{town.folder}/release"}
        assert "1 releases of the same rows" in refused(town, **spelled)
    plain = config_hash(load_job(town.job_file(**SETS)))
    other = config_hash(load_job(town.job_file(**SETS | {"input__table": f"file://{town.folder}//people/"})))
    assert plain == other


def test_other_rows_are_another_input(town: Town, tmp_path: Path) -> None:
    place = town.copied(tmp_path / "town")
    place.write(baskets().slice(1))
    prepared = prepare(place.job(**OTHER), place.spark)
    assert Identity(prepared, for_release=True).second_draw(redraw=False) == []
    # persons numbered anew are the same persons
    place.write(baskets().set_column(0, "person_id", [list(range(150))]))
    assert "1 releases of the same rows" in refused(place, **OTHER)


@pytest.mark.long
def test_draws_that_the_log_does_not_know_count(town: Town, tmp_path: Path) -> None:
    place = town.copied(tmp_path / "town")
    before = list((place.folder / "people").glob("part-*"))
    place.write(baskets().slice(1))
    # the version that was read tells, while it can be read
    unlogged = prepare(place.job(**OTHER | {"output__runs": "./other_runs"}), place.spark)
    assert Identity(unlogged, for_release=True).second_draw(redraw=False) == []
    for file in before:  # vacuumed
        file.unlink()
    told = refused(place, **OTHER | {"output__runs": "./other_runs"})
    assert told.startswith("output.table: The run log does not tell which rows 1 earlier releases were drawn of.")
    assert told.endswith("Keep the current one, or draw again with --redraw.")
    prepared = prepare(place.job(**OTHER | {"output__runs": "./other_runs"}), place.spark)
    (said,) = Identity(prepared, for_release=True).second_draw(redraw=True)
    assert f"a run would need --redraw: {said}" in plan(prepared).lines()
    # releases with a test key count among themselves
    assert Identity(prepared, for_release=False).second_draw(redraw=False) == []


def test_the_history_of_a_release_tells_nothing_of_its_rows(town: Town) -> None:
    (row,) = (row for row in town.runs if row.status == "published")
    assert [len(digest) for digest in row.content.split()] == [64, 64]
    said = [str(commit) for commit in history(town.spark, str(town.folder / "release"), 9)]
    assert not any(digest in text for digest in row.content.split() for text in said)
