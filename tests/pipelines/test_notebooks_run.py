"""The notebooks run from top to bottom, on a sample small enough for a test."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.notebooks import NOTEBOOKS, executed, read

ROWS, K = 400, 5

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("spark")]


@pytest.fixture(autouse=True)
def current_session(spark: SparkSession) -> None:
    """The suite's own session is the one that `an.session` finds."""
    assert SparkSession.getActiveSession() is spark


def names_of(name: str, **parameters: Any) -> dict[str, Any]:
    """The names that a notebook leaves behind, its sample being small. Every notebook publishes by a job, too."""
    path = NOTEBOOKS / f"{name}.ipynb"
    notebook, names = executed(read(path), path.name, {"ROWS": ROWS, "K": K, **parameters})
    try:
        assert names["verdict"].passed
        assert names["report"].status == "published" and all(check.passed for check in names["report"].checks)
        assert names["plan"].counts["rows"] == ROWS
        names["published"] = names["published"].toPandas()
    finally:
        shutil.rmtree(names["folder"])
    assert len(notebook["cells"]) == len(read(path)["cells"])
    return names


def test_lattice() -> None:
    names = names_of("lattice")

    assert names["recoding"].k >= K
    assert names["before"].facts.look_up.unique_rows > 0 == names["after"].facts.look_up.unique_rows
    assert names["shown"]["people"].sum() == len(names["published"]) >= 0.99 * ROWS
    assert len(names["quick_pandas"]) == ROWS and names["quick_pandas"].groupby(["age", "sex"]).size().min() >= K


def test_mst() -> None:
    names = names_of("mst")

    assert names["losses"]["mst"] < names["losses"]["lattice"]
    assert names["levels"].sum(axis=1).round(9).eq(1).all()
    assert len(names["published"]) == ROWS == names["ages"]["original"].sum() == round(names["ages"]["release"].sum())


def test_set_valued() -> None:
    names = names_of("set_valued")

    answers = names["answers"]
    assert (answers["lower"] <= answers["true"]).all() and (answers["true"] <= answers["upper"]).all()
    assert answers["true"].max() > 0 and names["of_religion"].upper > 0


def test_relational_transaction() -> None:
    names = names_of("relational_transaction")

    answers = names["answers"]
    assert (answers["certain"] <= answers["true"]).all() and (answers["true"] <= answers["possible"]).all()
    assert 0 < names["share_alone"] <= 1 and 0 < names["measured"].ncp <= 0.4


def test_tree() -> None:
    names = names_of("tree", CUTS=12)

    assert names["months"]["customers"].sum() >= ROWS and names["trail"].shape[0] > 0
