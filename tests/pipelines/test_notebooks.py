"""Notebooks are valid, their outputs come from their code, and they use names that exist. Executed in test_notebooks_run.py."""

from __future__ import annotations

import ast
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from jobs.notebooks import EXECUTED, NOTEBOOKS, digest, executed, read

MOST_BYTES = 400_000
ROOTS = "tmp|home|root|Users|var|opt|usr|private|mnt|work|workspace|databricks"
ABSOLUTE = re.compile(rf"(?<![\w.:/*<-])/(?:{ROOTS})\b|file:/|[A-Z]:\\\\")
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))

of_each = pytest.mark.parametrize("name", NAMES)


def notebook(name: str) -> dict[str, Any]:
    return read(NOTEBOOKS / f"{name}.ipynb")


def code_cells(name: str) -> list[dict[str, Any]]:
    return [cell for cell in notebook(name)["cells"] if cell["cell_type"] == "code"]


def outputs(name: str) -> list[dict[str, Any]]:
    return [output for cell in code_cells(name) for output in cell["outputs"]]


@of_each
def test_is_a_notebook_of_format_4(name: str) -> None:
    content = notebook(name)

    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert set(content) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    for cell in content["cells"]:
        shape = {"cell_type", "id", "metadata", "source"}
        assert all(isinstance(line, str) for line in cell["source"])
        if cell["cell_type"] == "code":
            shape |= {"outputs", "execution_count"}
        else:
            assert cell["cell_type"] == "markdown"
        assert set(cell) == shape


@of_each
def test_outputs_come_from_the_code_as_it_is(name: str) -> None:
    again = f"Execute it again: python -m jobs.notebooks {name}"

    assert notebook(name)["metadata"].get(EXECUTED) == digest(notebook(name)), again
    counts = [cell["execution_count"] for cell in code_cells(name)]
    assert counts == list(range(1, len(counts) + 1)), again
    for cell in code_cells(name):
        results = [output for output in cell["outputs"] if output["output_type"] == "execute_result"]
        assert all(output["execution_count"] == cell["execution_count"] for output in results), again


@of_each
def test_outputs_have_a_picture_and_no_error(name: str) -> None:
    kinds = {output["output_type"] for output in outputs(name)}
    pictures = [output for output in outputs(name) if {"image/svg+xml", "image/png"} <= set(output.get("data", ()))]

    assert kinds <= {"stream", "display_data", "execute_result"}
    assert pictures


@of_each
def test_outputs_are_small_and_name_nothing_of_a_machine(name: str) -> None:
    text = json.dumps([{**output, "data": _texts(output)} for output in outputs(name)], ensure_ascii=False)

    assert (NOTEBOOKS / f"{name}.ipynb").stat().st_size < MOST_BYTES
    assert [text[found.start() - 40 : found.end() + 40] for found in ABSOLUTE.finditer(text)] == []


def _texts(output: dict[str, Any]) -> dict[str, str]:
    return {kind: "".join(lines) for kind, lines in output.get("data", {}).items() if kind != "image/png"}


@pytest.mark.parametrize("leak", ["/tmp/tmpab12/people", "see /home/ann/x", "file:/data/people", "'/root/.cache'"])
def test_a_path_of_a_machine_is_seen(leak: str) -> None:
    assert ABSOLUTE.search(json.dumps([leak]))


@of_each
def test_code_compiles_and_its_imports_resolve(name: str) -> None:
    tree = ast.parse("\n".join("".join(cell["source"]) for cell in code_cells(name)))

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                import_module(alias.name)
        elif isinstance(node, ast.ImportFrom):
            module = import_module(str(node.module))
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


def made(*sources: str) -> dict[str, Any]:
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "id": str(at), "metadata": {}, "source": [source], "outputs": [], "execution_count": None}
        for at, source in enumerate(sources)
    ]
    cells[0]["metadata"] = {"tags": ["parameters"]}
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def test_cells_are_executed_as_in_jupyter(tmp_path: Path) -> None:
    draw = "from matplotlib import pyplot as plt\nplt.plot([1, 2]);"
    warn = "import warnings\nwarnings.warn('look')"
    place = (f"folder = {str(tmp_path)!r}", "print(f'{folder}/people')")
    sources = ("ROWS = 5", "print(ROWS)\nROWS + 1", "ROWS;", draw, warn, *place)
    found, names = executed(made(*sources), "made", {"ROWS": 7})
    _, printed, silent, drawn, warned, _, shortened = (cell["outputs"] for cell in found["cells"])

    assert [output["output_type"] for output in printed] == ["stream", "execute_result"]
    assert printed[0]["text"] == ["7\n"] and printed[1]["data"] == {"text/plain": ["8"]} and printed[1]["execution_count"] == 2
    assert silent == [] and names["ROWS"] == 7
    assert [set(output["data"]) for output in drawn] == [{"image/svg+xml", "image/png", "text/plain"}]
    assert warned[0]["name"] == "stderr" and warned[0]["text"] == ["UserWarning: look\n"]
    assert shortened[0]["text"] == ["people\n"]
    assert found["metadata"][EXECUTED] == digest(found) != digest(made(*sources[1:]))


def test_an_error_of_a_cell_and_an_unknown_parameter_are_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        executed(made("1", "1 / 0"), "made")
    with pytest.raises(ValueError, match="no parameters ROWS"):
        executed(made("K = 5"), "made", {"ROWS": 7})
