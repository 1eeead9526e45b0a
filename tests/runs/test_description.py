"""The description of a published table: one commit behind the first release, put back by a rerun, nothing of a refused run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anon_spark.cli import main
from anon_spark.io.description import description_of
from anon_spark.io.tables import history
from anon_spark.runs import run as runs
from anon_spark.runs.preparation import RUN_KEY
from tests.town import Town, people

BARE: dict[str, Any] = {"columns__quasi_identifiers": {"city": {"levels": "hierarchies/city.csv"}}, "columns__keep": []}
NOTHING_LEFT = 61  # k of more rows than there are
FIRST = "Anonymized by anon-spark, family lattice: 5-anonymity on city (counting rows). Verified before it was published."


def operations(town: Town) -> list[str]:
    """What was committed to the release, oldest first."""
    return [commit["operation"] for commit in history(town.spark, str(town.folder / "release"), 99)][::-1]


@pytest.mark.long
def test_a_release_says_what_was_promised(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    town = Town.founded(spark, tmp_path / "town", people(60))
    table = str(town.folder / "release")

    # a description that cannot be written: the release is published, and the exit message says what is missing
    with monkeypatch.context() as patched:
        patched.setattr(runs, "describe", lambda *_: (_ for _ in ()).throw(PermissionError()))
        assert main(["run", town.job_file(**BARE), "--quiet"]) == 1
    said = capsys.readouterr().err
    assert f"published: {table} version 0, but the description of the table could not be written." in said
    assert [row.status for row in town.runs] == ["published"] and operations(town) == ["WRITE"]

    # a rerun recognises the release and writes what is missing; another one has nothing to do
    for _ in range(2):
        assert town.run(**BARE).status == "already_published"
        assert description_of(spark, table) == FIRST and operations(town) == ["WRITE", "SET TBLPROPERTIES"]
    assert main(["audit", town.job_file(**BARE)]) == 0

    # a run that is refused changes nothing; the next release says its own promise
    before = town.listing()
    assert main(["run", town.job_file(**BARE | {"privacy__k": NOTHING_LEFT}), "--quiet"]) == 3
    assert {name: time for name, time in town.listing().items() if name.startswith("release")} == {
        name: time for name, time in before.items() if name.startswith("release")
    }
    assert town.run(**BARE | {"privacy__k": 4}).output_version == 2
    assert description_of(spark, table) == FIRST.replace("5-anonymity", "4-anonymity")
    assert operations(town) == ["WRITE", "SET TBLPROPERTIES"] * 2

    monkeypatch.setenv(RUN_KEY, "planted-run-key")
    assert town.run(**BARE).status == "published"
    assert description_of(spark, table) == FIRST + " Made with a test key: not for release."

