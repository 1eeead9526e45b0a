"""The notebooks run from top to bottom, on a sample small enough for a test."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

NOTEBOOKS = Path(__file__).resolve().parents[2] / "pipelines" / "notebooks"
SMALL: dict[str, Any] = {"ROWS": 400, "K": 5}


@pytest.fixture(autouse=True)
def session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite's own session, and no window for plots."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr("anon_spark.spark_session.make_session", lambda name: spark)


def executed(name: str) -> dict[str, Any]:
    """The names a notebook leaves behind, its sample being SMALL."""
    notebook = NOTEBOOKS / name
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    overridden = False
    for cell in cells:
        exec(compile("".join(cell["source"]), f"{notebook.name}, cell {cell['id']}", "exec"), names)  # noqa: S102
        if "parameters" in cell["metadata"].get("tags", ()):
            assert set(SMALL) <= set(names)
            names.update(SMALL)
            overridden = True
    shutil.rmtree(names["folder"])
    assert overridden
    return names


@pytest.mark.long
def test_full_domain_recoding(capsys: pytest.CaptureFixture[str]) -> None:
    names = executed("lattice.ipynb")

    assert names["verdict"].passed and names["second_verdict"].passed
    assert names["recoding"].k >= SMALL["K"]
    assert names["loaded"].node == names["recoding"].node
    assert 0 < names["left"] <= SMALL["ROWS"]
    assert names["knee"].k >= SMALL["K"]
    assert "rows suppressed" in capsys.readouterr().out


@pytest.mark.long
def test_local_recoding_and_both_side_by_side() -> None:
    names = executed("mst.ipynb")

    assert names["verdict"].passed and names["second_verdict"].passed
    assert names["sizes"]["rows"].min() >= SMALL["K"] and names["sizes"]["rows"].sum() == SMALL["ROWS"]
    assert names["weights"]["edges"].sum() > 0 and names["levels"].sum(axis=1).round(9).eq(1).all()
    assert 0 < names["left"] <= SMALL["ROWS"]
    measures = names["measures"]
    assert measures.loc["glm", "mst"] == pytest.approx(names["measured"].measures.glm)
    assert measures.loc["glm", "lattice"] == pytest.approx(names["full"].loss)
    assert measures.loc["glm", "mst"] < measures.loc["glm", "lattice"]
    assert measures.loc["attack, worst"].max() <= 1 / SMALL["K"]


@pytest.mark.long
def test_item_sets_with_counts_and_what_is_not_protected() -> None:
    names = executed("set_valued.ipynb")

    assert names["verdict"].passed and names["compatible"].passed
    assert names["account"].published == SMALL["ROWS"]
    for found in (names["answers"], names["of_value"]):
        assert (found["lower"] <= found["true"]).all() and (found["true"] <= found["upper"]).all()
        assert found["true"].max() > 0 and (found["lower"] < found["upper"]).any()
    assert names["by_k"].is_monotonic_increasing and list(names["by_k"].index) == [3, SMALL["K"], 2 * SMALL["K"]]
    assert 0 < names["diverse_rate"] < 1
    known = names["solved"].loc["order known"]
    assert known["ring", 3] > known["groups", 3] >= known["groups", SMALL["K"]]


@pytest.mark.long
def test_values_and_items_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SMALL, "DELTAS", (0.9,))
    names = executed("relational_transaction.ipynb")

    assert names["verdict"].passed and f"{SMALL['ROWS']} rows" in names["verdict"].detail
    assert names["measured"].ncp <= 0.65
    by_delta = names["by_delta"]
    assert (by_delta["NCP"] <= by_delta.index).all() and by_delta["NCP"].min() > names["measured"].ncp
    attacks = names["attacks"]
    assert attacks["worst"][attacks["promised"]].max() <= 1 / SMALL["K"] < attacks["worst"].max()


@pytest.mark.long
def test_nested_records_and_what_more_knowledge_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SMALL, "CUTS", 12)
    names = executed("tree.ipynb")

    assert names["verdict"].passed and names["verdict"].facts["rows"] == SMALL["ROWS"] and 0 < names["loss"] < 1
    attacks = names["attacks"]
    assert attacks["below"][0] == 0 and attacks["drawn"][0] == SMALL["ROWS"] and list(attacks["labels"]) == [3, 3, 3, 5]
