"""The notebook runs from top to bottom, on a sample small enough for a test."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

NOTEBOOK = Path(__file__).resolve().parents[2] / "pipelines" / "notebooks" / "lattice.ipynb"
SMALL = {"ROWS": 400, "K": 5}


def test_notebook_runs(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr("jobs.session.make_session", lambda name: spark)
    cells = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    overridden = False

    for cell in cells:
        exec(compile("".join(cell["source"]), f"{NOTEBOOK.name}, cell {cell['id']}", "exec"), names)  # noqa: S102
        if "parameters" in cell["metadata"].get("tags", ()):
            assert set(SMALL) <= set(names)
            names.update(SMALL)
            overridden = True
    shutil.rmtree(names["folder"])

    assert overridden
    assert names["verdict"].passed and names["second_verdict"].passed
    assert names["recoding"].k >= SMALL["K"]
    assert names["loaded"].node == names["recoding"].node
    assert 0 < names["left"] <= SMALL["ROWS"]
    assert names["knee"].k >= SMALL["K"]
    assert "rows suppressed" in capsys.readouterr().out
