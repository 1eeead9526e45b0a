"""Execute the notebooks and write their outputs into them: python -m jobs.notebooks [NAME …]

Without a name all notebooks of pipelines/notebooks are executed. Jupyter is not needed: cells are executed here, as Jupyter does.
What was printed, the value of the last line and the figures become outputs. Paths of the notebook's own temporary folder are
shortened, so that nothing of the machine is in a file that others read.
"""

from __future__ import annotations

import argparse
import ast
import base64
import hashlib
import io
import json
import os
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from time import perf_counter
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parents[1] / "pipelines" / "notebooks"
EXECUTED = "anon_spark_executed"  # in the metadata of a notebook: the digest of the code that its outputs came from
LONGEST = 500  # characters of a text that stands beside a page
FIGURES: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "anon-spark",
    "figure.figsize": (6.4, 3.2),
    "figure.constrained_layout.use": True,
}

Notebook = dict[str, Any]
Output = dict[str, Any]


def read(path: Path) -> Notebook:
    """A notebook file as it is."""
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def write(notebook: Notebook, path: Path) -> None:
    """Write a notebook as Jupyter does."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def digest(notebook: Notebook) -> str:
    """A digest of the code cells, in their order."""
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16]


def executed(notebook: Notebook, name: str, parameters: Mapping[str, Any] | None = None) -> tuple[Notebook, dict[str, Any]]:
    """The notebook with the outputs of its cells, and the names that it leaves behind. An error of a cell is raised.

    parameters: values that replace those of the cell with the tag `parameters`.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    with _figures():
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                outputs = _outputs(cell, count, names, name)
                cell = {**cell, "execution_count": count, "outputs": _without(outputs, names.get("folder"))}
                if "parameters" in cell["metadata"].get("tags", ()):
                    missing = set(parameters or ()) - set(names)
                    if missing:
                        raise ValueError(f"{name}: no parameters {', '.join(sorted(missing))}.")
                    names.update(parameters or {})
            cells.append(cell)
    return {**notebook, "cells": cells, "metadata": {**notebook["metadata"], EXECUTED: digest(notebook)}}, names


def _outputs(cell: Mapping[str, Any], count: int, names: dict[str, Any], name: str) -> list[Output]:
    """The outputs of a code cell: what it prints and shows, warnings, its last value, its figures."""
    outputs: list[Output] = []

    def display(*values: object) -> None:
        _flush(printed, outputs)
        outputs.extend({"output_type": "display_data", "data": _bundle(value), "metadata": {}} for value in values)

    names["display"] = display  # as in Jupyter, where it needs no import
    printed = io.StringIO()
    with redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        value = _value("".join(cell["source"]), f"{name}, cell {cell['id']}", names)
    _flush(printed, outputs)
    texts = [f"{one.category.__name__}: {one.message}\n" for one in warned if issubclass(one.category, UserWarning)]
    outputs += [{"output_type": "stream", "name": "stderr", "text": [text]} for text in dict.fromkeys(texts)]
    if value is not None:
        result = {"output_type": "execute_result", "execution_count": count, "data": _bundle(value), "metadata": {}}
        outputs.append(result)
    return [*outputs, *_drawn()]


def _value(source: str, place: str, names: dict[str, Any]) -> object:
    """Execute a cell; the value of its last line if that is an expression that no semicolon ends."""
    tree = ast.parse(source, place)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr) or source.rstrip().endswith(";"):
        exec(compile(tree, place, "exec"), names)  # noqa: S102
        return None
    exec(compile(ast.Module(tree.body[:-1], []), place, "exec"), names)  # noqa: S102
    return eval(compile(ast.Expression(last.value), place, "eval"), names)  # noqa: S307


def _bundle(value: object) -> dict[str, Any]:
    """A value in the forms that a notebook keeps."""
    shown: dict[str, Any] = {}
    if hasattr(value, "_repr_html_"):
        page = value._repr_html_()
        if page is not None:
            shown["text/html"] = _lines("\n".join(line for line in page.split("\n") if line.strip()))
    plain = repr(value)
    if shown and len(plain) > LONGEST:
        plain = f"{plain[:LONGEST]}…"
    return {**shown, "text/plain": _lines(plain)}


def _drawn() -> Iterator[Output]:
    """The open figures, which are closed. As SVG, and as PNG: Jupyter shows SVG only in notebooks that it trusts."""
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        vector, pixels = io.StringIO(), io.BytesIO()
        figure.savefig(vector, format="svg", metadata={"Date": None})
        figure.savefig(pixels, format="png", dpi=80, metadata={"Software": None})
        width, height = figure.get_size_inches()
        data = {
            "image/svg+xml": _lines(vector.getvalue()),
            "image/png": base64.b64encode(pixels.getvalue()).decode(),
            "text/plain": [f"<Figure of {width:g} by {height:g} inches>"],
        }
        yield {"output_type": "display_data", "data": data, "metadata": {}}
    pyplot.close("all")


@contextmanager
def _figures() -> Iterator[None]:
    """Figures are drawn without a window, and alike each time."""
    import matplotlib
    from matplotlib import pyplot

    before = matplotlib.get_backend()
    pyplot.switch_backend("agg")
    try:
        with matplotlib.rc_context(FIGURES):
            yield
    finally:
        pyplot.close("all")
        pyplot.switch_backend(before)


def _flush(printed: io.StringIO, outputs: list[Output]) -> None:
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
        printed.seek(0)
        printed.truncate()


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _without(outputs: list[Output], folder: object) -> list[Output]:
    """The outputs with paths inside the notebook's folder shortened to what is below it."""
    if folder is None:
        return outputs
    text = json.dumps(outputs, ensure_ascii=False)
    cleaned: list[Output] = json.loads(text.replace(f"file:{folder}/", "").replace(f"{folder}/", "").replace(str(folder), "."))
    return cleaned


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="notebooks, such as lattice; without one all")
    given = parser.parse_args(arguments)
    paths = [NOTEBOOKS / f"{name}.ipynb" for name in given.names] or sorted(NOTEBOOKS.glob("*.ipynb"))
    for path in paths:
        started = perf_counter()
        notebook, names = executed(read(path), path.name)
        write(notebook, path)
        shutil.rmtree(names["folder"], ignore_errors=True)
        print(f"{path.stem}: {perf_counter() - started:.0f} s, {os.path.getsize(path) // 1024} kB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
