"""Notebooks are valid, without outputs, and use names that exist. Executed in tests/pipelines/test_notebooks_run.py."""

from __future__ import annotations

import ast
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "pipelines" / "notebooks").glob("*.ipynb"))

pytestmark = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def test_is_a_notebook_of_format_4_without_outputs(path: Path) -> None:
    notebook = read(path)

    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        shape = {"cell_type", "id", "metadata", "source"}
        assert all(isinstance(line, str) for line in cell["source"])
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            shape |= {"outputs", "execution_count"}
        else:
            assert cell["cell_type"] == "markdown"
        assert set(cell) == shape


def test_code_compiles_and_its_imports_resolve(path: Path) -> None:
    sources = ["".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    tree = ast.parse("\n".join(sources))

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                import_module(alias.name)
        elif isinstance(node, ast.ImportFrom):
            module = import_module(str(node.module))
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
